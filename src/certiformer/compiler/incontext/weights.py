"""The weights of least-squares learners: linear attention, softmax heads with a sink, or mirrored tokens.

The stream is (key | features | left to learn), for two softmax heads also (one, sink); `axioms.learner_weights` has
the same layout in words of its own, and compares every entry.
"""

from __future__ import annotations

import numpy as np

from certiformer.compiler.room import require_room
from certiformer.kernel.meanings.least_squares import LeastSquares
from certiformer.model.config import Attention, Block, Config, Heads, Input, Readout

SELF = 65536.0  # how much harder the sink looks at itself, so that nothing is ever learned there


def build(learner: LeastSquares) -> tuple[Config, dict[str, np.ndarray]]:
    """The transformer of a learner: one block for each step, or one block that is applied so many times."""
    d, pair = learner.features, learner.attention == "softmax-pair"
    copies = 2 if learner.attention == "softmax-mirror" else 1
    width = 2 * d + (3 if pair else 1)
    registers = _registers(learner, width)
    betas = learner.whiten[:1] if learner.looped else learner.whiten
    first = Heads(2 if pair else 1, d + 1 if pair else d, 1)
    kind = "linear" if learner.attention == "linear" else "softmax"
    blocks = tuple(
        Block(Attention((first, Heads(2, d, d)) if beta else (first,), kind=kind, scale="unit")) for beta in betas
    )
    config = Config(
        Input("continuous", tokens=copies * (learner.rows + 1), width=2 * d + 1),
        width=width,
        outputs=1,
        readout=Readout("token", copies * learner.rows),
        blocks=blocks,
        registers=len(registers),
        loops=learner.layers if learner.looped else 1,
        dtype=learner.dtype,
    )
    require_room(config, "take fewer --features or --layers")
    bias, read = np.zeros(width), np.zeros((width, 1))
    read[2 * d, 0] = -1.0
    if pair:
        bias[2 * d + 1] = 1.0
    tensors = {"embed.weight": np.eye(2 * d + 1, width), "embed.bias": bias}
    if len(registers):
        tensors["registers"] = registers
    for number, (step, beta) in enumerate(zip(learner.steps, betas, strict=False)):
        tensors |= _step(learner, f"blocks.{number}.attention.groups.0", step, width)
        if beta:
            tensors |= _whitening(f"blocks.{number}.attention.groups.1", d, beta)
    return config, {**tensors, "readout.weight": read, "readout.bias": np.zeros(1)}


def _registers(learner: LeastSquares, width: int) -> np.ndarray:
    d = learner.features
    rows = np.zeros((learner.registers, width))
    if learner.registers:
        rows[:, :d], rows[:, d : 2 * d] = learner.strength * np.eye(d), np.eye(d)
    if learner.attention == "softmax-mirror":
        return np.concatenate([rows, -rows])
    if learner.attention == "softmax-pair":
        rows[:, 2 * d + 1] = 1.0
        sink = np.zeros((1, width))
        sink[0, 2 * d + 1 :] = SELF, 1.0
        return np.concatenate([rows, sink])
    return rows


def _step(learner: LeastSquares, group: str, step: float, width: int) -> dict[str, np.ndarray]:
    """Scores x_i . key_j, values r_j, and -step times the sum into r."""
    d, left = learner.features, 2 * learner.features
    scales, weight = [1.0], step
    if learner.attention == "softmax-mirror":
        count = 2 * (learner.rows + 1 + learner.registers)
        scales, weight = [learner.small], step * count / (2 * learner.small)
    elif learner.attention == "softmax-pair":
        scales, weight = [learner.small, -learner.small], step * np.exp(learner.sink) / (2 * learner.small)
    heads, size = len(scales), d + 1 if learner.attention == "softmax-pair" else d
    query, key = np.zeros((heads, width, size)), np.zeros((heads, width, size))
    value, output = np.zeros((heads, width, 1)), np.zeros((heads, 1, width))
    for head, scale in enumerate(scales):
        query[head, d:left, :d], key[head, :d, :d] = scale * np.eye(d), np.eye(d)
        if learner.attention == "softmax-pair":
            query[head, left + 1, d], key[head, left + 2, d] = learner.sink, 1.0
        value[head, left, 0], output[head, 0, left] = 1.0, weight if head else -weight
    return {f"{group}.query": query, f"{group}.key": key, f"{group}.value": value, f"{group}.output": output}


def _whitening(group: str, d: int, beta: float) -> dict[str, np.ndarray]:
    """Features (head 0) and keys (head 1) lose beta times their image under sum_j x_j key_j^T."""
    query, output = np.zeros((2, 2 * d + 1, d)), np.zeros((2, d, 2 * d + 1))
    key, value = np.zeros_like(query), np.zeros_like(query)
    query[0, d : 2 * d], query[1, :d] = np.eye(d), np.eye(d)
    output[0, :, d : 2 * d], output[1, :, :d] = -beta * np.eye(d), -beta * np.eye(d)
    key[:, :d], value[:, d : 2 * d] = np.eye(d), np.eye(d)
    return {f"{group}.query": query, f"{group}.key": key, f"{group}.value": value, f"{group}.output": output}
