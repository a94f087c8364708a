"""Two causal layers of one head each are an induction head on all V^n sequences, up to what their softmax leaks.

Statement
    Let a stored transformer have one register, two causal attention layers with one softmax head each, nothing else, and
    a read-out of all positions. Suppose that, at every position i and whatever the letters are,

    1. in layer 1 the position before (for i = 0 the register) leads all other scores by at least g1 > 0;
    2. in layer 2 a key j whose previous letter is the letter at i leads every earlier such key, the register leads
       every key that is no such key, and every such key leads the register and all others, by at least g2 > 0.

    Then every output differs from the unit vector of the letter that followed the last earlier occurrence of the letter at
    its position (from zero when there was none) by at most

        a + b + n exp(-g2) s,

    where a is what reaches the output past the heads, b the distance of the leader's value from the wanted vector and s the
    largest difference of two values; g2, a, b and s include what layer 1 leaks, n exp(-g1) times its largest difference of
    values, coordinate by coordinate.

Source: Own derivation; the mechanism is that of olsson2022, the weights are `construct.induction_head`.

Differs from the source in: The bound is for whatever weights are stored.

Proof
    A softmax over at most n + 1 keys whose leader leads by g gives the others at most n exp(-g) together, so that its
    output differs from the leader's value by at most n exp(-g) times the largest difference of two values. Hence after
    layer 1 the stream at position j is p_j + E_y + E'_z up to r, with y = x_j, z = x_{j-1}, E' = E W1, p_j =
    C_j + C_{j-1} W1 from the position codes (C_{-1} the register), and r the leak; the register sees only itself and
    becomes s + s W1 exactly. The scores of layer 2 are bilinear in these sums. The parts E_x . E'_z (does the letter
    match?) and E_0 . p_j (the rank) are enclosed; all others, and what r does, are bounded by e and taken off the leads
    twice. Two matching keys have the same first part, so their lead is that of their ranks. By 2. the leader is the last
    match, or the register; its value, through the output matrix and the read-out, is compared with the wanted vector. QED.

Assumptions
    - form (**checked**): one register, two causal blocks of one plain softmax head, no feed-forward layer, no norm.
    - leads (**checked**): both leads are positive for every position and all letters.

Certified: The bound for the real-number function of the exact stored weights, at all V^n sequences of full length.

Not certified
    Shorter sequences; letters outside the alphabet. The rounding of a run is a claim of its own (`kernel.rounding.runs`).

Example
    >>> from certiformer.kernel.meanings.sequence_maps import InductionMap
    >>> InductionMap("induction", 2, 4).answer([1, 0, 1, 1])
    [0, 0, 0, 0, 1, 0, 0, 1]

Tests: tests/theorems/test_exact_induction.py
"""

from __future__ import annotations

from dataclasses import dataclass

from flint import arb, arb_mat

from certiformer.kernel import Refused
from certiformer.kernel.arrays import absolute
from certiformer.kernel.balls import INFINITY, ONE, ZERO, ball, larger, largest, smaller
from certiformer.kernel.certificate import Theorem as TheoremNode
from certiformer.kernel.meanings.sequence_maps import InductionMap
from certiformer.kernel.problem import FiniteProblem, PointNetwork
from certiformer.kernel.programs import exact

THEOREM = {
    "id": "axioms.exact_induction",
    "title": "Two causal layers of one head each are an induction head on all sequences, up to what their softmax leaks.",
    "kind": "exact",
    "sources": ("classical", "olsson2022"),
    "verb": "build",
    "assumptions": (
        ("form", "one register, two causal blocks of one plain softmax head and nothing else", "checked"),
        ("leads", "both leads are positive for every position and all letters", "checked"),
    ),
}

_ATTENTION = {"kind": "softmax", "bias": False, "mask": "causal", "score_bias": "none", "residual": True}


