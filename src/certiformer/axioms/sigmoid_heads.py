"""Soft sigmoid heads on a lattice of knots reproduce a sum of smooth ridge functions to any even order up to eight.

Statement
    Let f(x) = l . x + sum_r g_r(p_r . x) on a box, and let every ridge have J pieces of length h, steepness kappa/h,
    extra knots left and right, a slope a (for each output that has the ridge), and values w as in
    `rules.sigmoid_knots`, realised by one head a knot with
    score gamma (p . x - middle) on the data token, 0 on a sink, value 1 and 0. With u = g - a s, U_k = sup |u^(k)| over
    the range of the ridge, and mu_k, omega_k, beta_i those of rounding with logistic noise (`rules.logistic_rounding`)
    the ridge contributes to |T - f| at most

        order 2p:  sum_{m=1}^{2p-1} h^m U_m sum_{0<=2i<m} |beta_i| omega_{m-2i}/(m-2i)!
                   + h^2p U_2p sum_{i<p} |beta_i| (mu_{2p-2i} + omega_{2p-2i})/(2p-2i)! + clip,     p = 1, 2, 3, 4,
        order 1:   h sqrt(mu_2 + omega_2) U_1   (g only Lipschitz, no extra knots),
        no heads:  (range/2) U_1,

    clip = max(L, R) + e^{-kappa J} min(L, R), where L (and likewise R, with the derivatives u_m at the other end) is
    sum_{j > left} e^{-kappa (j - 1/2)} sum_{m=1}^{2p-1} |u_m| h^m sum_{0<=2i<m} |beta_i| j^{m-2i-1}/(m-2i-1)!.
    At kappa = 2 the first terms are 3.3e-4 h U_1 + 5.1e-4 h^2 U_2, the last one is 0.453 h^2 U_2 for order 2, 0.342 h^4 U_4
    for order 4, 0.129 h^6 U_6 for order 6, 0.037 h^8 U_8 for order 8.

Source
    vaswani2017 for the heads; the statement, its constants and the higher orders are derived here.

Differs from the source in
    A softmax over a token and a sink is a sigmoid. The usual argument makes sigmoids steep and gets first order; here
    they are soft, about two knots wide, so that their sum is g blurred by a known noise, which the values w undo.

Proof
    One ridge; Delta_k = w(E_k) - w(E_{k-1}). Let xi be logistic, P(xi <= t) = sigmoid(gamma t). The head at the midpoint
    m_k gives P(s - xi >= m_k), so w(E_0) + sum_k Delta_k sigmoid(gamma (s - m_k)) = E w(R), R the edge nearest to s - xi,
    clipped to [E_0, E_K]. Without the clipping let y = R - s: E y^k = h^k (mu_k + osc_k), |osc_k| <= omega_k.
    The continuation of u by its Taylor polynomial of degree 2p - 1 has a Lipschitz derivative of that order, with constant
    U_2p, on the whole line. So for i < p, E u^(2i)(s+y) = sum_{k<2p-2i} u^(2i+k)(s) E y^k/k! + rest, |rest| <= U_2p
    E y^{2p-2i}/(2p-2i)!. Multiply by beta_i h^(2i) and add up: the coefficient of h^m u^(m), m < 2p, is sum_i beta_i
    (mu_{m-2i} + osc_{m-2i})/(m-2i)!. The part with mu is the coefficient of z^m in (1/M) M = 1: one for m = 0, else zero.
    What remains is listed; osc_0 = 0. Order 1: |E u(R) - u(s)| <= U_1 E|R - s| <= U_1 sqrt(E y^2), clipping to an interval
    that contains s only helps, and beyond it w is constant, so no knots are needed there.
    Clipping, left end: w(R) - w(clipped R) = sum over i >= 1 of -Delta of step j = left + i beyond the end, on the event
    R <= E_0 - i h, of probability at most e^{-kappa (j - 1/2)} e^{-gamma (s - lo)}. There w is a constant plus sum_i beta_i
    h^(2i) sum_{m>2i} u_m t^{m-2i}/(m-2i)!, and t^n changes by at most n j^{n-1} h^n in step j. So clipping costs at most
    L e^{-gamma (s - lo)} + R e^{-gamma (hi - s)}, a convex function of s, largest at an end. a s is added back by the
    residual stream. Ridges and the linear part add up. QED.

Assumptions
    ridges (**checked**): every output is, as written, a sum of functions of one linear expression each.
    smooth (**checked**): profiles have eight derivatives (order 1: are Lipschitz), enclosed on a partition of their range.
    form (**checked**): the transformer is a sum of two-token softmax heads; its distance to the ideal heads is charged.

Certified
    sup |T - f| <= bound for the real-number function T of the exact stored weights.

Not certified
    Anything outside the box; the rounding of a floating-point run of T.

Example
    >>> from fractions import Fraction
    >>> from certiformer.kernel.balls import working_precision
    >>> from certiformer.axioms.logistic_rounding import rounding
    >>> working_precision()
    >>> constants = rounding(Fraction(2))
    >>> f"{float(constants.omega[1]):.2e} {float(constants.moments[1]):.3f}"
    '3.25e-04 0.906'

Tests
    tests/theorems/test_sigmoid_heads.py
"""

