"""Values that are equal and not the same, such as True and 1: a mean of numbers forgets which of the two it was.

A head reads a mean as a number. Where a program would have to tell True from the mean 1, it is refused in a sentence.
"""

from __future__ import annotations

from collections.abc import Sequence

from certiformer.compiler.draft import Feature
from certiformer.compiler.linear_form import Number
from certiformer.errors import BadInput
from certiformer.rasp.graph import Node
from certiformer.rasp.value import Value, answer, exact, is_number

ONE_KIND = "use numbers of one kind; adding 0 to truth values makes them numbers"


def require_means(name: str, values: Sequence[Value], codes: Sequence[Number]) -> None:
    """Refuse an aggregate that may read a mean of values of which two are equal, but have different codes."""
    seen: dict[object, tuple[Value, Number]] = {}
    for value, code in zip(values, codes, strict=True):
        other, own = seen.setdefault(exact(value), (value, code)) if is_number(value) else (value, code)
        if own != code:
            both = f"{other!r} and {value!r}, which are equal and not the same"
            raise BadInput(f"{name} may read both {both}; {ONE_KIND}")


def require_truths_at_ends(name: str, values: Sequence[Value]) -> None:
    """Refuse an aggregate that may read a truth value or, from smaller and larger numbers, the same number as a mean."""
    numbers = [exact(value) for value in values if is_number(value)]
    for value in values:
        if type(value) is bool and min(numbers) < value < max(numbers):
            raise BadInput(f"{name} may read {value!r} or the mean {int(value)} of others; {ONE_KIND}")


def require_different_codes(output: Node, feature: Feature) -> None:
    """Refuse an output of which two values have one number: a truth value and the same number as a mean of others."""
    values = output.values
    if values is None or (values.span is not None and values.span.ambiguous):
        raise BadInput(f"{output.name} may be a truth value or the same number; {ONE_KIND}")
    named: dict[object, Value] = {}
    for value, number in zip(values.values or (), feature.numbers or (), strict=False):
        other = named.setdefault(number, value)
        if answer(other) != answer(value):
            raise BadInput(f"{output.name} may be {other!r} or the mean {value!r} of others; {ONE_KIND}")
