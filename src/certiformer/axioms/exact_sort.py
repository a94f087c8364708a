"""One uniform head and 2V ReLU units sort every sequence over an alphabet of V letters, all V^n of them at once.

Statement
    Let the tokens be letters x_1, ..., x_n from {0, ..., V - 1}. A uniform head turns unit vectors into counts, hence
    into the cumulative counts C_v = #{j : x_j <= v} at every position. Position t = 0, ..., n - 1 of the sorted
    sequence holds v exactly when C_{v-1} <= t < C_v (C_{-1} = 0), and with step(s) = relu(s) - relu(s - 1)

        1[sorted letter at t is v] = step(C_v - t) - step(C_{v-1} - t),

    with 2V hidden units in all. A stored transformer of this form differs from these unit vectors, at every position
    of every one of the V^n sequences, by at most

        max_o  sum_i |D_io| e_i + n sum_i |D_io - D*_io| + r_o,

    where D is the stored map from hidden units to outputs, D* the ideal one, e_i the largest deviation of the stored
    input of unit i from the ideal one, and r_o what reaches output o without passing a unit. Below 1/2 the largest
    output names the letter.

Source: Own derivation; counting by a uniform head is folklore (perez2021 use it; RASP calls it selector_width).

Differs from the source in
    RASP sorts with two attention layers (rank, then gather by rank). Counts make one layer enough when the alphabet
    is finite.

Proof
    step is 0 on integers <= 0 and 1 on integers >= 1, so step(C_v - t) = 1[t < C_v]; C_v is increasing in v, so the
    difference is 1[C_{v-1} <= t < C_v], which holds for exactly one v since C_{V-1} = n > t. That is the sorted
    letter: positions C_{v-1} to C_v - 1 of the sorted sequence hold v. For the stored weights: the scores are zero,
    so the head gives exactly the mean, and the input of unit i is a_i = sum_u c_u alpha_ui + beta_{i,x} + gamma_{i,t}
    with the counts c_u, the own letter x and the position t. Since sum_u c_u = n, |a_i - a*_i| <= n max_u |alpha_ui -
    alpha*_ui| + max_x |beta_ix| + max_t |gamma_it - gamma*_it| = e_i. relu is 1-Lipschitz and 0 <= relu(a*_i) <= n,
    so |sum_i D_io relu(a_i) - sum_i D*_io relu(a*_i)| <= sum_i |D_io| e_i + n sum_i |D_io - D*_io|; the rest is r_o,
    bounded in the same way. QED.

Assumptions
    form (**checked**): one block without norm, one softmax head with zero queries or zero keys, 2V ReLU units, a
    read-out of all positions; the distance of the stored numbers from the ideal ones is part of the bound.

Certified: The bound for the real-number function of the exact stored weights, at all V^n sequences of full length.

Not certified
    Shorter sequences; letters outside the alphabet. The rounding of a run is a claim of its own (`kernel.rounding.runs`).

Example
    >>> from certiformer.kernel.meanings.sequence_maps import SortMap
    >>> SortMap("sort", 7, 25).sentence("1e-6")[:56]
    'For every one of the 7^25 sequences of 25 letters from a'

Tests: tests/theorems/test_exact_sort.py
"""

from __future__ import annotations

from flint import arb, arb_mat

from certiformer.kernel import Refused
from certiformer.kernel.balls import ONE, ZERO, larger, largest
from certiformer.kernel.certificate import Theorem as TheoremNode
from certiformer.kernel.meanings.sequence_maps import SortMap
from certiformer.kernel.problem import FiniteProblem, PointNetwork

THEOREM = {
    "id": "axioms.exact_sort",
    "title": "One uniform head and 2V ReLU units sort every sequence over an alphabet of V letters.",
    "kind": "exact",
    "sources": ("classical", "perez2021"),
    "verb": "build",
    "assumptions": (("form", "one block, one uniform softmax head, 2V ReLU units, all positions are read", "checked"),),
}

_HEAD, _FFN = "blocks.0.attention.groups.0", "blocks.0.ffn"
_ATTENTION = {"kind": "softmax", "bias": False, "mask": "none", "score_bias": "none", "residual": True}


