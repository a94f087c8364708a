"""The formats of a run, and the sums that are made of rounded operations.

*Counting.* A sum of products in any order, with or without fused multiply-add, multiplies each term by at most m
factors 1 + d, where m is the number of additions plus one for the products. So (Higham 2002, section 3.1) it is

    sum_i x_i y_i (1 + e_i),   |e_i| <= gamma_m = m u / (1 - m u).

Adding an exact zero and multiplying by a power of two are exact: m counts nonzero weights only, and the products only
when some weight is not a power of two.

*Small terms* (Lemma). Rounding to nearest errs by at most min(|a|, |b|) in a + b, since a and b themselves are
candidates. Call K of n terms big, let b be the sum of their sizes, s that of the others, G = (1 + u)^n. In any order
the error is at most gamma_K b + s (1 + 2 G^2).
Proof. An addition of two parts without big terms keeps the computed size below (1 + u) times the sum of both, so
below G s_T for small terms T. Adding such a part to one that holds big terms errs by at most its size. Hence a part
with big terms is sum x_i (1 + e_i) + r with |r| <= 2 G s_T, and only an addition of two parts that both hold big
terms, of which there are at most K - 1, multiplies it by 1 + d. So |e_i| <= gamma_(K-1) and |r| <= 2 G (1 + u)^(K-1)
s; the small terms themselves are the remaining s. The one factor left in gamma_K is for products, or for rounding the
result of a wider sum. QED.

*Mean values* (used for weights that are only known up to h_j). If 0 <= p_j <= h_j and sum p_j <= 1 then for every
level c >= 0 sum p_j g_j <= c + sum h_j (g_j - c)^+. Any c is sound; a good one is where the h_j of the larger g_j add
up to one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from flint import arb

from certiformer.errors import BadInput
from certiformer.kernel import Refused
from certiformer.kernel.balls import ZERO, larger


class NoBound(Refused):
    """There is no bound here, and why: an overflow, too many roundings, a range that could not be enclosed."""


@dataclass(frozen=True)
class Format:
    """A binary format. `divide`, `root`, `exp` are relative errors and `erf` an absolute one, in units of u."""

    name: str
    precision: int
    wider: int
    lowest: int
    highest: int
    divide: int = 4
    root: int = 4
    exp: int = 8
    erf: int = 16

    @cached_property
    def unit(self) -> arb:
        """2^-p, and what rounding first to `wider` bits may add."""
        return arb((1, -self.precision)) + arb((1, 1 - self.wider))

    @cached_property
    def tiny(self) -> arb:
        return arb((1, self.lowest))

    @cached_property
    def largest(self) -> arb:
        return arb((1, self.highest)) - arb((1, self.highest - self.precision))

    def gamma(self, roundings: int) -> arb:
        """gamma_m of the module docstring."""
        product = self.unit * roundings
        if not product <= 0.5:
            raise NoBound(f"{roundings} roundings in a row of {self.name} leave no correct digit")
        return product / (1 - product)

    def growth(self, additions: int) -> arb:
        """(1 + u)^n."""
        return (self.unit.log1p() * additions).exp()


# bfloat16 runs compute functions in float32 and round once, so its errors are counted in whole units of bfloat16.
FORMATS = {
    "float64": Format("float64", 53, 64, -1022, 1024),
    "float32": Format("float32", 24, 53, -126, 128),
    "bfloat16": Format("bfloat16", 8, 24, -126, 128, divide=2, root=2, exp=2, erf=2),
}


def format_of(dtype: str) -> Format:
    if dtype not in FORMATS:
        raise BadInput(f"--dtype is one of {', '.join(FORMATS)}, not {dtype!r}")
    return FORMATS[dtype]


def no_overflow(form: Format, size: arb) -> None:
    """Raises `NoBound` unless numbers of this size are finite in the format."""
    if not size < form.largest:
        raise NoBound(f"a number of the run may exceed the largest finite {form.name}")


def summation(form: Format, terms: list[arb], total: arb, more: int = 0, tail: arb = ZERO) -> arb:
    """The lemma on small terms: the error of adding terms with these upper bounds of their sizes and of the sum of sizes.

    `more` further terms, always small, have sizes that add up to at most `tail`.
    """
    count = len(terms)
    order = sorted((t.upper() for t in terms), key=float, reverse=True)
    tails = [tail] * (count + 1)
    for k in range(count - 1, -1, -1):
        tails[k] = tails[k + 1] + order[k]
    growth = form.growth(count + more + 1)  # one more for the rounding of a product
    best, big = None, 1
    while True:
        big = min(big, count)
        if form.unit * big <= 0.5:
            bound = (form.gamma(big) * total + tails[big] * (1 + 2 * growth * growth)).upper()
            best = bound if best is None or bound < best else best
        if big == count:
            break
        big *= 2
    if best is None or not best.is_finite():
        raise NoBound(f"a sum of {count} terms of {form.name} may lose every digit")
    return (best + 2 * (count + more) * form.tiny * growth).upper()


def mean_value(limits: list[arb], values: list[arb]) -> arb:
    """The rule on mean values: an upper bound of sum p_j values_j over all p with p_j <= limits_j, sum p_j <= 1."""
    sizes = sorted(zip(map(float, values), map(float, limits), strict=True), reverse=True)
    mass, level = 0.0, 0.0
    for size, limit in sizes:
        mass, level = mass + limit, size
        if mass >= 1:
            break
    else:
        level = 0.0
    cut = larger(arb(level), ZERO) if level == level and level != float("inf") else ZERO
    above = sum((h * (g - cut) for h, g in zip(limits, values, strict=True) if not g <= cut), ZERO)
    return (cut + above).upper()
