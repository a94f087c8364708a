"""The parts of `certiformer run` that speak of compiled machines, automata, circuits and learners."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from certiformer.cli.terminal import Terminal
from certiformer.errors import BadInput

if TYPE_CHECKING:
    from certiformer.artifact import Artifact
    from certiformer.cli.run import Options
    from certiformer.compiler.machines import Decoder, LoopedMachine, Moment, Result


def run_incontext(artifact: Artifact, options: Options, terminal: Terminal) -> int:
    """Predict with the learner of a folder; returns the exit code."""
    from certiformer.cli.run import refuse_flags
    from certiformer.compiler.incontext import read_context, read_queries

    refuse_flags(options, "a compiled learner", "context", "query")
    if options.context is None or options.query is None:
        raise BadInput('a learner needs rows and a question, for instance --context data.csv --query "0.3,1.2"')
    compiled = artifact.subject
    learner = compiled.learner
    x, y = read_context(options.context, learner.features, learner.rows)
    queries = read_queries(options.query, learner.features)
    outputs = compiled.outputs(x, y, queries)
    predictions = outputs[:, 0].astype(float).tolist()
    certificate = artifact.certificate
    unproved = [] if certificate.level == 2 else [f"the claim of this folder is not proved: {certificate.reason}"]
    remarks = [*unproved, *compiled.remarks(x, y, queries)]
    facts = compiled.extras(x, y, outputs)
    if terminal.json:
        answer: dict[str, Any] = {"outcome": "done", "predictions": predictions, "queries": queries.tolist()}
        answer |= {"rows": len(x), "learner": learner.learner, "covered": not remarks, "remarks": remarks, **facts}
        terminal.emit({**answer, "dtype": learner.dtype, "directory": options.directory})
        return 0
    for query, prediction in zip(queries.tolist(), predictions, strict=True):
        if terminal.quiet:
            terminal.say(repr(prediction))
        else:
            terminal.say(f"{', '.join(f'{value:g}' for value in query):>32}  ->  {prediction:.12g}")
    if not terminal.quiet:
        for name, value in facts.items():
            terminal.fact(name, _spelled(value))
        covered = "the recorded claim covers this context" if not remarks else "; ".join(remarks)
        terminal.fact("rows", f"{len(x):,} of at most {learner.rows:,}; {covered}", "" if remarks else "good")
    return 0


def _spelled(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_spelled, value))
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def run_circuit(artifact: Artifact, options: Options, terminal: Terminal) -> int:
    """Decode the gates of a folder's circuit and print its outputs; returns the exit code."""
    from certiformer.cli.run import refuse_flags
    from certiformer.compiler.circuits import split_bits

    refuse_flags(options, "a compiled circuit", "tokens", "trace")
    compiled = artifact.subject
    circuit = compiled.circuit
    signals = compiled.run(split_bits(options.tokens or "", circuit))
    outputs = [signals[name] for name in circuit.outputs]
    gates = {gate.name: signals[gate.name] for gate in circuit.gates}
    if terminal.json:
        facts = {"outcome": "done", "outputs": outputs, "names": list(circuit.outputs), "gates": gates}
        terminal.emit({**facts, "dtype": compiled.config.dtype, "directory": options.directory})
        return 0
    if terminal.quiet:
        terminal.say(" ".join(map(str, outputs)))
        return 0
    if options.trace:
        longest = max((len(gate.name) for gate in circuit.gates), default=0)
        for gate in circuit.gates:
            how = f"table {gate.table}" + (f" of {', '.join(gate.operands)}" if gate.operands else "")
            terminal.say(f"  {gate.name:<{longest}}  {gates[gate.name]}  {how}")
    terminal.fact("outputs", " ".join(f"{name}={bit}" for name, bit in zip(circuit.outputs, outputs, strict=True)))
    return 0


_STEPS = {"chain-of-thought": ("token written", "tokens written"), "": ("pass", "passes")}


