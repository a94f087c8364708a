"""Reading sums of ridge functions: the parts add up exactly, directions are canonical, anything else is None."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from certiformer.target import formula, parse_formula, ridge_split
from target.reading import read


class Floats:
    """Evaluation in Python numbers: Fractions stay exact under + - * / max min abs."""

    def constant(self, text):
        return {"pi": math.pi, "e": math.e}.get(text) or Fraction(text)

    def __getattr__(self, name):
        table = {
            "neg": lambda a: -a,
            "add": lambda a, b: a + b,
            "sub": lambda a, b: a - b,
            "mul": lambda a, b: a * b,
            "div": lambda a, b: a / b,
            "max": max,
            "min": min,
            "abs": abs,
            "pow": lambda a, n: a**n,
            "where": lambda c, a, b, x, y: x if (a < b if c == "lt" else a <= b) else y,
        }
        return table[name] if name in table else getattr(math, name)


EXACT = [
    ("x1", 1, 0),
    ("max(x1, x2)", 2, 1),
    ("min(2*x1 - 1, x2/3) * 5", 2, 1),
    ("abs(x1 - x2) + abs(x2 - x1)", 2, 1),
    ("(x1 + 2*x2)**3 - x3 + (x3 - x1)**2", 3, 2),
    ("max(x1, x2) + min(x1, x2)", 2, 1),
    ("-(x1 + x2)**2/4 + (x1 - x2)**2/4 + 1/7", 2, 2),
    ("max(x1 + x2, 1) * max(x1 + x2, 0)", 2, 1),
    ("where(x1 - x2 < 0, x1 - x2, 0) + x1", 2, 1),
    ("7/3", 2, 1),
]


@pytest.mark.parametrize(("text", "inputs", "directions"), EXACT)
def test_the_parts_add_up_exactly(text, inputs, directions):
    program = parse_formula(text, inputs)
    found = ridge_split(program)
    assert len(found.ridges) == directions
    for k in range(40):
        point = [Fraction((7 * k + 13 * i) % 31 - 15, 4 + i) for i in range(inputs)]
        total = sum((c * x for c, x in zip(found.linear, point, strict=True)), Fraction(0))
        for direction, profile in found.ridges:
            s = sum((p * x for p, x in zip(direction, point, strict=True)), Fraction(0))
            total += read(profile, [s], Floats())[0]
        assert total == read(program, point, Floats())[0]


def test_directions_are_primitive_and_point_the_same_way():
    found = ridge_split(parse_formula("sin(2*x1 - 4*x2) + cos(3*x2 - 1.5*x1 + 1) + exp(x3/7)", 3))
    assert [direction for direction, _ in found.ridges] == [(0, 0, 1), (1, -2, 0)]
    assert formula(found.ridges[1][1]) == ["sin(2*x1) + cos(-1.5*x1 + 1)"]


@pytest.mark.parametrize(
    "text",
    ["x1*x2", "max(x1, max(x2, x3))", "sin(x1*x2)", "sin(pi*x1 + x2)", "max(x1**2, x2)", "where(x1 < 0, x2, x3)"],
)
def test_what_is_not_written_as_a_sum_of_ridges_is_none(text):
    assert ridge_split(parse_formula(text, 3)) is None


def test_a_singular_term_with_coefficient_zero_stays():
    # 1/x1 - 1/x1 has no value at 0, so the profile must not become the constant 0.
    found = ridge_split(parse_formula("1/x1 - 1/x1 + sin(x2)", 2))
    profile = dict(found.ridges)[(1, 0)]
    with pytest.raises(ZeroDivisionError):
        read(profile, [Fraction(0)], Floats())


def test_every_output_is_read_by_itself():
    program = parse_formula("[x1*x2, x1 - x2]", 2)
    assert ridge_split(program, 0) is None
    assert ridge_split(program, 1).linear == (1, -1)
