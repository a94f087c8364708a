"""The values that a program's file proposes for its nodes contain all that occur: checked node by node, by equations.

Let the inputs of a node have their values among those proposed for them. Then the node has its own among those proposed if
its equation gives one of them in every case: a map for all combinations of listed arguments, a width for each count, a mean
for every sum of as many values. By induction over the nodes, the lists contain whatever occurs on a word of the claim.

Where there is no list there is a *span*, of exact numbers between two ends that are multiples of a step over denominators
up to a bound. Sums, products and means of such numbers are such numbers; that is checked instead of the cases.

Means. Let S be numbers with smallest a and largest b, and g the greatest common divisor of all x - a. A sum of w of them is
w a + g t with an integer 0 <= t <= w (b - a)/g, so their mean is a + g t / w. At an end of t all of them are equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, product
from math import gcd, lcm, prod

from certiformer.errors import MALFORMED
from certiformer.kernel import Refused
from certiformer.kernel.meanings.rasp import (
    COMPARISONS,
    Affine,
    Node,
    NoValue,
    Operator,
    Program,
    Proposal,
    Table,
    Value,
    exact,
    identity,
    is_exact,
    is_number,
    settled,
)
from certiformer.kernel.situations.rasp.lemmas import Facts, as_affine, known, listed, types_of

MOST_LISTED = 20_000  # values in the list of one node
MOST_ARGUMENTS = 50_000  # on which an operation is tried; above, its bounds are computed
MOST_COMPARED = 1_000_000  # pairs of values that are compared with each other
LARGEST = 1 << 1_000  # below it, a fraction has a nearest float


@dataclass(frozen=True)
class Span:
    """Exact numbers from `low` to `high`: `step` times fractions of denominator at most `largest_denominator` (None: any).

    A number in `truths` is that truth value; where `ambiguous`, it may be either.
    """

    low: Fraction
    high: Fraction
    largest_denominator: int | None
    step: Fraction = Fraction(1)
    truths: tuple[bool, ...] = ()
    ambiguous: bool = False

    @property
    def gap(self) -> Fraction | None:
        """How far two different ones are apart at least: p/q and r/s by 1/(q s), and q s <= D (D - 1) unless q = s."""
        most = self.largest_denominator
        return None if most is None else self.step / max(most * (most - 1), 1)

    def plain(self) -> Span:
        """The same numbers, of step 1, without truth values: what arithmetic makes of them."""
        most = self.largest_denominator
        return Span(self.low, self.high, None if most is None else most * self.step.denominator)

    def __contains__(self, value: Value) -> bool:
        if not is_exact(value) or not self.low <= value <= self.high:
            return False
        named = self.ambiguous or (type(value) is bool) == (value in self.truths)
        most = self.largest_denominator
        return named and (most is None or (exact(value) / self.step).denominator <= most)

    def covers(self, other: Span) -> bool:
        """Whether all values of the other span are values of this one."""
        mine, most = self.largest_denominator, other.largest_denominator
        fine = mine is None or (most is not None and most * (other.step / self.step).denominator <= mine)
        inside = [x for x in (False, True) if other.low <= x <= other.high]
        named = not other.ambiguous and all((x in other.truths) == (x in self.truths) for x in inside)
        return self.low <= other.low and other.high <= self.high and fine and (self.ambiguous or named)


Values = Sequence[Value] | Span  # what a node takes, but for undefined


def span_of(proposal: Proposal) -> Span | None:
    """The span proposed for a node; None where there is a list, or nothing."""
    data = dict(proposal.unlisted)
    if not data:
        return None
    try:
        low, high = map(_fraction, data.pop("span"))
        most, step = data.pop("largest_denominator"), _fraction(data.pop("step", "1"))
        truths, ambiguous = tuple(data.pop("truths", ())), data.pop("ambiguous", False)
        right = not data and step > 0 and (most is None or (type(most) is int and most > 0))
        if right and type(ambiguous) is bool and {*map(type, truths)} <= {bool}:
            return Span(low, high, most, step, truths, ambiguous)
    except MALFORMED:
        pass
    raise Refused("the values of a node are proposed in a form that there is not")


def _fraction(text: str) -> Fraction:
    if type(text) is not str or len(text) > 3_000 or str(Fraction(text)) != text:
        raise ValueError
    return Fraction(text)


def proved_facts(program: Program, steps: Iterable[Sequence]) -> Facts:
    """Check all proposals, and conclude the facts of a certificate's steps, node by node; raises `Refused`."""
    facts, waiting = Facts(program), list(steps)[::-1]
    for number, node in enumerate(program.nodes):
        closure = _Closure(facts, node, number)
        if node.values is not None and known(node):
            closure.verify(node.values)
        elif node.kind == "select" and not isinstance(node.function, Table):
            closure.verify_comparison()
        while waiting and max(waiting[-1][1:], default=0) <= number:
            facts.conclude(waiting.pop())
    for step in waiting:
        facts.conclude(step)
    return facts


