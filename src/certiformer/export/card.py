"""What an exported folder tells its readers about the claim that came with the transformer."""

from __future__ import annotations

from collections.abc import Mapping

SCOPE = (
    "The claim is about the real-number function of the stored weights. Running them in floating-point numbers, in any"
    " program, adds a rounding error that it does not include."
)


def claim_lines(notes: Mapping[str, str]) -> list[str]:
    """The Markdown lines about the claim and the origin of the weights; they end in a newline.

    >>> print("\\n".join(claim_lines({"model_sha256": "0f"})))
    ## What is claimed
    <BLANKLINE>
    Nothing: no proof came with these weights.
    <BLANKLINE>
    - model_sha256: 0f
    <BLANKLINE>
    """
    claim = notes.get("claim")
    lines = (
        [f"> {claim}", "", notes.get("claim_scope", SCOPE)] if claim else ["Nothing: no proof came with these weights."]
    )
    facts = [f"- {name}: {text}" for name, text in sorted(notes.items()) if name not in ("claim", "claim_scope")]
    return ["## What is claimed", "", *lines, "", *facts, ""]
