"""The values a program computes with: which there are, when two are the same, and how a file spells them.

A value is None (undefined), a truth value, an integer, a finite float, an exact `Ratio`, a string, or a tuple of values.
Means and divisions give `Ratio`, so that thirds add up to one; floats appear only where a user's function makes them. A
float without a fractional part becomes the integer it is. `True` and `1` are equal in Python but not the same value here,
because a user's function can tell them apart: sets and tables of values are keyed by `identity`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from certiformer.errors import BadInput

MAX_BITS = 4_096  # of a numerator or denominator: repeated squaring ends in a sentence, not in a full memory
MAX_TEXT = 1_000  # characters of a string, and values in a tuple
MAX_NESTING = 20  # of tuples in tuples

Value = Any  # None | bool | int | float | Ratio | str | tuple[Value, ...]

_RATIO = re.compile(r"-?[1-9][0-9]*/[1-9][0-9]*")


class Ratio(Fraction):
    """An exact fraction that compares with a float as that float's nearest neighbour does.

    A third is computed exactly, and `x == 1/3` still holds for it, as it does in programs that compute with floats.

    >>> Ratio(1, 3) == 1 / 3, Ratio(1, 3) > 1 / 3, Fraction(1, 3) == 1 / 3
    (True, False, False)
    >>> Ratio(1, 3) + Ratio(2, 3) == 1
    True
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if type(other) is Ratio:  # lists of thousands are compared
            return self.numerator == other.numerator and self.denominator == other.denominator
        return float(self) == other if isinstance(other, float) else Fraction.__eq__(self, other)

    def __lt__(self, other: Any) -> bool:
        if type(other) is Ratio:
            return self.numerator * other.denominator < other.numerator * self.denominator
        return float(self) < other if isinstance(other, float) else Fraction.__lt__(self, other)

    def __le__(self, other: Any) -> bool:
        return float(self) <= other if isinstance(other, float) else Fraction.__le__(self, other)

    def __gt__(self, other: Any) -> bool:
        return float(self) > other if isinstance(other, float) else Fraction.__gt__(self, other)

    def __ge__(self, other: Any) -> bool:
        return float(self) >= other if isinstance(other, float) else Fraction.__ge__(self, other)

    __hash__ = Fraction.__hash__


def _stay_ratio(name: str) -> None:
    """Arithmetic on `Fraction` returns `Fraction`; a user's `1 - x == 2/3` needs the result to be a `Ratio` again."""
    plain = getattr(Fraction, name)

    def method(self: Ratio, *others: Any) -> Any:
        result = plain(self, *others)
        return Ratio(result) if type(result) is Fraction else result

    method.__name__ = name
    setattr(Ratio, name, method)


for _operator in ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "mod", "rmod", "neg", "abs"):
    _stay_ratio(f"__{_operator}__")


