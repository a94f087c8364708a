"""Enclosures of Jacobians: derivatives at sampled points are inside, with zero tolerance, and shrink to them with the box."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from certiformer.enclose import enclosed_range
from certiformer.enclose.derivative import SLOPE, enclose_jacobian
from certiformer.enclose.space import Space
from certiformer.enclose.taylor import variables
from certiformer.errors import BadInput
from certiformer.interval import rigorous_jit
from certiformer.model import Attention, Block, Code, Config, FeedForward, Heads, Input, Norm, Readout, Transformer


def model(readout: Readout, blocks: tuple[Block, ...], registers: int = 0, loops: int = 1) -> Transformer:
    config = Config(
        Input("continuous", tokens=2, width=1),
        4,
        2,
        readout,
        blocks,
        registers=registers,
        code=Code("table"),
        loops=loops,
    )
    return Transformer.random(config, seed=3)


SOFTMAX = Attention((Heads(2, key=3, value=2),), bias=True)
CAUSAL = Attention((Heads(1, key=2, value=3), Heads(1, 2, 2)), mask="causal", score_bias="toeplitz", residual=False)
MODELS = {
    "relu": lambda: model(Readout("mean"), (Block(SOFTMAX, FeedForward(5)),)),
    "gelu, two blocks": lambda: model(Readout("token", 1), (Block(CAUSAL), Block(SOFTMAX, FeedForward(5, "gelu")))),
    "norms": lambda: model(
        Readout("all"),
        (
            Block(SOFTMAX, FeedForward(4, residual=False), Norm("pre", epsilon=0.1)),
            Block(ffn=FeedForward(4), norm=Norm("post")),
        ),
    ),
    "registers, loops": lambda: model(Readout("register", 1), (Block(SOFTMAX, FeedForward(3, "identity")),), 2, 2),
}


def outside(network: Transformer, order: int) -> tuple[int, int, float]:
    """How many sampled derivatives are outside of their enclosures, how many of enclosures narrowed to 2 % of their width
    (the control), and the median width on tiny boxes.

    Float64 derivatives are off by about 1e-15 of their terms; the enclosures carry at least 2^-50 of theirs.
    """
    rng = np.random.default_rng(0)
    jacobian = jax.jit(jax.vmap(jax.jacfwd(lambda x: network(x[:, None]))))
    enclose = enclose_jacobian(network, order)
    ranges = rigorous_jit(jax.vmap(lambda c, r: enclosed_range(enclose(c, r))), optimise=False)
    centre, radius = rng.normal(size=(24, 2)), 10.0 ** rng.uniform(-3, -0.3, size=(24, 2))
    lo, hi = (np.asarray(end) for end in ranges(centre, radius))
    assert lo.shape[1:] == (2, network.output_size)
    counts = [0, 0]
    for _ in range(12):
        place = rng.uniform(-1, 1, centre.shape)
        place = np.where(rng.uniform(size=centre.shape) < 0.5, np.sign(place), place)
        true = np.moveaxis(np.asarray(jacobian(centre + radius * place)), 1, 2)
        for which, less in enumerate((0.0, 0.49 * (hi - lo))):
            counts[which] += int(((true < lo + less) | (true > hi - less)).sum())  # not-a-number says nothing
    small = ranges(centre, np.full_like(radius, 1e-7))
    return *counts, float(np.median(small.hi - small.lo))


def test_derivatives_at_sampled_points_are_inside():
    count, narrowed, width = outside(MODELS["relu"](), 1)
    assert count == 0 < narrowed
    assert width < 1e-4  # it shrinks with the box: an enclosure of the derivative, not only a bound


@pytest.mark.slow
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("name", MODELS)
def test_derivatives_of_every_layer_are_inside(name, order):
    count, narrowed, width = outside(MODELS[name](), order)
    assert count == 0 < narrowed
    assert width < 1e-4


def test_slopes_of_units():
    """All in one compilation; boxes on both sides of the kink, across it and across the maxima of the derivative of gelu."""
    centre, radius = np.array([[0.3], [-1.0], [0.0], [2.0]]), np.array([[0.1], [0.2], [2.0], [1.5]])

    def both(c, r):
        x = variables(Space(1, 1), c, r)
        return tuple(enclosed_range(SLOPE[kind](x)) for kind in ("relu", "gelu"))

    relu, gelu = rigorous_jit(jax.vmap(both), optimise=False)(centre, radius)
    points = centre + radius * np.linspace(-1, 1, 201)
    cumulative = 0.5 * (1 + np.asarray(jax.scipy.special.erf(points / np.sqrt(2))))
    for found, true in (
        (relu, 1.0 * (points > 0)),
        (gelu, cumulative + points * np.exp(-(points**2) / 2) / np.sqrt(2 * np.pi)),
    ):
        assert (np.asarray(found.lo)[:, 0] <= true.min(1)).all() and (true.max(1) <= np.asarray(found.hi)[:, 0]).all()
    width = np.asarray(relu.hi - relu.lo)[:, 0]
    assert (width[:2] < 1e-13).all() and 1 <= width[2] < 1 + 1e-13  # what rounding allows for numbers of size 1


def test_other_models_are_refused():
    hard = model(Readout("mean"), (Block(Attention((Heads(1, 2, 2),), kind="hard")),))
    with pytest.raises(BadInput, match="not for the kind hard"):
        enclose_jacobian(hard, 1)
    ids = Transformer.random(Config(Input("ids", tokens=2, vocabulary=3), 2, 1, Readout("mean")), 0)
    with pytest.raises(BadInput, match="reads token ids"):
        enclose_jacobian(ids, 1)
