"""What a compiled program means: the value of every node of `program.json` at every position of a word.

A definition, to be read from top to bottom: values, functions of values, nodes with their equations, the value of a program
on a word, and how the file is read. Nothing is inferred. The values that the file lists for a node are a *proposal*: here
they only number the arguments and results of tables, and whoever wants to rely on them has to check them.

The rules are those of docs/rasp.md. It deviates from Python in what arithmetic accepts: numbers, and + of two strings or of
two tuples; `program.json` may spell more (a string times a number), which has no meaning here.
"""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from certiformer.errors import MALFORMED, BadInput
from certiformer.kernel import Refused

# === Values ===========================================================================================================
#
# None (undefined), a truth value, an integer, a finite float that is no integer, a fraction that is none, a string, or a
# tuple of defined values. There is no 1.0 and no -0.0: a number without a fractional part is an integer.

Value = Any

MAX_BITS, MAX_TEXT, MAX_NESTING = 4_096, 1_000, 20  # of a numerator or denominator, a string or tuple, tuples in tuples


class NoValue(Refused):
    """A node has no value on some input: functions are asked what they have no answer for."""


def identity(value: Value) -> tuple[str, Any]:
    """A key that is equal exactly for the same value: of the same type and equal, so that True is not 1.

    >>> identity(True) == identity(1), identity((1,)) == identity((True,)), identity(2) == identity(2)
    (False, False, True)
    """
    if type(value) is tuple:
        return ("tuple", tuple(map(identity, value)))
    if type(value) is Fraction:  # the hash of a fraction takes long
        return ("Fraction", (value.numerator, value.denominator))
    return (type(value).__name__, value)


def is_exact(value: Value) -> bool:
    """Whether a value is a number that arithmetic does not round; truth values count as 0 and 1."""
    return type(value) in (bool, int, Fraction)


def is_number(value: Value) -> bool:
    return type(value) is float or is_exact(value)


exact: Callable[[Any], Fraction] = Fraction  # the number that a value is; a float is the binary fraction it stores


def settled(result: Any) -> Value:
    """The value that a result of arithmetic is: an integer where it has no fractional part."""
    whole = result.is_integer() if type(result) is float else type(result) is Fraction and result.denominator == 1
    result = int(result) if whole else result
    bits = max(map(int.bit_length, result.as_integer_ratio())) if type(result) in (int, Fraction) else 0
    long = isinstance(result, (str, tuple)) and len(result) > MAX_TEXT
    if bits > MAX_BITS or long or (type(result) is float and not math.isfinite(result)):
        raise NoValue("a value is not finite, or too large")
    return result


# === Functions of values ==============================================================================================


def _numbers(x: Value, y: Value) -> tuple[Value, Value]:
    """Two values as they are compared: a fraction beside a float as its nearest float."""
    return (float(x), float(y)) if {type(x), type(y)} == {Fraction, float} else (x, y)


def equal(x: Value, y: Value) -> bool:
    """`==`: as in Python (True equals 1), except that a fraction compares with a float as its nearest float does."""
    if type(x) is tuple and type(y) is tuple:
        return len(x) == len(y) and all(map(equal, x, y))
    return operator.eq(*_numbers(x, y))


def before(x: Value, y: Value) -> bool:
    """`<` of two numbers, two strings, or two tuples, which their first difference decides."""
    if type(x) is tuple and type(y) is tuple:
        pairs = [(a, b) for a, b in zip(x, y, strict=False) if not equal(a, b)]
        return before(*pairs[0]) if pairs else len(x) < len(y)
    if not (is_number(x) and is_number(y)) and not type(x) is type(y) is str:
        raise NoValue(f"{spelled(x)} and {spelled(y)} are compared by size, and have no order")
    return operator.lt(*_numbers(x, y))


