"""What the three theorems about automata have in common when they speak: the claim, the reason, what is not said."""

from __future__ import annotations

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
)


@dataclass(frozen=True)
class Report:
    """What was proved: the automaton, the longest word, the type of a run, the largest share of a wrong row, how far what
    a head brings stays from thresholds (None where there is none), and how many situations were run."""

    automaton: Automaton
    length: int
    dtype: str
    leak: arb
    margin: arb | None
    cases: int


def report_of(automaton: Automaton, length: int, walk: Walk) -> Report:
    """The report of a walk that proved the claim."""
    margin = None if walk.margin is None else as_ball(walk.margin)
    return Report(automaton, length, walk.config["dtype"], walk.leak, margin, walk.meaning.tally.checked)


def claim(automaton: Automaton, length: int, how: str, dtype: str) -> str:
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


def finding(report: Report, how: str = "") -> Finding:
    """The reason and the numbers of the certificate."""
    if report.margin is None or not report.margin > 0:
        raise Refused("what the head brings may be on either side of a threshold")
    margin, leak = decimal(report.margin, up=False), decimal(report.leak, up=True)
    power = frexp(float(report.leak.upper()))[1]  # the leak is below 2^power
    how = how or f"all {report.cases:,} situations of a row were run through the stored weights;"
    reason = (
        f"{how} what the head brings stays {margin} away from the thresholds, and a wrong row gets a share of less than"
        f" 2^{power}"
    )
    sizes = {"length": report.length, "states": len(report.automaton.states), "symbols": len(report.automaton.symbols)}
    return Finding(reason, {**sizes, "margin": margin, "leak": leak}, cases=report.cases)
