"""The shapes that the papers promise: free of the length, one over the root of the sample, the root of the rank."""

from __future__ import annotations

import math

import numpy as np
import pytest

from certiformer.bounds import (
    compression,
    edelman_head,
    low_rank_head,
    masked_token,
    normed_stack,
    parameter_count,
    stack_by_count,
    stack_norms,
    trauger_layers,
)
from certiformer.bounds import trauger_one_layer as one_layer
from certiformer.bounds.attention_lipschitz import sequence_lipschitz, token_lipschitz
from certiformer.bounds.numbers import above, ball
from certiformer.bounds.rademacher_gap import gap

HEAD = one_layer.Head(8, 3.0, 1.0, 1.0, 1.0)
LAYER = trauger_layers.LayerNorms(3.0, 0.8, 0.8, 0.5)
MAP = stack_norms.MapNorms(0.5, 1.0, 3.0, 8, 8, 4)
HIDDEN = stack_norms.HiddenNorms(MAP, MAP)
PART = stack_norms.AttentionNorms((stack_norms.StackHead(MAP, MAP),))
NORM = stack_norms.NormNorms(1.0)
STACK = stack_norms.StackNorms(
    "pre",
    8,
    (stack_norms.StackLayer(PART, HIDDEN, NORM, NORM),),
    (stack_norms.TableNorms(20, 8, 30.0, 1.0),),
    final_norm=NORM,
    tied=True,
)
BOUNDS = {
    "one layer": lambda m: one_layer.complexity(HEAD, m),
    "layers": lambda m: trauger_layers.complexity(trauger_layers.Stack((LAYER,) * 2, 8, 8, 1.0, 3.0), m),
    "masked": lambda m: masked_token.complexity(masked_token.Masked(((LAYER,),) * 2, 8, 8, 1.0, 30.0, 20), 5.0, m),
    "stack": lambda m: normed_stack.complexity(STACK, 5.0, m),
    "counted stack": lambda m: stack_by_count.complexity(STACK, 5.0, m, "ranks"),
    "rank": lambda m: low_rank_head.complexity(HEAD, 3.0, 2, m),
    "parameters": lambda m: parameter_count.complexity(100, 3.0, 10.0, 1.0, m),
    "bits": lambda m: compression.penalty(compression.Bits(1000), compression.Sample(m)),
    "gap": lambda m: gap(0, 1, m, 0.05),
}
WITHOUT_LOGARITHM = {"rank", "counted stack", "parameters", "bits", "gap"}


@pytest.mark.parametrize("name", BOUNDS)
def test_one_over_the_root_of_the_sample(name):
    """A hundred times the sample gains 10, less what a logarithm of the sample takes where the proof has one."""
    few, many = (above(BOUNDS[name](m)) for m in (10**14, 10**16))
    least = 9.99 if name in WITHOUT_LOGARITHM else 7.5
    assert least < few / many <= 10 * (1 + 1e-9)


def test_the_root_of_the_rank_and_not_its_logarithm():
    """The abstract of the paper that could not be read promises log r; what is proved here has sqrt r: 8 and not 5.2."""
    values = [above(low_rank_head.complexity(HEAD, 3.0, rank, 10**14)) for rank in (1, 64)]
    assert 7.5 < values[1] / values[0] < 8.2
    assert abs(values[1] / values[0] - (1 + math.log(64))) > 2


def test_the_length_enters_by_its_logarithm_or_not_at_all():
    """Edelman's cover grows with log T; the constant that the others use does not grow, the Euclidean one as sqrt T."""
    norms = edelman_head.HeadNorms(5.5, 6.1, 1.2, 8)
    covers = [above(edelman_head.log_cover(norms, ball(0.1), 10**4 * length)) for length in (10, 10**3, 10**5)]
    steps = np.diff(covers)
    assert steps[0] > 0 and abs(steps[1] / steps[0] - 1) < 0.02  # equal factors of T, equal steps
    euclidean = [min(map(above, sequence_lipschitz(1.0, 0.3, 2.0, length))) for length in (100, 10_000)]
    assert 9 < euclidean[1] / euclidean[0] < 10.5


@pytest.mark.parametrize("length", [4, 64, 1024])
def test_longer_sequences_are_not_more_sensitive(length):
    """Heads on so many tokens: neither a change of the weights nor one of all tokens exceeds what is free of the length."""
    rng, by_weights, by_tokens = np.random.default_rng(length), 0.0, 0.0

    def mean(a, x):
        s = x.T @ a @ x[:, :1]
        p = np.exp(s - s.max())
        return (x @ (p / p.sum()))[:, 0]

    for trial in range(60):
        a = rng.normal(size=(4, 4)) * (0.3 if trial % 2 else 3.0)
        x = rng.normal(size=(4, length))
        x *= 1.5 / np.linalg.norm(x, axis=0)
        step, move = rng.normal(size=(4, 4)) * 1e-6, rng.normal(size=x.shape) * 1e-6
        # One layer: an error of the map x -> A x moves the mean by at most B_x^2 times it.
        by_weights = max(
            by_weights,
            np.linalg.norm(mean(a + step, x) - mean(a, x)) / (1.5**2 * np.linalg.norm(step.T @ x, axis=0).max()),
        )
        inside = x + move
        radius = float(np.linalg.norm(inside, axis=0).max())
        constant = above(token_lipschitz(1.0, float(np.linalg.norm(a, 2)), radius))
        change = np.linalg.norm(mean(a, inside) - mean(a, x))
        by_tokens = max(by_tokens, change / (constant * np.linalg.norm(move, axis=0).max()))
    assert (
        0.01 < by_weights <= 1 + 1e-6 and 1e-3 < by_tokens <= 1 + 1e-6
    )  # steps of 1e-6 leave that much of second order