def check(node: TheoremNode, problem: FiniteProblem) -> arb:
    """The proved bound over all sequences; raises `Refused` when the transformer is not of the theorem's form."""
    target, network = problem.target, problem.network
    if not isinstance(target, InductionMap):
        raise Refused(
            "the theorem exact_induction speaks of what followed each letter in all sequences over an alphabet"
        )
    if set(node.parameters) - {"lead"}:
        raise Refused("the theorem exact_induction has one parameter, the lead of the right position")
    _require_form(network, target)
    tokens, width = target.tokens, network.config["width"]
    embed, start = network.tensors["embed.weight"].matrix(), network.tensors["registers"].matrix()
    codes = arb_mat(tokens, width, [value for t in range(tokens) for value in network.code(t)])
    one, two = (_Head.read(network, block) for block in (0, 1))

    lead = _first_lead(one, embed, codes, start)
    leak = _leaked(lead, tokens)
    spread = [
        2 * (larger(a, b) + c) for a, b, c in zip(*(_tops(m * one.mix) for m in (codes, start, embed)), strict=True)
    ]
    parts = _Parts(
        places=codes + _stacked(start, codes, tokens - 1) * one.mix,
        register=start + start * one.mix,
        letters=embed,
        previous=embed * one.mix,
        slack=arb_mat(1, width, [(leak * s).upper() for s in spread]),
    )
    second = _second_lead(two, parts)
    if "lead" in node.parameters and not smaller(lead, second) >= ball(exact(str(node.parameters["lead"]))):
        raise Refused("the right position does not lead by as much as the certificate states")
    return _distance(parts, two.mix, network, _leaked(second, tokens))


@dataclass(frozen=True)
class _Head:
    """A head: queries with the scale of the scores, keys, and values behind the output matrix."""

    query: arb_mat
    key: arb_mat
    mix: arb_mat

    @staticmethod
    def read(network: PointNetwork, block: int) -> _Head:
        name = f"blocks.{block}.attention.groups.0"
        query, key, value, output = (
            network.tensors[f"{name}.{part}"].matrix(0) for part in ("query", "key", "value", "output")
        )
        unit = network.config["blocks"][block]["attention"]["scale"] == "unit"
        return _Head(query * (ONE if unit else ONE / arb(query.ncols()).sqrt()), key, value * output)


@dataclass(frozen=True)
class _Parts:
    """The stream after layer 1: places (or the register) + letters + previous letters, each row one case, up to slack."""

    places: arb_mat
    register: arb_mat
    letters: arb_mat
    previous: arb_mat
    slack: arb_mat

    def sizes(self, matrix: arb_mat) -> arb_mat:
        """A bound of every column of stream * matrix, for data and register alike."""
        tops = [_tops(part * matrix) for part in (self.places, self.register, self.letters, self.previous)]
        loose = (self.slack * absolute(matrix)).entries()
        sums = [(larger(p, s) + a + b + r).upper() for p, s, a, b, r in zip(*tops, loose, strict=True)]
        return arb_mat(1, len(sums), sums)


def _first_lead(head: _Head, embed: arb_mat, codes: arb_mat, start: arb_mat) -> arb:
    """How far the position before leads in layer 1, at every position and for all letters."""
    tokens = codes.nrows()
    asked, letters = codes * head.query, embed * head.query
    keys = _stacked(start, codes, tokens) * head.key  # row 0 is the register, row j + 1 position j
    base = (asked + _repeated(letters, 0, tokens)) * keys.transpose()
    moved = letters - _repeated(letters, 0, letters.nrows())
    own = (embed * head.key).transpose()
    loose = _top(moved * keys.transpose()) + _top(asked * own) + _top(letters * own)
    lead = INFINITY
    for i in range(tokens):
        wanted = base[i, i]
        for j in range(i + 2):
            if j != i:
                lead = smaller(lead, (wanted - base[i, j]).lower())
    return (lead - 2 * loose).lower()


def _second_lead(head: _Head, parts: _Parts) -> arb:
    """The smallest of the leads of statement 2."""
    letters, tokens = parts.letters.nrows(), parts.places.nrows()
    asks = parts.letters * head.query
    before, placed, register = (m * head.key for m in (parts.previous, parts.places, parts.register))
    match = asks * before.transpose()
    ranks = (arb_mat(1, asks.ncols(), [asks[0, c] for c in range(asks.ncols())]) * placed.transpose()).entries()
    at_start = (_repeated(asks, 0, 1) * register.transpose())[0, 0]
    moved = asks - _repeated(asks, 0, letters)
    own = parts.letters * head.key
    others = [parts.previous * head.query, parts.places * head.query]
    loose = _top(asks * own.transpose()) + larger(_top(moved * placed.transpose()), _top(moved * register.transpose()))
    for asking in others:
        loose = loose + _top(asking * own.transpose()) + _top(asking * before.transpose())
        loose = loose + larger(_top(asking * placed.transpose()), _top(asking * register.transpose()))
    asked_error, key_error = parts.slack * absolute(head.query), parts.slack * absolute(head.key)
    loose = loose + (asked_error * parts.sizes(head.key).transpose())[0, 0]
    loose = loose + (parts.sizes(head.query) * key_error.transpose())[0, 0]
    # Position 0 has no previous letter, so that a key without one, which matches nothing, has the first part 0.
    pairs = [(x, z) for x in range(letters) for z in range(letters)]
    hit = _least([match[x, z].lower() for x, z in pairs if x == z])
    miss = larger(ZERO, -_least([-match[x, z].upper() for x, z in pairs if x != z])) if letters > 1 else ZERO
    top = -_least([-rank.upper() for rank in ranks])
    leads = [at_start - miss - top]
    if tokens > 1:
        low = _least([rank.lower() for rank in ranks[1:]])
        leads += [hit + low - at_start]  # a match leads the register, which leads all others
        leads += [ranks[j] - ranks[j - 1] for j in range(2, tokens)]
    return (_least([lead.lower() for lead in leads]) - 2 * loose).lower()


