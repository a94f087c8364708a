"""The residual stream in forms: one Taylor form for every coordinate of every token.

A `Stream` keeps the forms of a (tokens x width) array as ball matrices, one for each monomial, and one matrix of
remainders, so that linear maps are ball-matrix products. A remainder entry is a nonnegative ball whose upper end counts.
`contract` multiplies two arrays of forms along a shared axis, adding up each monomial *before* anything is dropped: this
is what keeps scores tight (the bilinear form of query and key is expanded exactly).
"""

from __future__ import annotations

from flint import arb, arb_mat

from certiformer.kernel import taylor
from certiformer.kernel.balls import HALF, INFINITY, ZERO
from certiformer.kernel.taylor import Form, Table


class Stream:
    """Forms of a (rows x columns) array: `coef[i]` holds the coefficients of monomial i (absent = zero)."""

    __slots__ = ("coef", "rem", "table")

    def __init__(self, table: Table, coef: dict[int, arb_mat], rem: arb_mat):
        self.table, self.coef, self.rem = table, coef, rem

    @property
    def shape(self) -> tuple[int, int]:
        return self.rem.nrows(), self.rem.ncols()

    def form(self, row: int, column: int) -> Form:
        """The form of one entry."""
        coef = {i: m[row, column] for i, m in self.coef.items() if not m[row, column].is_zero()}
        form = Form(self.table, coef, self.rem[row, column].upper(), -INFINITY, INFINITY)
        form.low, form.high = taylor.bounds(form)
        return form

    def rows(self, chosen: list[int]) -> Stream:
        """The stream of the chosen rows."""
        return Stream(self.table, {i: take_rows(m, chosen) for i, m in self.coef.items()}, take_rows(self.rem, chosen))


def take_rows(matrix: arb_mat, chosen: list[int]) -> arb_mat:
    columns = range(matrix.ncols())
    return arb_mat(len(chosen), matrix.ncols(), [matrix[r, c] for r in chosen for c in columns])


def from_forms(table: Table, forms: list[list[Form]]) -> Stream:
    """A stream from a table of forms."""
    rows, columns = len(forms), len(forms[0])
    used = sorted({i for row in forms for form in row for i in form.coef} | {0})
    coef = {i: arb_mat(rows, columns, [f.coef.get(i, ZERO) for row in forms for f in row]) for i in used}
    return Stream(table, coef, arb_mat(rows, columns, [f.rem for row in forms for f in row]))


def constants(table: Table, matrix: arb_mat) -> Stream:
    """The stream of constant entries."""
    return Stream(table, {0: matrix}, arb_mat(matrix.nrows(), matrix.ncols()))


def plus(a: Stream, b: Stream) -> Stream:
    coef = dict(a.coef)
    for i, m in b.coef.items():
        coef[i] = coef[i] + m if i in coef else m
    return Stream(a.table, coef, a.rem + b.rem)


def absolute(matrix: arb_mat) -> arb_mat:
    """Entrywise upper bounds of the absolute values."""
    return arb_mat(matrix.nrows(), matrix.ncols(), [entry.abs_upper() for entry in matrix.entries()])


def linear(a: Stream, weight: arb_mat, weight_size: arb_mat, bias: list[arb] | None = None) -> Stream:
    """a W + b; `weight_size` holds |W|."""
    coef = {i: m * weight for i, m in a.coef.items()}
    if bias is not None:
        shift = arb_mat(a.shape[0], len(bias), bias * a.shape[0])
        coef[0] = coef[0] + shift if 0 in coef else shift
    return Stream(a.table, coef, a.rem * weight_size)


def contract(a: Stream, b: Stream) -> Stream:
    """The product of two arrays of forms, sum over the shared axis; monomials are added up before truncation."""
    tab = a.table
    full: dict[int, arb_mat] = {}
    for i, x in a.coef.items():
        row = tab.product[i]
        for j, y in b.coef.items():
            place = row[j]
            term = x * y
            full[place] = full[place] + term if place in full else term
    rem = arb_mat(a.shape[0], b.shape[1])
    if not (is_zero(a.rem) and is_zero(b.rem)):
        a_size, b_size = size(a), size(b)
        rem = a_size * b.rem + a.rem * b_size + a.rem * b.rem
    coef = {i: m for i, m in full.items() if i < tab.size}
    for i, m in full.items():
        if i >= tab.size:
            if tab.even[i]:
                m = m * HALF
                coef[0] = coef[0] + m if 0 in coef else m
            rem = rem + absolute(m)
    return Stream(tab, coef, rem)


def size(a: Stream) -> arb_mat:
    """Entrywise upper bounds of sum over monomials of |coefficient|."""
    total = arb_mat(*a.shape)
    for m in a.coef.values():
        total = total + absolute(m)
    return total


def is_zero(matrix: arb_mat) -> bool:
    return all(entry.is_zero() for entry in matrix.entries())


def transpose(a: Stream) -> Stream:
    return Stream(a.table, {i: m.transpose() for i, m in a.coef.items()}, a.rem.transpose())


def relu(a: Stream) -> Stream:
    """Entrywise max(x, 0) by the chord rule of `taylor.relu`, on the raw coefficients for speed."""
    rows, columns = a.shape
    count = rows * columns
    zero = [ZERO] * count
    centre = a.coef[0].entries() if 0 in a.coef else zero
    odd, up, down = list(a.rem.entries()), zero, zero
    for i, m in a.coef.items():
        if i == 0:
            continue
        if a.table.even[i]:
            up = [u + c.nonnegative_part() for u, c in zip(up, m.entries(), strict=True)]
            down = [d + (-c).nonnegative_part() for d, c in zip(down, m.entries(), strict=True)]
        else:
            odd = [r + c.abs_upper() for r, c in zip(odd, m.entries(), strict=True)]
    lows = [(c - o - d).lower() for c, o, d in zip(centre, odd, down, strict=True)]
    highs = [(c + o + u).upper() for c, o, u in zip(centre, odd, up, strict=True)]
    slopes, halves = zip(*map(taylor.chord, lows, highs), strict=True)
    coef = {}
    for i, m in a.coef.items():
        coef[i] = arb_mat(rows, columns, [c * s for c, s in zip(m.entries(), slopes, strict=True)])
    half = arb_mat(rows, columns, list(halves))
    coef[0] = coef[0] + half if 0 in coef else half
    rem = [r * s for r, s in zip(a.rem.entries(), slopes, strict=True)]
    return Stream(a.table, coef, arb_mat(rows, columns, rem) + half)
