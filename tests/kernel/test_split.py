"""Sums by normal forms: what is equal as written is seen, and nothing that differs in a value or in where it has one."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from certiformer.kernel.programs import Program
from certiformer.kernel.rules import is_sum
from certiformer.target import Builder, additive_split, parse_formula, ridge_split

HALVES = [[1, 0]], [[0, 1]]
SUMS = [
    ("sin(x1) + x2**2", "sin(x1)", "x1**2", ["0", "0"]),
    ("(sin(x1) - x2*3 + 5)/2", "0.5*sin(x1) + 2", "1/2 - x1*3/2", ["0", "0"]),
    ("3*x1 - x2/7 + exp(x1)", "exp(x1) + x1", "0*x1", ["2", "-1/7"]),
    ("max(x1, 2) + abs(x2)", "2 + max(x1 - 2, 0)", "max(x1, -x1)", ["0", "0"]),
    ("min(2*x1, 1) - abs(-3*x2)", "1 - max(1 - 2*x1, 0)", "3*x1 - 6*max(x1, 0)", ["0", "0"]),
    ("where(x1 < 2, x1, 1) + 1/(1 + x2**2)", "where(x1 < 2, x1, 1)", "1/(1 + x1**2)", ["0", "0"]),
    ("pi*x1 + e*exp(pi*x2)", "pi*x1", "e*exp(pi*x1)", ["0", "0"]),
]
OTHER = [
    ("sin(x1) + x2**2", "sin(x1)", "x1**2 + 1e-30", ["0", "0"]),
    ("sin(x1) + x2**2", "sin(x1)", "x1**3", ["0", "0"]),
    ("sin(x1) + x2**2", "sin(x1)", "x1**2", ["0", "1/1000000"]),
    ("sin(x1) + x2**2", "cos(x1)", "x1**2", ["0", "0"]),
    ("max(x1, 2) + abs(x2)", "2 + max(2 - x1, 0)", "max(x1, -x1)", ["0", "0"]),
    ("max(x1, 2) + abs(x2)", "min(x1, 2)", "max(x1, -x1)", ["0", "0"]),
    ("where(x1 < 2, x1, 1) + x2", "where(x1 <= 2, x1, 1)", "x1", ["0", "0"]),
    ("x1*x2", "x1", "x1", ["0", "0"]),
    ("1/x1 + x2", "1/x1 + 1/x1 - 1/(2*x1)", "x1", ["0", "0"]),
]


def two(formula: str, first: str, second: str, linear: list[str]) -> bool:
    parts = [(HALVES[0], parse_formula(first, 1)), (HALVES[1], parse_formula(second, 1))]
    return is_sum(parse_formula(formula, 2), [Fraction(x) for x in linear], parts)


@pytest.mark.parametrize(("formula", "first", "second", "linear"), SUMS)
def test_sums_are_seen_however_they_are_opened(formula, first, second, linear):
    assert two(formula, first, second, linear)


@pytest.mark.parametrize(("formula", "first", "second", "linear"), OTHER)
def test_other_sums_are_not(formula, first, second, linear):
    assert not two(formula, first, second, linear)


def program(*nodes: tuple) -> Program:
    return Program(1, nodes, (len(nodes) - 1,))


UNDEFINED = {
    "0 * log x": [("var", 0), ("const", "0"), ("log", 0), ("mul", 1, 2)],
    "log x - log x": [("var", 0), ("log", 0), ("sub", 1, 1)],
    "log x ** 0": [("var", 0), ("log", 0), ("pow", 1, 0)],
    "0 / 0": [("const", "0"), ("div", 0, 0)],
    "sqrt -1": [("const", "-1"), ("sqrt", 0)],
}


@pytest.mark.parametrize("name", UNDEFINED)
def test_a_term_without_a_value_never_drops_out(name):
    """An operation that cancels still decides where the target has a value: the parts have to contain it."""
    odd, zero = program(*UNDEFINED[name]), program(("const", "0"))
    assert is_sum(odd, [Fraction(0)], [([[1]], odd)])
    assert not is_sum(odd, [Fraction(0)], [([[1]], zero)])
    assert not is_sum(zero, [Fraction(0)], [([[1]], odd)])
    bent = program(*odd.nodes, ("max", len(odd.nodes) - 1, len(odd.nodes) - 1))
    assert not is_sum(bent, [Fraction(0)], [([[1]], zero)])


def drawn(rng: random.Random, build: Builder, variables: list[int], depth: int) -> int:
    """A random expression."""
    if depth == 0:
        return rng.choice([*variables, build.rational(Fraction(rng.randint(-4, 4), rng.randint(1, 3)))])
    a, b = (drawn(rng, build, variables, depth - 1) for _ in range(2))
    name = rng.choice(["add", "sub", "mul", "max", "min", "neg", "abs", "sin", "exp", "pow"])
    if name == "pow":
        return build.pow(a, rng.randint(1, 3))
    return getattr(build, name)(a) if name in ("neg", "abs", "sin", "exp") else getattr(build, name)(a, b)


@pytest.mark.parametrize("seed", range(60))
def test_what_the_search_takes_apart_is_put_together_again(seed):
    rng, build = random.Random(seed), Builder()
    x, y = build.var(0), build.var(1)
    total = build.add(drawn(rng, build, [x], 3), build.mul(build.rational(Fraction(2, 3)), drawn(rng, build, [y], 3)))
    whole = build.program(2, [total])
    for part in additive_split(whole) or []:
        assert len(part[0]) <= 2
    groups = additive_split(whole)
    if groups is not None:
        units = [([[int(i == j) for j in range(2)] for i in variables], program) for variables, program in groups]
        assert is_sum(whole, [Fraction(0)] * 2, units)
        assert not is_sum(whole, [Fraction(1, 3), Fraction(0)], units)
    ridges = ridge_split(whole)
    if ridges is not None:
        lines = [([list(direction)], profile) for direction, profile in ridges.ridges]
        assert is_sum(whole, list(ridges.linear), lines)
        assert not is_sum(whole, list(ridges.linear), lines[1:]) or not lines
