"""Several attention layers generalize independently of the length of their input: explicit constants.

Statement
---------
Let g_1 = X with |x_t|_2 <= B_x and, for i = 1..L, g_(i+1) = P(W_c P'(s(P''(W_v g_i softmax(g_i^T A g_i))))), where P
and P' project each token onto the unit ball of l2 and P'' does or is left out (P' may be left out where P'' is there
and S <= 1), s is entrywise with s(0) = 0 and Lipschitz constant S, and A has the score scale folded in. The output is
w . (token of g_(L+1)). Let, for layer i, c, v, q bound the spectral norms of W_c, W_v and A, |w|_2 <= b, and let a
sum of absolute entries at most B give covers (C_r, c_r) for inputs of norm r (`bounds.chaining.linear_cover`). With
the softmax constant c_s = 1 (printed: 2) and

    a_i = prod_(j > i) S c_j v_j (1 + 2 c_s q_j),

the outputs have a cover log N(eps) <= K / eps^2 + k that combines the covers of

    w with weight 1;   W_c of layer i with b a_i;   W_v of layer i with b a_i S c_i;
    A of layer i with b a_i c_s S c_i v_i r_i^2,   r_1 = B_x and r_i = 1 for i > 1,

where W_v and A of layer 1 see inputs of norm B_x and every other map inputs of norm 1. Then Rad <= chain(b, log N, m).

Source
------
Trauger and Tewari 2024 (trauger2024), Theorem 4.2 with its proof in appendix E, and Corollary 4.2.1.

Differs from the source in
--------------------------
This is what the proof gives. The theorem as printed has v where the proof has c with the cover of W_v, and misses the
terms of W_c and the factor a_1 of W_v in the first layer; on examples its K is 2 to 4 times too small (`as_printed`
keeps it). For B_x > 1 the lemma for the first layer assumes tokens in the unit ball; here its radius is put in.
Covers of linear maps carry the summand c_r, and the softmax constant is 1.

Proof
-----
Replace the maps by members of their covers, one after the other. At layer i an error e of the attention map x -> A x
moves the softmax by c_s r_i e in the l1 norm and the mean of the tokens by c_s r_i^2 e, which v_i, S and c_i pass on;
an error e of x -> W_v x passes S and c_i, one of x -> W_c x nothing more of its layer. A later layer j multiplies an
error of its input tokens by at most S c_j v_j (1 + 2 c_s q_j): the mean moves by e for the values, and the scores (A
g_t) . g_u by at most 2 q_j e for tokens in the unit ball, hence the softmax by 2 c_s q_j e. The last token is read by
w. Projections onto a ball do not expand. Add up and combine. Outputs are at most b, as tokens end in the unit ball.
QED.

Assumptions
-----------
- architecture: **trusted** layers as above: one head each, no residual, bias or true layer norm; `audit` says where a
  model differs.
- tokens: **trusted** |x_t|_2 <= B_x for all inputs that may come.
- independent: **trusted** the sample consists of independent sequences.

Certified
---------
`cover` and `complexity`, in balls.

Not certified
-------------
`as_printed`. Real transformers, whose norms and residuals the layers above do not have: see `bounds.normed_stack`.

Example
-------
>>> layer = LayerNorms(l11=15.961412, output=1.027004, value=1.171060, scores=1.053830)
>>> stack = Stack((layer,), width=8, hidden=8, readout=0.74, readout_l11=15.961412)
>>> round(above(complexity(stack, 10**12, softmax=2)), 4)
0.017

Tests
-----
`tests/theorems/test_trauger_layers.py`
"""

from __future__ import annotations

from dataclasses import dataclass

from flint import arb

from certiformer.bounds.chaining import Cover, chain, combine, linear_cover
from certiformer.bounds.numbers import above as above
from certiformer.bounds.numbers import ball, require_positive
from certiformer.bounds.trauger_one_layer import SHARP
from certiformer.errors import BadInput

