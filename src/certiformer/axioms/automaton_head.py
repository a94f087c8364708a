"""What the one head of a compiled automaton brings: checked against the weights, and bounded.

The statements are in the rules `looped_automaton`, `chain_of_thought_automaton` and `log_depth_automaton`.

*Scores.* Keys are vectors k_j of B signs, all different, and the query of a row is lambda k_m for the row m it looks
at. As all |k_j|^2 = B, the score of m exceeds that of j by lambda |k_m - k_j|^2 / 2 >= 2 lambda. lambda is a power of
two, so every partial sum of a score, and the difference of two scores, is a multiple of lambda of at most 2 B lambda,
which must be below the largest number: exact in a run. With n rows, the share of m is at least 1 / (1 + e), e = (n - 1)
exp(-2 lambda), and any other one at most exp(-2 lambda); rows hidden by the mask get an exact 0.

*Slots.* A slot gets sum_j p_j v_j, where p_j are the shares and v_j whole numbers from 0 to V: for v = v_m it lies in
[v / (1 + e), v + e V]. In a run the exponentials, their sum, the quotient and the products err as `kernel.rounding`
says; the sum has one big term and n - 1 small ones, for which the lemma on small terms holds. Nothing here is negative,
in a run neither. The slot itself may hold up to t from the pass before (where tiny numbers are flushed); adding it
rounds once. With all errors zero these are the bounds of real arithmetic, so one interval holds both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import frexp
from typing import Any

from flint import arb

from certiformer.kernel.balls import ONE, ZERO, larger
from certiformer.kernel.refusal import Refused
from certiformer.kernel.rounding import Format, NoBound, no_overflow, summation
from certiformer.kernel.weights import Tensor

HEAD = "blocks.0.attention.groups.0"
_ATTENTION = {
    "kind": "softmax", "bias": False, "scale": "unit", "mask": "causal", "score_bias": "none", "residual": True,
}  # fmt: skip
Row = dict[int, float]


@dataclass(frozen=True, eq=False)
class Slot:
    """The interval of a slot, in real arithmetic and in a run; both ends are exact. Equal only to itself."""

    low: arb
    high: arb


@dataclass(frozen=True)
class Shares:
    """Bounds of the share of the row that is looked at, and of any other one, of which there are `others`."""

    others: int
    low: arb
    high: arb
    leak: arb

    def slot(self, form: Format, value: int, most: int) -> Slot:
        """What a slot holds when the row looked at has `value` there, and other rows at most `most`."""
        tail = self.others * (self.leak * most * (1 + form.unit) + form.tiny) if most else ZERO
        big = self.high * value * (1 + form.unit) + form.tiny if value else ZERO
        try:
            error = summation(form, [big] if value else [], big, self.others, tail)
        except NoBound as reason:
            raise Refused(f"what a head brings has no bound: {reason}") from None
        low = (self.low * value * (1 - form.unit) - error) * (1 - form.unit) - 3 * form.tiny
        high = (big + tail + error + 3 * form.tiny) * (1 + form.unit)
        if not high.is_finite():
            raise Refused("what a head brings has no bound")
        return Slot(larger(low.lower(), ZERO), high.upper())


def share_bounds(form: Format, rows: int, bits: int, sharpness: float) -> Shares:
    """The shares of a head over `rows` rows, where the one it looks at leads by twice `sharpness`.

    >>> from certiformer.kernel.rounding import FORMATS
    >>> shares = share_bounds(FORMATS["float64"], 1001, 10, 32.0)
    >>> bool(1 - shares.low < 1e-14), bool(shares.leak < 1e-27)
    (True, True)
    """
    if not 2 * bits < 2 ** (form.precision - 1):
        raise Refused(f"the scores of codes with {bits} signs are not exact in {form.name}")
    others = rows - 1
    small = (-2 * arb(sharpness)).exp().upper() if others else ZERO
    around, quotient = form.exp * form.unit, form.divide * form.unit
    top, tail = 1 + around, others * (small * (1 + around) + form.tiny)
    try:
        no_overflow(form, 2 * bits * arb(sharpness))
        error = summation(form, [top], top, others, tail)
    except NoBound as reason:
        raise Refused(f"the shares of a head over {rows:,} rows have no bound: {reason}") from None
    least, most = 1 - around - error, top + tail + error
    if not least > 0:
        raise Refused(f"the shares of a head over {rows:,} rows have no bound: their sum may vanish")
    low = (1 - around) / most * (1 - quotient) - form.tiny
    high = top / least * (1 + quotient) + form.tiny
    leak = (small * (1 + around) + form.tiny) / least * (1 + quotient) + form.tiny if others else ZERO
    if not (low > 0 and high.is_finite() and leak.is_finite()):
        raise Refused(f"the shares of a head over {rows:,} rows have no bound")
    return Shares(others, low.lower(), larger(high, ONE).upper(), leak.upper())


def require_form(config: dict[str, Any], blocks: int, vocabulary: int, outputs: int, width: int) -> None:
    """A causal softmax head of unit scale, ReLU units, no norms, no registers; the sizes that the automaton calls for."""
    if len(config["blocks"]) != blocks or config["registers"]:
        raise Refused(f"this form of an automaton has {blocks} block{'s' * (blocks > 1)} and no registers")
    for number, block in enumerate(config["blocks"]):
        attention, ffn = block["attention"], block["ffn"]
        if block["norm"] is not None or (attention is None) != (number > 0) or ffn is None:
            raise Refused("a block of the automaton has a norm, or does not have the sub-layers of its form")
        if (ffn["kind"], ffn["residual"]) != ("relu", True):
            raise Refused("the blocks of an automaton need ReLU units with a residual")
    attention = config["blocks"][0]["attention"]
    if any(attention[name] != value for name, value in _ATTENTION.items()):
        raise Refused("an automaton needs plain causal softmax attention of unit scale")
    if len(attention["heads"]) != 1 or attention["heads"][0]["count"] != 1:
        raise Refused("an automaton has one head")
    if (config["input"]["kind"], config["input"].get("vocabulary")) != ("ids", vocabulary):
        raise Refused(f"the tokens are not the {vocabulary} tokens of this automaton")
    kinds = (config["readout"]["kind"], config["outputs"], config["code"]["kind"])
    if kinds != ("all", outputs, "table"):
        raise Refused("the transformer does not read out every row, or has no table of position codes")
    if config["width"] != width:
        raise Refused(f"the stream of this automaton has the width {width}, not {config['width']}")


def sparse_row(tensor: Tensor, *lead: int) -> Row:
    """The nonzero entries of the last axis."""
    size, start = tensor.shape[-1], 0
    for length, index in zip(tensor.shape, lead, strict=False):
        start = start * length + index
    return {i: x for i, x in enumerate(tensor.data[start * size : (start + 1) * size]) if x}


def require_rows(tensor: Tensor, wanted: list[Row], what: str) -> None:
    """The rows of a matrix are exactly these."""
    if tensor.shape[0] != len(wanted):
        raise Refused(f"{what} has {tensor.shape[0]} rows instead of {len(wanted)}")
    for number, row in enumerate(wanted):
        if sparse_row(tensor, number) != row:
            raise Refused(f"row {number} of {what} is not what the automaton calls for")


def columns(tensor: Tensor) -> list[Row]:
    """The columns of a projection of the one head."""
    found: list[Row] = [{} for _ in range(tensor.shape[2])]
    for coordinate in range(tensor.shape[1]):
        for entry, weight in sparse_row(tensor, 0, coordinate).items():
            found[entry][coordinate] = weight
    return found


def require_carried(tensors: Mapping[str, Tensor], wanted: dict[int, int]) -> None:
    """The head copies each coordinate of `wanted` into its slot, and nothing else."""
    sources, targets = columns(tensors[f"{HEAD}.value"]), tensors[f"{HEAD}.output"]
    carried: dict[int, int] = {}
    for entry, source in enumerate(sources):
        target = sparse_row(targets, 0, entry)
        if list(source.values()) != [1.0] or list(target.values()) != [1.0]:
            raise Refused("a value of the head is not a copy of one coordinate into one slot")
        carried[next(iter(source))] = next(iter(target))
    if carried != wanted or len(sources) != len(wanted):
        raise Refused("the head does not bring what the automaton calls for")


def sharpness_of(queries: list[Row], wanted: list[Row]) -> float:
    """lambda, where the queries are lambda times the columns of `wanted`."""
    factors = {row.get(c, 0.0) / w for row, want in zip(queries, wanted, strict=True) for c, w in want.items()}
    if any(set(row) != set(want) for row, want in zip(queries, wanted, strict=True)) or len(factors) != 1:
        raise Refused("the query is not a multiple of a position code")
    (sharpness,) = factors
    if not sharpness > 0 or frexp(sharpness)[0] != 0.5:
        raise Refused("the query is not a position code times a power of two")
    return sharpness


def own_codes(codes: Tensor, place: slice) -> dict[tuple[float, ...], int]:
    """The sign code of every row; refused unless all are different."""
    rows, width = codes.shape
    found = {tuple(codes.data[r * width + place.start : r * width + place.stop]): r for r in range(rows)}
    if len(found) != rows or not all(abs(sign) == 1.0 for code in found for sign in code):
        raise Refused("the codes of the rows are not different vectors of signs")
    return found
