"""Array programs in Taylor forms: an enclosure of every node on a box.

`evaluate` follows the table of `kernel.arrays` literally. A point is a box of radius zero.

Softmax is enclosed by the *tilt*. Write s_j = c_j + y_j with any constants c_j (the scores at the box centre) and subtract
one common function l from all scores, which changes no weight: with t_j = y_j - l

    softmax_j(s) = e^{c_j} e^{t_j} / Z,     Z = sum_i e^{c_i} e^{t_i}.

l = sum_i p_i y_i with p the softmax of c makes every t_j that matters small, so e^{t_j} has a short Taylor form.
With W = sum_i e^{c_i}, Jensen's inequality for the convex exponential gives Z >= W exp(sum_i e^{c_i} t_i / W), a positive
lower bound that does not suffer when the scores are wide; the range of Z itself is used where it is better.
Scores enter only through differences and nothing is ever added to a denominator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from flint import arb, arb_mat, fmpq

from certiformer.kernel import stream, taylor
from certiformer.kernel.arrays import (
    Apply,
    ArrayProgram,
    Attend,
    Constant,
    Input,
    Linear,
    Node,
    Norm,
    Pool,
    Rows,
    Scores,
    Stack,
    Sum,
)
from certiformer.kernel.balls import HALF, ONE, ZERO, Box, larger, smaller
from certiformer.kernel.functions import FormAlgebra
from certiformer.kernel.stream import Stream
from certiformer.kernel.taylor import Form, Table

WIDE = 2  # sizes of softmax weights that add up to less widen a mean less than twice: a second look would not pay
GELU_LOW = arb(fmpq(-31, 100)).lower()


def point_stream(table: Table, box: Box, source: Input) -> Stream:
    """The point of the box as an array: coordinate r * columns + c at row r, column c."""
    shape = source.rows, source.columns
    coef = {0: arb_mat(*shape, list(box.centre))}
    if table.order == 0:
        return Stream(table, coef, arb_mat(*shape, list(box.radius)))
    for axis, radius in enumerate(box.radius):
        if not radius.is_zero():
            coef[table.axis[axis]] = matrix = arb_mat(*shape)
            matrix[axis // source.columns, axis % source.columns] = radius
    return Stream(table, coef, arb_mat(*shape))


def evaluate(program: ArrayProgram, first: Stream, stop: int | None = None) -> list[Stream]:
    """The forms of the nodes up to and without `stop`; `first` is what node 0, the input, stands for."""
    values = [first]
    for node in program.nodes[1:stop]:
        values.append(node_value(node, values, first.table))
    return values


def node_value(node: Node, values: Sequence[Stream] | Mapping[int, Stream], table: Table) -> Stream:
    """The form of one node from those of the nodes before it."""
    match node:
        case Constant(matrix):
            return stream.constants(table, matrix)
        case Linear(x, weight, bias):
            return stream.linear(values[x], weight.matrix, weight.size, bias)
        case Pool(x, weights):
            x = values[x]
            return Stream(table, {i: weights.matrix * m for i, m in x.coef.items()}, weights.size * x.rem)
        case Rows(x, chosen):
            return values[x].rows(list(chosen))
        case Stack(parts):
            return _stacked(table, [values[part] for part in parts])
        case Sum(parts):
            total = values[parts[0]]
            for part in parts[1:]:
                total = stream.plus(total, values[part])
            return total
        case Scores(queries, keys, factor):
            product = stream.contract(values[queries], stream.transpose(values[keys]))
            return product if factor is ONE else _scaled(product, factor)
        case Attend(kind, scores, mixed, allowed):
            return _attended(kind, values[scores], values[mixed], allowed)
        case Norm(x, epsilon, gain, shift):
            return normalised(values[x], epsilon, gain, shift)
        case Apply("relu", x):
            return stream.relu(values[x])
        case Apply("gelu", x):
            rows, columns = values[x].shape
            return stream.from_forms(table, [[gelu(values[x].form(r, c)) for c in range(columns)] for r in range(rows)])
    raise TypeError(f"{node} is no node that follows an input")


def _stacked(table: Table, parts: list[Stream]) -> Stream:
    """The rows of all parts, one part after the other."""
    width, count = parts[0].shape[1], sum(part.shape[0] for part in parts)
    used = sorted({i for part in parts for i in part.coef})
    coef = {}
    for i in used:
        blocks = [p.coef[i].entries() if i in p.coef else [ZERO] * (p.shape[0] * width) for p in parts]
        coef[i] = arb_mat(count, width, [entry for block in blocks for entry in block])
    return Stream(table, coef, arb_mat(count, width, [e for p in parts for e in p.rem.entries()]))


def _scaled(x: Stream, factor: arb) -> Stream:
    return Stream(x.table, {i: m * factor for i, m in x.coef.items()}, x.rem * factor.abs_upper())


def _total(forms: list[Form]) -> Form:
    result = forms[0]
    for form in forms[1:]:
        result = taylor.add(result, form)
    return result


def gelu(x: Form) -> Form:
    """x Phi(x) with Phi(x) = (1 + erf(x / sqrt 2)) / 2.

    It is at most max(x, 0), and at least -e^(-1/2) / 2 > -0.31: Phi(x) <= e^(-x^2/2) / 2 for x <= 0.
    """
    erf = FormAlgebra(x.table).erf(taylor.scale(x, arb(2).rsqrt()))
    value = taylor.multiply(x, taylor.scale(taylor.add(erf, taylor.constant(x.table, ONE)), HALF))
    return taylor.within(value, GELU_LOW, larger(taylor.bounds(x)[1], ZERO))


def normalised(h: Stream, epsilon: arb, gain: list[arb], shift: list[arb]) -> Stream:
    """(h - mean) / sqrt(variance + epsilon) * gain + shift, row by row.

    (h_i - mean)^2 <= sum_j (h_j - mean)^2 = columns * variance, so no entry exceeds sqrt(columns) before gain and shift,
    however little the forms know of the variance.
    """
    rows, columns = h.shape
    limit = arb(columns).sqrt().upper()
    share = ONE / columns
    # h - mean is a linear map of h: applied as one matrix, so that common parts cancel.
    centring = arb_mat(
        columns, columns, [(ONE if i == j else ZERO) - share for i in range(columns) for j in range(columns)]
    )
    centred = stream.linear(h, centring, stream.absolute(centring))
    algebra = FormAlgebra(h.table)
    result = []
    for r in range(rows):
        entries = [centred.form(r, c) for c in range(columns)]
        variance = taylor.scale(_total([taylor.multiply(e, e) for e in entries]), share)
        variance.low = larger(variance.low, ZERO)
        root = algebra.sqrt(taylor.add(variance, taylor.constant(h.table, epsilon)))
        inverse = taylor.divide(taylor.constant(h.table, ONE), root)
        units = [taylor.within(taylor.multiply(e, inverse), -limit, limit) for e in entries]
        row = [taylor.scale(e, s) for e, s in zip(units, gain, strict=True)]
        result.append([taylor.add(f, taylor.constant(h.table, b)) for f, b in zip(row, shift, strict=True)])
    return stream.from_forms(h.table, result)


def _attended(kind: str, scores: Stream, values: Stream, allowed: tuple[tuple[int, ...], ...]) -> Stream:
    """Every row's mix of the values that it may see."""
    rows = []
    for i, keys in enumerate(allowed):
        if keys:
            rows.append(mix(kind, [scores.form(i, j) for j in keys], values.rows(list(keys))))
        else:
            rows.append(stream.constants(values.table, arb_mat(1, values.shape[1])))
    return _stacked(values.table, rows)


