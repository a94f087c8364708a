"""Linear forms over the cells of the residual stream: how anything is read, whether by a head, a unit or the read-out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

Number = int | Fraction


@dataclass(frozen=True)
class Form:
    """constant + sum of factor * cell; cells by their number, in order, no factor zero."""

    terms: tuple[tuple[int, Number], ...] = ()
    constant: Number = 0

    @staticmethod
    def of(terms: Mapping[int, Number], constant: Number = 0) -> Form:
        return Form(tuple(sorted((cell, factor) for cell, factor in terms.items() if factor)), constant)

    def __add__(self, other: Form) -> Form:
        total: dict[int, Number] = dict(self.terms)
        for cell, factor in other.terms:
            total[cell] = total.get(cell, 0) + factor
        return Form.of(total, self.constant + other.constant)

    def scaled(self, factor: Number, shift: Number = 0) -> Form:
        """factor * self + shift."""
        terms = tuple((cell, factor * old) for cell, old in self.terms) if factor else ()
        return Form(terms, factor * self.constant + shift)

    @property
    def cells(self) -> tuple[int, ...]:
        return tuple(cell for cell, _ in self.terms)
