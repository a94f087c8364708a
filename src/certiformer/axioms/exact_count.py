"""One uniform head and ReLU units compute functions of the counts of letters, on all V^n sequences at once.

Statement
    Let a stored transformer have one block with one uniform head, ReLU units or none, no position code, and the
    read-out of one position. Write K_u for what one token with the letter u adds to the stream through the head, and
    h = E_x + sum_u c_u K_u for the stream at the position that is read, whose own letter is x. Then for an output o
    that speaks of the letter v, every count c of v and every sequence with that count,

        |T_o - f(c)| <= max over h in E_* + c K_v + (n - c) K_{not v} of |R_o(h) - f(c)|,

    where E_* is the hull of all E_x, K_{not v} the hull of K_u over the letters u other than v, and R_o the feed-forward
    layer with the read-out, evaluated in intervals. The largest of these bounds over all c and o is the bound.

Source
    Own derivation; counting by a uniform head is folklore (perez2021 use it). The weights for which the bound is zero are
    `construct.counting`, `construct.parity` and `construct.majority`.

Differs from the source in: The bound is for whatever weights are stored, and says how far they are from counting.

Proof
    Neither queries nor keys, or not both, are nonzero, so all scores are equal and the head returns the mean of the
    values: the stream at the position is E_x + sum_u c_u K_u with K_u = (E_u W_V W_O) / n and sum_u c_u = n. The letters
    other than v occur n - c times together, so their part of the sum is n - c times a mean of K_u, u != v, which lies in
    the hull. Every sequence has some count c of v, 0 <= c <= n (c = n when v is the only letter); interval arithmetic
    encloses R_o on the set above. QED.

    In the ideal weights K_u is the unit vector of the counter of u, a unit that feeds o reads the counter of v alone, and
    all hulls shrink to points where they are read: the bound is the rounding of the balls.

Assumptions
    - form (**checked**): one block without norm, one softmax head with zero queries or zero keys, ReLU units or none, no
      position code, the read-out of one position.

Certified: The bound for the real-number function of the exact stored weights, at all V^n sequences of full length.

Not certified
    Shorter sequences; letters outside the alphabet. The rounding of a run is a claim of its own (`kernel.rounding.runs`).

Example
    >>> from certiformer.kernel.meanings.sequence_maps import CountMap
    >>> CountMap("parity", 2, 40, "parity").sentence("1e-6").split("of 2, ")[1]
    'the output differs from the parity (0 or 1) of the number of letters 1 by at most 1e-6.'

Tests: tests/theorems/test_exact_count.py
"""

from __future__ import annotations

from flint import arb

from certiformer.axioms.relu_readout import ReluReadout, hull_of
from certiformer.kernel import Refused
from certiformer.kernel.balls import ONE, ZERO, larger
from certiformer.kernel.certificate import Theorem as TheoremNode
from certiformer.kernel.meanings.sequence_maps import CountMap
from certiformer.kernel.problem import FiniteProblem, PointNetwork

THEOREM = {
    "id": "axioms.exact_count",
    "title": "One uniform head and ReLU units compute functions of the counts of letters, for all sequences.",
    "kind": "exact",
    "sources": ("classical", "perez2021"),
    "verb": "build",
    "assumptions": (
        ("form", "one block, one uniform softmax head, ReLU units or none, one position is read", "checked"),
    ),
}

_HEAD = "blocks.0.attention.groups.0"
_ATTENTION = {"kind": "softmax", "bias": False, "mask": "none", "score_bias": "none", "residual": True}


def check(node: TheoremNode, problem: FiniteProblem) -> arb:
    """The proved bound over all sequences; raises `Refused` when the transformer is not of the theorem's form."""
    target, network = problem.target, problem.network
    if not isinstance(target, CountMap):
        raise Refused("the theorem exact_count speaks of the numbers of letters in all sequences over an alphabet")
    if node.parameters:
        raise Refused("the theorem exact_count has no parameters")
    _require_form(network, target)
    tokens, letters = target.tokens, range(target.alphabet)
    tensors = network.tensors
    embed = tensors["embed.weight"].matrix()
    mix = tensors[f"{_HEAD}.value"].matrix(0) * tensors[f"{_HEAD}.output"].matrix(0)
    added = embed * mix * (ONE / arb(tokens))
    worst = ZERO
    for output, letter in enumerate(target.letters):
        layer = ReluReadout(network, output)
        others = [u for u in letters if u != letter]
        own = {i: hull_of([embed[x, i] for x in letters]) for i in layer.used}
        rest = {i: hull_of([added[u, i] for u in others]) if others else ZERO for i in layer.used}
        for count in range(tokens + 1) if others else [tokens]:
            stream = {i: own[i] + count * added[letter, i] + (tokens - count) * rest[i] for i in layer.used}
            error = layer.at(stream) - target.value(count)
            worst = larger(worst, error.abs_upper())
    if not worst.is_finite():
        raise Refused("the distance of the stored weights from counting could not be enclosed")
    return worst


def _require_form(network: PointNetwork, target: CountMap) -> None:
    config = network.config
    blocks = config["blocks"]
    block = blocks[0] if len(blocks) == 1 and config["loops"] == 1 and not config["registers"] else None
    attention, ffn = (block["attention"], block["ffn"]) if block else (None, None)
    if not block or not attention or block["norm"] is not None or config["code"]["kind"] != "none":
        raise Refused("the theorem exact_count needs one block with attention, no norm, no registers, no position code")
    if any(attention[name] != value for name, value in _ATTENTION.items()) or attention["heads"][1:]:
        raise Refused("the theorem exact_count needs a single plain softmax head")
    if attention["heads"][0]["count"] != 1 or (ffn is not None and (ffn["kind"], ffn["residual"]) != ("relu", True)):
        raise Refused("the theorem exact_count needs one head, and ReLU units with a residual or none")
    if config["readout"]["kind"] != "token" or config["outputs"] != target.outputs:
        raise Refused("the theorem exact_count needs the read-out of one position, an output for each letter counted")
    if config["input"] != {"kind": "ids", "tokens": target.tokens, "vocabulary": target.alphabet}:
        raise Refused("the transformer does not read the sequences that the claim speaks of")
    if any(network.tensors[f"{_HEAD}.query"].data) and any(network.tensors[f"{_HEAD}.key"].data):
        raise Refused("the head is not uniform: neither its queries nor its keys are zero")
