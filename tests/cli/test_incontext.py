"""`compile incontext` and `run` of learners: predictions, facts, and one sentence for every mistake."""

from __future__ import annotations

import numpy as np
import pytest

HEADER = "x1,x2,y"
ROWS = ["0.1,0.5,0.3", "-0.4,0.2,-0.1", "0.9,-0.3,0.6"]


@pytest.fixture
def data(tmp_path):
    (tmp_path / "data.csv").write_text("\n".join([HEADER, *ROWS]) + "\n")
    return "data.csv"


def compiled(cli, *more: str):
    done = cli(
        "compile", "incontext", "gd", "--features", "2", "--rows", "4", "--layers", "2", "--looped", *more, "--json"
    )
    assert done.code == 0, done.err
    return done


def test_from_flags_to_predictions(cli, data):
    """One compilation of the model: compile, check, show and run, as words and as JSON."""
    facts = compiled(cli, "--out", "gd").data
    assert (facts["outcome"], facts["level"], facts["blocks"], facts["loops"]) == ("proved", 2, 1, 2)
    assert float(facts["bound"]) < 1e-12 and "exactly, in real arithmetic" in facts["sentence"]
    assert cli("check", "gd").code == 0
    assert "Rounding outside the box" in cli("show", "gd").out
    found = cli("run", "gd", "--context", data, "--query", "0.3,-0.2", "--json").data
    x, y = np.array([[0.1, 0.5], [-0.4, 0.2], [0.9, -0.3]]), np.array([0.3, -0.1, 0.6])
    weights = np.zeros(2)
    for _ in range(2):
        weights = weights + 0.5 * x.T @ (y - x @ weights) / 3
    assert found["predictions"] == [pytest.approx(weights @ [0.3, -0.2], abs=1e-15)]
    assert found["weights"] == pytest.approx(weights.tolist(), abs=1e-15)
    assert (found["rows"], found["covered"], found["remarks"]) == (3, True, [])
    words = cli("run", "gd", "--context", data, "--query", "0.3,-0.2")
    assert words.code == 0 and "the recorded claim covers this context" in words.out and "weights" in words.out
    quiet = cli("run", "gd", "--context", data, "--query", "0.3,-0.2", "--quiet")
    assert float(quiet.out) == found["predictions"][0]


def test_several_queries(cli, data, tmp_path):
    compiled(cli, "--out", "gd")
    (tmp_path / "ask.csv").write_text("x1,x2\n0.3,-0.2\n\n0,1\n")
    found = cli("run", "gd", "--context", data, "--query", "ask.csv", "--json").data
    assert len(found["predictions"]) == 2 and found["queries"][1] == [0.0, 1.0]


def test_a_context_that_is_not_covered_is_refused(cli, data):
    """Outside of the box steps may be too long, and what comes out would be no prediction."""
    compiled(cli, "--out", "gd", "--bound", "0.8")
    done = cli("run", "gd", "--context", data, "--query", "0.1,0.1")
    assert done.code == 2 and "the features reach 0.9 in size, but this learner was compiled for 0.8" in done.err
    assert done.out == ""


def test_a_claim_that_is_not_proved_covers_nothing(cli, data):
    arguments = ["--features", "2", "--rows", "4", "--layers", "2", "--looped", "--tolerance", "1e-20"]
    assert cli("compile", "incontext", "gd", *arguments, "--out", "gd").code == 3
    found = cli("run", "gd", "--context", data, "--query", "0.3,-0.2", "--json").data
    assert not found["covered"] and "is not proved: the proved bound" in found["remarks"][0]


def test_one_row_for_two_features_says_what_happens(cli, tmp_path):
    compiled(cli, "--out", "gd")
    (tmp_path / "one.csv").write_text("x1,x2,y\n0.5,0.5,1\n")
    done = cli("run", "gd", "--context", "one.csv", "--query", "1,-1")
    assert done.code == 0 and "1 row for 2 features: only the part of a query within their span counts" in done.out


