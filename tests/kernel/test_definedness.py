"""What has no value is claimed by no arithmetic: every operation, in every algebra, with "no value" in every argument.

The oracle reads programs at one exact point by `target.reading`, in 300-bit balls. Where it finds no value, no algebra may
give one on a box around that point; where `where` certainly takes the other branch, all of them must. The algebras are found
in the source, so that a new one fails until it stands in `CLAIMS`.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from flint import arb

import certiformer
from certiformer.axioms.derivatives import series
from certiformer.axioms.jets import jets
from certiformer.axioms.profile_series import derivatives
from certiformer.construct.affine_target import affine_outputs
from certiformer.construct.program_values import as_numpy
from certiformer.enclose.target import enclose_target
from certiformer.enclose.taylor import enclosed_range
from certiformer.errors import BadInput
from certiformer.interval import rigorous_jit
from certiformer.kernel import Refused
from certiformer.kernel import programs as ir
from certiformer.kernel.balls import Box, ConstantAlgebra, ball, hull
from certiformer.kernel.programs import BINARY, COMPARISONS, UNARY
from certiformer.kernel.rules import NormalForms
from certiformer.kernel.taylor import magnitude, target_forms
from certiformer.target import Builder, Program, additive_split, domain, fold, pointwise, ridge_split
from certiformer.target.floating import as_jax
from kernel import oracle
from target.oracle import exact
from target.reading import no_value

POINT = Fraction(1, 2)  # where the singular terms below have no value
BOXES = [(Fraction(1, 4), Fraction(3, 4)), (Fraction(1, 4), POINT), (POINT, Fraction(3, 4))]


# Programs, node by node: a builder would refuse or rewrite some of them


class Nodes:
    """A list of nodes that grows; every method returns the number of a node."""

    def __init__(self, inputs: int = 1) -> None:
        self.inputs, self.nodes = inputs, [("var", i) for i in range(inputs)]

    def put(self, *node) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1

    def number(self, value) -> int:
        return self.put("const", str(Fraction(value)))

    def program(self, *outputs: int) -> Program:
        return Program(self.inputs, tuple(self.nodes), outputs)


def singular_terms(build: Nodes, x: int = 0) -> dict[str, int]:
    """Expressions without a value at x = POINT, one for each reason, exact in float64 but for `tan`."""
    gap = build.put("sub", x, build.number(POINT))
    below = build.put("neg", build.put("pow", gap, 2))
    quarter_turn = build.put("div", build.put("const", "pi"), build.number(2))
    return {
        "a pole": build.put("div", build.number(1), gap),
        "0/0": build.put("div", gap, gap),
        "log at its end": build.put("log", gap),
        "log below": build.put("log", below),
        "sqrt below": build.put("sqrt", build.put("sub", below, build.number(2))),
        "tan": build.put("tan", build.put("add", quarter_turn, gap)),
    }


def used_everywhere(build: Nodes, term: int) -> dict[str, int]:
    """The term as every argument that an operation uses."""
    plain, two = build.put("add", 0, build.number(3)), build.number(2)
    low, high = build.number(-9), build.number(9)
    uses = {name: build.put(name, term) for name in UNARY}
    for name in BINARY:
        uses[f"{name} left"], uses[f"{name} right"] = build.put(name, term, plain), build.put(name, plain, term)
        uses[f"{name} both"] = build.put(name, term, term)
    uses |= {f"pow {n}": build.put("pow", term, n) for n in (0, 1, 2, 3)}
    uses["times 0"], uses["0 times"] = build.put("mul", term, build.number(0)), build.put("mul", build.number(0), term)
    for sign in COMPARISONS:
        uses[f"{sign} left"] = build.put("where", sign, term, two, plain, plain)
        uses[f"{sign} right"] = build.put("where", sign, two, term, plain, two)
        uses[f"{sign} both"] = build.put("where", sign, term, term, plain, plain)
        uses[f"{sign} taken first"] = build.put("where", sign, low, high, term, plain)
        uses[f"{sign} taken second"] = build.put("where", sign, high, low, plain, term)
        uses[f"{sign} open, first"] = build.put("where", sign, 0, build.number(POINT), term, term)
        uses[f"{sign} open, second"] = build.put("where", sign, build.number(POINT), 0, term, term)
    return uses


def swallowed(build: Nodes, node: int) -> list[int]:
    """The node itself, and where a careless reader would lose it."""
    plain, zero, two = build.put("cos", 0), build.number(0), build.number(2)
    nothing = build.put("pow", node, 0)
    return [
        node,
        nothing,
        build.put("where", "lt", nothing, two, plain, zero),
        build.put("where", "le", build.put("mul", zero, node), two, plain, zero),
        build.put("add", plain, build.put("sub", node, node)),
    ]


def singular_program(reasons: Sequence[str], ways: int = 5) -> tuple[Program, list[str]]:
    """One output for each singular term, each use of it and each way to lose it again, and what each is."""
    build, outputs, names = Nodes(), [], []
    terms = singular_terms(build)
    for why in reasons:
        for use, node in {"itself": terms[why], **used_everywhere(build, terms[why])}.items():
            for way, output in enumerate(swallowed(build, node)[:ways]):
                outputs.append(output)
                names.append(f"{why}: {use}, {way}")
    return build.program(*outputs), names


def regular_program(reasons: Sequence[str]) -> Program:
    """Outputs that have a value everywhere: the singular terms stand in the branch that is not taken."""
    build, outputs = Nodes(), []
    plain, low, high = build.put("sin", 0), build.number(-9), build.number(9)
    terms = singular_terms(build)
    for why in reasons:
        for use in swallowed(build, terms[why]):
            for sign in COMPARISONS:
                outputs += [build.put("where", sign, low, 0, plain, use), build.put("where", sign, high, 0, use, plain)]
                inner = build.put("where", sign, 0, high, outputs[-1], use)
                outputs.append(build.put("pow", build.put("where", sign, inner, high, inner, use), 0))
    return build.program(*outputs)


def random_raw_program(rng: random.Random) -> Program:
    """A few random rational operations on a singular term, a number and the variable; no builder sees them."""
    build = Nodes()
    terms = singular_terms(build)
    nodes = [0, build.number(rng.choice((0, 1, -2, POINT))), terms[rng.choice(("a pole", "0/0"))]]
    for _ in range(rng.randrange(1, 7)):
        a, b, x, y = (rng.choice(nodes[-4:] if rng.random() < 0.7 else nodes) for _ in range(4))
        kind = rng.randrange(4)
        if kind == 0:
            nodes.append(build.put(rng.choice(("neg", "abs")), a))
        elif kind == 1:
            nodes.append(build.put(rng.choice(BINARY), a, b))
        elif kind == 2:
            nodes.append(build.put("pow", a, rng.randrange(4)))
        else:
            nodes.append(build.put("where", rng.choice(COMPARISONS), a, b, x, y))
    return build.program(nodes[-1])


def has_value(program: Program, *point: Fraction) -> list[bool]:
    """The oracle: which outputs have a value at the point."""
    with oracle.precisely():
        return [not no_value(v) for v in oracle.values(program, [ball(x) for x in point or (POINT,)])]


# What each algebra claims: for every output, whether it has a value on the whole box


def _ball(low: Fraction, high: Fraction) -> arb:
    return hull(ball(low).lower(), ball(high).upper())


def _box(low: Fraction, high: Fraction) -> Box:
    return Box((ball((low + high) / 2),), (ball((high - low) / 2),))


def by_forms(order: int):
    return lambda program, low, high: [
        bool(magnitude(f).is_finite()) for f in target_forms(program, _box(low, high), order)
    ]


def by_jets(program, low, high):
    return [bool(jet.value.is_finite()) or jet.smooth > 0 for jet in jets(program, [_ball(low, high)], 2)]


def by_series(program, low, high):
    return [s.smooth for s in series(program, [_ball(low, high)], 3)]


def by_profile_series(program, low, high):
    return [all(c.is_finite() for c in found) for found in derivatives(program, _ball(low, high), 3)]


def by_constants(program, low, high):
    return [bool(v.is_finite()) for v in fold(program, [_ball(low, high)], ConstantAlgebra())]


def by_affine(program, low, high):
    claimed = []
    for output in range(len(program.outputs)):
        try:
            claimed.append(bool(affine_outputs(program.select(output))))
        except Refused:
            claimed.append(False)
    return claimed


def by_normal_forms(program, low, high):
    """Two programs are only called equal where they have a value at the same points: what may have none stays an atom."""
    forms = NormalForms()
    return [set(form) <= forms.bare for form in fold(program, [forms.variable(0)], forms)]


def by_builder(program, low, high):
    """A program that is copied through a builder has no value where it had none; a refusal claims nothing."""
    claimed = []
    for output in range(len(program.outputs)):
        build = Builder()
        try:
            (copy,) = fold(program.select(output), [build.var(0)], build)
        except BadInput:
            claimed.append(False)
        else:
            claimed += has_value(build.program(1, [copy]))
    return claimed


def by_python(program, low, high):
    """At the one point where the programs may have no value: this algebra knows points only."""
    return [bool(np.isfinite(v)) for v in fold(program, [float(POINT)], domain._Floats())]


def by_jax(program, low, high):
    return np.isfinite(as_jax(program)(jnp.array([float(POINT)]))).tolist()


def by_numpy(program, low, high):
    return np.isfinite(as_numpy(program)(np.array([[float(POINT)]]))[0]).tolist()


def by_level_1(program, low, high):
    box = [jnp.array([float((low + high) / 2)]), jnp.array([float((high - low) / 2)])]
    return np.isfinite(rigorous_jit(_ranges(program), optimise=False)(*box)).tolist()


def _ranges(program):
    enclose = enclose_target(program, 0)
    return lambda centre, radius: enclosed_range(enclose(centre, radius)).magnitude


CLAIMS = {
    "kernel.taylor.FormAlgebra": [by_forms(0), by_forms(1), by_forms(3)],
    "axioms.jets.JetAlgebra": [by_jets],
    "axioms.derivatives.SeriesAlgebra": [by_series],
    "axioms.profile_series.SeriesAlgebra": [by_profile_series],
    "kernel.balls.ConstantAlgebra": [by_constants],
    "construct.affine_target.AffineAlgebra": [by_affine],
    "kernel.rules.NormalForms": [by_normal_forms],
    "target.build.Builder": [by_builder],
    "target.domain._Floats": [by_python],
    "target.floating._Floats": [by_jax],
    "construct.program_values._Arrays": [by_numpy],
    "enclose.target.TargetForm": [by_level_1],
    "target.pointwise.PointwiseAlgebra": [by_jax, by_numpy, by_level_1],
}
AT_POINTS = {by_python, by_jax, by_numpy}  # float64 has no pole of tan
REASONS = tuple(singular_terms(Nodes()))
COMPILED = {by_jax: (REASONS[1:4], 1), by_level_1: (REASONS[3:4], 1)}  # compiling takes seconds: fewer outputs
READERS = sorted({claims for entry in CLAIMS.values() for claims in entry}, key=lambda c: c.__name__)


def test_every_algebra_of_the_source_is_tested():
    root, algebras = Path(certiformer.__file__).parent, set()
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not any(getattr(b, "id", "") == "Protocol" for b in node.bases):
                names = {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
                names |= {t.id for part in node.body if isinstance(part, ast.Assign) for t in part.targets}
                if {"constant", "compare"} <= names:
                    algebras.add(".".join([*path.relative_to(root).with_suffix("").parts, node.name]))
    assert algebras == set(CLAIMS)


def test_nothing_but_the_fold_runs_an_algebra():
    """`where` of the language is read in one place: no other module calls `compare` or `select` of an algebra."""
    root = Path(certiformer.__file__).parent
    callers = {p.relative_to(root).as_posix() for p in root.rglob("*.py") if "algebra.compare(" in p.read_text()}
    assert callers == {"kernel/programs.py"}


# The tests


def reasons_for(claims) -> tuple[tuple[str, ...], int]:
    """The singular terms to try in an algebra, and in how many ways to lose them."""
    return COMPILED.get(claims, (REASONS[:-1] if claims in AT_POINTS else REASONS, 5))


def wrong_claims(claims) -> list[str]:
    """The outputs without a value at POINT that are claimed on a box with that point."""
    program, names = singular_program(*reasons_for(claims))
    assert not any(has_value(program))
    boxes = BOXES[:1] if claims in AT_POINTS or claims in (by_builder, by_affine, by_level_1) else BOXES
    return [
        name for low, high in boxes for name, claimed in zip(names, claims(program, low, high), strict=True) if claimed
    ]


@pytest.mark.parametrize("claims", READERS)
def test_no_algebra_gives_a_value_where_there_is_none(claims):
    assert wrong_claims(claims) == []


@pytest.mark.parametrize("claims", [c for c in READERS if c not in (by_affine, by_normal_forms)])
def test_the_branch_that_is_not_taken_needs_no_value(claims):
    program = regular_program(reasons_for(claims)[0])
    assert all(has_value(program))
    assert all(claims(program, *BOXES[0]))


def test_a_constant_without_a_value_in_the_other_branch_leaves_a_target_affine():
    build = Nodes()
    none = build.put("log", build.put("sub", build.put("const", "e"), build.put("const", "pi")))
    chosen = build.put("where", "lt", build.number(1), build.number(2), 0, none)
    lost = build.put("where", "lt", build.put("pow", none, 0), build.number(2), 0, 0)
    assert by_affine(build.program(chosen, lost), *BOXES[0]) == [True, False]


@pytest.mark.parametrize("claims", [c for c in READERS if c not in (by_level_1, by_jax)])
def test_no_algebra_gives_a_value_to_a_random_program_without_one(claims):
    rng, seen = random.Random(5), 0
    for _ in range(400):
        program = random_raw_program(rng)
        if exact(program.select(0), [POINT]) == [None]:
            seen += 1
            assert not claims(program, *BOXES[0])[0], program
    assert seen > 100


@pytest.mark.parametrize("claims", [by_forms(1), by_jets, by_series, by_constants, by_python])
def test_the_test_sees_operations_that_are_not_lifted(claims, monkeypatch):
    monkeypatch.setattr(ir, "_lifted", lambda algebra, operation, *arguments: operation(*arguments))
    assert any("pow 0" in name for name in wrong_claims(claims))


@pytest.mark.parametrize("claims", [by_forms(1), by_constants, by_jets, by_python])
def test_the_test_sees_a_where_that_forgets_its_condition(claims, monkeypatch):
    def forgetful(algebra, comparison, a, b, x, y):
        condition = algebra.compare(comparison, a, b)
        if condition is True or condition is False:
            return x if condition else y
        return algebra.select(condition, x, y)

    monkeypatch.setattr(ir, "_where", forgetful)
    assert any("lt left" in name for name in wrong_claims(claims))


@pytest.mark.parametrize("claims", [by_numpy, by_jax])
@pytest.mark.parametrize("name", ["pow", "compare"])
def test_the_test_sees_arrays_that_forget_what_is_missing(claims, name, monkeypatch):
    careful = getattr(pointwise.PointwiseAlgebra, name)
    monkeypatch.setattr(
        pointwise.PointwiseAlgebra, name, lambda self, *parts: careful(self, *parts)._replace(missing=False)
    )
    assert any(("pow 0" if name == "pow" else "lt left") in label for label in wrong_claims(claims))


def split_values(program: Program, point: list[Fraction]) -> list[bool] | None:
    """Whether all terms have a value: of the sum by variables, and of the sum by directions."""
    parts, ridges = additive_split(program), ridge_split(program)
    if parts is None or ridges is None:
        return None
    by_variables = [has_value(part, *(point[i] for i in group))[0] for group, part in parts]
    along = [sum((c * x for c, x in zip(d, point, strict=True)), Fraction(0)) for d, _ in ridges.ridges]
    by_directions = [has_value(g, s)[0] for s, (_, g) in zip(along, ridges.ridges, strict=True)]
    return [all(by_variables), all(by_directions)]


def test_a_sum_that_is_split_has_no_value_where_it_had_none():
    build = Nodes(inputs=2)
    zero, seven = build.number(0), build.number(7)
    for term in singular_terms(build).values():
        lost = [
            build.put("mul", zero, term),
            build.put("sub", term, term),
            build.put("div", build.put("mul", term, zero), seven),
            build.put("pow", term, 0),
        ]
        for node in lost:
            program = build.program(build.put("sub", build.put("sin", 1), node))
            assert has_value(program, POINT, Fraction(2)) == [False]
            assert split_values(program, [POINT, Fraction(2)]) == [False, False]
