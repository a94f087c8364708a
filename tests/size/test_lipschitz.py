"""`certiformer size --class lipschitz`: both bounds against what is built, budgets, tables and pictures."""

from __future__ import annotations

import json
from fractions import Fraction
from xml.etree import ElementTree

import pytest

from certiformer.cli.main import main
from certiformer.construct.max_norm_prototypes import plan
from certiformer.construct.method import Task
from certiformer.errors import BadInput
from certiformer.sizes import Budget, Statement, make_class, size, sweep
from certiformer.target import Target, parse_domain, parse_formula
from certiformer.theorem import find

ISSUE = ["size", "--class", "lipschitz", "--constant", "1", "--dimension", "4", "--eps", "0.01", "--json"]


def statement(**parameters) -> Statement:
    found = size("lipschitz", **parameters)
    assert isinstance(found, Statement)
    return found


def test_the_example_of_the_issue(capsys):
    assert main(ISSUE) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["upper"]["weights"] == 51**4 * 6 + 23 and found["lower"]["bits"] == 49**4 == 5_764_801
    assert found["gap"]["values"] == "1.174" and found["buildable"] is False
    assert found["lower"]["weights"] == 90_076 and Fraction(found["gap"]["bits"]) < 8


def test_every_theorem_exists(capsys):
    found = statement(constant=1, dimension=2, eps="0.1")
    for theorem in (*found.upper.theorems, *found.lower.theorems):
        assert find(theorem).status in ("tested", "checked")


@pytest.mark.parametrize(
    ("formula", "dimension", "epsilon"),
    [("abs(x1-1/3)", 1, "0.01"), ("max(x1, x2)", 2, "0.05"), ("x1*x2*x3/3", 3, "0.1")],
)
def test_what_build_makes_is_not_larger(formula, dimension, epsilon):
    found = statement(constant=1, dimension=dimension, eps=epsilon)
    target = Target(formula, parse_formula(formula, dimension), parse_domain(f"[0,1]^{dimension}"))
    made = plan(Task.of(target, Fraction(epsilon)))
    assert made.realise().model.nonzero_count() <= found.upper.weights
    assert made.grid.size <= found.upper.values and found.upper.buildable


@pytest.mark.parametrize("dimension", [1, 2, 3, 4])
def test_the_gap_is_tight_in_numbers_and_bounded_in_bits(dimension):
    """The statement of tightness, in figures: the ratio falls towards 1, the bits stay within a factor."""
    gaps = [statement(constant=1, dimension=dimension, eps=eps).gap() for eps in ("0.1", "0.01", "0.001")]
    values = [gap["values"] for gap in gaps]
    assert values == sorted(values, reverse=True) and values[-1] < Fraction(104, 100)
    assert gaps[-1]["bits"] < 7 and all(gap["bits"] >= 1 for gap in gaps)


def test_a_budget_buys_what_the_statement_says_and_no_more():
    found = size("lipschitz", constant=1, dimension=2, weights=10_000)
    assert isinstance(found, Budget) and isinstance(found.reached, Fraction)
    assert found.statement.upper.weights <= 10_000
    slightly_better = size("lipschitz", constant=1, dimension=2, eps=found.reached * Fraction(95, 100))
    assert isinstance(slightly_better, Statement) and slightly_better.upper.weights > 10_000
    excluded = size("lipschitz", constant=1, dimension=2, eps=found.excluded)
    assert isinstance(excluded, Statement) and excluded.lower_weights > 10_000
    with pytest.raises(BadInput, match="fewer than the construction"):
        size("lipschitz", constant=1, dimension=2, weights=3)


def test_a_coarse_epsilon_needs_one_number_and_the_lower_bound_is_silent():
    found = statement(constant=1, dimension=3, eps="0.5")
    assert (found.upper.values, found.upper.bits, found.lower.bits) == (1, 0, 0)
    assert set(found.gap().values()) == {None}


def test_a_table_and_its_picture(tmp_path, capsys):
    place = tmp_path / "size.svg"
    arguments = ["size", "--class", "lipschitz", "--constant", "1", "--dimension", "2", "--over", "eps"]
    arguments += ["--values", "0.3,0.1,0.01", "--picture", str(place)]
    assert main(arguments) == 0
    assert "2,601" in capsys.readouterr().out
    drawn = ElementTree.fromstring(place.read_text())
    assert len([part for part in drawn.iter() if part.tag.endswith("polyline")]) == 3
    assert main(arguments) == 2 and "--force" in capsys.readouterr().err
    over = sweep(make_class("lipschitz", {"constant": "1", "dimension": 1}), "dimension", ["1", "3"], Fraction(1, 10))
    assert [each.lower.bits for each in over] == [4, 64]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--class", "lipschitz", "--eps", "0.1"], "needs --constant and --dimension"),
        (["--class", "holes", "--eps", "0.1"], "--class is one of"),
        (["--class", "lipschitz", "--constant", "0", "--dimension", "1", "--eps", "0.1"], "--constant"),
        (["--class", "lipschitz", "--constant", "1", "--dimension", "0", "--eps", "0.1"], "--dimension is a whole number"),
        (["--class", "lipschitz", "--constant", "1", "--dimension", "1", "--eps", "nan"], "--eps"),
        (["--class", "lipschitz", "--constant", "1", "--dimension", "1"], "needs --eps or --weights"),
        (["--class", "lipschitz", "--constant", "1", "--dimension", "1", "--weights", "x"], "--weights"),
        (["--class", "lipschitz", "--constant", "1", "--dimension", "1", "--eps", "1", "--over", "mass", "--values", "1"],
         "--over is one of"),
        (["--class", "lipschitz", "--constant", "1", "--dimension", "1", "--eps", "1", "--values", "1"], "--over"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_sentence(arguments, sentence, capsys):
    assert main(["size", *arguments]) == 2
    said = capsys.readouterr().err.strip()
    assert sentence in said and len(said.split("\n")) == 1
