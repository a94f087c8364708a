"""A softmax head and ReLU units count, at every position, the positions with the same letter, on all V^n sequences.

Statement
    Let a stored transformer have one register (the start), one block with one softmax head, ReLU units or none, no
    position code, and a read-out of all positions. For a position with the letter x that occurs w times put
    e_y = exp(s(x, y) - s(x, start)), E the hull of e_y and B the hull of e_y v_y over the letters y other than x, where s
    are the scores and v the values behind the output matrix. The stream behind the head lies in

        E_x + (v_start + w e_x v_x + (n - w) B) / (1 + w e_x + (n - w) E),

    and the largest distance from w of the output on these sets, over all letters x and w = 1, ..., n, bounds the error at
    every position of every one of the V^n sequences.

Source: Own derivation; the weights are `construct.selector_width`, after RASP's selector_width (weiss2021).

Differs from the source in
    The leakage of the softmax is part of the bound; nothing is rounded to the nearest whole number.

Proof
    Multiply the softmax by exp(-s(x, start)): the start weighs 1, each of the w positions with the letter x weighs e_x,
    and the other n - w positions together weigh (n - w) times a mean of e_y, which lies in the hull E; their values add
    (n - w) times a mean of e_y v_y, which lies in B. Without position codes nothing else enters. QED.

Assumptions
    - form (**checked**): one block without norm, one register, one plain softmax head, ReLU units or none, no position
      code, a read-out of all positions.

Certified: The bound for the real-number function of the exact stored weights, at all V^n sequences of full length.

Not certified
    Shorter sequences; letters outside the alphabet. The rounding of a run is a claim of its own (`kernel.rounding.runs`).

Example
    >>> from certiformer.kernel.meanings.sequence_maps import WidthMap
    >>> WidthMap("hist", 3, 4).answer([2, 0, 2, 1])
    [2, 1, 2, 1]

Tests: tests/theorems/test_exact_width.py
"""

from __future__ import annotations

from flint import arb, arb_mat

from certiformer.axioms.relu_readout import ReluReadout, hull_of
from certiformer.kernel import Refused
from certiformer.kernel.balls import ONE, ZERO, larger
from certiformer.kernel.certificate import Theorem as TheoremNode
from certiformer.kernel.meanings.sequence_maps import WidthMap
from certiformer.kernel.problem import FiniteProblem, PointNetwork

THEOREM = {
    "id": "axioms.exact_width",
    "title": "A softmax head and ReLU units count the positions with the same letter, for all sequences.",
    "kind": "exact",
    "sources": ("classical", "weiss2021"),
    "verb": "build",
    "assumptions": (
        ("form", "one block, one register, one softmax head, ReLU units, all positions are read", "checked"),
    ),
}

_HEAD = "blocks.0.attention.groups.0"
_ATTENTION = {"kind": "softmax", "bias": False, "mask": "none", "score_bias": "none", "residual": True}


def check(node: TheoremNode, problem: FiniteProblem) -> arb:
    """The proved bound over all sequences; raises `Refused` when the transformer is not of the theorem's form."""
    target, network = problem.target, problem.network
    if not isinstance(target, WidthMap):
        raise Refused("the theorem exact_width speaks of the positions with the same letter in all sequences")
    if node.parameters:
        raise Refused("the theorem exact_width has no parameters")
    _require_form(network, target)
    tensors, tokens, letters = network.tensors, target.tokens, range(target.alphabet)
    embed, start = tensors["embed.weight"].matrix(), tensors["registers"].matrix()
    query, key = tensors[f"{_HEAD}.query"].matrix(0), tensors[f"{_HEAD}.key"].matrix(0)
    attention = network.config["blocks"][0]["attention"]
    scale = ONE if attention["scale"] == "unit" else ONE / arb(query.ncols()).sqrt()
    mix = tensors[f"{_HEAD}.value"].matrix(0) * tensors[f"{_HEAD}.output"].matrix(0)
    values, first = embed * mix, (start * mix).entries()
    asked = embed * query * scale
    scores, of_start = asked * (embed * key).transpose(), asked * (start * key).transpose()
    layer = ReluReadout(network, 0)
    worst = ZERO
    for x in letters:
        weigh = [(scores[x, y] - of_start[x, 0]).exp() for y in letters]
        for same in range(1, tokens + 1):
            others = [y for y in letters if y != x] if same < tokens else []
            if same < tokens and not others:
                continue  # a single letter occurs at every position
            own = {i: embed[x, i] for i in layer.used}
            stream = _behind(weigh, values, first, own, x, same, tokens, others)
            worst = larger(worst, (layer.at(stream) - same).abs_upper())
    if not worst.is_finite():
        raise Refused("the distance of the stored weights from counting could not be enclosed")
    return worst


def _behind(
    weigh: list[arb],
    values: arb_mat,
    first: list[arb],
    own: dict[int, arb],
    x: int,
    same: int,
    tokens: int,
    others: list[int],
) -> dict[int, arb]:
    """The stream behind the head at a position with the letter x, of which there are `same`."""
    rest = hull_of([weigh[y] for y in others]) * (tokens - same) if others else ZERO
    below = ONE + same * weigh[x] + rest
    if not below > 0:
        raise Refused("the weights of the head could not be enclosed")
    stream = {}
    for i, value in own.items():
        above = first[i] + same * weigh[x] * values[x, i]
        if others:
            above = above + hull_of([weigh[y] * values[y, i] for y in others]) * (tokens - same)
        stream[i] = value + above / below
    return stream


def _require_form(network: PointNetwork, target: WidthMap) -> None:
    config = network.config
    blocks = config["blocks"]
    block = blocks[0] if len(blocks) == 1 and config["loops"] == 1 and config["registers"] == 1 else None
    attention, ffn = (block["attention"], block["ffn"]) if block else (None, None)
    if not block or not attention or block["norm"] is not None or config["code"]["kind"] != "none":
        raise Refused("the theorem exact_width needs one block with attention, one register, no norm, no position code")
    if any(attention[name] != value for name, value in _ATTENTION.items()) or attention["heads"][1:]:
        raise Refused("the theorem exact_width needs a single plain softmax head")
    if attention["heads"][0]["count"] != 1 or (ffn is not None and (ffn["kind"], ffn["residual"]) != ("relu", True)):
        raise Refused("the theorem exact_width needs one head, and ReLU units with a residual or none")
    if (config["readout"]["kind"], config["outputs"]) != ("all", 1):
        raise Refused("the theorem exact_width needs a read-out of one number at every position")
    if config["input"] != {"kind": "ids", "tokens": target.tokens, "vocabulary": target.alphabet}:
        raise Refused("the transformer does not read the sequences that the claim speaks of")