COMPARISONS: dict[str, Callable[[Value, Value], bool]] = {
    "==": equal,
    "!=": lambda x, y: not equal(x, y),
    "<": before,
    "<=": lambda x, y: equal(x, y) or before(x, y),
    ">": lambda x, y: before(y, x),
    ">=": lambda x, y: equal(x, y) or before(y, x),
}
ARITHMETIC = {"+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod}
SYMBOLS = frozenset({*COMPARISONS, *ARITHMETIC, "/", "and", "or"})
PREDICATES = COMPARISONS | {"True": lambda x, y: True, "False": lambda x, y: False}  # of a select


def operate(symbol: str, x: Value, y: Value) -> Any:
    """`x symbol y` for two defined values."""
    if symbol in COMPARISONS:
        return COMPARISONS[symbol](x, y)
    if symbol in ("and", "or"):
        return y if bool(x) == (symbol == "and") else x
    joined = symbol == "+" and type(x) is type(y) and type(x) in (str, tuple)
    if not joined and not (is_number(x) and is_number(y)):
        raise NoValue(f"{spelled(x)} {symbol} {spelled(y)} is no number")
    if symbol == "/":
        return Fraction(x) / Fraction(y) if is_exact(x) and is_exact(y) else x / y
    return ARITHMETIC[symbol](x, y)


@dataclass(frozen=True)
class Operator:
    """`x symbol y`, or with a constant on one side of the one argument, or `not x`."""

    symbol: str
    arguments: int = 2
    constant: Value = None
    constant_first: bool = False

    def __call__(self, *values: Value) -> Any:
        if self.symbol == "not":
            return not values[0]
        if self.arguments == 1:
            values = (self.constant, *values) if self.constant_first else (*values, self.constant)
        return operate(self.symbol, *values)


@dataclass(frozen=True)
class Affine:
    """`offset + factors[0] x + factors[1] y`, for one or two numbers, added from left to right."""

    factors: tuple[Value, ...]
    offset: Value

    def __call__(self, *values: Value) -> Any:
        total = self.offset
        for factor, x in zip(self.factors, values, strict=True):
            total = operate("+", total, operate("*", factor, x))
        return total


@dataclass(frozen=True)
class Table:
    """A function of listed values, row by row: places in the node's own list, -1 for undefined; for a select, 1 or 0."""

    shape: tuple[int, ...]
    entries: tuple[int, ...]


def applied(function: Callable[..., Any], arguments: Sequence[Value]) -> Value:
    """A function of values: undefined where one of them is, and where it divides by zero."""
    if any(x is None for x in arguments):
        return None
    try:
        return settled(function(*arguments))
    except ZeroDivisionError:
        return None
    except OverflowError:
        raise NoValue(f"a number near {spelled(arguments[0])} is too large for a float") from None


def aggregate(selected: Sequence[Value], default: Value) -> Value:
    """`default` of nothing, undefined of anything undefined, the value if all are the same, else the mean of numbers."""
    if not selected:
        return default
    if any(value is None for value in selected):
        return None
    if len(set(map(identity, selected))) == 1:
        return selected[0]
    if not all(map(is_number, selected)):
        raise NoValue(f"different values such as {spelled(selected[0])} are selected together, and have no mean")
    return settled(sum(map(exact, selected), Fraction(0)) / len(selected))


def spelled(value: Value) -> str:
    """A value in a message: one short line of plain characters."""
    return ascii(str(value) if type(value) is Fraction else value)[:60]


# === Nodes and their equations ========================================================================================
#
# A node reads earlier nodes by their number. Sequences have a value at every position, selectors a truth value for every
# pair of a query (the position that looks) and a key (the position that is looked at).

SELECTORS = frozenset({"select", "pattern", "and", "or", "not"})
READS: dict[str, tuple[str, ...]] = dict.fromkeys(("tokens", "indices", "length", "full", "written", "pattern"), ("",))
READS |= {"map": ("s", "ss"), "width": ("p",), "aggregate": ("ps",)}  # sequences (s) and selectors (p), in order
READS |= {"select": ("ss",), "and": ("pp",), "or": ("pp",), "not": ("p",)}


@dataclass(frozen=True, eq=False)  # Python's == takes True for 1
class Proposal:
    """The values that the file lists for a node, whether it may be undefined, and what is said where there is no list."""

    listed: tuple[Value, ...] | None
    undefined: bool
    unlisted: dict[str, Any]

    @cached_property
    def places(self) -> dict[tuple, int]:
        """The place of every listed value."""
        return {identity(value): place for place, value in enumerate(self.listed or ())}


@dataclass(frozen=True, eq=False)
class Node:
    """One step of a program. `constant`: a fill, a default, or whether the length is checked and what is written."""

    kind: str
    inputs: tuple[int, ...]
    function: Operator | Affine | Table | str | None
    constant: Any
    values: Proposal | None  # None for a selector
    name: str

    def written(self, length: int) -> tuple:
        """What is written down, for an input of this length."""
        if self.constant[0] and len(self.constant) - 1 != length:
            raise NoValue(f"a list is written for inputs of {len(self.constant) - 1} tokens, not {length}")
        return self.constant[1:]


@dataclass(frozen=True, eq=False)
class Program:
    """A program for words of 1 to `length` tokens of `vocab`."""

    nodes: tuple[Node, ...]
    output: int
    vocab: tuple[Value, ...]
    length: int

    def place(self, number: int, value: Value) -> int:
        """The place of a value in the list of a node."""
        place = self.nodes[number].values.places.get(identity(value))  # type: ignore[union-attr]
        if place is None:
            raise NoValue(f"node {number} has the value {spelled(value)}, which is not in the list of its values")
        return place

    def _entry(self, node: Node, arguments: Sequence[Value]) -> int:
        entry = 0
        for number, value, size in zip(node.inputs, arguments, node.function.shape, strict=True):  # type: ignore[union-attr]
            entry = entry * size + self.place(number, value)
        return node.function.entries[entry]  # type: ignore[union-attr]

    def mapped(self, node: Node, arguments: Sequence[Value]) -> Value:
        """The equation of a map: its value at a position, given those of its inputs there."""
        if not isinstance(node.function, Table):
            return applied(node.function, arguments)  # type: ignore[arg-type]
        if any(x is None for x in arguments):
            return None
        entry = self._entry(node, arguments)
        return None if entry < 0 else node.values.listed[entry]  # type: ignore[union-attr, index]

    def selects(self, node: Node, key: Value, query: Value) -> bool:
        """The equation of a select: whether a pair is selected; never where one of the two is undefined."""
        if key is None or query is None:
            return False
        if isinstance(node.function, Table):
            return self._entry(node, (key, query)) == 1
        return PREDICATES[node.function](key, query)  # type: ignore[index]

    def needed(self, *numbers: int) -> list[int]:
        """These nodes and all that they are computed from, in order."""
        wanted = set(numbers)
        for number in reversed(range(len(self.nodes))):
            wanted |= set(self.nodes[number].inputs if number in wanted else ())
        return sorted(wanted)

    def evaluate(self, word: Sequence[Value], *numbers: int) -> dict[int, list]:
        """The values of these nodes (by default the output) and of all that they are computed from, on a word.

        Of a sequence, one for every position; of a selector, a row of truth values for every query. Raises `NoValue`.
        """
        known = set(map(identity, self.vocab))
        if not 1 <= len(word) <= self.length or not all(identity(token) in known for token in word):
            raise BadInput(f"an input is a list of 1 to {self.length:,} tokens of the vocabulary")
        values: dict[int, list] = {}
        for number in self.needed(*(numbers or (self.output,))):
            node = self.nodes[number]
            values[number] = self._row(node, [values[i] for i in node.inputs], list(word))
        return values

    def _row(self, node: Node, below: list[list], word: list[Value]) -> list:
        """All values of a node, given those of its inputs: one line for each kind."""
        n, places = len(word), range(len(word))
        match node.kind:
            case "tokens" | "indices" | "length" | "full":
                return {"tokens": word, "indices": [*places], "length": [n] * n, "full": [node.constant] * n}[node.kind]
            case "written":
                written = node.written(n)
                return [written[i] if i < len(written) else None for i in places]
            case "map":
                return [self.mapped(node, arguments) for arguments in zip(*below, strict=True)]
            case "width":
                return list(map(sum, below[0]))
            case "aggregate":
                chosen = [[v for v, here in zip(below[1], row, strict=True) if here] for row in below[0]]
                return [aggregate(selected, node.constant) for selected in chosen]
            case "select":
                return [[self.selects(node, key, query) for key in below[0]] for query in below[1]]
            case "pattern":
                rows = node.written(n)
                return [[max(q, k) < len(rows) and rows[q][k] for k in places] for q in places]
        join = {"not": operator.not_, "and": operator.and_, "or": operator.or_}[node.kind]
        return [[join(*truths) for truths in zip(*rows, strict=True)] for rows in zip(*below, strict=True)]


# === Reading ==========================================================================================================
FORMAT, MAX_NODES, MAX_LISTED = "certiformer-program-1", 100_000, 2_000_000  # values in the lists of all nodes together


def read_program(text: str | bytes) -> Program:
    """The program of a `program.json`; anything that is not spelled in the one way is `BadInput`."""
    try:
        content = text.decode("ascii") if isinstance(text, bytes) else text
        data = json.loads(content)
        written = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True) + "\n"
        _require(written == content, "it is not in its canonical form")
        _require(set(data) == {"format", "length", "nodes", "output", "vocab"}, "its fields are others")
        vocab, length, output = tuple(map(_value, data["vocab"])), _integer(data["length"]), _integer(data["output"])
        _require(data["format"] == FORMAT and len(data["nodes"]) <= MAX_NODES, f"it is not of the format {FORMAT}")
        _require(vocab and None not in vocab and len(set(map(identity, vocab))) == len(vocab), "the vocabulary")
        _require(1 <= length <= 1_000_000 and 0 <= output < len(data["nodes"]), "the length or the output")
        nodes, room = list[Node](), MAX_LISTED
        for node in data["nodes"]:
            nodes.append(_node(nodes, node, room))
            room -= len(nodes[-1].values.listed or ()) if nodes[-1].values else 0
        _require(nodes[output].kind not in SELECTORS, "its output is a selector")
    except BadInput:
        raise
    except (Refused, *MALFORMED):
        raise BadInput("the program file has not the structure of one") from None
    return Program(tuple(nodes), output, vocab, length)


