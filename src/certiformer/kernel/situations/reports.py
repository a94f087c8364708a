"""What proofs about automata, machines and circuits say: the numbers of a walk, and what the forms of automata share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import frexp

from flint import arb

from certiformer.kernel import Refused
from certiformer.kernel.balls import decimal
from certiformer.kernel.computation import Finding
from certiformer.kernel.meanings.automaton import Automaton
from certiformer.kernel.situations.numbers import as_ball
from certiformer.kernel.situations.walk import Walk

NOT_CLAIMED = (
    "Longer words: `run` refuses them.",
    "That the table is the language its author wanted.",
)  # of automata


@dataclass(frozen=True)
class Report:
    """What was proved: the largest share of a wrong row, how far all is from failing, and how many situations were run."""

    leak: arb
    margin: arb
    cases: int


def report_of(walk: Walk) -> Report:
    """The report of a walk that proved the claim; its margin is how far what a head brings stays from thresholds."""
    if walk.margin is None:
        raise Refused("nothing of what the heads bring reaches a hidden unit")
    return Report(walk.leak, as_ball(walk.margin).lower(), walk.meaning.tally.checked)


def finding(report: Report, reason: str, sizes: Mapping[str, int | str]) -> Finding:
    """The reason and the numbers of the certificate; `reason` has places for `cases`, `margin`, and `leak`, which is the
    power of two that the leak is below."""
    if not report.margin > 0:
        raise Refused("what the head brings may be on either side of a threshold")
    margin, leak = decimal(report.margin, up=False), decimal(report.leak, up=True)
    power = f"2^{frexp(float(report.leak.upper()))[1]}"
    text = reason.format(cases=f"{report.cases:,}", margin=margin, leak=power)
    return Finding(text, {**sizes, "margin": margin, "leak": leak}, cases=report.cases)


def automaton_finding(report: Report, automaton: Automaton, length: int, how: str = "") -> Finding:
    """The same for a form of an automaton; `how` says what was gone through."""
    how = how or "all {cases} situations of a row were run through the stored weights;"
    arrives = "what the head brings stays {margin} away from the thresholds"
    reason = f"{how} {arrives}, and a wrong row gets a share of less than {{leak}}"
    sizes = {"length": length, "states": len(automaton.states), "symbols": len(automaton.symbols)}
    return finding(report, reason, sizes)


def automaton_claim(automaton: Automaton, length: int, how: str, dtype: str) -> str:
    """The sentence of a form; `how` says what gives the answer."""
    states, symbols = len(automaton.states), len(automaton.symbols)
    listed = symbols <= 8 and all(map(_is_plain, automaton.symbols))
    alphabet = ", ".join(automaton.symbols) if listed else f"an alphabet of {symbols}"
    return (
        f"For every word of 0 to {length:,} symbols over {alphabet}, {how} give{'s' * how.startswith('one')} exactly the"
        f" state of the automaton of {states} state{'s' * (states > 1)} after each symbol, and whether it accepts, in real"
        f" arithmetic and in a run in {dtype}."
    )


def _is_plain(symbol: str) -> bool:
    """Whether a symbol can stand in a sentence: one character or a short word, so that no symbol reads like a claim."""
    return len(symbol) == 1 or (len(symbol) <= 12 and symbol.isascii() and symbol.isalnum())
