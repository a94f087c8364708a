"""The rate laboratory: claims about approximation rates, each a study with slopes, intervals and pictures."""

from certiformer.arguments import make_callable

make_callable(__name__, "certiformer.api.studies", "rates")  # `certiformer.rates` is the verb, too
