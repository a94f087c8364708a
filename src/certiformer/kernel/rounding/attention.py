"""One row of attention as it is run: from queries, keys and values with errors to the mixed value with its error.

*Scores.* s_ij = f sum_c q_ic k_jc + B_ij has K products (as many as are not identically zero), the factor f (none, a power
of two, or a rounded constant and one product), and B. The part of the error that comes from the error of the query is
(e_q . k_j); up to the common (e_q . k_ref) it is e_q . (k_j - k_ref), and softmax and argmax see nothing else. A run must
use *one* value of each score: a program that computes a score twice, rounded differently, is outside.

*Softmax of the run.* Write s_j for the real scores of one query and s_j + D_j for those of the run, up to a summand that
is common to all keys. The run subtracts the largest score M, which may round the difference by u |s_j - M|; this is added
to the bound d_j of |D_j|. Let a_j = exp(t_j) for those differences and A = sum a_j: p'_j = a_j / A is the softmax of
s + D. One t_j is zero, so A >= 1. The exponential errs by E u relatively and by t on underflow; the sum by the lemma
on small terms; so the denominator is A (1 + k), |k| <= kappa. Division before or after the weighted sum makes the
weights p'_j (1 + r_j) + w_j with |r_j| <= rho = (1 + E u)(1 + Q u)/(1 - kappa) - 1 and w_j an underflow. With p =
softmax(s), against sum p_j v_j the run errs by at most

    |sum (p'_j - p_j) v_j|  +  sum p'_j (rho |v_j| + (1 + rho) e_j)  +  underflows  +  rounding of the sum of products.

*The first term.* For any m, also one that depends on x, it is |sum p_j (L_j - 1)(v_j - m)| with L_j = exp(D_j) / F,
F = sum p_i exp(D_i). Two bounds, the smaller one counts:
(a) *shares* of `kernel.layers`: (max v - min v) tanh(osc / 4), osc <= 2 max d_j;
(b) |F - 1| <= f = sum p_j (exp(d_j) - 1), so |L_j - 1| <= (exp(d_j) - 1 + f)/(1 - f), and the term is at most the
mean of |v_j - m| (exp(d_j) - 1 + f) under p, divided by 1 - f. This sees only keys that matter, and their own errors.

*Lists.* On a small cell most of many keys weigh nothing. A key whose weight is at most e^-60 on a cell, in both worlds,
and whose score errs by less than 1, may be left out on its halves; some other key always has weight 1/n or more and so
the largest score. Let w bound the sum of the weights left out and V all values. Leaving keys out of either softmax moves
its output by at most 2 w V; to the sums they are small terms of total size w V.

*Hard attention.* Only keys whose score can reach that of the reference within the errors can win, in the real world or in
the run. If there is one such key (its weight is then 1/1, which every division gets right), or none of them has any error
in its score, the winners are the same in both. Otherwise the two outputs are means over different winners and may differ
by the whole spread of their values: there is no better bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from flint import arb, arb_mat

from certiformer.kernel import arrays, taylor
from certiformer.kernel.arrays import Stream, mix
from certiformer.kernel.balls import ONE, ZERO, larger, largest, smaller
from certiformer.kernel.rounding.formats import Format, NoBound, mean_value, no_overflow, summation
from certiformer.kernel.rounding.operations import Rounded, relu

LOWEST = arb(-2000)  # nats: exp of anything lower is replaced by exp of this, which is larger
FEW = 24  # keys: up to here the softmax is enclosed by a quotient of forms, beyond by a fixed mean of the values


@dataclass(frozen=True)
class Omitted:
    """Keys left out of the list of one query: their number, and bounds of their weights together and of their values."""

    count: int = 0
    weight: arb = ZERO
    value: arb = ZERO


@dataclass(frozen=True)
class Relative:
    """The scores of one query relative to those of the key `reference`, and bounds of the errors of the run."""

    reference: int
    low: list[arb]
    high: list[arb]
    error: list[arb]


class Scores:
    """The scores of one head: forms of f q_i . k_j, and what the run may add to them."""

    def __init__(self, form: Format, q: Rounded, k: Rounded, factor: arb):
        self.form, self.q, self.k, self.factor = form, q, k, factor
        product = arrays.contract(q.value, arrays.transpose(k.value))
        self.products = Stream(product.table, {i: m * factor for i, m in product.coef.items()}, product.rem * factor)
        self.sizes, self.key_part = q.reach * k.reach.transpose(), q.reach * k.error.transpose()
        width = range(q.shape[1])
        used = sum(1 for c in width if not (_idle(q.reach, c) or _idle(k.reach, c)))
        # 1/sqrt(key) is exact for powers of four; otherwise it is a rounded constant and one more product.
        exact = factor.is_exact() and factor.man_exp()[0] == 1
        self.roundings = used + (0 if exact else 3)
        self.key_sums = k.reach * arb_mat(len(width), 1, [ONE] * len(width))

    def row(self, i: int, allowed: list[int], extra: list[arb]) -> Stream:
        """The scores of query i and the allowed keys, as a column."""
        coef = {n: arb_mat(len(allowed), 1, [m[i, j] for j in allowed]) for n, m in self.products.coef.items()}
        zero, biases = arb_mat(len(allowed), 1), arb_mat(len(allowed), 1, extra)
        coef[0] = coef.get(0, zero) + biases
        return Stream(self.products.table, coef, arb_mat(len(allowed), 1, [self.products.rem[i, j] for j in allowed]))

    def relative(self, i: int, allowed: list[int], extra: list[arb]) -> Relative:
        """Scores minus the score of the key that is best at the centre, and the errors up to a common one."""
        row = self.row(i, allowed, extra)
        centre = row.coef[0].entries()
        reference = max(range(len(allowed)), key=lambda j: float(centre[j]))
        middle, around = (m.entries() for m in _apart(row, row.rows([reference])))
        middle[reference] = around[reference] = ZERO
        low = [(m - s).lower() for m, s in zip(middle, around, strict=True)]
        high = [(m + s).upper() for m, s in zip(middle, around, strict=True)]
        return Relative(reference, low, high, self._errors(i, allowed, extra, allowed[reference]))

    def nearest(self, i: int, allowed: list[int], extra: list[arb]) -> Relative:
        """The same for the scores -|s_j|, which move by no more than s_j; nothing cancels between two of them."""
        row = self.row(i, allowed, extra)
        ends = [taylor.bounds(row.form(j, 0)) for j in range(len(allowed))]
        low = [-larger(abs(a), abs(b)) for a, b in ends]
        high = [-smaller(abs(a), abs(b)) if a > 0 or b < 0 else ZERO for a, b in ends]
        reference = max(range(len(allowed)), key=lambda j: float(low[j]) + float(high[j]))
        errors, own, top = self._errors(i, allowed, extra, None), low[reference], high[reference]
        low, high = [(a - top).lower() for a in low], [(b - own).upper() for b in high]
        moved = [(e + errors[reference]).upper() for e in errors]
        low[reference] = high[reference] = moved[reference] = ZERO
        return Relative(reference, low, high, moved)

    def _errors(self, i: int, allowed: list[int], extra: list[arb], reference: int | None) -> list[arb]:
        """The rule on scores of the module docstring; `reference` None keeps the common part."""
        form, width = self.form, self.q.shape[1]
        query_part = self._query_part(i, allowed, reference)
        q_sum = sum((self.q.reach[i, c] for c in range(width)), ZERO)
        rounded = {plain: form.gamma(self.roundings + (0 if plain else 1)) for plain in (True, False)}
        result = []
        for j, b, query in zip(allowed, extra, query_part, strict=True):
            size = self.sizes[i, j]
            if (
                size.is_zero()
            ):  # 0 + B is exact, except for a B that is flushed; what is common to the others is missing
                flushed = form.tiny if abs(b) > 0 and abs(b) < form.tiny else ZERO
                result.append((self.factor * query + flushed).upper())
                continue
            gamma, whole = rounded[b.is_zero()], self.factor * size + abs(b)
            no_overflow(form, (size + whole) * 2 * (1 + gamma))
            total = self.factor * (self.key_part[i, j] + query) + gamma * whole
            result.append((total + 4 * form.tiny * (3 * width + 4 + q_sum + self.key_sums[j, 0])).upper())
        return result

    def _query_part(self, i: int, allowed: list[int], reference: int | None) -> list[arb]:
        """e_q . |k_j - k_ref| for every key."""
        if arrays.is_zero(self.q.error):
            return [ZERO] * len(allowed)
        keys, width = self.k.value.rows(allowed), self.q.shape[1]
        if reference is None:
            apart = arrays.size(keys) + keys.rem
        else:
            middle, around = _apart(keys, self.k.value.rows([reference]))
            apart = arrays.absolute(middle) + around
        return (apart * arb_mat(width, 1, [self.q.error[i, c] for c in range(width)])).entries()


def _idle(sizes: arb_mat, column: int) -> bool:
    return all(sizes[r, column].is_zero() for r in range(sizes.nrows()))


def _apart(rows: Stream, base: Stream) -> tuple[arb_mat, arb_mat]:
    """Every row minus the one row of `base`: middles, and bounds of what is around them; common parts cancel."""
    ones = arb_mat(rows.shape[0], 1, [ONE] * rows.shape[0])
    moved = {i: m - ones * base.coef[i] for i, m in rows.coef.items()}
    middle = moved.pop(0, arb_mat(*rows.shape))
    return middle, arrays.size(Stream(rows.table, moved, rows.rem)) + rows.rem + ones * base.rem


def mixed(
    kind: str, scores: Scores, i: int, allowed: list[int], extra: list[arb], v: Rounded, omitted: Omitted
) -> tuple[Rounded, list[arb]]:
    """The mix of the allowed values for query i, and bounds of the weights of keys that may be left out (else one)."""
    form, row, ones = scores.form, scores.row(i, allowed, extra), [ONE] * len(allowed)
    if kind == "softmax" and len(allowed) > FEW:
        relative = scores.relative(i, allowed, extra)
        real = _enclosed(relative, v.value)
    else:
        real = mix(kind, [row.form(j, 0) for j in range(len(allowed))], v.value)
    if kind in ("linear", "relu"):
        s = Rounded(arrays.transpose(row), arb_mat(1, len(allowed), scores._errors(i, allowed, extra, None)))
        s = Rounded(arrays.relu(s.value), relu(s)) if kind == "relu" else s
        return Rounded(real, _weighted(form, s, v)), ones
    if kind in ("hard", "nearest"):
        relative = (scores.nearest if kind == "nearest" else scores.relative)(i, allowed, extra)
        return Rounded(real, _hard(form, relative, v)), ones
    relative = scores.relative(i, allowed, extra)
    error, weights = _softmax(form, relative, v, omitted)
    if omitted.count:
        moves = _moves(omitted, v).upper()
        real = Stream(real.table, real.coef, real.rem + arb_mat(1, v.shape[1], [moves] * v.shape[1]))
    return Rounded(real, error), [w if e < 1 else ONE for w, e in zip(weights, relative.error, strict=True)]


def _weighted(form: Format, s: Rounded, v: Rounded) -> arb_mat:
    """sum_j s_j v_j: a sum of products whose factors both have errors."""
    count, columns = v.shape
    error = s.size * v.error + s.error * v.reach + (s.reach * v.reach) * form.gamma(count)
    own = sum(s.reach.entries(), arb(3 * count))
    faint = [sum((v.reach[j, c] for j in range(count)), own) for c in range(columns)]
    for size in (s.reach * v.reach).entries():
        no_overflow(form, size * 2)
    entries = [(e + 2 * form.tiny * f).upper() for e, f in zip(error.entries(), faint, strict=True)]
    return arb_mat(1, columns, entries)


def _enclosed(scores: Relative, values: Stream) -> Stream:
    """A cheap form of the real softmax output: a fixed mean of the values, and how far the mean may move."""
    limits = _limits(scores)
    centre, around, _ = _around(scores, values)
    rest = [mean_value(limits, column) for column in around.transpose().tolist()]
    return Stream(values.table, centre.coef, centre.rem + arb_mat(1, len(rest), rest))


def _limits(scores: Relative) -> list[arb]:
    """Upper bounds of the softmax weights: p_j <= exp(high_j) / sum exp(low_i)."""
    total = sum((low.exp() for low in scores.low if low > LOWEST), ZERO)
    return [smaller((_exp(high) / total).upper(), ONE) for high in scores.high]


def _exp(x: arb) -> arb:
    return (x if x > LOWEST else LOWEST).exp()


def _around(scores: Relative, values: Stream) -> tuple[Stream, arb_mat, list[arb]]:
    """m = a fixed convex combination of the values, as a form, bounds of |v_j - m|, and of max v - min v by column."""
    middle = [_exp((low + high) / 2).mid() for low, high in zip(scores.low, scores.high, strict=True)]
    total = sum(middle, ZERO)
    row = arb_mat(1, len(middle), [(w / total).mid() for w in middle])
    centre = Stream(values.table, {i: row * m for i, m in values.coef.items()}, row * values.rem)
    return centre, *_spread(values, centre)


def _spread(values: Stream, base: Stream) -> tuple[arb_mat, list[arb]]:
    """Bounds of |v_j - base| for a row `base` of forms, and of the largest v_i - v_j, column by column."""
    count, width = values.shape
    middle, reach = _apart(values, base)
    around = [(abs(m) + r).upper() for m, r in zip(middle.entries(), reach.entries(), strict=True)]
    spread = []
    for c in range(width):
        highest = reduce(larger, [(middle[j, c] + reach[j, c]).upper() for j in range(count)])
        lowest = reduce(smaller, [(middle[j, c] - reach[j, c]).lower() for j in range(count)])
        spread.append((highest - lowest).upper())
    return arb_mat(count, width, around), spread


def _moves(omitted: Omitted, values: Rounded) -> arb:
    """2 w V of the rule on lists."""
    return 2 * omitted.weight * largest([omitted.value, *(entry.upper() for entry in values.reach.entries())])


def _softmax(form: Format, scores: Relative, values: Rounded, omitted: Omitted) -> tuple[arb_mat, list[arb]]:
    """The bounds of the module docstring, one for each column of the values; and bounds of the weights."""
    count, width = values.shape
    if count == 1 and not omitted.count:  # exp(0) / exp(0) = 1, whatever exp(0) is, up to the division
        return _products(form, values, form.gamma(form.divide + 1)), [ONE]
    over = largest([(high + e).upper() for high, e in zip(scores.high, scores.error, strict=True)])
    pairs = zip(scores.low, scores.error, strict=True)
    errors = [(e + form.unit * (over - low + e) + 3 * form.tiny).upper() for low, e in pairs]
    worst, limits = largest(errors), _limits(scores)
    raised = [_exp(d) - 1 for d in errors]
    shift = mean_value(limits, [r.upper() for r in raised])  # f
    most = 1 / (1 - shift) if shift < 0.5 else _exp(worst)  # 1/F
    moved = [smaller((h * _exp(d) * most).upper(), ONE) for h, d in zip(limits, errors, strict=True)]  # p'_j <= moved_j
    exponential = form.exp * form.unit
    tiny = form.tiny  # an underflow of the exponential, as a share of A >= 1
    out, every = omitted.weight, count + omitted.count
    terms, tail = [m * (1 + exponential) + tiny for m in moved], (2 * out + omitted.count * tiny).upper()
    kappa = summation(form, terms, 1 + exponential + every * tiny, omitted.count, tail)
    kappa = (exponential + kappa + 4 * every * tiny * form.growth(every)).upper()
    if not kappa < 0.5:
        raise NoBound("the denominator of an attention row loses every digit")
    rho = ((1 + exponential) * (1 + form.divide * form.unit) / (1 - kappa) - 1).upper()
    under = 4 * tiny
    _, around, spread = _around(scores, values.value)
    result = []
    for c in range(width):
        column = [values.reach[j, c].upper() for j in range(count)]
        own = [(rho * g + (1 + rho) * values.error[j, c]).upper() for j, g in enumerate(column)]
        perturbed = (spread[c] * (worst / 2).tanh()).upper()
        if shift < 0.5:
            weighted = [(around[j, c] * (r + shift)).upper() for j, r in enumerate(raised)]
            perturbed = smaller(perturbed, (mean_value(limits, weighted) / (1 - shift)).upper())
        faint = under * (4 * every + sum(column, omitted.count * omitted.value))
        terms = [(m * (1 + rho) * g + under * g).upper() for m, g in zip(moved, column, strict=True)]
        total = (1 + rho) * (mean_value(moved, column) + out * omitted.value) + faint
        tail = (1 + rho) * out * omitted.value + faint
        rounding = summation(form, terms, total.upper(), omitted.count, tail.upper())
        result.append((perturbed + mean_value(moved, own) + faint + rounding).upper())
    if omitted.count:
        # Both softmaxes are compared with those over the list, and the omitted values have errors below their bound.
        charge = 2 * _moves(omitted, values) + (1 + 2 * rho) * out * omitted.value
        result = [(r + charge).upper() for r in result]
    return arb_mat(1, width, result), moved


def _products(form: Format, values: Rounded, relative: arb) -> arb_mat:
    """Values times weights that are equal to one up to a relative error."""
    (rows, columns), result = values.shape, []
    for c in range(columns):
        worst = largest([values.reach[j, c].upper() for j in range(rows)])
        carried = largest([values.error[j, c].upper() for j in range(rows)])
        result.append((carried * (1 + relative) + relative * worst + 4 * form.tiny * (1 + worst)).upper())
    return arb_mat(1, columns, result)


def _hard(form: Format, scores: Relative, values: Rounded) -> arb_mat:
    """The rule on hard attention of the module docstring."""
    own = scores.error[scores.reference]
    pairs = enumerate(zip(scores.high, scores.error, strict=True))
    winners = [j for j, (high, e) in pairs if j == scores.reference or not high + e + own < 0]
    chosen, count = values.rows(winners), len(winners)
    if count == 1:
        return chosen.error
    # Equal weights 1/n: the count errs by gamma_n, then a division, a product, and a sum of n products.
    result = _products(form, chosen, 2 * form.gamma(2 * count + form.divide + 1))
    if all(scores.error[j].is_zero() for j in winners):
        return result
    _, spread = _spread(chosen.value, chosen.value.rows([winners.index(scores.reference)]))
    return result + arb_mat(1, len(spread), spread)
