"""Sums of terms in separate variables."""

from __future__ import annotations

import time
from fractions import Fraction

import pytest
from hypothesis import given, settings

from certiformer.errors import BadInput
from certiformer.target import Builder, Program, additive_split, formula, parse_formula
from target.oracle import balls, exact, formulas, points


def shown(text, output=0):
    parts = additive_split(parse_formula(text), output)
    return None if parts is None else [(variables, formula(part)[0]) for variables, part in parts]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("sin(x1)+sin(x2)-3", [((0,), "sin(x1) - 3"), ((1,), "sin(x1)")]),
        ("3-sin(x2)-cos(x1)", [((0,), "3 - cos(x1)"), ((1,), "-sin(x1)")]),
        ("x1*x2+x3*x4", [((0, 1), "x1*x2"), ((2, 3), "x1*x2")]),
        ("x1+x2*x3+x3*x4", [((0,), "x1"), ((1, 2, 3), "x1*x2 + x2*x3")]),
        ("x4*x2+x3-(x1-x3**2)", [((0,), "-x1"), ((1, 3), "x2*x1"), ((2,), "x1 + x1**2")]),
        ("-(x1-x2)", [((0,), "-x1"), ((1,), "x1")]),
        ("(x1+x2)/2", [((0,), "0.5*x1"), ((1,), "0.5*x1")]),
        ("0.3*(sin(x1)-2*(x2+1))", [((0,), "0.3*sin(x1) - 0.6"), ((1,), "-(0.6*x1)")]),
        ("x1+x1+x2", [((0,), "2*x1"), ((1,), "x1")]),
        ("x5+x2", [((1,), "x1"), ((4,), "x1")]),
    ],
)
def test_groups(text, parts):
    assert shown(text) == parts


@pytest.mark.parametrize(
    "text", ["x1*x2", "sin(x1+x2)", "x1+x2+x1*x2", "x1**2-3", "7", "max(x1,x2)", "(x1+x2)*pi", "(x1+x2)**2"]
)
def test_what_does_not_split(text):
    assert additive_split(parse_formula(text)) is None


def test_a_chosen_output():
    assert shown("[x1*x2, x1-x2]", 0) is None
    assert shown("[x1*x2, x1-x2]", 1) == [((0,), "x1"), ((1,), "-x1")]


@given(formulas(2, 8), formulas(2, 8), points, points)
@settings(max_examples=300, deadline=None)
def test_the_parts_add_up_exactly(first, second, a, b):
    """One formula in x1, x2 plus one in x3, x4."""
    later = second[0].replace("x2", "x4").replace("x1", "x3")
    try:
        program = parse_formula(f"2*({first[0]}) - ({later})/3", 4)
    except BadInput:
        return
    parts = additive_split(program)
    if parts is None:
        return
    point = [*a, *b]
    values = [exact(part, [point[i] for i in variables])[0] for variables, part in parts]
    (whole,) = exact(program, point)
    assert (None if None in values else sum(values)) == whole
    used = [i for variables, _ in parts for i in variables]
    assert len(used) == len(set(used)) and sorted(p[0][0] for p in parts) == [p[0][0] for p in parts]
    assert all(part.inputs == len(variables) for variables, part in parts)


def test_singular_terms_stay_singular():
    """1/x1 - 1/x1 is 0 except at 0, where it has no value; dropping it would enlarge the claim."""
    program = parse_formula("1/x1 - 1/x1 + x2")
    parts = additive_split(program)
    assert parts is not None and [variables for variables, _ in parts] == [(0,), (1,)]
    assert exact(parts[0][1], [0]) == [None]
    assert exact(parts[0][1], [2]) == [Fraction(0)]


def test_named_constants_are_kept():
    parts = additive_split(parse_formula("pi + sin(x1) + e*x2"))
    assert parts is not None
    total = balls(parts[0][1], [Fraction(1, 3)])[0] + balls(parts[1][1], [Fraction(1, 5)])[0]
    assert total.overlaps(balls(parse_formula("pi + sin(x1) + e*x2"), [Fraction(1, 3), Fraction(1, 5)])[0])


def test_shared_sums_do_not_explode():
    """Each node is twice the one before; opened term by term there would be 2^3000 of them."""
    nodes = [("var", 0), ("var", 1), ("sub", 0, 1)]
    nodes += [("add", k, k) for k in range(2, 3002)]
    start = time.perf_counter()
    assert additive_split(Program(2, tuple(nodes), (len(nodes) - 1,))) is not None
    nodes += [("add", k, k) for k in range(3002, 6002)]  # now the coefficient passes the size limit of constants
    assert additive_split(Program(2, tuple(nodes), (len(nodes) - 1,))) is None
    assert time.perf_counter() - start < 5


def test_many_terms_are_linear():
    build = Builder()
    node = build.rational(0)
    for k in range(3000):
        node = build.add(node, build.sin(build.mul(build.rational(k), build.var(k % 5))))
    start = time.perf_counter()
    parts = additive_split(build.program(5, [node]))
    assert parts is not None and len(parts) == 5
    assert time.perf_counter() - start < 5