THEOREM = {
    "id": "bounds.trauger_layers",
    "title": "Several attention layers generalize independently of the length of their input",
    "kind": "upper bound",
    "sources": ("trauger2024, Theorem 4.2",),
    "verb": "audit",
    "assumptions": (
        ("architecture", "Layers of one head without residual, bias or true layer norm.", "trusted"),
        ("tokens", "Every token that may come has l2 norm at most B_x.", "trusted"),
        ("independent", "The sample consists of independent sequences.", "trusted"),
    ),
    "uses": (
        "bounds.chaining",
        "bounds.trauger_one_layer",
    ),
}


@dataclass(frozen=True)
class LayerNorms:
    """Of one layer: the largest sum of absolute entries of its three maps, and the spectral norms of W_c, W_v and A."""

    l11: float
    output: float
    value: float
    scores: float


@dataclass(frozen=True)
class Stack:
    """The layers, the width d of a token, the width k between W_v and W_c, |w|_2, |w|_1, B_x and S."""

    layers: tuple[LayerNorms, ...]
    width: int
    hidden: int
    readout: float
    readout_l11: float
    inputs: float = 1.0
    lipschitz: float = 1.0


def later_factors(stack: Stack, softmax: int = SHARP) -> list[arb]:
    """a_1, ..., a_L."""
    factors, product = [], arb(1)
    for layer in reversed(stack.layers):
        factors.append(product)
        growth = 1 + 2 * softmax * ball(layer.scores)
        product = product * ball(stack.lipschitz) * ball(layer.output) * ball(layer.value) * growth
    return factors[::-1]


def cover(stack: Stack, softmax: int = SHARP) -> Cover:
    """The cover of the outputs, as proved."""
    require_positive(width_of_a_token=stack.width, hidden_width=stack.hidden, bound_of_the_tokens=stack.inputs)
    if not stack.layers:
        raise BadInput("the bound speaks of at least one layer")
    b, s, parts = ball(stack.readout), ball(stack.lipschitz), []
    parts.append((linear_cover(1, stack.readout_l11, stack.width, stack.hidden), arb(1)))
    for place, (layer, a) in enumerate(zip(stack.layers, later_factors(stack, softmax), strict=True)):
        radius = stack.inputs if place == 0 else 1.0
        inside = linear_cover(1, layer.l11, stack.width, stack.hidden)
        first = linear_cover(radius, layer.l11, stack.width, stack.hidden)
        c, v = ball(layer.output), ball(layer.value)
        parts += [(inside, b * a), (first, b * a * s * c), (first, b * a * softmax * s * c * v * ball(radius) ** 2)]
    return combine(parts)


def complexity(stack: Stack, sequences: int, softmax: int = SHARP) -> arb:
    """The bound of the Rademacher complexity of the outputs, never above |w|_2."""
    return chain(stack.readout, cover(stack, softmax), sequences)


def as_printed(stack: Stack) -> float:
    """K of Theorem 4.2 as it is printed (with softmax constant 2), for comparison only."""
    layer = max(stack.layers, key=lambda each: each.l11)
    small = linear_cover(1, layer.l11, stack.width, stack.hidden).inverse_square
    large = linear_cover(stack.inputs, layer.l11, stack.width, stack.hidden).inverse_square
    third, two_thirds = arb(1) / 3, arb(2) / 3
    b, s, factors = ball(stack.readout), ball(stack.lipschitz), later_factors(stack, 2)
    first = stack.layers[0]
    gamma = ball(large) ** third * (
        2 * s * ball(first.output) * ball(first.value) * factors[0] * b
    ) ** two_thirds + ball(small) ** third * (1 + (b * s * ball(first.value)) ** two_thirds)
    eta = arb(0)
    for each, a in list(zip(stack.layers, factors, strict=True))[1:]:
        c, v = ball(each.output), ball(each.value)
        eta += a**two_thirds + (2 * a * s * c * v) ** two_thirds + (a * s * v) ** two_thirds
    return above((gamma + ball(small) ** third * b**two_thirds * eta) ** 3)
