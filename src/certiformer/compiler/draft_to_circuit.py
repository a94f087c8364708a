"""The witness: `circuit.json` for placed heads and tables.

With it go the steps by which a certificate concludes facts about the program: whatever the listed lemmas give, node by
node. The checker's own lemmas are tried on the nodes that they may speak of. What is written down is what they concluded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import compress, islice
from typing import Any

from certiformer.compiler.draft import Draft, DraftCell
from certiformer.compiler.draft_to_layers import Placement, sublayer_name
from certiformer.compiler.graph_to_extended import Extended
from certiformer.compiler.layers_to_weights import groups_of, signs
from certiformer.compiler.linear_form import Form, Number
from certiformer.kernel import Refused
from certiformer.kernel.meanings.rasp import SELECTORS, Program, read_program
from certiformer.kernel.situations.rasp.circuit import (
    Cell,
    Circuit,
    HeadRole,
    Identity,
    Output,
    Rational,
    UnitRole,
    as_rational,
)
from certiformer.kernel.situations.rasp.lemmas import Facts
from certiformer.rasp.graph_file import graph_to_text
from certiformer.rasp.value import exact, is_number

Step = tuple[str | int, ...]


def lemmas_of(program: Program) -> tuple[Step, ...]:
    """The steps for all nodes of a program, in an order in which each follows from those before."""
    facts, steps = Facts(program), []
    for number in range(len(program.nodes)):
        for step in _candidates(facts, number):
            try:
                facts.conclude(step)
            except Refused:
                continue
            steps.append(step)
    return tuple(steps)


def _candidates(facts: Facts, number: int) -> Iterator[Step]:
    node = facts.nodes[number]
    if node.kind == "aggregate":
        selector, value = node.inputs
        for key in (value, *dict.fromkeys(key for key, _ in facts.equations(selector))):
            if not facts.holds("same", selector, value):
                yield ("same", selector, value, key)
    if node.kind not in SELECTORS:
        yield from (("constant", number), ("rank" if node.kind == "width" else "distinct", number))
        return
    yield from (("order", number), ("reflexive", number), ("one", number))
    parts = dict.fromkeys(facts.conjuncts(number))
    steps = [("part", number, c) for c in parts if c != number]
    steps += [("occurrence", number, key) for key in dict.fromkeys(key for key, _ in facts.equations(number))]
    steps += [("few", number, c) for c in parts]
    for step in steps:
        if not facts.holds("single", number):
            yield step


def draft_to_circuit(extended: Extended, draft: Draft, placement: Placement, kind: str) -> Circuit:
    """What every coordinate, head and unit computes."""
    text = graph_to_text(extended.builder.finish(extended.output))
    return Circuit(
        extended=text,
        lemmas=lemmas_of(read_program(text)),
        causal=extended.causal,
        cells=tuple(_cell(extended, draft, placement, number) for number in range(len(draft.cells))),
        heads=tuple(_heads(placement)),
        units=tuple(_units(draft, placement)),
        identities=tuple(
            Identity(node, tuple((as_rational(exact(f)), other) for f, other in s.terms), as_rational(exact(s.offset)))
            for node, s in sorted(extended.sums.items())
        ),
        output=Output(
            kind, draft.output.cells, _feature(draft.output_feature.numbers), _maybe(draft.output_feature.undefined)
        ),
    )


def _feature(numbers: tuple[Number, ...] | None) -> tuple[Rational, ...] | None:
    if numbers is None:
        return None
    return tuple([x if type(x) is int else as_rational(x) for x in numbers])


def _maybe(number: Number | None) -> Rational | None:
    return None if number is None else as_rational(number)


def _cell(extended: Extended, draft: Draft, placement: Placement, number: int) -> Cell:
    cell = draft.cells[number]
    cleared = placement.cleared.get(number)
    return Cell(
        name=_name(extended, cell),
        node=cell.node,
        coordinate=placement.coordinates[number],
        written=sublayer_name(placement.written[number]),
        cleared=None if cleared is None else sublayer_name(cleared),
        feature=_feature(cell.feature.numbers),
        undefined=_maybe(cell.feature.undefined),
        at_start=as_rational(cell.at_start),
        or_more=cell.feature.or_more,
    )


def _name(extended: Extended, cell: DraftCell) -> str:
    """A short description: the node, and what is done to its value."""
    node = extended.nodes[cell.node]
    values, numbers = node.values.values if node.values else None, cell.feature.numbers
    if values is None or numbers is None:
        return node.name
    if len(values) > 2 and all(f == 0 or f == 1 for f in numbers):
        chosen = [str(value) for value in islice(compress(values, numbers), 7)]
        return f"{node.name} in {{{', '.join(chosen[:6])}{', ...' if len(chosen) > 6 else ''}}}"
    if values == numbers:  # thousands of numbers, which are mostly the very same objects
        return node.name
    if all(is_number(value) for value in values):
        for name, follows in _DESCRIPTIONS:
            if all(follows(x, f) for x, f in zip(values, numbers, strict=True)):
                return name.format(node.name)
    return f"code of {node.name}"


# How a number f is made of a value x, tried in this order.
_DESCRIPTIONS: tuple[tuple[str, Callable[[Any, Number], bool]], ...] = (
    ("{} squared", lambda x, f: f == x * x),
    ("1 / (1 + {})", lambda x, f: f.denominator == 1 + x and f.numerator == 1),
)


def _cells(*forms: Form) -> tuple[int, ...]:
    return tuple(sorted({cell for form in forms for cell in form.cells}))


def _heads(placement: Placement) -> list[HeadRole]:
    roles = []
    for block, layer in enumerate(placement.layers):
        for group, members in enumerate(groups_of(layer).values()):
            for place, head in enumerate(members):
                queries, keys, values = _cells(*head.queries), _cells(*head.keys), _cells(head.value)
                role = (block, group, place, head.kind, head.selector, head.node)
                roles.append(HeadRole(*role, queries, keys, values, (head.cell,)))
    return roles


def _units(draft: Draft, placement: Placement) -> list[UnitRole]:
    roles = []
    for block, layer in enumerate(placement.layers):
        first = 0
        for table in layer.tables:
            count = len(table.units)
            roles.append(UnitRole(block, first, count, "table", tuple(sorted(table.writes)), _cells(table.ridge)))
            first += count
        for cell in layer.clears:
            count = len(signs(draft.cells[cell]))
            roles.append(UnitRole(block, first, count, "clear", (cell,), (cell,)))
            first += count
    return roles
