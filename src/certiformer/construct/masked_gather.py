r"""Under any mask that lets all tokens hear all, attention brings every number to every token, exactly, hop by hop.

Statement
---------
Let masks A^1, ..., A^p (used in turn) let every token attend to itself and let every token hear
every other after s layers (conditions 1 and 3 of `expressivity.sparse_attention`). Then for n tokens of width d in a
box there is a transformer of s layers of attention under these masks, with one-hot codes, whose last layer has x_1,
..., x_n themselves in every row, in real arithmetic, for each of

(a) softmax attention, at most 2n heads a layer, after one feed-forward layer of n d units;
(b) linear attention, at most n heads a layer, scores 0 or 1.

So every function of the whole sequence that one feed-forward layer and a linear read-out compute of (x_1, ..., x_n)
is computed under the mask, at one token or, gated by position (`construct.position_gating`), differently at each.
With `construct.ridge` in that place every continuous function on a box is approximated **in the sup norm**.

Source
------
Yun et al. 2020 (arXiv 2006.04862) for the conditions; the construction is own.

Differs from the source in
--------------------------
Sup norm instead of L^p, no path (condition 2) needed, and s layers instead of exponentially many. The price is a stream
that holds the whole sequence, of width n d + n + d and more instead of d.

Proof
-----
Every token has a slot of d coordinates for each token s. Invariant: slot s of row i holds the numbers y_s
if i holds s, and 0 otherwise. Scores are tables: the query of row i is row i of the table, the key of token j is its
one-hot code.
(a) y_s = x_s - l_s > 0 is written to slot s of token s alone by the units relu(x - l_s - B + B <e_s, code>), with
B >= sup (x - l_s) at every other token. For every source s two heads have the value slot s. In a row i that receives s,
let m = |A_i| and let h of these hold s; 0 < h < m, as i attends to itself and does not hold s. The first head gives
the holders the score log(3 (m-h)/h) and the others 0, so that the holders have the weight 3(m-h)/(3(m-h) + m-h) = 3/4
together; the second head log((m-h)/3h) and the weight 1/4. With output weights 2 and -2 row i receives 2 (3/4 - 1/4)
y_s = y_s. In every other row both heads have the score 0 everywhere, hence the same weights, and cancel.
(b) One head for each source, with the score 1 from row i to one holder of s if i receives s (in the first layer to s
itself, with the value x_s read off the stream), and 0 otherwise. The weights are the scores, so row i receives
exactly y_s = x_s. All holders then carry y_s again. QED.

Assumptions
-----------
- masks: **checked** every token attends to itself, and every reader hears every source (`hops`).
- box: **trusted** the inputs lie in the box; a claim states it and the checker proves the claim on it.

Certified
---------
By the checker's rules on the stored weights (logarithms are rounded to float64): *ridges* for
sums of ridges, *boxes* for the rest.

Not certified
-------------
That the transformer is small: heads and score tables grow like n^3 per layer.

Example
-------
>>> window = abs(np.subtract.outer(np.arange(4), np.arange(4))) <= 1  # nobody sees further than a neighbour
>>> shape = Shape(tokens=4, width=1, out_tokens=4, out_width=1, layout="sequence")
>>> no_units, zero = (np.zeros((0, 4)), np.zeros(0), np.zeros((0, 4))), np.zeros(4)
>>> for kind in ("softmax", "linear"):
...     reverse = masked_gather(window, shape, zero, zero + 1, np.eye(4)[::-1], zero, *no_units, attention=kind)
...     print(reverse.evaluate([[0.1, 0.2, 0.3, 0.4]]).round(12), len(reverse.config.blocks))
[[0.4 0.3 0.2 0.1]] 4
[[0.4 0.3 0.2 0.1]] 3

Tests
-----
`tests/theorems/test_masked_gather.py`
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import ArrayLike, Float

from certiformer.construct import ridge
from certiformer.construct.gather_block import feed_of
from certiformer.construct.masked_layers import (
    Hop,
    Layout,
    Tensors,
    first_slots,
    hops,
    last_part,
    linear_hop,
    softmax_hop,
)
from certiformer.construct.method import Construction, Shape, Task
from certiformer.construct.position_gating import Feed, Ridges
from certiformer.errors import BadInput
from certiformer.expressivity.sparse_attention import mask_stack
from certiformer.model import Attention, Block, Code, Config, FeedForward, Heads, Input, Readout, Transformer

THEOREM = {
    "id": "construct.masked_gather",
    "title": "Under any mask that lets all tokens hear all, attention brings every number to every token, "
    "exactly, hop by hop",
    "kind": "exact",
    "sources": ("yun2020b",),
    "verb": "explore",
    "assumptions": (
        ("masks", "Every token attends to itself, and every reader hears every source.", "checked"),
        ("box", "The inputs lie in the box of the claim.", "trusted"),
    ),
    "uses": (
        "expressivity.sparse_attention",
        "construct.exact_gather",
        "construct.position_gating",
    ),
}


def construction_under_mask(
    task: Task, masks: ArrayLike | Sequence[ArrayLike], attention: str = "softmax"
) -> Construction:
    """The transformer of `--method ridge` for a task, with its gather replaced by hops under the masks.

    One mask (n, n), or one for each layer, used in turn. `search.build_under_mask` certifies it; `through` of the result
    is the fitted sum of ridges when the target is not a sum of ridges itself.
    """
    planned = ridge.plan(replace(task, shape=replace(task.shape, layout="sequence")))
    return Construction(
        masked_gather(masks, *planned.gather_arguments(), attention=attention), None, through=planned.through
    )


def masked_gather(
    masks: ArrayLike | Sequence[ArrayLike],
    shape: Shape,
    low: Float[np.ndarray, " inputs"],
    high: Float[np.ndarray, " inputs"],
    linear: Float[np.ndarray, "inputs outputs"],
    constant: Float[np.ndarray, " outputs"],
    weights: Float[np.ndarray, "units inputs"],
    bias: Float[np.ndarray, " units"],
    coefficients: Float[np.ndarray, "units outputs"],
    activation: str = "relu",
    *,
    attention: str = "softmax",
) -> Transformer:
    """Like `gather_block.gather_transformer`, with attention only where the masks allow it, of kind softmax or linear."""
    if attention not in ("softmax", "linear"):
        raise BadInput(f"a masked gather is built with softmax or linear attention, not {attention!r}")
    if shape.layout != "sequence":
        raise BadInput(f"a mask speaks of a sequence of tokens, not of the layout {shape.layout}")
    feed = feed_of(shape, low, high, Ridges(linear, constant, weights, bias, coefficients), activation)
    stack = mask_stack(masks)
    if stack.shape[1] != shape.tokens:
        raise BadInput(f"the masks are for {stack.shape[1]} tokens, not for {shape.tokens}")
    used = np.flatnonzero(feed.up.any(axis=0) | feed.read.any(axis=1)) // shape.width
    plan = hops(stack, sorted({int(s) for s in used}), range(shape.tokens) if shape.per_position else [0])
    layout = Layout(shape.tokens, shape.width, feed.down.shape[1])
    blocks, tensors, lift = [], {}, np.zeros(shape.inputs)
    if attention == "softmax":
        lift, tensors = first_slots(layout, np.asarray(low, float), np.asarray(high, float))
        blocks = [Block(None, FeedForward(shape.inputs))]
    for hop in plan:
        made = _hop(layout, hop, attention, first=not blocks, prefix=f"blocks.{len(blocks)}.attention")
        blocks.append(made[0])
        tensors |= made[1]
    return _finished(layout, shape, blocks, tensors, feed, lift, activation)


def _hop(layout: Layout, hop: Hop, kind: str, first: bool, prefix: str) -> tuple[Block, dict[str, np.ndarray]]:
    """One layer of attention under the hop's mask."""
    tensors = softmax_hop(layout, hop) if kind == "softmax" else linear_hop(layout, hop, first)
    heads = Heads(len(tensors["query"]), layout.tokens, layout.width)
    attention = Attention((heads,), kind, scale="unit", mask="none" if hop.mask.all() else "table")
    stored = {f"{prefix}.groups.0.{name}": tensor for name, tensor in tensors.items()}
    if attention.mask == "table":
        stored[f"{prefix}.mask"] = hop.mask.astype(np.uint8)
    return Block(attention), stored


def _finished(
    layout: Layout, shape: Shape, blocks: list[Block], tensors: Tensors, feed: Feed, lift: np.ndarray, activation: str
) -> Transformer:
    """With the feed-forward part in the last block and the read-out."""
    ffn, read = last_part(layout, feed, lift)
    if len(feed.bias):
        blocks[-1] = replace(blocks[-1], ffn=FeedForward(len(feed.bias), activation))
        tensors = tensors | {f"blocks.{len(blocks) - 1}.ffn.{name}": tensor for name, tensor in ffn.items()}
    config = Config(
        Input("continuous", tokens=shape.tokens, width=shape.width),
        width=layout.total,
        outputs=feed.down.shape[1],
        readout=Readout("all") if shape.per_position else Readout("token", token=0),
        blocks=tuple(blocks),
        code=Code("one-hot", offset=layout.code),
    )
    embed = {"embed.weight": np.eye(shape.width, layout.total), "embed.bias": np.zeros(layout.total)}
    return Transformer(config, {**embed, **tensors, **read})
