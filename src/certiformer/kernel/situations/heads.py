"""Attention sub-layers: which rows a head selects, by how much, and what it brings from them.

*Scores.* The scores of all queries and keys are compared; the selected row leads all others that the mask shows by `gap`.
Where there are too many pairs of rows: if all keys are different vectors of B signs and a query is lambda times the key of
row m, then k_m leads k_j by lambda |k_m - k_j|^2 / 2 >= 2 lambda. Scores must be exact in the run (`numbers`).

*Shares.* With n rows the share of the selected one is at least 1 / (1 + e), e = (n - 1) exp(-gap), and any other one at
most exp(-gap); hidden rows get an exact 0. In a run the exponentials, their sum, the quotient and the products err as
`kernel.rounding` says; the sum has one big term and n - 1 small ones, for which the lemma on small terms holds.

*What is brought.* The value of the selected row times its share, and the values of all others, which are anything that any
row can hold, times theirs. The selected row is one row, by its number: two rows that hold equal values are two rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from flint import arb, fmpz_mat

from certiformer.kernel import Refused
from certiformer.kernel.balls import ONE, larger, smaller
from certiformer.kernel.balls import ZERO as NONE
from certiformer.kernel.rounding import Format, no_overflow, summation
from certiformer.kernel.situations.cells import Form, Link, Meaning
from certiformer.kernel.situations.numbers import UNIT, Number, Run, as_ball, lower, times, upper

ROW = "row"  # the base and the cell that tell rows apart
MOST_PAIRS = 200_000  # of rows, before the lemma on signs is needed


@dataclass(frozen=True)
class Shares:
    """Bounds of the share of the row that is selected, and of any other one, of which there are `others`."""

    others: int
    low: arb
    high: arb
    leak: arb


def shares_of(form: Format, others: int, gap: arb) -> Shares:
    """The shares where the selected row leads each of `others` by `gap`, in real arithmetic and in a run."""
    small = (-gap).exp().upper() if others else NONE
    around, quotient = form.exp * form.unit, form.divide * form.unit
    top, tail = 1 + around, others * (small * (1 + around) + form.tiny)
    error = summation(form, [top], top, others, tail)
    least, most = 1 - around - error, top + tail + error
    if not least > 0:
        raise Refused(f"the shares of a head over {others + 1:,} rows have no bound: their sum may vanish")
    low = (1 - around) / most * (1 - quotient) - form.tiny
    high = top / least * (1 + quotient) + form.tiny
    leak = (small * (1 + around) + form.tiny) / least * (1 + quotient) + form.tiny if others else NONE
    if not (low > 0 and high.is_finite() and leak.is_finite()):
        raise Refused(f"the shares of a head over {others + 1:,} rows have no bound")
    return Shares(others, low.lower(), larger(high, ONE).upper(), leak.upper())


def brought(run: Run, shares: Shares, chosen: Number, every: Sequence[Number]) -> Number:
    """The weighted sum of a column: the selected row holds `chosen`, all others one of `every`."""
    form, bottom = run.form, as_ball(min(x.low for x in every))
    ceiling = as_ball(max(x.high for x in every))
    ends = [share * as_ball(end) for share in (shares.low, shares.high) for end in (chosen.low, chosen.high)]
    most = larger(abs(bottom), abs(ceiling)).upper()
    big = (shares.high * larger(abs(as_ball(chosen.low)), abs(as_ball(chosen.high)))).upper()
    tail = (shares.others * (shares.leak * most * (1 + form.unit) + form.tiny)).upper() if most > 0 else NONE
    big_term = (big * (1 + form.unit) + form.tiny).upper() if big > 0 else NONE
    no_overflow(form, 2 * (big_term + tail))
    error = summation(form, [big_term] if big > 0 else [], big_term, shares.others, tail)
    error = error + big_term * form.unit + form.tiny
    below = NONE if not bottom < 0 else tail
    above = NONE if not ceiling > 0 else tail
    low, high = ends[0], ends[0]
    for end in ends[1:]:
        low, high = smaller(low, end), larger(high, end)
    least, greatest = lower(low - below - error), upper(high + above + error)
    if chosen.low >= 0 and not bottom < 0:
        least = max(least, 0)
    if chosen.high <= 0 and not ceiling > 0:
        greatest = min(greatest, 0)
    return Number(chosen.code, least, greatest)


@dataclass(frozen=True)
class Projections:
    """The forms of one head before its sub-layer: queries, keys and values."""

    queries: list[Form]
    keys: list[Form]
    values: list[Form]
    causal: bool


def fetched(run: Run, meaning: Meaning, link: Link, forms: Projections, rows: Sequence[int]) -> tuple[arb, Shares]:
    """The gap by which the row that each of `rows` looks at leads, and the shares that follow."""
    every = meaning.bases[ROW]
    queries = _vectors(run, forms.queries, meaning, rows, "query")
    keys = _vectors(run, forms.keys, meaning, every, "key")
    targets = [link.target(i) for i in rows]
    for i, m in zip(rows, targets, strict=True):
        if m not in keys or (forms.causal and m > i):
            raise Refused(f"row {i} is to look at row {m}, which it does not see")
    most = max((sum(abs(a) for a in q) for q in queries.values()), default=0)
    reach = max((max(map(abs, k), default=0) for k in keys.values()), default=0)
    _require_exact(run, queries, keys, times(most, reach))
    if len(queries) * len(keys) <= MOST_PAIRS:
        gap = _compared(queries, keys, rows, targets, forms.causal)
    else:
        gap = _of_signs(queries, keys, rows, targets)
    if not gap > 0:
        raise Refused("the scores do not tell the row that a head looks at from all others")
    return gap.lower(), shares_of(run.form, len(every) - 1, gap.lower())


def _vectors(
    run: Run, forms: list[Form], meaning: Meaning, rows: Sequence[int], side: str
) -> dict[int, tuple[int, ...]]:
    """Queries or keys of these rows; all of them known exactly."""
    if any(name != ROW for form in forms for name in form.cells):
        raise Refused(f"the {side} of a head that looks at one row reads more than the number of a row")
    places = {row: place for place, row in enumerate(meaning.cell(ROW).domain)}
    found: dict[int, tuple[int, ...]] = {}
    for row in rows:
        sums = [form.at({ROW: places[row]}) for form in forms]
        if any(run.slip(x) or x.low != x.high for x in sums):
            raise Refused(f"the {side} of row {row} is not known exactly")
        found[row] = tuple(x.low for x in sums)
    return found


def _require_exact(run: Run, queries: Mapping, keys: Mapping, size: int) -> None:
    """Scores are exact in a run, and so are their differences."""
    grids = [min((x & -x for v in side.values() for x in v if x), default=UNIT) for side in (queries, keys)]
    grid = grids[0] * grids[1] >> 192
    if not as_ball(2 * size) < run.largest:
        raise Refused(f"a score of the run may exceed the largest finite {run.name}")
    if not grid or 2 * size > grid << run.precision or grid < run.tiny:
        raise Refused(f"the scores of a head are not exact in {run.name}")


def _compared(queries: Mapping, keys: Mapping, rows: Sequence[int], targets: Sequence[int], causal: bool) -> arb:
    every = list(keys)
    place = {row: number for number, row in enumerate(every)}
    size = len(keys[every[0]])
    left = fmpz_mat(len(rows), size, [x for row in rows for x in queries[row]])
    right = fmpz_mat(len(every), size, [x for row in every for x in keys[row]])
    entries = (left * right.transpose()).entries()
    gap = None
    for number, (row, target) in enumerate(zip(rows, targets, strict=True)):
        line = entries[number * len(every) : (number + 1) * len(every)]
        own, wanted = place[target], line[place[target]]
        seen = range(sum(1 for j in every if j <= row)) if causal else range(len(every))
        other = max((line[j] for j in seen if j != own), default=None)
        if other is not None and (gap is None or wanted - other < gap):
            gap = wanted - other
    return arb(1000) if gap is None else as_ball(int(gap)) * arb((1, -192))


def _of_signs(queries: Mapping, keys: Mapping, rows: Sequence[int], targets: Sequence[int]) -> arb:
    if len(set(keys.values())) != len(keys) or any(abs(x) != UNIT for key in keys.values() for x in key):
        raise Refused("the keys of many rows are not different vectors of signs")
    factors = set()
    for row, target in zip(rows, targets, strict=True):
        ratios = {q * (1 if k > 0 else -1) for q, k in zip(queries[row], keys[target], strict=True)}
        if len(ratios) != 1:
            raise Refused(f"the query of row {row} is no multiple of the key of row {target}")
        factors |= ratios
    return 2 * as_ball(min(factors))


def column(run: Run, meaning: Meaning, link: Link, form: Form, shares: Shares) -> tuple[str | None, list[Number]]:
    """The cell that a column of values becomes at the query row, and its number for every value."""
    if len(form.cells) > 1 or any(name not in link.brings for name in form.cells):
        raise Refused(f"a head reads {', '.join(form.cells)}, which the plan does not say")
    if form.cells:
        (name,) = form.cells
        if meaning.cell(name).domain != meaning.cell(link.brings[name]).domain:
            raise Refused(f"what a row gets as {link.brings[name]!r} has other values than {name!r}")
        held = [run.total(form.constant.plus(part)) for part in form.parts[name]]
        return link.brings[name], [brought(run, shares, x, held) for x in held]
    held = [run.total(form.constant)]
    return None, [brought(run, shares, held[0], held)]
