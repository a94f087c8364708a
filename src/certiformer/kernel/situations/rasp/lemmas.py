"""What no case can show: facts about all positions of a word at once, each by a listed lemma whose premises are checked.

A *fact* holds on every word of the claim:

    constant v      the sequence v has the same value at all positions
    distinct v      it is defined everywhere, and no two positions have values that are equal (==)
    order s         the selector s is a strict total order of the positions, or that with every position in its own row
    reflexive s     every position selects itself
    single s        no position selects two
    few s k         no position selects more than k
    same s v        all values of v that a position selects are the same value (by identity: True is not 1)

A certificate lists steps `[lemma, node, ...]`; the further numbers say which nodes to look at. A step is accepted where the
program has the form that the lemma asks for, the values proposed for its nodes are as it says (`closure` verifies those
before), and the facts that it starts from have been concluded by earlier steps. Nothing is searched for here.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from certiformer.kernel import Refused
from certiformer.kernel.meanings.rasp import (
    PREDICATES,
    SELECTORS,
    Affine,
    Node,
    Program,
    Table,
    Value,
    is_exact,
)

Fact = tuple[str | int, ...]

ORDERS = ("<", ">", "<=", ">=")


class Facts:
    """The facts about a program that were concluded so far."""

    def __init__(self, program: Program):
        self.program, self.nodes = program, program.nodes
        self._known: set[Fact] = set()

    def holds(self, *fact: str | int) -> bool:
        return fact in self._known

    def most_selected(self, selector: int) -> int:
        """How many positions one position selects at most."""
        bounds = [fact[2] for fact in self._known if fact[:2] == ("few", selector)]
        return 1 if self.holds("single", selector) else min([*map(int, bounds), self.program.length])

    def conclude(self, step: Sequence) -> None:
        """Add what a step of a certificate concludes; raises `Refused`."""
        name, *numbers = step
        if name not in LEMMAS or not 1 <= len(numbers) <= 3:
            raise Refused(f"the circuit uses a lemma {str(name)[:30]!r} that there is not")
        if any(not 0 <= number < len(self.nodes) for number in numbers):
            raise Refused("a lemma speaks of a node that the program does not have")
        try:
            fact = LEMMAS[name](self, *numbers)
        except TypeError:
            fact = None
        if fact is None:
            raise Refused(f"the lemma {name!r} does not apply to node {numbers[0]}")
        self._known.add(fact)

    # --- what the premises ask of the proposed values ---

    def defined(self, *numbers: int) -> bool:
        """Whether these sequences are never undefined."""
        return all(known(self.nodes[i]) and not self.nodes[i].values.undefined for i in numbers)  # type: ignore[union-attr]

    def comparable(self, *numbers: int) -> bool:
        """Whether == and < are those of exact numbers and symbols: a fraction beside a float is rounded."""
        return all(known(self.nodes[i]) for i in numbers) and not {float, Fraction} <= types_of(self.nodes, numbers)

    def exact_numbers(self, *numbers: int) -> bool:
        """Whether these are numbers that arithmetic does not round."""
        return all(known(self.nodes[i]) and all(map(is_exact, listed(self.nodes[i]) or ())) for i in numbers)

    def conjuncts(self, selector: int) -> list[int]:
        """The selectors that are joined by `and`."""
        node = self.nodes[selector]
        return [c for i in node.inputs for c in self.conjuncts(i)] if node.kind == "and" else [selector]

    def equations(self, selector: int) -> list[tuple[int, int]]:
        """Key and query of the comparisons key == query that every selected pair meets, where == is an equivalence."""
        parts = [self.nodes[c] for c in self.conjuncts(selector)]
        pairs = [part.inputs for part in parts if part.kind == "select" and part.function == "=="]
        return [(key, query) for key, query in pairs if self.comparable(key, query)]

    def compared_with_itself(self, selector: int, symbols: Sequence[str]) -> int | None:
        """The sequence, always defined, whose values a select compares with each other."""
        node = self.nodes[selector]
        if node.kind != "select" or node.function not in symbols or node.inputs[0] != node.inputs[1]:
            return None
        key = node.inputs[0]
        return key if self.defined(key) and self.comparable(key) else None


def known(node: Node) -> bool:
    return node.values is not None and (node.values.listed is not None or bool(node.values.unlisted))


def listed(node: Node) -> tuple[Value, ...] | None:
    return None if node.values is None else node.values.listed


def types_of(nodes: Sequence[Node], numbers: Sequence[int]) -> set[type]:
    """The types of the values, and of what is inside tuples; numbers too many to list count as fractions."""
    types, parts = set(), [value for i in numbers for value in listed(nodes[i]) or (Fraction(1, 2),)]
    while parts:
        types |= set(map(type, parts))
        parts = [part for value in parts if type(value) is tuple for part in value] if tuple in types else []
    return types


# --- the lemmas -------------------------------------------------------------------------------------------------------


def constant(facts: Facts, v: int) -> Fact | None:
    """A sequence is constant if it is a fill or the length, a map of constants, or a width or aggregate whose selector
    compares with a constant query.

    Proof. A map is a function of its inputs; the row of a selector is a function of the query and of the word. QED.
    """
    node = facts.nodes[v]
    inputs = node.inputs
    if node.kind in ("width", "aggregate"):
        selector = facts.nodes[node.inputs[0]]
        inputs = selector.inputs[1:] if selector.kind == "select" else (v,)
    elif node.kind not in ("full", "length", "map"):
        return None
    return ("constant", v) if all(facts.holds("constant", i) for i in inputs) else None


def distinct(facts: Facts, v: int) -> Fact | None:
    """Values differ at any two positions for the index; for an affine map with a factor that is not zero of a distinct
    sequence of exact numbers, and a constant one; and for a table whose results for different values of a distinct input
    are never equal.

    Proof. f x + g c takes different values for different x, c being the same. A table: stated. QED.
    """
    node = facts.nodes[v]
    if node.kind == "indices":
        return ("distinct", v)
    if node.kind != "map" or not facts.defined(*node.inputs):
        return None
    affine = as_affine(node)
    if affine is not None and facts.exact_numbers(*node.inputs):
        pairs = zip(node.inputs, node.inputs[1:] or (None,), affine.factors, strict=False)
        pairs = [*pairs, *zip(node.inputs[1:], node.inputs, affine.factors[1:], strict=False)]
        moved = [x for x, other, f in pairs if f and (other is None or facts.holds("constant", other))]
        return ("distinct", v) if any(facts.holds("distinct", x) for x in moved) else None
    apart = any(facts.holds("distinct", x) and _apart(node, axis) for axis, x in enumerate(node.inputs))
    return ("distinct", v) if apart and facts.comparable(v) else None


def _apart(node: Node, axis: int) -> bool:
    """Whether a table is defined, and its results for different values of one argument are never equal."""
    if not isinstance(node.function, Table) or -1 in node.function.entries:
        return False
    entries, columns = node.function.entries, node.function.shape[-1]
    if len(node.function.shape) == 1:
        groups = [(entry,) for entry in entries]
    else:
        starts = range(0, len(entries), columns)
        groups = (
            [entries[k : k + columns] for k in starts] if axis == 0 else [entries[k::columns] for k in range(columns)]
        )
    sets = [{(listed(node) or ())[entry] for entry in group} for group in groups]  # by ==, as selectors compare
    return sum(map(len, sets)) == len(set().union(*sets))


def order(facts: Facts, s: int) -> Fact | None:
    """x < x (or >, <=, >=) is a total order for a distinct x; so is "x < x, or x == x and an order".

    Proof. Values of a distinct sequence are comparable and pairwise different. In the second, positions of different x are
    ordered by x, those of equal x by the order; equality is an equivalence, so that this is transitive. QED.
    """
    node = facts.nodes[s]
    key = facts.compared_with_itself(s, ORDERS)
    if key is not None:
        return ("order", s) if facts.holds("distinct", key) else None
    for first, tie in (node.inputs, node.inputs[::-1]) if node.kind == "or" else ():
        key, parts = facts.compared_with_itself(first, ("<", ">")), facts.nodes[tie].inputs
        for equal, rest in (parts, parts[::-1]) if facts.nodes[tie].kind == "and" else ():
            if key is not None and facts.compared_with_itself(equal, ("==",)) == key and facts.holds("order", rest):
                return ("order", s)
    return None


def rank(facts: Facts, v: int) -> Fact | None:
    """The widths of a total order are distinct.

    Proof. The row of the r-th position has r - 1 positions, or r with itself (s is one or the other everywhere). QED.
    """
    node = facts.nodes[v]
    return ("distinct", v) if node.kind == "width" and facts.holds("order", node.inputs[0]) else None


def reflexive(facts: Facts, s: int) -> Fact | None:
    """Every position selects itself: by TRUE of defined values; by x == x, x <= x or x >= x, x defined; by x + a compared
    with x + b for exact x where a is so compared with b; by a relation of a defined x with itself that holds on its
    diagonal; by both parts of `and`, or one of `or`.

    Proof. Key and query are the same position; adding x changes no comparison of exact numbers. QED.
    """
    node, inputs = facts.nodes[s], facts.nodes[s].inputs
    if node.kind in ("and", "or"):
        parts = [facts.holds("reflexive", i) for i in inputs]
        return ("reflexive", s) if (all if node.kind == "and" else any)(parts) else None
    if node.kind != "select" or not facts.defined(*inputs):
        return None
    if isinstance(node.function, Table):
        size = node.function.shape[0]
        holds = inputs[0] == inputs[1] and all(node.function.entries[:: size + 1])
    elif node.function == "True" or inputs[0] == inputs[1]:
        holds = node.function in ("True", "==", "<=", ">=")
    else:
        (x, a), (y, b) = (_shifted(facts, i) for i in inputs)
        holds = x == y and facts.exact_numbers(x) and PREDICATES[node.function](a, b)  # type: ignore[index]
    return ("reflexive", s) if holds else None


def _shifted(facts: Facts, number: int) -> tuple[int, Value]:
    """x and a for a node that is x + a, otherwise the node and 0."""
    affine = as_affine(facts.nodes[number])
    return (facts.nodes[number].inputs[0], affine.offset) if affine and affine.factors == (1,) else (number, 0)


def one(facts: Facts, s: int) -> Fact | None:
    """At most one position is selected by FALSE; by x == y with a distinct x; and by a relation that accepts at most one
    value of a distinct x for every y.

    Proof. Two selected keys would be equal to y, hence to each other. A relation: stated. QED.
    """
    node = facts.nodes[s]
    if node.kind != "select":
        return None
    x = node.inputs[0]
    single = node.function == "False"
    single |= node.function == "==" and facts.comparable(*node.inputs) and facts.holds("distinct", x)
    return ("single", s) if single or (facts.holds("distinct", x) and _accepted(node) <= 1) else None


def _accepted(node: Node) -> int:
    """How many keys a relation accepts at most."""
    if not isinstance(node.function, Table) or node.kind != "select":
        return len(node.inputs)
    queries = node.function.shape[1]
    return max((sum(node.function.entries[q::queries]) for q in range(queries)), default=0)


def part(facts: Facts, s: int, c: int) -> Fact | None:
    """What is joined by `and` with a selector of at most one position selects at most one.

    Proof. It selects a part of what each of its conjuncts selects. QED.
    """
    return ("single", s) if c in facts.conjuncts(s) and facts.holds("single", c) else None


def occurrence(facts: Facts, s: int, number: int) -> Fact | None:
    """Let `number` be the width of "x == x and an order", or of "x == c and an order" with a constant c. A selector that
    asks for number == y and for x == z (or x == c) selects at most one position.

    Proof. The selected positions have equal x (or x = c). Among the positions of equal x, their numbers are their ranks in
    a total order, which differ. QED.
    """
    asked, node = facts.equations(s), facts.nodes[number]
    if node.kind != "width" or number not in {key for key, _ in asked}:
        return None
    parts = facts.conjuncts(node.inputs[0])
    if len(parts) != 2 or not any(facts.holds("order", p) for p in parts):
        return None
    for x, query in facts.equations(node.inputs[0]):
        itself = x == query and any(key == x for key, _ in asked)
        if itself or (facts.holds("constant", query) and (x, query) in asked):
            return ("single", s)
    return None


def few(facts: Facts, s: int, c: int) -> Fact | None:
    """Where a conjunct is a relation that accepts at most k values of a distinct x, at most k positions are selected.

    Proof. Different positions have different values of x. QED.
    """
    node = facts.nodes[c]
    fits = c in facts.conjuncts(s) and isinstance(node.function, Table) and node.kind == "select"
    return ("few", s, max(_accepted(node), 1)) if fits and facts.holds("distinct", node.inputs[0]) else None


def same(facts: Facts, s: int, v: int, key: int) -> Fact | None:
    """The selected values of v are the same value where at most one position is selected, where v is constant, or where the
    selector asks for key == y and v is a function of the key, of which no two values are equal. It may also be a function
    of x where the key is the width of x < x (or >, <=, >=).

    Proof. Selected keys are equal; equal numbers of smaller x mean equal x, since x_i < x_j gives j one more. Equal values
    of a sequence without equal ones are the same value, and a function has the same result for it. QED.
    """
    if facts.nodes[s].kind not in SELECTORS or facts.nodes[v].kind in SELECTORS:
        return None
    if facts.holds("single", s) or facts.holds("constant", v):
        return ("same", s, v)
    if key not in {x for x, _ in facts.equations(s)}:
        return None
    while not (_function_of(facts.nodes, v, key) and _no_equal_values(facts.nodes[key])):
        width = facts.nodes[key]
        inner = facts.compared_with_itself(width.inputs[0], ORDERS) if width.kind == "width" else None
        if inner is None:
            return None
        key = inner
    return ("same", s, v)


def _no_equal_values(node: Node) -> bool:
    values = listed(node)
    if values is None:
        return known(node) and not node.values.unlisted.get("ambiguous")  # type: ignore[union-attr]
    return len(set(values)) == len(values)


def _function_of(nodes: Sequence[Node], v: int, x: int) -> bool:
    """Whether v is x, or a chain of maps of it alone."""
    while v != x and nodes[v].kind == "map" and len(set(nodes[v].inputs)) == 1:
        v = nodes[v].inputs[0]
    return v == x


LEMMAS = {
    lemma.__name__: lemma for lemma in (constant, distinct, order, rank, reflexive, one, part, occurrence, few, same)
}


def as_affine(node: Node) -> Affine | None:
    """The map of exact numbers that a node is, where it is affine with exact factors."""
    f = node.function
    if node.kind == "map" and not isinstance(f, (Affine, Table)):
        match (f.symbol, f.arguments, f.constant_first):  # type: ignore[union-attr]
            case "+", 2, _:
                f = Affine((1, 1), 0)
            case "-", 2, _:
                f = Affine((1, -1), 0)
            case (("+" | "-" | "*" | "/"), 1, first) if is_exact(f.constant):  # type: ignore[union-attr]
                f = _with_constant(f.symbol, f.constant, first)  # type: ignore[union-attr]
    exact_parts = isinstance(f, Affine) and all(map(is_exact, (*f.factors, f.offset)))
    return f if exact_parts else None  # type: ignore[return-value]


def _with_constant(symbol: str, c: Value, first: bool) -> Affine | None:
    if symbol == "+":
        return Affine((1,), c)
    if symbol == "-":
        return Affine((-1,), c) if first else Affine((1,), -c)
    if symbol == "*":
        return Affine((c,), 0)
    return None if first or c == 0 else Affine((1 / Fraction(c),), 0)