def run_automaton(artifact: Artifact, options: Options, terminal: Terminal) -> int:
    """Read a word with the automaton of a folder; returns the exit code."""
    from certiformer.cli.run import refuse_flags
    from certiformer.cli.run_tables import table_lines
    from certiformer.compiler.automata import split_word

    refuse_flags(options, "a compiled automaton", "tokens")
    if options.tokens is None:
        raise BadInput('give the word to read, as in "a b a b"; the empty word is ""')
    compiled = artifact.subject
    word = split_word(options.tokens, compiled.automaton)
    result = compiled.run(word)
    answer = "accepted" if result.accepted else "rejected"
    if terminal.json:
        facts = {"outcome": "done", "accepted": result.accepted, "state": result.state, "states": list(result.states)}
        facts |= {"steps": result.steps, "form": compiled.form, "dtype": compiled.config.dtype}
        terminal.emit({**facts, "word": list(word), "directory": options.directory})
    elif terminal.quiet:
        terminal.say(answer)
    else:
        for line in table_lines(["", *word], [compiled.automaton.start, *result.states]):
            terminal.say(line)
        one, many = _STEPS.get(compiled.form, _STEPS[""])
        steps = f"{result.steps:,} {one if result.steps == 1 else many}"
        read = f"{len(word):,} symbol{'s' * (len(word) != 1)}"
        terminal.fact(answer, f"in state {result.state} after {read}; {steps}", "good")
    return 0


STEPS = 1_000  # where --steps is not given


def run_machine(artifact: Artifact, options: Options, terminal: Terminal) -> int:
    """Run the machine of a folder and print where it stands; returns the exit code."""
    from certiformer.cli.run import refuse_flags
    from certiformer.compiler.machines import Decoder, split_symbols

    refuse_flags(options, "a compiled machine", "tokens", "steps", "trace", "costs")
    compiled = artifact.subject
    if options.costs is not None:
        from certiformer.cli.run_costs import say_costs

        return say_costs(artifact, options, STEPS if options.steps is None else options.steps, terminal)
    word = split_symbols(options.tokens or "", compiled.machine)
    if isinstance(compiled, Decoder):
        result, moments = _decode(compiled, word, options)
    else:
        limit = STEPS if options.steps is None else options.steps
        # Single steps for a trace; a long run needs windows that are looked up.
        moments = compiled.trace(word, limit) if options.trace else []
        result = compiled.run(word, limit, "near" if limit <= 100_000 else "cached")
    if terminal.json:
        terminal.emit(_facts(result, moments, options.directory, compiled))
        return 0
    if terminal.quiet:
        terminal.say(" ".join(_used(result, compiled)))
        return 0
    for moment in moments:
        terminal.say(f"{moment.step:>8,}  {moment.state:<8} cell {moment.cell:>6}  reads {moment.symbol}")
    end = "halted" if result.halted else "running"
    terminal.fact(end, f"after {result.steps:,} steps in state {result.state}, the head on cell {result.cell}", "good")
    terminal.fact("tape", " ".join(_used(result, compiled)))
    terminal.fact("ones", f"{result.ones:,} cells are not blank")
    return 0


def _decode(compiled: Decoder, word: tuple[str, ...], options: Options) -> tuple[Result, list[Moment]]:
    """Steps up to the horizon; more are asked for only if the machine stops before."""
    asked = min(STEPS, compiled.steps) if options.steps is None else options.steps
    result, moments = compiled.follow(word, min(asked, compiled.steps))
    if asked > compiled.steps and not result.halted:
        raise BadInput(
            f"this {compiled.form} is proved for {compiled.steps:,} steps, and the machine has not stopped by then; compile"
            f" it with a longer horizon, or run it with --steps {compiled.steps}"
        )
    return result, moments if options.trace else []


def _facts(result: Result, moments: list[Moment], directory: str, compiled: LoopedMachine | Decoder) -> dict[str, Any]:
    facts: dict[str, Any] = {"outcome": "done", "halted": result.halted, "steps": result.steps, "state": result.state}
    facts |= {"tape": list(result.tape), "first": result.first, "cell": result.cell, "ones": result.ones}
    if moments:
        facts["trace"] = [[m.step, m.state, m.cell, m.symbol] for m in moments]
    return {**facts, "dtype": compiled.config.dtype, "directory": directory}


def _used(result: Result, compiled: LoopedMachine | Decoder) -> list[str]:
    """The used part of the tape, the head's cell in brackets."""
    from certiformer.compiler.machines import used_cells

    head = result.cell - result.first
    marked = [f"[{symbol}]" if place == head else symbol for place, symbol in enumerate(result.tape)]
    low, high = used_cells(result, compiled.machine)
    return marked[low : high + 1]
