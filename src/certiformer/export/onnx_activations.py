"""The activations of the feed-forward sub-layer as ONNX nodes.

GELU is x * Phi(x) with the normal distribution function Phi. In float32 it is written with ONNX's `Erf`. onnxruntime has no
float64 `Erf`, so there Phi comes from the complementary error function in a form made for one expression without branches,

    erfc(z) = t * exp(-z^2 + P(2 t - 1)),   t = 2 / (2 + z),   z >= 0,

where P interpolates log(erfc(z) / t) + z^2, a smooth function of t in (0, 1], at Chebyshev points. Its Chebyshev
coefficients beyond degree 24 add up to less than 3e-16, so t * exp(...) is off by less than 3e-16 of itself before
rounding. The form of the substitution is that of Press, Teukolsky, Vetterling and Flannery, Numerical Recipes (2007),
section 6.2; the coefficients were computed anew from ball arithmetic, in powers of 2 t - 1, none larger than 0.68, so that
Horner's rule loses nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from certiformer.export.graph import Graph

# P, constant term first.
ERFC_EXPONENT = (
    -0.6717940840566922,
    0.6726432239776583,
    0.047343306841863525,
    -0.04689561023132892,
    -0.009872689364099222,
    0.008824938561312326,
    0.0017589335074028032,
    -0.002345812552995894,
    -0.00014624628742128406,
    0.0006736791352568864,
    -9.373894767667295e-05,
    -0.00017430412986925938,
    7.141810433422301e-05,
    3.174693542327236e-05,
    -3.023784054007137e-05,
    1.3989370477611051e-07,
    8.662535397475538e-06,
    -2.963484230959699e-06,
    -1.409445991433531e-06,
    1.283394915356199e-06,
    -4.146853754663641e-08,
    -2.895626567435524e-07,
    7.745572408758512e-08,
    2.980513364515168e-08,
    -1.2776086554968677e-08,
)


def _relu(graph: Graph, hidden: str) -> str:
    return graph.apply("Relu", hidden)


def _gelu(graph: Graph, hidden: str) -> str:
    return graph.apply("Mul", hidden, (_normal_distribution if graph.float is np.float64 else _by_erf)(graph, hidden))


def _identity(graph: Graph, hidden: str) -> str:
    del graph
    return hidden


ACTIVATIONS: dict[str, Callable[[Graph, str], str]] = {"relu": _relu, "gelu": _gelu, "identity": _identity}


def _by_erf(graph: Graph, x: str) -> str:
    """Phi(x) = (1 + erf(x / sqrt 2)) / 2."""
    erf = graph.apply("Erf", graph.apply("Mul", x, graph.number(math.sqrt(0.5))))
    return graph.apply("Mul", graph.apply("Add", erf, graph.number(1.0)), graph.number(0.5))


def _normal_distribution(graph: Graph, x: str) -> str:
    """Phi(x) = erfc(|x| / sqrt 2) / 2 for x < 0, and 1 minus that otherwise."""
    z = graph.apply("Mul", graph.apply("Abs", x), graph.number(math.sqrt(0.5)))
    tail = graph.apply("Mul", _erfc(graph, z), graph.number(0.5))
    rest = graph.apply("Sub", graph.number(1.0), tail)
    return graph.apply("Where", graph.apply("Less", x, graph.number(0.0)), tail, rest)


def _erfc(graph: Graph, z: str) -> str:
    two = graph.number(2.0)
    t = graph.apply("Div", two, graph.apply("Add", two, z))
    y = graph.apply("Sub", graph.apply("Mul", two, t), graph.number(1.0))
    exponent = graph.number(ERFC_EXPONENT[-1])
    for coefficient in ERFC_EXPONENT[-2::-1]:
        exponent = graph.apply("Add", graph.apply("Mul", exponent, y), graph.number(coefficient))
    exponent = graph.apply("Sub", exponent, graph.apply("Mul", z, z))
    return graph.apply("Mul", t, graph.apply("Exp", exponent))
