"""The claim in one plain sentence: the same words in the checker, the report and the command line.

Standard library only.
"""

from __future__ import annotations

from collections.abc import Sequence

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
    return f"At every real point {point} of {domain}, {what} from {shown} by at most {epsilon}."
