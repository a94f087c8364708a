"""Rule *split*: a transformer and a target that both are sums over few directions each (rule 4, with rule 3 for the rest).

Statement. Let f(x) = l . x + sum_g f_g(L_g x) with integer matrices L_g, and let the transformer be, on the domain with
centre c and half-widths r,

    T(x) = k + m . (x - c) + sum_u a_u act(o_u + w_u . (x - c))      up to `slack`, the arguments up to errors e_u.

Its twin P has the same units, each taken along one L_g: with chosen slopes t_u, mu_g and constants k_g let P(x) = l . x +
sum_g P_g(L_g x), P_g(s) = mu_g . s + k_g + sum over the units of part g of a_u act(o_u - t_u . L_g c + t_u . s). Then

    sup |T - f| <= sum_g sup |P_g - f_g| + charge,      the suprema over the boxes of the ranges of L_g x,
    charge = slack + sum_u |a_u| Lip(act) (e_u + sum_j |w_u - t_u L_g|_j r_j) + sum_j |m - l - sum_g mu_g L_g|_j r_j
             + |k - l . c - sum_g (k_g + mu_g . L_g c)|.

For one softmax head over a product grid the units are its prototypes, act is softmax, and a part lists those on one line
through prototype 0, so that the number of a grid point is the sum of its numbers on the lines. P_g has the scores and the
values along line g, what all have in common in the first; the sum over u becomes the distance of two heads.

Proof. T - P consists of the differences of act at arguments that differ by at most the bracket, and of an affine function
whose slopes and value at c are the last two terms (rule *twins*). A head over a product grid is the sum of its factors, and
the distance of two heads is bounded, by the rules *product grids* and *shares* of `kernel.affine_softmax`. P - f = sum_g
(P_g - f_g)(L_g x), and L_g x stays in the box of its ranges. The triangle inequality finishes. QED.

The parts (L_g, f_g, the units with t_u, mu_g, k_g) stand in the certificate: disjoint variables where the rows of the L_g
are unit vectors, one direction each where they are single rows. A poor choice makes the charge large, never the bound
wrong. That f is the sum of its parts is an equality of *normal forms*: every program becomes a rational combination of
atoms (variables, and operations on normal forms), where max(a, b) = b + relu(a - b), |a| = 2 relu(a) - a, and relu(q a) =
q relu(a), relu(-a) = relu(a) - a make bends along one direction equal. An atom never leaves a combination, even with the
coefficient zero, so f is defined where its parts are.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import prod
from typing import Any

from flint import arb

from certiformer.errors import BadInput
from certiformer.kernel.affine_softmax import Head, Prototypes
from certiformer.kernel.balls import ZERO, BallDomain, Box, ball, exact
from certiformer.kernel.certificate import Split
from certiformer.kernel.problem import Function, Problem, ProgramFunction
from certiformer.kernel.programs import NAMED_CONSTANTS, Program, fold, rational
from certiformer.kernel.refusal import Refused
from certiformer.kernel.units import LIPSCHITZ, Unit, UnitSum, units_of

Combination = dict[int, Fraction]  # atoms, by number, with their coefficients; atom 0 is the number one
PART = {"directions", "target", "units", "slopes", "constant"}
MAX_TERMS = 1_000_000  # of all combinations and atoms of one comparison together
MAX_BITS = 1 << 16  # of a coefficient: the product of many constants is as long as all of them


class NormalForms:
    """An algebra for `fold` whose values are combinations of atoms; equal atoms have equal numbers."""

    def __init__(self) -> None:
        self.numbers: dict[tuple, int] = {("one",): 0}
        self.bare = {0}  # the number one and the variables, which have a value everywhere
        self.terms = 0

    def _count(self, terms: int, long: bool = False) -> None:
        """Refuse what would be too large to be kept."""
        self.terms += 1 + terms
        if long or self.terms > MAX_TERMS:
            raise Refused("the target is too large to be compared with its parts")

    def _counted(self, made: Combination) -> Combination:
        most = max((max(x.numerator.bit_length(), x.denominator.bit_length()) for x in made.values()), default=0)
        self._count(len(made), most > MAX_BITS)
        return made

    def atom(self, *parts: Any) -> Combination:
        self._count(sum(len(part) for part in parts if isinstance(part, tuple)))
        return {self.numbers.setdefault(parts, len(self.numbers)): Fraction(1)}

    def variable(self, axis: int) -> Combination:
        variable = self.atom("var", axis)
        self.bare |= set(variable)
        return variable

    def constant(self, text: str) -> Combination:
        if text in NAMED_CONSTANTS:
            return self.atom("const", text)
        return {0: value} if (value := rational(text)) else {}

    def undefined(self, value: Combination) -> bool:
        """Atoms keep what has no value."""
        return False

    def neg(self, a: Combination) -> Combination:
        return self.times(a, Fraction(-1))

    def times(self, a: Combination, factor: Fraction) -> Combination:
        """factor a; only what has a value everywhere may leave."""
        return self._counted({atom: factor * own for atom, own in a.items() if factor or atom not in self.bare})

    def add(self, a: Combination, b: Combination) -> Combination:
        total = dict(a)
        for atom, factor in b.items():
            total[atom] = total.get(atom, Fraction(0)) + factor
        return self._counted({atom: factor for atom, factor in total.items() if factor or atom not in self.bare})

    def sub(self, a: Combination, b: Combination) -> Combination:
        return self.add(a, self.neg(b))

    def mul(self, a: Combination, b: Combination) -> Combination:
        for number, other in ((_number(a), b), (_number(b), a)):
            if number is not None:
                return self.times(other, number)
        return self.atom("mul", *sorted((key(a), key(b))))

    def div(self, a: Combination, b: Combination) -> Combination:
        number = _number(b)
        return self.times(a, 1 / number) if number else self.atom("div", key(a), key(b))

    def pow(self, a: Combination, n: int) -> Combination:
        return a if n == 1 else self.atom("pow", key(a), n)

    def max(self, a: Combination, b: Combination) -> Combination:
        return self.add(b, self._relu(self.sub(a, b)))

    def min(self, a: Combination, b: Combination) -> Combination:
        return self.sub(b, self._relu(self.sub(b, a)))

    def abs(self, a: Combination) -> Combination:
        return self.sub(self.times(self._relu(a), Fraction(2)), a)

    def _relu(self, a: Combination) -> Combination:
        lead = next((factor for atom, factor in sorted(a.items()) if atom and factor), Fraction(1))
        unit = self.atom("relu", key(self.times(a, 1 / lead)))
        return self.times(unit, lead) if lead > 0 else self.add(self.times(unit, -lead), a)

    def compare(self, comparison: str, a: Combination, b: Combination) -> tuple:
        return comparison, key(a), key(b)

    def select(self, condition: tuple, x: Combination, y: Combination) -> Combination:
        return self.atom("where", *condition, key(x), key(y))

    def __getattr__(self, name: str) -> Any:
        return lambda a: self.atom(name, key(a))


def key(a: Combination) -> tuple:
    """A combination as a part of an atom."""
    return tuple(sorted(a.items()))


def _number(a: Combination) -> Fraction | None:
    return a.get(0, Fraction(0)) if set(a) <= {0} else None


def is_sum(program: Program, linear: list[Fraction], parts: list[tuple[list[list[int]], Program]]) -> bool:
    """Whether the program is, as written, linear . x plus the parts at their directions."""
    forms = NormalForms()
    variables = [forms.variable(axis) for axis in range(program.inputs)]

    def along(slopes: list[Fraction] | list[int]) -> Combination:
        total: Combination = {}
        for variable, slope in zip(variables, slopes, strict=True):
            total = forms.add(total, forms.times(variable, Fraction(slope)))
        return total

    (whole,) = fold(program, variables, forms)
    total = along(linear)
    for directions, part in parts:
        total = forms.add(total, fold(part, [along(direction) for direction in directions], forms)[0])
    return whole == total


def split(node: Split, problem: Problem) -> tuple[list[Problem], arb]:
    """One problem for each part, and the charge of the statement."""
    right, domain = problem.right, problem.domain
    if not isinstance(right, ProgramFunction) or right.outputs != 1:
        raise Refused("the rule split needs a target program with one output")
    try:
        linear = _exact(node.linear, domain.dimension)
        parts = [_read(part, domain.dimension) for part in node.parts]
    except BadInput as error:
        raise Refused(str(error)) from None
    if not is_sum(right.program, linear, [(directions, target) for directions, target, *_ in parts]):
        raise Refused("the parts of the split do not add up to the target")
    box = domain.box(((0, 0),) * domain.dimension)
    read = units_of(problem.left, domain)
    charge, rest, problems, lines = read.slack, read.constant, [], []
    slopes = [m - ball(own) for m, own in zip(read.linear, linear, strict=True)]
    rest = rest - sum((ball(own) * c for own, c in zip(linear, box.centre, strict=True)), ZERO)
    for directions, target, units, mu, constant in parts:
        middles = [sum((p * c for p, c in zip(direction, box.centre, strict=True)), ZERO) for direction in directions]
        line, own = [], []
        for place, along in units:
            if not 0 <= place < len(read.units):
                raise Refused("a part of the split names a unit that the transformer does not have")
            unit, t = read.units[place], [ball(x) for x in along]
            if read.kind == "softmax" and lines:  # what the prototypes have in common belongs to the first part
                corner = read.units[0]
                unit = Unit(unit.slope, unit.offset - corner.offset, unit.coefficient - corner.coefficient, unit.error)
            line.append((place, Unit(_pulled(t, directions, domain.dimension), unit.offset, unit.coefficient, ZERO)))
            offset = unit.offset - sum((x * middle for x, middle in zip(t, middles, strict=True)), ZERO)
            own.append(Unit(t, offset, unit.coefficient, ZERO))
        lines.append(line)
        mu, k = [ball(x) for x in mu], ball(constant)
        slopes = [a - b for a, b in zip(slopes, _pulled(mu, directions, domain.dimension), strict=True)]
        rest = rest - k - sum((x * middle for x, middle in zip(mu, middles, strict=True)), ZERO)
        ranges = BallDomain.between([domain.along(tuple(direction)).ends[0] for direction in directions])
        problems.append(Problem(_part(read.kind, mu, k, own), ProgramFunction(target), ranges))
    charge = charge + (_grid_distance if read.kind == "softmax" else _units_distance)(read, lines, box)
    for slope, r in zip(slopes, box.radius, strict=True):
        charge = charge + slope.abs_upper() * r
    return problems, (charge + rest.abs_upper()).upper()


def _part(kind: str, linear: list[arb], constant: arb, units: list[Unit]) -> Function:
    """P_g of the statement."""
    if kind != "softmax":
        return UnitSum("relu" if kind == "identity" else kind, linear, constant, units)
    if not units:
        raise Refused("a part of the split of a product grid has no prototype")
    return Prototypes(len(linear), 1, len(units), [_head(units)], [[m] for m in linear], [constant], [ZERO])


def _head(units: list[Unit]) -> Head:
    return Head([unit.slope for unit in units], [unit.offset for unit in units], [[unit.coefficient] for unit in units])


def _units_distance(read: UnitSum, lines: list[list[tuple[int, Unit]]], box: Box) -> arb:
    """The sum over the units of the statement's charge."""
    taken, charge = [pair for line in lines for pair in line], ZERO
    if sorted(place for place, _ in taken) != list(range(len(read.units))):
        raise Refused("the parts of the split do not take every unit of the transformer once")
    for place, moved in taken:
        unit = read.units[place]
        distance = unit.error
        for slope, other, r in zip(unit.slope, moved.slope, box.radius, strict=True):
            distance = distance + (slope - other).abs_upper() * r
        charge = charge + unit.coefficient.abs_upper() * LIPSCHITZ[read.kind] * distance
    return charge


