"""The three small programs that teach what attention can do, as plain loops, against the one transformer."""

from __future__ import annotations

import math

import numpy as np
import pytest

from certiformer.expressivity.reversal import reversal
from certiformer.expressivity.uniform_pooling import mean_pooling, sum_pooling
from certiformer.model import Attention, Block, Code, Config, Heads, Input, Readout, Transformer

# Four tokens and sums of six products of numbers of size one to four, in float64.
AGREEMENT = 1e-12


def softmax(scores):
    top = max(scores)
    powers = [math.exp(score - top) for score in scores]
    return [power / sum(powers) for power in powers]


def sinusoidal_code(position, width):
    code = [0.0] * width
    for i in range(0, width, 2):
        angle = position / 10000.0 ** (i / width)
        code[i] = math.sin(angle)
        if i + 1 < width:
            code[i + 1] = math.cos(angle)
    return code


def self_attention(tokens, query, key, value):
    """One head, row by row, product by product."""

    def linear(row, matrix):
        return [sum(row[i] * matrix[i][j] for i in range(len(row))) for j in range(len(matrix[0]))]

    queries, keys, values = ([linear(row, m) for row in tokens] for m in (query, key, value))
    outputs = []
    for q in queries:
        weights = softmax([sum(a * b for a, b in zip(q, k, strict=True)) / math.sqrt(len(k)) for k in keys])
        outputs.append([sum(w * v[c] for w, v in zip(weights, values, strict=True)) for c in range(len(value[0]))])
    return outputs


@pytest.mark.parametrize(("length", "width", "key", "value"), [(4, 6, 4, 4), (7, 5, 3, 2), (1, 2, 1, 1)])
def test_single_head_with_sinusoidal_codes(length, width, key, value):
    attention = Attention((Heads(1, key, value),), residual=False)
    config = Config(
        Input("continuous", length, width=width),
        width,
        value,
        Readout("all"),
        blocks=(Block(attention),),
        code=Code("sinusoidal", offset=0, width=width),
    )
    model = Transformer.random(config, 42)
    head = "blocks.0.attention.groups.0"
    to_output = np.eye(value, width)
    changed = {"embed.weight": np.eye(width), "embed.bias": np.zeros(width), f"{head}.output": to_output[None]}
    changed |= {"readout.weight": to_output.T, "readout.bias": np.zeros(value)}
    model = Transformer(config, {**model.tensors, **changed})

    contents = np.zeros((length, width))
    contents[:, 0] = np.arange(1.0, length + 1)
    tokens = [[c + p for c, p in zip(contents[t], sinusoidal_code(t, width), strict=True)] for t in range(length)]
    naive = self_attention(tokens, *(model.tensors[f"{head}.{role}"][0].tolist() for role in ("query", "key", "value")))
    outputs = model.evaluate(contents.reshape(1, -1)).reshape(length, value)
    np.testing.assert_allclose(outputs, naive, atol=AGREEMENT, rtol=0)


def test_reversal_by_a_score_table():
    """Six tokens, the right position ahead by 60: to the last bit."""
    numbers = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    naive = []
    for i in range(6):
        scores = [-10.0] * 6
        scores[5 - i] = 50.0
        naive.append(sum(w * v for w, v in zip(softmax(scores), numbers, strict=True)))
    assert naive == numbers[::-1]
    assert reversal(6, sharpness=60.0).evaluate([numbers]).tolist() == [naive]


def test_uniform_pooling():
    numbers = [1.0, 2.0, 3.0, 4.0, 5.0]
    mean = sum(w * v for w, v in zip(softmax([0.0] * 5), numbers, strict=True))
    # Five roundings of numbers up to 15.
    np.testing.assert_allclose(mean_pooling(5).evaluate([numbers]), [[mean]], atol=1e-14, rtol=0)
    np.testing.assert_allclose(sum_pooling(5).evaluate([numbers]), [[5 * mean]], atol=1e-14, rtol=0)
