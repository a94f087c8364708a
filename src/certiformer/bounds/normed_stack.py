r"""Transformers as they are built, with all that is trained in them, have a bound with explicit constants.

Several heads, residuals, layer norms or RMS norms before or behind the parts, biases, gated units, rotary codes; and the
class contains embeddings, positions, gains, shifts and biases, which bounds of the literature hold fixed.

Statement
---------
A token is the sum of rows of tables, the first times a fixed number, behind a norm or not. Every layer adds attention
A and hidden units F: `pre` x + A(N x), then x + F(N x); `post` N(x + A(x)), then N(x + F(x)); `parallel` x + A(N x) +
F(N' x). Then a norm or none, and a table of outputs. Norms are g * v + b with |v|_2 <= sqrt d and v Lipschitz with
constant 1 / sqrt(epsilon). Heads have softmax weights of the scores (u_i; 1)^T S u_j, or (Q (u_i; 1))^T W (K (u_j; 1))
with any rotation W that depends on the places, plus numbers that are fixed, softly capped or not, under any mask.
Hidden units are W2 s(W1 (u; 1)) or W2 (s(G (u; 1)) * U (u; 1)), s(0) = 0, s Lipschitz with constant s_1.

Let every norm of every part be bounded (`bounds.stack_norms`), R the longest token that a part sees, p = sqrt(R^2 + 1)
where maps have biases and R elsewhere. In the largest change of a token,

    att = sum_h |VO_h| (1 + c R m_h),  m_h = |S_h| (R + p), or 2 |Q_h| |K_h| p under rotary codes,
    ff = s_1 |W1| |W2|,  or s_1 |W2| (|G| u + g |U|), u and g the largest rows of U and G times p,

and a part stretches a change of the tokens by 1 + n att, 1 + n ff (pre), n (1 + att), n (1 + ff) (post), 1 + n att + n'
ff (parallel), with n = max |g| / sqrt(epsilon). If every piece t of the weights is replaced by one whose local error is
e_t, the logits change by at most sum_t b_t e_t in the max norm, where b_t is the local factor of `pieces` times the
stretch of all that follows. With covers of the pieces of log size C_t / e^2 + c_t, the logits have the cover of
`bounds.chaining` with K = (sum_t C_t^(1/3) b_t^(2/3))^3, and a loss in [0, B] that is 2-Lipschitz in the max norm of
the logits (cross entropy, clipped) has

    Rad <= chain(B, log N(e / 2), m).

No number depends on the length of the sequences.

Source
------
Own, in the manner of Edelman et al. 2022 (edelman2022) and Trauger and Tewari 2024 (trauger2024).

Differs from the source in
--------------------------
True norms with gain, shift and epsilon, residuals, heads side by side, biases, gates, rotary codes; embeddings, positions,
gains and biases are in the class. The softmax constant is the sharp c = 1.

Proof
-----
*Stretch.* Let all tokens of a sequence move by at most e. Scores move by at most m_h e: for the bilinear form |S_h| e R
where the asking token moves, and p |S_h| e where the other does; under rotary codes each of the two moves the score by
|Q_h| |K_h| p e, as rotations keep lengths; a soft cap and numbers that are fixed add nothing. The weights of a row then
move by at most m_h e in the l1 norm (the Jacobian of softmax maps h to q_i (h_i - q . h), whose l1 norm is a mean
absolute deviation, at most max |h|), the values are of norm |VO_h| R and move by |VO_h| e. Biases of values pass
unchanged, as weights sum to one. Hidden units: s_1 |W1| e, then |W2|; gated, |s(a) * c - s(a') * c'| <= |s(a) - s(a')|
max |c| + max |s(a')| |c - c'|. A norm multiplies by n, a residual adds 1.

*Pieces.* Replace the pieces one after the other, the last first. With local error e (in the l2 norm, on all inputs of the
length that it meets), S_h moves scores by p e, hence A by |VO_h| R c p e; Q_h and K_h likewise by |K_h| p and |Q_h| p;
VO_h moves A by e, W1 and G and U move F by s_1 |W2| e, s_1 |W2| u e and |W2| g e, W2 by e; a gain moves the normed token
by e, a bias or a shift its part by e; a row of a table moves the token by its scale times e; a row of the read-out its
logit by R e. What is behind passes a move of its input on with the factors above, and a last table of outputs with its
largest row. A tied table is one piece with both factors. Everything that is behind is a member of the class with the
same bounds: members of covers may be taken within the convex set of the norms given, by the projection in the Frobenius
norm, which brings none farther from a member of the class.

*Covers.* A map: `linear_cover` of `bounds.chaining`. A gain is a diagonal matrix on tokens of norm sqrt d; of the 2 d
matrices +-l1 e_i e_i^T and 0 averages come within l1 / sqrt k in the Frobenius norm, so C = d |g|_1^2 log(2 d + 1). A
vector likewise, with inputs 1. A table row by row: C = sum_v |w_v|_1^2 log(2 d + 1) and c = V log(2 d + 1). QED.

Assumptions
-----------
- architecture: **trusted** as above; codes that are not trained, masks, slopes and rotations are fixed before the data.
- norms: **trusted** the norms given bound those of the model; for measured ones see the cells of `bounds.rademacher_gap`.
- independent: **trusted** the sample consists of independent sequences.

Certified
---------
`pieces`, `cover` and `complexity`, in balls.

Not certified
-------------
That the number is below the trivial one: with 1 / sqrt(epsilon) in every part it rarely is. `bounds.stack_by_count` is
smaller for deep models. A padding row or any other row counts as trained.

Example
-------
>>> from certiformer.bounds.stack_norms import *
>>> head = StackHead(MapNorms(0.5, 1.0, 6.0, 8, 8, 4), MapNorms(0.4, 1.0, 5.0, 8, 8, 4))
>>> hidden = HiddenNorms(MapNorms(1.0, 2.0, 20.0, 16, 8, 8), MapNorms(1.0, 2.0, 20.0, 8, 16, 8))
>>> layer = StackLayer(AttentionNorms((head,)), hidden, NormNorms(1.0), NormNorms(1.0))
>>> table = TableNorms(20, 8, 30.0, 0.6)
>>> model = StackNorms("pre", 8, (layer,), (table,), final_norm=NormNorms(1.0), tied=True)
>>> round(above(complexity(model, 5.0, 10**14)), 3)
0.015

Tests
-----
`tests/theorems/test_normed_stack.py`
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from flint import arb

from certiformer.bounds.chaining import Cover, combine, linear_cover, unsaturated
from certiformer.bounds.numbers import above as above
from certiformer.bounds.numbers import ball
from certiformer.bounds.stack_norms import (
    PLACES,
    AttentionNorms,
    HiddenNorms,
    MapNorms,
    NormNorms,
    StackHead,
    StackLayer,
    StackNorms,
    TableNorms,
    VectorNorms,
)
from certiformer.errors import BadInput

THEOREM = {
    "id": "bounds.normed_stack",
    "title": "Transformers as they are built, with all that is trained in them, have a bound with explicit constants",
    "kind": "upper bound",
    "sources": (
        "edelman2022",
        "trauger2024",
    ),
    "verb": "audit",
    "assumptions": (
        ("architecture", "One of the three layouts; what is not trained is fixed before the data.", "trusted"),
        ("norms", "The norms given bound those of the model.", "trusted"),
        ("independent", "The sample consists of independent sequences.", "trusted"),
    ),
    "uses": ("bounds.chaining",),
}

LOSS = 2  # cross entropy, from the max norm of the logits


@dataclass(frozen=True)
class Piece:
    """A part of the weights: what it is, b_t, its cover; to count: entries, inputs times Frobenius norm, those by rank."""

    name: str
    factor: arb
    cover: Cover
    entries: int
    reach: arb
    rank_entries: int | None = None


def complexity(stack: StackNorms, largest_loss: float, sequences: int) -> arb:
    """The bound of the Rademacher complexity of the clipped loss; above `largest_loss` where it says nothing."""
    logits = cover(stack)
    return unsaturated(largest_loss, lambda eps: logits(eps / LOSS), sequences)


def cover(stack: StackNorms) -> Cover:
    """The cover of the logits in the max norm."""
    return combine([(piece.cover, piece.factor) for piece in pieces(stack)])


def pieces(stack: StackNorms) -> list[Piece]:
    """Every piece of the weights with its b_t, the last part first."""
    if stack.place not in PLACES or not stack.layers:
        raise BadInput(f"the bound is for layers with norms at {', '.join(PLACES)}, not at {stack.place!r}")
    radii = _radii(stack)
    made, after = _last(stack, radii[-1])
    for layer, radius in zip(reversed(stack.layers), reversed(radii[:-1]), strict=True):
        grown, after = _layer(stack, layer, radius, after)
        made += grown
    if stack.embedding_norm is not None:
        made += _norm_pieces("norm of the embedding", stack.embedding_norm, after, stack.width)
        after = after * steepness(stack.embedding_norm)
    for number, table in enumerate(stack.tables):
        factor = after * _scale(stack, number)
        if number == 0 and stack.tied:
            factor += radii[-1]
        made.append(_table_piece(f"table {number}", table, factor, arb(1)))
    return made


def steepness(norm: NormNorms) -> arb:
    """n: the Lipschitz constant of a norm."""
    if not norm.epsilon > 0:
        raise BadInput(f"a norm with epsilon {norm.epsilon} has no Lipschitz constant")
    return ball(norm.largest) / ball(norm.epsilon).sqrt()


def norm_radius(norm: NormNorms, width: int) -> arb:
    """R: the longest token behind a norm."""
    return arb(width).sqrt() * ball(norm.largest) + (0 if norm.shift is None else ball(norm.shift.l2))


def stretch(attention: AttentionNorms, radius: arb) -> arb:
    """att."""
    return sum((ball(h.value.spectral) * (1 + radius * _slope(h, radius)) for h in attention.heads), arb(0))


def hidden_stretch(hidden: HiddenNorms, radius: arb) -> arb:
    """ff."""
    slope, up, down = ball(hidden.slope), ball(hidden.up.spectral), ball(hidden.down.spectral)
    if hidden.gate is None:
        return slope * up * down
    beside, gated = _largest_units(hidden, radius)
    return slope * down * (ball(hidden.gate.spectral) * beside + gated * up)


def _slope(head: StackHead, radius: arb) -> arb:
    """m_h."""
    inputs = _inputs(radius, head.biased)
    if head.scores is not None:
        return ball(head.scores.spectral) * (radius + inputs)
    query, key = _rotary(head)
    return 2 * ball(query.spectral) * ball(key.spectral) * inputs


def _rotary(head: StackHead) -> tuple[MapNorms, MapNorms]:
    if head.query is None or head.key is None:
        raise BadInput("a head has the norms of one score matrix, or those of its queries and keys")
    return head.query, head.key


def _inputs(radius: arb, biased: bool) -> arb:
    return (radius**2 + 1).sqrt() if biased else radius


def _largest_units(hidden: HiddenNorms, radius: arb) -> tuple[arb, arb]:
    """u and g: the largest that a unit beside a gate, and a gate without the slope, can be."""
    inputs = _inputs(radius, hidden.biased)
    rows = [min(one.spectral, one.largest_row) for one in (hidden.up, hidden.gate) if one is not None]
    return ball(rows[0]) * inputs, ball(rows[-1]) * inputs


def _unit_reach(hidden: HiddenNorms, radius: arb) -> arb:
    """How long the vector of the hidden units can be."""
    inputs, slope = _inputs(radius, hidden.biased), ball(hidden.slope)
    up = ball(hidden.up.spectral) * inputs
    if hidden.gate is None:
        return slope * up
    beside, gated = _largest_units(hidden, radius)
    return slope * (ball(hidden.gate.spectral) * inputs * beside).min(gated * up)


def _radii(stack: StackNorms) -> list[arb]:
    """The longest token in front of every layer, and at last that in front of the table of outputs."""
    width = stack.width
    rows = [ball(table.largest_row) * _scale(stack, number) for number, table in enumerate(stack.tables)]
    start = sum(rows, arb(0))
    if stack.embedding_norm is not None:
        start = norm_radius(stack.embedding_norm, width)
    radii, stream = [], start
    for layer in stack.layers:
        radii.append(stream)
        if stack.place == "post":
            stream = norm_radius(layer.hidden_norm, width)
            continue
        inside = norm_radius(layer.attention_norm, width)
        heard = sum((ball(h.value.spectral) * inside for h in layer.attention.heads), arb(0))
        units = ball(layer.hidden.down.spectral) * _unit_reach(layer.hidden, norm_radius(layer.hidden_norm, width))
        added = [one.l2 for one in (layer.attention.bias, layer.hidden.bias) if one is not None]
        stream = stream + heard + units + sum(map(ball, added), arb(0))
    return [*radii, stream if stack.final_norm is None else norm_radius(stack.final_norm, width)]


def _scale(stack: StackNorms, number: int) -> arb:
    return ball(stack.scale) if number == 0 else arb(1)


def _last(stack: StackNorms, radius: arb) -> tuple[list[Piece], arb]:
    """The pieces behind the layers, and how much the logits move with the stream."""
    made, after = [], arb(1)
    if stack.readout is not None:
        made.append(_table_piece("read-out", stack.readout, arb(1), radius))
        after = ball(stack.readout.largest_row)
    elif stack.tied:
        after = ball(stack.tables[0].largest_row)
    if stack.readout_bias is not None:
        made.append(_vector_piece("bias of the read-out", stack.readout_bias, arb(1), arb(1)))
    if stack.final_norm is not None:
        made += _norm_pieces("last norm", stack.final_norm, after, stack.width)
        after = after * steepness(stack.final_norm)
    return made, after


def _layer(stack: StackNorms, layer: StackLayer, start: arb, after: arb) -> tuple[list[Piece], arb]:
    """The pieces of a layer, and the stretch from its input to the logits."""
    width, norms = stack.width, (layer.attention_norm, layer.hidden_norm)
    first, second = (norm_radius(norm, width) for norm in norms)
    n, m = (steepness(norm) for norm in norms)
    if stack.place == "post":
        ff, att = hidden_stretch(layer.hidden, first), stretch(layer.attention, start)
        made = _norm_pieces("norm of the units", layer.hidden_norm, after, width)
        made += _hidden_pieces(layer.hidden, first, after * m)
        middle = after * m * (1 + ff)
        made += _norm_pieces("norm of the attention", layer.attention_norm, middle, width)
        made += _attention_pieces(layer.attention, start, middle * n)
        return made, middle * n * (1 + att)
    att, ff = stretch(layer.attention, first), hidden_stretch(layer.hidden, second)
    made = _norm_pieces("norm of the units", layer.hidden_norm, after * ff, width)
    made += _hidden_pieces(layer.hidden, second, after)
    middle = after if stack.place == "parallel" else after * (1 + m * ff)
    made += _norm_pieces("norm of the attention", layer.attention_norm, middle * att, width)
    made += _attention_pieces(layer.attention, first, middle)
    return made, after * (1 + n * att + m * ff) if stack.place == "parallel" else middle * (1 + n * att)


def _attention_pieces(attention: AttentionNorms, radius: arb, after: arb) -> Iterator[Piece]:
    for head in attention.heads:
        inputs = _inputs(radius, head.biased)
        through = after * ball(head.value.spectral) * radius * inputs
        if head.scores is not None:
            yield _map_piece("scores", head.scores, through, radius)
        else:
            query, key = _rotary(head)
            yield _map_piece("queries", query, through * ball(key.spectral), inputs)
            yield _map_piece("keys", key, through * ball(query.spectral), inputs)
        yield _map_piece("values", head.value, after, radius)
    if attention.bias is not None:
        yield _vector_piece("bias of the attention", attention.bias, after, arb(1))


def _hidden_pieces(hidden: HiddenNorms, radius: arb, after: arb) -> Iterator[Piece]:
    inputs, through = _inputs(radius, hidden.biased), after * ball(hidden.down.spectral) * ball(hidden.slope)
    if hidden.gate is None:
        yield _map_piece("units", hidden.up, through, inputs)
    else:
        beside, gated = _largest_units(hidden, radius)
        yield _map_piece("gates", hidden.gate, through * beside, inputs)
        yield _map_piece("units", hidden.up, through * gated, inputs)
    yield _map_piece("outputs of the units", hidden.down, after, _unit_reach(hidden, radius))
    if hidden.bias is not None:
        yield _vector_piece("bias of the units", hidden.bias, after, arb(1))


def _norm_pieces(name: str, norm: NormNorms, after: arb, width: int) -> list[Piece]:
    made = []
    if norm.gain is not None:
        made.append(_vector_piece(name, norm.gain, after, arb(width).sqrt()))
    if norm.shift is not None:
        made.append(_vector_piece(f"shift of the {name}", norm.shift, after, arb(1)))
    return made


def _map_piece(name: str, norms: MapNorms, factor: arb, inputs: arb) -> Piece:
    size = linear_cover(inputs, norms.l11, norms.rows, norms.columns)
    low = norms.rank * (norms.rows + norms.columns + 1)
    return Piece(name, factor, size, norms.rows * norms.columns, inputs * ball(norms.frobenius), low)


def _vector_piece(name: str, norms: VectorNorms, factor: arb, inputs: arb) -> Piece:
    logarithm = ball(2 * norms.size + 1).log()
    size = Cover((inputs * ball(norms.l1)) ** 2 * logarithm, logarithm)
    return Piece(name, factor, size, norms.size, inputs * ball(norms.l2))


def _table_piece(name: str, norms: TableNorms, factor: arb, inputs: arb) -> Piece:
    logarithm = ball(2 * norms.columns + 1).log()
    size = Cover(inputs**2 * ball(norms.l1_squares) * logarithm, norms.rows * logarithm)
    return Piece(name, factor, size, norms.rows * norms.columns, inputs * ball(norms.largest_row))
