"""One row of attention as it is run: from scores with errors to the weighted sum of values with its error.

Write s_j for the real scores of one query and s_j + D_j for those of the run, up to a summand that is common to all
keys (it changes no weight). p = softmax(s). A run must use *one* value of each score: a program that computes a score
twice, rounded differently, in numerator and denominator is outside.

*Softmax of the run.* It subtracts the largest score M, which may round the difference by u |s_j - M|; this is added
to the bound d_j of |D_j|. Let a_j = exp(t_j) for those differences and A = sum a_j: p'_j = a_j / A is the softmax of
s + D. One t_j is zero, so A >= 1. The exponential errs by E u relatively and by t on underflow; the sum by the lemma
on small terms; so the denominator is A (1 + k), |k| <= kappa. Division before or after the weighted sum makes the
weights p'_j (1 + r_j) + w_j with |r_j| <= rho = (1 + E u)(1 + Q u)/(1 - kappa) - 1 and w_j an underflow. Against sum
p_j v_j the run errs by at most

    |sum (p'_j - p_j) v_j|  +  sum p'_j (rho |v_j| + (1 + rho) e_j)  +  underflows  +  rounding of the sum of products.

*The first term.* For any m, also one that depends on x, it is |sum p_j (L_j - 1)(v_j - m)| with L_j = exp(D_j) / F,
F = sum p_i exp(D_i). Two bounds, the smaller one counts:
(a) the lemma of `rules.perturbation`: (max v - min v) tanh(osc / 4), osc <= 2 max d_j;
(b) |F - 1| <= f = sum p_j (exp(d_j) - 1), so |L_j - 1| <= (exp(d_j) - 1 + f)/(1 - f), and the term is at most the
mean of |v_j - m| (exp(d_j) - 1 + f) under p, divided by 1 - f. This sees only keys that matter, and their own errors.

*Lists.* On a small cell most of many keys weigh nothing. A key whose weight is at most e^-60 on a cell, in both worlds,
and whose score errs by less than 1, may be left out on its halves; some other key always has weight 1/n or more and so
the largest score. Let w bound the sum of the weights left out and V all values. Leaving keys out of either softmax moves
its output by at most 2 w V; to the sums they are small terms of total size w V.

*Hard attention.* Only keys whose score can reach that of the reference within the errors can win, in the real world
or in the run. If there is one such key (its weight is then 1/1, which every division gets right), or none of them has
any error in its score, the winners are the same in both. Otherwise the two outputs are means over different winners
and may differ by the whole spread of their values: there is no better bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from flint import arb, arb_mat

from certiformer.kernel import stream
from certiformer.kernel.balls import ONE, ZERO, larger, largest, smaller
from certiformer.kernel.rounding import Format, NoBound, mean_value, summation
from certiformer.kernel.rounding.operations import Rounded
from certiformer.kernel.stream import Stream

LOWEST = arb(-2000)  # nats: exp of anything lower is replaced by exp of this, which is larger


@dataclass(frozen=True)
class Scores:
    """The scores of one query relative to those of the key `reference`, and bounds of the errors of the run."""

    reference: int
    low: list[arb]
    high: list[arb]
    error: list[arb]


@dataclass(frozen=True)
class Omitted:
    """Keys left out of the list of one query: their number, and bounds of their weights together and of their values."""

    count: int = 0
    weight: arb = ZERO
    value: arb = ZERO

    def moves(self, values: Rounded) -> arb:
        """2 w V of the rule on lists."""
        return 2 * self.weight * largest([self.value, *(entry.upper() for entry in values.reach.entries())])


def hard(form: Format, scores: Scores, values: Rounded, real: Stream) -> Rounded:
    """The mean of the values of the winners; `real` encloses it in real numbers."""
    columns = _hard(form, scores, values)
    return Rounded(real, arb_mat(1, len(columns), columns))


def softmax(form: Format, scores: Scores, values: Rounded, real: Stream, omitted: Omitted) -> tuple[Rounded, list[arb]]:
    """The weighted sum of the value rows, and bounds of the weights of keys that may be left out (one for the others)."""
    columns, weights = _softmax(form, scores, values, omitted)
    if omitted.count:
        moves = omitted.moves(values).upper()
        real = Stream(real.table, real.coef, real.rem + arb_mat(1, len(columns), [moves] * len(columns)))
    light = [w if e < 1 else ONE for w, e in zip(weights, scores.error, strict=True)]
    return Rounded(real, arb_mat(1, len(columns), columns)), light


def enclosed(scores: Scores, values: Stream) -> Stream:
    """A cheap form of the real softmax output: a fixed mean of the values, and how far the mean may move."""
    limits = _limits(scores)
    centre, around, _ = _around(scores, values)
    rest = [mean_value(limits, column) for column in around.transpose().tolist()]
    return Stream(values.table, centre.coef, centre.rem + arb_mat(1, len(rest), rest))


def _limits(scores: Scores) -> list[arb]:
    """Upper bounds of the softmax weights: p_j <= exp(high_j) / sum exp(low_i)."""
    total = sum((low.exp() for low in scores.low if low > LOWEST), ZERO)
    return [smaller((_exp(high) / total).upper(), ONE) for high in scores.high]


def _exp(x: arb) -> arb:
    return (x if x > LOWEST else LOWEST).exp()


def _around(scores: Scores, values: Stream) -> tuple[Stream, arb_mat, list[arb]]:
    """m = a fixed convex combination of the values, as a form, bounds of |v_j - m|, and of max v - min v by column."""
    middle = [_exp((low + high) / 2).mid() for low, high in zip(scores.low, scores.high, strict=True)]
    total = sum(middle, ZERO)
    count = len(middle)
    row = arb_mat(1, count, [(w / total).mid() for w in middle])
    centre = Stream(values.table, {i: row * m for i, m in values.coef.items()}, row * values.rem)
    around, ends = _apart(values, centre)
    return centre, around, ends


def _apart(values: Stream, base: Stream) -> tuple[arb_mat, list[arb]]:
    """Bounds of |v_j - base| for a row `base` of forms, and of the largest v_i - v_j, column by column."""
    count, width = values.shape
    ones = arb_mat(count, 1, [ONE] * count)
    moved = {i: m - ones * base.coef[i] for i, m in values.coef.items()}
    middle = moved.pop(0, arb_mat(count, width))
    reach = stream.size(Stream(values.table, moved, values.rem)) + values.rem + ones * base.rem
    around = [(abs(m) + r).upper() for m, r in zip(middle.entries(), reach.entries(), strict=True)]
    spread = []
    for c in range(width):
        highest = reduce(larger, [(middle[j, c] + reach[j, c]).upper() for j in range(count)])
        lowest = reduce(smaller, [(middle[j, c] - reach[j, c]).lower() for j in range(count)])
        spread.append((highest - lowest).upper())
    return arb_mat(count, width, around), spread


def _softmax(form: Format, scores: Scores, values: Rounded, omitted: Omitted) -> tuple[list[arb], list[arb]]:
    """The bounds of the module docstring, one for each column of the values; and bounds of the weights."""
    count = len(scores.low)
    if count == 1 and not omitted.count:  # exp(0) / exp(0) = 1, whatever exp(0) is, up to the division
        return _products(form, values, form.gamma(form.divide + 1)), [ONE]
    over = largest([(high + e).upper() for high, e in zip(scores.high, scores.error, strict=True)])
    errors = [
        (e + form.unit * (over - low + e) + 3 * form.tiny).upper()
        for low, e in zip(scores.low, scores.error, strict=True)
    ]
    worst = largest(errors)
    limits = _limits(scores)
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
    for c in range(values.shape[1]):
        column = [values.reach[j, c].upper() for j in range(count)]
        own = [(rho * g + (1 + rho) * values.error[j, c]).upper() for j, g in enumerate(column)]
        far = [around[j, c] for j in range(count)]
        perturbed = (spread[c] * (worst / 2).tanh()).upper()
        if shift < 0.5:
            weighted = [(x * (r + shift)).upper() for x, r in zip(far, raised, strict=True)]
            perturbed = smaller(perturbed, (mean_value(limits, weighted) / (1 - shift)).upper())
        faint = under * (4 * every + sum(column, omitted.count * omitted.value))
        terms = [(m * (1 + rho) * g + under * g).upper() for m, g in zip(moved, column, strict=True)]
        total = (1 + rho) * (mean_value(moved, column) + out * omitted.value) + faint
        tail = (1 + rho) * out * omitted.value + faint
        rounding = summation(form, terms, total.upper(), omitted.count, tail.upper())
        result.append((perturbed + mean_value(moved, own) + faint + rounding).upper())
    if omitted.count:
        # Both softmaxes are compared with those over the list, and the omitted values have errors below their bound.
        charge = 2 * omitted.moves(values) + (1 + 2 * rho) * out * omitted.value
        result = [(r + charge).upper() for r in result]
    return result, moved


def _products(form: Format, values: Rounded, relative: arb) -> list[arb]:
    """Values times weights that are equal to one up to a relative error."""
    rows, columns = values.shape
    result = []
    for c in range(columns):
        worst = largest([values.reach[j, c].upper() for j in range(rows)])
        carried = largest([values.error[j, c].upper() for j in range(rows)])
        result.append((carried * (1 + relative) + relative * worst + 4 * form.tiny * (1 + worst)).upper())
    return result


def _hard(form: Format, scores: Scores, values: Rounded) -> list[arb]:
    """The rule on hard attention of the module docstring."""
    own = scores.error[scores.reference]
    pairs = enumerate(zip(scores.high, scores.error, strict=True))
    winners = [j for j, (high, e) in pairs if j == scores.reference or not high + e + own < 0]
    chosen = values.rows(winners)
    count = len(winners)
    if count == 1:
        return [chosen.error[0, c].upper() for c in range(values.shape[1])]
    # Equal weights 1/n: the count errs by gamma_n, then a division, a product, and a sum of n products.
    relative = 2 * form.gamma(2 * count + form.divide + 1)
    result = _products(form, chosen, relative)
    if all(scores.error[j].is_zero() for j in winners):
        return result
    _, spread = _apart(chosen.value, chosen.value.rows([winners.index(scores.reference)]))
    return [(r + s).upper() for r, s in zip(result, spread, strict=True)]