def _distance(parts: _Parts, mix: arb_mat, network: PointNetwork, leak: arb) -> arb:
    """The largest error of an output when layer 2 leaks at most `leak`."""
    read, bias = network.tensors["readout.weight"].matrix(), network.tensors["readout.bias"].row()
    through = mix * read
    letters = range(parts.letters.nrows())
    direct, value = parts.sizes(read), parts.sizes(through)
    wanted = parts.letters * through
    loose = (parts.slack * absolute(through)).entries()
    tops = [_tops(part * through) for part in (parts.places, parts.previous, parts.register)]
    worst = ZERO
    for o in letters:
        missed = largest([(wanted[y, o] - int(y == o)).abs_upper() for y in letters])
        off = larger(missed + tops[0][o] + tops[1][o] + loose[o], tops[2][o])
        total = direct[0, o] + bias[o].abs_upper() + off + leak * 2 * value[0, o]
        worst = larger(worst, total.upper())
    if not worst.is_finite():
        raise Refused("the distance of the stored weights from an induction head could not be enclosed")
    return worst


def _leaked(lead: arb, others: int) -> arb:
    """What all keys but the leader weigh together; refused unless the leader leads."""
    if not lead > 0:
        raise Refused(
            f"a head may read the wrong position: its lead is only proved to be above about {float(lead):.4g}"
        )
    return (others * (-lead).exp()).upper()


def _top(matrix: arb_mat) -> arb:
    return largest([entry.abs_upper() for entry in matrix.entries()])


def _tops(matrix: arb_mat) -> list[arb]:
    """The largest size in every column."""
    return [largest([matrix[r, c].abs_upper() for r in range(matrix.nrows())]) for c in range(matrix.ncols())]


def _least(values: list[arb]) -> arb:
    result = INFINITY
    for value in values:
        result = smaller(result, value)
    return result


def _stacked(top: arb_mat, below: arb_mat, rows: int) -> arb_mat:
    """`top` above the first rows of `below`."""
    width = top.ncols()
    return arb_mat(top.nrows() + rows, width, top.entries() + below.entries()[: rows * width])


def _repeated(matrix: arb_mat, row: int, times: int) -> arb_mat:
    width = matrix.ncols()
    return arb_mat(times, width, [matrix[row, c] for c in range(width)] * times)


def _require_form(network: PointNetwork, target: InductionMap) -> None:
    config = network.config
    blocks = config["blocks"]
    if len(blocks) != 2 or config["loops"] != 1 or config["registers"] != 1:
        raise Refused("the theorem exact_induction needs two blocks, applied once, and one register")
    for block in blocks:
        attention = block["attention"]
        if not attention or block["ffn"] is not None or block["norm"] is not None:
            raise Refused("the theorem exact_induction needs blocks of attention alone, without norm")
        if any(attention[name] != value for name, value in _ATTENTION.items()):
            raise Refused("the theorem exact_induction needs plain causal softmax attention")
        if attention["heads"][1:] or attention["heads"][0]["count"] != 1:
            raise Refused("the theorem exact_induction needs one head in each block")
    if (config["readout"]["kind"], config["outputs"]) != ("all", target.alphabet):
        raise Refused("the theorem exact_induction needs a read-out of all positions, an output for each letter")
    if config["input"] != {"kind": "ids", "tokens": target.tokens, "vocabulary": target.alphabet}:
        raise Refused("the transformer does not read the sequences that the claim speaks of")
