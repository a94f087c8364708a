"""`certiformer explore`: a page on this machine where the theorems can be seen at work.

    browser -> guard (host, origin, token, sizes) -> pages -> requests (what may be asked) -> jobs (queue, limits)
            -> worker (a process of its own) -> rooms (the library's own functions) -> events, line by line

Nothing that a page sends is run as code or used as a path: formulas and programs go through the library's parsers, runs
and uploads have names that the server chose. `bundle` holds the page, built from the folder `web` of the repository.
"""

from certiformer.arguments import make_callable

make_callable(__name__, "certiformer.explore.serving", "explore")  # `certiformer.explore` is the verb, too
