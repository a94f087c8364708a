"""What every class of functions has in common: checked parameters, an upper and a lower bound, a statement."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import fields
from fractions import Fraction
from typing import Any, ClassVar

from certiformer.errors import BadInput
from certiformer.sizes.statement import Lower, Statement, Upper

LARGEST = 10_000  # of whole-numbered parameters: beyond, the sizes have more digits than anybody reads


class Kind(ABC):
    """A class of functions; its dataclass fields are its parameters, named as the flags of the command line."""

    title: ClassVar[str]
    exact: ClassVar[bool] = False  # without an epsilon: the functions have finitely many values
    axis: ClassVar[str] = "eps"  # what a budget of weights is turned into
    largest: ClassVar[int] = LARGEST  # value of that axis, for classes that are exact

    @abstractmethod
    def upper(self, epsilon: Fraction) -> Upper:
        """The construction; a class that is exact does not look at epsilon."""

    @abstractmethod
    def lower(self, epsilon: Fraction) -> Lower:
        """What nothing can be below."""

    @abstractmethod
    def distance(self) -> str:
        """How far the two are apart, or why they are tight."""

    def statement(self, epsilon: Fraction, bits_per_weight: int = 64) -> Statement:
        """Both bounds at one epsilon."""
        parameters = {each.name: _plain(getattr(self, each.name)) for each in fields(self)}  # type: ignore[arg-type]
        upper, lower = self.upper(epsilon), self.lower(epsilon)
        return Statement(
            self.title, parameters, None if self.exact else epsilon, upper, lower, self.distance(), bits_per_weight
        )


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Fraction) else value


def whole(name: str, value: int, least: int = 1, largest: int = LARGEST) -> int:
    """A parameter that is a whole number."""
    if type(value) is not int or not least <= value <= largest:
        raise BadInput(f"--{name} is a whole number from {least:,} to {largest:,}, not {value!r}")
    return value


def positive(name: str, value: Fraction | str | float) -> Fraction:
    """A parameter that is an exact positive number; a float means its shortest decimal."""
    try:
        number = Fraction(repr(value) if isinstance(value, float) else value)
    except (ValueError, ZeroDivisionError):
        raise BadInput(f"--{name} is a positive number such as 0.1, 1e-3 or 1/3, not {value!r}") from None
    if not Fraction(1, 10**30) <= number <= 10**30:
        raise BadInput(f"--{name} lies between 1e-30 and 1e30, unlike {value!r}")
    return number
