"""Targets, floors and the summary of the study `mixing`."""

import dataclasses
import json

import numpy as np
import pytest

from certiformer.errors import BadInput
from certiformer.rates import sequence_targets as targets
from certiformer.rates.sequence_models import sequence_transformer, transformer_start
from certiformer.rates.studies import mixing
from certiformer.rates.studies.mixing_summary import NAMES, PAPER, TARGETS


def config(**changes):
    return {**dataclasses.asdict(mixing.Options()), **changes}


def test_targets_are_those_of_the_formulas():
    length, count = 7, 2
    found = mixing.targets(config(length=length, count=count, filter=3, seed=4))
    x = np.random.default_rng(0).uniform(size=length)
    decay = np.array([sum(np.exp(-s) * x[t - s] for s in range(t + 1)) for t in range(length)])
    # Sums of 7 products below 1: a few roundings of 1e-16.
    np.testing.assert_allclose(found["original"] @ x, decay, atol=1e-14)
    swapped = x[[5, 6, 2, 3, 4, 0, 1]]
    np.testing.assert_allclose(found["swapped"] @ swapped, decay, atol=1e-14)
    np.testing.assert_allclose(found["moved"] @ x[[2, 3, 4, 5, 6, 0, 1]], decay, atol=1e-14)
    assert np.abs(found["moved"] @ swapped - decay).max() > 0.1  # the wrong order is seen
    theta = np.random.default_rng([4, 2305]).uniform(size=3)
    filtered = np.array([sum(theta[s] * x[t - s] for s in range(min(t + 1, 3))) for t in range(length)])
    np.testing.assert_allclose(found["mixed"] @ x, found["original"] @ filtered, atol=1e-14)
    assert found["mixed with signs"].min() < 0 <= found["mixed"].min()


def test_floors_at_the_size_of_the_paper():
    decay = targets.causal_matrix(np.exp(-np.arange(32)))
    for order, invariant in ((targets.swapped(32, 10), 0.0526367281), (targets.moved(32, 10), 0.0301176469)):
        other = targets.reordered(decay, order)
        assert targets.causal_floor(other) == pytest.approx(0.0301176469, abs=1e-10)
        assert targets.invariant_floor(other) == pytest.approx(invariant, abs=1e-10)
    assert targets.causal_floor(decay) == 0.0
    assert targets.invariant_floor(decay) < 1e-16


def test_floors_are_what_least_squares_reaches():
    """Regressions on 20,000 sequences: each step on what it has seen, and all steps on one kernel with free biases."""
    generator = np.random.default_rng(5)
    length, matrix = 5, generator.standard_normal((5, 5))
    x = generator.uniform(size=(20000, length))
    y = x @ matrix.T
    causal = 0.0
    for t in range(length):
        seen = np.column_stack([x[:, : t + 1], np.ones(len(x))])
        causal += np.mean((y[:, t] - seen @ np.linalg.lstsq(seen, y[:, t])[0]) ** 2) / length
    # The variance of 20,000 squares scatters by about 1 %.
    assert targets.causal_floor(matrix) == pytest.approx(causal, rel=0.04)
    blocks = []
    for t in range(length):
        lags = [x[:, t - s] if s <= t else np.zeros(len(x)) for s in range(length)]
        blocks.append(np.column_stack([*lags, *(np.full(len(x), float(t == u)) for u in range(length))]))
    design, wanted = np.concatenate(blocks), y.T.ravel()
    invariant = np.mean((wanted - design @ np.linalg.lstsq(design, wanted)[0]) ** 2)
    assert targets.invariant_floor(matrix) == pytest.approx(invariant, rel=0.04)
    assert invariant > 1.05 * causal
    constant = np.var(y)
    assert targets.constant_error(matrix) == pytest.approx(constant, rel=0.04)
    unseen = (x - 0.5) @ np.triu(matrix, 1).T
    assert targets.causal_floor_l1(matrix) == pytest.approx(np.abs(unseen).mean(), rel=0.04)


@pytest.mark.parametrize(
    "wrong", [lambda: targets.swapped(5, 3), lambda: targets.moved(3, 4), lambda: targets.filter_matrix(np.ones(4), 3)]
)
def test_what_does_not_fit_is_refused(wrong):
    with pytest.raises(BadInput):
        wrong()


def test_singular_values_before_and_after_mixing():
    exact = np.sqrt([(7 + np.sqrt(33)) / 8, 1 / 4, (7 - np.sqrt(33)) / 8])
    assert np.abs(exact - [1.262169, 0.5, 0.396143]).max() < 1e-6
    picture = mixing.STUDY.summary([], mixing.Options()).pictures[-1]
    before, after = picture.data["values"]
    # Rounding of an SVD of norm 1.3 in float64.
    np.testing.assert_allclose(after, [*exact, 0, 0, 0], atol=1e-12)
    np.testing.assert_allclose(before, [1, 1, 0, 0, 0, 0], atol=1e-12)


