"""The kernel of a head of a model: its scores q_t . k_s before the softmax, and what their singular values say.

Two estimators. `head_scores` evaluates the scores on inputs; the singular values of M / tau, averaged over inputs, are
those that Jiang and Li 2024 plot (after Braun 2005), and `sampled_pod` takes them of row-centred scores: softmax does
not see a constant of a row. They are biased upwards when sequences are short. With the true values 1/k, sequences of n
uniform points have (`sampling_bias`: means over sequences, 128 terms)

    n = 16:  1.33, .76, .55, .43      n = 64:  1.08, .57, .39, .30      n = 1024:  1.00, .52, .33, .26

and at n = 16 with 1024 terms 1.47, .89, .68, .56: the diagonal of the matrix holds the sum of all singular values.

`head_kernel` needs no sampling: where nothing before the attention mixes tokens and there is no position code, the
scores are a kernel q(u) . k(v), which is evaluated at the nodes of a quadrature. Both have rank m_h or less (the key
size).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from certiformer.errors import BadInput
from certiformer.model import Config, Readout, Transformer
from certiformer.model.forward import forward
from certiformer.rates.kernels import Kernel
from certiformer.rates.pod import Pod, pod_of_kernel, pod_of_values
from certiformer.rates.targets import SineTarget
from certiformer.spectrum import singular_values


def head_scores(
    model: Transformer, inputs: Float[np.ndarray, "inputs tokens size"], block: int, group: int = 0, head: int = 0
) -> Float[np.ndarray, "inputs tokens tokens"]:
    """The scores of one head on every input, with its scale and without score biases and masks."""
    queries, keys = _factors(model, inputs, block, group, head)
    return np.matmul(queries, np.swapaxes(keys, 1, 2))


def head_kernel(model: Transformer, block: int, group: int = 0, head: int = 0) -> Kernel:
    """The kernel q(u) . k(v) of a head that sees tokens of one number, none of them mixed before or told its place."""
    config = model.config
    mixing = any(each.attention is not None for each in config.blocks[:block])
    if mixing or config.loops > 1 or config.registers or config.code.kind != "none" or config.input.width != 1:
        raise BadInput(
            "the scores of this head are no kernel of two numbers: tokens are mixed or told their place before"
        )

    def kernel(u: np.ndarray, v: np.ndarray) -> np.ndarray:
        points = np.concatenate([np.ravel(u), np.ravel(v)])
        distinct, places = np.unique(points, return_inverse=True)
        queries, keys = _factors(model, distinct[None, :, None], block, group, head)
        first, second = places[: u.size], places[u.size :]
        return np.einsum("ik,ik->i", queries[0][first], keys[0][second]).reshape(u.shape)

    return kernel


def trained_pod(model: Transformer, block: int, group: int = 0, head: int = 0, nodes: int = 128) -> Pod:
    """The centred POD of a head without sampling bias."""
    return pod_of_kernel(head_kernel(model, block, group, head), nodes, centred=True)


def learned_values(model: Transformer, length: int, seed: int = 0) -> list[float]:
    """Centred singular values of the last head of a trained model: of its kernel, or of sampled inputs."""
    block = max(place for place, each in enumerate(model.config.blocks) if each.attention is not None)
    try:
        return trained_pod(model, block, nodes=64).values.tolist()
    except BadInput:
        inputs = np.random.default_rng([seed, 2]).uniform(size=(64, length, 1))
        return sampled_pod(model, inputs, block).values.tolist()


def sampled_pod(
    model: Transformer,
    inputs: Float[np.ndarray, "inputs tokens size"],
    block: int,
    group: int = 0,
    head: int = 0,
    centred: bool = True,
) -> Pod:
    """Singular values of scores over tau, averaged over inputs: biased upwards for short sequences (see above)."""
    scores = head_scores(model, inputs, block, group, head)
    if centred:
        scores = scores - scores.mean(axis=2, keepdims=True)
    values = np.mean([singular_values(each / each.shape[0]) for each in scores], axis=0)
    measured = f"the mean over {len(scores)} inputs of {scores.shape[1]} tokens"
    found = pod_of_values(values, measured, centred)
    bias = "values of sampled sequences are biased upwards, the more the shorter the sequence"
    return replace(found, note="; ".join(filter(None, [bias, found.note])))


def sampling_bias(target: SineTarget, length: int, ranks: int = 4, draws: int = 400, seed: int = 0) -> list[float]:
    """What `sampled_pod` would find, on average, for the kernel of the target and uniform sequences of this length.

    >>> [round(value, 1) for value in sampling_bias(SineTarget(1.0), 16, ranks=2)]
    [1.3, 0.8]
    """
    generator = np.random.default_rng(seed)
    found = np.zeros(ranks)
    for _ in range(draws):
        x = generator.uniform(size=(1, length))
        found += singular_values(target.scores(x, 1, target.terms)[0] / length)[:ranks]
    return (found / draws).tolist()


def _factors(
    model: Transformer, inputs: np.ndarray, block: int, group: int, head: int
) -> tuple[np.ndarray, np.ndarray]:
    """Queries (times the scale) and keys of one head at every token."""
    config = model.config
    attention = config.blocks[block].attention if 0 <= block < len(config.blocks) else None
    if attention is None or not (0 <= group < len(attention.heads) and 0 <= head < attention.heads[group].count):
        raise BadInput(f"there is no head {head} of group {group} in block {block}")
    if config.blocks[block].norm is not None:
        raise BadInput("scores of heads behind a normalisation are not offered")
    states = _states(model, inputs, block)
    name = f"blocks.{block}.attention.groups.{group}"
    tensors = {role: np.asarray(model.tensors[f"{name}.{role}"], np.float64)[head] for role in ("query", "key")}
    sides = {role: states @ tensor for role, tensor in tensors.items()}
    for role in sides:
        if attention.bias:
            sides[role] = sides[role] + np.asarray(model.tensors[f"{name}.{role}_bias"], np.float64)[head]
    scale = 1 / np.sqrt(attention.heads[group].key) if attention.scale == "inverse-sqrt" else 1.0
    return scale * sides["query"], sides["key"]


def _states(model: Transformer, inputs: np.ndarray, block: int) -> np.ndarray:
    """The data tokens before a block, in float64: the model cut off there, with the identity as read-out."""
    config = model.config
    tokens = inputs.shape[1]
    cut: Config = replace(
        config,
        input=replace(config.input, tokens=tokens),
        blocks=config.blocks[:block],
        readout=Readout("all"),
        outputs=config.width,
        dtype="float64",
    )
    kept: dict[str, Any] = {}
    for name, each in model.tensors.items():
        kept[name] = np.asarray(each) if name.endswith(".mask") else np.asarray(each, np.float64)
    kept |= {"readout.weight": np.eye(config.width), "readout.bias": np.zeros(config.width)}
    with jax.enable_x64(True):
        states = jax.vmap(lambda x: forward(cut, kept, x))(np.asarray(inputs, np.float64))
        return np.asarray(states).reshape(len(inputs), tokens, config.width)
