"""Programs over arrays: what a stored transformer computes, as a list of nodes, and an enclosure of every node on a box.

Every node is a matrix of real functions of the point (x_1, ..., x_D); it refers to earlier nodes by position.

| node                         | meaning                                                                              |
|------------------------------|--------------------------------------------------------------------------------------|
| `Input(rows, columns)`       | the point, row after row                                                             |
| `Constant(matrix)`           | numbers, each known as a ball                                                        |
| `Linear(x, weight, bias)`    | x W + b, the same for every row                                                      |
| `Pool(x, weights)`           | W x: constant combinations of the rows of x                                          |
| `Rows(x, chosen)`            | the chosen rows of x                                                                 |
| `Stack(parts)`               | the rows of all parts, one part after the other                                      |
| `Sum(parts)`                 | the entrywise sum                                                                    |
| `Scores(queries, keys, factor)` | factor * queries keys^T                                                           |
| `Attend(kind, scores, values, allowed)` | row i: the mix of the rows `allowed[i]` of `values` under the scores of row i |
| `Norm(x, epsilon, gain, shift)` | (x - mean) / sqrt(variance + epsilon) * gain + shift, row by row                   |
| `Apply(name, x)`             | a function of one variable, `relu` or `gelu`, entry by entry                         |

Kinds of attention: `softmax`; `linear` (the scores are the weights), `relu` (their positive parts are); `hard`, the mean
of the values whose score is largest, and `nearest`, of those whose score is nearest to zero. A row that may see nothing
is zero. The meaning is the one of `docs/model.md`, and `node_value` follows the table literally.

*Streams.* The forms of an array are kept as one ball matrix for each monomial and one of remainders (entries are
nonnegative balls whose upper ends count), so that linear maps are products of ball matrices. `contract` multiplies two
streams along a shared axis, adding up each monomial *before* anything is dropped: this is what keeps scores tight.

*Tilt.* Softmax: write s_j = c_j + y_j with any constants c_j (the scores at the box centre) and subtract one common
function l from all scores, which changes no weight: with t_j = y_j - l

    softmax_j(s) = e^{c_j} e^{t_j} / Z,     Z = sum_i e^{c_i} e^{t_i}.

l = sum_i p_i y_i with p the softmax of c makes every t_j that matters small, so e^{t_j} has a short Taylor form.
With W = sum_i e^{c_i}, Jensen's inequality for the convex exponential gives Z >= W exp(sum_i e^{c_i} t_i / W), a positive
lower bound that does not suffer when the scores are wide; the range of Z itself is used where it is better.
Scores enter only through differences and nothing is ever added to a denominator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from flint import arb, arb_mat, fmpq

from certiformer.kernel import taylor
from certiformer.kernel.balls import HALF, ONE, ZERO, Box, larger, smaller
from certiformer.kernel.taylor import Form, FormAlgebra, Table

WIDE = 2  # sizes of softmax weights that add up to less widen a mean less than twice: a second look would not pay
GELU_LOW = arb(fmpq(-31, 100)).lower()


@dataclass(frozen=True, eq=False)
class Weight:
    """A constant matrix; its absolute values are made once."""

    matrix: arb_mat

    @cached_property
    def size(self) -> arb_mat:
        """Entrywise upper bounds of |W|."""
        return absolute(self.matrix)


@dataclass(frozen=True)
class Input:
    rows: int
    columns: int


@dataclass(frozen=True)
class Constant:
    matrix: arb_mat


@dataclass(frozen=True)
class Linear:
    x: int
    weight: Weight
    bias: list[arb] | None = None


@dataclass(frozen=True)
class Pool:
    x: int
    weights: Weight


@dataclass(frozen=True)
class Rows:
    x: int
    chosen: tuple[int, ...]


@dataclass(frozen=True)
class Stack:
    parts: tuple[int, ...]


@dataclass(frozen=True)
class Sum:
    parts: tuple[int, ...]


@dataclass(frozen=True)
class Scores:
    queries: int
    keys: int
    factor: arb


@dataclass(frozen=True)
class Attend:
    kind: str
    scores: int
    values: int
    allowed: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Norm:
    x: int
    epsilon: arb
    gain: list[arb]
    shift: list[arb]


@dataclass(frozen=True)
class Apply:
    name: str
    x: int


Node = Input | Constant | Linear | Pool | Rows | Stack | Sum | Scores | Attend | Norm | Apply


def arguments(node: Node) -> tuple[int, ...]:
    """The positions of the nodes that `node` reads."""
    match node:
        case Input() | Constant():
            return ()
        case Stack(parts) | Sum(parts):
            return parts
        case Scores(queries, keys):
            return queries, keys
        case Attend(_, scores, values):
            return scores, values
    return (node.x,)


class ArrayProgram:
    """A list of nodes; node 0 is the input, the last one the result."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []

    @property
    def source(self) -> Input:
        """Node 0."""
        first = self.nodes[0]
        if not isinstance(first, Input):
            raise TypeError("node 0 of an array program is its input")
        return first

    def add(self, node: Node) -> int:
        """Append a node; returns its position."""
        self.nodes.append(node)
        return len(self.nodes) - 1


