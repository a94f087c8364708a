"""Relu units along one direction are a piecewise linear function, and its distance to a profile is a maximum over pieces.

Statement
    Let p(s) = mu s + k + sum_u a_u relu(t_u s + o_u) on [low, high] with knots s_u = -o_u / t_u. Between two neighbouring
    knots p is the affine function whose slope is mu + the sum of a_u t_u over the units that are active there. Hence for
    every function g

        sup |p - g| = max over pieces of sup |g - line|,

    and on a piece of half-width r around c, with Taylor coefficients g_k of g at c in the variable e = (s - c)/r and
    remainder R, sup |g - line| <= max_{|e| <= 1} |(g_0 - line(c)) + (g_1 - line' r) e + g_2 e^2| + sum_{k>=3} |g_k| + R.

Source: imai1986 for how few pieces stay in a tube; the error of one piece is the classical one of a chord.

Differs from the source in
    The function need not interpolate, and its distance to the profile is enclosed piece by piece instead of by
    h^2/8 sup |g''|.

Proof
    Units whose knot is not inside a piece have one sign on it. The extreme values of a quadratic on [-1, 1] are at the ends
    or at its vertex -g_1/(2 g_2). A knot is known up to the radius of its ball; on the sliver between the knot and the
    midpoint that is used as the end of the piece the unit is wrong by at most |a_u t_u| times twice that radius, which is
    added once for each unit. QED.

Assumptions
    form (**checked**): the left-hand side consists of relu units of one variable (rule `split`).
    regular (**checked**): the profile has a value everywhere on the range; its Taylor forms are finite.

Certified
    sup |p - g| <= bound for the exact stored weights. Pieces on which the first estimate is too coarse are bisected.

Not certified: Anything outside the range; the rounding of a floating-point run.

Example
    >>> from certiformer.kernel.balls import BallDomain, working_precision
    >>> from certiformer.kernel.problem import Problem, ProgramFunction
    >>> from certiformer.kernel.layers import Unit, UnitSum
    >>> from certiformer.target import parse_domain, parse_formula
    >>> working_precision()
    >>> left = UnitSum("relu", [arb(-1)], arb(0), [Unit([arb(1)], arb(0), arb(2), arb(0))])
    >>> problem = Problem(left, ProgramFunction(parse_formula("abs(x1)")), BallDomain(parse_domain("[-1, 2]")))
    >>> bool(largest_gap(problem, 3, arb("1e-20")) < arb("1e-25"))
    True

Tests: tests/theorems/test_piecewise_linear.py
"""

from __future__ import annotations

from flint import arb

from certiformer.kernel import Refused, taylor
from certiformer.kernel.balls import HALF, ZERO, Box, larger
from certiformer.kernel.certificate import Theorem as TheoremNode
from certiformer.kernel.layers import UnitSum
from certiformer.kernel.problem import Problem
from certiformer.kernel.rules import stated_bound
from certiformer.kernel.taylor import MAX_ORDER, Form

THEOREM = {
    "id": "axioms.piecewise_linear",
    "title": "Relu units along one direction are as close to a profile as their worst piece.",
    "kind": "upper bound",
    "sources": ("imai1986",),
    "verb": "build",
    "assumptions": (
        ("form", "the left-hand side consists of relu units of one variable", "checked"),
        ("regular", "the profile has a value everywhere on the range of its direction", "checked"),
    ),
}

BISECTIONS = 30  # of one piece; each halves it


def check(node: TheoremNode, problem: Problem) -> arb:
    """The proved bound of a theorem node; raises `Refused` when a piece exceeds the stated bound."""
    order = node.parameters.get("order")
    if type(order) is not int or not 2 <= order <= MAX_ORDER or set(node.parameters) != {"order"}:
        raise Refused(f"a piecewise_linear node needs an order of 2 to {MAX_ORDER} and nothing else")
    return largest_gap(problem, order, stated_bound(node))