def _require(condition: object, what: str) -> None:
    if not condition:
        raise BadInput(f"the program file has not the structure of one: {what}")


def _node(nodes: list[Node], data: dict[str, Any], room: int) -> Node:
    kind, inputs, name = data.pop("kind"), tuple(map(_integer, data.pop("inputs", ()))), data.pop("name")
    _require(kind in READS and type(name) is str, "a node has an unknown kind, or no name")
    _require(all(0 <= i < len(nodes) for i in inputs), "a node reads one that does not come before it")
    read = "".join("p" if nodes[i].kind in SELECTORS else "s" for i in inputs)
    _require(read in READS[kind], "a node reads too many or too few, or a selector as a sequence")
    values = None if kind in SELECTORS else _proposal(data.pop("values"), room)
    _require(values is None or type(data.pop("numerical")) is bool, "a node does not say how it is carried")
    constant, function = data.pop("constant", ...), None
    if kind in ("map", "select"):
        sizes = tuple(len(nodes[i].values.listed or ()) for i in inputs)  # type: ignore[union-attr]
        ((spelling, content),) = data.items()
        function = _function(spelling, content, sizes, values)
    _require(function is not None or not data, "a node has fields of other nodes")
    return Node(kind, inputs, function, _constant(kind, constant), values, name)


