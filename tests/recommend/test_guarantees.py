"""The guarantees under simulation: never wrong more often than they say."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binomtest

from certiformer.recommend import conformal, stream
from certiformer.recommend.architecture import lipschitz
from certiformer.recommend.binomial import clopper_pearson, lower_bound
from certiformer.recommend.compression import coded_bits, decoded
from certiformer.recommend.metrics import Asked, metrics, segments
from certiformer.recommend.network import Shape, first_weights, with_readout
from certiformer.recommend.score import best, ranks

RUNS = 10_000


def often_enough_right(wrong: int) -> bool:
    """Whether so many wrong bounds among `RUNS` are what at most 5 % explains (exact test, one in 10,000)."""
    return binomtest(wrong, RUNS, 0.05, alternative="greater").pvalue > 1e-4


def test_the_bound_of_the_hit_rate_is_above_the_truth_at_most_every_twentieth_time():
    generator = np.random.default_rng(0)
    truth = generator.uniform(0.01, 0.6, RUNS)
    users = 433
    hits = generator.binomial(users, truth)
    bounds = clopper_pearson(users, hits, 0.05)
    assert often_enough_right(int((bounds > truth).sum()))
    assert not often_enough_right(int((hits / users > truth).sum()))  # the negative control: the mean itself
    for place in range(20):
        assert float(lower_bound(users, int(hits[place]), Fraction(1, 20))) == pytest.approx(bounds[place], abs=1.1e-5)


def test_the_bound_on_streams_is_above_the_truth_at_most_every_twentieth_time_at_any_moment():
    hits, truth = stream.drawn_streams(RUNS, 200, 1)
    assert often_enough_right(int(stream.above_truth(hits, truth, 0.05).sum()))
    assert not often_enough_right(int(stream.above_truth(hits, truth, 0.5).sum()))  # the negative control


def test_the_bound_on_a_stream_in_balls_is_the_one_of_the_picture():
    generator = np.random.default_rng(2)
    hits = generator.random(700) < 0.3
    proved = float(stream.proved_bound(int(hits.sum()), 700, Fraction(1, 20)))
    drawn = stream.bounds(hits, 0.05)
    assert proved <= drawn[-1] + 1e-9 and proved == pytest.approx(drawn[-1], abs=2e-5)  # five digits, rounded down
    assert (drawn <= np.cumsum(hits) / np.arange(1, 701) + 1e-12).all() and drawn[-1] > 0.2


def drawn_reaches(users: int, seed: int) -> conformal.Reaches:
    generator = np.random.default_rng(seed)
    scores = generator.standard_normal((users, 50)) * 2
    asked = Asked(
        [np.array([0])] * users, np.array([generator.choice(50, p=np.exp(s) / np.exp(s).sum()) for s in scores])
    )
    return conformal.reaches(lambda histories: iter([scores]), asked, False)


def test_conformal_lists_cover_what_they_say():
    found = drawn_reaches(866, 3)
    coverage = conformal.coverages(found, 100, 0)
    # The mean over re-splits is within one point of 90 %; its spread over fresh users is sqrt(.09 / 866 + ...), 1.0 points.
    assert abs(coverage.mean() - 0.9) < 0.01
    facts = conformal.sets(found, conformal.halves(866, 0))
    assert 0 < facts["mean_k"] < 50 and abs(facts["coverage"] - 0.9) < 0.06
    assert found.ordered[:, -1] == pytest.approx(1)


def test_too_few_users_give_the_whole_catalogue():
    assert conformal.threshold(np.full(8, 0.5)) == np.inf
    assert conformal.threshold(np.arange(1, 10) / 10) == pytest.approx(0.9)


def test_ranks_against_a_plain_count():
    generator = np.random.default_rng(4)
    scores = generator.integers(0, 6, (40, 9)).astype(float)
    wanted = generator.integers(0, 9, 40)
    seen = [np.unique(generator.integers(0, 9, 3)) for _ in range(40)]
    for given in (None, seen):
        found = ranks(scores, wanted, given)
        for user in range(40):
            others = [i for i in range(9) if i != wanted[user] and (given is None or i not in given[user])]
            above = sum(scores[user, i] > scores[user, wanted[user]] for i in others)
            equal = sum(scores[user, i] == scores[user, wanted[user]] for i in others)
            assert found[user] == (
                1 + above + equal / 2 if given is None or wanted[user] not in given[user] else np.inf
            )
    assert ranks(np.zeros((1, 101)), np.array([5]), None) == [51.0]  # equal scores are no oracle
    assert ranks(np.full((1, 5), np.nan), np.array([3]), None) == [np.inf]  # nor are scores that are no numbers
    assert best(np.array([1.0, -np.inf, 3.0, 3.0]), 4).tolist() == [2, 3, 0]


def test_what_no_list_holds_is_neither_a_hit_nor_covered():
    """Where everybody wants what is left out, no guarantee may speak of lists that hold it."""
    scores = np.tile(np.arange(6.0), (40, 1))
    asked = Asked([np.array([5, 2])] * 40, np.full(40, 5))
    for filtered, reach in ((True, np.inf), (False, np.exp(5) / np.exp(np.arange(6)).sum())):
        found = conformal.reaches(lambda histories: iter([scores]), asked, filtered)
        assert found.wanted == pytest.approx(reach)
        assert (conformal.threshold(found.wanted) == np.inf) == filtered
        seen = [np.array([2, 5])] * 40 if filtered else None
        assert (ranks(scores, asked.wanted, seen) == (np.inf if filtered else 1)).all()


def test_metrics_of_known_ranks():
    found = metrics(np.array([1.0, 3.0, 11.0, 30.0]), 0.5)
    assert found["HR@10"] == 0.5 and found["HR@20"] == 0.75 and found["coverage@10"] == 0.5
    assert found["NDCG@10"] == pytest.approx((1 + 0.5) / 4) and found["MRR@10"] == pytest.approx((1 + 1 / 3) / 4)
    assert metrics(np.zeros(0), 0.0)["HR@10"] is None
    parts = segments(np.array([1.0, 30.0]), [np.zeros(3), np.zeros(60)])
    assert [(row["history"], row["HR@10"]) for row in parts] == [("1 to 5", 1.0), ("51 or more", 0.0)]


def test_bits_are_those_of_a_file():
    model = with_readout(Shape(9, 4, 8, 1, 1), first_weights(Shape(9, 4, 8, 1, 1), 0))
    assert coded_bits(model) % 8 == 0 and coded_bits(model) < 32 * model.parameter_count()
    assert len({decoded(byte) for byte in range(256)}) == 256


def test_no_score_moves_more_than_the_constant_says(shop):
    """Histories that differ in one item, and embeddings pushed along the steepest direction of a score."""
    import jax
    import jax.numpy as jnp

    from certiformer.recommend.network import without_readout
    from certiformer.recommend.score import shape_of

    slopes = lipschitz(shop)
    shape, tensors = shape_of(shop.model), {n: jnp.asarray(t) for n, t in without_readout(shop.model).items()}
    table = tensors["embed.weight"]
    row = (np.arange(8), np.arange(8), np.ones(8, np.int32))

    def scores(moved):
        ids = np.arange(8)  # the table of items in the history alone is moved; the read-out keeps its own
        from certiformer.recommend.network import states

        changed = {**tensors, "embed.weight": jnp.concatenate([moved, table[8:]])}
        return states(shape)(changed, ids[None], row[1][None], row[2][None])[0, -1] @ table.T

    slope = jax.jacobian(scores)(table[:8])
    steepest = float(jnp.linalg.norm(slope, axis=-1).sum(axis=-1).max())  # all tokens moved by the same distance
    assert 0 < steepest < slopes.constant
    assert float(scores(table[:8]).max() - scores(table[:8]).min()) <= slopes.span
    product = 1.0
    for _, factor in slopes.factors:
        product *= factor
    assert product == pytest.approx(slopes.constant, rel=1e-6)
