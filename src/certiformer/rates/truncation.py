"""The constructed model: the target with its kernel cut off after m terms of its POD. Nothing is trained.

The features are exact (sines in float64), which no ReLU network computes: this is the error of the attention rank
alone, the first term of the rate of Jiang and Li 2024. `sine_model.py` is the same model with features that a
feed-forward network computes, as an ordinary transformer.

What to expect (F = f = identity, so K_F = 1; sigma_k ~ k^-alpha; MSE means the mean over t):

    diagonal masked:  MSE ~ m^-(2 alpha - 1),  L1 ~ m^-(alpha - 1/2)
                      (tail sums; to first order the MSE is Var(x)/tau sum_{k>m} sigma_k^2)
    diagonal kept:    the term s = t sees sum_{k>m} sigma_k 2 sin(2 pi k x)^2 ~ m^-(alpha - 1), so MSE ~ m^-2(alpha - 1)
                      for alpha > 1, from the m on where it is the larger one
    the printed text: the same exponent 2 alpha - 1 for an L1 error; a note on an earlier version has 2 alpha + 1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from certiformer.errors import BadInput
from certiformer.rates.targets import SineTarget, attend

CHUNK = 1 << 21  # features held at once


@dataclass(frozen=True, eq=False)
class Errors:
    """Errors of the kept ranks, in `replicates` independent samples of `samples` inputs each."""

    kept: tuple[int, ...]
    mse: Float[np.ndarray, "replicates kept"]
    l1: Float[np.ndarray, "replicates kept"]
    samples: int

    @property
    def standard_error(self) -> float:
        """The largest standard error of a mean squared error, relative to it."""
        means = self.mse.mean(axis=0)
        spread = self.mse.std(axis=0, ddof=1) / np.sqrt(len(self.mse))
        return float(np.max(spread[means > 0] / means[means > 0], initial=0.0))


def truncation_errors(
    target: SineTarget, kept: Sequence[int], samples: int = 512, replicates: int = 8, seed: int = 0
) -> Errors:
    """Mean squared and mean absolute errors of cutting the POD of the target off after each of `kept` terms.

    >>> errors = truncation_errors(SineTarget(1.0, rank=3), (1, 3, 5), samples=64, replicates=2)
    >>> (errors.mse.max(axis=0) < 1e-28).tolist()
    [False, True, True]
    """
    ranks = sorted(set(kept))
    if not ranks or ranks[0] < 0 or samples < 1 or replicates < 2:
        raise BadInput("a truncation keeps 0 or more terms, and is measured on 1 or more inputs in 2 or more samples")
    squares, sizes = np.zeros((2, replicates, len(ranks)))
    step = max(1, CHUNK // (target.length * target.terms))
    for replicate in range(replicates):
        generator = np.random.default_rng([seed, replicate])
        for first in range(0, samples, step):
            x = target.draw(generator, min(step, samples - first))
            wanted = target.outputs(x)
            scores, done = np.zeros((*x.shape, target.length)), 0
            for place, rank in enumerate(ranks):
                until = min(rank, target.terms)
                if until > done:
                    scores = scores + target.scores(x, done + 1, until)
                    done = until
                # Nothing is left out: the sum is the target's own, and only the order of adding would differ.
                found = wanted if done == target.terms else attend(scores, x, target.masked)
                squares[replicate, place] += float(((found - wanted) ** 2).mean(axis=1).sum())
                sizes[replicate, place] += float(np.abs(found - wanted).mean(axis=1).sum())
    order = [ranks.index(rank) for rank in kept]
    return Errors(tuple(kept), squares[:, order] / samples, sizes[:, order] / samples, samples)


def exponents(alpha: float, masked: bool) -> dict[str, float]:
    """The exponents that are claimed for an error against m_h, by name.

    >>> exponents(1.5, masked=True)
    {'founding_note': -4.0, 'paper': -2.0, 'corrected_mse': -2.0, 'corrected_l1': -1.0}
    >>> exponents(1.5, masked=False)
    {'founding_note': -4.0, 'paper': -2.0, 'corrected_mse': -1.0, 'corrected_l1': -0.5}
    """
    found = {"founding_note": -(2 * alpha + 1), "paper": -(2 * alpha - 1)}
    if masked:
        return {**found, "corrected_mse": -(2 * alpha - 1), "corrected_l1": -(alpha - 0.5)}
    # Kept, alpha <= 1: the sum over the diagonal diverges and there is no exponent.
    return {**found, "corrected_mse": -2 * (alpha - 1), "corrected_l1": -(alpha - 1)} if alpha > 1 else found
