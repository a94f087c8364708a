"""`certiformer run`: tokens in, tokens out, where every head looks, and the debugger."""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import Positional, arg

from certiformer.cli.options import Flag, OptionalText
from certiformer.cli.run_tables import pattern_lines, table_lines, trace_lines
from certiformer.cli.terminal import Terminal
from certiformer.errors import BadInput
from certiformer.kernel.files import AUTOMATON, GATES, LEARNER, MACHINE, PROGRAM

if TYPE_CHECKING:
    from certiformer.artifact import Artifact
    from certiformer.compiler.programs.program import TokenProgram
    from certiformer.compiler.programs.trace import Reading, Trace

# What else than a program may be in a folder; `run_kinds` runs it.
KINDS = {MACHINE: "machine", AUTOMATON: "automaton", GATES: "circuit", LEARNER: "incontext"}
SUMMARY = "Run a compiled program on an input: tokens in, tokens out."
EXAMPLES = """
  certiformer run runs/reverse "a b c"                          # a table of tokens and answers
  certiformer run runs/reverse "a b c" --attention              # where every head looks
  certiformer run runs/reverse "a b c" --attention --out a.html # the same as a page
  certiformer run runs/reverse "a b c" --trace                  # every variable beside the program's value
  certiformer run runs/reverse "a b c" --variable length        # one variable, after every sub-layer
  certiformer run runs/reverse --batch inputs.txt               # an input in every line; the answers, line by line
  certiformer run runs/bb5 "" --steps 5000                      # a compiled machine: the tape after so many steps
  certiformer run runs/bb5 --costs 8                            # the steps of all inputs of at most 8 symbols
  certiformer run runs/ridge --context data.csv --query "1,2"   # a learner: what the rows of a table predict

Tokens are separated by blanks; where all are single letters they may stand together. None means undefined.
exit codes: 0 done, 1 --trace found a variable that is not what the program says, 2 a token or an input that is refused
"""


@dataclass(kw_only=True)
class Options:
    """The flags of `run`."""

    directory: Annotated[Positional[str], arg(metavar="DIR")]
    """the folder of a compiled program, machine, automaton, circuit or learner"""
    tokens: Annotated[Positional[str | None], arg(metavar="TOKENS", help_behavior_hint="")] = None
    """the input; a learner has none"""
    steps: Annotated[int | None, arg(metavar="N", help_behavior_hint="(default: 1000)")] = None
    """of a compiled machine: how many steps at most"""
    costs: Annotated[int | None, arg(metavar="N", help_behavior_hint="")] = None
    """of a compiled machine: how many steps the inputs of at most N symbols need until it halts"""
    context: Annotated[str | None, arg(metavar="DATA.csv", help_behavior_hint="")] = None
    """of a learner: the rows to learn from, the last column being the answer"""
    query: Annotated[str | None, arg(metavar="X1,X2,..|FILE.csv", help_behavior_hint="")] = None
    """of a learner: what to predict for"""
    attention: Flag = False
    """also show the attention of every head"""
    trace: Flag = False
    """compare every residual variable with the program, and name the first that differs"""
    variable: OptionalText = None
    """compare the variables of this name, after every sub-layer in which they live"""
    out: Annotated[str | None, arg(metavar="FILE.html", help_behavior_hint="")] = None
    """write a page with the circuit and the attention on this input"""
    batch: Annotated[str | None, arg(metavar="FILE.txt", help_behavior_hint="")] = None
    """answer an input in every line, all run together; - reads from the standard input"""
    force: Flag = False
    """replace an earlier page"""
    json: Flag = False
    """print one JSON object"""
    quiet: Flag = False
    """the answers only"""


def run(options: Options, terminal: Terminal) -> int:
    """Run the transformer and print; returns the exit code."""
    from certiformer.api.folders import load
    from certiformer.compiler.programs.sources import read_input

    artifact = load(options.directory)
    kind = KINDS.get(artifact.certificate.subject)
    if kind is not None:
        return getattr(import_module("certiformer.cli.run_kinds"), f"run_{kind}")(artifact, options, terminal)
    if artifact.certificate.subject != PROGRAM:
        raise BadInput(
            f"{options.directory} holds an approximation, which is evaluated from Python: load(DIR).run(point)"
        )
    refuse_flags(options, "a compiled program", "tokens", "attention", "trace", "variable", "out", "batch", "force")
    compiled: TokenProgram = artifact.subject
    if options.batch is not None:
        return _run_batch(artifact, options, terminal)
    xs = read_input(options.tokens or "", compiled.vocab)
    if not xs:
        raise BadInput('the input has no tokens; write them with blanks between, as in "a b c"')
    outputs = compiled.run(xs)
    facts: dict[str, Any] = {"outcome": "done", "tokens": xs, "outputs": outputs, "dtype": compiled.dtype}
    facts["directory"] = options.directory
    wants_trace = options.trace or options.variable is not None
    trace = compiled.trace(xs, everywhere=options.variable is not None) if wants_trace else None
    if trace is not None and options.variable is not None:
        trace = trace.only(options.variable)
    patterns = _patterns(compiled, xs) if options.attention else []
    if options.out is not None:
        facts["page"] = str(_page(artifact, xs, Path(options.out), options.force))
    if terminal.json:
        facts |= {"attention": patterns} if options.attention else {}
        facts |= {"trace": [_reading(r) for r in trace.readings]} if trace is not None else {}
        terminal.emit(facts)
    else:
        _describe(compiled, xs, outputs, patterns, trace, terminal)
    return 1 if trace is not None and trace.first_wrong is not None else 0


