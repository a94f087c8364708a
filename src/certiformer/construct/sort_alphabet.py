"""Weights that sort: one uniform head, 2V hidden units, a unit vector at every position.

The residual stream is laid out as  letter (V) | position | cumulative counts (V) | sorted letter (V).  Every number
is an integer, so the weights are stored exactly; the theorem, its proof and its rule are in
`axioms.exact_sort`.
"""

from __future__ import annotations

import numpy as np

from certiformer.construct.counting import counting_head
from certiformer.construct.one_block import FFN, HEAD, MAX_WEIGHTS, Tensors
from certiformer.errors import BadInput
from certiformer.model.config import Attention, Block, Code, Config, FeedForward, Heads, Input, Readout


def sort_network(alphabet: int, tokens: int) -> tuple[Config, Tensors]:
    """The block that sorts `tokens` letters from {0, ..., alphabet - 1}; output v of position t is 1 for its letter.

    >>> from certiformer.model import Transformer
    >>> model = Transformer(*sort_network(3, 4))
    >>> model.evaluate([[2, 0, 2, 1]]).reshape(4, 3).argmax(axis=1).tolist()
    [0, 1, 2, 2]
    """
    v, width = alphabet, 3 * alphabet + 1
    if width * (tokens + 6 * v) > MAX_WEIGHTS:
        raise BadInput(f"sorting {tokens} letters from {v} needs too many weights; use a smaller alphabet or length")
    position, result = v, slice(2 * v + 1, width)
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
    # Letter u counts towards every v >= u.
    head = counting_head(width, tokens, np.triu(np.ones((v, v))), v + 1)
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
    tensors = {
        "embed.weight": embed,
        "code.table": code,
        **{f"{HEAD}.{name}": tensor for name, tensor in head.items()},
        f"{FFN}.up": up,
        f"{FFN}.up_bias": shift,
        f"{FFN}.down": down,
        f"{FFN}.down_bias": np.zeros(width),
        "readout.weight": read,
        "readout.bias": np.zeros(v),
    }
    return config, tensors