def check(node: TheoremNode, problem: FiniteProblem) -> arb:
    """The proved bound over all sequences; raises `Refused` when the transformer is not of the theorem's form."""
    target, network = problem.target, problem.network
    if not isinstance(target, SortMap):
        raise Refused("the theorem exact_sort speaks of sorting all sequences over an alphabet")
    if node.parameters:
        raise Refused("the theorem exact_sort has no parameters")
    letters, positions = target.alphabet, target.tokens
    _require_form(network, letters)
    n = arb(positions)
    embed, up = network.tensors["embed.weight"].matrix(), network.tensors[f"{_FFN}.up"].matrix()
    width = embed.ncols()
    codes = arb_mat(positions, width, [value for t in range(positions) for value in network.code(t)])
    mean = arb_mat(1, positions, [ONE / n] * positions) * codes
    mix = network.tensors[f"{_HEAD}.value"].matrix(0) * network.tensors[f"{_HEAD}.output"].matrix(0)
    counted, shift = embed * mix * (ONE / n), mean * mix  # added to every position: c . counted + shift
    placed = arb_mat(positions, width, [codes[t, i] + shift[0, i] for t in range(positions) for i in range(width)])

    bias = network.tensors[f"{_FFN}.up_bias"].row()
    alpha, beta, gamma = counted * up, embed * up, placed * up
    units = range(2 * letters)
    deviation = [
        (
            n * largest([(alpha[u, i] - int(u <= i // 2)).abs_upper() for u in range(letters)])
            + largest([beta[x, i].abs_upper() for x in range(letters)])
            + largest([(gamma[t, i] + bias[i] + t + i % 2).abs_upper() for t in range(positions)])
        ).upper()
        for i in units
    ]

    read = network.tensors["readout.weight"].matrix()
    out = network.tensors[f"{_FFN}.down"].matrix() * read
    constant = arb_mat(1, width, network.tensors[f"{_FFN}.down_bias"].row()) * read
    last, counted_out, own, placed_out = (
        network.tensors["readout.bias"].row(),
        counted * read,
        embed * read,
        placed * read,
    )
    worst = ZERO
    for o in range(letters):
        total = n * largest([counted_out[u, o].abs_upper() for u in range(letters)])
        total = total + largest([own[x, o].abs_upper() for x in range(letters)])
        total = total + largest([(placed_out[t, o] + constant[0, o] + last[o]).abs_upper() for t in range(positions)])
        for i in units:
            total = total + out[i, o].abs_upper() * deviation[i] + n * (out[i, o] - _ideal(i, o)).abs_upper()
        worst = larger(worst, total.upper())
    if not worst.is_finite():
        raise Refused("the distance of the stored weights from sorting could not be enclosed")
    return worst


def _ideal(unit: int, output: int) -> int:
    """D*: the units of letter v enter output v with +1, -1 and output v + 1 with the opposite signs."""
    sign = -1 if unit % 2 else 1
    return sign if output == unit // 2 else -sign if output == unit // 2 + 1 else 0


def _require_form(network: PointNetwork, letters: int) -> None:
    config = network.config
    blocks = config["blocks"]
    block = blocks[0] if len(blocks) == 1 and config["loops"] == 1 and not config["registers"] else None
    attention, ffn = (block["attention"], block["ffn"]) if block else (None, None)
    if not block or not attention or not ffn or block["norm"] is not None:
        raise Refused("the theorem exact_sort needs one block with attention and feed-forward, no norm, no registers")
    if any(attention[name] != value for name, value in _ATTENTION.items()) or attention["heads"][1:]:
        raise Refused("the theorem exact_sort needs a single plain softmax head")
    if attention["heads"][0]["count"] != 1 or (ffn["kind"], ffn["width"], ffn["residual"]) != (
        "relu",
        2 * letters,
        True,
    ):
        raise Refused(f"the theorem exact_sort needs one head and {2 * letters} ReLU units with a residual")
    if (config["readout"]["kind"], config["input"]["vocabulary"]) != ("all", letters):
        raise Refused("the theorem exact_sort needs the alphabet of the claim and a read-out of all positions")
    if any(network.tensors[f"{_HEAD}.query"].data) and any(network.tensors[f"{_HEAD}.key"].data):
        raise Refused("the head is not uniform: neither its queries nor its keys are zero")
