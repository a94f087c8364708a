"""Rule *sum* for a block of units: every unit belongs to one group of variables.

Statement. Let f = sum_g f_g(x_g) over disjoint groups of variables, possibly one group alone, and let the transformer be,
on the domain with centre c and half-widths r,

    T(x) = k + m . (x - c) + sum_u a_u act(o_u + w_u . (x - c))      up to `slack`, the arguments up to errors e_u.

Give every unit u a group g(u), and choose numbers k_g with sum k_g = k. With
T_g(x_g) = k_g + m_g . (x_g - c_g) + sum over units of group g of a_u act(o_u + w_{u,g} . (x_g - c_g)),

    sup |T - f| <= sum_g sup |T_g - f_g| + charge,
    charge = slack + sum_u |a_u| Lip(act) (e_u + sum of |w_uj| r_j over j outside g(u))
             + sum of |m_j| r_j over j in no group.

Proof. T - sum_g T_g consists of the differences of act at arguments that differ by at most the bracket, and of the slopes
along variables that f does not read. The triangle inequality over the groups finishes. QED.

How T splits is read off the stored weights (`checker.ridges`), so a unit across two groups costs what it does outside its
own, and a slope along a variable that f does not read is charged in full. With one group the step only reads the units.

The k_g are such that the parts err as much upwards as downwards. Let M_g and m_g be the largest and the least value of
T_g - f_g: sup |T_g - f_g| = (M_g - m_g)/2 + |M_g + m_g|/2, and when all M_g + m_g are equal these add up to
max(sum M_g, -sum m_g) = sup |sum_g (T_g - f_g)|: nothing is lost. M_g and m_g are sampled; a poor sample makes the bounds
larger, never wrong, because only sum k_g = k matters.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from flint import arb

from certiformer.checker.ridges import LIPSCHITZ, Unit, units_of
from certiformer.checker.unit_sum import UnitSum
from certiformer.kernel.balls import HALF, ZERO, Box
from certiformer.kernel.problem import Problem, ProgramFunction
from certiformer.kernel.programs import Program, fold
from certiformer.kernel.refusal import Refused
from certiformer.target.build import Builder
from certiformer.target.split import additive_split

Group = tuple[tuple[int, ...], Program]
# Sample points on an axis by dimension; the best of them are moved uphill, with steps halved when they do not help.
GRID, FEW, CLIMBERS, ROUNDS = {1: 129, 2: 21, 3: 9}, 5, 6, 12


def split(problem: Problem, program: Program) -> tuple[list[Problem], arb]:
    """One problem for each group, and the charge of the statement."""
    groups = additive_split(program, 0) or [variables_alone(program)]
    parts, charge = unit_parts(problem, [variables for variables, _ in groups])
    problems = [
        Problem(part, ProgramFunction(wanted), problem.domain.axes(variables))
        for (variables, wanted), part in zip(groups, parts, strict=True)
    ]
    return _balanced(problems, parts), charge


def unit_parts(problem: Problem, groups: list[tuple[int, ...]]) -> tuple[list[UnitSum], arb]:
    """The T_g, all of k in the first of them, and the charge."""
    box = problem.domain.box(((0, 0),) * problem.domain.dimension)
    found = units_of(problem.left, problem.domain)
    if found.kind not in ("relu", "gelu", "identity"):
        raise Refused("the sum rule needs a product grid of prototypes, or a feed-forward part of relu or gelu units")
    own: list[list[Unit]] = [[] for _ in groups]
    charge = found.slack
    for unit in found.units:
        reach = [s.abs_upper() * r for s, r in zip(unit.slope, box.radius, strict=True)]
        outside = [sum((x for j, x in enumerate(reach) if j not in group), unit.error).upper() for group in groups]
        place = min(range(len(groups)), key=lambda g: float(outside[g]))
        own[place].append(replace(unit, slope=[unit.slope[j] for j in groups[place]], error=ZERO))
        charge = charge + unit.coefficient.abs_upper() * LIPSCHITZ[found.kind] * outside[place]
    read = {j for group in groups for j in group}
    for j in range(problem.domain.dimension):
        if j not in read:
            charge = charge + found.linear[j].abs_upper() * box.radius[j]
    parts = [
        UnitSum(
            "relu" if found.kind == "identity" else found.kind,
            tuple(box.centre[j] for j in group),
            [found.linear[j] for j in group],
            found.constant if place == 0 else ZERO,
            own[place],
        )
        for place, group in enumerate(groups)
    ]
    return parts, charge.upper()


def variables_alone(program: Program) -> Group:
    """The variables that the program reads, and the program in those alone."""
    variables = tuple(sorted({node[1] for node in program.nodes if node[0] == "var"}))
    if not variables:
        raise Refused("the target reads no variable")
    build = Builder()
    inputs = [build.var(variables.index(i)) if i in variables else None for i in range(program.inputs)]
    return variables, build.program(len(variables), fold(program, inputs, build))


def _balanced(problems: list[Problem], parts: list[UnitSum]) -> list[Problem]:
    """The problems with the constants k_g of the module docstring."""
    if len(problems) == 1:
        return problems
    middles = [_middle(problem) for problem in problems]
    share = sum(middles, ZERO) / len(middles)
    if not share.is_finite():
        raise Refused("the target or the transformer has no value at a sampled point")
    shifts = [(share - middle).mid() for middle in middles[:-1]]
    shifts.append(-sum(shifts, ZERO))
    return [
        replace(problem, left=replace(part, constant=part.constant + shift))
        for problem, part, shift in zip(problems, parts, shifts, strict=True)
    ]


def _middle(problem: Problem) -> arb:
    """About the mean of the largest and the least value of left - right: the best points of a grid, moved uphill."""
    number = GRID.get(problem.domain.dimension, FEW)
    points = product([k / (number - 1) for k in range(number)], repeat=problem.domain.dimension)
    values = sorted((_gap(problem, place), place) for place in points)
    least = min(_climbed(problem, place, -1, 0.5 / (number - 1)) for _, place in values[:CLIMBERS])
    most = max(_climbed(problem, place, 1, 0.5 / (number - 1)) for _, place in values[-CLIMBERS:])
    return ((arb(least) + arb(most)) * HALF).mid()


def _climbed(problem: Problem, place: tuple[float, ...], sign: int, step: float) -> float:
    """left - right after steps along the axes that enlarge sign (left - right)."""
    value = sign * _gap(problem, place)
    for _ in range(ROUNDS):
        tries = [
            (*place[:j], min(max(place[j] + move, 0.0), 1.0), *place[j + 1 :])
            for j in range(len(place))
            for move in (-step, step)
        ]
        found, there = max((sign * _gap(problem, tried), tried) for tried in tries)
        if found > value:
            value, place = found, there
        else:
            step /= 2
    return sign * value


def _gap(problem: Problem, place: tuple[float, ...]) -> float:
    """left - right, roughly, at the point that is the given share of the way along every axis."""
    point = tuple(
        (low + (high - low) * arb(t)).mid() for (low, high), t in zip(problem.domain.ends, place, strict=True)
    )
    box = Box(point, (ZERO,) * len(point))
    left, right = problem.left.forms(box, 0)[0], problem.right.forms(box, 0)[0]
    return float((left.coef.get(0, ZERO) - right.coef.get(0, ZERO)).mid())