class _Closure:
    """One node: the values that its equation gives, from those proposed for its inputs."""

    def __init__(self, facts: Facts, node: Node, number: int):
        self.facts, self.program, self.node, self.number = facts, facts.program, node, number
        self.inputs = [facts.nodes[i] for i in node.inputs]
        self.undefined = False

    def verify(self, proposal: Proposal) -> None:
        """Whether the proposal covers everything that the node takes."""
        span = span_of(proposal)
        self._require_order(proposal, span)
        try:
            parts = self._values()
        except NoValue as reason:
            raise Refused(f"{self._name()} has no value in some case: {reason}") from None
        for values in parts:
            if isinstance(values, Span):
                covered = span is not None and span.covers(values)
            elif proposal.listed is not None and isinstance(values, range):
                covered = all(("int", value) in proposal.places for value in values)
            else:
                missing = [x for x in values if x is not None and not self._takes(proposal, span, x)]
                covered = not missing
                self.undefined |= any(x is None for x in values)
            if not covered:
                raise Refused(f"{self._name()} may take other values than program.json lists for it")
        if self.undefined and not proposal.undefined:
            raise Refused(f"{self._name()} may be undefined, and program.json says that it never is")

    def _require_order(self, proposal: Proposal, span: Span | None) -> None:
        """The place of a token in its list is its id, and that of an index its position: rows are stored in that order."""
        numbers = range(self.program.length)
        wanted = {"tokens": self.program.vocab, "indices": numbers}.get(self.node.kind)
        if wanted is None:
            return
        if span is not None and self.node.kind == "indices":
            right = (span.low, span.high) == (numbers[0], numbers[-1])
        else:
            right = [*map(identity, proposal.listed or ())] == [*map(identity, wanted)]
        if not right:
            raise Refused(f"{self._name()} does not list the tokens by their ids, or the indices by their positions")

    def _takes(self, proposal: Proposal, span: Span | None, value: Value) -> bool:
        if proposal.listed is None:
            return value in span  # type: ignore[operator]
        key = (type(value).__name__, value) if type(value) in (int, bool, str) else None
        return (key or identity(value)) in proposal.places

    def _name(self) -> str:
        return f"node {self.number} of kind {self.node.kind}"

    def _values(self) -> list[Values]:
        """What the node takes, in parts; undefined is noted, or None among them."""
        node, length = self.node, self.program.length
        match node.kind:
            case "tokens":
                return [self.program.vocab]
            case "indices":
                return [whole(0, length - 1)]
            case "length":
                return [whole(1, length)]
            case "full":
                return [[node.constant]]
            case "written":
                self.undefined = not node.constant[0] and len(node.constant) - 1 < length
                return [node.constant[1:]]
            case "width":
                (s,) = node.inputs
                return [whole(1 if self.facts.holds("reflexive", s) else 0, self.facts.most_selected(s))]
            case "aggregate":
                return self._aggregate()
        return self._map()

    def _known(self, node: Node) -> Values:
        """The values proposed for an input; undefined is noted."""
        if not known(node):
            raise Refused(f"{self._name()} reads a node of which program.json lists no values")
        self.undefined |= node.values.undefined  # type: ignore[union-attr]
        return span_of(node.values) or listed(node) or ()  # type: ignore[arg-type]

    # --- maps ---

    def _map(self) -> list[Values]:
        node, inputs = self.node, [self._known(x) for x in self.inputs]
        if isinstance(node.function, Table):  # its results are places in the list
            self.undefined |= -1 in node.function.entries
            return []
        summed = self._sum()
        if summed is not None:
            return summed
        lists = [values for values in inputs if not isinstance(values, Span)]
        count = prod(map(len, lists))
        if len(lists) == len(inputs):
            affine = as_affine(node) if all(is_exact(x) for values in lists for x in values) else None
            if affine is not None and (count <= MOST_ARGUMENTS or all(map(_consecutive, lists))):
                return [_sums(affine, lists)]
            if count <= MOST_ARGUMENTS:
                return [[self.program.mapped(node, arguments) for arguments in product(*lists)]]
            if isinstance(node.function, Operator) and node.function.symbol in ("and", "or"):
                constant = [[node.function.constant]] if node.function.arguments == 1 else []
                return [*lists, *constant]  # either of the two is the result
        return [self._by_bounds([self._bounds(values) for values in inputs])]

    def _bounds(self, values: Values) -> Span:
        if isinstance(values, Span):
            return values.plain()
        if not values or not all(map(is_exact, values)):
            raise Refused(f"{self._name()} has too many cases to try, and reads what is no exact number")
        return Span(exact(min(values)), exact(max(values)), max(exact(x).denominator for x in values))

    def _by_bounds(self, spans: list[Span]) -> Values:
        affine, f = as_affine(self.node), self.node.function
        if affine is not None:
            offset = exact(affine.offset)
            total = Span(offset, offset, offset.denominator)
            for factor, x in zip(map(exact, affine.factors), spans, strict=True):
                low, high = sorted((x.low * factor, x.high * factor))
                most = _times(total.largest_denominator, _times(x.largest_denominator, factor.denominator))
                total = Span(total.low + low, total.high + high, most)
            return total
        if isinstance(f, Operator) and f.symbol == "not":
            return (False, True)
        if isinstance(f, Operator) and f.symbol in COMPARISONS:
            one = f.arguments == 1 and is_exact(f.constant)
            constant = [Span(exact(f.constant), exact(f.constant), 1)] if one else []
            pair = [*constant, *spans] if f.constant_first else [*spans, *constant]
            if len(pair) == 2:
                return _truths(f.symbol, *pair)
        if isinstance(f, Operator) and f.symbol == "*" and len(spans) == 2:
            x, y = spans
            corners = [a * b for a in (x.low, x.high) for b in (y.low, y.high)]
            return Span(min(corners), max(corners), _times(x.largest_denominator, y.largest_denominator))
        raise Refused(f"{self._name()} has too many cases to try, and no bounds are known for its function")

    def _sum(self) -> list[Values] | None:
        """A mean times the width of its own selector: the sum of the selected values, as for means."""
        found = mean_and_width(self.facts, self.node)
        if found is None:
            return None
        mean, _ = found
        selector, value = self.facts.nodes[mean].inputs
        values, default = listed(self.facts.nodes[value]), self.facts.nodes[mean].constant
        if not values or not all(map(is_exact, values)) or not (default is None or is_exact(default)):
            return None
        if self.facts.holds("reflexive", selector):
            self.undefined, empty = self.facts.nodes[value].values.undefined, []  # type: ignore[union-attr]
        else:
            empty = [None if default is None else 0]
        numbers, length = list(map(exact, values)), self.program.length
        step = common_step(numbers)
        low, high = min(min(numbers), min(numbers) * length), max(max(numbers), max(numbers) * length)
        if step == 0:
            return [[0], empty]
        first, last = int(low / step), int(high / step)
        if last - first >= MOST_LISTED:
            return [Span(low, high, step.denominator), empty]
        return [[settled(step * k) for k in range(first, last + 1)], empty]

    # --- aggregates ---

    def _aggregate(self) -> list[Values]:
        (selector, value), inner = self.node.inputs, self._known(self.inputs[1])
        reflexive = self.facts.holds("reflexive", selector)
        default = [] if reflexive else [[self.node.constant]]
        if self.facts.holds("same", selector, value):
            return [inner, *default]
        return [inner, *self._means(inner, self.facts.most_selected(selector)), *default]

    def _means(self, inner: Values, most: int) -> list[Values]:
        """Means of two to `most` values that are not all the same one."""
        if isinstance(inner, Span):
            inside = any(inner.low < truth < inner.high for truth in inner.truths)
            denominator = most if inner.largest_denominator == 1 else None
            return [Span(inner.low, inner.high, denominator, inner.step, inner.truths, inner.ambiguous or inside)]
        values = [x for x in inner if is_number(x)]  # others have no mean
        numbers = list(map(exact, values))
        if len(numbers) < 2 or most < 2:
            return []
        low, high = min(numbers), max(numbers)
        step = common_step([x - low for x in numbers])
        ends = [settled(low), settled(high)] if len(set(numbers)) < len(numbers) else []
        if step == 0:
            return [ends]
        steps = int((high - low) / step)
        if steps * most * (most + 1) <= 4 * MOST_LISTED:
            shares = [Fraction(t, w) for w in range(1, most + 1) for t in range(1, w * steps) if gcd(t, w) == 1]
            return [ends, [settled(low + step * share) for share in shares]]
        if any(type(x) is float for x in values):
            raise Refused(f"{self._name()} has too many means of floats to list")
        truths = tuple(truth for truth in (False, True) if any(x is truth for x in values))
        ambiguous = any(type(x) is not bool and x in truths for x in values) or any(low < x < high for x in truths)
        return [Span(low, high, most, common_step([low, step]), truths, ambiguous)]

    # --- comparisons ---

    def verify_comparison(self) -> None:
        """A comparison must have a truth value for every pair: by the types of the values, or pair by pair."""
        if self.node.function in ("True", "False"):
            return
        keys, queries = (self._known(x) for x in self.inputs)
        types = types_of(self.facts.nodes, self.node.inputs)
        numbers = [x for values in (keys, queries) for x in _ends(values) if is_number(x)]
        large = {float, Fraction} <= types and any(abs(x) >= LARGEST for x in numbers)
        if not large and (
            types <= {bool, int, float, Fraction} or types == {str} or self.node.function in ("==", "!=")
        ):
            return
        if isinstance(keys, Span) or isinstance(queries, Span) or len(keys) * len(queries) > MOST_COMPARED:
            raise Refused(f"{self._name()} compares too many pairs of values of several types")
        try:
            for key, query in product(keys, queries):
                self.program.selects(self.node, key, query)
        except NoValue as reason:
            raise Refused(f"{self._name()} has no value in some case: {reason}") from None


