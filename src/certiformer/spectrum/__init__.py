"""Singular values, norms, ranks and decay exponents of weights, each named by its formula, in float64 with an error bar."""

from certiformer.spectrum.decay import Decay as Decay
from certiformer.spectrum.decay import decay_exponent as decay_exponent
from certiformer.spectrum.lanczos import largest_by_lanczos as largest_by_lanczos
from certiformer.spectrum.line import Line as Line
from certiformer.spectrum.line import fit_line as fit_line
from certiformer.spectrum.norms import Norms as Norms
from certiformer.spectrum.norms import norms as norms
from certiformer.spectrum.products import product_values as product_values
from certiformer.spectrum.ranks import Ranks as Ranks
from certiformer.spectrum.ranks import ranks as ranks
from certiformer.spectrum.values import largest_value as largest_value
from certiformer.spectrum.values import singular_values as singular_values
from certiformer.spectrum.values import value_error as value_error
