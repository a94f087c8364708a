"""Whether stored weights are those of a least-squares learner: every entry is compared, none is left out.

| part of the stream | linear, mirrored | two heads with a sink |
|---|---|---|
| key m x | 0 .. d - 1 | 0 .. d - 1 |
| features x | d .. 2 d - 1 | d .. 2 d - 1 |
| left to learn r | 2 d | 2 d |
| one, sink | | 2 d + 1, 2 d + 2 |

Registers are (strength e_i | e_i | 0), with their mirror images after them or a sink behind them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flint import arb

from certiformer.kernel.balls import ZERO, larger
from certiformer.kernel.meanings.least_squares import LeastSquares
from certiformer.kernel.refusal import Refused
from certiformer.kernel.weights import Tensor

SELF = 65536.0  # how much harder the sink looks at itself
Entries = dict[tuple[int, ...], float]


def require_weights(learner: LeastSquares, config: dict[str, Any], tensors: Mapping[str, Tensor]) -> arb:
    """Refuse anything but the weights of `learner`; returns the relative error of the stored output weights (softmax)."""
    if config != _config(learner):
        raise Refused("the transformer is not built as this learner is: config.json differs")
    deviation, expected = ZERO, _frame(learner)
    blocks = learner.steps[:1] if learner.looped else learner.steps
    for number, step in enumerate(blocks):
        prefix = f"blocks.{number}.attention.groups"
        weight = step
        if learner.attention != "linear":
            stored = tensors[f"{prefix}.0.output"].at(0, 0, 2 * learner.features)
            weight = -stored
            deviation = larger(deviation, abs(arb(weight) / _wanted(learner, step) - 1).upper())
        expected |= _step(learner, f"{prefix}.0", weight)
        if learner.whiten[number]:
            expected |= _whitening(learner, f"{prefix}.1", learner.whiten[number])
    if set(expected) != set(tensors):
        raise Refused("the transformer does not have the tensors of this learner")
    for name, entries in expected.items():
        _require(name, tensors[name], entries)
    return deviation


def _wanted(learner: LeastSquares, step: float) -> arb:
    """W of `learner_run`."""
    count = learner.rows + 1 + learner.registers
    factor = arb(2 * count) if learner.attention == "softmax-mirror" else arb(learner.sink).exp()
    return arb(step) * factor / (2 * arb(learner.small))


def _config(learner: LeastSquares) -> dict[str, Any]:
    d, mirrored, pair = learner.features, learner.attention == "softmax-mirror", learner.attention == "softmax-pair"
    kind = "linear" if learner.attention == "linear" else "softmax"
    first = {"count": 2 if pair else 1, "key": d + 1 if pair else d, "value": 1}

    def block(beta: float) -> dict[str, Any]:
        heads = [first, {"count": 2, "key": d, "value": d}] if beta else [first]
        attention = {"kind": kind, "heads": heads, "bias": False, "scale": "unit", "mask": "none"}
        attention |= {"score_bias": "none", "residual": True}
        return {"attention": attention, "ffn": None, "norm": None}

    return {
        "format": "certiformer-model-1",
        "dtype": learner.dtype,
        "input": {"kind": "continuous", "tokens": (learner.rows + 1) * (2 if mirrored else 1), "width": 2 * d + 1},
        "width": 2 * d + (3 if pair else 1),
        "registers": learner.registers * (2 if mirrored else 1) + (1 if pair else 0),
        "code": {"kind": "none"},
        "blocks": [block(beta) for beta in (learner.whiten[:1] if learner.looped else learner.whiten)],
        "loops": learner.layers if learner.looped else 1,
        "readout": {"kind": "token", "token": learner.rows * (2 if mirrored else 1)},
        "outputs": 1,
    }


def _frame(learner: LeastSquares) -> dict[str, Entries]:
    """Embedding, registers and read-out."""
    d, pair = learner.features, learner.attention == "softmax-pair"
    registers: Entries = {}
    for i in range(learner.registers):
        registers |= {(i, i): learner.strength, (i, d + i): 1.0}
        if learner.attention == "softmax-mirror":
            registers |= {(d + i, i): -learner.strength, (d + i, d + i): -1.0}
        if pair:
            registers[i, 2 * d + 1] = 1.0
    if pair:
        registers |= {(learner.registers, 2 * d + 1): SELF, (learner.registers, 2 * d + 2): 1.0}
    return {
        "embed.weight": {(i, i): 1.0 for i in range(2 * d + 1)},
        "embed.bias": {(2 * d + 1,): 1.0} if pair else {},
        **({"registers": registers} if registers else {}),
        "readout.weight": {(2 * d, 0): -1.0},
        "readout.bias": {},
    }


def _step(learner: LeastSquares, group: str, weight: float) -> dict[str, Entries]:
    """One step: scores x_i . key_j, values r_j, and - weight times the sum into r."""
    d, left = learner.features, 2 * learner.features
    scales = {"linear": (1.0,), "softmax-mirror": (learner.small,), "softmax-pair": (learner.small, -learner.small)}
    query: Entries = {}
    key: Entries = {}
    for head, scale in enumerate(scales[learner.attention]):
        query |= {(head, d + i, i): scale for i in range(d)}
        key |= {(head, i, i): 1.0 for i in range(d)}
        if learner.attention == "softmax-pair":
            query[head, left + 1, d] = learner.sink
            key[head, left + 2, d] = 1.0
    signs = (-1.0, 1.0)[: len(scales[learner.attention])]
    return {
        f"{group}.query": query,
        f"{group}.key": key,
        f"{group}.value": {(head, left, 0): 1.0 for head in range(len(signs))},
        f"{group}.output": {(head, 0, left): sign * weight for head, sign in enumerate(signs)},
    }


def _whitening(learner: LeastSquares, group: str, beta: float) -> dict[str, Entries]:
    """Head 0 whitens the features, head 1 the keys, each with - beta sum_j (. key_j) x_j."""
    d = learner.features
    places = ((0, d), (1, 0))
    return {
        f"{group}.query": {(head, place + i, i): 1.0 for head, place in places for i in range(d)},
        f"{group}.key": {(head, i, i): 1.0 for head, _ in places for i in range(d)},
        f"{group}.value": {(head, d + i, i): 1.0 for head, _ in places for i in range(d)},
        f"{group}.output": {(head, i, place + i): -beta for head, place in places for i in range(d)},
    }


def _require(name: str, tensor: Tensor, entries: Entries) -> None:
    flat = [0.0] * len(tensor.data)
    for index, value in entries.items():
        place = 0
        for length, i in zip(tensor.shape, index, strict=True):
            place = place * length + i
        flat[place] = value
    for place, (stored, wanted) in enumerate(zip(tensor.data, flat, strict=True)):
        if stored != wanted:
            raise Refused(f"entry {place} of {name} is {stored!r}, but this learner has {wanted!r} there")
