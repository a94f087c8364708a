"""The part of `certiformer run` that speaks of compiled circuits: bits in, bits out, and every gate on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from certiformer.cli.terminal import Terminal

if TYPE_CHECKING:
    from certiformer.artifact import Artifact
    from certiformer.cli.run import Options


def run(artifact: Artifact, options: Options, terminal: Terminal) -> int:
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
