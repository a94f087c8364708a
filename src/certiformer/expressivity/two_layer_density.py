r"""Two attention layers, or one, with keys of size 1 approximate every continuous map of sequences to sequences.

The density result behind the approximation rates: with enough feed-forward units nothing continuous is out of reach,
and the attention dimension m_h is not what limits it.

Statement
---------
Let tau >= 2, let I_1, ..., I_tau in R^d be compact and pairwise disjoint (positions are told apart), and I their
union. H(1) holds the maps

    H^_t(x) = F^( sum_s softmax_s[ (W_Q h_t) . (W_K h_s) ] W_V h_s ),      h_s = f^(x_s),      t = 1, ..., tau,

with feed-forward networks f^ and F^, and H(2) those with one more attention layer, with a residual, before it: h_s is
replaced by h_s + W_O sum_r softmax_r[ (W'_Q h_s) . (W'_K h_r) ] W'_V h_r.

(a) H(1) is contained in H(2): with W_O = 0, and any other weights in the first layer, the outputs are the same.

(b) If feed-forward networks of the class allowed are dense in C(K, R^n) for every compact K, then for every continuous
    H from I_1 x ... x I_tau to R^tau and every eps > 0 there is a member of H(1), hence of H(2), with
    sup |H^_t(x) - H_t(x)| < eps for all t, with m_h = 1 and m_v = tau (d + 1).

Source
------
Jiang and Li 2023 (arXiv 2305.18475, first version) claim density of two-layer transformers by observing (a); only its
title, abstract and a summary could be read. The final version has one layer, m_h = tau and a representation by
Kolmogorov superposition (Theorem 4.1). The statement and the proof here are our own.

Differs from the source in
--------------------------
No superposition theorem is used. The printed proof subtracts psi(x_t), which is no function of the pooled vector; a
repair with blocks of channels costs tau (2 tau d + 1) + 1 value channels. Reading the tokens back from the pooled
vector costs tau (d + 1), and the kernel has rank 1 instead of tau. So C_1 of a target is finite for every alpha,
whatever the target is: a rate in m_h speaks of a given representation.

Proof
-----
(a) h_s + 0 = h_s.

(b) Choose on I, for u in I_t and v in I_s,

    query(u) = t,     key(v) = log 2 * [s = 1],     value(v) = (e_s, e_s (x) v)  in R^tau x R^(tau x d).

All three are continuous on I, because the I_s are compact and disjoint. The weights are, with N_t = 2^t + tau - 1,

    w_ts = 2^t / N_t  for s = 1,        1 / N_t  for s > 1,

and the pooled vector is z(t, x) = (w_t1, ..., w_t,tau, w_t1 x_1, ..., w_t,tau x_tau). It determines t, by w_t1 / w_t2
= 2^t, and then x_s = (w_ts x_s) / w_ts. So z is continuous and injective on the compact set {1, ..., tau} x prod I_s,
its inverse is continuous on the compact image Z, and so is F = H o z^(-1), which Tietze's theorem continues to all of
R^(tau (d + 1)). Now H_t(x) = F(z(t, x)) exactly. Let f^ be within delta of (query, key, value) on I; the pooled vector
depends on these uniformly continuously, so z^ is within omega(delta) -> 0 of z, in the 1-neighbourhood of Z for small
delta. F is uniformly continuous there; let F^ be within eps/2 of it there, and take delta so small that |F(z^) - F(z)|
< eps/2. QED

Assumptions
-----------
- dense-feed-forward: **trusted** networks of the class allowed approximate every continuous function on every compact set
  (for one hidden layer and any activation that is no polynomial: Leshno, Lin, Pinkus and Schocken 1993).
- disjoint-inputs: **trusted** tokens at different positions come from disjoint compact sets, as a position code makes them.

Certified
---------
(a) is checked on stored weights: `with_idle_layer` puts a layer with W_O = 0 and otherwise random weights into a
model, and the outputs are the same numbers. Of (b), that the pooled vector determines position and tokens: `pooled`
and `read_back` are inverse to each other in rational arithmetic.

Not certified
-------------
No rate: F may oscillate fast, and its network may be as large as it likes. Nothing for inputs whose positions are not
told apart, where H(1) and H(2) are permutation equivariant.

Example
-------
>>> from fractions import Fraction
>>> tokens = [[Fraction(1, 3)], [Fraction(5, 2)], [Fraction(9, 2)]]
>>> pooled(tokens, 2)[:3]
[Fraction(2, 3), Fraction(1, 6), Fraction(1, 6)]
>>> read_back(pooled(tokens, 2), length=3) == (2, tokens)
True

Tests
-----
`tests/theorems/test_two_layer_density.py`
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from certiformer.errors import BadInput
from certiformer.model import Attention, Block, Config, Transformer

THEOREM = {
    "id": "expressivity.two_layer_density",
    "title": "Two attention layers, or one, with keys of size 1 approximate every continuous map of sequences to sequences",
    "kind": "exact",
    "sources": (
        "jiang2024",
        "classical",
    ),
    "verb": "rates",
    "assumptions": (
        (
            "dense-feed-forward",
            "Feed-forward networks of the class allowed approximate every continuous function on every compact set.",
            "trusted",
        ),
        ("disjoint-inputs", "Tokens at different positions come from pairwise disjoint compact sets.", "trusted"),
    ),
    "uses": (),
}

Numbers = Sequence[Fraction]


def weights(length: int, place: int) -> list[Fraction]:
    """The attention weights w_t1, ..., w_t,tau of part (b), for t = `place` from 1 to `length`."""
    if length < 2 or not 1 <= place <= length:
        raise BadInput(f"there are two positions or more, from 1 to the length, not position {place} of {length}")
    total = 2**place + length - 1
    return [Fraction(2**place, total)] + [Fraction(1, total)] * (length - 1)


def pooled(tokens: Sequence[Numbers], place: int) -> list[Fraction]:
    """The pooled vector z(t, x): the weights, then every token times its weight."""
    shares = weights(len(tokens), place)
    return shares + [share * Fraction(number) for share, token in zip(shares, tokens, strict=True) for number in token]


def read_back(vector: Numbers, length: int) -> tuple[int, list[list[Fraction]]]:
    """The position and the tokens that a pooled vector came from; one that came from none is refused."""
    if length < 2 or len(vector) % length or len(vector) < length or not all(share > 0 for share in vector[:length]):
        raise BadInput("this is no pooled vector: it begins with a positive weight of each token")
    ratio = vector[0] / vector[1]
    place = ratio.numerator.bit_length() - 1
    size = len(vector) // length - 1
    if ratio != 2**place or not 1 <= place <= length or list(vector[:length]) != weights(length, place):
        raise BadInput("this is no pooled vector: its weights are those of no position")
    parts = [vector[length + s * size : length + (s + 1) * size] for s in range(length)]
    return place, [[number / vector[s] for number in part] for s, part in enumerate(parts)]


def with_idle_layer(model: Transformer, attention: Attention, seed: int = 0) -> Transformer:
    """The model with one more attention layer before its last one: a residual, W_O = 0, and random weights otherwise."""
    places = [place for place, block in enumerate(model.config.blocks) if block.attention is not None]
    if not places or not attention.residual or model.config.loops > 1:
        raise BadInput(
            "a layer that does nothing has a residual, and goes before an attention layer that is not looped"
        )
    last = places[-1]
    blocks = (*model.config.blocks[:last], Block(attention), *model.config.blocks[last:])
    config: Config = replace(model.config, blocks=blocks)
    tensors = dict(Transformer.random(config, seed).tensors)
    for name in tensors:
        parts = name.split(".")
        if parts[0] == "blocks" and int(parts[1]) == last:
            if parts[-1] in ("output", "output_bias"):
                tensors[name] = np.zeros_like(tensors[name])
            if parts[-1] == "mask":
                tensors[name] = np.ones_like(tensors[name])
            continue
        source = int(parts[1]) - (int(parts[1]) > last) if parts[0] == "blocks" else None
        tensors[name] = model.tensors[name if source is None else ".".join(["blocks", str(source), *parts[2:]])]
    return Transformer(config, tensors)
