"""The transformer before it has layers and coordinates: cells, the heads and tables that write them, and the read-out.

`extended_to_draft` writes it, `draft_to_layers` places it. Cells hold exact rationals (see
`kernel.situations.rasp.circuit`); whoever reads does it through a `Form`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from certiformer.compiler.linear_form import Form, Number

START = 0  # the cell that is 1 at the beginning-of-sequence token and 0 elsewhere


@dataclass(frozen=True)
class Feature:
    """What a cell holds for each listed value of its node and for undefined; `numbers` None: the value itself.

    `snapped` asks for numbers without rounding error however inexact the node is (see `gadgets.snap`): `zero` for a feature
    whose zeros must be exact, `bit` for one of exact zeros and ones.
    """

    numbers: tuple[Number, ...] | None
    undefined: Number | None = None
    or_more: bool = False
    snapped: str = ""

    def __hash__(self) -> int:  # asked for often; that of a fraction takes a modular power, so numerators must do
        known = self.__dict__.get("_hash")
        if known is None:
            tops = self.numbers
            if tops is not None and set(map(type, tops)) != {int}:
                tops = tuple([x.numerator for x in tops])
            known = hash((tops, self.undefined, self.or_more, self.snapped))
            object.__setattr__(self, "_hash", known)
        return known


@dataclass(frozen=True)
class DraftCell:
    """A cell of `node`; `by_token` or `by_position` holds its number for each, when the embedding writes it.

    `dips`: whether rounding may leave it below the smallest of its numbers, a zero below zero for instance.
    """

    node: int
    feature: Feature
    at_start: Number
    by_token: tuple[Number, ...] | None = None
    by_position: tuple[Number, ...] | None = None
    dips: bool = False


@dataclass(frozen=True)
class DraftHead:
    """A head that writes `cell`. Scores are the products of `queries` and `keys`, dimension by dimension."""

    kind: str  # read, width
    selector: int
    node: int
    causal: bool
    queries: tuple[Form, ...]
    keys: tuple[Form, ...]
    value: Form
    cell: int


@dataclass
class DraftTable:
    """Units that all see `ridge`: unit t is relu(slope * ridge + bias), and adds factor * unit to a cell.

    `offsets` is what each cell holds when no unit is active.
    """

    ridge: Form
    units: dict[tuple[Number, Number], int] = field(default_factory=dict)  # (slope, bias) -> number of the unit
    writes: dict[int, list[tuple[int, Number]]] = field(default_factory=dict)  # cell -> (unit, factor)
    offsets: dict[int, Number] = field(default_factory=dict)

    def unit(self, slope: Number, bias: Number) -> int:
        """The number of this unit, shared by all cells that need it."""
        return self.units.setdefault((slope, bias), len(self.units))


@dataclass
class Draft:
    """Everything the transformer consists of."""

    cells: list[DraftCell] = field(default_factory=list)
    heads: list[DraftHead] = field(default_factory=list)
    tables: list[DraftTable] = field(default_factory=list)
    output: Form = field(default_factory=Form)
    output_feature: Feature = field(default_factory=lambda: Feature(None))

    def add_cell(self, cell: DraftCell) -> int:
        self.cells.append(cell)
        return len(self.cells) - 1

    def at_start(self, form: Form) -> Number:
        """What the beginning-of-sequence token sees through a form."""
        return form.constant + sum(factor * self.cells[cell].at_start for cell, factor in form.terms)

    def with_start(self, form: Form, wanted: Number) -> Form:
        """The same form at data positions, with the wanted number at the beginning-of-sequence token."""
        return form + Form.of({START: wanted - self.at_start(form)})
