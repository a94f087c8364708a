"""One uniform head counts: every function of the number of a letter is exact, with one ReLU unit per change of slope.

Statement
    Let the tokens be letters x_1, ..., x_n from {0, ..., V - 1} and c_v the number of j with x_j = v. A head with zero
    queries and keys and the value n * (unit vector of the letter) adds exactly (c_0, ..., c_{V-1}) to every position.
    For any numbers f(0), ..., f(n) the ReLU units of `one_block`, at most n of them, turn c_v into f(c_v):

        f(c) = f(0) + sum_{j=0}^{n-1} (f(j+1) - 2 f(j) + f(j-1)) relu(c - j),      f(-1) := f(0).

    So one block with one head computes every symmetric function of n bits, for all 2^n inputs, and every function of
    the counts of single letters over a larger alphabet.

Source
    Counting by a uniform head is folklore (perez2021 use it; in RASP, weiss2021, it is selector_width); the
    interpolation is textbook mathematics; the lower bound is hahn2020.

Differs from the source in
    The number n stands in the weights, so that the head returns counts and not frequencies: what follows is arithmetic
    of whole numbers, exact for every input.

Proof
    All scores are 0, so the head returns the mean of the values, (1/n) sum_j n e_{x_j} = (c_0, ..., c_{V-1}). At a
    whole number c the j-th unit is (c - j)^+, so the right side has value f(0) at c = 0 and, from c to c + 1, grows by
    sum_{j <= c} (f(j+1) - 2 f(j) + f(j-1)) = f(c+1) - f(c): the sum telescopes. QED.

    *Lower bound.* The weights must grow with n: by Hahn (hahn2020, Lemma 5) a softmax transformer with *fixed* weights
    changes its output at a position by O(1/n) when one other token changes, so that no fixed transformer separates
    counts c and c + 1 by a constant for all n. Here a token has the weight 1/n and the value n; that product is what
    escapes the bound. The number of units is necessary, too, up to two: with the letter at the position that is read
    held fixed, c takes n consecutive values and the output is a piecewise linear function of c, which needs a unit for
    every change of slope; parity changes its slope n - 2 times there.

Assumptions
    - form (**checked**): one block without norm, one softmax head with zero queries or zero keys, ReLU units or none,
      the read-out of one position; the distance of the stored numbers from the ideal ones is part of the bound.

Certified
    `axioms.exact_count` proves, from the stored weights, the largest error over all V^n sequences.

Not certified
    Shorter sequences. The rounding of a run is bounded by `kernel.rounding.runs`.

Example
    >>> config, tensors = symmetric_network(2, 5, (1,), [0, 1, 4, 9, 16, 25])
    >>> config.blocks[0].ffn.width, tensors["blocks.0.ffn.up_bias"].tolist()
    (5, [0.0, -1.0, -2.0, -3.0, -4.0])
    >>> tensors["blocks.0.ffn.down"][:, -1].tolist()
    [1.0, 2.0, 2.0, 2.0, 2.0]

Tests
    tests/theorems/test_counting.py
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from certiformer.construct.one_block import FFN, HEAD, MAX_WEIGHTS, Number, Tensors, interpolated
from certiformer.errors import BadInput
from certiformer.model.config import Attention, Block, Config, FeedForward, Heads, Input, Readout

THEOREM = {
    "id": "construct.counting",
    "title": "One uniform head counts letters, and ReLU units turn a count into any function of it, exactly.",
    "kind": "exact",
    "sources": (
        "classical",
        "perez2021",
        "weiss2021",
        "hahn2020, Lemma 5",
    ),
    "verb": "build",
    "assumptions": (
        ("form", "one block, one uniform softmax head, ReLU units or none, one position is read", "checked"),
    ),
    "uses": ("axioms.exact_count",),
}


def counting_head(width: int, tokens: int, read: Float[np.ndarray, "letters counts"], first: int) -> Tensors:
    """The weights of a uniform head: sum over all tokens of `read`[letter] to coordinates `first`, `first` + 1, ...

    The letters are unit vectors in the first coordinates of a stream of the given width; `read` has 1 where a letter is
    counted.

    >>> head = counting_head(4, 10, np.eye(2), 2)
    >>> head["value"][0].tolist()
    [[10.0, 0.0], [0.0, 10.0], [0.0, 0.0], [0.0, 0.0]]
    """
    letters, counts = read.shape
    value, output = np.zeros((1, width, counts)), np.zeros((1, counts, width))
    value[0, :letters] = tokens * read  # the mean times n is a count
    output[0, :, first : first + counts] = np.eye(counts)
    zero = np.zeros((1, width, 1))
    return {"query": zero, "key": zero.copy(), "value": value, "output": output}


def symmetric_network(
    alphabet: int, tokens: int, letters: Sequence[int], values: Sequence[Number] | None = None
) -> tuple[Config, Tensors]:
    """The block whose output k is `values`[number of tokens equal to `letters`[k]]; without values, that number itself.

    The stream is  letter (V) | counts | results.
    """
    v, k = alphabet, len(letters)
    width = v + 2 * k
    base, units = (0, []) if values is None else interpolated(list(enumerate(values)))
    hidden = k * len(units)
    if width * (v + 2 * hidden + 4 * k) > MAX_WEIGHTS:
        raise BadInput(f"counting {k} of {v} letters in {tokens} tokens needs too many weights; use smaller sizes")
    read = np.zeros((v, k))
    read[list(letters), range(k)] = 1.0
    config = Config(
        Input("ids", tokens=tokens, vocabulary=v),
        width=width,
        outputs=k,
        readout=Readout("token", 0),
        blocks=(Block(Attention((Heads(1, 1, k),)), FeedForward(hidden) if hidden else None),),
    )
    readout = np.zeros((width, k))
    readout[(v if values is None else v + k) + np.arange(k), range(k)] = 1.0
    tensors = {"embed.weight": np.eye(v, width), "readout.weight": readout, "readout.bias": np.full(k, float(base))}
    tensors |= {f"{HEAD}.{name}": tensor for name, tensor in counting_head(width, tokens, read, v).items()}
    if hidden:
        tensors |= _unit_tensors(units, width, v, k)
    return config, tensors


def _unit_tensors(units: list, width: int, first: int, copies: int) -> Tensors:
    """The same units on each of `copies` coordinates from `first` on, written `copies` coordinates further on."""
    slope, bias = (np.array([float(unit[place]) for unit, _ in units]) for place in (0, 1))
    factor = np.array([float(factor) for _, factor in units])
    up, down = np.zeros((width, copies * len(units))), np.zeros((copies * len(units), width))
    for copy in range(copies):
        own = slice(copy * len(units), (copy + 1) * len(units))
        up[first + copy, own] = slope
        down[own, first + copies + copy] = factor
    shift, zero = np.tile(bias, copies), np.zeros(width)
    return {f"{FFN}.up": up, f"{FFN}.up_bias": shift, f"{FFN}.down": down, f"{FFN}.down_bias": zero}


def counting_network(alphabet: int, tokens: int) -> tuple[Config, Tensors]:
    """The block whose outputs are the numbers of letters 0, ..., V - 1: a head alone, no hidden unit.

    >>> counting_network(3, 100)[0].blocks[0].ffn is None
    True
    """
    return symmetric_network(alphabet, tokens, range(alphabet))