def mix(kind: str, scores: list[Form], values: Stream) -> Stream:
    """The weighted sum of the value rows under one query's scores."""
    if kind == "nearest":
        sizes = [taylor.add(taylor.relu(s), taylor.relu(taylor.scale(s, -ONE))) for s in scores]
        scores, kind = [taylor.scale(size, -ONE) for size in sizes], "hard"
    if kind == "hard":
        return _hard(scores, values)
    weights = softmax(scores) if kind == "softmax" else [taylor.relu(s) for s in scores] if kind == "relu" else scores
    table, width = values.table, values.shape[1]
    row = stream.from_forms(table, [weights])
    if kind != "softmax" or len(scores) == 1:
        return stream.contract(row, values)
    # sum_j w_j v_j = v0 + sum_j w_j (v_j - v0) because softmax weights sum to one: smaller numbers, smaller remainders.
    p = [weight.coef.get(0, ZERO).mid() for weight in weights]
    centre = (arb_mat(1, len(p), p) * values.coef[0]).mid() if 0 in values.coef else arb_mat(1, width)
    shift = arb_mat(len(p), width, [-e for e in centre.entries()] * len(p))
    moved = stream.plus(values, stream.constants(table, shift))
    mean = stream.plus(stream.contract(row, moved), stream.constants(table, centre))
    # A mean lies between the least and the largest value. Forms lose sight of that where their weights are wide.
    if sum((taylor.absolute_sum(weight) + weight.rem for weight in weights), ZERO) < WIDE:
        return mean
    return stream.from_forms(table, [[_between(mean.form(0, c), values, c) for c in range(width)]])


