"""The rules: one function each, and the walk over a proof tree that applies them.

A proof tree says how sup over the domain, max over the outputs, of |left - right| is bounded. `conclude` goes through it
and returns what is `Proved`, at most the bound that each node states, or raises `Refused`. Boxes, finite and theorems are
leaves, the other rules recurse.

*boxes.* Statement. Let a split tree bisect the domain into leaves. If on every leaf a Taylor form of A - B has all its
values in [-bound, bound], then sup |A - B| <= bound on the domain.
Proof. A tree is stored in preorder, one byte a node: `LEAF`, or the axis that is bisected (then the lower half's tree and
the upper half's tree follow). Whatever the bytes are, the leaves of a well-formed tree cover the root box exactly: a cover
cannot be faked by a wrong sum of areas, and cutting a leaf makes the tree malformed or moves a bisection. A leaf is a
*cell*: per axis the pair (m, k) meaning the real interval a + (b - a) [k, k + 1] / 2^m. It is contained in the outward box
on which the forms are computed, and forms contain the function (`kernel.taylor`). QED.
A leaf whose form is slightly too wide is bisected further by the checker itself, at most `EXTRA` times: the recorded tree
is a proposal, not an assumption. Nothing of what the search computed on the leaves is read. A search that hands over its
tree lets the same walk go on for longer (`Effort`), and records the tree that came out of it: no leaf is proved twice.

*split.* Statement. Let f(x) = l . x + sum_g f_g(L_g x) with integer matrices L_g, and let the transformer be, on the domain
with centre c and half-widths r,

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
whose slopes and value at c are the last two terms. A head over a product grid is the sum of its factors, and
the distance of two heads is bounded, by *product grids* and *shares* of `kernel.layers`. P - f = sum_g (P_g - f_g)(L_g x),
and L_g x stays in the box of its ranges. The triangle inequality finishes. QED.
The parts (L_g, f_g, the units with t_u, mu_g, k_g) stand in the certificate: disjoint variables where the rows of the L_g
are unit vectors, one direction each where they are single rows. A poor choice makes the charge large, never the bound
wrong. That f is the sum of its parts is an equality of *normal forms*: every program becomes a rational combination of
atoms (variables, and operations on normal forms), where max(a, b) = b + relu(a - b), |a| = 2 relu(a) - a, and relu(q a) =
q relu(a), relu(-a) = relu(a) - a make bends along one direction equal. An atom never leaves a combination, even with the
coefficient zero, so f is defined where its parts are.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

from flint import arb

from certiformer.errors import BadInput
from certiformer.kernel import Refused, certificate
from certiformer.kernel.balls import ZERO, BallDomain, Box, Cell, ball, larger, smaller
from certiformer.kernel.certificate import Boxes, Inner, Node, Outputs, Split, Theorem, Triangle, axiom, rule_name
from certiformer.kernel.files import entries
from certiformer.kernel.layers import LIPSCHITZ, Head, Prototypes, Unit, UnitSum, dot, units_of
from certiformer.kernel.problem import FiniteProblem, Function, Problem, ProgramFunction, error_upper, select
from certiformer.kernel.programs import NAMED_CONSTANTS, Program, exact, fold, positive, rational
from certiformer.kernel.taylor import MAX_ORDER, Form

Path = tuple[int, ...]  # from the root of a proof tree to one of its nodes
BoxProver = Callable[[Boxes, Problem, Path, arb], arb]
Progress = Callable[[int, int], None]
MAX_ROWS = 1_000_000
_BY_A_RULE = object()


class Proved:
    """A theorem: the error that `problem` speaks of is at most `bound`. Only `conclude` makes one.

    The type guards against mistakes; against malice only the isolated replay of a folder counts.
    """

    __slots__ = ("bound", "problem")

    def __init__(self, problem: Problem | FiniteProblem, bound: arb, key: object = None):
        if key is not _BY_A_RULE:
            raise TypeError("only a rule of the kernel proves")
        self.problem, self.bound = problem, bound


def stated_bound(node: Node) -> arb:
    """The bound a node claims, as a ball of its exact decimal text."""
    try:
        return ball(positive(node.bound)).lower()
    except BadInput as error:
        raise Refused(f"the bound {node.bound!r} of a proof node is not a positive number: {error}") from None


def conclude(
    node: Node, problem: Problem | FiniteProblem, boxes: BoxProver, progress: Progress | None = None, path: Path = ()
) -> Proved:
    """What a whole proof tree proves; `boxes` bounds the error on box leaves (in this process or in several)."""
    limit = stated_bound(node)
    if isinstance(problem, FiniteProblem):
        bound = prove_finite(node, problem, progress)
    elif isinstance(node, Boxes):
        bound = boxes(node, problem, path, limit)
    elif isinstance(node, certificate.Finite | certificate.Situations):
        wanted = "a finite set of rows" if isinstance(node, certificate.Finite) else "a compiled program"
        raise Refused(f"the rule {rule_name(node)} needs a claim about {wanted}, not about a box")
    elif isinstance(node, Theorem):
        bound = axiom(node.id, "functions on a box").check(node, problem)
    else:
        problems, bound = subproblems(node, problem)
        for position, (child, part) in enumerate(zip(node.children, problems, strict=True)):
            proved = conclude(child, part, boxes, progress, (*path, position)).bound
            bound = larger(bound, proved) if isinstance(node, Outputs) else bound + proved
        bound = bound.upper()
    if not bound <= limit:
        raise Refused(f"a {rule_name(node)} node claims {node.bound} but only about {float(bound):.6g} is proved")
    return Proved(problem, bound, _BY_A_RULE)


def prove(node: Node, problem: Problem, boxes: BoxProver) -> arb:
    """The bound that a proof tree proves."""
    return conclude(node, problem, boxes).bound


def subproblems(node: Inner, problem: Problem) -> tuple[list[Problem], arb]:
    """The problems of a node's children, and what the step itself adds to their bounds."""
    if isinstance(node, Triangle):
        return triangle(node, problem), ZERO
    problems, spent = split(node, problem) if isinstance(node, Split) else (outputs(problem), ZERO)
    if len(problems) != len(node.children):
        raise Refused(f"the {rule_name(node)} node has {len(node.children)} children for {len(problems)} parts")
    return problems, spent


