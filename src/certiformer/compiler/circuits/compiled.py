"""`GateWriter`: a Boolean circuit in the weights of a decoder that writes its gates, and how it is run.

Compiling needs NumPy alone; JAX is imported when the circuit runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Int

from certiformer.compiler.circuits.chain_of_thought_circuit import START, decoder
from certiformer.compiler.circuits.file import split_bits
from certiformer.compiler.computation import Computation, arrays_of
from certiformer.compiler.tensors import stored
from certiformer.errors import BadInput
from certiformer.kernel.files import GATES
from certiformer.kernel.meanings.gates import Gates
from certiformer.model.config import Config

if TYPE_CHECKING:
    from certiformer.model.transformer import Transformer

RULE = "chain_of_thought_circuit"
DTYPES = ("float64", "float32")  # in bfloat16 two units of a pair may differ by more than the proof has room for


@dataclass(frozen=True)
class GateWriter(Computation):
    """A circuit and the decoder that writes one token for each of its gates."""

    circuit: Gates
    config: Config
    tensors: dict[str, np.ndarray]

    @property
    def rule(self) -> str:
        return RULE

    @property
    def description(self) -> str:
        return self.circuit.to_text()

    @staticmethod
    def from_files(files: Mapping[str, bytes], model: Transformer) -> GateWriter:
        """What a run folder holds."""
        circuit = Gates.from_text(files[GATES])
        if model.config.tokens != 1 + len(circuit.places) or model.config.input.vocabulary != 3:
            raise BadInput("the transformer in this folder is not that of the circuit beside it")
        return GateWriter(circuit, model.config, arrays_of(model))

    def answers(self, sequence: Iterable[int] | str) -> list[int]:
        """The outputs of the circuit; `run` gives every signal."""
        bits = split_bits(sequence, self.circuit) if isinstance(sequence, str) else sequence
        signals = self.run(bits)
        return [signals[name] for name in self.circuit.outputs]

    def sizes(self) -> dict[str, Any]:
        circuit = self.circuit
        return {"inputs": len(circuit.inputs), "gates": len(circuit.gates), "outputs": len(circuit.outputs)}

    def run(self, bits: Iterable[int]) -> dict[str, int]:
        """Every signal of the circuit: the inputs as given, the gates as the decoder wrote them, in that order."""
        given = self.circuit.check_bits(bits)
        return dict(zip(self.circuit.places, self.evaluate([given])[0].tolist(), strict=True))

    def evaluate(self, rows: Sequence[Sequence[int]] | np.ndarray) -> Int[np.ndarray, "rows signals"]:
        """The signals for several inputs at once, decoded in the stored type (`compiler.decode`)."""
        from certiformer.compiler.decode import greedy

        checked = np.array([self.circuit.check_bits(row) for row in np.asarray(rows).tolist()], np.int64)
        checked = checked.reshape(len(rows), len(self.circuit.inputs))
        prompts = np.concatenate([np.full((len(checked), 1), START), checked], axis=1)
        written = greedy(self.config, self.tensors, prompts, np.array([0, 1, -1]), len(self.circuit.gates))
        # The proof says that this cannot happen; a run that breaks it must not go on.
        if not np.isin(written, (0, 1)).all():
            raise ValueError("the decoder wrote something besides 0 and 1")
        return np.concatenate([checked, written], axis=1)


def gate_writer(circuit: Gates, dtype: str = "float64") -> GateWriter:
    """The decoder of a circuit.

    >>> from certiformer.compiler.circuits.file import parse_circuit
    >>> adder = parse_circuit('inputs=["a","b"]\\noutputs=["c","s"]\\ngates=[["s","XOR","a","b"],["c","AND","a","b"]]')
    >>> gate_writer(adder).run((1, 1))
    {'a': 1, 'b': 1, 's': 0, 'c': 1}
    """
    if dtype not in DTYPES:
        raise BadInput(f"a circuit is stored in {', '.join(DTYPES)}, not {dtype!r}")
    config, tensors = decoder(circuit, dtype)
    return GateWriter(circuit, config, {name: stored(tensor, dtype) for name, tensor in tensors.items()})
