"""The words for what is claimed and what is not, shared by the report and the command line.

Only a proof that the checker accepted is called *certified*, and only by whoever saw it accept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from certiformer.kernel.certificate import BY_SITUATIONS, Outcome
from certiformer.report.numbers import bound_text

RECORDED = "This page repeats what its folder records; nothing of that was checked when the page was drawn."
"""What a page says that was drawn from a folder alone."""

NOT_CLAIMED = (
    ("Points outside the box", "nothing is said about them."),
    (
        "The rounding of an actual run",
        "the claim is about the real-number function of the stored weights; evaluating it in floating point adds an error"
        " of its own, which is not included in the bracket (a certificate made with --dtype bounds it separately).",
    ),
    ("What you meant", "the proof is about the recorded program, which may not be the function you had in mind."),
    ("Derivatives, integrals, monotonicity", "only values are compared."),
    ("Size and speed", "they are measured, not proved; a smaller transformer may exist."),
    ("Who made the files", "the hashes show accidents; anyone can make a consistent folder."),
)
"""What a reader might wrongly infer from a proved claim: (subject, sentence) pairs."""

NOT_CLAIMED_OF_ROWS = (
    ("Inputs that are not rows", "nothing is said about them, however close they are to a row."),
    *(pair for pair in NOT_CLAIMED[1:] if pair[0] != "What you meant"),
)
"""The same for a claim about a finite set of rows."""

RULES = {
    "boxes": "the box is cut into pieces, and the difference is enclosed on every piece",
    "theorem": "the weights have the form a theorem speaks of; its hypotheses are checked and its constants recomputed",
    "finite": "the transformer is evaluated at every row, in balls",
    "triangle": "through a third function P: |T - f| <= |T - P| + |P - f|",
    "outputs": "every output is proved by itself; the largest bound counts",
    "split": "T and f are sums over disjoint variables or directions; each part is proved by itself, the bounds add",
}
"""One line for each rule of a proof tree."""


AXIOM_STATUS = "proved on paper"
"""What is known of every axiom; none has a proof that a machine has checked."""


def axioms_of(rules: Sequence[str]) -> list[str]:
    """The axioms among the rules and theorems that a proof used.

    >>> axioms_of(["split", "theorem voronoi_second_order"]), axioms_of(["theorem looped_machine"])
    (['voronoi_second_order'], [])
    """
    names = [name.removeprefix("theorem ") for name in rules if name.startswith("theorem ")]
    return [name for name in names if name not in BY_SITUATIONS]


def rests_on(rules: Sequence[str], runs: bool = False) -> str:
    """What has to be believed of a proof, given the rules and theorems that it used; `runs`: a run was bounded, too.

    Rules that most claims do not need, and that the kernel loads for others only, are named.

    >>> rests_on(["split", "boxes"]), rests_on(["situations"]), rests_on(["theorem looped_machine"])
    ('the kernel', 'the kernel, rule situations', 'the kernel, rule situations')
    >>> rests_on(["split", "theorem voronoi_second_order", "boxes"], runs=True)
    'the kernel, rule rounding, and the axiom voronoi_second_order (proved on paper)'
    """
    axioms = axioms_of(rules)
    situations = "situations" in rules or any(f"theorem {name}" in rules for name in BY_SITUATIONS)
    named = [name for name, used in (("situations", situations), ("rounding", runs)) if used]
    kernel = f"the kernel, rule{'s' * (len(named) - 1)} {' and '.join(named)}" if named else "the kernel"
    if not axioms:
        return kernel
    noun = "axiom" if len(axioms) == 1 else "axioms"
    return f"{kernel}{',' if named else ''} and the {noun} {', '.join(axioms)} ({AXIOM_STATUS})"


def verdict(outcome: str, level: int, checked: bool) -> str:
    """The one word for an outcome: *certified* is said only by whoever saw the checker accept.

    >>> verdict("proved", 2, True), verdict("proved", 2, False), verdict("proved", 1, True), verdict("refuted", 2, True)
    ('certified', 'proved, as recorded', 'proved (numerical)', 'refuted')
    """
    if outcome != Outcome.PROVED.value:
        return outcome
    return "proved (numerical)" if level < 2 else "certified" if checked else "proved, as recorded"


def meaning(outcome: str, level: int, checked: bool) -> str:
    """One sentence that says what the word of `verdict` rests on."""
    if outcome == "refuted":
        return "A point of the box where the error exceeds the tolerance was found and enclosed."
    if outcome == "undecided":
        return "Neither a proof nor a counterexample was found within the budget."
    if outcome == "invalid":
        return "The claim makes no sense as stated, for instance because the target is singular on the box."
    if level < 2:
        return "A float64 search with outward rounding found a proof; the checker was not asked."
    if checked:
        return "The checker recomputed every step of the proof in ball arithmetic and accepted it."
    return "The folder records that the checker accepted; whether it does can be asked again at any time."


def sizes_text(facts: dict[str, Any]) -> str:
    """How large a transformer is, from its counts.

    >>> sizes_text({"blocks": 1, "heads": 2, "units": 0, "registers": 1600, "nonzero": 9, "dense": 12})
    '1 block, 2 heads, 1,600 registers, 9 nonzero of 12 weights'
    """
    nouns = {"blocks": "block", "heads": "head", "units": "hidden unit", "registers": "register"}
    parts = [_count(facts[key], noun) for key, noun in nouns.items() if facts[key] or key in ("blocks", "heads")]
    return f"{', '.join(parts)}, {facts['nonzero']:,} nonzero of {facts['dense']:,} weights"


def bracket_line(lower: str | None, upper: str | None) -> str:
    """Where the largest error lies, both ends rounded outward."""
    if upper is None and lower is None:
        return "no bound of sup |T - f| was proved"
    if upper is None:
        return f"{bound_text(lower, up=False)} <= sup |T - f|, and no upper bound was proved"
    return f"{bound_text(lower or '0', up=False)} <= sup |T - f| <= {bound_text(upper, up=True)}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
