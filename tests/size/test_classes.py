"""`certiformer size` for every class: both bounds, their theorems, budgets, and what `compile` and `build` make of them."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from certiformer.cli.main import main
from certiformer.construct.prototype_attention import configuration
from certiformer.errors import BadInput
from certiformer.sizes import CLASSES, PARAMETERS, Budget, Statement, make_class, size, sweep
from certiformer.theorem import find

REAL = {
    "lipschitz": {"constant": 1, "dimension": 2},
    "symmetric": {"constant": 1, "dimension": 3},
    "equivariant": {"constant": 1, "dimension": 3},
    "smooth": {"constant": 1, "dimension": 2, "smoothness": 4},
    "analytic": {"constant": 1, "dimension": 2, "radius": "1/2"},
    "ridges": {"constant": 1, "dimension": 3, "ridges": 3},
}
EXACT = {
    "circuits": {"inputs": 20, "depth": 6},
    "languages": {"states": 12, "symbols": 2, "length": 100},
    "programs": {"units": 63, "symbols": 8, "length": 16},
}
EVERY = {**REAL, **EXACT}
EPSILON = Fraction(1, 1000)


def asked(name: str, **more) -> Statement:
    found = size(name, **EVERY[name], **({"eps": EPSILON} if name in REAL else {}), **more)
    assert isinstance(found, Statement)
    return found


def test_every_class_is_here_and_every_parameter_has_a_flag(capsys):
    assert set(EVERY) == set(CLASSES)
    assert main(["size", "--help"]) == 0
    said = capsys.readouterr().out
    assert all(f"--{name}" in said for name in PARAMETERS) and all(name in said for name in CLASSES)


@pytest.mark.parametrize("name", list(EVERY))
def test_upper_bounds_are_above_lower_bounds_and_theorems_exist(name):
    found = asked(name)
    assert found.upper.bits >= found.lower.bits > 0 and found.upper.weights >= found.lower_weights
    assert found.lower.values is None or found.upper.values >= found.lower.values > 0
    assert {"upper", "lower", "gap", "theorem", "buildable"} <= set(found.to_json()) and found.distance
    for theorem in (*found.upper.theorems, *found.lower.theorems):
        assert find(theorem).status in ("tested", "checked")


@pytest.mark.parametrize("name", list(REAL))
def test_smaller_epsilon_needs_more(name):
    coarse, fine = sweep(make_class(name, EVERY[name]), "eps", ["0.01", "0.001"], Fraction(0))
    assert fine.upper.weights > coarse.upper.weights and fine.lower.bits > coarse.lower.bits


@pytest.mark.parametrize("name", list(EVERY))
def test_a_budget_buys_what_the_statement_says_and_no_more(name):
    kind = CLASSES[name]
    rest = {key: value for key, value in EVERY[name].items() if key != kind.axis}
    found = size(name, weights=5_000, **rest)
    assert isinstance(found, Budget) and found.statement.upper.weights <= 5_000
    if name == "analytic":
        assert found.excluded is None  # it is below 1e-30: bits grow like a power of log(1/eps)
    elif name in REAL:
        excluded = size(name, eps=found.excluded, **rest)
        assert isinstance(excluded, Statement) and excluded.lower_weights > 5_000
    else:
        more = size(name, **rest, **{kind.axis: int(found.reached) + 1})
        assert isinstance(more, Statement) and more.upper.weights > 5_000
        if found.excluded is not None:
            beyond = size(name, **rest, **{kind.axis: int(found.excluded)})
            assert isinstance(beyond, Statement) and beyond.lower.bits > 5_000 * 64


def test_an_axis_that_ends_excludes_nothing():
    """Negative control: the largest depth that is asked about is not a bound that anybody has proved."""
    found = size("circuits", inputs=5, weights=10**6)
    assert isinstance(found, Budget) and found.excluded is None and found.reached == 40


def test_symmetry_saves_about_the_factorial():
    free, symmetric, equivariant = (
        size(name, constant=1, dimension=5, eps="0.01") for name in ("lipschitz", "symmetric", "equivariant")
    )
    assert isinstance(free, Statement) and isinstance(symmetric, Statement) and isinstance(equivariant, Statement)
    assert (
        80 < free.upper.values / symmetric.upper.values < 120 and 20 < free.upper.values / equivariant.upper.values < 24
    )
    assert symmetric.gap()["values"] < Fraction(13, 10)  # type: ignore[operator]
    assert equivariant.upper.width == configuration(1, 5, 5).width and free.upper.width == configuration(1, 5, 1).width


def test_exact_classes_take_no_epsilon_and_say_so(capsys):
    assert main(["size", "--class", "circuits", "--inputs", "3", "--depth", "2", "--eps", "0.1"]) == 2
    assert "exact" in capsys.readouterr().err
    assert main(["size", "--class", "circuits", "--inputs", "3", "--states", "2"]) == 2
    assert "has no --states" in capsys.readouterr().err


def test_a_table_over_states_and_a_budget_on_the_command_line(capsys):
    arguments = ["size", "--class", "languages", "--symbols", "2", "--length", "200", "--json"]
    assert main([*arguments, "--over", "states", "--values", "10,50"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["lower"]["bits"] for each in found["statements"]] == [33, 282]
    assert main([*arguments, "--weights", "4000"]) == 0
    assert json.loads(capsys.readouterr().out)["budget"]["axis"] == "states"


def test_what_is_out_of_range_is_one_sentence():
    for name, change in (("smooth", {"dimension": 9}), ("circuits", {"depth": 41}), ("analytic", {"radius": "0"})):
        with pytest.raises(BadInput, match=f"--{next(iter(change))}"):
            make_class(name, {**EVERY[name], **change})
