"""Honest runs whose target is replaced by one that has no value on part of the box: every rule refuses them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from certiformer.cli.main import main
from certiformer.construct import (
    korovkin,
    ridge_temperatures,
    shifted_grids,
    squares_rbf,
    temperatures,
    voronoi,
)
from certiformer.construct.method import Task
from certiformer.kernel import programs as ir
from certiformer.target import Program, Target, parse_epsilon
from negative.forge import Run, boxes_run, judged, split_run, target_of

METHODS = (korovkin, ridge_temperatures, shifted_grids, squares_rbf, temperatures, voronoi)


@cache
def theorem_run(method) -> Run:
    """A small transformer of a construction with the theorem node that proves it."""
    target = (
        target_of("sin(x1)/2 + x2/4", "[-1,1]^2") if method is ridge_temperatures else target_of("sin(x1)", "[-1,1]")
    )
    epsilon = "0.1" if method is squares_rbf else "0.4"
    built = method.plan(Task.of(target, parse_epsilon(epsilon))).realise()
    return Run(built.model, target, epsilon, built.proof)


def box_run() -> Run:
    return boxes_run("sin(x1)", "[-1,1]", "0.4", 6, 2)


def axes_run() -> Run:
    return split_run("sin(x1) + x2/4", "[-1,1]^2", "0.4", 6, 2)


RUNS = {
    **{m.__name__.rpartition(".")[2]: lambda m=m: theorem_run(m) for m in METHODS},
    "boxes": box_run,
    "split": axes_run,
}


# What is asked beside the target: it changes no value, and has none itself on a part of the box, or at one point of it


def log_to_the_0(put, x):
    return put("pow", put("log", x), 0)


def pole_to_the_0(put, x):
    return put("pow", put("div", put("const", "1"), put("sub", x, put("const", "1/2"))), 0)


def root_times_0(put, x):
    return put("mul", put("sqrt", x), put("const", "0"))


def log_minus_itself(put, x):
    node = put("log", x)
    return put("sub", node, node)


def no_question(put, x):
    return put("const", "1")


QUESTIONS = (log_to_the_0, pole_to_the_0, root_times_0, log_minus_itself)


def asked(target: Target, question, beside: str) -> Target:
    """The target behind a comparison that always holds where it has a value, or plus 0 times the question."""
    nodes, program = list(target.program.nodes), target.program

    def put(*node) -> int:
        nodes.append(node)
        return len(nodes) - 1

    value, outputs = question(put, nodes.index(("var", 0))), []
    for output in program.outputs:
        if beside == "condition":
            outputs.append(put("where", "lt", value, put("const", "2"), output, put("const", "0")))
        elif beside == "term":
            outputs.append(put("add", output, put("mul", value, put("const", "0"))))
        else:  # a branch that is not taken
            other = put("where", "lt", put("const", "3"), put("const", "2"), value, output)
            outputs.append(put("where", "lt", put("const", "2"), put("const", "3"), output, other))
    return replace(target, program=Program(program.inputs, tuple(nodes), tuple(outputs)))


@pytest.mark.parametrize("name", sorted(RUNS))
def test_a_target_without_a_value_is_refused_by_every_rule(name, tmp_path):
    run = RUNS[name]()
    assert judged(run.write(tmp_path / "honest")).accepted
    for question in QUESTIONS:
        for beside in ("condition", "term"):
            forged = replace(run, target=asked(run.target, question, beside))
            folder = forged.write(tmp_path / f"{question.__name__}-{beside}")
            assert not judged(folder).accepted, (question, beside)


@pytest.mark.parametrize("name", sorted(set(RUNS) - {"split", "ridge_temperatures"}))
def test_a_question_that_has_a_value_or_is_not_asked_changes_nothing(name, tmp_path):
    run = RUNS[name]()
    for question, beside in ((no_question, "condition"), (log_to_the_0, "branch")):
        run_folder = replace(run, target=asked(run.target, question, beside)).write(tmp_path / beside)
        assert judged(run_folder).accepted, (question, beside)


@pytest.mark.parametrize("name", ["korovkin", "shifted_grids", "temperatures", "voronoi"])
def test_the_test_sees_a_fold_that_forgets(name, tmp_path, monkeypatch):
    """As if `pow(a, 0)` were 1 for every a: the forgery is then accepted."""
    lifted = ir._lifted

    def forgetful(algebra, operation, *arguments):
        return lifted(algebra, operation, *arguments) if len(arguments) > 1 else operation(*arguments)

    monkeypatch.setattr(ir, "_lifted", forgetful)
    run = RUNS[name]()
    forged = replace(run, target=asked(run.target, pole_to_the_0, "condition"))
    assert judged(forged.write(tmp_path)).accepted


def test_build_calls_it_invalid(tmp_path, capsys):
    arguments = ["build", "where(log(x1)**0 < 2, sin(x1), 0)", "--on", "[-1,1]", "--eps", "0.1"]
    assert main([*arguments, "--out", str(tmp_path / "run")]) == 2
    assert "invalid" in capsys.readouterr().out
    assert not (tmp_path / "run").exists()
