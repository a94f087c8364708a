"""Singular values, norms, ranks and decay exponents of weights, each named by its formula, in float64 with an error bar."""

from certiformer.spectrum.decay import Decay as Decay
from certiformer.spectrum.decay import Line as Line
from certiformer.spectrum.decay import decay_exponent as decay_exponent
from certiformer.spectrum.decay import decay_exponents as decay_exponents
from certiformer.spectrum.decay import fit_line as fit_line
from certiformer.spectrum.lanczos import largest_by_lanczos as largest_by_lanczos
from certiformer.spectrum.lanczos import largest_eigenvalue as largest_eigenvalue
from certiformer.spectrum.norms import Norms as Norms
from certiformer.spectrum.norms import decomposed as decomposed
from certiformer.spectrum.norms import norms as norms
from certiformer.spectrum.norms import norms_of as norms_of
from certiformer.spectrum.one_pass import Sums as Sums
from certiformer.spectrum.one_pass import sums as sums
from certiformer.spectrum.products import Products as Products
from certiformer.spectrum.products import product_values as product_values
from certiformer.spectrum.products import products as products
from certiformer.spectrum.values import Ranks as Ranks
from certiformer.spectrum.values import by_gram as by_gram
from certiformer.spectrum.values import ranks as ranks
from certiformer.spectrum.values import ranks_of_each as ranks_of_each
from certiformer.spectrum.values import singular_values as singular_values
from certiformer.spectrum.values import value_error as value_error
