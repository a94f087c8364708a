"""The builder: exact, without duplicates, and never changing where a value is singular."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certiformer.errors import BadInput
from certiformer.kernel.programs import MAX_CONSTANT_BITS, MAX_NODES, MAX_POWER
from certiformer.target import Builder, Program, fold, parse_formula
from target.oracle import balls, exact, points

_RATIONAL_OPERATIONS = ("neg", "abs", "add", "sub", "mul", "div", "min", "max")


@st.composite
def raw_programs(draw):
    """Programs of rational operations as a hostile file could hold them: nothing simplified."""
    nodes = [
        ("var", 0),
        ("var", 1),
        *(("const", str(c)) for c in draw(st.lists(st.integers(-2, 2), min_size=1, max_size=3))),
    ]
    for _ in range(draw(st.integers(1, 12))):
        place = st.integers(0, len(nodes) - 1)
        name = draw(st.sampled_from([*_RATIONAL_OPERATIONS, "pow", "where"]))
        if name == "pow":
            nodes.append(("pow", draw(place), draw(st.integers(0, 3))))
        elif name == "where":
            nodes.append(("where", draw(st.sampled_from(["lt", "le"])), *(draw(place) for _ in range(4))))
        else:
            nodes.append((name, *(draw(place) for _ in range(1 if name in ("neg", "abs") else 2))))
    return Program(2, tuple(nodes), (len(nodes) - 1,))


@given(raw_programs(), st.lists(points, min_size=1, max_size=4))
@settings(max_examples=300, deadline=None)
def test_simplification_keeps_every_value_and_every_singular_point(program, many):
    build = Builder()
    try:
        outputs = fold(program, [build.var(0), build.var(1)], build)
    except BadInput as error:
        assert "zero" in str(error)
        return
    simplified = build.program(2, outputs)
    assert len(simplified.nodes) <= len(program.nodes) + 8  # a power of 0 becomes three nodes
    for point in many:
        assert exact(simplified, point) == exact(program, point)


@given(raw_programs(), points)
@settings(max_examples=200, deadline=None)
def test_total_means_no_singular_point(program, point):
    build = Builder()
    try:
        (output,) = fold(program, [build.var(0), build.var(1)], build)
    except BadInput:
        return
    if build.total(output):
        assert exact(program, point) != [None]


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("x1*1", "x1"),
        ("1*x1", "x1"),
        ("x1+0", "x1"),
        ("0-x1", "-x1"),
        ("-(-x1)", "x1"),
        ("x1/1", "x1"),
        ("x1/-1", "-x1"),
        ("-1*x1", "-x1"),
        ("x1**1", "x1"),
        ("x1**0", "1"),
        ("0*x1", "0"),
        ("x1*x1*x1**2", "x1**4"),
        ("(x1**2)**3", "x1**6"),
        ("x1-x1", "0"),
        ("x1-x1+x2", "x2"),
        ("abs(-x1)", "abs(x1)"),
        ("abs(abs(x1))", "abs(x1)"),
        ("sqrt(x1**2)", "abs(x1)"),
        ("sqrt(4/9)", "2/3"),
        ("min(x1,x1)", "x1"),
        ("max(1,2,-3)", "2"),
        ("where(1<2,x1,1/x2)", "x1"),
        ("where(x1<x1,1,2)", "2"),
        ("where(x1<=x1,1,2)", "1"),
        ("where(x1<x2,3,3)", "3"),
        ("sin(0)+cos(0)+exp(0)+log(1)+log(e)", "3"),
        ("exp(1)", "e"),
        ("e**x1", "exp(x1)"),
        ("1**x1", "1"),
        ("0.1+0.2", "3/10"),
        ("2**10/3", "1024/3"),
        ("x1**1.5", "sqrt(x1)**3"),
        ("x1**-0.5", "1/sqrt(x1)"),
    ],
)
def test_light_simplification(text, same):
    assert parse_formula(text, 2) == parse_formula(same, 2)


@pytest.mark.parametrize(
    "text",
    ["0*log(x1)", "0/x1", "(1/x1)**0", "1/x1-1/x1", "x1/x1", "where(1/x1<1/x1,1,2)", "where(1/x1<2,3,3)", "0*tan(x1)"],
)
def test_what_could_be_singular_is_not_simplified_away(text):
    program = parse_formula(text)
    assert any(node == ("var", 0) for node in program.nodes)
    if "tan" not in text:  # tan has no pole at a rational point
        assert not balls(program, [0])[0].is_finite()


def test_conditions_mean_what_they_say():
    """All conditions of depth two over x1 < 0 and x2 <= 0, at points of every combination."""
    leaves = {
        ("lt", 0, 2): lambda p: p[0] < 0,
        ("le", 1, 2): lambda p: p[1] <= 0,
        True: lambda p: True,
        False: lambda p: False,
    }
    for (first, f), (second, g) in product(leaves.items(), repeat=2):
        cases = {
            first: f,
            ("not", first): lambda p, f=f: not f(p),
            ("and", first, second): lambda p, f=f, g=g: f(p) and g(p),
            ("or", first, second): lambda p, f=f, g=g: f(p) or g(p),
            ("and", ("not", first), second): lambda p, f=f, g=g: not f(p) and g(p),
            ("not", ("or", first, second, first)): lambda p, f=f, g=g: not (f(p) or g(p)),
        }
        for condition, meant in cases.items():
            build = Builder()
            build.var(0), build.var(1), build.rational(0)
            program = build.program(2, [build.select(condition, build.rational(7), build.rational(5))])
            for point in product((-1, 0, 1), repeat=2):
                assert exact(program, point) == [7 if meant(point) else 5], condition


def test_a_condition_on_being_defined_keeps_the_singular_points():
    build = Builder()
    inverse = build.div(build.rational(1), build.var(0))
    program = build.program(1, [build.select(("defined", inverse), build.rational(7), build.rational(5))])
    assert exact(program, [2]) == [7] and exact(program, [0]) == [None]
    negated = build.program(1, [build.select(("not", ("defined", inverse)), build.rational(7), build.rational(5))])
    assert exact(negated, [2]) == [5] and exact(negated, [0]) == [None]


def test_equal_expressions_share_one_node():
    program = parse_formula("sin(x1*x2) + cos(x1*x2) + (x1*x2)/2")
    assert sum(node[0] == "mul" for node in program.nodes) == 1


def test_constants_that_would_grow_too_large_stay_unfolded_but_exact():
    program = parse_formula("(10**1000)**2/10**1000/10**1000")
    assert exact(program, [0]) == [Fraction(1)]
    assert all(len(node[1]) <= MAX_CONSTANT_BITS for node in program.nodes if node[0] == "const")


def test_limits():
    build = Builder()
    with pytest.raises(BadInput, match="binary digits"):
        build.rational(2**MAX_CONSTANT_BITS)
    with pytest.raises(BadInput, match="larger than"):
        build.pow(build.var(0), MAX_POWER + 1)
    with pytest.raises(BadInput, match="variables"):
        build.var(10**6)
    node = build.var(0)
    with pytest.raises(BadInput, match="operations"):
        for _ in range(MAX_NODES + 1):
            node = build.sin(node)


@pytest.mark.parametrize(
    "refused", ["1/0", "x1/0", "0**-1", "sqrt(-1)", "log(0)", "log(-2)", "(-8)**(1/3)", "0**x1", "x1/(1-1)"]
)
def test_constants_without_a_value_are_refused(refused):
    with pytest.raises(BadInput, match="zero|real number"):
        parse_formula(refused)