def _ends(values: Values) -> Sequence[Value]:
    return (values.low, values.high) if isinstance(values, Span) else values


def mean_and_width(facts: Facts, node: Node) -> tuple[int, int] | None:
    """An aggregate and the width of its own selector whose product a node is; the length counts where all are selected."""
    if node.kind != "map" or node.function != Operator("*"):
        return None
    for mean, count in (node.inputs, node.inputs[::-1]):
        if facts.nodes[mean].kind == "aggregate":
            selector, width = facts.nodes[mean].inputs[0], facts.nodes[count]
            everyone = facts.nodes[selector].function == "True" and facts.holds("reflexive", selector)
            if (width.kind, width.inputs) == ("width", (selector,)) or (width.kind == "length" and everyone):
                return mean, count
    return None


def whole(low: int, high: int) -> Values:
    """The integers from `low` to `high`."""
    return range(low, high + 1) if high - low < MOST_LISTED else Span(Fraction(low), Fraction(high), 1)


def _consecutive(values: Sequence[Value]) -> bool:
    """Whether the values are integers without a gap, in order."""
    return {*map(type, values)} == {int} and values[-1] - values[0] == len(values) - 1 == len(set(values)) - 1


def _sums(affine: Affine, lists: Sequence[Sequence[Value]]) -> Values:
    """The values of an affine function of listed exact numbers."""
    plain = type(affine.offset) is int and all(factor in (1, -1) for factor in affine.factors)
    if plain and all(map(_consecutive, lists)):
        pairs = [sorted((factor * min(x), factor * max(x))) for factor, x in zip(affine.factors, lists, strict=True)]
        return whole(*(int(sum(pair[end] for pair in pairs)) + affine.offset for end in (0, 1)))
    terms = [[exact(f) * exact(x) for x in values] for f, values in zip(affine.factors, lists, strict=True)]
    bottom = lcm(exact(affine.offset).denominator, *(x.denominator for x in chain(*terms)))
    tops = {int(affine.offset * bottom)}
    for shifts in [[int(x * bottom) for x in term] for term in terms]:
        tops = {top + shift for top in tops for shift in shifts}
    return [settled(Fraction(top, bottom)) for top in tops]


def _truths(symbol: str, x: Span, y: Span) -> tuple[bool, ...]:
    """Both truth values, unless the bounds decide."""
    if symbol in ("==", "!="):
        return (False, True)
    always = {"<": x.high < y.low, "<=": x.high <= y.low, ">": x.low > y.high, ">=": x.low >= y.high}[symbol]
    never = {"<": x.low >= y.high, "<=": x.low > y.high, ">": x.high <= y.low, ">=": x.high < y.low}[symbol]
    return (True,) if always else (False,) if never else (False, True)


def _times(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a * b


def common_step(numbers: Iterable[Fraction]) -> Fraction:
    """The largest number of which all of these are multiples; 0 when all are 0."""
    step = Fraction(0)
    for x in numbers:
        bottom = lcm(step.denominator, x.denominator)
        step = Fraction(gcd(int(step * bottom), int(x * bottom)), bottom)
    return step
