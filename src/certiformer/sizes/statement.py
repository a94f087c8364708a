"""What is known about the size of a transformer for a whole class: an upper bound, a lower bound and the gap.

Whole numbers throughout: upper bounds are rounded up and lower bounds down before they get here, so a printed gap is
one that is proved. None stands for *not known*.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import Any

from certiformer.kernel.programs import decimal_text

NOT_KNOWN = "not known"


@dataclass(frozen=True)
class Upper:
    """A construction that serves every member of the class.

    `weights` are its nonzero weights, `values` those of them that depend on the member, `bits` what chooses the
    member among finitely many that suffice; `buildable`: small enough for `command` to make it here.
    """

    weights: int
    values: int
    bits: int
    heads: int
    width: int
    layers: int
    units: int
    tokens: int
    theorems: tuple[str, ...]
    command: str
    buildable: bool


@dataclass(frozen=True)
class Lower:
    """What nothing is below: `bits` in any description at all, `values` if they depend continuously on the member."""

    bits: int
    values: int | None
    theorems: tuple[str, ...]
    others: tuple[str, ...] = ()  # further lower bounds, as sentences


@dataclass(frozen=True)
class Statement:
    """The class, where it is asked, and both bounds; `distance` says how far they are apart, and why."""

    name: str
    parameters: dict[str, Any]
    epsilon: Fraction | None
    upper: Upper
    lower: Lower
    distance: str
    bits_per_weight: int = 64
    notes: tuple[str, ...] = field(default=())

    @property
    def lower_weights(self) -> int:
        """How many weights of `bits_per_weight` bits hold the bits of the lower bound."""
        return -(-self.lower.bits // self.bits_per_weight)

    def gap(self) -> dict[str, Fraction | None]:
        """Upper over lower bound, exactly; None where the lower bound is zero or not known."""
        pairs = {
            "weights": (self.upper.weights, self.lower_weights),
            "values": (self.upper.values, self.lower.values),
            "bits": (self.upper.bits, self.lower.bits),
        }
        return {name: Fraction(above, below) if below else None for name, (above, below) in pairs.items()}

    def to_json(self) -> dict[str, Any]:
        """The statement as plain data: `upper, lower, gap, theorem, buildable` and what they are about."""
        upper, lower = asdict(self.upper), asdict(self.lower)
        theorems = {"upper": list(upper.pop("theorems")), "lower": list(lower.pop("theorems"))}
        others = list(lower.pop("others"))
        return {
            "class": self.name,
            "parameters": self.parameters,
            "epsilon": None if self.epsilon is None else str(self.epsilon),
            "upper": upper,
            "lower": {"weights": self.lower_weights, "bits_per_weight": self.bits_per_weight, **lower},
            "gap": {name: None if gap is None else ratio_text(gap) for name, gap in self.gap().items()},
            "theorem": theorems,
            "buildable": upper.pop("buildable"),
            "command": upper.pop("command"),
            "distance": self.distance,
            "also": [*others, *self.notes],
        }


def ratio_text(ratio: Fraction) -> str:
    """A proved gap in a few digits, rounded up.

    >>> ratio_text(Fraction(51**4, 49**4)), ratio_text(Fraction(2))
    ('1.174', '2')
    """
    text = decimal_text(ratio, up=True, digits=4)
    return text.rstrip("0").rstrip(".") if "." in text else text
