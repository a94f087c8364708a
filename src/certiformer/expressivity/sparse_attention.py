r"""Sparse attention is universal in L^p if every token hears itself, a path visits all, and all hear all.

Statement
---------
Let the layers use in turn the patterns A^1, ..., A^p, A^l_k being the tokens that token k attends
to in layer l. Suppose

1. *self*: k is in A^l_k for all k and l;
2. *path*: some order g(1), ..., g(n) of the tokens has g(i) in the union over l of A^l_{g(i+1)} for all i < n;
3. *reach*: for some s every token hears every token after s layers, S^s_k = {1..n}, where S^0_k = {k} and S^t_k is the
   union of S^{t-1}_j over j in A^{l(t)}_k, l(t) = (t-1 mod p) + 1.

Then transformers with these patterns, softmax attention (two heads of size 1, feed-forward width 4) and trainable
absolute position codes are dense in the continuous functions from a compact domain in R^{d x n} to R^{d x n} **in
L^p, 1 <= p < inf**. It is not a statement about the sup norm, and the depth is exponential in d n. O(n) connections
suffice: a window of three, or a ring with one global token (s = 2).

Source
------
Yun et al. 2020 (arXiv 2006.04862), the conditions on sparsity patterns and the theorem on density.

Differs from the source in
--------------------------
Nothing in the conditions. They are decided here for given
masks, with a witness when one fails: a token that does not hear itself, a pair that never talks, or the reason why
there is no path. When heads of a layer have masks of their own the union is taken; the theorem then speaks of the
layer in which every head has the union.

Proof
-----
Of the theorem: in the source. Of the decision: S^t depends on S^{t-1} and on t mod p alone, so the
sequence runs into a cycle, and once a state repeats nothing new comes. With self edges S^t only grows. For the path
see `expressivity.hamiltonian_path`; its third answer "not found" is neither a yes nor a no.

Assumptions
-----------
- patterns: **checked** the masks are square, of one size, and hold nothing but 0 and 1.
- theorem: **trusted** the theorem of the source; its proof is not repeated here.
- positions: **trusted** there are trainable absolute codes and the weights are softmax: the theorem asks for both.

Certified
---------
`sparsity` decides 1 and 3 exactly. A path is verified edge by edge; "does not exist" is proved.

Not certified
-------------
How many layers an approximation needs, and anything in the sup norm. A mask that fails is
not refuted by this theorem: but if pair (k, j) never talks, no model under the mask computes at token k anything that
depends on token j.

Example
-------
>>> window = abs(np.subtract.outer(np.arange(6), np.arange(6))) <= 1
>>> print(sparsity(window))
self: holds; path: found, 0 1 2 3 4 5; reach: holds, all tokens hear all after 5 layers
>>> print(sparsity(np.tri(3, dtype=bool)))
self: holds; path: found, 0 1 2; reach: fails, token 0 never hears token 1

Tests
-----
`tests/theorems/test_sparse_attention.py`
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool
from numpy.typing import ArrayLike

from certiformer.errors import BadInput
from certiformer.expressivity.attention_tables import mask_table
from certiformer.expressivity.hamiltonian_path import PathSearch, hamiltonian_path
from certiformer.model import Config

THEOREM = {
    "id": "expressivity.sparse_attention",
    "title": "Sparse attention is universal in L^p if every token hears itself, a path visits all, and all hear all",
    "kind": "upper bound",
    "sources": ("yun2020b",),
    "verb": "audit",
    "assumptions": (
        ("patterns", "The masks are square, of one size, and hold nothing but 0 and 1.", "checked"),
        ("theorem", "The theorem of the source.", "trusted"),
        ("positions", "There are trainable absolute codes and the weights are softmax.", "trusted"),
    ),
    "uses": (),
}

Masks = Bool[np.ndarray, "layers length length"]


@dataclass(frozen=True)
class Condition:
    """Whether a condition holds; `witness` is (the token that does not hear, the token that is not heard) if it fails."""

    holds: bool
    reason: str
    witness: tuple[int, int] | None = None

    def __str__(self) -> str:
        return f"{'holds' if self.holds else 'fails'}{', ' + self.reason if self.reason else ''}"


@dataclass(frozen=True)
class Sparsity:
    """The three conditions for given masks; `layers` is s of condition 3, `connections` counts the ones of each mask."""

    self_edges: Condition
    path: PathSearch
    reach: Condition
    layers: int | None
    connections: tuple[int, ...]

    @property
    def holds(self) -> bool | None:
        """Whether all three hold; None when only the path is in doubt."""
        if not (self.self_edges.holds and self.reach.holds) or self.path.status == "does not exist":
            return False
        return True if self.path.status == "found" else None

    def __str__(self) -> str:
        way = " ".join(map(str, self.path.path)) or self.path.reason
        return f"self: {self.self_edges}; path: {self.path.status}, {way}; reach: {self.reach}"


def sparsity(masks: ArrayLike | Sequence[ArrayLike], path: Sequence[int] | None = None) -> Sparsity:
    """The three conditions for one mask (n, n), a mask for each layer (p, n, n), or for each layer and head (p, h, n, n).

    Row k of a mask says whom token k attends to. `path` is a path to be verified instead of sought.
    """
    stack = mask_stack(masks)
    union = np.asarray(stack.any(axis=0))
    reach, layers = _reach(stack)
    # An edge a -> b of the path is "b attends to a": what a knows can move on to b.
    found = hamiltonian_path(union.T, path)
    return Sparsity(_self_edges(stack), found, reach, layers, tuple(int(mask.sum()) for mask in stack))


def masks_of(config: Config, tensors: Mapping[str, ArrayLike] | None = None) -> Masks:
    """The mask of every block with attention, registers first; registers count as tokens."""
    masks = []
    for index, block in enumerate(config.blocks):
        if block.attention is not None:
            mask = mask_table(config, index, tensors)
            if mask is None:
                raise BadInput(f"the mask of block {index} is stored in the tensors, which are needed")
            masks.append(mask)
    if not masks:
        raise BadInput("the transformer has no attention, so no token hears another")
    return np.array(masks)


def mask_stack(masks: ArrayLike | Sequence[ArrayLike]) -> Masks:
    """One mask for each layer, the union over the heads where these have their own."""
    try:
        given = np.asarray(masks)
    except ValueError:
        raise BadInput("the masks of all layers have the same size") from None
    if given.ndim == 2:
        given = given[None]
    if given.ndim == 4:
        if not given.shape[1]:
            raise BadInput("a layer has at least one head")
        given = _booleans(given).any(axis=1)
    if given.ndim != 3 or given.shape[1] != given.shape[2] or 0 in given.shape:
        raise BadInput(
            f"a mask is a square table, or one for each layer (and head), not an array of shape {given.shape}"
        )
    return _booleans(given)


def _booleans(given: np.ndarray) -> np.ndarray:
    if given.dtype == bool:
        return given
    if not np.isin(given, (0, 1)).all():
        raise BadInput("a mask holds nothing but 0 and 1")
    return given == 1


def _self_edges(stack: Masks) -> Condition:
    missing = np.argwhere(~np.diagonal(stack, axis1=1, axis2=2))
    if not len(missing):
        return Condition(True, "")
    layer, token = map(int, missing[0])
    return Condition(False, f"token {token} does not hear itself in layer {layer}", (token, token))


def _reach(stack: Masks) -> tuple[Condition, int | None]:
    """Condition 3 with s, or a pair that does not talk."""
    period, n = len(stack), stack.shape[1]
    heard = np.eye(n, dtype=bool)
    ever, seen = heard.copy(), set()
    layer = 0
    while (state := (layer % period, heard.tobytes())) not in seen:
        seen.add(state)
        # Products of 0/1 matrices count ways; the counts are at most n and exact.
        heard = stack[layer % period].astype(np.float64) @ heard.astype(np.float64) > 0
        ever |= heard
        layer += 1
        if heard.all():
            return Condition(True, f"all tokens hear all after {layer} layer{'s' * (layer > 1)}"), layer
    silent = np.argwhere(~ever)
    if len(silent):
        k, j = map(int, silent[0])
        return Condition(False, f"token {k} never hears token {j}", (k, j)), None
    k, j = map(int, np.argwhere(~heard)[0])
    return Condition(False, f"never all at once: after {layer} layers token {k} does not hear token {j}", (k, j)), None