def test_the_transformer_is_that_of_the_paper():
    shape = sequence_transformer(32, width=32, hidden=128, depth=3)
    assert [block.attention is not None for block in shape.blocks] == [False] * 3 + [True] + [False] * 3
    head = shape.blocks[3].attention
    assert (head.heads[0].count, head.heads[0].key, head.heads[0].value, head.scale, head.residual) == (
        1,
        32,
        32,
        "unit",
        False,
    )
    tensors = transformer_start(shape, seed=0)
    assert {tensor.dtype for tensor in tensors.values()} == {np.dtype(np.float32)}
    bounds = {
        "blocks.0.ffn.up": 32,
        "blocks.0.ffn.down": 128,
        "blocks.0.ffn.down_bias": 128,
        "blocks.0.ffn.up_bias": 32,
    }
    for name, summands in bounds.items():
        assert 0.8 / np.sqrt(summands) < np.abs(tensors[name]).max() <= 1 / np.sqrt(summands)


def made_up(figures, seeds=3):
    """Rows in which every network has the figure of the paper, or 1e-3 where it prints none."""
    rows = []
    for seed in range(seeds):
        for network in NAMES:
            for target in TARGETS:
                printed = figures.get(("linear" if network == "patient" else network, target), 1e-3)
                floors = {"causal_floor": 0.03, "invariant_floor": 0.05, "variance": 0.4, "constant_error": 5.5}
                rows.append(
                    {"network": network, "target": target, "seed": seed, "mse": printed * (1 + 0.01 * seed), "l1": 0.1,
                     "losses": [1.0, printed], "diverged": False, **floors}
                )  # fmt: skip
    return rows


def test_summary_of_the_papers_figures_confirms_them_all():
    result = mixing.STUDY.summary(made_up(PAPER), mixing.Options())
    orders = [sentence for sentence in result.findings if "the order of the paper" in sentence]
    assert len(orders) == 5 and all("wins) holds;" in sentence for sentence in orders)
    assert any("within a factor of ten in 10 of 10" in sentence for sentence in result.findings)
    assert not any("missing" in sentence for sentence in result.limits)
    assert "1.262169, 0.500000, 0.396143" in result.findings[-1]
    json.dumps(dataclasses.asdict(result), allow_nan=False)


def test_too_few_seeds_confirm_and_refute_nothing():
    result = mixing.STUDY.summary(made_up(PAPER, seeds=1), mixing.Options())
    orders = [sentence for sentence in result.findings if "the order of the paper" in sentence]
    assert len(orders) == 5 and all("needs more seeds; " in sentence for sentence in orders)
    assert not any("confirmed" in sentence for sentence in result.findings)
    assert any("1 seed is too few" in sentence for sentence in orders)


def test_summary_says_when_an_order_turns_round():
    """Planted: one network wins where it should lose, and one figure is a hundred times off."""
    figures = {**PAPER, ("linear", "random kernel"): 1e-8, ("transformer", "original"): 2.18e-3}
    result = mixing.STUDY.summary(made_up(figures), mixing.Options())
    sentence = next(s for s in result.findings if s.startswith("random kernel:"))
    assert "is not confirmed" in sentence and "the linear RNN beats the transformer in 3 of 3" in sentence
    assert any("within a factor of ten in 8 of 10" in s for s in result.findings)
    assert any(
        s.startswith("Outside a factor of ten") and "transformer on original 1e+02" in s for s in result.findings
    )
    only_patient = [
        r | ({"mse": 1e-8} if r["network"] == "patient" and r["target"] == "random kernel" else {})
        for r in made_up(PAPER)
    ]
    sentence = next(
        s for s in mixing.STUDY.summary(only_patient, mixing.Options()).findings if s.startswith("random kernel:")
    )
    assert "holds for the short training of the RNN only" in sentence


def test_summary_claims_nothing_from_nothing_or_two_seeds():
    empty = mixing.STUDY.summary([], mixing.Options())
    assert any("84 of 84 rows are missing" in sentence for sentence in empty.limits)
    json.dumps(dataclasses.asdict(empty), allow_nan=False)
    two = mixing.STUDY.summary(made_up(PAPER, seeds=2), mixing.Options())
    assert "No entry of the paper's tables has three seeds yet." in two.findings
    assert not any("beats" in sentence for sentence in two.findings)


@pytest.fixture(scope="module")
def linear_rows():
    small = {"length": 6, "count": 2, "filter": 3, "units": 6, "recurrent_steps": 20, "batch": 4}
    return mixing.run(config(**small, network="linear", seed=0))


@pytest.mark.slow
def test_a_job_gives_one_row_for_every_target(linear_rows):
    assert [row["target"] for row in linear_rows] == [*TARGETS, "mixed ahead"]
    assert all(np.isfinite(row["mse"]) and len(row["losses"]) == 20 for row in linear_rows[:-1])
    # Twenty steps on six units learn next to nothing; a causal network cannot beat its floor whatever it learned.
    assert all(row["mse"] > row["causal_floor"] for row in linear_rows[:-1])
    assert linear_rows[-1]["causal_floor"] > 0.01


def test_jobs_are_one_for_each_network_and_seed_in_json():
    jobs = mixing.STUDY.jobs(mixing.Options(seeds=2, seed=5))
    assert len({job.id for job in jobs}) == 8
    assert {job.config["seed"] for job in jobs} == {5, 6}
    assert set(mixing.STUDY.full) <= {field.name for field in dataclasses.fields(mixing.Options)}