def _constant(kind: str, data: Any) -> Any:
    if kind in ("full", "aggregate"):
        return _value(data)
    if kind not in ("written", "pattern"):
        return _require(data is ..., "a node has a constant")
    checked, *rest = data
    rows = rest if kind == "pattern" else []
    truths = [checked, *(x for row in rows for x in row)]
    square = all(len(row) == len(rows) for row in rows)
    _require({*map(type, truths)} == {bool} and square, "what is written down has other parts than it needs")
    return (checked, *map(_value if kind == "written" else tuple, rest))


def _function(spelling: str, data: Any, sizes: tuple[int, ...], values: Proposal | None) -> Any:
    """Of a map, which has values, or of a select."""
    if spelling == "table" and values is not None:
        entries = tuple(map(_integer, data["entries"]))
        fits = set(data) == {"shape", "entries"} and data["shape"] == [*sizes] and len(entries) == math.prod(sizes)
        _require(fits and all(-1 <= entry < len(values.listed or ()) for entry in entries), "a table does not fit")
        return Table(sizes, entries)
    if spelling == "relation" and values is None:
        _require([len(row) for row in data] == [sizes[1]] * sizes[0], "a relation does not fit")
        return Table(sizes, tuple(map("01".index, "".join(data))))
    if spelling == "comparison" and values is None and data in PREDICATES:
        return data
    _require(spelling == "operation" and values is not None, "a map or a select has no function that is known")
    match data, len(data), len(sizes):
        case {"unary": "not"}, 1, 1:
            return Operator("not", 1)
        case {"unary": "negative"}, 1, 1:
            data = {"affine": [-1], "offset": 0}
        case {"with": symbol, "constant": constant, "first": bool(first)}, 3, 1 if symbol in SYMBOLS:
            return Operator(symbol, 1, _value(constant), first)
        case {"binary": symbol}, 1, 2 if symbol in SYMBOLS:
            return Operator(symbol)
        case {"linear": list(factors)}, 1, 2:
            data = {"affine": factors, "offset": 0}
    if set(data) == {"affine", "offset"} and len(data["affine"]) == len(sizes):
        *factors, offset = map(_value, (*data["affine"], data["offset"]))
        _require(all(map(is_number, (*factors, offset))), "a factor is no number")
        return Affine(tuple(factors), offset)
    raise BadInput("an operation of the program file is unknown, or does not fit what it reads")


