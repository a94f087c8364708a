"""The small rules that the interpreter and the graphs share: how a function is applied, and what an aggregate is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from certiformer.errors import BadInput
from certiformer.rasp.operation import Operation
from certiformer.rasp.selectors import Comparison
from certiformer.rasp.value import Value, canonical, exact, identity, is_number, plain, reduced


class Fault(BadInput):
    """A user's function, or an aggregate, has no meaning on some values; says which, and whoever catches it says where."""


def apply(f: Callable[..., Any], arguments: Sequence[Value]) -> Value:
    """`f` of these values: None where one is undefined or where it divides by zero; `Fault` where it has no meaning.

    A user's function is called twice. One that answers differently the second time is not a function.

    >>> apply(lambda x: 1 / x, [4]), apply(lambda x: 1 / x, [0]), apply(lambda x: 1 / x, [None])
    (0.25, None, None)
    """
    for x in arguments:
        if x is None:
            return None
    first = _call(f, arguments)
    if not isinstance(f, (Operation, Comparison)):
        second = _call(f, arguments)
        if first is not second and identity(first) != identity(second):
            both = f"{spell([first])} and then {spell([second])}"
            raise Fault(f"gives {both} on the same {spell(arguments)}; use a function of its arguments alone")
    return first


def _call(f: Callable[..., Any], arguments: Sequence[Value]) -> Value:
    try:
        result = f(*arguments)
    except ZeroDivisionError:
        return None
    except RecursionError:
        raise Fault(f"does not end on {spell(arguments)}") from None
    except Exception as error:  # a user's function may raise anything
        said = f"{type(error).__name__}: {error}".splitlines()[0][:160]
        raise Fault(f"raises {said} on {spell(arguments)}; return None where the result is undefined") from None
    try:
        return canonical(result)
    except BadInput as error:
        raise Fault(f"returns what is not a value on {spell(arguments)}: {error}") from None


def holds(predicate: Callable[..., Any], key: Value, query: Value) -> bool:
    """Whether a pair is selected; undefined never is."""
    return bool(apply(predicate, (key, query)))


def aggregate(selected: Sequence[Value], default: Value) -> Value:
    """The one value that is selected, or the mean; `default` of nothing; undefined when something undefined is selected.

    >>> aggregate(["a", "a"], None), aggregate([1, 2, 2], None), aggregate([], "b"), aggregate([1, None], 0)
    ('a', Ratio(5, 3), 'b', None)
    """
    if not selected:
        return default
    if any(value is None for value in selected):
        return None
    first = identity(selected[0])
    if all(identity(value) == first for value in selected):
        return selected[0]
    if not all(is_number(value) for value in selected):
        different = next(value for value in selected if identity(value) != first)
        both = f"{spell([selected[0]])} and {spell([different])}"
        raise Fault(f"selects both {both}; only numbers have a mean, so make the selector choose one position")
    return reduced(sum((exact(value) for value in selected), Fraction(0)) / len(selected))


def spell(arguments: Sequence[Value]) -> str:
    """Arguments for a message."""
    return ", ".join(repr(plain(x))[:60] for x in arguments)