def canonical(value: Any, nesting: int = 0) -> Value:
    """The value that a Python object stands for; raises `BadInput` for an object that is none.

    >>> canonical(2.0), canonical(Fraction(4, 2)), canonical(Fraction(1, 2)), canonical(True)
    (2, 2, Ratio(1, 2), True)
    """
    if value is None or type(value) is bool:
        return value
    if type(value) is int:
        return value if -(1 << 60) < value < 1 << 60 else _small(value)
    if isinstance(value, str):
        if len(value) > MAX_TEXT:
            raise BadInput(f"a string of more than {MAX_TEXT:,} characters is not a value")
        return str(value)
    if isinstance(value, tuple):
        if len(value) > MAX_TEXT:
            raise BadInput(f"a tuple of more than {MAX_TEXT:,} values is not a value")
        if nesting == MAX_NESTING:
            raise BadInput(f"a tuple nested more than {MAX_NESTING} deep is not a value")
        return tuple(_defined(canonical(part, nesting + 1)) for part in value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise BadInput(f"{float(value)} is not a value; return None where the result is undefined")
        return _small(int(value)) if value.is_integer() else float(value)
    if isinstance(value, Fraction):
        return _small(value.numerator) if value.denominator == 1 else _small(Ratio(value))
    if hasattr(value, "dtype") and getattr(value, "ndim", None) == 0:  # an array library's scalar
        return canonical(value.item())
    raise BadInput(
        f"a {type(value).__name__} is not a value; values are numbers, strings, truth values, tuples and None"
    )


def _small(number: Any) -> Any:
    if max(number.numerator.bit_length(), number.denominator.bit_length()) > MAX_BITS:
        raise BadInput(f"a number of more than {MAX_BITS:,} binary digits is not a value")
    return number


def _defined(part: Value) -> Value:
    if part is None:
        raise BadInput("a tuple with None inside is not a value; return None alone where the result is undefined")
    return part


def is_number(value: Value) -> bool:
    """Truth values count as the numbers 0 and 1."""
    kind = type(value)  # an abstract class such as Fraction's takes long to ask
    return kind is int or kind is Ratio or kind is float or kind is bool or isinstance(value, (int, float, Fraction))


def identity(value: Value) -> tuple[str, Any]:
    """A dictionary key that is equal exactly for the same value: unlike in Python, `True` is not `1`."""
    if type(value) is tuple:
        kinds = tuple(map(type, value))
        return ("tuple", (kinds, value) if tuple not in kinds else tuple([identity(part) for part in value]))
    if type(value) is Ratio:  # the hash of a fraction takes a modular power, and lists of thousands are looked up often
        return ("Ratio", (value.numerator, value.denominator))
    return (type(value).__name__, value)


def answer(value: Value) -> tuple[str, Any]:
    """A dictionary key that is equal exactly for values that are the same as an answer of a program.

    A float and a fraction that are the same number are printed alike; True and 1 are not.

    >>> answer(0.5) == answer(Ratio(1, 2)), answer(True) == answer(1)
    (True, False)
    """
    return identity(reduced(exact(value))) if type(value) is float else identity(value)


def identities(values: Iterable[Value]) -> list[tuple[str, Any]]:
    """`identity` of each value; the same object, which a table names many times, is looked at once."""
    found = list(values)
    numbers = list(map(id, found))
    known = {number: identity(value) for number, value in dict(zip(numbers, found, strict=True)).items()}
    return [known[number] for number in numbers]


def exact(value: Value) -> Fraction:
    """The number that a numerical value is; a float is the binary fraction it stores."""
    return Fraction(value)


def reduced(number: Fraction) -> Value:
    """The canonical value of an exact number: an integer when it is one."""
    return number.numerator if number.denominator == 1 else Ratio(number)


def plain(value: Value) -> Value:
    """The value as users print it: a `Ratio` becomes the nearest float."""
    if isinstance(value, Ratio):
        return float(value)
    return tuple(plain(part) for part in value) if type(value) is tuple else value


def in_order(values: Iterable[Value]) -> tuple[Value, ...]:
    """Distinct values in the one order that files use: numbers by size, then strings, then tuples."""
    found = list(values)
    unique = list(dict(zip(identities(found), found, strict=True)).values())
    kinds = {(type(x), *(map(type, x) if type(x) is tuple else ())) for x in unique}
    if len(kinds) == 1 and all(set(kind[1:] or kind) <= {int, str} for kind in kinds):
        return tuple(sorted(unique))
    # Floats compare much faster than fractions and in the same order, except that some become equal.
    ranked = sorted([(_rough_rank(value), place) for place, value in enumerate(unique)])
    ties = any(x[0] == y[0] for x, y in zip(ranked, ranked[1:], strict=False))
    return tuple(sorted(unique, key=_rank) if ties else [unique[place] for _, place in ranked])


def all_exact(values: Iterable[Value]) -> bool:
    """Whether all values are numbers that arithmetic does not round."""
    return set(map(type, values)) <= {int, bool, Ratio, Fraction}


def _rough_rank(value: Value) -> tuple:
    if is_number(value):
        try:
            return (0, float(value))
        except OverflowError:
            return (0, math.inf if value > 0 else -math.inf)
    return _rank(value)


def _rank(value: Value) -> tuple:
    kind = type(value)
    if kind is int or kind is bool:
        return (0, value, kind.__name__)
    if is_number(value):
        return (0, exact(value), type(value).__name__)
    return (1, value) if isinstance(value, str) else (2, len(value), tuple(_rank(part) for part in value))


def to_json(value: Value) -> Any:
    """A JSON object that `from_json` turns into the same value; floats by their exact hexadecimal digits."""
    if isinstance(value, Ratio):
        numerator, denominator = value.as_integer_ratio()
        return {"ratio": f"{numerator}/{denominator}"}
    if isinstance(value, float):
        return {"float": value.hex()}
    return {"tuple": [to_json(part) for part in value]} if isinstance(value, tuple) else value


def from_json(data: Any) -> Value:
    """The value of `to_json`; anything that `to_json` does not write is refused."""
    try:
        value = canonical(_read(data))
    except RecursionError:
        raise BadInput("a value of the file is nested too deeply") from None
    if to_json(value) != data:
        raise BadInput(f"{str(data)[:80]} is not how a value is written")
    return value


def _read(data: Any) -> Value:
    if data is None or type(data) in (bool, int, str):
        return data
    if isinstance(data, dict) and len(data) == 1:
        ((kind, content),) = data.items()
        if kind == "ratio" and isinstance(content, str) and len(content) < 3_000 and _RATIO.fullmatch(content):
            return Ratio(content)
        if kind == "tuple" and isinstance(content, list):
            return tuple(_read(part) for part in content)
        if kind == "float" and isinstance(content, str):
            try:
                return float.fromhex(content)
            except (ValueError, OverflowError):
                pass
    raise BadInput(f"{str(data)[:80]} is not how a value is written")