def _grid_distance(read: UnitSum, lines: list[list[tuple[int, Unit]]], box: Box) -> arb:
    """How far the stored head is from the softmax over the product of the lines."""
    if prod(map(len, lines)) != len(read.units):
        raise Refused("the lines of the split do not span a product grid of all prototypes of the transformer")
    wanted = {}
    for point in product(*lines):
        slope = [sum(column, ZERO) for column in zip(*(unit.slope for _, unit in point), strict=True)]
        offset, value = (
            sum((unit.offset for _, unit in point), ZERO),
            sum((unit.coefficient for _, unit in point), ZERO),
        )
        wanted[sum(place for place, _ in point)] = Unit(slope, offset, value, ZERO)
    if set(wanted) != set(range(len(read.units))):
        raise Refused("the product grid of the split does not take every prototype of the transformer once")
    centred = Box((ZERO,) * box.dimension, box.radius)
    return _head(read.units).distance(_head([wanted[place] for place in range(len(wanted))]), centred)[0]


def _pulled(numbers: list[arb], directions: list[list[int]], dimension: int) -> list[arb]:
    """numbers L: slopes along the directions as slopes along the variables."""
    lines = list(zip(numbers, directions, strict=True))
    return [sum((x * direction[j] for x, direction in lines), ZERO) for j in range(dimension)]


