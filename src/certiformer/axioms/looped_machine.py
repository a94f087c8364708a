"""One block, applied over and over, is a Turing machine on a bounded tape: exactly, for every tape and any number of steps.

Statement
    Let a machine with G symbols and S states be given by its table. The tokens are the n cells of a tape. A cell's
    stream holds the unit vector of its symbol, the unit vector of (state, symbol) where the head stands, and a flag
    `off`; the code of a configuration is the stream that its tokens are embedded to. Suppose the stored block passes
    the checks below. Then for every tape, every place and state of the head and every number k of passes, k passes of
    the block turn the code of a configuration into the code of the configuration that the machine reaches in k steps
    (a machine that has stopped stays), exactly, in real arithmetic and in every run in the stored type. If a step
    would leave the tape, the configuration before it is kept, and from the next pass on `off` is 1 on the end cell.
    Passes change nothing but the cell of the head and its two neighbours.

Source
    Own derivation. That one looped block can run a machine is in Giannou et al. 2023 (giannou2023); robust gates that
    round softmax weights to bits are folklore (perez2021 use the same piecewise linear function).

Differs from the source in
    Positions are sign vectors, so scores are small integers and the wanted cell leads by the same amount on every
    tape, where position numbers need scores that grow as n^2, and points on a circle a lead that shrinks as 1 / n^2.
    Leaving the tape is noticed; without the flag the head would vanish. The claim is checked from the stored weights.

Proof
    *Scores.* Keys and queries read only coordinates that no sub-layer writes to, and every key is a vector k_j of B
    signs, all different; the query of head h at cell i is lambda k_m, where m = t_h(i) is i - 1 for the left head,
    i + 1 for the right one, and i itself where the tape ends. As all |k_j|^2 = B, the score of m exceeds that of j
    by lambda |k_m - k_j|^2 / 2 >= 2 lambda. So the share of m is at least 1 / (1 + e), e = (n - 1) exp(-2 lambda),
    and that of any other cell at most exp(-2 lambda).

    *Arrivals.* Values are zero except where the head stands, and there the value of the left head is the unit
    vector of the next state if the machine moves right (of the right head if it moves left). There is one head on
    the tape. So at cell i the arrival slot of a state r lies in [1 / (1 + e), 1] if the head stands on t_h(i), with
    the right h, and goes to r, and otherwise in [0, exp(-2 lambda)].

    *Runs.* Scores are sums of at most B terms +-lambda with lambda a power of two: exact. Exponentials, their sum and
    the quotient err as `kernel.rounding` says; only one value is not zero, so the weighted sum and the output matrix
    do not round. This gives the interval of a slot in a run; below, both intervals are inside [3/4, 9/8] and [0, 1/8].

    *Hidden units.* Everything else that a cell holds is exact, so a cell can be in finitely many situations: its
    content, its ends of the tape, and which slot (if any) is full. All are enumerated. A unit whose argument has no
    slot is a sum of multiples of 1/4 that stays below 2^(p-2): exact in any order. One whose argument is negative
    for every value of the slots, roundings included, is 0. Any other argument must be a slot a alone, which is a
    itself, or a full slot plus one number b in {-1/4, -3/4}: a is a multiple of 2^-p as a >= 1/2, a + b is one too,
    and below 1, where all multiples of 2^-p are numbers of the type: the sum is exact. An output coordinate then
    gets a sum of such exact multiples of 1/4 alone, or c (a + b) - c (a + b') = c (b - b') alone with c a power of
    two, again exact; a slot gets -a and becomes 0 (in a run at most the smallest normal number t, where tiny
    numbers are flushed; t is included in the interval of a). The new content is compared with the table. So one
    pass turns codes into codes; induction. QED.

Assumptions
    form (**checked**): one block, two softmax heads of unit scale, ReLU units with residual; a table of position codes.
    weights (**checked**): the numbers satisfy what the proof uses, enumerated over all situations of a cell.
    run (**trusted**): arithmetic is as described in `kernel.rounding`, and the stream between attention and hidden units
    is one array of numbers of the stored type.

Certified
    The statement, for all configurations with one head on the tape at once, and any number of passes.

Not certified
    Streams that are not the code of a configuration; that the machine does what its author wanted.

Example
    >>> from certiformer.axioms.looped_machine import arrival_bounds
    >>> share, leak = arrival_bounds(400, 9, 32.0, "float64")
    >>> bool(1 - share[0] < 1e-14), bool(leak < 1e-27)
    (True, True)

Tests
    tests/theorems/test_looped_machine.py
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import frexp
from typing import Any

from flint import arb

from certiformer.axioms.machine_cells import Cells, CellWeights, Ends
from certiformer.kernel.balls import ONE, ZERO, decimal, larger, smaller, working_precision
from certiformer.kernel.computation import Files, Finding
from certiformer.kernel.files import CONFIG, MACHINE, MODEL
from certiformer.kernel.refusal import Refused
from certiformer.kernel.rounding import FORMATS, Format, NoBound, no_overflow, summation
from certiformer.kernel.weights import Tensor, read_model
from certiformer.target.machine import Machine

THEOREM = {
    "id": "axioms.looped_machine",
    "title": "One looped block is a Turing machine on a bounded tape, exactly, for any number of steps.",
    "kind": "exact",
    "sources": (
        "classical",
        "giannou2023",
        "perez2021",
    ),
    "verb": "compile",
    "assumptions": (
        ("form", "one block, two softmax heads, ReLU units, a table of position codes", "checked"),
        ("weights", "scores, values and hidden units act as the table says in every situation", "checked"),
        ("run", "a run rounds as kernel.rounding describes, between sub-layers to the stored type", "trusted"),
    ),
    "uses": (),
}

NOT_CLAIMED = (
    "Longer tapes: a step off the tape is not made; it raises a flag, and `run` says which cell was needed.",
    "Whether the machine halts: the proof is about every single step.",
)
_HEAD, _FFN = "blocks.0.attention.groups.0", "blocks.0.ffn"
_ATTENTION = {
    "kind": "softmax", "bias": False, "scale": "unit", "mask": "none", "score_bias": "none", "residual": True,
}  # fmt: skip
# Full and empty arrival slots, in any run; the thresholds of the hidden units are 1/4 and 3/4.
FULL, EMPTY = (arb("0.75"), arb("1.125")), arb("0.125")


@dataclass(frozen=True)
class LoopedReport:
    """What was proved: the tape, the type of a run, the largest share of a wrong cell, how far every arrival stays from
    the thresholds 1/4 and 3/4, and how many situations of a cell were enumerated."""

    cells: int
    dtype: str
    leak: arb
    margin: arb
    situations: int


def sentence(files: Files) -> str:
    """The claim in one plain sentence."""
    machine, (config, _) = Machine.from_text(files[MACHINE]), read_model(files[CONFIG], files[MODEL])
    cells, dtype = config["input"]["tokens"], config["dtype"]
    first = -(cells // 2)
    return (
        f"On the {cells:,} cells {first} to {first + cells - 1}, from every configuration with one head, any number of"
        f" passes of the block gives exactly the configuration that the machine of {len(machine.states)} states and"
        f" {len(machine.symbols)} symbols reaches in as many steps, in real arithmetic and in a run in {dtype}, as long"
        " as its head stays on the tape; a step off the tape is not made and raises a flag."
    )


def find(files: Files) -> Finding:
    """Why the claim holds, with the smallest margin and what it was found over; raises `Refused` or `BadInput`."""
    report = prove_looped(Machine.from_text(files[MACHINE]), *read_model(files[CONFIG], files[MODEL]))
    margin, leak = decimal(report.margin, up=False), decimal(report.leak, up=True)
    power = frexp(float(report.leak))[1]  # the leak is below 2^power
    reason = (
        f"all {report.situations:,} situations of a cell were run through the stored weights; what arrives from a neighbour"
        f" stays {margin} away from the thresholds 1/4 and 3/4, and a wrong cell gets less than 2^{power}"
    )
    return Finding(reason, {"cells": report.cells, "margin": margin, "leak": leak})


def prove_looped(machine: Machine, config: dict[str, Any], tensors: Mapping[str, Tensor]) -> LoopedReport:
    """Check that the stored block is one step of the machine; raises `Refused` with the reason when it is not."""
    working_precision()
    rest = len(machine.symbols) * (1 + len(machine.states)) + 1 + len(machine.states)
    _require_form(machine, config, rest)
    _require_ends(machine, config, tensors, rest)
    lead = _require_lookups(config, tensors, rest)
    _require_values(machine, tensors, rest)
    bits, cells = config["blocks"][0]["attention"]["heads"][0]["key"], config["input"]["tokens"]
    (low, high), leak = arrival_bounds(cells, bits, lead, config["dtype"])
    if not (low >= FULL[0] and high <= FULL[1] and leak <= EMPTY):
        raise Refused(
            f"a head may miss its cell: it can get a share of about {float(low):.4g}, a wrong cell about {float(leak):.4g}"
        )
    form = FORMATS[config["dtype"]]
    weights = CellWeights.read(tensors, _FFN, rest, config["width"])
    try:
        situations = Cells(machine, weights, form, high, leak).compared(
            _ends(tensors["code.table"], weights.read_codes)
        )
    except NoBound as reason:
        raise Refused(f"the hidden units have no bound: {reason}") from None
    margin = smaller(low - FULL[0], arb("0.25") - leak)
    return LoopedReport(cells, config["dtype"], leak.upper(), margin.lower(), situations)


def arrival_bounds(cells: int, bits: int, lead: float, dtype: str) -> tuple[tuple[arb, arb], arb]:
    """Bounds of a full and of an empty slot, in real arithmetic and in a run, when the wanted cell leads by 2 `lead`."""
    form, others = FORMATS[dtype], cells - 1
    if not bits < 2 ** (form.precision - 1):
        raise Refused(f"the scores of codes with {bits} signs are not exact in {dtype}")
    small = (-2 * arb(lead)).exp().upper() if others else ZERO
    try:
        no_overflow(form, 2 * bits * arb(lead))
        return _run_bounds(form, others, small)
    except NoBound as reason:
        raise Refused(f"the shares of a head over {cells:,} cells have no bound: {reason}") from None


def _run_bounds(form: Format, others: int, small: arb) -> tuple[tuple[arb, arb], arb]:
    # With no error at all these are the bounds of real arithmetic, so the intervals below hold those too.
    around, quotient = form.exp * form.unit, form.divide * form.unit
    top, tail = 1 + around, others * (small * (1 + around) + form.tiny)
    error = summation(form, [top], top, others, tail)
    least, most = 1 - around - error, top + tail + error
    low = (1 - around) / most * (1 - quotient) - form.tiny
    high = top / least * (1 + quotient) + form.tiny
    leak = (small * (1 + around) + form.tiny) / least * (1 + quotient) + form.tiny if others else ZERO
    # The slot itself may hold up to t from the pass before; adding it rounds once.
    low = (low * (1 - form.unit) - form.tiny).lower()
    high, leak = (((bound + form.tiny) * (1 + form.unit)).upper() for bound in (high, leak))
    if not least > 0 or not all(bound.is_finite() for bound in (low, high, leak)):
        raise NoBound("the sum of the exponentials may vanish")
    return (low, larger(high, ONE)), leak


def _require_form(machine: Machine, config: dict[str, Any], rest: int) -> None:
    blocks = config["blocks"]
    if len(blocks) != 1 or config["loops"] != 1 or config["registers"]:
        raise Refused("a looped machine is stored as one block, one pass, without registers")
    attention, ffn = blocks[0]["attention"], blocks[0]["ffn"]
    if not attention or not ffn or blocks[0]["norm"] is not None:
        raise Refused("the block of a looped machine has attention and hidden units, and no norm")
    if any(attention[name] != value for name, value in _ATTENTION.items()):
        raise Refused("the block of a looped machine needs plain softmax attention of unit scale")
    if len(attention["heads"]) != 1 or attention["heads"][0]["count"] != 2:
        raise Refused("the block of a looped machine has two heads, one for each neighbour")
    if (ffn["kind"], ffn["residual"]) != ("relu", True):
        raise Refused("the block of a looped machine needs ReLU units with a residual")
    pairs = len(machine.symbols) * (1 + len(machine.states))
    if (config["input"]["kind"], config["input"].get("vocabulary")) != ("ids", pairs):
        raise Refused(f"the tokens are not the {pairs} contents that a cell of this machine can have")
    if (config["readout"]["kind"], config["outputs"], config["code"]["kind"]) != ("all", pairs + 1, "table"):
        raise Refused("a looped machine reads out content and flag of every cell and has a table of position codes")
    if config["width"] <= rest:
        raise Refused("the stream of a looped machine has no room for positions")


def _require_ends(machine: Machine, config: dict[str, Any], tensors: Mapping[str, Tensor], rest: int) -> None:
    """Embedding and read-out are the code of a configuration; position codes leave content and slots alone."""
    width, count = config["width"], len(machine.symbols)
    for token in range(config["input"]["vocabulary"]):
        ones = {token % count} | ({token} if token >= count else set())
        if _row(tensors["embed.weight"], token) != {one: 1.0 for one in ones}:
            raise Refused(f"the embedding of token {token} is not the code of its content")
    codes = tensors["code.table"]
    for cell in range(config["input"]["tokens"]):
        if any(codes.data[cell * width : cell * width + rest]):
            raise Refused(f"the position code of cell {cell} changes the content")
    for coordinate in range(width):
        wanted = {coordinate: 1.0} if coordinate < config["outputs"] else {}
        if _row(tensors["readout.weight"], coordinate) != wanted:
            raise Refused("the read-out is not the content of the cells")
    if any(tensors["readout.bias"].data):
        raise Refused("the read-out is not the content of the cells")


def _require_lookups(config: dict[str, Any], tensors: Mapping[str, Tensor], rest: int) -> float:
    """Head 0 looks left, head 1 right; returns lambda."""
    cells, width, codes = config["input"]["tokens"], config["width"], tensors["code.table"]
    leads = set()
    for head in (0, 1):
        key_from, ones = _selection(tensors[f"{_HEAD}.key"], head, rest)
        query_from, factors = _selection(tensors[f"{_HEAD}.query"], head, rest)
        if ones != {1.0} or len(factors) != 1 or frexp(min(factors))[0] != 0.5:
            raise Refused("keys and queries are not position codes times a power of two")
        leads |= factors
        rows = [codes.data[cell * width : (cell + 1) * width] for cell in range(cells)]
        keys = {tuple(row[c] for c in key_from): cell for cell, row in enumerate(rows)}
        if len(keys) != cells or not all(abs(sign) == 1.0 for key in keys for sign in key):
            raise Refused("the codes of the cells are not different vectors of signs")
        for cell, row in enumerate(rows):
            wanted = max(cell - 1, 0) if head == 0 else min(cell + 1, cells - 1)
            if keys.get(tuple(row[c] for c in query_from)) != wanted:
                raise Refused(f"head {head} of cell {cell} does not look at cell {wanted}")
    if len(leads) > 1:
        raise Refused("the two heads do not have queries of one size")
    return min(leads)


def _selection(tensor: Tensor, head: int, rest: int) -> tuple[list[int], set[float]]:
    """The coordinate that each entry of a key or query copies, and the factors."""
    _, width, size = tensor.shape
    columns: list[list[tuple[int, float]]] = [[] for _ in range(size)]
    for coordinate in range(width):
        for entry, weight in _row(tensor, head, coordinate).items():
            columns[entry].append((coordinate, weight))
    if any(len(column) != 1 or column[0][0] < rest for column in columns):
        raise Refused("a key or query is not a copy of position coordinates")
    return [column[0][0] for column in columns], {column[0][1] for column in columns}


def _require_values(machine: Machine, tensors: Mapping[str, Tensor], rest: int) -> None:
    """Head 0 brings the next state of a machine that moves right, head 1 of one that moves left, and nothing else."""
    value, output = tensors[f"{_HEAD}.value"], tensors[f"{_HEAD}.output"]
    first_slot, count = rest - len(machine.states), len(machine.symbols)
    for head, direction in enumerate("RL"):
        for entry in range(output.shape[1]):
            place = _row(output, head, entry)
            if len(place) > 1 or not all(first_slot <= c < rest and w == 1.0 for c, w in place.items()):
                raise Refused("an output of a head does not go into one arrival slot")
        for coordinate in range(value.shape[1]):
            carried = _row(value, head, coordinate)
            if len(carried) > 1 or not all(weight == 1.0 for weight in carried.values()):
                raise Refused("a value of a head is not a unit vector or zero")
            brought = {slot: 1.0 for entry in carried for slot in _row(output, head, entry)}
            wanted = {}
            if count <= coordinate < first_slot - 1:
                state, symbol = divmod(coordinate - count, count)
                transition = machine.transition(machine.states[state], machine.symbols[symbol])
                if transition is not None and transition[1] == direction:
                    wanted = {first_slot + machine.states.index(transition[2]): 1.0}
            if brought != wanted:
                raise Refused(f"coordinate {coordinate} makes head {head} bring a state that the table does not")


def _ends(codes: Tensor, read: tuple[int, ...]) -> dict[Ends, None]:
    """The ends of the tape that a cell can be, with the position coordinates that hidden units read there."""
    cells, width = codes.shape
    return dict.fromkeys(
        Ends(cell == 0, cell == cells - 1, tuple(codes.data[cell * width + c] for c in read)) for cell in range(cells)
    )


def _row(tensor: Tensor, *lead: int) -> dict[int, float]:
    """The nonzero entries of the last axis."""
    size = tensor.shape[-1]
    start = 0
    for length, index in zip(tensor.shape, lead, strict=False):
        start = start * length + index
    return {i: x for i, x in enumerate(tensor.data[start * size : (start + 1) * size]) if x}
