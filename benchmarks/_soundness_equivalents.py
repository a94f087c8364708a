"""Planted faults that change nothing that the kernel accepts, with the reason; `_soundness_mutants` leaves them out.

An entry is matched by file name, function, kind of fault and changed expression (its first 90 characters), never by a
line, so that the list survives edits; an entry that matches nothing any more does no harm. *Refused anyway* means that a
later check refuses the same inputs with another sentence.
"""

from __future__ import annotations

DROPPED, FLIPPED, PAD, ONE_OFF, FIELD, SWAPPED = (
    "dropped case", "flipped inequality", "missing pad", "off by one", "unchecked field", "swapped argument"
)  # fmt: skip
NEVER = "no input comes here: all nodes and kinds are listed before"
SAME = "both orders are the same number"
FINER = "how often a leaf is bisected or a list pruned further is a matter of time; every leaf is still enclosed"
SHAPE = "refused anyway: no configuration calls for such a shape"

# file, function, kind, the changed expression -> why nothing that is accepted can change
EQUIVALENT: dict[tuple[str, str, str, str], str] = {
    ("check.py", "_decide", FIELD, "raise Refused('the recorded witness contradicts the proof')"):
        "both ends are proved before they are compared, so that this is never raised unless something else is wrong",
    ("forward.py", "node_value", FIELD, "raise TypeError(f'{node} is no node that follows an input')"): NEVER,
    ("arrays.py", "ArrayProgram.source", FIELD, "raise TypeError('node 0 of an array program is its input')"): NEVER,
    ("taylor.py", "compose", SWAPPED, "add(multiply(result, inner), constant(tab, series[i]))"): SAME,
    ("taylor.py", "_power_series_quotient", SWAPPED, "need - q * centre"): "only its absolute value is used",
    ("cover.py", "_leaf", SWAPPED, "extra - 1"): FINER,
    ("cover.py", "_leaf", ONE_OFF, "1"): FINER,
    ("cover.py", "prove_piece", PAD, "level + 1"): FINER,
    ("cover.py", "_leaf", FIELD, "raise Refused(f'on the box {box} the function is not defined: {singular}')"):
        "refused anyway by the next line, in other words",
    ("weights.py", "_read_tensor", FIELD, "raise ValueError"): SHAPE,
    ("programs.py", "_is_rational", ONE_OFF, "2"): "refused anyway: the digits of both parts are counted one line below",
    ("points.py", "Bundle.add", FIELD, "raise Refused('a hidden unit of the transformer could not be enclosed')"):
        "refused anyway: what is not finite stays so, and the outputs are looked at",
}  # fmt: skip
