"""Claims about runs: bounds of |T_run - T_real| over a box or over all sequences of letters, and their confirmation.

T_real is the function of the stored weights over the real numbers, of which a certificate speaks. T_run is any execution of
the same formulas (`docs/model.md`) in a format. The bound is for every point of the box whose coordinates are numbers of
the format; `round_input` adds what rounding the coordinates of any other point costs.

*Cells.* Ranges are tighter on smaller boxes. The cell with the largest bound is bisected again and again, always in the
same way, so a recorded bound is found again. What holds on a cell holds on its halves.

*Letters.* A token enters with the hull of all rows of the embedding, so that the bound is valid for every one of the V^n
sequences. A row of the embedding is read as it is stored; adding the position code rounds once. Positions that cannot be
told apart (no code, no mask, no bias of the scores) have the same bound: it is computed at one of them.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from flint import arb, arb_mat

from certiformer.kernel import Refused, arrays, taylor
from certiformer.kernel.arrays import Stream, point_stream
from certiformer.kernel.balls import INFINITY, ZERO, BallDomain, Box, ball, largest, working_precision
from certiformer.kernel.claim import Claim
from certiformer.kernel.files import CONFIG, MODEL
from certiformer.kernel.meanings.sequence_maps import SequenceMap
from certiformer.kernel.problem import Network, Problem
from certiformer.kernel.programs import exact
from certiformer.kernel.rounding import operations
from certiformer.kernel.rounding.formats import Format, NoBound, format_of
from certiformer.kernel.rounding.operations import Rounded, exact_values
from certiformer.kernel.rounding.walk import Kept, Walk
from certiformer.kernel.rules import Cell, halves, root
from certiformer.kernel.weights import read_model

MOST_CELLS = 4_096
DEEPEST = 16  # bisections of one axis: ranges on smaller cells are not narrower by much
PATIENCE = 64  # cells before giving up on smaller ones
WORK = 8_000_000  # cells times keys times heads: what a check may spend on a recorded bound
# Each score of letters takes about a tenth of a millisecond, each number of the stream some microseconds.
MOST_SCORES, MOST_NUMBERS = 30_000, 100_000


@dataclass(frozen=True)
class RunBound:
    """An upper bound of |T_run - T_real|, or None with the reason; `cells` is how many the box was cut into."""

    bound: arb | None
    reason: str
    cells: int


def confirm_run_error(claim: Claim, files: Mapping[str, bytes], stated: str) -> None:
    """Raises `Refused` unless runs in the stored dtype are proved to stay within `stated` of the real numbers."""
    limit, said = exact(stated), f"the certificate bounds the error of a run by {stated}, but "
    if limit < 0:
        raise Refused("the certificate bounds the error of a run by a negative number")
    network = Network(*read_model(files[CONFIG], files[MODEL]))
    dtype = network.config["dtype"]
    if isinstance(claim.problem, Problem):
        found = run_error(network, claim.problem.domain, dtype, goal=ball(limit).lower())
    elif isinstance(claim.problem.target, SequenceMap):
        found = letters_error(network, dtype)
    else:
        raise Refused("the certificate bounds the error of a run, which is not done for the rows of a table")
    if found.bound is None:
        raise Refused(said + found.reason)
    if not found.bound <= ball(limit):
        raise Refused(f"{said}only about {float(found.bound):.6g} is proved")


@dataclass(frozen=True)
class _Part:
    """A cell of the box with its bound, or the reason why there is none, and the lists that hold on it."""

    cell: Cell
    bound: arb = INFINITY
    reason: str = ""
    lists: Mapping[int, Kept] = field(default_factory=dict)


def run_error(
    network: Network,
    domain: BallDomain,
    dtype: str,
    *,
    round_input: bool = False,
    goal: arb | None = None,
    cells: int | None = None,
    seconds: float = float("inf"),
) -> RunBound:
    """A bound over the box for runs in `dtype`; stops at `goal`, or when cells or seconds are spent."""
    working_precision()
    if network.config["input"]["kind"] != "continuous":
        return RunBound(None, "the run of a transformer that reads token ids is not bounded", 0)
    form = format_of(dtype)
    walk = Walk(network.program, form, taylor.table(network.dimension, 1), code_error(network, form))
    most, end = cells or cell_limit(network), time.monotonic() + seconds
    heap: list[tuple[float, int, _Part]] = []
    made = 0

    def push(cell: Cell, parent: _Part) -> None:
        nonlocal made
        part = _part(walk, cell, _point(walk, domain.box(cell), round_input), parent)
        made += 1
        heapq.heappush(heap, (-float(part.bound), made, part))

    push(root(domain.dimension), _Part(()))
    before = INFINITY
    while len(heap) < most and time.monotonic() < end:
        part = heap[0][2]
        worst, cell = part.bound, part.cell
        if worst.is_zero() or (goal is not None and worst <= goal):
            break
        if len(heap) >= PATIENCE and len(heap) & (len(heap) - 1) == 0:
            if not worst < 0.98 * before:
                break  # twice as many cells have not helped
            before = worst
        axis = min(range(domain.dimension), key=lambda i: cell[i][0])
        if cell[axis][0] >= DEEPEST:
            break
        heapq.heappop(heap)
        for half in halves(cell, axis):
            push(half, part)
    bound = largest([part.bound for _, _, part in heap])
    reason = next((part.reason for _, _, part in heap if part.reason), "")
    return RunBound(bound if bound.is_finite() else None, reason, len(heap))


def _part(walk: Walk, cell: Cell, point: Rounded, parent: _Part) -> _Part:
    """The bound on one cell; what holds on its parent holds on it as well."""
    try:
        bound = largest([entry.upper() for entry in walk.result(point, parent.lists).error.entries()])
    except NoBound as problem:
        return _Part(cell, parent.bound, str(problem) if parent.reason or not parent.cell else "", parent.lists)
    if not bound < parent.bound:
        lost = "" if parent.bound.is_finite() else "a range of the transformer could not be enclosed"
        return _Part(cell, parent.bound, parent.reason or lost, walk.shorter)
    return _Part(cell, bound, "", walk.shorter)


def _point(walk: Walk, box: Box, round_input: bool) -> Rounded:
    """The points of a box: numbers of the format, or rounded to them."""
    x, form = exact_values(point_stream(walk.table, box, walk.source)), walk.form
    if not round_input:
        return x
    return Rounded(x.value, arb_mat(*x.shape, [(form.unit * size + form.tiny).upper() for size in x.size.entries()]))


def cell_limit(network: Network) -> int:
    """How many cells a check may use: fewer for longer sequences."""
    heads = sum(g["count"] for b in network.config["blocks"] if b["attention"] for g in b["attention"]["heads"])
    keys = network.registers + network.tokens
    return max(16, min(MOST_CELLS, WORK // (max(heads, 1) * keys * network.config["loops"])))


def code_error(network: Network, form: Format) -> arb_mat:
    """Sines and cosines are computed in float64 and rounded to the format; other codes are exact.

    An angle is at most 2 pi t and off by at most 8 roundings of float64, the function by 4 more.
    """
    if network.config["code"]["kind"] not in ("circle", "sinusoidal"):
        return arb_mat(network.tokens, network.config["width"])
    double, u = arb((1, -53)), form.unit
    entries = [
        [(2 * u * abs(c) + double * (8 * 7 * t + 4) + 2 * form.tiny).upper() if not c.is_zero() else ZERO for c in row]
        for t, row in enumerate(network.codes().tolist())
    ]
    return arb_mat(entries)


def letters_error(network: Network, dtype: str) -> RunBound:
    """A bound over all sequences of full length, for runs in `dtype`."""
    working_precision()
    config, form = network.config, format_of(dtype)
    if network.tokens * config["width"] > MOST_NUMBERS:
        return RunBound(None, f"the stream has more than {MOST_NUMBERS:,} numbers", 0)
    if config["readout"]["kind"] == "all" and _positions_are_alike(config):
        network = Network({**config, "readout": {"kind": "token", "token": 0}}, network.tensors)
    table, codes = taylor.table(1, 0), code_error(network, form)
    weight = network.tensors["embed.weight"].matrix()
    hull = [reduce(arb.union, column) for column in weight.transpose().tolist()]
    middle, around = (arb_mat([[part(h) for h in hull]] * network.tokens) for part in (arb.mid, arb.rad))
    letters = exact_values(Stream(table, {0: middle}, around))
    placed = Rounded(arrays.constants(table, network.codes()), codes)
    point = Rounded(arrays.plus(letters.value, placed.value), operations.added(form, letters, placed))
    walk = Walk(network.program, form, table, arb_mat(network.tokens, config["width"]), MOST_SCORES)
    part = _part(walk, (), point, _Part(()))
    return RunBound(part.bound if part.bound.is_finite() else None, part.reason, 1)


def _positions_are_alike(config: dict[str, Any]) -> bool:
    layers = [block["attention"] for block in config["blocks"] if block["attention"]]
    plain = all(a["mask"] == "none" and a["score_bias"] == "none" for a in layers)
    return plain and config["code"]["kind"] == "none"