# Arrays of forms.


class Stream:
    """Forms of a (rows x columns) array: `coef[i]` holds the coefficients of monomial i (absent = zero)."""

    __slots__ = ("coef", "rem", "table")

    def __init__(self, table: Table, coef: dict[int, arb_mat], rem: arb_mat):
        self.table, self.coef, self.rem = table, coef, rem

    @property
    def shape(self) -> tuple[int, int]:
        return self.rem.nrows(), self.rem.ncols()

    def form(self, row: int, column: int) -> Form:
        """The form of one entry."""
        coef = {i: m[row, column] for i, m in self.coef.items() if not m[row, column].is_zero()}
        return taylor.polynomial(self.table, coef, self.rem[row, column])

    def rows(self, chosen: list[int]) -> Stream:
        """The stream of the chosen rows."""
        return Stream(self.table, {i: take_rows(m, chosen) for i, m in self.coef.items()}, take_rows(self.rem, chosen))


def take_rows(matrix: arb_mat, chosen: list[int]) -> arb_mat:
    columns = range(matrix.ncols())
    return arb_mat(len(chosen), matrix.ncols(), [matrix[r, c] for r in chosen for c in columns])


def from_forms(table: Table, forms: list[list[Form]]) -> Stream:
    """A stream from a table of forms."""
    rows, columns = len(forms), len(forms[0])
    used = sorted({i for row in forms for form in row for i in form.coef} | {0})
    coef = {i: arb_mat(rows, columns, [f.coef.get(i, ZERO) for row in forms for f in row]) for i in used}
    return Stream(table, coef, arb_mat(rows, columns, [f.rem for row in forms for f in row]))


def point_stream(table: Table, box: Box, source: Input) -> Stream:
    """The point of the box as an array: coordinate r * columns + c at row r, column c."""
    axes, shape = range(box.dimension), (source.rows, source.columns)
    forms = from_forms(table, [[taylor.variable(table, box, axis) for axis in axes]])
    coef = {i: arb_mat(*shape, m.entries()) for i, m in forms.coef.items() if i == 0 or not is_zero(m)}
    return Stream(table, coef, arb_mat(*shape, forms.rem.entries()))


def constants(table: Table, matrix: arb_mat) -> Stream:
    """The stream of constant entries."""
    return Stream(table, {0: matrix}, arb_mat(matrix.nrows(), matrix.ncols()))


def plus(a: Stream, b: Stream) -> Stream:
    coef = dict(a.coef)
    for i, m in b.coef.items():
        coef[i] = coef[i] + m if i in coef else m
    return Stream(a.table, coef, a.rem + b.rem)


def scaled(a: Stream, factor: arb) -> Stream:
    return Stream(a.table, {i: m * factor for i, m in a.coef.items()}, a.rem * factor.abs_upper())


def absolute(matrix: arb_mat) -> arb_mat:
    """Entrywise upper bounds of the absolute values."""
    return arb_mat(matrix.nrows(), matrix.ncols(), [entry.abs_upper() for entry in matrix.entries()])


def linear(a: Stream, weight: arb_mat, weight_size: arb_mat, bias: list[arb] | None = None) -> Stream:
    """a W + b; `weight_size` holds |W|."""
    coef = {i: m * weight for i, m in a.coef.items()}
    if bias is not None:
        shift = arb_mat(a.shape[0], len(bias), bias * a.shape[0])
        coef[0] = coef[0] + shift if 0 in coef else shift
    return Stream(a.table, coef, a.rem * weight_size)


def contract(a: Stream, b: Stream) -> Stream:
    """The product of two arrays of forms, sum over the shared axis; monomials are added up before truncation."""
    tab = a.table
    full: dict[int, arb_mat] = {}
    for i, x in a.coef.items():
        row = tab.product[i]
        for j, y in b.coef.items():
            term = x * y
            full[row[j]] = full[row[j]] + term if row[j] in full else term
    rem = arb_mat(a.shape[0], b.shape[1])
    if not (is_zero(a.rem) and is_zero(b.rem)):
        rem = size(a) * b.rem + a.rem * size(b) + a.rem * b.rem
    coef = {i: m for i, m in full.items() if i < tab.size}
    for i, m in full.items():
        if i >= tab.size:
            if tab.even[i]:
                m = m * HALF
                coef[0] = coef[0] + m if 0 in coef else m
            rem = rem + absolute(m)
    return Stream(tab, coef, rem)


