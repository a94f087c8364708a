"""Rule *sum*: a problem that falls into parts over disjoint groups of variables.

Statement. Let f = sum_g f_g(x_g) over disjoint groups of variables. If T = sum_g T_g(x_g) up to a charge c on the domain,
then sup |T - f| <= sum_g sup |T_g - f_g| + c. (The triangle inequality over the groups.) How f splits is read off the
program, how T does off the stored weights as follows.

*Heads.* Let T be one softmax head over a product grid of prototypes whose scores and values are sums over the groups,
s_j(x) = sum_g s_{g,j_g}(x_g), v_j = sum_g v_{g,j_g}. Then T = sum_g T_g(x_g), where T_g is the softmax over group g's grid.

Proof. The softmax weights of a product grid with additive scores factorise into w_j = prod_g w_{g,j_g}, each factor
summing to one, so E v = sum_g E_g v_g. QED.

Stored weights are additive only up to rounding: the checker builds the additive head from the grid lines through one
corner, and charges its distance to the stored head (`rules.perturbation`), which also covers the stored head's affine
part.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from flint import arb

from certiformer.checker.rules.perturbation import IdealHead, charge, registers_only
from certiformer.kernel.affine_softmax import Head, Prototypes
from certiformer.kernel.balls import ZERO, Box
from certiformer.kernel.problem import Function, Problem, ProgramFunction
from certiformer.kernel.refusal import Refused
from certiformer.kernel.taylor import value_ball
from certiformer.target.split import additive_split


def split(problem: Problem) -> tuple[list[Problem], arb]:
    """One problem per group, and the charge for the stored weights not being exactly additive."""
    if not isinstance(problem.right, ProgramFunction) or problem.right.outputs != 1:
        raise Refused("the sum rule needs a target program with one output")
    if not isinstance(problem.left, Prototypes):
        raise Refused("the sum rule needs a product grid of prototypes")
    groups = additive_split(problem.right.program, 0)
    if groups is None or len(groups) < 2:
        raise Refused("the target is not a sum of terms over disjoint variables")
    used = sorted(v for variables, _ in groups for v in variables)
    if used != list(range(problem.domain.dimension)):
        raise Refused("the sum rule needs every variable of the domain to occur in exactly one term")
    left = registers_only(problem.left, problem.domain)
    variable_groups = [variables for variables, _ in groups]
    parts = _additive_parts(left, variable_groups)
    spent = charge(left, _recombined(left, variable_groups, parts), problem.domain)[0]
    problems = [
        Problem(_alone(head), ProgramFunction(program), problem.domain.axes(variables))
        for (variables, program), head in zip(groups, parts, strict=True)
    ]
    return _balanced(problems), spent


def _alone(head: Head) -> Prototypes:
    count = len(head.slopes[0])
    return Prototypes(count, 1, len(head.offsets), [head], [[ZERO]] * count, [ZERO], [ZERO])


def _balanced(problems: list[Problem]) -> list[Problem]:
    """Move constants between the groups so that every part is right at the middle of its domain.

    Only sums of the parts mean anything: adding k to one T_g and subtracting it from another changes no total.
    """
    moved, result = ZERO, []
    for problem in reversed(problems):
        box = problem.domain.box(((0, 0),) * problem.domain.dimension)
        point = Box(box.centre, (ZERO,) * problem.domain.dimension)
        gap = value_ball(problem.right.forms(point, 0)[0]) - value_ball(problem.left.forms(point, 0)[0])
        shift = gap.mid() if len(result) + 1 < len(problems) and gap.is_finite() else -moved
        moved = moved + shift
        result.append(Problem(_shifted(problem.left, shift), problem.right, problem.domain))
    return result[::-1]


def _shifted(part: Function, shift: arb) -> Function:
    return replace(part, bias=[part.bias[0] + shift]) if isinstance(part, Prototypes) else part


def _key(slope: list[arb], variables: Iterable[int]) -> tuple[str, ...]:
    """A name for the grid position of a prototype. Only used to pair things up: a wrong pairing makes `charge` large."""
    return tuple(f"{float(slope[i].mid()):.11e}" for i in variables)


def _additive_parts(left: Prototypes, groups: list[tuple[int, ...]]) -> list[Head]:
    """The heads T_g: scores and values along the grid lines through register 0; constants go to the first group."""
    head = left.heads[0]
    parts, size = [], 1
    for position, variables in enumerate(groups):
        others = [i for i in range(left.dimension) if i not in variables]
        corner = _key(head.slopes[0], others)
        line = [j for j, slope in enumerate(head.slopes) if _key(slope, others) == corner]
        size *= len(line)
        offset = ZERO if position == 0 else head.offsets[0]
        value = ZERO if position == 0 else head.values[0][0]
        slopes = [[head.slopes[j][i].mid() for i in variables] for j in line]
        offsets = [(head.offsets[j] - offset).mid() for j in line]
        parts.append(Head(slopes, offsets, [[(head.values[j][0] - value).mid()] for j in line]))
    if size != len(head.slopes):
        raise Refused("the prototypes do not form a product grid over the groups of variables")
    return parts


def _recombined(left: Prototypes, groups: list[tuple[int, ...]], parts: list[Head]) -> IdealHead:
    """The exactly additive head on the whole grid, in the order of the stored registers."""
    places = [
        {_key(slope, range(len(variables))): k for k, slope in enumerate(part.slopes)}
        for variables, part in zip(groups, parts, strict=True)
    ]
    ideal = IdealHead([], [], [])
    taken = set()
    for slope in left.heads[0].slopes:
        keys = [place.get(_key(slope, variables)) for variables, place in zip(groups, places, strict=True)]
        chosen = [(variables, part, k) for variables, part, k in zip(groups, parts, keys, strict=True) if k is not None]
        if len(chosen) < len(groups):
            raise Refused("the prototypes do not form a product grid over the groups of variables")
        taken.add(tuple(keys))
        line = [ZERO] * left.dimension
        for variables, part, k in chosen:
            for i, value in zip(variables, part.slopes[k], strict=True):
                line[i] = value
        ideal.slopes.append(line)
        ideal.offsets.append(sum((part.offsets[k] for _, part, k in chosen), ZERO))
        ideal.values.append([sum((part.values[k][0] for _, part, k in chosen), ZERO)])
    # As many registers as grid points (checked with the parts), all different: every grid point occurs exactly once.
    if len(taken) != len(ideal.slopes):
        raise Refused("the prototypes do not form a product grid: a point of the grid occurs twice")
    return ideal