def outputs(problem: Problem) -> list[Problem]:
    """Rule *outputs*: one problem for each output.

    Statement. If |A_o - B_o| <= u_o on the domain for every output o, then max_o sup |A_o - B_o| <= max_o u_o. (By
    definition.)
    """
    left, right, domain = problem.left, problem.right, problem.domain
    return [Problem(select(left, o), select(right, o), domain) for o in range(left.outputs)]


def triangle(node: Triangle, problem: Problem) -> list[Problem]:
    """Rule *triangle*: the two problems A - P and P - B, through a function P that the certificate carries.

    Statement. If sup |A - P| <= u and sup |P - B| <= v on the domain for some program P, then sup |A - B| <= u + v.

    Proof. The triangle inequality at every point and for every output. P is any program of the target language; it is read
    from the certificate and needs no relation to A or B beyond the two bounds. QED.
    """
    try:
        program = Program.from_json(node.through)
    except BadInput as error:
        raise Refused(str(error)) from None
    if program.inputs != problem.domain.dimension or len(program.outputs) != problem.left.outputs:
        raise Refused("the intermediate program does not have the inputs and outputs of the claim")
    middle = ProgramFunction(program)
    return [Problem(problem.left, middle, problem.domain), Problem(middle, problem.right, problem.domain)]


def prove_finite(node: Node, problem: FiniteProblem, progress: Progress | None = None) -> arb:
    """Check the proof of a finite claim: a finite node, or a theorem about all rows at once."""
    if isinstance(node, certificate.Finite):
        return finite(problem, progress)
    if isinstance(node, Theorem):
        return axiom(node.id, "sequences").check(node, problem)
    raise Refused("a claim about a finite set of rows cannot be proved by a rule for boxes")


