"""Programs as text: the parser reads the same function back."""

from __future__ import annotations

import re
import time
from fractions import Fraction

import pytest
from hypothesis import given, settings

from certiformer.errors import BadInput
from certiformer.target import Builder, Program, formula, parse_formula
from certiformer.target.tokens import MAX_TEXT
from target.oracle import exact, formulas, points


def parsed(text):
    try:
        return parse_formula(text, 2)
    except BadInput:
        return None


@given(formulas(), points)
@settings(max_examples=400, deadline=None)
def test_round_trip_of_random_formulas(pair, point):
    program = parsed(pair[0])
    if program is None:
        return
    (text,) = formula(program)
    if text.startswith("let "):
        return
    again = parse_formula(text, 2)
    assert exact(again, point) == exact(program, point) == [pair[1](point)]
    assert again == program  # not only equal in value: the same nodes


@pytest.mark.parametrize(
    "text",
    [
        "x1 - (x2 - x1)",
        "x1 - (x2 + x1)",
        "x1/(x2*x1)",
        "x1/(x2/x1)",
        "x1*(x2/x1)",
        "(-x1)**2",
        "-x1**2",
        "(x1 + x2)**3",
        "2**x1",
        "(x1**100)**100",
        "x1 - (-x2)",
        "x1*(-x2)",
        "-(x1 + x2)",
        "-(x1*x2)",
        "(-x1)*x2",
        "(-1/3)*x1",
        "x1*(-1/3)",
        "x1/(1/3)",
        "(1/3 + pi)*e",
        "x1**-2",
        "(1/3)**2*x1",
        "sqrt(1/3)",
        "x1 + 1e-30",
        "x1*123456789.125",
        "where(x1 <= -x2, -1/3, where(x2 < 0.5, tanh(x1), erf(x2)))",
        "max(min(x1, 0.1, x2), -0.25)",
        "abs(atan(x1)) - log(exp(x2))*tan(cos(sin(x1)))",
    ],
)
def test_round_trip_of_chosen_formulas(text):
    program = parse_formula(text, 2)
    assert parse_formula(formula(program)[0], 2) == program


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("0.10*x1", "0.1*x1"),
        ("x1*-0.5", "x1*(-0.5)"),
        ("x1/3+1/3", "x1/3 + 1/3"),
        ("x1*x1", "x1**2"),
        ("1e3", "1000"),
        ("1e-20", "1e-20"),
        ("(x1-x2)-x3", "x1 - x2 - x3"),
        ("where(x1>=0,x1,0)", "where(0 <= x1, x1, 0)"),
    ],
)
def test_readable_text(text, shown):
    assert formula(parse_formula(text)) == [shown]


def test_one_text_for_each_output():
    assert formula(parse_formula("[x1*x2, x1-x2, 3]")) == ["x1*x2", "x1 - x2", "3"]


def doubled(times):
    """x1 + x2 added to itself again and again: written out, the text doubles each time."""
    build = Builder()
    node = build.add(build.var(0), build.var(1))
    for _ in range(times):
        node = build.add(build.sin(node), node)
    return build.program(2, [node])


def test_what_is_too_long_is_named():
    start = time.perf_counter()
    (text,) = formula(doubled(2000))
    assert time.perf_counter() - start < 2  # written out it would have more than 2^2000 characters
    lines = text.splitlines()
    assert lines[0] == "let t1 = x1 + x2"
    assert lines[1] == "let t2 = sin(t1) + t1"
    assert lines[-1].startswith("in sin(t2000) + t2000")
    assert max(map(len, lines)) <= MAX_TEXT


def test_the_named_text_denotes_the_program():
    build = Builder()
    node = build.add(build.var(0), build.rational(Fraction(1, 2)))
    for _ in range(12):
        node = build.sub(build.mul(node, build.rational(Fraction(1, 3))), build.div(node, build.rational(7)))
    program = build.program(1, [node])
    lines = formula(program)[0].splitlines()
    assert lines[0].startswith("let ")
    values = {}
    for line in lines:  # a second reader: Python itself, on our own text, with fractions
        name, _, body = line.removeprefix("let ").partition(" = ") if line.startswith("let ") else ("", "", line[3:])
        source = "".join(f"F('{t}')" if t.replace(".", "").isdigit() else t for t in _pieces(body))
        values[name] = eval(source, {"F": Fraction, "x1": Fraction(2, 5), **values})  # noqa: S307
    assert [values[""]] == exact(program, [Fraction(2, 5)])


def _pieces(text):
    return re.findall(r"[A-Za-z]\w*|[0-9.]+|.", text)


def test_a_long_sum_is_written_out():
    program = parse_formula("sin(x1)*x2" + "+x1" * 390)
    assert parse_formula(formula(program)[0]) == program


def test_what_is_nested_too_deeply_is_named():
    build = Builder()
    node = build.var(0)
    for _ in range(101):
        node = build.sin(node)
    program = build.program(1, [node])
    assert formula(program)[0].startswith("let t1 = sin(sin(")
    assert not formula(Program(1, program.nodes, (100,)))[0].startswith("let")