def _between(mean: Form, values: Stream, column: int) -> Form:
    """The form of a mean of the entries of a column."""
    ends = [taylor.bounds(values.form(r, column)) for r in range(values.shape[0])]
    low, high = ends[0]
    for other_low, other_high in ends[1:]:
        low, high = smaller(low, other_low), larger(high, other_high)
    return taylor.within(mean, low, high)


def softmax(scores: list[Form]) -> list[Form]:
    """Forms of the softmax weights, by the tilt of the module docstring."""
    tab = scores[0].table
    if len(scores) == 1:
        return [taylor.constant(tab, ONE)]
    centres = [s.coef.get(0, ZERO).mid() for s in scores]
    top = max(centres)
    exact = [(c - top).exp() for c in centres]  # e^{c_j} up to the common factor e^{-top}
    weight_sum = sum(exact, ZERO)
    deviations = [taylor.add(s, taylor.constant(tab, c), -1) for s, c in zip(scores, centres, strict=True)]
    common = _total([taylor.scale(y, (e / weight_sum).mid()) for y, e in zip(deviations, exact, strict=True)])
    tilted = [taylor.add(y, common, -1) for y in deviations]
    algebra = FormAlgebra(tab)
    terms = [taylor.scale(algebra.exp(t), e) for t, e in zip(tilted, exact, strict=True)]
    denominator = _total(terms)
    average = _total([taylor.scale(t, e) for t, e in zip(tilted, exact, strict=True)])
    jensen = (weight_sum * (taylor.bounds(average)[0] / weight_sum).exp()).lower()
    smallest = larger(jensen, taylor.bounds(denominator)[0]) if jensen.is_finite() else taylor.bounds(denominator)[0]
    weights = [taylor.divide(term, denominator, smallest) for term in terms]
    return [taylor.within(weight, ZERO, ONE) for weight in weights]


def _hard(scores: list[Form], values: Stream) -> Stream:
    """Hard attention: the winner when it is certain on the whole box, else the hull of all possible winners.

    The output is the average over the set of keys with maximal score, hence a convex combination of candidates.
    Equal scores as exact constants (a tie on the whole box) are averaged.
    """
    ends = [taylor.bounds(s) for s in scores]
    best = ends[0][0]
    for low, _ in ends[1:]:
        best = larger(best, low)
    candidates = [j for j, (_, high) in enumerate(ends) if not high < best]
    tab = values.table
    constant = [scores[j] for j in candidates if set(scores[j].coef) <= {0} and scores[j].rem.is_zero()]
    levels = [score.coef.get(0, ZERO) for score in constant]
    tied = len(constant) == len(candidates) and all(level.is_exact() for level in levels)
    if tied and len({str(level.man_exp()) for level in levels}) == 1:
        share = ONE / len(candidates)
        row = stream.constants(
            tab, arb_mat(1, len(scores), [share if j in candidates else ZERO for j in range(len(scores))])
        )
        return stream.contract(row, values)
    result = []
    for c in range(values.shape[1]):
        hull = values.form(candidates[0], c)
        for j in candidates[1:]:
            hull = taylor.either(hull, values.form(j, c))
        result.append(hull)
    return stream.from_forms(tab, [result])
