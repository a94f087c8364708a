"""The verdict on a ball of inputs: for which checkpoints, around which centre, above every slope, below the product."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from audit.checkpoints import write_bert
from certiformer.audit import Given, audit, local_lipschitz
from certiformer.audit.local_verdict import LOCAL, _global, local
from certiformer.audit.measure import measure
from certiformer.audit.read import read_checkpoint
from certiformer.audit.verdict import Verdict
from certiformer.model import (
    Attention,
    Block,
    Config,
    FeedForward,
    Heads,
    Input,
    Norm,
    Readout,
    Transformer,
    load,
    save,
)
from certiformer.target import Target, any_target_to_text, parse_domain, parse_formula

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "models" / "trained-sine-sum"


def judged(folder: Path, given: Given) -> Verdict:
    checkpoint = read_checkpoint(folder)[0]
    return local(folder, checkpoint, measure(checkpoint), given)


def slopes(model: Transformer, centre: np.ndarray, radius: float, count: int = 2000) -> np.ndarray:
    """Slopes between points of the ball, half of them near each other."""
    rng = np.random.default_rng(0)

    def point() -> np.ndarray:
        x = rng.normal(size=(count, len(centre)))
        return x * radius * rng.uniform(size=(count, 1)) ** 0.5 / np.linalg.norm(x, axis=1, keepdims=True)

    x, y = point(), point()
    y[::2] = x[::2] * (1 - 1e-3 * rng.uniform(size=(len(x[::2]), 1))) + 1e-4 * y[::2] / radius
    y *= np.minimum(1.0, radius / np.linalg.norm(y, axis=1, keepdims=True))
    moved = np.linalg.norm(model.evaluate(centre + x) - model.evaluate(centre + y), axis=1)
    return moved / np.linalg.norm(x - y, axis=1)


@pytest.fixture(scope="module")
def found() -> Verdict:
    return judged(FOLDER, Given(radius=0.5))


def test_it_lies_between_the_slopes_and_the_product(found):
    assert (found.id, found.verdict) == (LOCAL, "holds") and "around the origin" in found.sentence
    assert found.details["centre"] == [0.0, 0.0]
    steepest = slopes(load(FOLDER), np.zeros(2), 0.5).max()
    # Slopes over steps of 1e-4 are rounded at 1e-11 of their size.
    assert 1 < steepest <= found.value and found.details["lower"] <= found.value * (1 + 1e-12)
    assert found.value < 1.2 * found.details["lower"] and 100 * found.value < found.trivial


def test_enclosures_that_are_too_small_are_seen(monkeypatch):
    """Negative control: with sizes of matrices cut to 0.8, sampled slopes refute the constant."""
    rule = local_lipschitz.matrix_size
    monkeypatch.setattr(local_lipschitz, "matrix_size", lambda entries: 0.8 * rule(entries))
    planted = judged(FOLDER, Given(radius=0.5))
    assert slopes(load(FOLDER), np.zeros(2), 0.5).max() > planted.value


def continuous(tokens: int = 2, **changes) -> Transformer:
    config = Config(Input("continuous", tokens=tokens, width=1), 3, 2, Readout("sum"), **changes)
    return Transformer.random(config, 1)


def test_enclosures_that_are_not_numbers_prove_nothing(tmp_path, monkeypatch):
    save(continuous(), tmp_path)
    monkeypatch.setattr(local_lipschitz, "matrix_size", lambda entries: np.full(len(entries), np.nan))
    planted = judged(tmp_path, Given(radius=0.5))
    assert planted.verdict == "does-not-apply" and planted.value is None and "too few" in planted.sentence


def test_the_ball_stands_around_the_centre_of_the_box(tmp_path):
    """A linear model: the constant is its spectral norm on every ball, and one box is enough."""
    model = continuous()
    save(model, tmp_path)
    target = Target("x1 + x2", parse_formula("x1 + x2"), parse_domain("[0, 1] x [-3, pi - 3]"))
    (tmp_path / "target.json").write_text(any_target_to_text(target))
    found = judged(tmp_path, Given(radius=2.0))
    assert (
        found.details["centre"] == pytest.approx([0.5, np.pi / 2 - 3])
        and "the centre of the box [0, 1]" in found.sentence
    )
    weight = np.asarray(model.tensors["embed.weight"]) @ np.asarray(model.tensors["readout.weight"])
    true = np.linalg.norm(np.repeat(weight, 2, axis=0), 2)
    assert true <= found.value <= true * (1 + 1e-9)


def test_a_box_of_other_dimensions_is_not_its_box(tmp_path):
    save(continuous(), tmp_path)
    target = Target("x1", parse_formula("x1"), parse_domain("[2, 3]"))
    (tmp_path / "target.json").write_text(any_target_to_text(target))
    assert "around the origin" in judged(tmp_path, Given(radius=1.0)).sentence


def test_without_a_radius_it_is_asked_for():
    found = judged(FOLDER, Given())
    assert found.verdict == "holds-if" and found.needs[0].startswith("--radius") and found.value is None


def test_others_are_told_why(tmp_path):
    bert = next(each for each in audit(write_bert(tmp_path / "bert"), Given(radius=1.0)).verdicts if each.id == LOCAL)
    assert bert.verdict == "does-not-apply" and "arithmetic of a bert" in bert.sentence
    save(Transformer.random(Config(Input("ids", tokens=2, vocabulary=3), 3, 2, Readout("sum")), 1), tmp_path / "ids")
    heads = Attention((Heads(1, 2, 2),), kind="linear")
    save(continuous(blocks=(Block(heads, None, None),)), tmp_path / "linear")
    save(continuous(), tmp_path / "named")
    (tmp_path / "named" / "model.safetensors").rename(tmp_path / "named" / "other.safetensors")
    for name, reason in (("ids", "token ids"), ("linear", "the kind linear"), ("named", "in a model.safetensors")):
        for given in (Given(), Given(radius=1.0)):
            found = judged(tmp_path / name, given)
            if name != "named" or given.radius is not None:
                assert found.verdict == "does-not-apply" and reason in found.sentence


def test_what_would_take_minutes_is_not_begun(tmp_path, monkeypatch):
    monkeypatch.setattr("certiformer.audit.local_verdict.WORK", 10)
    found = judged(FOLDER, Given(radius=1.0))
    assert found.verdict == "holds-if" and "ball_lipschitz" in found.needs[0] and found.value is None


@pytest.mark.parametrize(
    ("norm", "readout", "kind"),
    [(None, Readout("mean"), "relu"), ("pre", Readout("sum"), "gelu"), ("post", Readout("all"), "identity")],
)
def test_constants_that_are_multiplied_are_a_bound(tmp_path, norm, readout, kind):
    """Against slopes of models with everything: registers, loops, biases, score biases, norms of a large epsilon."""
    attention = Attention((Heads(2, 2, 3),), bias=True, score_bias="table", residual=norm != "post")
    block = Block(attention, FeedForward(5, kind, norm != "post"), None if norm is None else Norm(norm, epsilon=0.5))
    config = Config(Input("continuous", tokens=3, width=2), 4, 2, readout, (block,), registers=2, loops=2)
    model = Transformer.random(config, 3)
    save(model, tmp_path)
    checkpoint = read_checkpoint(tmp_path)[0]
    product = _global(model, checkpoint, measure(checkpoint), [0.0] * 6, 1.5)
    assert 0 < slopes(model, np.zeros(6), 1.5).max() <= product < np.inf