from __future__ import annotations

from flint import arb

from certiformer.axioms.logistic_rounding import Rounding, rounding
from certiformer.axioms.sigmoid_knots import MAX_PARTS, Ideal, Knots, ProfileBounds, ideal_heads, ridge_sum
from certiformer.kernel import Refused
from certiformer.kernel.balls import HALF, ONE, ZERO, BallDomain, ball, larger, largest, power, smaller
from certiformer.kernel.certificate import Theorem as TheoremNode
from certiformer.kernel.layers import Head, Prototypes
from certiformer.kernel.problem import Problem, ProgramFunction

THEOREM = {
    "id": "axioms.sigmoid_heads",
    "title": "Soft sigmoid heads on a lattice of knots reproduce sums of smooth ridge functions to any even order up to 8.",
    "kind": "upper bound",
    "sources": ("vaswani2017",),
    "verb": "build",
    "assumptions": (
        ("ridges", "every output is written as a sum of functions of one linear expression", "checked"),
        ("smooth", "the profiles have eight derivatives (order 1: are Lipschitz), enclosed", "checked"),
        ("form", "the transformer is a sum of two-token heads; its distance to the ideal is charged", "checked"),
    ),
    "uses": (),
}


def apriori(cut: Knots, output: int, bounds: ProfileBounds) -> arb:
    """What one ridge contributes to the error of one output; raises `Refused` when the profile is not smooth enough."""
    if bounds.smooth < (1 if cut.order == 1 or not cut.pieces else cut.order):
        raise Refused("a ridge of the target is not known to be smooth enough for the theorem on its range")
    steepest = bounds.steepest(cut.slopes[output])
    width = bounds.high - bounds.low
    if not cut.pieces:
        return (steepest * width * HALF).upper()
    h, noise = width / cut.pieces, rounding(cut.sharpness)
    if cut.order == 1:
        return (h * steepest * (noise.moments[1] + noise.omega[2]).sqrt()).upper()
    sizes = [ZERO, steepest, *bounds.sizes[2:]]
    total = ZERO
    for m in range(1, cut.order):
        blur = [abs(noise.beta[i // 2]) * noise.omega[m - i] / arb.fac_ui(m - i) for i in range(0, m, 2)]
        total = total + power(h, m) * sizes[m] * sum(blur, ZERO)
    for i in range(0, cut.order, 2):
        n = cut.order - i
        moment = (noise.moments[n // 2] + noise.omega[n]) / arb.fac_ui(n)
        total = total + power(h, cut.order) * sizes[cut.order] * abs(noise.beta[i // 2]) * moment
    left, right = (clipped(cut, output, bounds, side, noise) for side in (0, 1))
    both = larger(left, right) + (-noise.kappa * cut.pieces).exp() * smaller(left, right)
    return (total + both).upper()


def clipped(cut: Knots, output: int, bounds: ProfileBounds, side: int, noise: Rounding) -> arb:
    """L (side 0) or R (side 1) of the statement."""
    h = (bounds.high - bounds.low) / cut.pieces
    margin = (cut.left, cut.right)[side]
    total = ZERO
    for m in range(1, cut.order):
        size = abs(bounds.ends[side][m] - (ball(cut.slopes[output]) if m == 1 else ZERO))
        steps = [
            abs(noise.beta[i // 2]) * noise.tail(margin, m - i - 1) / arb.fac_ui(m - i - 1) for i in range(0, m, 2)
        ]
        total = total + size * power(h, m) * sum(steps, ZERO)
    return total.upper()


def check(node: TheoremNode, problem: Problem) -> arb:
    """The proved bound of a theorem node, hypotheses checked, distance to the ideal weights charged."""
    if not isinstance(problem.right, ProgramFunction):
        raise Refused("the theorem needs a target program on its right-hand side")
    if not isinstance(problem.left, Prototypes) or any(len(head.offsets) != 2 for head in problem.left.heads):
        raise Refused("the transformer is not a sum of heads over one data token and one sink, as the theorem requires")
    domain = problem.domain
    linear, ridges = ridge_sum(problem.right.program)
    listed, parts = node.parameters.get("ridges"), node.parameters.get("partition")
    if not isinstance(listed, list) or len(listed) != len(ridges):
        raise Refused("the parameters of the theorem node do not list the ridges of the target")
    if type(parts) is not int or not 1 <= parts <= MAX_PARTS:
        raise Refused("the parameters of the theorem node have no partition of the range of the ridges")
    knots = [Knots.from_parameters(data, len(linear)) for data in listed]
    if sum(cut.heads for cut in knots) > len(problem.left.heads):
        raise Refused("the transformer has fewer heads than the theorem speaks of")
    totals = charge(problem.left, ideal_heads(linear, ridges, knots, domain), domain)
    for ridge, cut in zip(ridges, knots, strict=True):
        for o, profile in enumerate(ridge.profiles):
            if profile is not None:
                bounds = ProfileBounds(profile, *ridge.ends(domain), parts)
                totals[o] = (totals[o] + apriori(cut, o, bounds)).upper()
    return largest(totals)


def as_sigmoid(head: Head) -> tuple[list[arb], arb, list[arb], list[arb]]:
    """A two-token head as constant + coefficient * sigmoid(weight . x + bias): (weight, bias, coefficient, constant)."""
    weight = [a - b for a, b in zip(head.slopes[1], head.slopes[0], strict=True)]
    coefficient = [a - b for a, b in zip(head.values[1], head.values[0], strict=True)]
    return weight, head.offsets[1] - head.offsets[0], coefficient, list(head.values[0])


def charge(left: Prototypes, ideal: Ideal, domain: BallDomain) -> list[arb]:
    """Upper bounds, one an output, of |stored transformer - ideal heads| over the domain.

    A sigmoid lies between 0 and 1 and is 1/4-Lipschitz: coefficients count in full, scores a quarter times the ideal
    coefficient. A stored head without an ideal one counts with its whole coefficient.
    """
    box = domain.box(((0, 0),) * domain.dimension)

    def largest_affine(slope: list[arb], constant: arb) -> arb:
        reach = ZERO
        for a, c, r in zip(slope, box.centre, box.radius, strict=True):
            constant, reach = constant + a * c, reach + abs(a) * r
        return (abs(constant) + reach).upper()

    constants = [b - c for b, c in zip(left.bias, ideal.constant, strict=True)]
    totals = list(left.slack)
    for h, head in enumerate(left.heads):
        weight, bias, coefficient, constant = as_sigmoid(head)
        constants = [a + b for a, b in zip(constants, constant, strict=True)]
        if h >= len(ideal.bias):
            totals = [(t + abs(c)).upper() for t, c in zip(totals, coefficient, strict=True)]
            continue
        gap = [a - b for a, b in zip(weight, ideal.weights[h], strict=True)]
        moved = smaller((largest_affine(gap, bias - ideal.bias[h]) / 4).upper(), ONE)
        for o, wanted in enumerate(ideal.coefficients[h]):
            totals[o] = (totals[o] + abs(coefficient[o] - wanted) + abs(wanted) * moved).upper()
    for o in range(left.outputs):
        slope = [left.weight[i][o] - ideal.slope[i][o] for i in range(left.dimension)]
        totals[o] = (totals[o] + largest_affine(slope, constants[o])).upper()
    return totals
