"""`compile incontext logistic`, `lasso` and `select`, then `run`, `check` and `show` of their folders."""

from __future__ import annotations

import numpy as np
import pytest

from certiformer import load
from certiformer.compiler.incontext.registry import module_of
from compiler.incontext.numpy_relu import run

ROWS = np.random.default_rng(0).uniform(-1, 1, (12, 2)).round(3)
LABELS = (ROWS @ [1.0, -0.5] > 0).astype(int)


def table(answers, rows=ROWS) -> str:
    lines = [",".join(map(str, [*row, answer])) for row, answer in zip(rows.tolist(), answers, strict=True)]
    return "x1,x2,y\n" + "\n".join(lines) + "\n"


@pytest.fixture
def learned(cli, tmp_path):
    """Compile a learner; the context is `data.csv`."""

    def learn(word: str, *flags: str, answers=LABELS):
        (tmp_path / "data.csv").write_text(table(answers))
        done = cli("compile", "incontext", word, "--features", "2", "--rows", "12", "--out", "run", "--json", *flags)
        assert done.code == 0 and done.data["outcome"] == "proved" and done.data["level"] == 2
        return done.data

    return learn


def by_numpy(answers, query):
    """The outputs of the folder `run` by a plain forward pass."""
    compiled = load("run").subject
    module = module_of(compiled.learner.learner)
    return run(compiled, module.points(compiled.learner, ROWS, answers, np.array([query])))[0]


def test_logistic_regression(cli, learned):
    facts = learned("logistic", "--strength", "0.1", "--layers", "20")
    assert (facts["blocks"], facts["loops"]) == (2, 20) and float(facts["bound"]) < 0.05
    done = cli("run", "run", "--context", "data.csv", "--query", "0.9,-0.9", "--json")
    assert done.code == 0 and done.data["predictions"][0] > 0.5 and done.data["labels"] == [1] and done.data["covered"]
    # float64 sums in another order, 20 steps
    assert abs(done.data["predictions"][0] - by_numpy(LABELS, [0.9, -0.9])[0]) < 1e-13
    done = cli("run", "run", "--context", "data.csv", "--query", "-0.9,0.9")
    assert done.code == 0 and "labels" in done.out and "the recorded claim covers this context" in done.out
    assert cli("check", "run").code == 0
    shown = cli("show", "run")
    assert shown.code == 0 and "for logistic regression" in " ".join(shown.out.split())


def test_selection(cli, learned):
    learned("select", "--validation", "4", "--strength", "0.1,1", "--layers", "30", answers=LABELS / 2)
    done = cli("run", "run", "--context", "data.csv", "--query", "0.5,0.5", "--json")
    assert done.code == 0 and done.data["chosen"] in (0.1, 1.0) and sum(done.data["shares"]) == 1
    outputs = [*done.data["predictions"], *done.data["shares"], *done.data["losses"]]
    assert np.abs(outputs - by_numpy(LABELS / 2, [0.5, 0.5])).max() < 1e-13


@pytest.mark.parametrize(
    "word, flags, text, reason",
    [
        ("logistic", (), table([2] * 12), "the labels of logistic regression are 0 and 1, but row 1 has 2"),
        ("logistic", (), table(["nan"] * 12), "only finite numbers"),
        ("lasso", ("--strength", "0.1"), table(LABELS * 5), "the answers reach 5 in size"),
        ("lasso", ("--strength", "0.1"), table(LABELS, ROWS * 0 + 0.5), "feature 1 is 0.5 in every row"),
        ("relu", (), "x1,x2,y\n0.5,0.25,1\n", "1 row for 2 features"),
        ("select", ("--validation", "4"), "x1,x2,y\n0.5,0.25,1\n", "none is left to learn from"),
    ],
)
def test_contexts_that_are_refused(cli, learned, tmp_path, word, flags, text, reason):
    learned(word, "--layers", "2", *flags)
    (tmp_path / "data.csv").write_text(text)
    done = cli("run", "run", "--context", "data.csv", "--query", "0.5,0.5")
    assert done.code == 2 and reason in " ".join(done.err.split()) and done.out == ""
