"""An anytime-valid lower bound on a stream: the model is frozen, events come one after the other.

Let X_t be 1 where event t is a hit, m_t its conditional probability given all that came before, and M_t the mean of m_1 to
m_t. For a fixed s > 0 the product over i <= t of exp(s X_i) / (1 + m_i (e^s - 1)) is a martingale that starts at 1. The
logarithm of 1 + m (e^s - 1) is concave in m, so the product is at least exp(s K_t - t log(1 + M_t (e^s - 1))) with K_t the
number of hits (Jensen). A mixture over several s keeps both properties. By Ville's inequality the mixture reaches 1 / alpha
with probability at most alpha, at any time whatever. So, at all times at once, M_t is at least the p at which the
mixture is 1 / alpha. This is a betting martingale (Waudby-Smith and Ramdas 2024) whose stakes are fixed in advance.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from flint import arb
from jaxtyping import Bool, Float

from certiformer.kernel.balls import ball, working_precision

STAKES = tuple(Fraction(1, 64) * Fraction(5, 4) ** i for i in range(24))  # 1/64 to about 2.6
DIGITS = 5


def wealth(hits: np.ndarray, events: np.ndarray, p: np.ndarray) -> np.ndarray:
    """The logarithm of the mixture after so many events, if the mean of the conditional probabilities is p."""
    stakes = np.array([float(stake) for stake in STAKES])
    shape = (...,) + (None,)
    logs = np.asarray(hits)[shape] * stakes - np.asarray(events)[shape] * np.log1p(
        np.asarray(p)[shape] * np.expm1(stakes)
    )
    top = logs.max(axis=-1)
    return top + np.log(np.mean(np.exp(logs - top[..., None]), axis=-1))


def bounds(hits: Bool[np.ndarray, " events"], share: float) -> Float[np.ndarray, " events"]:
    """The lower bound after every event, in float64, for pictures; `proved_bound` proves one of them."""
    count, events = np.cumsum(hits), np.arange(1, len(hits) + 1)
    low, high = np.zeros(len(hits)), count / events
    for _ in range(40):
        middle = (low + high) / 2
        fine = wealth(count, events, middle) >= -np.log(share)
        low, high = np.where(fine, middle, low), np.where(fine, high, middle)
    return low


def proved_bound(hits: int, events: int, share: Fraction) -> Fraction:
    """The largest decimal of five digits at which the mixture certainly reaches 1 / share, in balls; 0 where there is none.

    >>> proved_bound(220, 1000, Fraction(1, 20)), proved_bound(0, 1000, Fraction(1, 20))
    (Fraction(9073, 50000), Fraction(0, 1))
    """
    low, high = 0, int(hits / max(events, 1) * 10**DIGITS) + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _reaches(hits, events, Fraction(middle, 10**DIGITS), share) else (low, middle)
    return Fraction(low, 10**DIGITS)


def _reaches(hits: int, events: int, p: Fraction, share: Fraction) -> bool:
    working_precision()
    total = arb(0)
    for stake in STAKES:
        s = ball(stake)
        total += (s * hits - events * (1 + ball(p) * s.expm1()).log()).exp()
    return bool(total / len(STAKES) >= 1 / ball(share))


def above_truth(
    hits: Bool[np.ndarray, "runs events"], truth: Float[np.ndarray, "runs events"], share: float
) -> np.ndarray:
    """For many streams at once: whether the bound is ever above the running mean of the true probabilities."""
    events = np.arange(1, hits.shape[1] + 1, dtype=float)
    count, mean = np.cumsum(hits, axis=1), np.cumsum(truth, axis=1) / events
    ever = np.zeros(len(hits), bool)
    for first in range(0, len(hits), 500):  # the mixture holds a number for each stake
        part = slice(first, first + 500)
        grown = wealth(count[part].astype(float), np.broadcast_to(events, count[part].shape), mean[part])
        ever[part] = (grown > -np.log(share)).any(axis=1)
    return ever


Runs = tuple[Bool[np.ndarray, "runs events"], Float[np.ndarray, "runs events"]]


def drawn_streams(runs: int, events: int, seed: int) -> Runs:
    """Streams with known conditional probabilities that depend on the past and drift, for simulations."""
    generator = np.random.default_rng(seed)
    hits, truth = np.zeros((runs, events), bool), np.zeros((runs, events))
    level = generator.uniform(0.02, 0.5, runs)
    before = np.zeros(runs)
    for t in range(events):
        truth[:, t] = np.clip(level * (1 + 0.5 * np.sin(t / 50)) * (0.7 + 0.6 * before), 0.0, 1.0)
        hits[:, t] = generator.random(runs) < truth[:, t]
        before = 0.8 * before + 0.2 * hits[:, t]
    return hits, truth
