"""Pruning: what is kept, the certificate of the scores with a planted fault, and the sentences of the study."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from certiformer.errors import BadInput
from certiformer.model.transformer import Transformer
from certiformer.rates import pruned_layers
from certiformer.rates.pruned_layers import HEAD, by_magnitude, by_rank, product, score_bound, singular_values
from certiformer.rates.size_models import size_config, start
from certiformer.rates.size_targets import SizeTarget
from certiformer.rates.studies.pruning import STUDY, Options, jobs, summary

TARGET = SizeTarget("graph", tokens=3)
CONFIG = replace(size_config(TARGET, units=4, heads=1, key=8, value=8), dtype="float64")
TENSORS = {name: np.asarray(t, np.float64) for name, t in start(CONFIG, 3, 1.0).items()}


def test_magnitude_keeps_the_largest():
    half = by_magnitude(TENSORS, "QK", 0.5)
    kept = [half[f"{HEAD}.{role}"] != 0 for role in ("query", "key")]
    assert sum(int(k.sum()) for k in kept) == 64
    smallest = min(np.abs(half[f"{HEAD}.{role}"][k]).min() for role, k in zip(("query", "key"), kept, strict=True))
    dropped = max(np.abs(TENSORS[f"{HEAD}.{role}"][~k]).max() for role, k in zip(("query", "key"), kept, strict=True))
    assert dropped < smallest
    assert all(half[n] is TENSORS[n] for n in TENSORS if not n.endswith((".query", ".key")))
    assert not any(by_magnitude(TENSORS, "FFN", 0.0)[n].any() for n in ("blocks.0.ffn.up", "blocks.0.ffn.down"))


@pytest.mark.parametrize("part", ["QK", "VO"])
def test_rank_is_the_best_approximation_of_the_product(part):
    values = singular_values(TENSORS, part)
    for rank in (0, 3, 8):
        error = product(TENSORS, part) - product(by_rank(TENSORS, part, rank), part)
        # Eckart and Young; products of 8 x 8 matrices with entries of size one.
        assert abs(np.linalg.norm(error) - np.sqrt((values[rank:] ** 2).sum())) < 1e-12
    feed = by_rank(TENSORS, "FFN", 2)
    assert np.linalg.matrix_rank(feed["blocks.0.ffn.up"]) == np.linalg.matrix_rank(feed["blocks.0.ffn.down"]) == 2


def test_certificate_holds_everywhere_and_a_wrong_one_does_not():
    x, _ = TARGET.sample(256, 1)
    full = Transformer(CONFIG, TENSORS).evaluate(x)
    ratios = []
    for cut in (by_rank(TENSORS, "QK", 2), by_rank(TENSORS, "QK", 5), by_magnitude(TENSORS, "QK", 0.5)):
        bound, change = score_bound(CONFIG, TENSORS, cut, x), np.abs(Transformer(CONFIG, cut).evaluate(x) - full)
        assert bound.shape == change.shape and (change <= bound + pruned_layers.ROUNDING).all()
        ratios.append((change / bound).max())
    # It is not vacuous: with a sixth of it somewhere is above, so a formula with osc/24 in place of osc/4 would be caught.
    assert max(ratios) > 1 / 6


def test_certificate_is_sharp_for_two_levels():
    # Two tokens, values 0 and 1, scores changed by (+d/2, -d/2) from even ones: the weight moves by exactly tanh(d/4) / 2 x 2.
    d = 1.3
    before, after = np.array([-d / 4, d / 4]), np.array([d / 4, -d / 4])
    weight = [np.exp(s)[0] / np.exp(s).sum() for s in (before, after)]
    assert abs((weight[1] - weight[0]) - np.tanh(d / 4)) < 1e-15


def test_one_head_only():
    wide = size_config(TARGET, units=4, heads=2, key=4)
    with pytest.raises(BadInput, match="one head"):
        by_rank(start(wide, 0, 1.0), "QK", 1)
    narrow = size_config(TARGET, units=4, heads=1, key=2)
    with pytest.raises(BadInput, match="does not fit"):
        by_rank(start(narrow, 0, 1.0), "QK", 3)


OPTIONS = Options(seeds=4, rank=3)


def made(above: int = 0):
    rows = []
    for part in ("QK", "VO", "FFN"):
        for method in ("magnitude", "rank"):
            for eighth in range(9):
                for seed in range(OPTIONS.seeds):
                    enough = eighth >= (3 if method == "rank" else 6)
                    proved = part == "QK"
                    rows.append(
                        {
                            "part": part,
                            "method": method,
                            "x": eighth / 8,
                            "seed": seed,
                            "test_mse": 1e-4 * (1 + 0.01 * seed) if enough else 1e-2,
                            "test_l1": 1e-2 if enough else 1e-1,
                            "change": 0.1,
                            "bound": 0.5 if proved else None,
                            "above_bound": above if proved else 0,
                            "points": 10 if proved else 0,
                            "tightness": 0.2 if proved else None,
                            "singular_values": [2.0, 2.0, 2.0, 1.0],
                            "diverged": False,
                        }
                    )
    return rows


def found(findings, *parts):
    (text,) = [text for text in findings if all(part in text for part in parts)]
    return text


def test_summary_of_known_rows():
    result = summary(made(), OPTIONS)
    assert "kept share of 0.375 [0.375, 0.375] over 4 seeds" in found(result.findings, "QK by rank")
    assert "kept share of 0.75 [0.75, 0.75] over 4 seeds" in found(result.findings, "VO by magnitude")
    # A hundredth, times the geometric mean of 1, 1.01, 1.02 and 1.03.
    half = found(result.findings, "FFN, half kept")
    assert "is 0.0101 [" in half and half.endswith("over 4 seeds (smaller).")
    assert "at all 720 points" in found(result.findings, "certificate")  # 2 methods x 9 shares x 4 seeds x 10 points
    assert "0.923 [0.923, 0.923]" in found(result.findings, "singular values")  # 12 / 13
    assert len(result.series) == 6 and all(each.slope_mse is None for each in result.series)
    assert result.pictures[0].data["names"] == ["QK", "VO", "FFN"]


def test_summary_tells_of_an_exceeded_certificate_and_of_missing_models():
    result = summary([r for r in made(above=1) if r["seed"] > 0], OPTIONS)
    assert "exceeded at 54 of 540 points" in found(result.findings, "certificate")
    assert "1 of 4 models are missing" in result.limits[0]
    assert summary([], OPTIONS).findings == []


def test_jobs():
    assert [seed for job in jobs(OPTIONS) for seed in job.config["seeds"]] == [0, 1, 2, 3]
    Options(**STUDY.full)
