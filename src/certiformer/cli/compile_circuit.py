"""`certiformer compile circuit`: from a Boolean circuit to a decoder that is proved to write the value of every gate."""

from __future__ import annotations

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
    from certiformer.api.compiling import compile_circuit
    from certiformer.cli.compile import report

    began = time.monotonic()
    out = Path(options.out) if options.out is not None else Path("runs") / Path(options.file).stem
    compiled = compile_circuit(options.file, dtype=options.dtype, out=out, force=options.force)
    count = len(compiled.subject.circuit.inputs)
    bits = ("" if count > 20 else " ").join("01"[number % 2] for number in range(count))
    return report(compiled, began, f'"{bits}"', terminal)
