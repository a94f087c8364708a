"""The claim in one plain sentence: the same words in the checker, the report and the command line.

Standard library only.
"""

from __future__ import annotations

from collections.abc import Sequence

from certiformer.kernel.numbers import exact_text
from certiformer.target.parse import parse_epsilon

LONGEST_FORMULA = 400  # characters that still read as part of a sentence


def claim_sentence(variables: int, outputs: int, domain: str, formulas: Sequence[str], epsilon: str) -> str:
    """What is claimed, from the recorded program; never from the source text, which nothing depends on.

    >>> claim_sentence(1, 1, "[0, 1]", ["x1**2"], "0.1")
    "At every real point x1 of [0, 1], the transformer's output differs from x1**2 by at most 0.1."
    """
    point = "x1" if variables == 1 else "(x1, x2)" if variables == 2 else f"(x1, ..., x{variables})"
    one = outputs == 1
    what = "the transformer's output differs" if one else f"each of the transformer's {outputs} outputs differs"
    text = ", ".join(formulas)
    shown = "the recorded program" if len(text) > LONGEST_FORMULA else text if one else f"[{text}]"
    return f"At every real point {point} of {domain}, {what} from {shown} by at most {epsilon_text(epsilon)}."


def epsilon_text(text: str) -> str:
    """A tolerance as every sentence says it: the exact number that the text stands for, not the text.

    >>> epsilon_text("1/100"), epsilon_text("2*1e-7")
    ('0.01', '2e-7')
    """
    return exact_text(parse_epsilon(text))