def _read(part: Any, dimension: int) -> tuple:
    """Directions, target, units, slopes and constant of a part as the certificate states it."""
    if not isinstance(part, dict) or set(part) != PART:
        raise Refused(f"a part of the split does not have the fields {', '.join(sorted(PART))}")
    directions, units = part["directions"], part["units"]
    rows = [*directions, *units] if isinstance(directions, list) and isinstance(units, list) else [None]
    if not directions or not all(isinstance(row, list) for row in rows):
        raise Refused("the directions and units of a part of the split are not lists")
    if any(len(row) != dimension or any(type(n) is not int for n in row) or not any(row) for row in directions):
        raise Refused("a direction of the split is not one integer for each variable, one of them not zero")
    if any(not unit or type(unit[0]) is not int for unit in units):
        raise Refused("a unit of the split is not a number and its slopes")
    target = Program.from_json(part["target"])
    if target.inputs != len(directions) or len(target.outputs) != 1:
        raise Refused("the target of a part of the split does not have its inputs and one output")
    (constant,) = _exact([part["constant"]], 1)
    taken = [(unit[0], _exact(unit[1:], len(directions))) for unit in units]
    return directions, target, taken, _exact(part["slopes"], len(directions)), constant


def _exact(texts: Any, count: int) -> list[Fraction]:
    if not isinstance(texts, list) or len(texts) != count or any(not isinstance(text, str) for text in texts):
        raise Refused("the split does not state one number for each of its directions")
    return [exact(text) for text in texts]
