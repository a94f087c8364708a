"""A stored transformer without softmax, evaluated in exact rationals: what its weights really compute.

Hard and linear attention, ReLU and linear feed-forward layers and every sum are rational operations, so on rational
tokens the outputs are rational numbers. Ties of hard attention are decided exactly and averaged, as in the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from flint import fmpq, fmpq_mat

from certiformer.errors import BadInput
from certiformer.model import Attention, Config, Transformer
from certiformer.model.codes import code_rows

EXACT_ATTENTION = ("hard", "linear")
EXACT_ACTIVATIONS = ("relu", "identity")
EXACT_CODES = ("none", "one-hot", "table")


def rational_outputs(model: Transformer, tokens: Sequence[Sequence[Fraction]]) -> list[list[Fraction]]:
    """The exact outputs of `model` on `tokens`: a row for every token that is read, a single one for other read-outs.

    >>> from certiformer.expressivity.position_head import position_head
    >>> from certiformer.model import Block, Config, Transformer
    >>> from dataclasses import replace
    >>> head = position_head(2)
    >>> hard = replace(head.config.blocks[0].attention, kind="hard")
    >>> rational_outputs(Transformer(replace(head.config, blocks=(Block(hard),)), head.tensors), [[1], [Fraction(1, 3)]])
    [[Fraction(2, 3)], [Fraction(2, 3)]]
    """
    config = model.config
    _require_rational(config)
    weights = {name: _matrices(tensor) for name, tensor in model.tensors.items()}
    stream = _embedded(config, weights, tokens)
    for _ in range(config.loops):
        for index, block in enumerate(config.blocks):
            name = f"blocks.{index}"
            if block.attention is not None:
                out = _attend(block.attention, weights, f"{name}.attention", stream)
                stream = stream + out if block.attention.residual else out
            if block.ffn is not None:
                hidden = _plus(stream * weights[f"{name}.ffn.up"][0], weights[f"{name}.ffn.up_bias"][0])
                if block.ffn.kind == "relu":
                    hidden = _relu(hidden)
                out = _plus(hidden * weights[f"{name}.ffn.down"][0], weights[f"{name}.ffn.down_bias"][0])
                stream = stream + out if block.ffn.residual else out
    return _fractions(_plus(_read(config, stream) * weights["readout.weight"][0], weights["readout.bias"][0]))


def _require_rational(config: Config) -> None:
    attentions = [block.attention for block in config.blocks if block.attention is not None]
    rational = (
        config.input.kind == "continuous"
        and config.code.kind in EXACT_CODES
        and config.registers == 0
        and all(block.norm is None for block in config.blocks)
        and all(block.ffn is None or block.ffn.kind in EXACT_ACTIVATIONS for block in config.blocks)
        and all(a.kind in EXACT_ATTENTION and a.mask == "none" and a.score_bias == "none" for a in attentions)
        and all(a.scale == "unit" or all(group.key == 1 for group in a.heads) for a in attentions)
    )
    if not rational:
        raise BadInput(
            "only a transformer of rational operations can be run in rationals: numbers as tokens, hard or linear"
            " attention without mask, score bias or root in its scale, ReLU or linear layers, no norm and no registers"
        )


def _matrices(tensor: Any) -> list[fmpq_mat]:
    """A tensor as matrices: one a head for three axes, a single row for one axis."""
    array = np.asarray(tensor, dtype=np.float64)
    stack = array[None] if array.ndim == 2 else array[None, None] if array.ndim == 1 else array
    return [_matrix([[Fraction(x) for x in row] for row in matrix.tolist()]) for matrix in stack]


def _matrix(rows: Sequence[Sequence[Fraction]]) -> fmpq_mat:
    entries = [fmpq(Fraction(x).numerator, Fraction(x).denominator) for row in rows for x in row]
    return fmpq_mat(len(rows), len(rows[0]), entries)


def _embedded(config: Config, weights: dict[str, list[fmpq_mat]], tokens: Sequence[Sequence[Fraction]]) -> fmpq_mat:
    if len(tokens) != config.tokens or any(len(token) != config.input.width for token in tokens):
        raise BadInput(f"the model reads {config.tokens} tokens of {config.input.width} numbers each")
    stream = _plus(_matrix(tokens) * weights["embed.weight"][0], weights["embed.bias"][0])
    if config.code.kind == "table":
        return stream + weights["code.table"][0]
    code = code_rows(config)
    return stream if code is None else stream + _matrices(code)[0]


def _attend(attention: Attention, weights: dict[str, list[fmpq_mat]], name: str, stream: fmpq_mat) -> fmpq_mat:
    total = fmpq_mat(stream.nrows(), stream.ncols())
    for index, group in enumerate(attention.heads):
        part = f"{name}.groups.{index}"
        for head in range(group.count):
            query, key, value = (stream * weights[f"{part}.{role}"][head] for role in ("query", "key", "value"))
            if attention.bias:
                # One axis a head: the biases of a group are the rows of a single matrix.
                query, key, value = (
                    _plus(projected, _row(weights[f"{part}.{role}_bias"][0], head))
                    for projected, role in ((query, "query"), (key, "key"), (value, "value"))
                )
            scores = query * key.transpose()
            shares = _hard(scores) if attention.kind == "hard" else scores
            total = total + shares * value * weights[f"{part}.output"][head]
    return _plus(total, weights[f"{name}.output_bias"][0]) if attention.bias else total


def _hard(scores: fmpq_mat) -> fmpq_mat:
    """Equal weights on the largest scores of each row."""
    rows = scores.tolist()
    shares = []
    for row in rows:
        best = max(row)
        winners = [score == best for score in row]
        shares += [fmpq(int(won), sum(winners)) for won in winners]
    return fmpq_mat(scores.nrows(), scores.ncols(), shares)


def _relu(matrix: fmpq_mat) -> fmpq_mat:
    zero = fmpq(0)
    return fmpq_mat(matrix.nrows(), matrix.ncols(), [x if x > zero else zero for x in matrix.entries()])


def _plus(matrix: fmpq_mat, row: fmpq_mat) -> fmpq_mat:
    """The same row added to every row."""
    ones = fmpq_mat(matrix.nrows(), 1, [fmpq(1)] * matrix.nrows())
    return matrix + ones * row


def _row(matrix: fmpq_mat, index: int) -> fmpq_mat:
    return fmpq_mat(1, matrix.ncols(), [matrix[index, column] for column in range(matrix.ncols())])


def _read(config: Config, stream: fmpq_mat) -> fmpq_mat:
    kind, count = config.readout.kind, stream.nrows()
    if kind == "all":
        return stream
    if kind == "token" and config.readout.token is not None:
        return _row(stream, config.readout.token)
    share = fmpq(1, count) if kind == "mean" else fmpq(1)
    return fmpq_mat(1, count, [share] * count) * stream


def _fractions(matrix: fmpq_mat) -> list[list[Fraction]]:
    return [[Fraction(int(x.p), int(x.q)) for x in row] for row in matrix.tolist()]
