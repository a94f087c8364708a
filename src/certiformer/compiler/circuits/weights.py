"""The weights of the decoder: one block, two heads, eight hidden units, whatever the circuit.

The theorem, its proof and its rule are in `axioms.chain_of_thought_circuit`. The tokens are 0, 1 and `start`; the
sequence is `start`, the inputs, and one token for each gate. The stream of a token is laid out as

    bit | left operand | right operand | out | truth table (4) | own code (B) | code of the left operand (B) | of the right

where the truth table and the operands at place p are those of the gate that is written *after* p. Codes are the binary
digits of a place as signs; where nothing is to be written, a token looks at itself and its table is 0.

*Hidden units.* For each content (x, y) of the operands, with z = table_xy + (left is x) + (right is y) - 2, the two units
2 relu(z - 1/4) - 2 relu(z - 3/4) are exactly 0 or 1 as long as both operands are within 1/8 of a bit.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from certiformer.kernel.meanings.gates import Gates
from certiformer.model.config import Attention, Block, Code, Config, FeedForward, Heads, Input, Readout

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
