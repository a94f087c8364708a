"""Packed rows compute what the stored transformer computes for each history by itself."""

from __future__ import annotations

import numpy as np
import pytest

from certiformer import BadInput
from certiformer.recommend.network import LOSSES, Shape, first_weights, loss_of, states, with_readout
from certiformer.recommend.packing import pack

SHAPE = Shape(items=11, length=8, width=12, blocks=2, heads=3)


def histories(count: int, seed: int = 0) -> list[np.ndarray]:
    generator = np.random.default_rng(seed)
    return [generator.integers(0, 11, generator.integers(1, 12)) for _ in range(count)]


def test_packing_loses_no_token_and_keeps_the_last_ones():
    given = histories(50)
    packed = pack(given, 8)
    assert (packed.owner > 0).sum() == sum(min(len(h), 8) for h in given)
    for history, (row, place) in zip(given, packed.last, strict=True):
        tail = history[-8:]
        assert packed.ids[row, place - len(tail) + 1 : place + 1].tolist() == tail.tolist()
        assert packed.position[row, place] == len(tail) - 1
    assert (packed.owner > 0).mean() > 0.9


def weights(seed: int) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(seed)
    return {
        n: (t + 0.3 * generator.standard_normal(t.shape)).astype(np.float32) for n, t in first_weights(SHAPE, 0).items()
    }


def test_packed_states_are_those_of_the_transformer():
    given, tensors = histories(20), weights(1)
    packed = pack(given, 8)
    model = with_readout(SHAPE, tensors)
    rows = np.asarray(states(SHAPE)(tensors, *packed[:3]))
    scores = rows[packed.last[:, 0], packed.last[:, 1]] @ tensors["embed.weight"].T
    one_by_one = np.stack([model.evaluate_sequences([h[-8:]])[0][-1] for h in given])
    # float32 against float64; the scores are of size 1 to 10.
    assert np.abs(scores - one_by_one).max() < 1e-4
    leaking = np.asarray(states(SHAPE)(tensors, packed.ids, packed.position, np.minimum(packed.owner, 1)))
    assert np.abs(leaking - rows).max() > 1e-2  # the negative control: without owners, users see each other


@pytest.mark.parametrize("loss", LOSSES)
def test_losses_are_finite_and_full_cross_entropy_is_exact(loss):
    import jax

    packed, tensors = pack(histories(20), 8), weights(2)
    wanted = np.where(packed.owner > 0, packed.ids, -1)
    key = jax.random.key(0)
    value = float(loss_of(SHAPE, loss, 5, 0.0)(tensors, (*packed[:3], wanted, key)))
    assert np.isfinite(value) and value > 0
    if loss == "cross-entropy":
        rows = np.asarray(states(SHAPE)(tensors, *packed[:3]), np.float64)
        logits = rows @ np.asarray(tensors["embed.weight"], np.float64).T
        logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        exact = -np.mean([logs[r, c, packed.ids[r, c]] for r, c in np.argwhere(packed.owner > 0)])
        assert value == pytest.approx(exact, rel=1e-5)  # float32
    noisy = float(loss_of(SHAPE, loss, 5, 0.5)(tensors, (*packed[:3], wanted, key)))
    assert noisy != value


def test_wrong_sizes_are_refused():
    with pytest.raises(BadInput, match="not a multiple of 3 heads"):
        Shape(items=5, width=16, heads=3)
    with pytest.raises(BadInput, match="one of cross-entropy"):
        loss_of(SHAPE, "hinge", 5, 0.0)
