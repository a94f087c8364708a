"""Which nodes follow from others at the same position, and their values: through maps, written lists and identities.

The value sets contain every value that occurs (`closure`). A map has all its results in its set. A count or a sum may
not: an identity gives 7 for a count that is at most 5 when the numbers put in never stand together. Such a combination
occurs on no input, and evaluating it raises `Contradiction`: a refusal, unless the caller counts it as excluded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction

from certiformer.kernel import Refused
from certiformer.kernel.meanings.rasp import (
    COMPARISONS,
    Operator,
    Program,
    Table,
    Value,
    exact,
    is_number,
    settled,
    spelled,
)
from certiformer.kernel.situations.rasp.circuit import Identity, rational
from certiformer.kernel.situations.rasp.domains import Domains
from certiformer.kernel.situations.rasp.lemmas import as_affine

Evaluator = Callable[[tuple[int, ...]], Value]
NO_SUCH_COUNT = "an identity or a sum gives a number that the count never is"


class Contradiction(Refused):
    """A combination of values that contradicts an equation of the program; a refusal wherever it is not counted."""


class Evaluation(Domains):
    """Nodes as functions of others."""

    def __init__(self, graph: Program, steps: Iterable[Sequence] = ()):
        super().__init__(graph, steps)
        self.identities: dict[int, Identity] = {}
        self._supports: dict[tuple[int, frozenset[int]], set[int] | None] = {}

    def support(self, number: int, known: set[int]) -> set[int]:
        """The variables among `known` that a node follows from."""
        key = (number, frozenset(known))
        if key not in self._supports:
            self._supports[key] = self._support(number, known)
        found = self._supports[key]
        if found is None:
            raise Refused(f"{self.name(number)} does not follow from what is read")
        return found

    def _support(self, number: int, known: set[int]) -> set[int] | None:
        if number in known:
            return {number}
        node = self.node(number)
        if node.kind == "full" or self._fixed(number):
            return set()
        if node.kind == "written" and self.indices in known:
            return {self.indices}
        ways = [node.inputs] if node.kind == "map" else []
        ways += [[i for _, i in self.identities[number].terms]] if number in self.identities else []
        for inputs in ways:
            if all(self.follows(i, known) for i in inputs):
                return {v for i in inputs for v in self.support(i, known)}
        return None

    def follows(self, number: int, known: set[int]) -> bool:
        """Whether a node follows from these variables at the same position."""
        try:
            self.support(number, known)
        except Refused:
            return False
        return True

    def evaluator(self, number: int, variables: Sequence[int]) -> Evaluator:
        """The value of a node as a function of the places of the variables; raises `Contradiction` where it cannot be."""
        if number in variables:
            at, domain = variables.index(number), self.domain(number)
            return lambda places: domain[places[at]]
        node = self.node(number)
        if node.kind == "full":
            return lambda places: node.constant
        if self._fixed(number):
            fixed = self.domain(number)[0]
            return lambda places: fixed
        if node.kind == "written":
            at, written = variables.index(self.indices), node.constant[1:]
            self.require_listed(self.indices)
            return lambda places: written[places[at]] if places[at] < len(written) else None
        by_map = node.kind == "map" and all(self.follows(i, set(variables)) for i in node.inputs)
        if not by_map and number not in self.identities:
            raise Refused(f"{self.name(number)} does not follow from what is read")
        inputs = node.inputs if by_map else [i for _, i in self.identities[number].terms]
        all_listed = all(map(self.listed, self.support(number, set(variables))))
        if not all_listed:
            if by_map and self.listed(number) and self.domain(number)[1:] == [None]:  # one value, or undefined
                only, defined = self.domain(number)[0], self._presence(number, variables)
                return lambda places: only if defined(places) else None
            self._require_affine(number, by_map)
        inner = [self.evaluator(i, variables) for i in inputs]
        step = self._map(number) if by_map else self._sum(number)
        refuse = self._outside(number, by_map)

        def value(places: tuple[int, ...]) -> Value:
            arguments = [f(places) for f in inner]
            result = None if any(x is None for x in arguments) else step(arguments)
            # The ends of intervals stand for all that is between them: none of these corners may be left out.
            if all_listed and not self.takes(number, result):
                refuse(result)
            return result

        return value

    def _outside(self, number: int, by_map: bool) -> Callable[[Value], None]:
        """What is done about a value that a node never takes: only a count or a sum may have one."""
        product_of_counts = by_map and self.node(number).function == Operator("*")
        name = self.name(number)

        def refuse(value: Value) -> None:
            if not by_map or product_of_counts:
                raise Contradiction(NO_SUCH_COUNT)
            raise Refused(f"{name} has the value {spelled(value)}, which is not among its values")

        return refuse

    def require_listed(self, number: int) -> None:
        """Refuse what can be followed case by case only, of a node without a list."""
        if not self.listed(number):
            raise Refused(f"{self.name(number)} has too many values to list")

    def _presence(self, number: int, variables: Sequence[int]) -> Callable[[tuple[int, ...]], bool]:
        """Whether a node is defined, through maps that are defined wherever their inputs are."""
        if number in variables:
            at, domain = variables.index(number), self.domain(number)
            return lambda places: domain[places[at]] is not None
        f, inputs = self.node(number).function, self.node(number).inputs
        total = isinstance(f, Table) and min(f.entries) >= 0
        if isinstance(f, Operator) and f.arguments == 1 and f.symbol in COMPARISONS and is_number(f.constant):
            total = not self.listed(inputs[0])  # numbers without a list compare with any number
        if not total:
            raise Refused(f"where {self.name(number)} is defined does not follow from what is read")
        inner = [self._presence(i, variables) for i in inputs]
        return lambda places: all(defined(places) for defined in inner)

    def _require_affine(self, number: int, by_map: bool) -> None:
        """The ends of an interval decide about affine functions only, and about numbers that are an interval themselves."""
        affine = not by_map or as_affine(self.node(number)) is not None
        if not affine or self.listed(number):
            raise Refused(f"{self.name(number)} is no affine function of numbers that are too many to list")

    def _map(self, number: int) -> Callable[[list[Value]], Value]:
        node = self.node(number)
        if isinstance(node.function, Table):
            table, outputs = node.function, self.domain(number)
            inputs = node.inputs

            def look_up(arguments: list[Value]) -> Value:
                entry = 0
                for i, size, x in zip(inputs, table.shape, arguments, strict=True):
                    entry = entry * size + self.place(i, x)
                return None if table.entries[entry] < 0 else outputs[table.entries[entry]]

            return look_up
        affine = as_affine(node)
        if affine is not None and all(self._exact(i) for i in node.inputs):
            factors, offset = affine.factors, affine.offset
            whole = all(type(x) is int for x in (*factors, offset))

            def combined(arguments: list[Value]) -> Value:
                total = sum([f * x for f, x in zip(factors, arguments, strict=True)], offset)
                return total if whole and type(total) is int else settled(Fraction(total))

            return combined

        return lambda arguments: self.graph.mapped(node, arguments)

    def _sum(self, number: int) -> Callable[[list[Value]], Value]:
        given = self.identities[number]
        if self.node(number).kind == "aggregate":  # equals one other node, value by value; all others as numbers
            return lambda arguments: arguments[0]
        numbers = [rational(number) for number in (given.offset, *(factor for factor, _ in given.terms))]
        offset, *factors = [int(x) if x.denominator == 1 else x for x in numbers]  # integers are much faster

        def total(arguments: list[Value]) -> Value:
            if not all(map(is_number, arguments)):
                raise Refused(f"the identity of {self.name(number)} adds up what is not a number")
            terms = [f * (x if type(x) is int else exact(x)) for f, x in zip(factors, arguments, strict=True)]
            return self.named(number, sum(terms, offset))

        return total