@pytest.mark.parametrize(
    ("lines", "query", "message"),
    [
        (None, "1,2", "other.csv cannot be read"),
        ([], "1,2", "needs a header line"),
        ([HEADER], "1,2", "needs a header line and at least one row"),
        (ROWS, "1,2", "the first line of other.csv holds numbers"),
        ([HEADER, "1,2"], "1,2", "row 1 of other.csv has 2 fields, the header has 3"),
        ([HEADER, "1,2,nan"], "1,2", "column 'y', is nan; only finite numbers"),
        ([HEADER, ROWS[0], "inf,2,3"], "1,2", "row 2 of other.csv, column 'x1', is inf"),
        ([HEADER, "1,two,3"], "1,2", "is 'two', which is not a number"),
        ([HEADER, "1,,3"], "1,2", "column 'x2', is empty"),
        ([HEADER, "1_0,2,3"], "1,2", "is '1_0', which is not a number"),
        (["x1,y", "1,2"], "1,2", "other.csv has 2 columns, but this learner needs 3: 2 features and the answer"),
        (
            [HEADER, *ROWS, *ROWS],
            "1,2",
            "has 6 rows, but this learner was compiled for at most 4; compile with --rows 6",
        ),
        ([HEADER, "1,0.5,3", "2,0.5,4"], "1,2", "feature 2 is 0.5 in every row"),
        ([HEADER, *ROWS], "1,2,3", "the query has 3 numbers, but this learner needs 2"),
        ([HEADER, *ROWS], "1", "the query has 1 number, but this learner needs 2"),
        ([HEADER, *ROWS], "1,x", "number 2 of the query is 'x', which is not a number"),
        ([HEADER, *ROWS], "1,nan", "only finite numbers"),
        ([HEADER, *ROWS], "missing.csv", "missing.csv cannot be read"),
        ([HEADER, *ROWS], "other.csv", "other.csv has 3 columns, but a query of this learner has 2 features"),
    ],
)
def test_mistakes_are_one_sentence(cli, tmp_path, lines, query, message):
    compiled(cli, "--out", "gd")
    if lines is not None:
        (tmp_path / "other.csv").write_text("\n".join(lines) + "\n")
    done = cli("run", "gd", "--context", "other.csv", "--query", query)
    assert (done.code, done.out) == (2, "") and message in done.err and done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--query", "1,2"], "a learner needs rows and a question"),
        (["1 2", "--context", "data.csv", "--query", "1,2"], "TOKENS is not for a compiled learner"),
        (["--context", "data.csv", "--query", "1,2", "--steps", "3"], "--steps is not for a compiled learner"),
    ],
)
def test_foreign_flags_are_refused(cli, data, arguments, message):
    compiled(cli, "--out", "gd")
    done = cli("run", "gd", *arguments)
    assert done.code == 2 and message in done.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["gd", "--features", "2", "--strength", "1"], 2, "--strength is not for the learner gd"),
        (["gd", "--features", "0"], 2, "the number of features"),
        (["gd", "--features", "2", "--layers", "0"], 2, "--layers"),
        (["gd", "--features", "2", "--step", "-1"], 2, "--step is a positive number"),
        (["gd", "--features", "2", "--rows", "0"], 2, "the number of rows"),
        (["gd", "--features", "2", "--schedule", "chebyshev"], 2, "--spectrum LOW HIGH"),
        (["gd", "--features", "2", "--schedule", "whitening"], 2, "the learner ridge has it"),
        (
            ["gd", "--features", "2", "--layers", "2", "--attention", "softmax-mirror"],
            2,
            "mirrored tokens are for one step",
        ),
        (["ridge", "--features", "2"], 2, "needs --strength"),
        (["forest", "--features", "2"], 2, "forest"),
        (["gd", "--features", "2", "--tolerance", "1e-20"], 3, "above the tolerance 1e-20"),
    ],
)
def test_compile_says_what_is_wrong(cli, arguments, code, message):
    done = cli("compile", "incontext", *arguments, "--out", "made")
    assert done.code == code and message in (done.err + done.out).replace("\n           ", " ")


def test_ridge_is_certified_and_replaced_only_with_force(cli):
    arguments = ["compile", "incontext", "ridge", "--features", "3", "--strength", "0.1", "--out", "ridge"]
    done = cli(*arguments)
    assert done.code == 0 and "ridge regression of strength 0.1" in done.out and "6 blocks" in done.out
    assert cli(*arguments).code == 2
    assert cli(*arguments, "--force", "--quiet").code == 0
    assert cli("check", "ridge", "--json").data["outcome"] in ("proved", "certified")