def finite(problem: FiniteProblem, progress: Progress | None = None) -> arb:
    """Rule *finite*: the largest error over all rows; raises `Refused` when a row cannot be enclosed.

    Statement. Let the claim speak of rows (x_1, y_1), ..., (x_N, y_N). If for every row and output the ball of T(x_r) -
    y_r lies in [-bound, bound], then max |T(x_r) - y_r| <= bound.

    Proof. The rows are the whole domain, and the ball contains T(x_r) - y_r for the exact stored weights. QED.

    The rows come from the sealed `target.json`; nothing of what the search computed is read.
    """
    if problem.target.count > MAX_ROWS:
        raise Refused(f"the claim speaks of more than {MAX_ROWS:,} rows, too many to evaluate one by one")
    worst = ZERO
    for number, (inputs, wanted) in enumerate(problem.target.rows, 1):
        for error in problem.errors(inputs, wanted):
            worst = larger(worst, error.abs_upper())
        if progress and number % 100 == 0:
            progress(number, problem.target.count)
    if not worst.is_finite():
        raise Refused("the error at a row could not be enclosed")
    return worst


# Rule *boxes*.

LEAF = 255
MAX_DEPTH = 60  # per axis; (b - a) / 2^60 is far below any useful box
EXTRA = 5
PRUNE_EVERY = 2  # levels of the tree between two prunings of prototype lists


def root(dimension: int) -> Cell:
    """The cell that is the whole box.

    >>> root(2)
    ((0, 0), (0, 0))
    """
    return ((0, 0),) * dimension


def halves(cell: Cell, axis: int) -> tuple[Cell, Cell]:
    """The lower and the upper half of `cell` along `axis`."""
    m, k = cell[axis]
    if m >= MAX_DEPTH:
        raise BadInput(f"the split tree bisects an axis more than {MAX_DEPTH} times")
    before, after = cell[:axis], cell[axis + 1 :]
    return (*before, (m + 1, 2 * k), *after), (*before, (m + 1, 2 * k + 1), *after)


def subtrees(tree: bytes, dimension: int, largest: int) -> Iterator[tuple[Cell, bytes]]:
    """Cut `tree` into (cell, subtree) pieces of at most `largest` bytes each (single leaves if 0).

    Together the pieces are the whole tree: their cells cover the root box exactly.
    """
    ends = subtree_ends(tree, dimension)
    stack = [(root(dimension), 0)]
    while stack:
        cell, start = stack.pop()
        if tree[start] == LEAF or ends[start] - start <= largest:
            yield cell, tree[start : ends[start]]
            continue
        low, high = halves(cell, tree[start])
        stack.append((high, ends[start + 1]))
        stack.append((low, start + 1))


def subtree_ends(tree: bytes, dimension: int) -> list[int]:
    """For every node the position after its subtree; raises when the bytes are not exactly one tree."""
    ends = [0] * len(tree)
    for position in range(len(tree) - 1, -1, -1):
        byte = tree[position]
        if byte == LEAF:
            ends[position] = position + 1
        elif byte < dimension and position + 1 < len(tree) and ends[position + 1] < len(tree):
            ends[position] = ends[ends[position + 1]]
        else:
            raise BadInput("the split tree is malformed: a bisection lacks a half or names an axis that does not exist")
    if not tree or ends[0] != len(tree):
        raise BadInput("the split tree is malformed: it is empty or has bytes left over")
    return ends


@dataclass(frozen=True)
class Effort:
    """What a proof may do beyond the recorded tree; a check does what stands here.

    A leaf above `goal` (decimals; none: the bound itself) is bisected up to `EXTRA` times, one above the bound up to
    `deepest` times. At the time `end` of the clock the proof ends with a refusal.
    """

    goal: str | None = None
    deepest: int = EXTRA
    end: float = math.inf


CHECK = Effort()


