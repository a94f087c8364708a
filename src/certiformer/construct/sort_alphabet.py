"""Weights that sort: one uniform head, 2V hidden units, a unit vector at every position.

The residual stream is laid out as  letter (V) | position | cumulative counts (V) | sorted letter (V).  Every number
is an integer, so the weights are stored exactly; the theorem, its proof and its rule are in
`checker.rules.exact_sort`.
"""

from __future__ import annotations

import numpy as np

from certiformer.certificate import Theorem as TheoremNode
from certiformer.errors import BadInput
from certiformer.model import Attention, Block, Code, Config, FeedForward, Heads, Input, Readout, Transformer
from certiformer.target import SortMap

# The real-number function of the weights is exactly the sorted sequence; the checker's balls of 96 bits prove this much.
BOUND = "1e-15"
MAX_WEIGHTS = 50_000_000


def sort_transformer(alphabet: int, tokens: int) -> Transformer:
    """The transformer that sorts `tokens` letters from {0, ..., alphabet - 1}; output v of position t is 1 for its letter.

    >>> model = sort_transformer(3, 4)
    >>> model.evaluate([[2, 0, 2, 1]]).reshape(4, 3).argmax(axis=1).tolist()
    [0, 1, 2, 2]
    """
    SortMap("sort", alphabet, tokens)  # refuses impossible sizes
    v, width = alphabet, 3 * alphabet + 1
    if width * (tokens + 6 * v) > MAX_WEIGHTS:
        raise BadInput(f"sorting {tokens} letters from {v} needs too many weights; use a smaller alphabet or length")
    position, counts, result = v, slice(v + 1, 2 * v + 1), slice(2 * v + 1, width)
    config = Config(
        Input("ids", tokens=tokens, vocabulary=v),
        width=width,
        outputs=v,
        readout=Readout("all"),
        code=Code("table"),
        blocks=(Block(Attention((Heads(1, 1, v),)), FeedForward(2 * v)),),
    )
    embed, code = np.eye(v, width), np.zeros((tokens, width))
    code[:, position] = np.arange(tokens)
    value, output = np.zeros((width, v)), np.zeros((v, width))
    value[:v] = tokens * np.triu(np.ones((v, v)))  # letter u counts towards every v >= u; the mean times n is a count
    output[:, counts] = np.eye(v)
    up, shift, down = np.zeros((width, 2 * v)), np.zeros(2 * v), np.zeros((2 * v, width))
    for letter in range(v):
        for part in (0, 1):
            unit = 2 * letter + part
            up[v + 1 + letter, unit], up[position, unit], shift[unit] = 1.0, -1.0, -float(part)
            sign = 1.0 - 2.0 * part
            down[unit, 2 * v + 1 + letter] = sign
            if letter + 1 < v:
                down[unit, 2 * v + 2 + letter] = -sign
    read = np.zeros((width, v))
    read[result] = np.eye(v)
    head, ffn = "blocks.0.attention.groups.0", "blocks.0.ffn"
    tensors = {
        "embed.weight": embed,
        "code.table": code,
        f"{head}.query": np.zeros((1, width, 1)),
        f"{head}.key": np.zeros((1, width, 1)),
        f"{head}.value": value[None],
        f"{head}.output": output[None],
        f"{ffn}.up": up,
        f"{ffn}.up_bias": shift,
        f"{ffn}.down": down,
        f"{ffn}.down_bias": np.zeros(width),
        "readout.weight": read,
        "readout.bias": np.zeros(v),
    }
    return Transformer(config, tensors)


def sort_proof() -> TheoremNode:
    """The theorem node of `sort_transformer`."""
    return TheoremNode(BOUND, "exact_sort")
