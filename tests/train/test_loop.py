"""The loop on a tiny regression: engines, rounds, early stop, quarantine, what is kept, and refusals."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import io_callback

from certiformer.errors import BadInput
from certiformer.train import Dropout, Optimiser, Problem, Trained, best_of, stack, train

MEMBERS, STEPS, RECORD = 5, 60, 10


def apply(params, x):
    return jnp.tanh(x @ params["up"]) @ params["down"]


def draw(key, member, shared):
    x = jax.random.normal(key, (8, 3), jnp.float32)
    return x, jnp.sin(x @ member["direction"])[:, None] + shared * x[:, :1] + member["poison"]


PROBLEM = Problem(apply, draw)
GENERATOR = np.random.default_rng(3)
START = {
    "up": GENERATOR.normal(size=(MEMBERS, 3, 4)).astype(np.float32),
    "down": GENERATOR.normal(size=(MEMBERS, 4, 1)).astype(np.float32),
}
DIRECTIONS = GENERATOR.normal(size=(MEMBERS, 3)).astype(np.float32)
ADAM = Optimiser(rate=0.02, schedule="cosine")


def run(
    places=range(MEMBERS), *, poison=(), problem=PROBLEM, optimiser=ADAM, steps=STEPS, start=START, **more
) -> Trained:
    places = np.array(list(places), int)
    poisons = np.zeros(MEMBERS, np.float32)
    poisons[list(poison)] = np.inf
    member = {"direction": DIRECTIONS[places], "poison": poisons[places]}
    chosen = {name: value[places] for name, value in start.items()}
    return train(
        problem, chosen, seeds=100 + places, optimiser=optimiser, steps=steps, member=member,
        shared=np.float32(0.5), **{"record": RECORD, **more},
    )  # fmt: skip


def bits(trained: Trained, place=slice(None)) -> list[bytes]:
    arrays = [*jax.tree.leaves(trained.params), trained.losses, trained.steps, trained.scores]
    return [np.asarray(each)[place].tobytes() for each in arrays]


@pytest.fixture(scope="module")
def whole() -> Trained:
    return run()


def test_members_learn(whole):
    assert (whole.losses[:, -1] < 0.5 * whole.losses[:, 0]).all() and not whole.diverged.any()
    assert whole.losses.shape == (MEMBERS, STEPS // RECORD) and (whole.steps == STEPS).all()
    assert np.array_equal(whole.scores, whole.losses[:, -1])


def test_a_member_does_not_feel_the_others(whole):
    alone = run([3])
    assert bits(alone, 0) == bits(whole, 3)
    assert bits(alone, 0) != bits(whole, 2)


@pytest.mark.slow
def test_the_order_of_members_does_not_matter(whole):
    some = run([4, 1])
    assert bits(some, 1) == bits(whole, 1) and bits(some, 0) == bits(whole, 4)


@pytest.mark.parametrize(
    "how", [{"engine": "vmap"}, pytest.param({"models_per_program": 2}, marks=pytest.mark.slow)], ids=str
)
def test_side_by_side_is_the_same_up_to_rounding(whole, how):
    other = run(**how)
    # Sixty steps of float32 with rounding 6e-8 each; a wrong member or batch differs by more than 1e-2.
    assert np.allclose(other.losses, whole.losses, rtol=1e-4, atol=1e-6)
    assert np.allclose(other.params["up"], whole.params["up"], atol=1e-4)
    assert not np.allclose(other.losses[::-1], whole.losses, rtol=1e-2)


def test_rounds_do_not_change_the_answer(whole, monkeypatch):
    heard = []
    assert bits(run(progress=lambda *call: heard.append(call))) == bits(whole)
    monkeypatch.setattr("certiformer.train.rounds.ROUND_SECONDS", 0.0)  # one record a round
    rounds = []
    assert bits(run(progress=lambda *call: rounds.append(call))) == bits(whole)
    assert [done for _, done, _, _ in rounds] == [MEMBERS * RECORD * k for k in range(1, 7)]
    assert rounds[-1][:3] == ("train", 300, 300) and "model-steps/s" in rounds[-1][3] and " s left" in rounds[0][3]
    assert len(heard) < len(rounds)


def test_the_width_of_jax_does_not_matter(whole):
    with jax.enable_x64(False):
        narrow = run()
    assert bits(narrow) == bits(whole)


@pytest.mark.parametrize("engine", ["map", "vmap"])
def test_a_diverged_member_is_put_aside(engine):
    clean, poisoned = run(engine=engine), run(engine=engine, poison=[2])
    others = np.array([0, 1, 3, 4])
    assert bits(poisoned, others) == bits(clean, others)
    assert poisoned.diverged.tolist() == [False, False, True, False, False]
    assert np.isnan(poisoned.losses[2]).all() and poisoned.steps[2] == 0 and poisoned.scores[2] == np.inf
    # Its last finite weights are those it started with.
    assert np.array_equal(poisoned.params["up"][2], START["up"][2])


def test_weights_that_explode_are_rolled_back():
    wild = Optimiser("sgd", rate=1e20)
    lost = run(optimiser=wild, keep="best")
    assert lost.diverged.all() and all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(lost.params))
    broken = {**START, "up": START["up"].copy()}
    broken["up"][1, 0, 0] = np.nan
    born = run(start=broken)
    assert born.diverged.tolist() == [False, True, False, False, False] and born.steps[1] == 0


def test_stopping_early_saves_the_steps():
    counted = []

    def counting(key, member, shared):
        io_callback(lambda: counted.append(1), None)
        return draw(key, member, shared)

    problem = Problem(apply, counting)
    stopped = run(problem=problem, goal=0.5)
    assert len(counted) == stopped.steps.sum() < MEMBERS * STEPS
    for losses, steps in zip(stopped.losses, stopped.steps, strict=True):
        seen = steps // RECORD
        assert np.isfinite(losses[:seen]).all() and np.isnan(losses[seen:]).all()
        assert (losses[: seen - 1] > 0.5).all() and (losses[seen - 1] <= 0.5 or steps == STEPS)


def test_patience_and_the_best_weights():
    loud = Optimiser("sgd", rate=0.4)  # too large: the loss goes up and down
    last, best = run(optimiser=loud), run(optimiser=loud, keep="best")
    assert np.array_equal(best.scores, np.nanmin(last.losses, axis=1)) and (best.scores < last.scores).any()
    patient = run(optimiser=loud, patience=1, keep="best")
    for losses, steps in zip(last.losses, patient.steps, strict=True):
        rises = [k for k in range(1, len(losses)) if losses[k] >= losses[:k].min()]
        assert steps == (RECORD * (rises[0] + 1) if rises else STEPS)
    assert patient.steps.min() < STEPS


@pytest.mark.slow
def test_the_best_weights_are_those_of_their_record():
    loud = Optimiser("sgd", rate=0.4)
    last, best = run(optimiser=loud), run(optimiser=loud, keep="best")
    lows = np.argmin(last.losses, axis=1)
    early = int(np.argmin(lows))
    assert lows[early] < STEPS // RECORD - 1
    shorter = run([early], optimiser=loud, steps=int(lows[early] + 1) * RECORD)
    assert np.array_equal(best.params["up"][early], shorter.params["up"][0])


def test_a_judge_decides():
    def judge(params, member, shared):
        return jnp.abs(params["down"]).sum() + 0.0 * shared + 0.0 * member["direction"].sum()

    judged = run(problem=Problem(apply, draw, judge=judge), keep="best")
    assert np.allclose(judged.scores, np.abs(judged.params["down"]).sum(axis=(1, 2)), rtol=1e-6)
    assert not np.allclose(judged.scores, np.nanmin(judged.losses, axis=1))


def test_the_best_of_restarts(whole):
    four = whole.take(np.array([0, 1, 2, 3]))
    best = best_of(four, 2)
    winners = [int(np.argmin(four.scores[k : k + 2])) + k for k in (0, 2)]
    assert bits(best, 0) == bits(four, winners[0]) and bits(best, 1) == bits(four, winners[1])
    lost = Trained(four.params, four.losses, four.steps, np.arange(4) == winners[0], four.scores)
    assert bits(best_of(lost, 2), 0) == bits(four, 1 - winners[0])
    with pytest.raises(BadInput, match="4 members are not a multiple of 3 restarts"):
        best_of(four, 3)


def test_masks_and_whole_numbers_are_left_alone():
    start = {**START, "mask": np.ones((MEMBERS, 4), np.uint8)}
    free = jax.tree.map(np.ones_like, start)
    free["up"][:, :, 3] = 0
    problem = Problem(lambda p, x: apply({**p, "down": p["down"] * p["mask"][:, None]}, x), draw)
    decayed = run(problem=problem, start=start, free=free, optimiser=Optimiser(rate=0.02, weight_decay=0.1))
    assert np.array_equal(decayed.params["up"][:, :, 3], START["up"][:, :, 3])
    assert (decayed.params["up"][:, :, :3] != START["up"][:, :, :3]).all()
    assert decayed.params["mask"].dtype == np.uint8


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"steps": 65}, "65 steps are not a multiple of record=10; take 60 or 70 steps"),
        ({"steps": 0}, "steps must be at least 1"),
        ({"engine": "pmap"}, "there is no engine 'pmap'; there are auto, map, vmap"),
        ({"keep": "first"}, "keep is 'last' or 'best', not 'first'"),
        ({"models_per_program": 0}, "models_per_program must be at least 1"),
        ({"patience": 0}, "patience must be at least 1"),
        ({"places": []}, "there is no member to train"),
        ({"start": {"up": START["up"], "down": START["down"].astype(np.float64)}}, "float32 and float64"),
        ({"start": {"up": START["up"].astype(int)}}, "there are none"),
        ({"free": {"up": START["up"]}}, "free must have the same entries"),
        ({"free": {"up": START["up"][:, :1], "down": START["down"]}}, "a mask of free has the shape"),
        ({"dropout": Dropout(0.1)}, "dropout finds no matrix whose name ends with .ffn.down"),
    ],
    ids=lambda value: "" if isinstance(value, str) else "-".join(value),
)  # fmt: skip
def test_mistakes_get_one_sentence(more, sentence):
    with pytest.raises(BadInput, match=sentence):
        run(**more)


def test_members_must_agree_in_number():
    with pytest.raises(BadInput, match="there are 2 seeds, so the weights must have a first axis of 2"):
        train(PROBLEM, START, seeds=np.arange(2), optimiser=ADAM, steps=10, record=10)
    with pytest.raises(BadInput, match="no loss 'huber'; there are squared, sup, cross-entropy"):
        Problem(apply, draw, loss="huber")
    with pytest.raises(BadInput, match="no member to train"):
        stack([])
