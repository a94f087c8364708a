"""From plans to cells, heads and units.

Everything starts from the read-out: it asks for the code of the output node as a linear form, that asks for what it is
made of, and so on. A *form* (node, feature) is obtained, in this order,

* from the code of the node, when the feature is an affine map of it: nothing to compute;
* from the embedding, when the node is a function of the token or of the position;
* from a head, or from a table over what the node reads.

Questions wait on an explicit stack (generators that `yield` what they need), so the depth of a program is no limit.

*Exactness.* Functions of the token or the position are held without any rounding error; widths and means come out of a
division and are not; what is read from one position is as exact as what stands there; a sum or a table is as exact as
what it is made of.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from certiformer.compiler.codes import Codes, all_numbers, as_number, as_numbers
from certiformer.compiler.draft import START, Draft, DraftCell, Feature
from certiformer.compiler.features import affine_of, constant, entries
from certiformer.compiler.gadgets.head import HeadMaker
from certiformer.compiler.gadgets.snap import snapped
from certiformer.compiler.gadgets.table import TableMaker
from certiformer.compiler.gadgets.unlisted import UnlistedMaker
from certiformer.compiler.graph_to_extended import Extended
from certiformer.compiler.linear_form import Form
from certiformer.compiler.precision import Precision
from certiformer.compiler.sources import TOKEN, Sources
from certiformer.errors import BadInput
from certiformer.rasp.graph import Node
from certiformer.rasp.operation import Affine, Operation, as_affine
from certiformer.rasp.value import all_exact


class Exactness:
    """Answers for each node, inputs first, each once."""

    def __init__(self, extended: Extended, sources: Sources) -> None:
        self._extended, self._sources = extended, sources
        self._exact: dict[int, bool] = {}

    def __getitem__(self, number: int) -> bool:
        stack = [number]
        while stack:
            top = stack[-1]
            below = self._made_of(top)
            missing = [i for i in below or () if i not in self._exact]
            if missing and top not in self._exact:
                stack += missing
                continue
            stack.pop()
            self._exact[top] = below is not None and all(self._exact[i] for i in below)
        return self._exact[number]

    def _made_of(self, number: int) -> tuple[int, ...] | None:
        """The nodes on which the exactness of this one depends; None when it is inexact anyway."""
        node = self._extended.nodes[number]
        if self._sources[number] is not None:
            return ()
        if number in self._extended.sums:
            return tuple(other for _, other in self._extended.sums[number].terms)
        if number in self._extended.plans:
            single = node.kind == "aggregate" and "single" in self._extended.nodes[node.inputs[0]].facts
            return (node.inputs[1],) if single else None
        return node.inputs


Question = tuple[int, Feature]
Asking = Generator[Question, Form, Form]


def extended_to_draft(extended: Extended, precision: Precision) -> Draft:
    """The cells, heads and tables for everything that the output needs; sums that nothing asks for are dropped."""
    lowering = Lowering(extended, precision)
    draft = lowering.draft
    draft.output_feature = lowering.codes[extended.output]
    draft.output = lowering.answer((extended.output, draft.output_feature))
    extended.sums = {number: found for number, found in extended.sums.items() if number in lowering.asked}
    return draft


class Lowering:
    """Answers questions for forms, each once."""

    def __init__(self, extended: Extended, precision: Precision) -> None:
        self.extended, self.nodes, self.precision = extended, extended.nodes, precision
        self.codes = Codes(extended)
        self.sources = Sources(self.nodes, extended.builder.length)
        self.exact = Exactness(extended, self.sources)
        self.draft = Draft()
        start = extended.builder.add("full", constant=0, name="start")
        self.draft.add_cell(DraftCell(start, Feature((0,)), 1, by_token=(0,) * len(extended.builder.vocab)))
        self.heads = HeadMaker(self)
        self.tables = TableMaker(self)
        self.unlisted = UnlistedMaker(self)
        self._numbers: dict[int, Feature] = {}
        self._answers: dict[Question, Form] = {}
        self._raw: dict[int, Form] = {}

    def answer(self, question: Question) -> Form:
        """The form for a question, with all questions that arise on the way."""
        stack: list[tuple[Question, Asking]] = [(question, self._make(*question))]
        reply: Form | None = None
        while stack:
            asked, making = stack[-1]
            try:
                wanted = making.send(reply) if reply is not None else next(making)
            except StopIteration as done:
                self._answers[asked] = reply = done.value
                stack.pop()
                continue
            reply = self._answers.get(wanted)
            if reply is None:
                stack.append((wanted, self._make(*wanted)))
        return self._answers[question]

    @property
    def asked(self) -> set[int]:
        """The nodes of which some form was asked for."""
        return {number for number, _ in self._answers}

    def start(self) -> Form:
        """1 at the beginning of the sequence, 0 elsewhere."""
        return Form.of({START: 1})

    def numbers(self, number: int) -> Feature:
        """The feature that is the value itself, for nodes with numbers."""
        node, code = self.nodes[number], self.codes[number]
        if node.values is None or node.values.values is None:
            return code
        if number not in self._numbers:
            if not all_numbers(node.values.values):
                raise BadInput(f"{node.name} has values that are no numbers where numbers are needed")
            found = Feature(as_numbers(node.values.values), code.undefined)
            self._numbers[number] = code if found == code else found  # the same object is compared and hashed once
        return self._numbers[number]

    def price(self, number: int, feature: Feature) -> int:
        """Roughly how many coordinates and units a feature costs."""
        if constant(feature):
            return 0
        if not feature.snapped and affine_of(self.codes[number], feature) is not None:
            return 0
        return 1 if self.sources[number] is not None else 1 + len(entries(feature))

    def affine(self, node: Node) -> Affine | None:
        """The affine map of exact numbers that a node is, if it is one."""
        found = as_affine(node.function) if node.kind == "map" and isinstance(node.function, Operation) else None
        return found if found is not None and all(map(self._has_exact_numbers, node.inputs)) else None

    def linear(self, number: int) -> tuple[list[tuple[Any, int]], Any] | None:
        """A node that is a sum of numbers of other nodes, all defined: (factor, node), ... and the offset."""
        node, found = self.nodes[number], self.extended.sums.get(number)
        if found is not None and node.kind != "aggregate":
            return [(as_number(factor), other) for factor, other in found.terms], as_number(found.offset)
        affine = self.affine(node)
        if affine is None or any(self.codes[i].undefined is not None for i in node.inputs):
            return None
        if self.codes[number] != self.numbers(number):
            return None
        return [(as_number(f), i) for f, i in zip(affine.factors, node.inputs, strict=True)], as_number(affine.offset)

    def raw(self, number: int) -> Asking:
        """What the head of a width or an aggregate writes: 1 / (1 + width), or a mean with undefined parts."""
        if number not in self._raw:
            self._raw[number] = yield from self.heads.make(number, self.nodes[number], self.extended.plans[number])
        return self._raw[number]

    # --- how a form is obtained ---------------------------------------------------------------------------------------

    def _make(self, number: int, feature: Feature) -> Asking:
        code = self.codes[number]
        if constant(feature):
            return Form((), entries(feature)[0])
        if feature.snapped:
            return (yield from snapped(self, number, feature))
        if feature == code:
            return (yield from self._code(number, feature))
        if feature.numbers is None:
            return (yield from self.unlisted.with_undefined(number, feature))
        line = affine_of(code, feature)
        if line is not None:
            base = yield (number, code)
            return base.scaled(*line)
        if self.sources[number] is not None:
            return self._embedded(number, feature)
        return (yield from self.tables.make(number, feature))

    def _code(self, number: int, code: Feature) -> Asking:
        node = self.nodes[number]
        total = self.linear(number)
        if total is not None:
            form = Form((), total[1])
            for factor, other in total[0]:
                form = form + (yield (other, self.numbers(other))).scaled(factor)
            return form
        if number in self.extended.sums:  # the same values as another node
            other = self.extended.sums[number].terms[0][1]
            never = self.codes[other].undefined  # listed as undefined for arguments that never meet
            return (yield (other, Feature(code.numbers, never if code.undefined is None else code.undefined)))
        if self.sources[number] is not None:
            return self._embedded(number, code)
        if node.kind == "aggregate":
            raw = yield from self.raw(number)
            if not self.draft.cells[raw.cells[0]].feature.or_more:
                return raw
        if code.numbers is None or (self.affine(node) and code == self.numbers(number)):
            return (yield from self.unlisted.code(number, code))
        return (yield from self.tables.make(number, code))

    def _has_exact_numbers(self, number: int) -> bool:
        values = self.nodes[number].values
        if values is None or values.values is None:
            return values is not None and values.span is not None
        return all_exact(values.values)

    def _embedded(self, number: int, feature: Feature) -> Form:
        source = self.sources[number]
        if source is None:
            raise TypeError("not known before the first layer")
        held = entries(feature)
        numbers = tuple(held[place] for place in source.places)
        if len(numbers) == 1:
            return Form((), numbers[0])
        by_token, by_position = (numbers, None) if source.kind == TOKEN else (None, numbers)
        return Form.of({self.draft.add_cell(DraftCell(number, feature, 0, by_token, by_position)): 1})
