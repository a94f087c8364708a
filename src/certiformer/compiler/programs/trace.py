"""The debugger: what every residual variable of a compiled transformer holds, beside what the program says it should.

The transformer runs in its stored dtype. After every sub-layer each living cell of `circuit.json` is compared, at every
position, with the feature of the value that its node has by the rules of the graph. A cell is *wrong* where it is nearer to
another feature of its node than to the right one (for numbers too many to list: where it is off by more than half of the
least distance between two). The first wrong one in the order of computation is where the fault is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from certiformer.compiler.programs.decode import features
from certiformer.compiler.realistic.basis import Basis
from certiformer.errors import BadInput
from certiformer.kernel.situations.rasp.circuit import ATTENTION, EMBEDDING, FFN, Cell, Circuit, rational
from certiformer.model import Config
from certiformer.model.transformer import Transformer
from certiformer.rasp.graph import Graph, ValueSet
from certiformer.rasp.graph_run import GraphRunner
from certiformer.rasp.value import Value, exact, identity

Sublayer = tuple[int, str]


@dataclass(frozen=True)
class Reading:
    """One cell after one sub-layer: what it should hold and what it holds, at every position."""

    cell: Cell
    number: int  # of the cell in `circuit.json`
    after: Sublayer
    kind: str  # of the node: map, width, aggregate, ...
    values: tuple[Value, ...]
    wanted: tuple[float, ...]
    held: tuple[float, ...]
    wrong: tuple[int, ...]  # positions
    place: str  # the line of the source, if it is known

    @property
    def deviation(self) -> float:
        """The largest difference between what is held and what is wanted; infinite when it is not a number."""
        differences = [abs(a - b) for a, b in zip(self.held, self.wanted, strict=True)]
        return max(differences) if np.isfinite(self.held).all() else float("inf")


@dataclass(frozen=True)
class Trace:
    """All readings, in the order of computation; `first_wrong` is where the transformer leaves the program."""

    readings: tuple[Reading, ...]

    @property
    def first_wrong(self) -> Reading | None:
        return next((reading for reading in self.readings if reading.wrong), None)

    def only(self, name: str) -> Trace:
        """The readings of variables with this name."""
        found = tuple(reading for reading in self.readings if reading.cell.name == name)
        if not found:
            names = ", ".join(dict.fromkeys(reading.cell.name for reading in self.readings))
            raise BadInput(f"the transformer has no variable {name!r}; it has {names}")
        return Trace(found)


def trace(
    model: Transformer,
    extended: Graph,
    circuit: Circuit,
    xs: Sequence[Value],
    *,
    everywhere: bool = False,
    basis: Basis | None = None,
) -> Trace:
    """Compare every cell with the program on one input: where it is written, or (`everywhere`) as long as it lives.

    With a `basis` the coordinates of the circuit are read off the stream by it.
    """
    runner = GraphRunner(extended)
    meaning = runner.run_all(xs)
    places = {identity(token): place for place, token in enumerate(extended.vocab)}
    states = model.states(np.array([places[identity(x)] for x in xs]))
    states = states if basis is None else basis.coordinates(states)
    order = sublayers(model.config)
    readings = []
    for after, state in zip(order, states, strict=True):
        for number, cell in enumerate(circuit.cells):
            written = order.index(cell.written)
            cleared = len(order) if cell.cleared is None else order.index(cell.cleared)
            now = order.index(after)
            if now == written or (everywhere and written <= now < cleared):
                node = extended.nodes[cell.node]
                values = tuple(meaning[cell.node])
                held = tuple(float(x) for x in state[model.config.registers :, cell.coordinate])
                wanted = tuple(_wanted(cell, node.values, value) for value in values)
                wrong = _wrong(cell, node.values, values, wanted, held)
                place = circuit.lines.get(str(cell.node), "")
                readings.append(Reading(cell, number, after, node.kind, values, wanted, held, wrong, place))
    return Trace(tuple(readings))


def sublayers(config: Config) -> list[Sublayer]:
    """The names of the states of a transformer: the embedding, then every sub-layer that exists."""
    names: list[Sublayer] = [(0, EMBEDDING)]
    for index, block in enumerate(config.blocks):
        names += [(index, ATTENTION)] if block.attention is not None else []
        names += [(index, FFN)] if block.ffn is not None else []
    return names


def _wanted(cell: Cell, values: ValueSet | None, value: Value) -> float:
    if value is None:
        return float(rational(cell.undefined if cell.undefined is not None else 0))
    if cell.feature is None:
        return float(exact(value))
    places = {identity(v): place for place, v in enumerate((values.values if values else None) or ())}
    return float(rational(cell.feature[places[identity(value)]]))


def _wrong(
    cell: Cell, known: ValueSet | None, values: Sequence[Value], wanted: Sequence[float], held: Sequence[float]
) -> tuple[int, ...]:
    """The positions where the cell is nearer to another feature, or is not a number at all."""
    if known is not None and known.values is not None:
        numbers = np.array(sorted({float(x) for x in features(cell, known)}))
        room = [_half_gap(numbers, x) for x in wanted]
    else:
        gap = None if known is None or known.span is None else known.span.gap
        room = [float(gap or 1) / 2] * len(wanted)
    wrong = []
    for position, (value, want, has, gap) in enumerate(zip(values, wanted, held, room, strict=True)):
        more = cell.or_more and value is None and has >= want
        if not (more or abs(has - want) < gap):
            wrong.append(position)
    return tuple(wrong)


def _half_gap(known: np.ndarray, number: float) -> float:
    others = np.abs(known[known != number] - number)
    return float(others.min()) / 2 if len(others) else 0.5
