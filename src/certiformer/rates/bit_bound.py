r"""How small nothing can be: lower bounds for families that come within epsilon of every function of a class.

*Packing.* Cut [0,1]^D into K cubes of side 1/N and put a bump of height A on each: all sums f_c = sum_i c_i bump_i with
|c_i| <= 1 shall be in the class. The classes here, and the largest A:

    Hoelder, |f(x) - f(y)| <= L max_i |x_i - y_i|^alpha, 0 < alpha <= 1:         A = L / (2 N^alpha),
    slopes, |df/dx_i| <= L_i:         A = min_i L_i / (2 N_i) with N_i cells on axis i,
    curvature, |d2f/dx_i dx_j| <= M for all i, j:         A = M / (16 N^2).

1. Hoelder: bump = 2^(alpha-1) L dist(x, boundary)^alpha, with distance at most 1/(2N) in the max norm. For x, y in
   one cube |a^alpha - b^alpha| <= |a - b|^alpha <= |x - y|^alpha and 2^(alpha-1) <= 1. In different cubes the segment from
   x to y leaves the first and enters the second, so a + b <= |x - y| for their distances a, b, and by concavity
   a^alpha + b^alpha <= 2^(1-alpha) (a + b)^alpha: the factor cancels.
2. Slopes: bump = min_i L_i dist_i, dist_i being the distance of x_i from the ends of its cell on axis i. Where it has a
   gradient that is L_i e_i for some i; on the faces of a cell it is zero, so f_c is continuous and has the same slopes.
3. Curvature: psi on a cell of side w has psi'' = 16/w^2 on its outer quarters and -16/w^2 between; so psi and psi' vanish
   at both ends, 0 <= psi <= 1 = psi(w/2) and |psi'| <= 4/w. bump = A prod_i psi(x_i) has second derivatives of at most
   16 A / w^2, mixed ones too, and vanishes on the faces with its gradient.

*Bits*. Let A > epsilon. For two sign patterns c != c', f_c and f_c' differ at the centre of a cube by 2 A > 2 epsilon;
no function is within epsilon of both. A family that serves all 2^K has 2^K members: K bits, however they are stored.

*Continuous selection* (DeVore, Howard and Micchelli 1989). Let theta(f) in R^W be chosen continuously and W < K. The
boundary of the cube [-1,1]^K is a sphere of dimension K - 1 and c -> theta(f_c) continuous on it; by the theorem of Borsuk
and Ulam some c has theta(f_c) = theta(f_-c) = theta(-f_c). Some |c_i| is 1, so both functions are 2 A apart at a centre and
share their approximant: one of the errors is at least A > epsilon. So W >= K. Values at centres, averages and interpolation
are of this kind; weights found by a search are not.

*Symmetry*. For n tokens in [0,1]^d, D = n d. A permutation of the tokens permutes cubes; with equal c_i along orbits
f_c is invariant. An orbit is a multiset of n of the N^d cubes of one token: K = C(N^d + n - 1, n) instead of N^(n d).

So K counts for the largest N with A > epsilon: N^p < (L / (2 epsilon))^q for alpha = p/q, an inequality between
fractions, decided in whole numbers. L = 1, alpha = 1, epsilon = 1/100: N = 49, in two variables K = 2401.
`expressivity.bits_lower_bound` is the theorem for alpha = 1, with its bumps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from certiformer.errors import BadInput
from certiformer.rates.study import Table

Exact = Fraction | int | str
LARGEST_POWER = 1_000  # of the fractions compared; alpha = 0.333 is meant to be 1/3


@dataclass(frozen=True)
class Hoelder:
    """|f(x) - f(y)| <= L max_i |x_i - y_i|^alpha for `tokens` tokens of `dimension` numbers in [0, 1]."""

    lipschitz: Exact
    dimension: int
    alpha: Exact = 1
    tokens: int = 1
    symmetric: bool = False

    def cells(self, epsilon: Exact) -> int:
        """N: the largest number of cells of an axis with L / (2 N^alpha) > epsilon."""
        constant, tolerance, alpha = _positive(self.lipschitz), _positive(epsilon), Fraction(self.alpha)
        if not 0 < alpha <= 1:
            raise BadInput(f"the exponent of a Hoelder class lies in (0, 1], not at {self.alpha}")
        if alpha.denominator > LARGEST_POWER:
            raise BadInput(f"write the exponent as a fraction of small numbers, such as 1/3, not {self.alpha}")
        return _largest_below((constant / (2 * tolerance)) ** alpha.denominator, alpha.numerator)

    def patterns(self, epsilon: Exact) -> int:
        """K: how many signs are free."""
        if min(self.dimension, self.tokens) < 1:
            raise BadInput("a function has at least one token of at least one number")
        places = self.cells(epsilon) ** self.dimension
        # math.comb(0 + n - 1, n) is 0: without a cell there is nothing to choose.
        return math.comb(places + self.tokens - 1, self.tokens) if self.symmetric else places**self.tokens


@dataclass(frozen=True)
class Slopes:
    """|df/dx_i| <= L_i on [0,1]^D; on another box L_i is the slope times the length of the axis."""

    by_axis: tuple[Exact, ...]

    def patterns(self, epsilon: Exact) -> int:
        return math.prod(Hoelder(slope, 1).cells(epsilon) for slope in self.by_axis)


@dataclass(frozen=True)
class Curvature:
    """|d2f/dx_i dx_j| <= M for all i, j, on [0,1]^D."""

    bound: Exact
    dimension: int

    def patterns(self, epsilon: Exact) -> int:
        return _largest_below(_positive(self.bound) / (16 * _positive(epsilon)), 2) ** self.dimension


Class = Hoelder | Slopes | Curvature


def contradiction(
    functions: Class, epsilon: Exact, weights: int, bits_per_weight: int | None = None, continuous: bool = True
) -> str:
    """Why no `weights` weights come within epsilon of every function of the class; empty when nothing is known against it.

    `continuous`: the weights depend continuously on the function. `bits_per_weight` None: real numbers.

    >>> unit = Hoelder(1, dimension=2)
    >>> contradiction(unit, "1/100", weights=2400)
    'weights that depend continuously on the function are at least 2401 for an error of 1/100, not 2400'
    >>> contradiction(unit, "1/100", weights=2400, continuous=False), contradiction(unit, "1/100", weights=2401)
    ('', '')
    >>> contradiction(unit, "1/100", weights=75, bits_per_weight=32, continuous=False)
    'an error of 1/100 needs at least 2401 bits, not 75 weights of 32'
    """
    least = functions.patterns(epsilon)
    if bits_per_weight is not None and weights * bits_per_weight < least:
        return f"an error of {epsilon} needs at least {least} bits, not {weights} weights of {bits_per_weight}"
    if continuous and weights < least:
        return (
            f"weights that depend continuously on the function are at least {least} for an error of {epsilon},"
            f" not {weights}"
        )
    return ""


def hard_cells(lipschitz: Exact, dimension: int, epsilon: Exact) -> int:
    """Values at the centres of ceil(L / (2 epsilon)) cells an axis: one cell an axis above the bound, for alpha = 1."""
    return math.ceil(_positive(lipschitz) / (2 * _positive(epsilon))) ** dimension


def softmax_cells(lipschitz: Exact, dimension: int, epsilon: Exact, second_moment: Exact) -> int:
    """Prototypes of one head for |f(x) - f(y)| <= L |x - y|_2: N^D with N = ceil(sqrt(D v) L / epsilon).

    `second_moment` is v, an upper bound of the squared distance in cells: the error is at most L sqrt(D v) / N (Jensen).
    """
    square = dimension * Fraction(second_moment) * (_positive(lipschitz) / _positive(epsilon)) ** 2
    root = math.isqrt(math.ceil(square))
    return (root if root * root >= square else root + 1) ** dimension


SHARPNESS_4 = Fraction(2507, 10_000)
"""v for the sharpness 4: at the border of two cells (1/4 + 2 e^-8 + ...), 0.25067, rounded up."""


def size_table(
    dimensions: Sequence[int] = (1, 2, 3, 4), epsilons: Sequence[Exact] = ("1/10", "3/100", "1/100")
) -> Table:
    """L = 1, alpha = 1: the bound, what values at centres reach, and what one softmax head needs for the larger class."""
    rows = [
        [d, str(e), Hoelder(1, d).patterns(e), hard_cells(1, d, e), softmax_cells(1, d, e, SHARPNESS_4)]
        for d in dimensions
        for e in epsilons
    ]
    headings = ["variables", "epsilon", "at least", "values at centres, max norm", "softmax cells, Euclidean norm"]
    return Table("Numbers for every function of slope 1, chosen continuously (or bits, in any way)", headings, rows)


def _positive(value: Exact) -> Fraction:
    exact = Fraction(value)
    if exact <= 0:
        raise BadInput(f"the lower bound needs positive constants and a positive epsilon, not {value}")
    return exact


def _largest_below(limit: Fraction, power: int) -> int:
    """The largest N >= 0 with N^power < limit, for limit > 0.

    >>> _largest_below(Fraction(25), 2), _largest_below(Fraction(251, 10), 2), _largest_below(Fraction(1, 2), 3)
    (4, 5, 0)
    """
    most = math.ceil(limit) - 1  # the largest whole number below the limit
    low, high = 0, 1 << -(-most.bit_length() // power)
    while low < high:  # low^power <= most always, (high + 1)^power > most from the start
        middle = (low + high + 1) // 2
        low, high = (middle, high) if middle**power <= most else (low, middle - 1)
    return low