def size(a: Stream) -> arb_mat:
    """Entrywise upper bounds of sum over monomials of |coefficient|."""
    return sum(map(absolute, a.coef.values()), arb_mat(*a.shape))


def is_zero(matrix: arb_mat) -> bool:
    return all(entry.is_zero() for entry in matrix.entries())


def transpose(a: Stream) -> Stream:
    return Stream(a.table, {i: m.transpose() for i, m in a.coef.items()}, a.rem.transpose())


def relu(a: Stream) -> Stream:
    """Entrywise max(x, 0) by the chord rule of `taylor.relu`, on the raw coefficients for speed."""
    shape = a.shape
    zero = [ZERO] * (shape[0] * shape[1])
    centre = a.coef[0].entries() if 0 in a.coef else zero
    odd, up, down = list(a.rem.entries()), zero, zero
    for i, m in a.coef.items():
        if i == 0:
            continue
        if a.table.even[i]:
            up = [u + c.nonnegative_part() for u, c in zip(up, m.entries(), strict=True)]
            down = [d + (-c).nonnegative_part() for d, c in zip(down, m.entries(), strict=True)]
        else:
            odd = [r + c.abs_upper() for r, c in zip(odd, m.entries(), strict=True)]
    lows = [(c - o - d).lower() for c, o, d in zip(centre, odd, down, strict=True)]
    highs = [(c + o + u).upper() for c, o, u in zip(centre, odd, up, strict=True)]
    slopes, halves = zip(*map(taylor.chord, lows, highs), strict=True)

    def sloped(m: arb_mat) -> arb_mat:
        return arb_mat(*shape, [c * s for c, s in zip(m.entries(), slopes, strict=True)])

    coef, half = {i: sloped(m) for i, m in a.coef.items()}, arb_mat(*shape, list(halves))
    coef[0] = coef[0] + half if 0 in coef else half
    return Stream(a.table, coef, sloped(a.rem) + half)


# The forms of every node.


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
            return constants(table, matrix)
        case Linear(x, weight, bias):
            return linear(values[x], weight.matrix, weight.size, bias)
        case Pool(x, weights):
            x = values[x]
            return Stream(table, {i: weights.matrix * m for i, m in x.coef.items()}, weights.size * x.rem)
        case Rows(x, chosen):
            return values[x].rows(list(chosen))
        case Stack(parts):
            return stacked(table, [values[part] for part in parts])
        case Sum(parts):
            total = values[parts[0]]
            for part in parts[1:]:
                total = plus(total, values[part])
            return total
        case Scores(queries, keys, factor):
            product = contract(values[queries], transpose(values[keys]))
            return product if factor is ONE else scaled(product, factor)
        case Attend(kind, scores, mixed, allowed):
            s, v = values[scores], values[mixed]
            rows = [mix(kind, [s.form(i, j) for j in keys], v.rows(list(keys))) if keys
                    else constants(table, arb_mat(1, v.shape[1])) for i, keys in enumerate(allowed)]  # fmt: skip
            return stacked(table, rows)
        case Norm(x, epsilon, gain, shift):
            return normalised(values[x], epsilon, gain, shift)
        case Apply("relu", x):
            return relu(values[x])
        case Apply("gelu", x):
            rows, columns = values[x].shape
            return from_forms(table, [[gelu(values[x].form(r, c)) for c in range(columns)] for r in range(rows)])
    raise TypeError(f"{node} is no node that follows an input")


def stacked(table: Table, parts: list[Stream]) -> Stream:
    """The rows of all parts, one part after the other."""
    used, coef = sorted({i for part in parts for i in part.coef}), {}
    for i in used:
        coef[i] = arb_mat([line for p in parts for line in p.coef.get(i, arb_mat(*p.shape)).tolist()])
    return Stream(table, coef, arb_mat([line for p in parts for line in p.rem.tolist()]))


def gelu(x: Form) -> Form:
    """x Phi(x) with Phi(x) = (1 + erf(x / sqrt 2)) / 2.

    It is at most max(x, 0), and at least -e^(-1/2) / 2 > -0.31: Phi(x) <= e^(-x^2/2) / 2 for x <= 0.
    """
    erf = FormAlgebra(x.table).erf(taylor.scale(x, arb(2).rsqrt()))
    value = taylor.multiply(x, taylor.scale(taylor.add(erf, taylor.constant(x.table, ONE)), HALF))
    return taylor.within(value, GELU_LOW, larger(taylor.bounds(x)[1], ZERO))


def centring(columns: int) -> arb_mat:
    """The linear map h -> h - mean of a row."""
    share = ONE / columns
    return arb_mat([[(ONE if i == j else ZERO) - share for j in range(columns)] for i in range(columns)])