def largest_gap(problem: Problem, order: int, limit: arb) -> arb:
    """An upper bound of sup |left - right|, at most `limit`, or `Refused`."""
    left = problem.left
    if not isinstance(left, UnitSum) or left.kind != "relu" or problem.domain.dimension != 1:
        raise Refused("the rule piecewise_linear needs relu units of one variable")
    low, high = problem.domain.ends[0]
    ends, lines, slivers = pieces(left, low.lower(), high.upper())
    room = (limit - slivers - left.slack).lower()
    worst = ZERO
    for (start, stop), line in zip(zip(ends, ends[1:], strict=False), lines, strict=True):
        worst = larger(worst, _piece(problem, line, start, stop, order, room, BISECTIONS))
    return (worst + slivers + left.slack).upper()


def pieces(left: UnitSum, low: arb, high: arb) -> tuple[list[arb], list[tuple[arb, arb]], arb]:
    """Exact ends of the pieces, (slope, intercept) of the line on each, and the charge for knots known inexactly."""
    slope, shift, slivers = left.linear[0], left.constant, ZERO
    turns = []
    for unit in left.units:
        (steepness,) = unit.slope
        if steepness.contains(0):
            raise Refused("a unit of the rule piecewise_linear is constant along its direction")
        knot = -unit.offset / steepness
        rise, drop = unit.coefficient * steepness, unit.coefficient * unit.offset
        slivers = slivers + (rise.abs_upper() * 2 * knot.rad()).upper()
        if steepness < 0:  # active to the left of its knot
            slope, shift = slope + rise, shift + drop
            rise, drop = -rise, -drop
        turns.append((knot.mid(), rise, drop))
    turns.sort(key=lambda turn: turn[0])
    ends, lines = [low], []
    for knot, rise, drop in turns:
        if knot > ends[-1] and knot < high:
            lines.append((slope, shift))
            ends.append(knot)
        elif knot >= high:
            break
        slope, shift = slope + rise, shift + drop
    return [*ends, high], [*lines, (slope, shift)], slivers


def _piece(problem: Problem, line: tuple[arb, arb], low: arb, high: arb, order: int, limit: arb, left: int) -> arb:
    """The largest |g - line| on [low, high], bisecting while the estimate exceeds the limit."""
    centre = ((low + high) * HALF).mid()
    radius = larger((high - centre).upper(), (centre - low).upper())
    form = problem.right.forms(Box((centre,), (radius,)), order)[0]
    gap = _gap(form, line[0] * centre + line[1], line[0] * radius)
    if gap <= limit:
        return gap
    if not left:
        why = (
            form.singular
            or f"the error could only be bounded by about {float(gap):.6g}, not by about {float(limit):.6g}"
        )
        raise Refused(f"on the piece about [{float(low):.12g}, {float(high):.12g}] {why}")
    first = _piece(problem, line, low, centre, order, limit, left - 1)
    return larger(first, _piece(problem, line, centre, high, order, limit, left - 1))


def _gap(form: Form, value: arb, rise: arb) -> arb:
    """An upper bound of |form - (value + rise e)| over |e| <= 1; the quadratic part is taken exactly."""
    if form.singular:
        return taylor.INFINITY
    coef = form.coef
    a, b, c = coef.get(0, ZERO) - value, coef.get(1, ZERO) - rise, coef.get(2, ZERO)
    rest = form.rem + sum((coef[k].abs_upper() for k in coef if k > 2), ZERO)
    peak = larger((a + b + c).abs_upper(), (a - b + c).abs_upper())
    if not b.abs_lower() > 2 * c.abs_upper():  # the vertex may lie inside
        inside = a - b * b / (4 * c)
        peak = larger(
            peak, inside.abs_upper() if inside.is_finite() else (a.abs_upper() + b.abs_upper() + c.abs_upper())
        )
    return (peak + rest).upper()
