"""`GateWriter`: a Boolean circuit in the weights of a decoder that writes its gates, and how it is run.

Compiling needs NumPy alone; JAX is imported when the circuit runs.

The decoder has one block, two heads and eight hidden units, whatever the circuit. The theorem, its proof and its rule
are in `axioms.chain_of_thought_circuit`. The tokens are 0, 1 and `start`; the sequence is `start`, the inputs, and one
token for each gate. The stream of a token is laid out as

bit | left operand | right operand | out | truth table (4) | own code (B) | code of the left operand (B) | of the right

where the truth table and the operands at place p are those of the gate that is written *after* p. Codes are the binary
digits of a place as signs; where nothing is to be written, a token looks at itself and its table is 0.

*Hidden units.* For each content (x, y) of the operands, with z = table_xy + (left is x) + (right is y) - 2, the two
units 2 relu(z - 1/4) - 2 relu(z - 3/4) are exactly 0 or 1 as long as both operands are within 1/8 of a bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from certiformer.compiler.circuits.file import split_bits
from certiformer.compiler.computation import Computation, arrays_of
from certiformer.compiler.tensors import stored
from certiformer.errors import BadInput
from certiformer.kernel.files import GATES
from certiformer.kernel.meanings.gates import Gates
from certiformer.model.config import Attention, Block, Code, Config, FeedForward, Heads, Input, Readout

if TYPE_CHECKING:
    from certiformer.model.transformer import Transformer


SHARPNESS = 32.0  # the place of an operand leads by at least twice this
START = 2  # after the tokens 0 and 1
BIT, SLOTS, OUT, TABLE, CODES = 0, (1, 2), 3, 4, 8
_HEAD, _FFN = "blocks.0.attention.groups.0", "blocks.0.ffn"

Tensors = dict[str, Float[np.ndarray, "..."]]


def decoder(circuit: Gates, dtype: str) -> tuple[Config, Tensors]:
    """The transformer that writes the gates one by one; its numbers are exact in every stored type."""
    length = 1 + len(circuit.places)
    bits = (length - 1).bit_length() or 1
    width = CODES + 3 * bits
    attention = Attention((Heads(2, bits, 1),), scale="unit", mask="causal")
    config = Config(
        Input("ids", tokens=length, vocabulary=3),
        width=width,
        outputs=3,
        readout=Readout("all"),
        code=Code("table"),
        blocks=(Block(attention, FeedForward(8)),),
        dtype=dtype,
    )
    embed, read = np.zeros((3, width)), np.zeros((width, 3))
    embed[1, BIT] = 1.0
    read[OUT] = [-1.0, 1.0, 0.0]
    tensors = {
        "embed.weight": embed,
        "code.table": _places(circuit, bits),
        **_heads(bits, width),
        **_units(width),
        "readout.weight": read,
        "readout.bias": np.array([1.0, 0.0, -1.0]),
    }
    return config, tensors


def _places(circuit: Gates, bits: int) -> Float[np.ndarray, "length width"]:
    length, first = 1 + len(circuit.places), len(circuit.inputs)
    signs = 2.0 * ((np.arange(length)[:, None] >> np.arange(bits)) & 1) - 1.0
    looks = np.tile(np.arange(length)[:, None], (1, 2))
    rows = np.zeros((length, CODES + 3 * bits))
    for number, gate in enumerate(circuit.gates):
        place = first + number
        rows[place, TABLE : TABLE + 4] = [float(bit) for bit in gate.table_of_two]
        if gate.operands:
            looks[place] = circuit.places[gate.operands[0]], circuit.places[gate.operands[-1]]
    for part, places in enumerate((np.arange(length), looks[:, 0], looks[:, 1])):
        rows[:, CODES + part * bits : CODES + (part + 1) * bits] = signs[places]
    return rows


def _heads(bits: int, width: int) -> Tensors:
    query, key = np.zeros((2, width, bits)), np.zeros((2, width, bits))
    value, output = np.zeros((2, width, 1)), np.zeros((2, 1, width))
    for head, slot in enumerate(SLOTS):
        start = CODES + (1 + head) * bits
        query[head, start : start + bits] = SHARPNESS * np.eye(bits)
        key[head, CODES : CODES + bits] = np.eye(bits)
        value[head, BIT] = output[head, 0, slot] = 1.0
    parts = {"query": query, "key": key, "value": value, "output": output}
    return {f"{_HEAD}.{name}": tensor for name, tensor in parts.items()}


def _units(width: int) -> Tensors:
    up, bias, down = np.zeros((width, 8)), np.zeros(8), np.zeros((8, width))
    for content in range(4):
        wanted = divmod(content, 2)
        for part, (threshold, factor) in enumerate(((0.25, 2.0), (0.75, -2.0))):
            unit = 2 * content + part
            up[TABLE + content, unit] = 1.0
            up[list(SLOTS), unit] = [1.0 if x else -1.0 for x in wanted]
            # (slot is 1) is the slot itself, (slot is 0) is 1 - slot.
            bias[unit] = 2.0 - sum(wanted) - 2.0 - threshold
            down[unit, OUT] = factor
    biases = {f"{_FFN}.up_bias": bias, f"{_FFN}.down_bias": np.zeros(width)}
    return {f"{_FFN}.up": up, f"{_FFN}.down": down, **biases}


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
