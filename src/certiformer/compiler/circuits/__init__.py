"""Boolean circuits as transformers: a circuit goes in, the weights of a decoder that writes a token a gate come out."""

from __future__ import annotations

from certiformer.compiler.circuits.compiled import GateWriter as GateWriter
from certiformer.compiler.circuits.compiled import gate_writer as gate_writer
from certiformer.compiler.circuits.file import read_circuit as read_circuit
from certiformer.compiler.circuits.file import split_bits as split_bits
from certiformer.kernel.meanings.gates import Gate as Gate
from certiformer.kernel.meanings.gates import Gates as Gates
