"""The mixed targets and the summary of the study `temporal`."""

import dataclasses
import json
import re

import jax
import numpy as np
import pytest

from certiformer.rates.sequence_batches import SHARPNESS, graph_moments, graph_values, member_of, mixed_batches
from certiformer.rates.sequence_rows import crossing
from certiformer.rates.sequence_targets import causal_matrix, constant_error, moved
from certiformer.rates.studies import temporal

LENGTH = 5


def graph_loop(x, causal):
    wanted = np.zeros_like(x)
    for b, sequence in enumerate(x):
        for t in range(len(sequence)):
            past = sequence[: t + 1] if causal else sequence
            weights = np.exp(SHARPNESS * (2 * sequence[t] - 1) * (2 * past - 1))
            wanted[b, t] = weights @ past / weights.sum()
    return wanted


@pytest.mark.parametrize("causal", [True, False])
def test_graph_values_are_attention_over_values(causal):
    x = np.random.default_rng(0).uniform(size=(3, LENGTH))
    np.testing.assert_allclose(graph_values(x, causal), graph_loop(x, causal), atol=1e-13)  # float64 sums of 5 terms
    assert np.abs(graph_loop(x, True) - graph_loop(x, False)).max() > 0.01


def test_a_batch_holds_both_parts_in_their_orders():
    matrix = causal_matrix(np.array([1.0, -0.5, 0.0, 0.0, 0.0]))
    order, outputs = moved(LENGTH, 2), moved(LENGTH, 1)
    member = member_of(matrix, temporal=0.3, graph=2.0, offset=0.25, inputs=order, outputs=outputs)
    x, wanted = mixed_batches(4, causal=True)(jax.random.key(0), member, None)
    assert x.shape == (4, LENGTH, 1) and x.dtype == wanted.dtype == np.float32
    natural = np.asarray(x)[:, np.argsort(order), 0].astype(np.float64)
    expected = 0.3 * natural @ matrix.T + 2.0 * graph_loop(natural, True) + 0.25
    np.testing.assert_allclose(wanted, expected[:, outputs], atol=1e-5)  # float32
    assert np.abs(wanted - expected).max() > 0.01  # the order of the outputs is seen


@pytest.mark.parametrize("kernel", ["oscillating", "decay"])
def test_both_ends_have_variance_one(kernel):
    assert constant_error(temporal.convolution(kernel, 16)) == pytest.approx(1, rel=1e-12)
    mean, deviation = graph_moments(LENGTH, causal=True)
    values = graph_loop(np.random.default_rng(1).uniform(size=(4000, LENGTH)), causal=True)
    # 4,000 against 8,192 sequences: both moments scatter by about 1 %.
    assert mean == pytest.approx(values.mean(), rel=0.04) and deviation == pytest.approx(values.std(), rel=0.04)


def test_crossing():
    assert crossing([0, 1, 2], [1, 1, 1], [10, 10, 0.1]) == pytest.approx(1.5)
    assert crossing([0, 1], [1, 1], [2, 3]) is None
    assert crossing([0, 1], [1, np.nan], [2, 0.5]) is None


def made_up(options, rival, seeds=3):
    """The transformer has 1e-3 everywhere, the rivals `rival(share)`, tilted a little from seed to seed."""
    rows = []
    for seed in range(seeds):
        for network in temporal.NAMES:
            for share in options.shares:
                tilt = max(1 - share, 1e-3) ** (0.01 * (seed - 1))
                error = 1e-3 * (1 + 0.01 * seed) if network == "transformer" else rival(share) * tilt
                row = {"network": network, "share": share, "seed": seed, "mse": error, "l1": 0.1, "diverged": False}
                rows.append(row)
    return rows


def test_summary_finds_the_crossing_and_the_slope():
    options = temporal.Options(shares=(0.0, 0.5, 0.75, 0.9, 0.99, 1.0))
    result = temporal.STUDY.summary(made_up(options, lambda share: max(0.01 * (1 - share), 1e-12)), options)
    found = " ".join(result.findings)
    # 0.01 (1 - share) = 1.01e-3 near share 0.9; the tilt of 0.01 in the exponent moves it by about 0.003.
    places = [
        float(place)
        for place in re.findall(r"The linear RNN .*? share of ([0-9.]+) \(([0-9.]+) to ([0-9.]+) over 3 seeds", found)[
            0
        ]
    ]
    assert places == pytest.approx([0.9] * 3, abs=0.008)
    assert "Graph-like end (share 0): the transformer beats the linear RNN in 3 of 3" in found
    assert "Temporal end (share 1): the linear RNN beats the transformer in 3 of 3" in found
    slopes = {series.name: series.slope_mse for series in result.series}
    assert slopes["linear"] == pytest.approx(1, abs=1e-3) and slopes["transformer"] == pytest.approx(0, abs=1e-9)
    assert result.series[0].excluded == ["missed part"] and result.series[1].excluded == []
    json.dumps(dataclasses.asdict(result), allow_nan=False)


def test_summary_claims_no_crossing_where_there_is_none():
    options = temporal.Options()
    assert "no crossing is claimed" in " ".join(
        temporal.STUDY.summary(made_up(options, lambda s: 0.5), options).findings
    )
    few = temporal.STUDY.summary(made_up(options, lambda s: 0.5, seeds=2), options)
    assert "too few" in " ".join(few.findings) and "21 of 63 rows are missing" in few.limits[0]
    json.dumps(dataclasses.asdict(temporal.STUDY.summary([], options)), allow_nan=False)


@pytest.mark.slow
def test_every_network_runs():
    options = temporal.Options(shares=(0.0, 1.0), length=6, width=8, hidden=8, units=6, gated_units=4, steps=20,
                               recurrent_steps=20, restarts=2, batch=4, seeds=1)  # fmt: skip
    rows = [row for job in temporal.STUDY.jobs(options) for row in job.run()]
    assert len(rows) == 6 and all(np.isfinite(row["mse"]) for row in rows)
