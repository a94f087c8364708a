"""Exact weights for another order of the inputs, and the summary of the study `ordering`."""

import dataclasses
import json

import numpy as np
import pytest

from certiformer.errors import BadInput
from certiformer.model import Transformer
from certiformer.rates.order_construction import exact_model, relabelled_model, reordered_model
from certiformer.rates.sequence_models import sequence_transformer
from certiformer.rates.sequence_targets import causal_matrix, moved, relabelled, reordered, swapped
from certiformer.rates.studies import ordering
from certiformer.rates.studies.ordering_summary import ADAPTED, BUILT, CONTENT

LENGTH = 6
# Sums of 7 terms below 2 in float64, with logarithms and exponentials that are right to 1e-15 relative.
ROUNDING = 1e-13


@pytest.fixture(scope="module")
def points():
    return np.random.default_rng(0).uniform(size=(16, LENGTH))


@pytest.fixture(scope="module")
def decay():
    return causal_matrix(np.exp(-np.arange(LENGTH)))


@pytest.fixture(scope="module")
def model(decay):
    return exact_model(decay)


def test_the_model_is_exact(model, decay, points):
    np.testing.assert_allclose(model.evaluate(points), points @ decay.T, rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("order", [swapped(LENGTH, 2), moved(LENGTH, 2)], ids=["swapped", "moved"])
def test_only_the_table_changes_for_another_order(model, decay, points, order):
    other = reordered_model(model, order)
    shown = points[:, order]
    np.testing.assert_allclose(other.evaluate(shown), points @ decay.T, rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(shown @ reordered(decay, order).T, points @ decay.T, rtol=0, atol=ROUNDING)
    assert [n for n, t in model.tensors.items() if not np.array_equal(t, other.tensors[n])] == ["code.table"]


def test_the_wrong_permutation_is_seen(model, decay, points):
    """Planted: the inverse order, the unchanged model, and a table whose questions move as well."""
    order = moved(LENGTH, 2)
    for wrong in (reordered_model(model, np.argsort(order)), model, relabelled_model(model, order)):
        assert np.abs(wrong.evaluate(points[:, order]) - points @ decay.T).max() > 0.1


def test_signs_take_two_heads(points):
    matrix = np.random.default_rng(1).standard_normal((LENGTH, LENGTH))
    signed = exact_model(matrix)
    assert signed.config.blocks[0].attention.heads[0].count == 2
    np.testing.assert_allclose(signed.evaluate(points), points @ matrix.T, rtol=0, atol=ROUNDING)


def test_any_model_with_a_table_is_relabelled(points):
    any_model = Transformer.random(sequence_transformer(LENGTH, width=7, hidden=5, depth=1), seed=2)
    order = moved(LENGTH, 1)
    outputs = relabelled_model(any_model, order).evaluate(points[:, order])
    # The same numbers summed in another order; the random model's outputs stay below 100.
    np.testing.assert_allclose(outputs, any_model.evaluate(points)[:, order], rtol=0, atol=1e-11)
    assert np.abs(outputs - any_model.evaluate(points)).max() > 0.01


def test_relabelled_is_the_matrix_in_the_new_order(decay, points):
    order = swapped(LENGTH, 2)
    np.testing.assert_allclose(points[:, order] @ relabelled(decay, order).T, (points @ decay.T)[:, order], atol=1e-14)


def test_what_cannot_be_built_is_refused(model):
    with pytest.raises(BadInput, match="square matrix"):
        exact_model(np.full((2, 2), np.nan))
    masked = Transformer.random(sequence_transformer(LENGTH, 7, 5, 1, mask="causal"), seed=0)
    with pytest.raises(BadInput, match="relabelled"):
        relabelled_model(masked, moved(LENGTH, 1))


ERRORS = {"nothing free": 0.9, "attention free": 0.5, "first layer free": 1e-3, "all free": 1e-4, "temporal reordered": 2e-4,
          "temporal": 2e-4, "content": 1e-4, "content relabelled": 1e-4, "content reordered": 0.5}  # fmt: skip


def made_up(options, worst=1e-15, recurrent=1.05, adapted=ERRORS, seeds=3):
    rows = []
    base = {"worst": float("nan"), "changed": "", "diverged": False, "l1": 0.1, "invariant_floor": float("nan")}
    base |= {"causal_floor": float("nan"), "causal_floor_l1": float("nan")}
    for seed in range(seeds):
        noise = 1 + 0.01 * seed
        for network in ordering.NETWORKS:
            for count in options.counts:
                floor = 0.01 * count
                error = 1e-5 if network == "transformer" else max(recurrent * floor, 1e-7)
                floors = {"causal_floor": floor, "causal_floor_l1": floor, "invariant_floor": 2 * floor}
                rows.append({**base, "part": "trained", "network": network, "variant": "swapped", "count": count,
                             "seed": seed, "mse": error * noise, **floors})  # fmt: skip
        for variant in ("temporal", *ADAPTED, *CONTENT):
            rows.append({**base, "part": "adapted", "network": "transformer", "variant": variant, "count": 5,
                         "seed": seed, "mse": adapted[variant] * noise})  # fmt: skip
        for variant in BUILT:
            rows.append({**base, "part": "built", "network": "built", "variant": variant, "count": 5, "seed": seed,
                         "mse": worst**2, "worst": worst, "changed": "" if variant == "original" else "code.table"})  # fmt: skip
    return rows


def text(rows, options=None):
    return " ".join(ordering.STUDY.summary(rows, options or ordering.Options()).findings)


def test_summary_of_made_up_rows():
    options = ordering.Options()
    result = ordering.STUDY.summary(made_up(options), options)
    found = " ".join(result.findings)
    assert "none is below it" in found and "exact up to rounding" in found and "only code.table changed" in found
    assert "below that floor in 9 of 9 runs" in found and "worse in every seed, 5e+03 times in the median" in found
    assert "the first layer beats the attention in 3 of 3" in found
    slopes = {series.name: series.slope_mse for series in result.series}
    assert slopes["linear"] == pytest.approx(1, abs=1e-9) and slopes["transformer"] == pytest.approx(0, abs=1e-9)
    assert not any("missing" in limit for limit in result.limits)
    json.dumps(dataclasses.asdict(result), allow_nan=False)


def test_summary_says_the_opposite_of_opposite_rows():
    options = ordering.Options()
    assert "the floor is broken" in text(made_up(options, recurrent=0.5))
    assert "NOT exact" in text(made_up(options, worst=1e-6))
    same = {**ERRORS, "content reordered": 1e-4}
    assert "do not show that it matters" in text(made_up(options, adapted=same))
    assert "beats" not in text(made_up(options, seeds=2))


def test_summary_of_nothing():
    result = ordering.STUDY.summary([], ordering.Options())
    assert "rows are missing" in result.limits[0]
    json.dumps(dataclasses.asdict(result), allow_nan=False)


@pytest.mark.slow
def test_every_part_runs():
    options = ordering.Options(length=6, counts=(0, 1, 2), width=8, hidden=8, units=6, gated_units=4, steps=20,
                               recurrent_steps=20, batch=4, seeds=1)  # fmt: skip
    rows = [row for job in ordering.STUDY.jobs(options) for row in job.run()]
    assert len({tuple(row) for row in rows}) == 1
    assert not any("missing" in limit for limit in ordering.STUDY.summary(rows, options).limits)
    frozen, first = (next(r["mse"] for r in rows if r["variant"] == v) for v in ("nothing free", "first layer free"))
    assert first != frozen
