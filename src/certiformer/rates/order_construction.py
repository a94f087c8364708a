"""A target given by a matrix, built exactly, and the same model for another order of the inputs: attention untouched.

H_t(x) = sum_j A[t, j] x(j) with A >= 0 and row sums below Z needs one head and one register. Token j carries x(j), a
unit vector that says "I ask as j" and a column of logarithms that says what it answers to every question:

    logit(t, j) = log A[t, j]  (-1e4 where A is 0: its exponential is 0),     logit(t, register) = log(Z - sum_j A[t, j]),

so the softmax weights are A[t, j] / Z exactly, the register takes the rest with the value 0, and the read-out
multiplies by Z. A matrix with negative entries takes two heads, one for either sign.

Unit vectors and logarithms are the position code, that is, part of the first pointwise layer. When the inputs come in
the order y(s) = x(p(s)), token s must answer as p(s) did and still ask as s: only the logarithms in the table change
places (`reordered_model`). This is how Proposition 6.2 of Jiang & Li (2023, arXiv 2305.18475) works, and it needs that
what is asked does not depend on the value: token t holds x(p(t)), not x(t), so a model whose queries read values has
nothing to permute. What holds for every model with a table of positions is weaker (`relabelled_model`): with the rows
of the table permuted, the outputs come in the new order as well.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from certiformer.errors import BadInput
from certiformer.model import Attention, Block, Code, Config, Heads, Input, Readout, Transformer, tensor_specs

NEVER = -1e4  # exp(-1e4) is 0 in every floating-point format in use
ROOM = 1.25  # Z over the largest row sum: the register keeps a fifth of the weight at least


def exact_model(matrix: Float[np.ndarray, "length length"]) -> Transformer:
    """The transformer that gives sum_j matrix[t, j] x(j) at every t, up to rounding.

    >>> exact_model(np.array([[1.0, 0.0], [-0.5, 1.0]])).evaluate([[3.0, 4.0]])
    array([[3. , 2.5]])
    """
    matrix = np.asarray(matrix, np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.isfinite(matrix).all():
        raise BadInput("a target is a square matrix of finite numbers")
    length, parts = len(matrix), [np.maximum(matrix, 0.0)]
    if (matrix < 0).any():
        parts.append(np.maximum(-matrix, 0.0))
    width, heads = 1 + length + len(parts) * length, len(parts)
    config = Config(
        Input("continuous", length, width=1),
        width=width,
        outputs=1,
        readout=Readout("all"),
        blocks=(Block(Attention((Heads(heads, length, 1),), scale="unit", residual=False)),),
        registers=1,
        code=Code("table"),
    )
    tensors = {name: np.zeros(spec.shape) for name, spec in tensor_specs(config).items()}
    tensors["embed.weight"][0, 0] = tensors["readout.weight"][0, 0] = 1.0
    tensors["code.table"][:, 1 : 1 + length] = np.eye(length)
    group = "blocks.0.attention.groups.0"
    for head, part in enumerate(parts):
        total = ROOM * max(part.sum(axis=1).max(), np.finfo(np.float64).tiny / np.finfo(np.float64).eps)
        answers = slice(1 + (1 + head) * length, 1 + (2 + head) * length)
        with np.errstate(divide="ignore"):
            tensors["code.table"][:, answers] = np.maximum(np.log(part), NEVER).T
        tensors["registers"][0, answers] = np.log(total - part.sum(axis=1))
        tensors[f"{group}.query"][head, 1 : 1 + length] = np.eye(length)
        tensors[f"{group}.key"][head, answers] = np.eye(length)
        tensors[f"{group}.value"][head, 0, 0] = 1.0
        tensors[f"{group}.output"][head, 0, 0] = (1.0, -1.0)[head] * total
    return Transformer(config, tensors)


def reordered_model(model: Transformer, order: Int[np.ndarray, " length"]) -> Transformer:
    """The model of `exact_model` for inputs y(s) = x(order[s]): it gives H_t(x) from y; only the table differs."""
    table = np.array(model.tensors["code.table"])
    asked = 1 + model.config.tokens
    table[:, asked:] = table[np.asarray(order), asked:]
    return Transformer(model.config, {**model.tensors, "code.table": table})


def relabelled_model(model: Transformer, order: Int[np.ndarray, " length"]) -> Transformer:
    """Any model with a table of positions and no mask, for inputs y(s) = x(order[s]): output s is H_{order[s]}(x)."""
    attentions = [block.attention for block in model.config.blocks if block.attention is not None]
    if model.config.code.kind != "table" or any(a.mask != "none" or a.score_bias != "none" for a in attentions):
        raise BadInput(
            "only a model whose positions come from a table, without masks and biases of scores, is relabelled"
        )
    table = np.asarray(model.tensors["code.table"])[np.asarray(order)]
    return Transformer(model.config, {**model.tensors, "code.table": table})
