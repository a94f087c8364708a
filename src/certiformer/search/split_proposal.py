"""Nodes of the rule *split*, without children: which unit belongs to which part, and what the affine part gives to each.

The kernel takes a proposal apart and charges what it misses (`kernel.rules`); nothing here is trusted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Context, Decimal
from fractions import Fraction
from itertools import product

from flint import arb

from certiformer.kernel import Refused
from certiformer.kernel.balls import HALF, ZERO, Box
from certiformer.kernel.certificate import Split
from certiformer.kernel.layers import Unit, UnitSum, units_of
from certiformer.kernel.problem import Problem, ProgramFunction
from certiformer.kernel.rules import split
from certiformer.target import Builder, Program, additive_split, fold

Direction = tuple[int, ...]
DIGITS = Context(prec=32)
# Sample points on an axis by dimension; the best of them are moved uphill, with steps halved when they do not help.
GRID, FEW, CLIMBERS, ROUNDS = {1: 129, 2: 21, 3: 9}, 5, 6, 12


@dataclass(frozen=True)
class Piece:
    """A part of a target: its program in the numbers `directions` x."""

    directions: tuple[Direction, ...]
    target: Program


def propose(
    problem: Problem, linear: Sequence[Fraction], pieces: Sequence[Piece], slopes: Sequence[Sequence[arb]]
) -> Split:
    """The node for these pieces, each with its `slopes` of the affine part; the constants are all in the first."""
    box = problem.domain.box(((0, 0),) * problem.domain.dimension)
    read = units_of(problem.left, problem.domain)
    units: list[list[list]] = [[] for _ in pieces]
    for number, unit in enumerate(read.units):
        if read.kind == "softmax":
            for place in _lines(number, read, pieces):
                units[place].append([number, *(written(x) for x in _along(unit, pieces[place]))])
            continue
        place, along = _nearest(unit, pieces, box)
        units[place].append([number, *map(written, along)])
    constant = _constant(read, linear, pieces, slopes, box)
    parts = [
        {
            "directions": [list(direction) for direction in piece.directions],
            "target": piece.target.to_json(),
            "units": own,
            "slopes": [written(x) for x in mu],
            "constant": written(constant if place == 0 else ZERO),
        }
        for place, (piece, own, mu) in enumerate(zip(pieces, units, slopes, strict=True))
    ]
    return Split("1", [str(x) for x in linear], parts, ())


def by_groups(problem: Problem) -> tuple[Split, list[tuple[int, ...]]]:
    """The node for groups of variables that do not interact, with balanced constants; and the groups."""
    right = problem.right
    if not isinstance(right, ProgramFunction) or right.outputs != 1:
        raise Refused("the rule sum needs a target program with one output")
    groups = additive_split(right.program, 0) or [_variables_alone(right.program)]
    read = units_of(problem.left, problem.domain)
    if read.kind not in ("relu", "gelu", "identity", "softmax"):
        raise Refused("the sum rule needs a product grid of prototypes, or a feed-forward part of relu or gelu units")
    dimension = problem.domain.dimension
    pieces = [
        Piece(tuple(tuple(int(j == i) for j in range(dimension)) for i in variables), program)
        for variables, program in groups
    ]
    slopes = [[read.linear[i].mid() for i in variables] for variables, _ in groups]
    node = propose(problem, [Fraction(0)] * dimension, pieces, slopes)
    return _balanced(node, problem), [variables for variables, _ in groups]


def with_constants(node: Split, constants: Sequence[arb]) -> Split:
    """The node with other constants of its parts."""
    parts = [{**part, "constant": written(k)} for part, k in zip(node.parts, constants, strict=True)]
    return replace(node, parts=parts)


def written(x: arb) -> str:
    """Decimal text of about the middle of a ball."""
    mantissa, exponent = (int(part) for part in x.mid().man_exp())
    value = Fraction(mantissa) * Fraction(2) ** exponent
    return str(DIGITS.divide(Decimal(value.numerator), Decimal(value.denominator)))


def _variables_alone(program: Program) -> tuple[tuple[int, ...], Program]:
    """The variables that the program reads, and the program in those alone."""
    variables = tuple(sorted({node[1] for node in program.nodes if node[0] == "var"}))
    if not variables:
        raise Refused("the target reads no variable")
    build = Builder()
    inputs = [build.var(variables.index(i)) if i in variables else None for i in range(program.inputs)]
    return variables, build.program(len(variables), fold(program, inputs, build))


def _along(unit: Unit, piece: Piece) -> list[arb]:
    """The slopes of a unit along the directions, read off the largest entries: exact for true multiples."""
    axes = [max(range(len(direction)), key=lambda i: abs(direction[i])) for direction in piece.directions]
    return [(unit.slope[i] / direction[i]).mid() for i, direction in zip(axes, piece.directions, strict=True)]


def _lines(number: int, read: UnitSum, pieces: Sequence[Piece]) -> list[int]:
    """The pieces for which a prototype lies on the grid line through prototype 0: all other slopes are the same, nearly."""

    def others(unit: Unit, place: int) -> list[str]:
        slopes = [x for k, piece in enumerate(pieces) if k != place for x in _along(unit, piece)]
        return [f"{float(x):.11e}" for x in slopes]

    corner, unit = read.units[0], read.units[number]
    return [place for place in range(len(pieces)) if others(unit, place) == others(corner, place)]


def _nearest(unit: Unit, pieces: Sequence[Piece], box: Box) -> tuple[int, list[arb]]:
    """The piece whose directions come nearest to the slope of a unit, and its slopes along them."""
    best: tuple[arb, int, list[arb]] | None = None
    for place, piece in enumerate(pieces):
        along = _along(unit, piece)
        distance = ZERO
        for j, (slope, r) in enumerate(zip(unit.slope, box.radius, strict=True)):
            moved = sum((t * direction[j] for t, direction in zip(along, piece.directions, strict=True)), ZERO)
            distance = distance + (slope - moved).abs_upper() * r
        if best is None or distance.upper() < best[0]:
            best = distance.upper(), place, along
    if best is None:
        raise Refused("the transformer bends, but the target has no direction along which it does")
    return best[1], best[2]


def _constant(read: UnitSum, linear: Sequence[Fraction], pieces: Sequence[Piece], slopes, box: Box) -> arb:
    """What is left of the constant: the value of the affine part at x = 0."""
    total = read.constant
    for j, c in enumerate(box.centre):
        total = total - arb(linear[j].numerator) / linear[j].denominator * c
        for piece, mu in zip(pieces, slopes, strict=True):
            for direction, x in zip(piece.directions, mu, strict=True):
                total = total - x * direction[j] * c
    return total.mid()


def _balanced(node: Split, problem: Problem) -> Split:
    """Constants with which the parts err as much upwards as downwards.

    Let M_g and m_g be the largest and the least value of P_g - f_g: sup |P_g - f_g| = (M_g - m_g)/2 + |M_g + m_g|/2, and
    when all M_g + m_g are equal these add up to max(sum M_g, -sum m_g) = sup |sum_g (P_g - f_g)|: nothing is lost.
    """
    if len(node.parts) == 1:
        return node
    problems, _ = split(node, problem)
    middles = [_middle(part) for part in problems]
    share = sum(middles, ZERO) / len(middles)
    if not share.is_finite():
        raise Refused("the target or the transformer has no value at a sampled point")
    stated = [arb(part["constant"]) for part in node.parts]
    constants = [k + (share - middle) for k, middle in zip(stated, middles, strict=True)]
    constants[-1] = sum(stated, ZERO) - sum((arb(written(k)) for k in constants[:-1]), ZERO)
    return with_constants(node, constants)


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
        best, there = max((sign * _gap(problem, tried), tried) for tried in tries)
        if best > value:
            value, place = best, there
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
