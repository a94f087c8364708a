"""The suite: targets of one to four variables on which every method is measured.

`certiformer bench build` builds and certifies each of them at the epsilons of `levels`: 1/10 and 1/100 of the range of the
target, and for smooth targets of at most two variables also 1/1000 and 1/10000. Targets with kinks that are not sums of
ridge functions are asked for 1/10 only from three variables on: one hidden layer cannot represent them, and the error of
any smooth substitute falls slowly.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

UNIT = {1: "[0,1]", 2: "[0,1]^2", 3: "[0,1]^3", 4: "[0,1]^4"}
MIDDLE = "max(min(x1,x2), min(max(x1,x2), x3))"
FRANKE = (
    "0.75*exp(-((9*x1-2)**2+(9*x2-2)**2)/4) + 0.75*exp(-(9*x1+1)**2/49-(9*x2+1)/10)"
    " + 0.5*exp(-((9*x1-7)**2+(9*x2-3)**2)/4) - 0.2*exp(-(9*x1-4)**2-(9*x2-7)**2)"
)


@dataclass(frozen=True)
class Case:
    """One target: its formula, box, and what kind of function it is; `tokens` for maps from sequences to sequences.

    `kind` is `smooth`, `kinked` (a sum of ridge functions with kinks), `folded` (kinks that are no ridges) or `singular`
    (a derivative is unbounded or undefined on the box).
    """

    name: str
    formula: str
    on: str
    dimension: int
    kind: str
    tokens: int | None = None

    @property
    def shares(self) -> tuple[Fraction, ...]:
        """The epsilons as shares of the range."""
        if self.kind == "folded" and self.dimension >= 3:
            return (Fraction(1, 10),)
        deep = self.kind == "smooth" and self.dimension <= 2
        return tuple(Fraction(1, 10**k) for k in range(1, 5 if deep else 3))


def _case(name: str, formula: str, dimension: int, kind: str, on: str = "", tokens: int | None = None) -> Case:
    return Case(name, formula, on or UNIT[dimension], dimension, kind, tokens)


SUITE = (
    # One variable
    _case("sine", "sin(x1)", 1, "smooth", "[0,2*pi]"),
    _case("bell", "exp(-x1**2)", 1, "smooth", "[-2,2]"),
    _case("runge", "1/(1+25*x1**2)", 1, "smooth", "[-1,1]"),
    _case("log-edge", "log(0.01+x1)", 1, "smooth"),
    _case("chirp", "sin(10*x1**2)", 1, "smooth"),
    _case("steep-step", "tanh(20*(x1-0.5))", 1, "smooth"),
    _case("cubic", "x1**3-x1", 1, "smooth", "[-1.5,1.5]"),
    _case("logistic", "1/(1+exp(-8*x1))", 1, "smooth", "[-1,1]"),
    _case("flat-then-curved", "max(0,x1-0.5)**2", 1, "kinked"),
    _case("hat", "max(0,1-abs(x1))", 1, "kinked", "[-2,2]"),
    _case("three-pieces", "max(min(2*x1,1),3*x1-2)", 1, "kinked"),
    _case("square-root", "sqrt(x1)", 1, "singular"),
    # Two variables
    _case("sine-sum", "sin(x1)+sin(x2)", 2, "smooth", "[0,2*pi]^2"),
    _case("product", "x1*x2", 2, "smooth"),
    _case("saddle-waves", "sin(8*x1*x2)", 2, "smooth"),
    _case("near-pole", "1/(1.05-x1*x2)", 2, "smooth"),
    _case("steep-ridge", "tanh(20*(x1-x2))", 2, "smooth"),
    _case("gaussian-2", "exp(-(x1**2+x2**2))", 2, "smooth", "[-1,1]^2"),
    _case("sine-cosine", "sin(x1)*cos(x2)", 2, "smooth", "[0,pi]^2"),
    _case("decay", "x1*exp(-2*x2)", 2, "smooth"),
    _case("plane-wave", "sin(3*x1+2*x2)", 2, "smooth", "[-1,1]^2"),
    _case("two-waves", "cos(5*x1)+sin(7*x2)", 2, "smooth"),
    _case("rosenbrock", "(1-x1)**2+100*(x2-x1**2)**2", 2, "smooth", "[-1,1]^2"),
    _case("franke", FRANKE, 2, "smooth"),
    _case("difference", "abs(x1-x2)", 2, "kinked"),
    _case("larger", "max(x1,x2)", 2, "kinked"),
    _case("sort-two", "[max(x1,x2),min(x1,x2)]", 2, "kinked", tokens=2),
    _case("cone", "sqrt(x1**2+x2**2)", 2, "singular"),
    _case("pair", "[x1*x2,x1-x2]", 2, "smooth", tokens=2),
    _case("swap-and-scale", "[exp(x2)/2,x1**2]", 2, "smooth", tokens=2),
    # Three variables
    _case("largest", "max(x1,max(x2,x3))", 3, "folded"),
    _case("sort-three", f"[max(x1,max(x2,x3)),{MIDDLE},min(x1,min(x2,x3))]", 3, "folded", tokens=3),
    _case("triple", "[x2*x3,x1+x3,sin(x1*x2)]", 3, "smooth", tokens=3),
    _case("volume", "x1*x2*x3", 3, "smooth"),
    _case("three-terms", "sin(3*x1)+cos(2*x2)+exp(x3)", 3, "smooth"),
    _case("gaussian-3", "exp(-(x1**2+x2**2+x3**2))", 3, "smooth"),
    _case("ratio", "1/(1+x1+x2*x3)", 3, "smooth"),
    _case("oblique", "abs(x1+x2-x3)", 3, "kinked"),
    # Four variables
    _case("gaussian-4", "exp(-(x1**2+x2**2+x3**2+x4**2))", 4, "smooth"),
    _case("four-product", "x1*x2*x3*x4", 4, "smooth"),
    _case("two-products", "x1*x2+x3*x4", 4, "smooth"),
    _case("two-differences", "abs(x1-x2)+abs(x3-x4)", 4, "kinked"),
    _case("larger-sum", "max(x1+x2,x3+x4)", 4, "kinked"),
    _case("determinant-trace", "[x1_1*x2_2-x1_2*x2_1,x1_1+x2_2]", 4, "smooth", tokens=2),
    _case("mixed", "sin(x1*x2)+exp(-x3*x4)", 4, "smooth"),
)


def case(name: str) -> Case:
    """The case of that name."""
    return next(each for each in SUITE if each.name == name)


def levels(chosen: Case) -> list[tuple[Fraction, str]]:
    """The shares of a case and the epsilons they mean, as decimal text rounded down to two digits.

    The range is the largest spread of an output over a grid of points: it only names epsilon, nothing is proved of it.

    >>> levels(case("larger"))
    [(Fraction(1, 10), '0.1'), (Fraction(1, 100), '0.01')]
    """
    spread = _spread(chosen)
    result = []
    for share in chosen.shares:
        exponent = 0
        value = Fraction(spread) * share
        while value < 10:
            value, exponent = value * 10, exponent - 1
        result.append((share, f"{float(Fraction(int(value)) * Fraction(10) ** exponent):g}"))
    return result


def _spread(chosen: Case) -> float:
    import numpy as np

    from certiformer.construct.program_values import as_numpy
    from certiformer.kernel.balls import BallDomain, working_precision
    from certiformer.search.request import read_target

    working_precision()
    target = read_target(chosen.formula, chosen.on, chosen.tokens)
    ends = [(float(low.mid()), float(high.mid())) for low, high in BallDomain(target.domain).ends]
    # An odd number of points with the ends and the middle, so that ranges of the usual targets come out exactly.
    count = {1: 2001, 2: 201, 3: 33, 4: 17}[chosen.dimension]
    axes = [np.linspace(low, high, count) for low, high in ends]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, chosen.dimension)
    values = as_numpy(target.program)(points)
    # Ranges that are meant to be exact, like 1 for max(x1,x2), must not fall below by a rounding error.
    return float(np.ptp(values, axis=0).max()) * (1 + 1e-12)
