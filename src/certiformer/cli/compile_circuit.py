"""`certiformer compile circuit`: from a Boolean circuit to a decoder that is proved to write the value of every gate."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from certiformer.cli.options import Flag, OptionalFolder
from certiformer.cli.terminal import Terminal

SUMMARY = "Turn a Boolean circuit into a one-block decoder that writes one token for each gate, proved for all inputs."
EXAMPLES = """
  certiformer compile circuit adder.toml                    # inputs, outputs, gates = [["sum", "XOR", "a", "b"], ...]
  certiformer compile circuit c17.bench --dtype float32     # the ISCAS benchmarks
  certiformer compile circuit multiplier.blif               # BLIF, as ABC and Yosys write it

An operation is AND, OR, XOR, NAND, NOR, XNOR, NOT, BUF or a truth table such as "0110".
exit codes: 0 certified, 2 a mistake in the file or the flags, 3 compiled but not proved
"""


@dataclass(kw_only=True)
class Options:
    """The flags of `compile circuit`."""

    file: Annotated[Positional[str], arg(metavar="FILE.toml|json|blif|bench")]
    """the circuit"""
    out: OptionalFolder = None
    """the folder to write (default: runs/NAME)"""
    dtype: Literal["float64", "float32"] = "float64"
    """the type of the weights and of the runs that the proof speaks of"""
    force: Flag = False
    """replace an earlier folder"""
    json: Flag = False
    """print one JSON object"""
    quiet: Flag = False
    """no notes"""


def run(options: Options, terminal: Terminal) -> int:
    """Compile, certify, write and report; returns the exit code."""
    from certiformer.axioms.chain_of_thought_circuit import sentence as sentence_of
    from certiformer.compiler.circuits import compile_circuit, read_circuit
    from certiformer.compiler.folder import computation_place
    from certiformer.kernel.files import GATES

    began = time.monotonic()
    circuit = read_circuit(options.file)
    out = Path(options.out) if options.out is not None else Path("runs") / Path(options.file).stem
    with computation_place(out, GATES, options.force):
        compiled = compile_circuit(circuit, options.dtype)
        certificate = compiled.save(out, options.force)
    sentence = sentence_of(compiled.files())
    sizes = {"inputs": len(circuit.inputs), "gates": len(circuit.gates), "outputs": len(circuit.outputs)}
    sizes |= {"width": compiled.config.width, "hidden": 8}
    seconds = round(time.monotonic() - began, 3)
    if terminal.json:
        facts = {"outcome": certificate.outcome.value, "level": certificate.level, "reason": certificate.reason}
        terminal.emit({**facts, "sentence": sentence, **sizes, "seconds": seconds, "directory": str(out)})
    else:
        proved = certificate.level == 2
        terminal.fact("certified" if proved else "not proved", sentence, "good" if proved else "weak")
        terminal.fact("proof", certificate.reason)
        size = f"width {sizes['width']}, 8 hidden units, 2 heads, {options.dtype}"
        terminal.fact("size", f"{size}; {seconds:.2f} s")
        count = len(circuit.inputs)
        bits = ("" if count > 20 else " ").join("01"[number % 2] for number in range(count))
        terminal.facts("next", [f'certiformer run {shlex.quote(str(out))} "{bits}"'])
    return certificate.outcome.exit_code(certificate.level)
