"""Prototype attention: a program whose softmax scores are affine in the input and whose values are constant.

For such a program (one data token that queries a list of register tokens) the output is exactly

    T_o(x) = affine_o(x) + sum over heads of  sum_j softmax_j(A_j . x + b_j) V_jo,

and its Taylor form on a box has a closed form. `as_prototypes` recognises the case: whatever would make a score
quadratic or a value depend on x must be *exactly* zero.

*Closed form.* On a box, with e in [-1, 1]^D, w_j = exp(score at the centre - common), any reference slope a, and
t_j(e) = sum_i g_ji e_i, g_ji = (A_j - a)_i r_i (the factor e^{a . (x - c)} cancels in the quotient):

    T_o = v0 + N/Z,   N = sum_j w_j (V_jo - v0) e^{t_j},   Z = sum_j w_j e^{t_j}.

e^{t} = sum_{|m| <= k} g^m e^m / m! + rest, |rest| <= rho(tau), tau_j = sum_i |g_ji|, where for |t| <= tau

    |e^t - sum_{i<=k} t^i/i!| <= tau^{k+1}/(k+1)! min(e^tau, 1/(1 - tau/(k+2)) if tau < k+2).

(First: Lagrange remainder. Second: the tail of the series is at most the geometric series with ratio tau/(k+2).)

*Tilt.* With W = sum_j w_j, Jensen gives Z >= W exp(sum_j w_j t_j / W) >= W exp(-sum_i |sum_j w_j g_ji| / W). For a = the
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
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from operator import mul

from flint import arb, arb_mat

from certiformer.kernel import taylor
from certiformer.kernel.arrays import Apply, Attend, Node, Norm
from certiformer.kernel.balls import HALF, INFINITY, ONE, ZERO, Box, larger, largest, smaller
from certiformer.kernel.network import Network
from certiformer.kernel.refusal import Refused
from certiformer.kernel.shallow import entries, read_layer
from certiformer.kernel.stream import is_zero
from certiformer.kernel.taylor import Form, Table

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
        slack, heads = list(self.slack), []
        for head in self.heads:
            if len(head.offsets) < self.registers:
                raise Refused("some register tokens are masked, so the heads are not over all of them")
            middle = scores_at_centre(head, box)
            reference = max(range(self.registers), key=lambda j: middle[j].mid())
            tail = head.tail(range(self.registers, len(head.offsets)), reference, box)
            slack = [(own + tail * head.spread(o)).upper() for o, own in enumerate(slack)]
            heads.append(head.only(range(self.registers)))
        return replace(self, heads=heads, slack=slack)

    def restrict(self, box: Box) -> Prototypes:
        """Drop the prototypes that cannot matter on `box`, charging their proved tail."""
        slack, heads = list(self.slack), []
        for head in self.heads:
            kept, tail = _keep(head, box) if len(head.offsets) > SHORT else (None, ZERO)
            if kept is None:
                heads.append(head)
                continue
            for o in range(self.outputs):
                slack[o] = (slack[o] + tail * head.spread(o)).upper()
            heads.append(head.only(kept))
        return replace(self, heads=heads, slack=slack)

    def forms(self, box: Box, order: int) -> list[Form]:
        """The forms of all outputs on `box`."""
        tab = taylor.table(self.dimension, order)
        variables = [taylor.variable(tab, box, i) for i in range(self.dimension)]
        results = []
        for o in range(self.outputs):
            form = taylor.constant(tab, self.bias[o])
            for i, variable in enumerate(variables):
                if not self.weight[i][o].is_zero():
                    form = taylor.add(form, taylor.scale(variable, self.weight[i][o]))
            results.append(form)
        for head in self.heads:
            for o, part in enumerate(_head_forms(tab, head, box, self.outputs)):
                results[o] = taylor.add(results[o], part)
        return [_widened(form, slack) for form, slack in zip(results, self.slack, strict=True)]


def _widened(form: Form, slack: arb) -> Form:
    low, high = (form.low - slack).lower(), (form.high + slack).upper()
    return Form(form.table, form.coef, (form.rem + slack).upper(), low, high, form.singular)


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


def _keep(head: Head, box: Box) -> tuple[list[int] | None, arb]:
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
        return None, ZERO
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
    forms = []
    for line, rest in zip(moments, rests, strict=True):
        form = Form(tab, {i: m for i, m in enumerate(line) if not m.is_zero()}, rest.upper(), -INFINITY, INFINITY)
        form.low, form.high = taylor.bounds(form)
        forms.append(form)
    smallest = None
    if tab.order:
        drift = sum((moments[0][i].abs_upper() for i in tab.axis), ZERO)
        smallest = (total * (-drift / total).exp()).lower()
    result = []
    for o in range(outputs):
        quotient = taylor.divide(forms[o + 1], forms[0], smallest)
        form = taylor.add(quotient, taylor.constant(tab, centre[o]))
        # The output is a convex combination of the values, whatever the weights are.
        form.low, form.high = _sure(larger, form.low, head.ends[o][0]), _sure(smaller, form.high, head.ends[o][1])
        result.append(taylor.tightest(form))
    return result


def _tilted(tab: Table, lines: list[list[arb]], old: list[arb], new: list[arb], box: Box) -> list[list[arb]]:
    """Coefficients in e of sum_j q_j e^{(A_j - new) . y}, y = r e, from those in y with `old` in place of `new`.

    The two functions differ by the factor e^{(old - new) . y}; a coefficient of degree <= k of the product needs only
    coefficients of degree <= k of the factors, so nothing is dropped.
    """
    shift = [a - b for a, b in zip(old, new, strict=True)]
    factor, scale = [ONE], [ONE]
    for parent, axis, power, _ in tab.steps:
        factor.append(factor[parent] * shift[axis] / power)
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


def _sure(choose, candidate: arb, always: arb) -> arb:
    """The better of two valid ends; the second one alone when the first is not a number."""
    return always if candidate.is_nan() else choose(candidate, always)


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
    return node.kind in ("softmax", "linear") if isinstance(node, Attend) else not isinstance(node, Apply | Norm)


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
    bias, *weight = [entries(reading.affine, monomial) for monomial in monomials]
    heads = []
    for mix in reading.mixes:
        offsets, *along = [entries(mix.arguments, monomial) for monomial in monomials]
        before, after = [ZERO] * (mix.row * columns), [ZERO] * ((rows - 1 - mix.row) * columns)
        values = [[*before, *line, *after] for line in mix.values.tolist()]
        heads.append(Head([list(slope) for slope in zip(*along, strict=True)], offsets, values))
    return Prototypes(dimension, rows * columns, network.registers, heads, weight, bias, [ZERO] * (rows * columns))