def _proposal(data: dict[str, Any], room: int) -> Proposal:
    undefined = data.pop("undefined")
    _require(type(undefined) is bool, "a node does not say whether it may be undefined")
    if "list" in data or "integers" in data:
        ((spelling, content),) = data.items()
        if spelling == "integers":
            low, high = map(_integer, content)
            _require(high - low < min(room, 1_000_000), "too many integers are listed")
            content = range(low, high + 1)
        listed = tuple(map(_value, content))
        _require(None not in listed and len(set(map(identity, listed))) == len(listed), "a list has a value twice")
        return Proposal(listed, undefined, {})
    return Proposal(None, undefined, data)


def _integer(data: Any) -> int:
    _require(type(data) is int, "a number is no integer")
    return data


def _value(data: Any, nesting: int = 0) -> Value:
    """A value in its one spelling: fractions as p/q in lowest terms, floats in hexadecimal digits."""
    match data:
        case None | bool() | int() | str():
            return settled(data)
        case {"ratio": str(text)} if len(data) == 1 and "/" in text[:1_300] and str(number := Fraction(text)) == text:
            return settled(number)
        case {"float": str(text)} if len(data) == 1 and (rounded := float.fromhex(text)).hex() == text:
            _require(math.isfinite(rounded) and not rounded.is_integer(), "a float is an integer, or not finite")
            return rounded
        case {"tuple": list(parts)} if len(data) == 1 and nesting < MAX_NESTING and None not in parts:
            return settled(tuple(_value(part, nesting + 1) for part in parts))
    raise BadInput("a value of the program file is spelled in another way")
