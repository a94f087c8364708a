"""The bound for layers with norms, read off checkpoints: every norm and bias counts, and what is not proved is refused."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from audit.pre_norm_checkpoint import WIDTH, checkpoint, part, weight
from certiformer.audit.form import Norm
from certiformer.audit.measure import measure
from certiformer.audit.pre_norm import UNIT, left_over, norms_of, pre_norm
from certiformer.audit.verdict import Given


def test_every_norm_of_the_model_counts():
    """A large gain in front of the output table makes R and n large, wherever it stands."""
    plain = checkpoint()
    model, _ = norms_of(plain, measure(plain))
    assert model.radius == 4.0 and model.norm == 2.0  # sqrt 4 times 1 and 1 / sqrt 1, at the ends of the next cells
    large = Norm("layer", weight(np.full(WIDTH, 10.0)), weight(np.zeros(WIDTH)), 1.0)
    last = replace(plain, final_norm=large)
    model, _ = norms_of(last, measure(last))
    assert model.radius >= 20 and model.norm >= 10


def test_cells_are_not_below_what_they_hold_and_all_pay():
    plain = checkpoint()
    figures = measure(plain)
    model, factors = norms_of(plain, figures)
    for layer, block, found in zip(plain.layers, model.blocks, figures.layers, strict=True):
        attention = layer.attention[0]
        for h, (pair, head) in enumerate(zip(block.heads, found.heads, strict=True)):
            scores = attention.query.read()[h].T @ attention.key.read()[h] * attention.scale
            value = attention.output.read()[h] @ attention.value.read()[h]
            shift = attention.key.read()[h].T @ attention.query_bias.read()[h] * attention.scale
            for end, true in (
                (pair.scores, np.linalg.norm(scores, 2)),
                (pair.scores_l11, np.abs(scores).sum()),
                (pair.value, np.linalg.norm(value, 2)),
                (pair.value_l11, np.abs(value).sum()),
                (pair.key_shift, np.linalg.norm(shift)),
            ):
                assert true <= end <= max(2 * true * (1 + 1e-8), UNIT)
            assert head.vo is not None
        assert block.up_bias >= np.linalg.norm(layer.ffn[0].up_bias.read())
    cells = 4 + sum(5 + 5 * len(block.heads) for block in model.blocks)
    assert left_over(model, 0.05) <= Fraction(1, 20) / 2**cells  # each of the cells takes at least half
    assert len(factors) == 2 + 2 * len(plain.layers)
    assert left_over(replace(model, blocks=model.blocks[:1] * 2), 0.05) == left_over(
        replace(model, blocks=model.blocks[:1]), 0.05
    )


def test_the_verdicts():
    plain = checkpoint(layers=1)
    figures = measure(plain)
    asked = pre_norm(plain, figures, Given())
    assert asked.verdict == "holds-if" and "--samples" in asked.needs[0]
    few = pre_norm(plain, figures, Given(samples=1000, largest_loss=4.0))
    assert few.verdict == "vacuous" and few.sentence.startswith("vacuous: ") and few.value >= 4
    many = pre_norm(plain, figures, Given(samples=10**18, largest_loss=4.0))
    assert many.verdict == "holds-if" and "before the data" in many.needs[0] and 0 < many.value < 4


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda c: replace(c, norm_place="post"), "here they are: post"),
        (lambda c: replace(c, positions="rope"), "rotary positions"),
        (lambda c: replace(c, final_norm=None), "a norm in front of the output table"),
        (lambda c: replace(c, head=None), "the files hold none"),
        (lambda c: replace(c, final_norm=replace(c.final_norm, epsilon=None)), "the epsilon of every norm"),
        (lambda c: replace(c, final_norm=replace(c.final_norm, gain=weight(np.full(WIDTH, math.nan)))), "finite gains"),
        (lambda c: replace(c, layers=()), "needs layers"),
        (lambda c: part(c, "attention", query_norm=c.final_norm), "queries or keys are normed"),
        (lambda c: part(c, "attention", scale=None), "the score scale"),
        (lambda c: part(c, "attention", cross=True), "softmax self-attention"),
        (lambda c: part(c, "attention", output=None), "an output projection"),
        (lambda c: part(c, "ffn", activation="mish"), "activation mish is not known"),
        (lambda c: part(c, "ffn", gate=c.layers[0].ffn[0].up), "without a gate"),
        (lambda c: replace(c, layers=(replace(c.layers[0], norms={}),)), "a norm before each of the two parts"),
    ],
)
def test_what_is_not_proved_is_refused_by_name(change, sentence):
    plain = checkpoint(layers=1)
    verdict = pre_norm(change(plain), measure(plain), Given(samples=100))
    assert verdict.verdict == "does-not-apply" and sentence in verdict.sentence
