"""Rule *ridges*: a block and a target that both are sums of functions of one direction each.

Statement. Let f(x) = l . x + sum_i g_i(p_i . x) and let the transformer be, on the domain with centre c,

    T(x) = k + m . (x - c) + sum_u a_u act(o_u + w_u . (x - c)).

Give every unit u one of the directions, i(u), and a number t_u; choose numbers mu_i, k_i. With s = p_i . x and
T_i(s) = mu_i s + k_i + sum over units of direction i of a_u act(o_u + t_u (s - p_i . c)),

    sup |T - f| <= sum_i sup |T_i - g_i| + charge,
    charge = sum_u |a_u| Lip(act) sum_j |w_uj - t_u p_ij| r_j  +  sum_j |m_j - l_j - sum_i mu_i p_ij| r_j
             + |k - l . c - sum_i (k_i + mu_i p_i . c)|,             r_j the half-widths of the domain.

Proof. T - f - sum_i (T_i - g_i)(p_i . x) consists of the differences act(o + w.(x-c)) - act(o + t p.(x-c)), each at most
Lip(act) |(w - t p).(x-c)|, and of an affine function whose value at c and slopes are the last two terms. QED.

How f splits is read off the program (`target.ridges`), how T splits off the stored weights (`checker.ridges`). Which mu_i
and k_i are used is recorded in the node; a bad choice makes the charge large, never the bound wrong.
"""

from __future__ import annotations

from flint import arb

from certiformer.checker.ridges import LIPSCHITZ, Bend, Profile, Unit, units_of
from certiformer.errors import BadInput
from certiformer.kernel.balls import ZERO, Box, ball, exact
from certiformer.kernel.problem import Problem, ProgramFunction
from certiformer.kernel.refusal import Refused
from certiformer.kernel.steps import Ridges
from certiformer.target.ridges import RidgeSum, ridge_split


def split(node: Ridges, problem: Problem) -> tuple[list[Problem], arb]:
    """One problem for each direction, and the charge of the statement."""
    wanted = target_ridges(problem)
    count = len(wanted.ridges)
    if len(node.children) != count:
        raise Refused(f"the ridges node has {len(node.children)} children for {count} directions")
    return split_with(problem, wanted, _numbers(node.slopes, count), _numbers(node.shifts, count))


def target_ridges(problem: Problem) -> RidgeSum:
    """The right-hand side as a sum of ridge functions."""
    right = problem.right
    if not isinstance(right, ProgramFunction) or right.outputs != 1:
        raise Refused("the rule ridges needs a target program with one output")
    wanted = ridge_split(right.program)
    if wanted is None:
        raise Refused("the target is not written as a sum of functions of one direction each")
    return wanted


def split_with(problem: Problem, wanted: RidgeSum, slopes: list[arb], shifts: list[arb]) -> tuple[list[Problem], arb]:
    """`split` with the shares of the affine part given as balls."""
    domain = problem.domain
    box = domain.box(((0, 0),) * domain.dimension)
    found = units_of(problem.left, domain)
    directions = [direction for direction, _ in wanted.ridges]
    bends: list[list[Bend]] = [[] for _ in directions]
    charge = found.slack
    for unit in found.units:
        place, bend, distance = _placed(unit, directions, box)
        bends[place].append(bend)
        charge = charge + unit.coefficient.abs_upper() * LIPSCHITZ[found.kind] * distance
    rest = found.constant
    for j in range(domain.dimension):
        shared = sum((mu * p[j] for mu, p in zip(slopes, directions, strict=True)), ZERO)
        linear = ball(wanted.linear[j])
        charge = charge + (found.linear[j] - linear - shared).abs_upper() * box.radius[j]
        rest = rest - (linear + shared) * box.centre[j]
    charge = charge + (rest - sum(shifts, ZERO)).abs_upper()
    problems = []
    for (direction, program), mu, shift, own in zip(wanted.ridges, slopes, shifts, bends, strict=True):
        profile = Profile(found.kind, mu, shift, own)
        problems.append(Problem(profile, ProgramFunction(program), domain.along(direction)))
    return problems, charge.upper()


def _placed(unit: Unit, directions: list[tuple[int, ...]], box: Box) -> tuple[int, Bend, arb]:
    """The direction nearest to the unit's slope, the unit along it, and how far its argument is from the stored one."""
    slope = [s.mid() for s in unit.slope]
    best: tuple[arb, int, arb] | None = None
    for place, direction in enumerate(directions):
        steepness = _steepness(slope, direction)
        distance = unit.error
        for s, p, r in zip(unit.slope, direction, box.radius, strict=True):
            distance = distance + (s - steepness * p).abs_upper() * r
        if best is None or distance.upper() < best[0]:
            best = distance.upper(), place, steepness
    if best is None:
        raise Refused("the transformer bends, but the target has no direction along which it does")
    distance, place, steepness = best
    middle = sum((p * c for p, c in zip(directions[place], box.centre, strict=True)), ZERO)
    return place, Bend(steepness, unit.offset - steepness * middle, unit.coefficient), distance


def _steepness(slope: list[arb], direction: tuple[int, ...]) -> arb:
    """A number t with t p close to the slope: read off the largest entry of p, which is exact for a true multiple."""
    axis = max(range(len(direction)), key=lambda i: abs(direction[i]))
    return (slope[axis] / direction[axis]).mid()


def _numbers(texts: list[str], count: int) -> list[arb]:
    if len(texts) != count or any(not isinstance(text, str) for text in texts):
        raise Refused("the ridges node does not have one slope and one shift for each direction")
    try:
        return [ball(exact(text)) for text in texts]
    except BadInput as error:
        raise Refused(str(error)) from None
