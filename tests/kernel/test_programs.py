"""The closed language: what is a program and what is refused."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from certiformer.errors import BadInput
from certiformer.kernel.programs import MAX_CONSTANT_BITS, MAX_INPUTS, MAX_NODES, MAX_POWER
from certiformer.target import Program, parse_formula
from target.oracle import exact

GOOD = {"inputs": 2, "nodes": [["var", 0], ["var", 1], ["pow", 0, 3], ["mul", 1, 2]], "outputs": [3]}


def test_json_round_trip():
    program = parse_formula("[where(x1 < 1/3, sin(x1)**2, pi), e*x2]")
    assert Program.from_json(json.loads(json.dumps(program.to_json()))) == program


def test_select_keeps_only_what_is_needed():
    program = parse_formula("[x1*x2 + 1, x2**3, 5]")
    assert program.select(1) == Program(2, (("var", 1), ("pow", 0, 3)), (1,))
    assert exact(program.select(0), (2, 3)) == [Fraction(7)]


@pytest.mark.parametrize(
    "node",
    [
        [],
        ["var"],
        ["var", 2],
        ["var", -1],
        ["var", True],
        ["var", 0.0],
        ["const", 1],
        ["const", "0.1"],
        ["const", "2/4"],
        ["const", "1/0"],
        ["const", "1/1"],
        ["const", "-0"],
        ["const", "01"],
        ["const", "+1"],
        ["const", " 1"],
        ["const", "1_0"],
        ["const", "١"],
        ["const", "inf"],
        ["const", "tau"],
        ["const", "9" * 1300],
        ["const", "1/" + "9" * 1300],
        ["const", str(2**MAX_CONSTANT_BITS)],
        ["pow", 0, -1],
        ["pow", 0, MAX_POWER + 1],
        ["pow", 0, 0.5],
        ["pow", 4, 2],
        ["add", 0],
        ["add", 0, 4],
        ["add", 0, -1],
        ["sin", 0, 1],
        ["floor", 0],
        ["where", "eq", 0, 1, 0, 1],
        ["where", "lt", 0, 1, 0],
        ["where", "lt", 0, 1, 0, 4],
        [["sin"], 0],
        [None, 0],
    ],
)
def test_a_node_outside_the_table_is_refused(node):
    with pytest.raises(BadInput, match="operation 4 "):
        Program.from_json({**GOOD, "nodes": [*GOOD["nodes"], node]})


def test_the_largest_constant_is_accepted():
    text = str(2**MAX_CONSTANT_BITS - 1)
    assert Program(1, (("const", text),), (0,)).nodes == (("const", text),)


@pytest.mark.parametrize(
    "change",
    [
        {"inputs": 0},
        {"inputs": MAX_INPUTS + 1},
        {"inputs": "2"},
        {"inputs": 2.0},
        {"inputs": None},
        {"outputs": []},
        {"outputs": [4]},
        {"outputs": [-1]},
        {"outputs": [True]},
        {"outputs": {"0": 3}},
        {"nodes": {"a": 1}},
        {"nodes": ["var"]},
        {"nodes": [["var", 0]] * (MAX_NODES + 1)},
        {"extra": 1},
    ],
)
def test_a_foreign_program_is_refused(change):
    Program.from_json(GOOD)  # the unchanged one is fine
    with pytest.raises(BadInput):
        Program.from_json({**GOOD, **change})


@pytest.mark.parametrize("data", [None, [], "program", {}, {"inputs": 1, "nodes": []}])
def test_data_of_another_shape_is_refused(data):
    with pytest.raises(BadInput):
        Program.from_json(data)
