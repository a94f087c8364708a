"""Automata that write down one state for every symbol: what a row means, and how the stream is planned.

The prompt is the word on rows 0 to L - 1, the token `end` on rows L to T, and the start state on row T + 1. Row T + 1
+ t holds the state after t symbols, and looks at row t: a symbol, or `end` at t = L. It writes the state that the
table says, or on `end` whether the state accepts; induction over t."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from certiformer.kernel import Refused
from certiformer.kernel.computation import Files, Finding
from certiformer.kernel.files import AUTOMATON, CONFIG, MODEL
from certiformer.kernel.meanings.automaton import Automaton
from certiformer.kernel.situations.cells import Cell, Link, Meaning
from certiformer.kernel.situations.plan import Step, unit_vectors
from certiformer.kernel.situations.reports import NOT_CLAIMED as NOT_CLAIMED
from certiformer.kernel.situations.reports import Report, automaton_claim, automaton_finding, report_of
from certiformer.kernel.situations.walk import Walk
from certiformer.kernel.weights import Tensor, read_model

END = "end"


def written_meaning(automaton: Automaton, rows: int) -> Meaning:
    """Rows from T + 1 on hold a state and look at a symbol or `end`; the tokens are symbols, `end`, and states."""
    states, kinds = range(len(automaton.states)), (*range(len(automaton.symbols)), END)
    tokens = (*(("read", kind) for kind in kinds), *(("state", q) for q in states))
    rejected = len(automaton.states)

    def written(q: int, kind: Any) -> int:
        return rejected + (q >= automaton.rejecting) if kind == END else automaton.following[kind][q]

    cells = {
        "row": Cell(tuple(range(rows)), ("row",), lambda row: row),
        "token": Cell(tokens, ("state",), lambda q: ("state", q)),
        "read": Cell(tokens, ("kind",), lambda kind: ("read", kind)),
        "written": Cell(tuple(range(rejected + 2)), ("state", "kind"), written),
    }
    bases = {"row": tuple(range(rows)), "state": tuple(states), "kind": kinds}
    return Meaning(bases, cells, (), {"to read": Link(lambda row: row - rows // 2, {"token": "read"})})


def written_walk(automaton: Automaton, config: dict[str, Any], tensors: Mapping[str, Tensor]) -> Walk:
    """The walk of a proof: every row that holds a state reads out the token that is to be written next."""
    states, kinds, rows = len(automaton.states), len(automaton.symbols) + 1, config["input"]["tokens"]
    if rows < 2 or rows % 2:
        raise Refused("a chain of thought has room for a prompt and as many states")
    meaning = written_meaning(automaton, rows)
    outputs, tokens = meaning.cell("written").domain, meaning.cell("token").domain
    first = states + kinds
    walk = Walk(config, tensors, meaning)
    walk.require_decoder()
    steps = [
        Step(unit_vectors("read", tokens, first + len(outputs), tokens[:kinds]), ("to read",)),
        Step(unit_vectors("written", outputs, first, outputs)),
    ]
    contents = walk.passed(walk.embedding(), steps, range(rows // 2, rows))
    walk.require_outputs(contents, [*unit_vectors("written", outputs, 0, outputs).values()], meaning)
    return walk


def sentence(files: Files) -> str:
    """The claim in one plain sentence."""
    automaton, (config, _) = Automaton.from_text(files[AUTOMATON]), read_model(files[CONFIG], files[MODEL])
    return automaton_claim(
        automaton, config["input"]["tokens"] // 2 - 1, "the tokens that the decoder writes", config["dtype"]
    )


def find(files: Files) -> Finding:
    """Why the claim holds, with the smallest margin and what it was found over; raises `Refused` or `BadInput`."""
    automaton, (config, tensors) = Automaton.from_text(files[AUTOMATON]), read_model(files[CONFIG], files[MODEL])
    return automaton_finding(prove(automaton, config, tensors), automaton, config["input"]["tokens"] // 2 - 1)


def prove(automaton: Automaton, config: dict[str, Any], tensors: Mapping[str, Tensor]) -> Report:
    """Check that the stored decoder is the automaton; raises `Refused` with the reason when it is not."""
    return report_of(written_walk(automaton, config, tensors))