def prove_piece(
    problem: Problem,
    cell: Cell,
    tree: bytes,
    order: int,
    bound: arb,
    tick: Callable[[int], None],
    effort: Effort = CHECK,
    accepted: bytearray | None = None,
) -> arb:
    """Check every leaf of `tree`, rooted at `cell`; returns the largest leaf bound or raises `Refused`.

    `accepted` is given the tree whose leaves were accepted as they are.
    """
    if not 0 <= order <= MAX_ORDER:
        raise Refused(f"the order {order} of the Taylor forms is outside 0..{MAX_ORDER}")
    ends = subtree_ends(tree, len(cell))
    walk = _Walk(order, bound, effort, bytearray() if accepted is None else accepted)
    stack = [(cell, 0, 0, problem)]
    while stack:
        here, start, level, local = stack.pop()
        if tree[start] == LEAF:
            walk.leaf(local, here, 0)
            tick(1)
            continue
        walk.tree.append(tree[start])
        if level % PRUNE_EVERY == 0:
            local = local.restrict(local.domain.box(here))
        low, high = halves(here, tree[start])
        stack.append((high, ends[start + 1], level + 1, local))
        stack.append((low, start + 1, level + 1, local))
    return walk.worst


class _Walk:
    """From leaf to leaf: the largest bound so far and, in preorder, the tree that was accepted."""

    def __init__(self, order: int, bound: arb, effort: Effort, tree: bytearray):
        self.order, self.bound, self.tree = order, bound, tree
        self.goal = bound if effort.goal is None else smaller(bound, ball(exact(effort.goal)).upper())
        self.deepest, self.end, self.worst = effort.deepest, effort.end, ZERO

    def leaf(self, problem: Problem, cell: Cell, level: int) -> None:
        """Bound the error on a cell that was bisected `level` times beyond the recorded tree, or bisect it once more."""
        if time.monotonic() > self.end:
            raise Refused("the time was spent before every leaf was confirmed")
        box = problem.domain.box(cell)
        local = problem.restrict(box)
        upper, forms, singular = error_upper(local, box, self.order)
        # Where one leaf stayed above the goal after all bisections, none is bisected for less.
        if upper <= self.bound and (upper <= self.goal or upper <= self.worst or level >= EXTRA):
            self.worst = larger(self.worst, upper)
            self.tree.append(LEAF)
        elif level < self.deepest and all(m < MAX_DEPTH for m, _ in cell):
            scores = axis_scores(forms, [2.0**-m for m, _ in cell])
            axis = scores.index(max(scores))
            self.tree.append(axis)
            for half in halves(cell, axis):
                self.leaf(local, half, level + 1)
        elif singular:
            raise Refused(f"on the box {box} the function is not defined: {singular}")
        else:
            only = f"about {float(upper):.6g}, not {float(self.bound):.6g}"
            raise Refused(f"on the box {box} the error could only be bounded by {only}")


def axis_scores(forms: list[Form], widths: list[float]) -> list[float]:
    """How much each axis contributes to the width of the forms; the remainder is shared by the relative box widths."""
    scores = [0.0] * len(widths)
    for form in forms:
        for i, c in form.coef.items():
            size = abs(float(c.mid()))
            for axis, power in enumerate(form.table.monomials[i]):
                scores[axis] += power * size
        spread = float(form.rem) / (sum(widths) or 1.0) if form.rem.is_finite() else 1e300
        scores = [score + spread * width for score, width in zip(scores, widths, strict=True)]
    return scores


# Rule *split*.

