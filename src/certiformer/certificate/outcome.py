"""The four outcomes of a claim, and the exit code each one gives.

An outcome is data. `undecided` is an ordinary result, not an error; an exception is reserved for bad input.
"""

from __future__ import annotations

from enum import Enum
from fractions import Fraction


class Outcome(Enum):
    """What is known about a claim sup |T - f| <= epsilon.

    >>> Outcome.REFUTED.value, Outcome.REFUTED.explanation
    ('refuted', 'a point of the domain where the error exceeds epsilon was found and verified')
    """

    PROVED = "proved"
    REFUTED = "refuted"
    UNDECIDED = "undecided"
    INVALID = "invalid"

    @property
    def explanation(self) -> str:
        return _EXPLANATIONS[self]

    def exit_code(self, level: int) -> int:
        """0 only for a proof that level 2 accepted; 1 refuted; 2 invalid; 3 undecided or level 1 only."""
        if self is Outcome.PROVED:
            return 0 if level == 2 else 3
        return {Outcome.REFUTED: 1, Outcome.INVALID: 2, Outcome.UNDECIDED: 3}[self]

    def word(self, level: int, *, checked: bool) -> str:
        """The one word for an outcome: *certified* is said only by whoever saw the checker accept.

        >>> Outcome.PROVED.word(2, checked=True), Outcome.PROVED.word(2, checked=False)
        ('certified', 'proved, as recorded')
        """
        if self is not Outcome.PROVED:
            return self.value
        if level < 2:
            return "proved (numerical)"
        return "certified" if checked else "proved, as recorded"


_EXPLANATIONS = {
    Outcome.PROVED: "the error is at most epsilon at every point of the domain",
    Outcome.REFUTED: "a point of the domain where the error exceeds epsilon was found and verified",
    Outcome.UNDECIDED: "neither a proof nor a counterexample was found within the budget",
    Outcome.INVALID: "an assumption of the claim is violated, for instance the target is singular on the domain",
}


def json_number(text: str) -> float | str:
    """The float that JSON writes as exactly this number, or the text itself where there is none.

    >>> json_number("0.0987654321"), json_number("0.10000000000000000001")
    (0.0987654321, '0.10000000000000000001')
    """
    try:
        number = float(Fraction(text))
    except (ValueError, OverflowError, ZeroDivisionError):
        return text
    return number if Fraction(repr(number)) == Fraction(text) else text
