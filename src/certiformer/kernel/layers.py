"""One layer in closed form: an affine function plus mixes of affine functions.

*Reading.* On a box, every node of an array program is read as

    node = affine + sum over its *mixes* of  act(arguments) * values   or   softmax(arguments) * values,             (1)

each mix in one row, its arguments first-order forms and its values constants. This is the shape of every construction:
heads over register tokens, or a feed-forward layer whose input is affine in x. Nothing is assumed: the remainder of a
form says how far it is from affine on the box, zero up to rounding where the network is of that shape and large
elsewhere; what an earlier layer bends ends up in remainders.
Proof by induction over the nodes. Linear maps, sums, pools and chosen rows act on both sides of (1). A function
applied to a node starts a new mix whose argument is the *form* of that node, and so does a softmax over constant
values. Every other node is read as its own form, with no mix. QED.

*Prototypes.* If the softmax scores are exactly affine in the input and the values exactly constant (one data token that
queries a list of register tokens), T_o(x) = affine_o(x) + sum over heads of sum_j softmax_j(A_j . x + b_j) V_jo. On a box,
with e in [-1, 1]^D, w_j = exp(score at the centre - common), any reference slope a, and t_j(e) = sum_i g_ji e_i, g_ji =
(A_j - a)_i r_i (the factor e^{a . (x - c)} cancels in the quotient), a head is

    v0 + N/Z,   N = sum_j w_j (V_jo - v0) e^{t_j},   Z = sum_j w_j e^{t_j}.

e^{t} = sum_{|m| <= k} g^m e^m / m! + rest, |rest| <= rho(tau), tau_j = sum_i |g_ji|, where for |t| <= tau

    |e^t - sum_{i<=k} t^i/i!| <= tau^{k+1}/(k+1)! min(e^tau, 1/(1 - tau/(k+2)) if tau < k+2).

(First: Lagrange remainder. Second: the tail of the series is at most the geometric series with ratio tau/(k+2).)
With W = sum_j w_j, Jensen gives Z >= W exp(sum_j w_j t_j / W) >= W exp(-sum_i |sum_j w_j g_ji| / W). For a = the
mean slope under w the exponent is zero up to rounding, so Z >= W: the denominator never degenerates.

*Lists.* On a box let s_j - s_ref <= u_j for every dropped prototype j (affine differences: centre value plus sum_i
|A_j - A_ref|_i r_i, exact). The dropped weights sum to at most tail = sum e^{u_j}. As T_all = (1 - omega) T_kept +
sum_dropped w_j V_j with omega = sum of dropped weights <= tail, |T_all - T_kept| <= tail * (max V - min V).

*Shares.* Let w and w' be softmax weights of scores s and s' = s + D over one list, osc = max D - min D. Then for all values
v: |sum w'_j v_j - sum w_j v_j| <= (max v - min v) tanh(osc/4).
Proof. The likelihood ratio L_j = w'_j / w_j lies in an interval [l, u] with u/l <= R = e^osc and sum w_j L_j = 1, so l <=
1 <= u. Among all such L the total variation sum w_j (L_j - 1)^+ is largest for two values: (1 - l)(u - 1)/(u - l); with
u = l R this is largest at l = R^(-1/2), where it equals (R^(1/2) - 1)/(R^(1/2) + 1) = tanh(osc/4). The difference of the
two means is at most (max v - min v) times the total variation. QED. Scores that differ by at most d have osc <= 2 d.

*Product grids.* A softmax over the product of lists, with scores s_j(x) = sum_g s_{g,j_g}(x) and values v_j = sum_g
v_{g,j_g}, is the sum over g of the softmax over list g alone.
Proof. The weights factorise into w_j = prod_g w_{g,j_g}, each factor summing to one, so E v = sum_g E_g v_g. QED.

*Sums of units.* One output of a transformer as

    S(x) = constant + linear . x + sum_u coefficient_u act(offset_u + slope_u . x)  up to `slack`,

x taken from the centre of the box: by (1) where one kind of activation is left, or from softmax heads over two keys, which
are V_1 + (V_0 - V_1) sigmoid(s_0 - s_1); one head over more keys is read with its keys as the units. A relu that has one
sign on the whole box is zero or affine and is not kept as a unit. So is a gelu whose argument stays below -t or above t for
some t >= 8: with Phi(-t) <= phi(t)/t, |gelu(u)| for u <= -t and |gelu(u) - u| for u >= t are at most exp(-t^2/2), which is
added to the slack (t = 40: 1e-348). On a box the argument of a unit is u + y with u its value at the centre and y = sum_j
y_j e_j, |y| <= rho = sum_j |y_j|. So its Taylor polynomial is a polynomial in one number y, and y^i is i! times the sum of
y^a/a! over |a| = i: no products of forms are needed, and nothing but the remainder is dropped.

*Gelu.* g(u) = u Phi(u), and with Hermite polynomials He_{i+1} = u He_i - i He_{i-1}, for n >= 2,

    g^(n)(u) = u Phi^(n) + n Phi^(n-1) = (-1)^n phi(u) (He_{n-2}(u) - He_n(u)).

Cramer's inequality |He_n(u)| <= 1.09 sqrt(n!) exp(u^2/4) gives |g^(n)(v)|/n! <= C_n exp(-v^2/4), where
C_n = 1.09 (2 pi)^(-1/2) (sqrt(n!) + sqrt((n-2)!)) / n! (C_6 = 0.0192). The remainder of order k is the (k+1)st term at
some v between: at most C_{k+1} exp(-m^2/4) rho^(k+1) with m = min |v|, and also at most
(|g^(k+1)(u)|/(k+1)! + (k+2) C_{k+2} rho) rho^(k+1) by the mean value theorem; the smaller one counts.
Beside relu: 0 <= relu(v) - g(v) = |v| Phi(-|v|), which is at most 0.17 everywhere and at most exp(-t^2/2) for
|v| >= t (as Phi(-t) <= phi(t)/t). So g is relu, by its chord, less half of that and up to half of that: better than the
Taylor polynomial on wide boxes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import factorial
from operator import mul

from flint import arb, arb_mat, fmpq

from certiformer.kernel import Refused, arrays, taylor
from certiformer.kernel.arrays import ArrayProgram, Node, Stream, arguments, constants, is_zero, node_value, take_rows
from certiformer.kernel.balls import HALF, INFINITY, ONE, ZERO, BallDomain, Box, largest, power, smaller
from certiformer.kernel.problem import Function, Network, SelectedOutput
from certiformer.kernel.taylor import Form, FormAlgebra, Table


@dataclass(frozen=True)
class Mix:
    """kind(arguments) values in one row: `arguments` is a row of forms, `values` has a line for each of them."""

    row: int
    kind: str
    arguments: Stream
    values: arb_mat


@dataclass(frozen=True)
class Reading:
    """A node as (1) of the module docstring."""

    affine: Stream
    mixes: tuple[Mix, ...] = ()


def read_layer(program: ArrayProgram, box: Box) -> Reading:
    """The reading of the last node on `box`."""
    return _Reader(program, box).readings[-1]


class _Reader:
    """The readings of all nodes, and the forms of those whose forms are looked at."""

    def __init__(self, program: ArrayProgram, box: Box):
        self.nodes, self.table = program.nodes, taylor.table(box.dimension, 1)
        self.forms = {0: arrays.point_stream(self.table, box, program.source)}
        self.readings = [Reading(self.forms[0])]
        for n in range(1, len(self.nodes)):
            self.readings.append(self._reading(n))

    def form(self, n: int) -> Stream:
        """The form of node n as a whole."""
        if n not in self.forms:
            values = {x: self.form(x) for x in arguments(self.nodes[n])}
            self.forms[n] = node_value(self.nodes[n], values, self.table)
        return self.forms[n]

    def _reading(self, n: int) -> Reading:
        node, table = self.nodes[n], self.table
        mixes = [mix for x in arguments(node) for mix in self.readings[x].mixes]
        match node:
            case arrays.Apply(kind, x):
                argument, (rows, columns) = self.form(x), self.form(x).shape
                one = arb_mat(columns, columns, [int(i == j) for i in range(columns) for j in range(columns)])
                fresh = [Mix(r, kind, argument.rows([r]), one) for r in range(rows)]
                return Reading(constants(table, arb_mat(rows, columns)), tuple(fresh))
            case arrays.Attend("softmax", scores, values, allowed) if _is_constant(self.form(values)) and all(allowed):
                fresh, columns = (
                    _softmax_mixes(self.form(scores), self.form(values), allowed),
                    self.form(values).shape[1],
                )
                return Reading(constants(table, arb_mat(len(allowed), columns)), tuple(fresh))
            case arrays.Linear():
                kept = [replace(m, values=m.values * node.weight.matrix) for m in mixes]
            case arrays.Pool():
                shares = node.weights.matrix
                kept = [
                    replace(m, row=k, values=m.values * shares[k, m.row]) for m in mixes for k in range(shares.nrows())
                ]
            case arrays.Rows():
                kept = [replace(m, row=k) for m in mixes for k, row in enumerate(node.chosen) if row == m.row]
            case arrays.Sum():
                kept = mixes
            case _:
                kept = []
        if not kept:
            return Reading(self.form(n))
        affine = {x: self.readings[x].affine for x in arguments(node)}
        return Reading(node_value(node, affine, table), tuple(kept))


def coefficients(forms: Stream, monomial: int) -> list[arb]:
    """The coefficients of one monomial, entry after entry."""
    return forms.coef[monomial].entries() if monomial in forms.coef else [ZERO] * (forms.shape[0] * forms.shape[1])


def _is_constant(form: Stream) -> bool:
    return is_zero(form.rem) and all(is_zero(m) for monomial, m in form.coef.items() if monomial)


def _softmax_mixes(scores: Stream, values: Stream, allowed: tuple[tuple[int, ...], ...]) -> list[Mix]:
    numbers, mixes = values.coef.get(0, arb_mat(*values.shape)), []
    for row, keys in enumerate(allowed):
        seen = arrays.transpose(arrays.transpose(scores.rows([row])).rows(list(keys)))
        mixes.append(Mix(row, "softmax", seen, take_rows(numbers, list(keys))))
    return mixes


CUT = 40  # nats: dropped prototypes weigh less than e^-40 = 4.2e-18 each
SHORT = 48  # lists shorter than this are not pruned further
WORTH = 0.75  # a list that keeps more than this share stays as it is, with the matrices it has


@dataclass(frozen=True)
class Head:
    """One softmax over prototypes: slopes[j][i], offsets[j], values[j][o]; its matrices are made once."""

    slopes: list[list[arb]]
    offsets: list[arb]
    values: list[list[arb]]

    def only(self, kept: Iterable[int]) -> Head:
        """The head over the kept prototypes."""
        chosen = list(kept)
        slopes, offsets = [self.slopes[j] for j in chosen], [self.offsets[j] for j in chosen]
        return Head(slopes, offsets, [self.values[j] for j in chosen])

    def spread(self, output: int) -> arb:
        """Upper bound of max - min of the values of one output."""
        low, high = self.ends[output]
        return (high - low).upper()

    def tail(self, dropped: Iterable[int], reference: int, box: Box) -> arb:
        """What the dropped prototypes weigh together at most, where `reference` stays (rule *lists*)."""
        rest = self.only(dropped)
        if not rest.offsets:
            return ZERO
        best = scores_at_centre(self.only([reference]), box)[0]
        reaches = _reaches(_shifted(rest.slope_matrix, self.slopes[reference]), box)
        most = [s - best + reach for s, reach in zip(scores_at_centre(rest, box), reaches, strict=True)]
        return sum((x.exp() for x in most), ZERO).upper()

    def distance(self, other: Head, box: Box) -> list[arb]:
        """Upper bounds of |self - other| on the box, one an output, prototype by prototype (rule *shares*)."""
        if len(self.offsets) != len(other.offsets):
            raise Refused(f"a head over {len(self.offsets)} prototypes is compared with one over {len(other.offsets)}")
        moved = Head([list(line) for line in (self.slope_matrix - other.slope_matrix).tolist()],
                     [a - b for a, b in zip(self.offsets, other.offsets, strict=True)], self.values)  # fmt: skip
        reaches = _reaches(moved.slope_matrix, box)
        farthest = largest([(abs(s) + r).upper() for s, r in zip(scores_at_centre(moved, box), reaches, strict=True)])
        gaps = (self.value_matrix - other.value_matrix).transpose().tolist()
        return [
            (self.spread(o) * shares_moved(farthest) + largest([abs(gap).upper() for gap in column])).upper()
            for o, column in enumerate(gaps)
        ]

    @cached_property
    def ends(self) -> list[tuple[arb, arb]]:
        """For each output the ends of the range of its values."""
        columns = list(zip(*self.values, strict=True))
        return [(min(c.lower() for c in column), max(c.upper() for c in column)) for column in columns]

    @cached_property
    def slope_matrix(self) -> arb_mat:
        return arb_mat(self.slopes)

    @cached_property
    def offset_column(self) -> arb_mat:
        return arb_mat(len(self.offsets), 1, self.offsets)

    @cached_property
    def value_matrix(self) -> arb_mat:
        return arb_mat(self.values)

    @cached_property
    def rounded(self) -> tuple[list[list[float]], list[float]]:
        """Slopes by axis and offsets as floats: they may guide a choice, never a bound."""
        return [[float(a) for a in row] for row in zip(*self.slopes, strict=True)], [float(b) for b in self.offsets]

    @cached_property
    def middle(self) -> list[arb]:
        """A slope amid all slopes."""
        return [(sum(column, ZERO) / len(column)).mid() for column in zip(*self.slopes, strict=True)]

    def features(self, tab: Table) -> arb_mat:
        """(A_j - middle)^m / m! for every prototype j and monomial m."""
        if tab.order not in self._features:
            axes = _shifted(self.slope_matrix, self.middle).transpose().tolist()
            columns = [[ONE] * len(self.slopes)]
            for parent, axis, power, _ in tab.steps:
                columns.append([x * a / power for x, a in zip(columns[parent], axes[axis], strict=True)])
            self._features[tab.order] = arb_mat(columns).transpose()
        return self._features[tab.order]

    @cached_property
    def _features(self) -> dict[int, arb_mat]:
        return {}


@dataclass(frozen=True)
class Prototypes:
    """A sum of prototype heads plus an affine part; `slack[o]` bounds what pruned prototypes could contribute."""

    dimension: int
    outputs: int
    registers: int
    heads: list[Head]
    weight: list[list[arb]]  # weight[i][o] of the affine part
    bias: list[arb]
    slack: list[arb]

    def registers_only(self, box: Box) -> Prototypes:
        """The heads over the register tokens alone, charging what other tokens weigh on `box`."""
        choices = []
        for head in self.heads:
            if len(head.offsets) < self.registers:
                raise Refused("some register tokens are masked, so the heads are not over all of them")
            middle, registers = scores_at_centre(head, box), range(self.registers)
            reference = max(registers, key=lambda j: middle[j].mid())
            choices.append((registers, head.tail(range(self.registers, len(head.offsets)), reference, box)))
        return self._only(choices)

    def restrict(self, box: Box) -> Prototypes:
        """Drop the prototypes that cannot matter on `box`, charging their proved tail."""
        return self._only([_keep(head, box) if len(head.offsets) > SHORT else None for head in self.heads])

    def _only(self, choices: Sequence[tuple[Iterable[int], arb] | None]) -> Prototypes:
        """The heads over what is kept of each, with the weight of what is not; None: the head as it is."""
        slack, heads = list(self.slack), list(self.heads)
        for h, choice in enumerate(choices):
            if choice is not None:
                kept, tail = choice
                slack = [(own + tail * heads[h].spread(o)).upper() for o, own in enumerate(slack)]
                heads[h] = heads[h].only(kept)
        return replace(self, heads=heads, slack=slack)

    def forms(self, box: Box, order: int) -> list[Form]:
        """The forms of all outputs on `box`."""
        tab, results = taylor.table(self.dimension, order), []
        variables = [taylor.variable(tab, box, i) for i in range(self.dimension)]
        heads = [_head_forms(tab, head, box, self.outputs) for head in self.heads]
        for o in range(self.outputs):
            lines = [
                taylor.scale(x, row[o]) for x, row in zip(variables, self.weight, strict=True) if not row[o].is_zero()
            ]
            form = taylor.total([taylor.constant(tab, self.bias[o]), *lines, *(head[o] for head in heads)])
            slack = self.slack[o]
            form.low, form.high, form.rem = (
                (form.low - slack).lower(),
                (form.high + slack).upper(),
                (form.rem + slack).upper(),
            )
            results.append(form)
        return results


def shares_moved(distance: arb) -> arb:
    """tanh(osc/4) of the rule *shares* where no score moves by more than `distance`."""
    return (distance * HALF).tanh().upper()


def scores_at_centre(head: Head, box: Box) -> list[arb]:
    """The scores at the box centre."""
    return (head.slope_matrix * arb_mat(box.dimension, 1, list(box.centre)) + head.offset_column).entries()


def _shifted(matrix: arb_mat, row: list[arb]) -> arb_mat:
    """The matrix with `row` subtracted from each of its rows."""
    return matrix - arb_mat(matrix.nrows(), matrix.ncols(), row * matrix.nrows())


def _reaches(moved: arb_mat, box: Box) -> list[arb]:
    """sum_i |moved_ji| r_i for every row j."""
    sizes = arb_mat(moved.nrows(), moved.ncols(), [abs(entry) for entry in moved.entries()])
    return (sizes * arb_mat(box.dimension, 1, list(box.radius))).entries()


def _keep(head: Head, box: Box) -> tuple[list[int], arb] | None:
    """Indices of the prototypes to keep on `box` and the tail of the others (rule *lists*); None: keep them all.

    Which ones to drop is decided in floats, which is quick and proves nothing; what they could weigh is proved in balls.
    """
    rows, offsets = head.rounded
    scores = offsets
    for row, x in zip(rows, box.centre, strict=True):
        scores = [s + a * float(x) for s, a in zip(scores, row, strict=True)]
    top = max(scores)
    reference = scores.index(top)
    for row, radius in zip(rows, box.radius, strict=True):
        mine, r = row[reference], float(radius)
        scores = [s + abs(a - mine) * r for s, a in zip(scores, row, strict=True)]
    kept = [j for j, score in enumerate(scores) if not score < top - CUT]
    if len(kept) > WORTH * len(scores):
        return None
    return kept, head.tail(sorted(set(range(len(scores))) - set(kept)), reference, box)


def _head_forms(tab: Table, head: Head, box: Box, outputs: int) -> list[Form]:
    """The closed form of one head (module docstring)."""
    scores = scores_at_centre(head, box)
    top = arb(max(float(score) for score in scores))  # any number common to all scores would do
    weights = [(score - top).exp() for score in scores]
    row = arb_mat(1, len(weights), weights)
    total = sum(weights, ZERO)
    mean = [(entry / total).mid() for entry in (row * head.slope_matrix).entries()]
    centre = [(entry / total).mid() for entry in (row * head.value_matrix).entries()]
    values = _shifted(head.value_matrix, centre).transpose().tolist()
    left = [weights, *([w * v for w, v in zip(weights, column, strict=True)] for column in values)]
    moments = _tilted(tab, (arb_mat(left) * head.features(tab)).tolist(), head.middle, mean, box)
    rho = _rests(_reaches(_shifted(head.slope_matrix, mean), box), tab.order)
    rests = [sum(map(mul, map(abs, line), rho), ZERO) / arb.fac_ui(tab.order + 1) for line in left]
    forms = [
        taylor.polynomial(tab, {i: m for i, m in enumerate(line) if not m.is_zero()}, rest)
        for line, rest in zip(moments, rests, strict=True)
    ]
    smallest = None
    if tab.order:
        drift = sum((moments[0][i].abs_upper() for i in tab.axis), ZERO)
        smallest = (total * (-drift / total).exp()).lower()
    result = []
    for o in range(outputs):
        quotient = taylor.divide(forms[o + 1], forms[0], smallest)
        form = taylor.add(quotient, taylor.constant(tab, centre[o]))
        # The output is a convex combination of the values, whatever the weights are.
        result.append(taylor.within(form, *head.ends[o]))
    return result


def _tilted(tab: Table, lines: list[list[arb]], old: list[arb], new: list[arb], box: Box) -> list[list[arb]]:
    """Coefficients in e of sum_j q_j e^{(A_j - new) . y}, y = r e, from those in y with `old` in place of `new`.

    The two functions differ by the factor e^{(old - new) . y}; a coefficient of degree <= k of the product needs only
    coefficients of degree <= k of the factors, so nothing is dropped.
    """
    shift = [a - b for a, b in zip(old, new, strict=True)]
    factor, scale = [ONE], [ONE]
    for parent, axis, exponent, _ in tab.steps:
        factor.append(factor[parent] * shift[axis] / exponent)
        scale.append(scale[parent] * box.radius[axis])
    result = []
    for line in lines:
        sums = [ZERO] * tab.size
        for x, places in zip(factor, tab.product, strict=True):
            for y, place in zip(line, places, strict=True):
                if place < tab.size:
                    sums[place] = sums[place] + x * y
        result.append([x * r for x, r in zip(sums, scale, strict=True)])
    return result


def _rests(taus: list[arb], k: int) -> list[arb]:
    """(k + 1)! rho(tau) of the module docstring for every tau; well below k + 2 the second bound is the smaller one."""
    leads = taus
    for _ in range(k):
        leads = list(map(mul, leads, taus))
    limit = 0.9 * (k + 2)
    return [
        lead / (1 - tau / (k + 2)) if tau < limit else lead * tau.exp() for lead, tau in zip(leads, taus, strict=True)
    ]


def _is_analytic(node: Node) -> bool:
    """Heads that choose (`hard`, `nearest`) or cut off (`relu`) look affine on a box where the choice is certain."""
    if isinstance(node, arrays.Attend):
        return node.kind in ("softmax", "linear")
    return not isinstance(node, arrays.Apply | arrays.Norm)


def as_prototypes(network: Network) -> Prototypes | None:
    """The prototype form of a network that reads data tokens, or None when it is not exactly of that form.

    On the box [-1, 1]^D a first-order form whose remainder is exactly zero *is* an affine function of x. It is that one
    everywhere, because every node is analytic: no kink can lie beyond the box.
    """
    program, dimension = network.program, network.dimension
    if network.config["readout"]["kind"] == "register" or not all(map(_is_analytic, program.nodes)):
        return None
    network.require_room(1 + dimension)
    reading = read_layer(program, Box((ZERO,) * dimension, (ONE,) * dimension))
    forms = [reading.affine, *(mix.arguments for mix in reading.mixes)]
    if not reading.mixes or not all(is_zero(form.rem) for form in forms):
        return None
    (rows, columns), monomials = reading.affine.shape, (0, *reading.affine.table.axis)
    bias, *weight = [coefficients(reading.affine, monomial) for monomial in monomials]
    heads = []
    for mix in reading.mixes:
        offsets, *along = [coefficients(mix.arguments, monomial) for monomial in monomials]
        before, after = [ZERO] * (mix.row * columns), [ZERO] * ((rows - 1 - mix.row) * columns)
        values = [[*before, *line, *after] for line in mix.values.tolist()]
        heads.append(Head([list(slope) for slope in zip(*along, strict=True)], offsets, values))
    return Prototypes(dimension, rows * columns, network.registers, heads, weight, bias, [ZERO] * (rows * columns))


# |act(u) - act(v)| <= LIPSCHITZ |u - v|. For gelu: sup |Phi(x) + x phi(x)| = 1.1289... at x = sqrt 2.
LIPSCHITZ = {"relu": ONE, "gelu": arb(fmpq(113, 100)), "identity": ONE, "sigmoid": arb(fmpq(1, 4))}
# How far from zero the argument of a unit must stay for the unit to be zero or affine.
FLAT = {"identity": -INFINITY, "relu": ZERO, "gelu": arb(8)}
CRAMER, DIP = arb(fmpq(109, 100)), arb(fmpq(17, 100))


@dataclass(frozen=True)
class Unit:
    """coefficient * act(offset + slope . x), the argument known up to `error`."""

    slope: list[arb]
    offset: arb
    coefficient: arb
    error: arb

    def at(self, centre: Sequence[arb]) -> arb:
        """The argument at a point."""
        return self.offset + dot(self.slope, centre)

    def reach(self, radius: Sequence[arb]) -> arb:
        """How far the argument may be from its value at the centre of a box."""
        return sum((s.abs_upper() * r for s, r in zip(self.slope, radius, strict=True)), self.error).upper()


@dataclass(frozen=True)
class UnitSum:
    """The function S of the module docstring; `kind` is relu, gelu, sigmoid, or identity where there are no units."""

    kind: str
    linear: list[arb]
    constant: arb
    units: list[Unit]
    slack: arb = ZERO

    outputs = 1

    def forms(self, box: Box, order: int) -> list[Form]:
        tab = taylor.table(box.dimension, order)
        coef, rem = [ZERO] * tab.size, self.slack
        coef[0] = self.constant + dot(self.linear, box.centre)
        rem = rem + _add_line(tab, coef, ONE, [a * r for a, r in zip(self.linear, box.radius, strict=True)])
        for unit in self.units:
            y = [s * r for s, r in zip(unit.slope, box.radius, strict=True)]
            rem = rem + self._add(tab, coef, unit, unit.at(box.centre), y)
            rem = rem + unit.coefficient.abs_upper() * LIPSCHITZ[self.kind] * unit.error
        return [taylor.polynomial(tab, {i: c for i, c in enumerate(coef) if not c.is_zero()}, rem)]

    def _add(self, tab: Table, coef: list[arb], unit: Unit, u: arb, y: list[arb]) -> arb:
        """Add one unit to the coefficients; returns what it adds to the remainder."""
        rho = sum((part.abs_upper() for part in y), ZERO).upper()
        low, high = (u - rho).lower(), (u + rho).upper()
        factor, size = unit.coefficient, unit.coefficient.abs_upper()
        if self.kind == "sigmoid":
            form = _sigmoid(tab, u, y)
            for place, c in form.coef.items():
                coef[place] = coef[place] + factor * c
            return size * form.rem
        slope, beyond = taylor.chord(low, high)
        middle = beyond
        if self.kind == "gelu":
            dip = _dip(low, high) * HALF
            series = _gelu(u, tab.order)
            remainder = _remainder(series[-1], tab.order, rho, low, high)
            if remainder < beyond + dip:
                _add_powers(tab, coef, [factor * t for t in series[:-1]], y)
                return size * remainder
            middle, beyond = beyond - dip, beyond + dip
        coef[0] = coef[0] + factor * (slope * u + middle)
        return size * beyond + _add_line(tab, coef, factor * slope, y)

    def restrict(self, box: Box) -> UnitSum:
        """The same function on a smaller box, where more units are zero or affine."""
        if self.kind not in FLAT:
            return self
        kept, linear, constant, slack, far = [], self.linear, self.constant, self.slack, FLAT[self.kind]
        for unit in self.units:
            u, reach, size = unit.at(box.centre), unit.reach(box.radius), unit.coefficient.abs_upper()
            low, high = (u - reach).lower(), (u + reach).upper()
            if self.kind == "identity" or low >= far:
                linear = [a + unit.coefficient * s for a, s in zip(linear, unit.slope, strict=True)]
                constant, slack = constant + unit.coefficient * unit.offset, slack + size * unit.error
            elif not high <= -far:
                kept.append(unit)
                continue
            if self.kind == "gelu":
                slack = slack + size * _dip(low, high)
        if len(kept) == len(self.units):
            return self
        return replace(self, linear=linear, constant=constant, units=kept, slack=slack.upper())


def units_of(left: Function, domain: BallDomain) -> UnitSum:
    """One output as affine part and units of x - c; `Refused` when the transformer is not of that form."""
    output = 0
    if isinstance(left, SelectedOutput):
        left, output = left.function, left.output
    elif left.outputs != 1:
        raise Refused("the rule split speaks of one output at a time")
    box = domain.box(((0, 0),) * domain.dimension)
    if isinstance(left, Prototypes):
        return _from_heads(left, output, box)
    if isinstance(left, Network):
        return _from_block(left, output, box).restrict(Box((ZERO,) * box.dimension, box.radius))
    raise Refused("the rule split needs a transformer on its left-hand side")


def _from_block(network: Network, output: int, box: Box) -> UnitSum:
    config = network.config
    if not config["blocks"] or config["loops"] != 1 or any(block["norm"] for block in config["blocks"]):
        raise Refused("the rule split needs blocks without layer norm, applied once")
    network.require_room(1 + box.dimension)
    reading = read_layer(network.program, box)
    row, column = divmod(output, reading.affine.shape[1])
    # A head that writes nothing into this output is no part of it.
    written = [
        (mix, unit)
        for mix in reading.mixes
        for unit in range(mix.values.nrows())
        if mix.row == row and not mix.values[unit, column].is_zero()
    ]
    kinds = {mix.kind for mix, _ in written} or {"identity"}
    if len(kinds) > 1 or not kinds <= set(FLAT):
        raise Refused("the rule split needs units of one kind behind an affine part")
    units = [_entry(mix.arguments, 0, unit, mix.values[unit, column], box) for mix, unit in written]
    affine = _entry(reading.affine, row, column, ONE, box)
    return UnitSum(kinds.pop(), affine.slope, affine.offset, units, affine.error)


def _entry(forms: Stream, row: int, column: int, coefficient: arb, box: Box) -> Unit:
    """One entry of a first-order stream as the argument of a unit."""
    slope = [ZERO] * box.dimension
    for axis, place in enumerate(forms.table.axis):
        if place in forms.coef:
            slope[axis] = forms.coef[place][row, column] / box.radius[axis]
    offset = forms.coef[0][row, column] if 0 in forms.coef else ZERO
    return Unit(slope, offset, coefficient, forms.rem[row, column].upper())


def _from_heads(left: Prototypes, output: int, box: Box) -> UnitSum:
    grid = len(left.heads) == 1 and len(left.heads[0].offsets) > 2
    if grid:
        left = left.registers_only(box)
    linear = [line[output] for line in left.weight]
    constant, units = left.bias[output] + dot(linear, box.centre), []
    for head in left.heads:
        scores = scores_at_centre(head, box)
        keys = [Unit(*key, ZERO) for key in zip(head.slopes, scores, (v[output] for v in head.values), strict=True)]
        if grid:
            units = keys
        elif not all(key.coefficient.is_zero() for key in keys):
            if len(keys) != 2:
                raise Refused("the rule split needs heads over two keys, or a feed-forward part")
            (first, second), difference = keys, [a - b for a, b in zip(keys[0].slope, keys[1].slope, strict=True)]
            constant = constant + second.coefficient
            units.append(Unit(difference, first.offset - second.offset, first.coefficient - second.coefficient, ZERO))
    return UnitSum("softmax" if grid else "sigmoid", linear, constant, units, left.slack[output])


def _sigmoid(tab: Table, u: arb, y: list[arb]) -> Form:
    """(1 + tanh(x/2))/2 at x = u + y."""
    coef = {place: part for place, part in zip(tab.axis, y, strict=False) if not part.is_zero()}
    rem = ZERO if tab.order else sum((part.abs_upper() for part in y), ZERO).upper()
    half = taylor.scale(FormAlgebra(tab).tanh(taylor.scale(taylor.polynomial(tab, {0: u, **coef}, rem), HALF)), HALF)
    return taylor.add(half, taylor.constant(tab, HALF))


def dot(a: Sequence[arb], b: Sequence[arb]) -> arb:
    return sum((x * y for x, y in zip(a, b, strict=True)), ZERO)


def _add_line(tab: Table, coef: list[arb], factor: arb, y: list[arb]) -> arb:
    """Add factor * y to the coefficients; what a table of order 0 has no place for is returned."""
    if tab.order == 0:
        return sum(((factor * part).abs_upper() for part in y), ZERO)
    for place, part in zip(tab.axis, y, strict=True):
        coef[place] = coef[place] + factor * part
    return ZERO


def _add_powers(tab: Table, coef: list[arb], series: list[arb], y: list[arb]) -> None:
    """Add sum_i series_i y^i to the coefficients."""
    terms = [t * factorial(i) for i, t in enumerate(series)]
    powers = [ONE]  # y^a / a!
    coef[0] = coef[0] + series[0]
    for place, (parent, axis, exponent, degree) in enumerate(tab.steps, 1):
        value = powers[parent] * y[axis]
        powers.append(value if exponent == 1 else value / exponent)
        coef[place] = coef[place] + terms[degree] * powers[place]


def _dip(low: arb, high: arb) -> arb:
    """An upper bound of relu - gelu on [low, high]."""
    distance = low if low > 0 else -high if high < 0 else ZERO
    return smaller(DIP, (-distance * distance * HALF).exp().upper())


def _gelu(u: arb, order: int) -> list[arb]:
    """Taylor coefficients of gelu at u, from 0 to order + 1."""
    below = (-u * arb(2).rsqrt()).erfc() * HALF
    density = (-u * u * HALF).exp() * (2 * arb.pi()).rsqrt()
    series, hermite = [u * below, below + u * density], [ONE, u]
    for n in range(2, order + 2):
        hermite.append(u * hermite[n - 1] - (n - 1) * hermite[n - 2])
        sign = density if n % 2 == 0 else -density
        series.append(sign * (hermite[n - 2] - hermite[n]) / factorial(n))
    return series[: order + 2]


@lru_cache(maxsize=32)
def _cramer(n: int) -> arb:
    """C_n of the module docstring, n >= 2; for n = 1 the largest slope of gelu, 1.1289..."""
    if n == 1:
        return arb(fmpq(113, 100))
    sizes = arb(factorial(n)).sqrt() + arb(factorial(n - 2)).sqrt()
    return (CRAMER * (2 * arb.pi()).rsqrt() * sizes / factorial(n)).upper()


def _remainder(following: arb, order: int, rho: arb, low: arb, high: arb) -> arb:
    """The remainder of gelu's Taylor polynomial: the bounds of the module docstring, `following` the next coefficient."""
    n = order + 1
    distance = low if low > 0 else -high if high < 0 else ZERO
    fading = (-distance * distance / 4).exp() if n >= 2 else ONE
    near = following.abs_upper() + (n + 1) * _cramer(n + 1) * rho
    return (smaller((_cramer(n) * fading).upper(), near.upper()) * power(rho, n)).upper()
