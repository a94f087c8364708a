"""Rule *triangle*: through an intermediate program, both sides proved."""

from __future__ import annotations

import pytest

from certiformer.kernel import Refused
from certiformer.kernel.balls import working_precision
from certiformer.kernel.certificate import Boxes, Triangle
from certiformer.kernel.rules import prove
from certiformer.target import parse_formula
from kernel.test_cover import local, problem_of

working_precision()


def node(through: str, bounds=("0.3", "0.3"), total: str = "0.6", inputs: int | None = None) -> Triangle:
    sides = tuple(Boxes(bound, 4, 0, 15) for bound in bounds)
    return Triangle(total, parse_formula(through, inputs).to_json(), sides)


PROBLEM = problem_of("exp(x1)", "1 + x1", "[0,1]")  # the error is e - 2 = 0.7183


def test_the_bounds_of_both_sides_are_added():
    # P = 1 + x1 + x1^2/2 is 0.2183 from exp and 0.5 from 1 + x1: the sum 0.7183 happens to be the truth.
    upper = prove(node("1 + x1 + x1**2/2", ("0.22", "0.51"), "0.72"), PROBLEM, local)
    assert 0.71828 < upper < 0.72


@pytest.mark.parametrize(
    "wrong",
    [
        node("1 + x1 + x1**2/2", ("0.21", "0.51"), "0.72"),  # first side below its true error
        node("1 + x1 + x1**2/2", ("0.22", "0.49"), "0.72"),  # second side below its true error
        node("1 + x1 + x1**2/2", ("0.22", "0.51"), "0.717"),  # the sum does not reach the total
        node("1 + x1 + x1**2", ("0.22", "0.51"), "0.72"),  # another P
        node("where(x1 < 0.5, exp(x1), 1 + x1)", ("0.3", "0.3"), "0.6"),  # far from one side somewhere
    ],
)
def test_a_wrong_intermediate_program_is_refused(wrong):
    with pytest.raises(Refused):
        prove(wrong, PROBLEM, local)


def test_an_intermediate_program_that_is_not_defined_everywhere_is_refused():
    with pytest.raises(Refused, match="not defined"):
        prove(node("1 + x1 + 0/(x1 - 0.5)", ("5", "5"), "10"), PROBLEM, local)


@pytest.mark.parametrize("through", ["x1 + x2", "[x1, x1]", "[x1, x2]"])
def test_the_intermediate_program_must_have_the_shape_of_the_claim(through):
    with pytest.raises(Refused, match="inputs and outputs"):
        prove(node(through), PROBLEM, local)


@pytest.mark.parametrize(
    "program",
    [{}, {"inputs": 1, "nodes": [], "outputs": [0]}, {"inputs": 1, "nodes": [["eval", 0]], "outputs": [0]},
     {"inputs": "1", "nodes": [["var", 0]], "outputs": [0]}, {"inputs": 1, "nodes": [["var", 1]], "outputs": [0]}],
)  # fmt: skip
def test_what_is_no_program_is_refused(program):
    sides = (Boxes("1", 2, 0, 15), Boxes("1", 2, 0, 15))
    with pytest.raises(Refused):
        prove(Triangle("2", program, sides), PROBLEM, local)
