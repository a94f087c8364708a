"""What `compile.py` demands of its rows, and how far each demand is met.

A row has the figures of our side (`ours`) and, where Tracr's library has the program, of its side (`peer`). Compile times
are seconds of the processor, which other work on the machine changes least.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

TIMES, FORWARD = 100.0, 5.0
LIMIT, LONG_LIMIT = 0.1, 1.0  # seconds to compile up to length 100, and above
SHARES = {("reverse", 50): 100.0, ("dyck1", 20): 50.0}  # how many times fewer parameters

Row = dict[str, Any]
Verdict = tuple[bool, str]  # reached, and the figure in words


class Goal(NamedTuple):
    """A demand on every row that it concerns: `judge` gives None for the others."""

    what: str
    judge: Callable[[Row], Verdict | None]


def judged(rows: list[Row]) -> Iterator[dict[str, Any]]:
    """For every goal how many of the rows that it concerns reach it, and which do not."""
    for what, judge in GOALS:
        verdicts = [(row, verdict) for row in rows if (verdict := judge(row)) is not None]
        missed = [f"{label(row)}: {words}" for row, (reached, words) in verdicts if not reached]
        yield {"goal": what, "of": len(verdicts), "reached": len(verdicts) - len(missed), "missed": missed}


def label(row: Row) -> str:
    return f"{row['name']} at {row['length']:,} over {row['vocabulary']}"


def ratios(row: Row) -> dict[str, float]:
    """Tracr's compile time and parameters by ours, our forward passes a second by Tracr's; those that can be said."""
    ours, peer = row["ours"], row.get("peer") or {}
    found = {}
    if "cpu" in peer and ours.get("cpu"):
        found["seconds"] = peer["cpu"] / ours["cpu"]
    if "parameters" in peer and ours.get("parameters"):
        found["parameters"] = peer["parameters"] / ours["parameters"]
    if "jitted" in peer and "jitted" in ours:
        found["forward"] = ours["jitted"] / peer["jitted"]
        found["shipped"] = ours["jitted"] / peer["shipped"]
    return found


def _certified(row: Row) -> Verdict:
    ours = row["ours"]
    return bool(ours.get("certified")), ours.get("reason") or ours.get("margin") or "no word why"


def _exact(row: Row) -> Verdict:
    ours = row["ours"]
    if "wrong" not in ours:
        return False, ours.get("reason") or "not run"
    return ours["wrong"] == 0 and ours["tried"] > 0, f"wrong on {ours['wrong']} of {ours['tried']}"


def _quick(row: Row) -> Verdict:
    limit = LIMIT if row["length"] <= 100 else LONG_LIMIT
    seconds = row["ours"].get("cpu")
    return seconds is not None and seconds < limit, "not compiled" if seconds is None else f"{seconds:.3f} s"


def _quicker(row: Row) -> Verdict | None:
    """Where Tracr was out of time its limit counts, so the true ratio is larger."""
    if "cpu" not in (row.get("peer") or {}):
        return None
    ratio = ratios(row).get("seconds", 0.0)
    return ratio >= TIMES, f"{ratio:.0f} times"


def _smaller(row: Row) -> Verdict | None:
    """At least as small, and the shares that are named."""
    if "parameters" not in (row.get("peer") or {}):
        return None
    ratio, wanted = ratios(row).get("parameters", 0.0), SHARES.get((row["name"], row["length"]), 1.0)
    return ratio >= wanted, f"{ratio:.2f} times fewer (goal {wanted:g})"


def _faster(row: Row) -> Verdict | None:
    if "jitted" not in (row.get("peer") or {}):
        return None
    ratio = ratios(row).get("forward", 0.0)
    return ratio >= FORWARD, f"{ratio:.2f} times"


GOALS = (
    Goal("certified by the checker (level 2)", _certified),
    Goal("the transformer agrees with the interpreter on every input tried", _exact),
    Goal(f"compiled in {LIMIT:g} s up to length 100, {LONG_LIMIT:g} s at 1,000", _quick),
    Goal(f"compiled {TIMES:g} times faster than by Tracr", _quicker),
    Goal("no more parameters than Tracr (reverse at 50: 1/100, dyck1 at 20: 1/50)", _smaller),
    Goal(f"forward pass {FORWARD:g} times that of Tracr, batch 256, length 50, both jitted", _faster),
)