Combination = dict[int, Fraction]  # atoms, by number, with their coefficients; atom 0 is the number one
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
    box, read = domain.box(root(domain.dimension)), units_of(problem.left, domain)
    shared = [ball(x) for x in linear]
    slopes = [m - own for m, own in zip(read.linear, shared, strict=True)]  # of T - P, beside its units
    rest, problems, lines = read.constant - dot(shared, box.centre), [], []  # its value at the centre
    for directions, target, units, mu, constant in parts:
        middles = [dot([ball(n) for n in direction], box.centre) for direction in directions]
        line, own = [], []
        for number, along in units:
            if not 0 <= number < len(read.units):
                raise Refused("a part of the split names a unit that the transformer does not have")
            unit, t = read.units[number], [ball(x) for x in along]
            if read.kind == "softmax" and lines:  # what the prototypes have in common belongs to the first part
                corner = read.units[0]
                unit = Unit(unit.slope, unit.offset - corner.offset, unit.coefficient - corner.coefficient, unit.error)
            line.append((number, Unit(_pulled(t, directions, domain.dimension), unit.offset, unit.coefficient, ZERO)))
            own.append(Unit(t, unit.offset - dot(t, middles), unit.coefficient, ZERO))
        lines.append(line)
        mu, k = [ball(x) for x in mu], ball(constant)
        slopes = [a - b for a, b in zip(slopes, _pulled(mu, directions, domain.dimension), strict=True)]
        rest = rest - k - dot(mu, middles)
        ranges = BallDomain.between([domain.along(tuple(direction)).ends[0] for direction in directions])
        problems.append(Problem(_part(read.kind, mu, k, own), ProgramFunction(target), ranges))
    charge = read.slack + (_grid_distance if read.kind == "softmax" else _units_distance)(read, lines, box)
    return problems, (charge + dot([slope.abs_upper() for slope in slopes], box.radius) + rest.abs_upper()).upper()


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
        apart = [(slope - other).abs_upper() for slope, other in zip(unit.slope, moved.slope, strict=True)]
        charge = charge + unit.coefficient.abs_upper() * LIPSCHITZ[read.kind] * (unit.error + dot(apart, box.radius))
    return charge


def _grid_distance(read: UnitSum, lines: list[list[tuple[int, Unit]]], box: Box) -> arb:
    """How far the stored head is from the softmax over the product of the lines."""
    if math.prod(map(len, lines)) != len(read.units):
        raise Refused("the lines of the split do not span a product grid of all prototypes of the transformer")
    wanted = {}
    for point in product(*lines):
        slope = [sum(column, ZERO) for column in zip(*(unit.slope for _, unit in point), strict=True)]
        offset, value = (sum(part, ZERO) for part in zip(*((u.offset, u.coefficient) for _, u in point), strict=True))
        wanted[sum(number for number, _ in point)] = Unit(slope, offset, value, ZERO)
    if set(wanted) != set(range(len(read.units))):
        raise Refused("the product grid of the split does not take every prototype of the transformer once")
    centred = Box((ZERO,) * box.dimension, box.radius)
    return _head(read.units).distance(_head([wanted[place] for place in range(len(wanted))]), centred)[0]


def _pulled(numbers: list[arb], directions: list[list[int]], dimension: int) -> list[arb]:
    """numbers L: slopes along the directions as slopes along the variables."""
    return [dot(numbers, [ball(direction[j]) for direction in directions]) for j in range(dimension)]


def _read(part: Any, dimension: int) -> tuple:
    """Directions, target, units, slopes and constant of a part as the certificate states it."""
    rules = {"directions": list, "target": dict, "units": list, "slopes": list, "constant": str}
    entries(part, rules, "a part of the split")
    directions, units = part["directions"], part["units"]
    if not directions or any(type(row) is not list for row in (*directions, *units)):
        raise Refused("the directions and units of a part of the split are not lists")
    if any(len(row) != dimension or any(type(n) is not int for n in row) or not any(row) for row in directions):
        raise Refused("a direction of the split is not one integer for each variable, one of them not zero")
    if any(not unit or type(unit[0]) is not int for unit in units):
        raise Refused("a unit of the split is not a number and its slopes")
    target = Program.from_json(part["target"])
    if target.inputs != len(directions) or len(target.outputs) != 1:
        raise Refused("the target of a part of the split does not have its inputs and one output")
    taken = [(unit[0], _exact(unit[1:], len(directions))) for unit in units]
    return directions, target, taken, _exact(part["slopes"], len(directions)), exact(part["constant"])


def _exact(texts: list[Any], count: int) -> list[Fraction]:
    if len(texts) != count or any(type(text) is not str for text in texts):
        raise Refused("the split does not state one number for each of its directions")
    return [exact(text) for text in texts]
