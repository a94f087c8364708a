"""One block that writes a token for each gate computes a Boolean circuit: for all inputs at once, width O(log size).

The weights of the decoder: one block, two heads, eight hidden units, whatever the circuit. The tokens are 0, 1 and
`start`; the sequence is `start`, the inputs, and one token for each gate. The stream of a token is laid out as

    bit | left operand | right operand | out | truth table (4) | own code (B) | code of the left operand (B) | of the right

where the truth table and the operands at place p are those of the gate that is written *after* p. Codes are the binary
digits of a place as signs; where nothing is to be written, a token looks at itself and its table is 0.

*Hidden units.* For each content (x, y) of the operands, with z = table_xy + (left is x) + (right is y) - 2, the two units
2 relu(z - 1/4) - 2 relu(z - 3/4) are exactly 0 or 1 as long as both operands are within 1/8 of a bit.

Statement
    Let a circuit have n inputs and T gates with at most two operands, in an order in which they can be computed. The
    decoder reads the tokens `start`, x_1, ..., x_n and then writes one token after the other, each the one with the
    largest output. Suppose the stored block passes the checks below. Then for each of the 2^n inputs the tokens that
    it writes are the values of gate 1, ..., gate T, in real arithmetic and in every run in the stored type.

Source
    Li, Liu, Zhou and Ma 2024 (li2024, arXiv 2402.12875): with T steps of chain of thought, constant depth, constant
    precision and width O(log n), transformers compute what circuits of size T compute. *Upper bounds.* Without
    a chain of thought, constant depth gives no more than AC0 in constant precision (li2024) and no more than TC0 in
    precision O(log n) (merrill2023, arXiv 2207.00729); so the steps are needed, unless TC0 is all of P/poly.

Differs from the source in
    The weights are our own and explicit: width 3 ceil(log2(n + T + 1)) + 8, two heads, eight hidden units for every
    circuit, all numbers small multiples of 1/4, scores that are multiples of 32. The circuit is in the table of
    positions, as in the source (its theorem is non-uniform, too). The claim is checked from the stored weights.

Proof
    *Places.* Place 0 holds `start`, place j <= n input j, place n + t gate t. Row n + t - 1 decides gate t.

    By the rule of situations, with the meaning and the plan of its module of this name (`kernel.situations`).

    *Operands.* Row n + t - 1 looks at the place of its operand, once for each head, which is not behind the row, so
    that the causal mask allows it. The value is the bit of a token, so a slot of the row is the operand's bit up to the
    share of all other places, roundings included.

    *Gate.* What else the row holds is exact: its own token and its entries of the table of rows. All combinations of the
    gate's truth table and of what the operands may be are run through the stored units and the read-out, with the slots
    as intervals; in each the output of the right token is larger than both others. Tokens are discrete: nothing of the
    leakage is handed on. Induction over the gates. QED.

Assumptions
    form (**checked**): one causal block, two softmax heads of unit scale, ReLU units with residual, a table of codes.
    weights (**checked**): lookups, values and outputs are those of the stored circuit, in every case.
    run (**trusted**): arithmetic is as described in `kernel.rounding`, and the stream between attention and hidden units
    is one array of numbers of the stored type.

Certified
    The statement, for all 2^n inputs. `margin` is the smallest lead of the right token, `leak` the largest share of all
    wrong places together.

Not certified
    That the circuit computes what its author wanted; sampling instead of taking the largest output.

Example
    >>> from flint import arb
    >>> from certiformer.kernel.rounding import FORMATS
    >>> from certiformer.kernel.situations.heads import shares_of
    >>> shares = shares_of(FORMATS["float32"], 2_032, arb(64))
    >>> bool(1 - shares.low < 1e-5), bool(shares.leak < 1e-26)
    (True, True)

Tests
    tests/theorems/test_chain_of_thought_circuit.py
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from certiformer.kernel.meanings.gates import Gates
from certiformer.model.config import Attention, Block, Code, Config, FeedForward, Heads, Input, Readout

THEOREM = {
    "id": "compiler.circuits.chain_of_thought_circuit",
    "title": "One block that writes a token for each gate computes a Boolean circuit, for all inputs at once.",
    "kind": "exact",
    "sources": (
        "li2024",
        "merrill2023",
    ),
    "verb": "compile",
    "assumptions": (
        ("form", "one causal block, two softmax heads, ReLU units, a table of position codes", "checked"),
        ("weights", "lookups, values and outputs are those of the circuit in every case", "checked"),
        ("run", "a run rounds as kernel.rounding describes, between sub-layers to the stored type", "trusted"),
    ),
    "uses": (),
}

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
