"""`CompiledCircuit`: a Boolean circuit with the weights of the decoder that computes it, its runs and its files.

Compiling needs NumPy alone; JAX is imported when the circuit runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Int

from certiformer.compiler.circuits.weights import START, decoder
from certiformer.compiler.folder import files_of, load_model, save_computation
from certiformer.compiler.stored import stored
from certiformer.errors import BadInput
from certiformer.kernel.certificate import Certificate
from certiformer.kernel.files import GATES, read_bytes
from certiformer.kernel.meanings.gates import Gates
from certiformer.model.config import Config

if TYPE_CHECKING:
    from certiformer.model.transformer import Transformer

RULE = "chain_of_thought_circuit"
DTYPES = ("float64", "float32")  # in bfloat16 two units of a pair may differ by more than the proof has room for


@dataclass(frozen=True)
class CompiledCircuit:
    """A circuit and the decoder that writes one token for each of its gates."""

    circuit: Gates
    config: Config
    tensors: dict[str, np.ndarray]

    @cached_property
    def transformer(self) -> Transformer:
        """The same as the one `Transformer`."""
        from certiformer.model.transformer import Transformer

        return Transformer(self.config, self.tensors)

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

    def files(self) -> dict[str, bytes]:
        """The files of the folder, all but the certificate."""
        return files_of(self.config, self.tensors, GATES, self.circuit.to_text())

    def save(self, directory: str | Path, force: bool = False) -> Certificate:
        """Write the folder, with the certificate of the checker, which is returned."""
        return save_computation(self.files(), RULE, directory, force)


def compile_circuit(circuit: Gates, dtype: str = "float64") -> CompiledCircuit:
    """The decoder of a circuit.

    >>> from certiformer.compiler.circuits.file import parse_circuit
    >>> adder = parse_circuit('inputs=["a","b"]\\noutputs=["c","s"]\\ngates=[["s","XOR","a","b"],["c","AND","a","b"]]')
    >>> compile_circuit(adder).run((1, 1))
    {'a': 1, 'b': 1, 's': 0, 'c': 1}
    """
    if dtype not in DTYPES:
        raise BadInput(f"a circuit is stored in {', '.join(DTYPES)}, not {dtype!r}")
    config, tensors = decoder(circuit, dtype)
    return CompiledCircuit(circuit, config, {name: stored(tensor, dtype) for name, tensor in tensors.items()})


def load_circuit(directory: str | Path) -> CompiledCircuit:
    """The compiled circuit that `save` wrote."""
    circuit = Gates.from_text(read_bytes(Path(directory) / GATES))
    model = load_model(directory)
    if model.config.tokens != 1 + len(circuit.places) or model.config.input.vocabulary != 3:
        raise BadInput(f"the transformer in {directory} is not that of the circuit beside it")
    return CompiledCircuit(circuit, model.config, {name: np.asarray(t) for name, t in model.tensors.items()})