def _run_batch(artifact: Artifact, options: Options, terminal: Terminal) -> int:
    """Answer an input in every line of a file; a line of answers for each."""
    from certiformer.compiler.programs.circuit_data import spell
    from certiformer.compiler.programs.sources import read_input
    from certiformer.rasp.interpreter import read_tokens

    if options.tokens is not None or options.attention or options.trace or options.variable or options.out:
        raise BadInput("--batch answers the inputs of a file and shows nothing else; look at one of them without it")
    compiled: TokenProgram = artifact.subject
    inputs = []
    for number, line in enumerate(_lines(str(options.batch)), 1):
        try:
            inputs.append(read_tokens(read_input(line, compiled.vocab), compiled.vocab, compiled.length))
        except BadInput as problem:
            raise BadInput(f"line {number} of {options.batch}: {problem}") from None
    answers = artifact.run_many(inputs)
    if terminal.json:
        facts = {"outcome": "done", "inputs": inputs, "outputs": answers, "dtype": compiled.dtype}
        terminal.emit({**facts, "directory": options.directory})
    else:
        for outputs in answers:
            terminal.say(" ".join(map(spell, outputs)))
    return 0


def _lines(file: str) -> list[str]:
    """The lines of a file, or of the standard input, without empty ones at the end."""
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise BadInput(f"{file} is not text in UTF-8") from None
    return text.rstrip().splitlines()


def refuse_flags(options: Options, what: str, *known: str) -> None:
    """One sentence for a flag that says nothing about `what`; `known` are the flags that do."""
    for field in fields(options):
        if field.name in (*known, "directory", "json", "quiet") or getattr(options, field.name) == field.default:
            continue
        name = "TOKENS" if field.name == "tokens" else f"--{field.name}"
        raise BadInput(f"{name} is not for {what}, which {options.directory} holds")


def _patterns(compiled: TokenProgram, xs: list[Any]) -> list[dict[str, Any]]:
    from certiformer.compiler.programs.circuit_data import patterns

    heads = patterns(compiled, xs)["heads"]
    return [{"name": head["name"], "weights": head["maps"][0]["values"]} for head in heads]


def _page(artifact: Artifact, xs: list[Any], path: Path, force: bool) -> Path:
    from certiformer.compiler.programs.circuit_data import circuit_data
    from certiformer.disk import put_file
    from certiformer.report.circuit_page import write_circuit

    put_file(path, write_circuit(circuit_data(artifact, xs)).encode("utf-8"), force)
    return path


def _describe(
    compiled: TokenProgram,
    xs: list[Any],
    outputs: list[Any],
    patterns: list[dict[str, Any]],
    trace: Trace | None,
    terminal: Terminal,
) -> None:
    from certiformer.compiler.programs.circuit_data import spell

    if terminal.quiet:
        terminal.say(" ".join(map(spell, outputs)))
        return
    for line in table_lines(list(map(spell, xs)), list(map(spell, outputs))):
        terminal.say(line)
    for pattern in patterns:
        terminal.say()
        terminal.fact("head", pattern["name"])
        for line in pattern_lines(list(map(spell, xs)), pattern["weights"]):
            terminal.say(line)
    if trace is not None:
        terminal.say()
        for line in trace_lines(trace):
            terminal.say(line)
        _verdict(trace, compiled, terminal)


def _verdict(trace: Trace, compiled: TokenProgram, terminal: Terminal) -> None:
    wrong = trace.first_wrong
    if wrong is None:
        most = max((r.deviation for r in trace.readings), default=0.0)
        count = f"{len(trace.readings):,} readings"
        terminal.fact("trace", f"{count} agree with the program; the largest deviation is {most:.2g}", "good")
        return
    from certiformer.compiler.programs.circuit_data import spell, sublayer_name

    position = wrong.wrong[0]
    where = f" (source {wrong.place})" if wrong.place else ""
    sentence = (
        f"{wrong.cell.name}{where} is the first variable that differs: after {sublayer_name(*wrong.after)}, at position"
        f" {position}, coordinate {wrong.cell.coordinate} holds {wrong.held[position]:.6g} instead of"
        f" {wrong.wanted[position]:.6g}, which stands for {spell(wrong.values[position])}"
    )
    terminal.fact("differs", sentence, "bad")


def _reading(reading: Reading) -> dict[str, Any]:
    from certiformer.compiler.programs.circuit_data import spell, sublayer_name

    return {
        "variable": reading.cell.name,
        "node": reading.cell.node,
        "coordinate": reading.cell.coordinate,
        "after": sublayer_name(*reading.after),
        "values": list(map(spell, reading.values)),
        "wanted": list(reading.wanted),
        "held": [x if abs(x) < float("inf") else None for x in reading.held],
        "wrong": list(reading.wrong),
        "source": reading.place,
    }