def normalised(h: Stream, epsilon: arb, gain: list[arb], shift: list[arb]) -> Stream:
    """(h - mean) / sqrt(variance + epsilon) * gain + shift, row by row.

    (h_i - mean)^2 <= sum_j (h_j - mean)^2 = columns * variance, so no entry exceeds sqrt(columns) before gain and shift,
    however little the forms know of the variance. h - mean is one matrix product, so that common parts cancel.
    """
    (rows, columns), algebra = h.shape, FormAlgebra(h.table)
    limit, middle = arb(columns).sqrt().upper(), centring(columns)
    centred, result = linear(h, middle, absolute(middle)), []
    for r in range(rows):
        entries = [centred.form(r, c) for c in range(columns)]
        variance = taylor.scale(taylor.total([taylor.multiply(e, e) for e in entries]), ONE / columns)
        variance.low = larger(variance.low, ZERO)
        root = algebra.sqrt(taylor.add(variance, taylor.constant(h.table, epsilon)))
        inverse = taylor.divide(taylor.constant(h.table, ONE), root)
        units = [taylor.within(taylor.multiply(e, inverse), -limit, limit) for e in entries]
        row = [taylor.scale(e, s) for e, s in zip(units, gain, strict=True)]
        result.append([taylor.add(f, taylor.constant(h.table, b)) for f, b in zip(row, shift, strict=True)])
    return from_forms(h.table, result)


def mix(kind: str, scores: list[Form], values: Stream) -> Stream:
    """The weighted sum of the value rows under one query's scores."""
    if kind == "nearest":
        sizes = [taylor.add(taylor.relu(s), taylor.relu(taylor.scale(s, -ONE))) for s in scores]
        scores, kind = [taylor.scale(size, -ONE) for size in sizes], "hard"
    if kind == "hard":
        return _hard(scores, values)
    weights = softmax(scores) if kind == "softmax" else [taylor.relu(s) for s in scores] if kind == "relu" else scores
    table, width = values.table, values.shape[1]
    row = from_forms(table, [weights])
    if kind != "softmax" or len(scores) == 1:
        return contract(row, values)
    # sum_j w_j v_j = v0 + sum_j w_j (v_j - v0) because softmax weights sum to one: smaller numbers, smaller remainders.
    p = [weight.coef.get(0, ZERO).mid() for weight in weights]
    centre = (arb_mat(1, len(p), p) * values.coef[0]).mid() if 0 in values.coef else arb_mat(1, width)
    shift = arb_mat(len(p), width, [-e for e in centre.entries()] * len(p))
    mean = plus(contract(row, plus(values, constants(table, shift))), constants(table, centre))
    # A mean lies between the least and the largest value. Forms lose sight of that where their weights are wide.
    if sum((taylor.absolute_sum(weight.coef) + weight.rem for weight in weights), ZERO) < WIDE:
        return mean
    return from_forms(table, [[taylor.within(mean.form(0, c), *column_ends(values, c)) for c in range(width)]])


def column_ends(values: Stream, column: int) -> tuple[arb, arb]:
    """Ends of an interval with every entry of a column; nan wins."""
    ends = [taylor.bounds(values.form(r, column)) for r in range(values.shape[0])]
    low, high = ends[0]
    for other_low, other_high in ends[1:]:
        low, high = smaller(low, other_low), larger(high, other_high)
    return low, high


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
    common = taylor.total([taylor.scale(y, (e / weight_sum).mid()) for y, e in zip(deviations, exact, strict=True)])
    tilted = [taylor.add(y, common, -1) for y in deviations]
    algebra = FormAlgebra(tab)
    terms = [taylor.scale(algebra.exp(t), e) for t, e in zip(tilted, exact, strict=True)]
    denominator = taylor.total(terms)
    average = taylor.total([taylor.scale(t, e) for t, e in zip(tilted, exact, strict=True)])
    jensen, smallest = (
        (weight_sum * (taylor.bounds(average)[0] / weight_sum).exp()).lower(),
        taylor.bounds(denominator)[0],
    )
    smallest = larger(jensen, smallest) if jensen.is_finite() else smallest
    return [taylor.within(taylor.divide(term, denominator, smallest), ZERO, ONE) for term in terms]


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
    constant = [scores[j] for j in candidates if set(scores[j].coef) <= {0} and scores[j].rem.is_zero()]
    levels = [score.coef.get(0, ZERO) for score in constant]
    tied = len(constant) == len(candidates) and all(level.is_exact() for level in levels)
    if tied and len({str(level.man_exp()) for level in levels}) == 1:
        share = ONE / len(candidates)
        row = [share if j in candidates else ZERO for j in range(len(scores))]
        return contract(constants(values.table, arb_mat([row])), values)
    result = []
    for c in range(values.shape[1]):
        hull = values.form(candidates[0], c)
        for j in candidates[1:]:
            hull = taylor.either(hull, values.form(j, c))
        result.append(hull)
    return from_forms(values.table, [result])
