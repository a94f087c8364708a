"""What one rounded operation may do, and the sums that are made of them.

*The run.* A format has precision p, unit roundoff u = 2^-p, smallest normal number t and largest finite number. In a
run every addition, multiplication and fused multiply-add returns its exact result times (1 + d), |d| <= u, plus at
most t when it underflows. Rounding is to nearest. Results *and operands* below t may be flushed to zero. An operation
may be done in a wider format and rounded later: u is taken a little above 2^-p, so that rounding twice is covered.
Division, square root, exponential and error function have the errors of `Format`, which are larger than those of the
runtimes named in the docs.

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

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import frexp

from flint import arb, arb_mat

from certiformer.errors import BadInput
from certiformer.kernel import stream
from certiformer.kernel.balls import ONE, ZERO, larger
from certiformer.kernel.stream import Stream


class NoBound(Exception):
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


@dataclass(frozen=True)
class Rounded:
    """An array of a run: forms of its real values, and bounds of |run - real|, entry by entry."""

    value: Stream
    error: arb_mat

    @cached_property
    def size(self) -> arb_mat:
        """Bounds of the real values."""
        return stream.size(self.value) + self.value.rem

    @cached_property
    def reach(self) -> arb_mat:
        """Bounds of the values of the run."""
        return self.size + self.error

    @property
    def shape(self) -> tuple[int, int]:
        return self.value.shape

    def rows(self, chosen: list[int]) -> Rounded:
        return Rounded(self.value.rows(chosen), stream.take_rows(self.error, chosen))


def exact_values(value: Stream) -> Rounded:
    """Values that a run knows exactly."""
    return Rounded(value, arb_mat(*value.shape))


def stacked(*parts: Rounded) -> Rounded:
    """Arrays of one width on top of each other."""
    used = sorted({i for part in parts for i in part.value.coef})
    width, rows = parts[0].shape[1], sum(part.shape[0] for part in parts)

    def joined(pick: Callable[[Rounded], arb_mat | None]) -> arb_mat:
        entries: list[arb] = []
        for part in parts:
            matrix = pick(part)
            entries += [ZERO] * (part.shape[0] * width) if matrix is None else matrix.entries()
        return arb_mat(rows, width, entries)

    coef = {i: joined(lambda part, i=i: part.value.coef.get(i)) for i in used}
    value = Stream(parts[0].value.table, coef, joined(lambda part: part.value.rem))
    return Rounded(value, joined(lambda part: part.error))


def side_by_side(parts: list[Rounded]) -> Rounded:
    """Arrays with the same rows next to each other."""
    if len(parts) == 1:
        return parts[0]
    turned = [Rounded(stream.transpose(part.value), part.error.transpose()) for part in parts]
    whole = stacked(*turned)
    return Rounded(stream.transpose(whole.value), whole.error.transpose())


class Weights:
    """A stored matrix with what the counting rule needs: nonzero weights and inexact products, column by column."""

    def __init__(self, matrix: arb_mat, form: Format):
        self.matrix, self.size = matrix, stream.absolute(matrix)
        entries = [[w for w in column if not w.is_zero()] for column in matrix.transpose().tolist()]
        self.terms = [len(column) for column in entries]
        self.inexact = [any(not _power_of_two(w) for w in column) for column in entries]
        self.sums = [sum((abs(w) for w in column), ZERO) for column in entries]
        flushed = [ONE if w > 0 and w < form.tiny else ZERO for w in self.size.entries()]
        # A weight below the smallest normal number may be read as zero; its factor is then lost.
        self.flushed = arb_mat(matrix.nrows(), matrix.ncols(), flushed) if any(map(bool, flushed)) else None


def _power_of_two(weight: arb) -> bool:
    return frexp(abs(float(weight)))[0] == 0.5


def linear(form: Format, x: Rounded, weights: Weights, constants: list[list[list[arb]]] | None = None) -> Rounded:
    """x W + b_1 + b_2 + ..., each b a list of rows.

    With m by the counting rule, the run is sum (x_i + e_i) w_i (1 + d_i) + sum b (1 + d), so it errs by at most sum
    e_i |w_i| + gamma_m (sum (|x_i| + e_i) |w_i| + sum |b|). Underflow: each of the products and additions loses at
    most t, each operand x_i that is flushed at most t |w_i|, each flushed weight at most t |x_i|, each flushed b at
    most t.
    """
    constants = constants or []
    rows, columns = x.shape[0], len(weights.terms)
    value = stream.linear(x.value, weights.matrix, weights.size)
    for rows_of in constants:
        shift = arb_mat(rows, columns, [entry for row in rows_of for entry in row])
        value = stream.plus(value, stream.constants(x.value.table, shift))
    through = x.reach * weights.size
    carried = x.error * weights.size
    lost = x.reach * weights.flushed if weights.flushed is not None else None
    error = []
    for r in range(rows):
        for c in range(columns):
            terms = weights.terms[c] if not through[r, c].is_zero() else 0
            added = [abs(rows_of[r][c]) for rows_of in constants if not rows_of[r][c].is_zero()]
            roundings = max(terms + len(added) - 1, 0) + (1 if terms and weights.inexact[c] else 0)
            size, gamma = through[r, c] + sum(added, ZERO), form.gamma(roundings)
            no_overflow(form, size * (1 + gamma))
            total = carried[r, c] + gamma * size
            if terms or len(added) > 1 or any(not b >= form.tiny for b in added):
                count = 2 * terms + 2 * len(added)
                total = total + form.tiny * (count + weights.sums[c] + (ZERO if lost is None else lost[r, c])) * 2
            error.append(total.upper())
    return Rounded(value, arb_mat(rows, columns, error))


def no_overflow(form: Format, size: arb) -> None:
    """Raises `NoBound` unless numbers of this size are finite in the format."""
    if not size < form.largest:
        raise NoBound(f"a number of the run may exceed the largest finite {form.name}")


def plus(form: Format, a: Rounded, b: Rounded) -> Rounded:
    """The residual: one rounding where both summands may be nonzero, and flushed operands and results."""
    value = stream.plus(a.value, b.value)
    error = []
    for x, y, e, f in zip(a.reach.entries(), b.reach.entries(), a.error.entries(), b.error.entries(), strict=True):
        total = e + f
        if not (x.is_zero() or y.is_zero()):
            no_overflow(form, (x + y) * 2)
            total = total + form.unit * (x + y) + 3 * form.tiny
        error.append(total.upper())
    return Rounded(value, arb_mat(*a.shape, error))


def relu(x: Rounded) -> Rounded:
    """max(x, 0) has slope at most 1 and does not round; a unit that is off in both worlds has no error."""
    value = stream.relu(x.value)
    centre = x.value.coef[0].entries() if 0 in x.value.coef else [ZERO] * len(x.error.entries())
    error = []
    for c, size, e in zip(centre, x.size.entries(), x.error.entries(), strict=True):
        highest = c + (size - abs(c)) + e
        error.append(ZERO if highest < 0 else e)
    return Rounded(value, arb_mat(*x.shape, error))


def gelu(form: Format, x: Rounded, value: Stream) -> Rounded:
    """x Phi(x), Phi(x) = (1 + erf(x / sqrt 2)) / 2 = erfc(-x / sqrt 2) / 2; its slope is at most 1.13.

    The argument y of erf has two roundings; as |y| exp(-y^2) <= 0.43 the value moves by at most 2/sqrt(pi) 0.43 2.1 u
    < 1.1 u. erf itself errs by E u, adding one by 2 u, so Phi by at most (E + 3.1) u / 2 (1 + u). Two products: with
    Phi <= 1 the result errs by at most |x| u ((E + 3.1) / 2 + 2) (1 + 4 u) <= |x| u (E / 2 + 4).
    """
    share = form.unit * (arb(form.erf) / 2 + 4)
    error = []
    for size, e in zip(x.reach.entries(), x.error.entries(), strict=True):
        no_overflow(form, size * 4)
        error.append((e * arb("1.13") + size * share + 4 * form.tiny * (1 + size)).upper())
    return Rounded(value, arb_mat(*x.shape, error))


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
