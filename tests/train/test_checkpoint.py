"""Checkpoints: a resumed run is the uninterrupted one bit for bit, and nothing else is resumed."""

from __future__ import annotations

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from certiformer.errors import BadInput
from certiformer.train import Optimiser, Problem, Trained, train

START = {"w": np.random.default_rng(0).normal(size=(3, 2, 1)).astype(np.float32)}
ADAM = Optimiser(rate=0.05)


def draw(key, member, shared):
    x = jax.random.uniform(key, (4, 2), jnp.float32)
    return x, x @ shared[:, None]


def draw_otherwise(key, member, shared):
    x = jax.random.uniform(key, (4, 2), jnp.float32)
    return x, 2 * x @ shared[:, None]


PROBLEM = Problem(lambda p, x: x @ p["w"], draw)
SHARED = np.array([1.0, -2.0], np.float32)


class Killed(Exception):
    pass


@pytest.fixture(autouse=True)
def one_record_a_round(monkeypatch):
    monkeypatch.setattr("certiformer.train.rounds.ROUND_SECONDS", 0.0)


def run(
    folder=None, *, problem=PROBLEM, optimiser=ADAM, shared=SHARED, seeds=(1, 2, 3), kill_after=None, **more
) -> Trained:
    heard = []

    def progress(*call):
        heard.append(call)
        if len(heard) == kill_after:
            raise Killed

    return train(
        problem, START, seeds=np.array(seeds), optimiser=optimiser, steps=50, record=10, shared=shared, keep="best",
        checkpoint=folder, checkpoint_seconds=0.0, progress=progress, **more,
    )  # fmt: skip


@pytest.fixture(scope="module")
def uninterrupted() -> Trained:
    return run()


@pytest.fixture
def killed(tmp_path):
    with pytest.raises(Killed):
        run(tmp_path / "run", kill_after=2)
    return tmp_path / "run"


def same(one: Trained, other: Trained) -> bool:
    pairs = zip(jax.tree.leaves(one.params), jax.tree.leaves(other.params), strict=True)
    equal = all(np.array_equal(a, b) for a, b in pairs)
    return equal and np.array_equal(one.losses, other.losses) and np.array_equal(one.scores, other.scores)


def test_a_resumed_run_is_the_uninterrupted_one(killed, uninterrupted):
    assert json.loads((killed / "training.json").read_text())["records"] == 2
    resumed = run(killed)
    assert same(resumed, uninterrupted)
    assert sorted(path.name for path in killed.iterdir()) == ["state-000005.safetensors", "training.json"]
    # A run that is complete is read, not repeated.
    assert same(run(killed, kill_after=1), uninterrupted)


def test_the_checkpoint_is_what_is_resumed(killed, uninterrupted):
    path = killed / "state-000002.safetensors"
    tensors = load_file(path)
    tensors["00000"][0, 0, 0] += 0.5  # a weight
    save_file(tensors, path)
    changed = run(killed)
    assert not np.array_equal(changed.params["w"][0], uninterrupted.params["w"][0])
    assert np.array_equal(changed.params["w"][1], uninterrupted.params["w"][1])


def test_a_kill_while_writing_leaves_the_old_one(killed, uninterrupted, monkeypatch):
    import certiformer.train.checkpoint as module

    def full(path, data, write=module.write_atomically):
        if path.name == module.INDEX:
            raise OSError(28, "No space left on device")
        write(path, data)

    monkeypatch.setattr(module, "write_atomically", full)
    with pytest.raises(OSError, match="No space left"):
        run(killed)
    monkeypatch.undo()
    assert json.loads((killed / "training.json").read_text())["records"] == 2
    assert same(run(killed), uninterrupted)


@pytest.mark.parametrize(
    "other",
    [
        {"optimiser": Optimiser(rate=0.06)},
        {"optimiser": Optimiser(rate=0.05, weight_decay=0.1)},
        {"shared": SHARED + 1},
        {"seeds": (1, 2, 4)},
        {"problem": Problem(PROBLEM.apply, draw_otherwise)},
        {"problem": Problem(PROBLEM.apply, draw, "sup")},
        {"patience": 3},
    ],
    ids=lambda other: next(iter(other)),
)
def test_another_run_is_refused(killed, other):
    with pytest.raises(BadInput, match="belongs to another run"):
        run(killed, **other)


def test_broken_files_are_named(killed):
    whole = (killed / "state-000002.safetensors").read_bytes()
    (killed / "state-000002.safetensors").write_bytes(whole[:-7])
    with pytest.raises(BadInput, match="state-000002.safetensors cannot be read"):
        run(killed)
    (killed / "training.json").write_text("{")
    with pytest.raises(BadInput, match="training.json is not the index of a checkpoint"):
        run(killed)
