"""Made-up rows of the studies of size, where the truth is known."""

from __future__ import annotations

from typing import Any

import numpy as np

from certiformer.sweep.job import Row

NOISE = np.random.default_rng(5).normal(size=(64, 64))


def row(target: str, kind: str, x: float, seed: int, error: float, **more: Any) -> Row:
    """One model with this mean squared error on fresh points, nine tenths of it on the training sample."""
    return {
        "target": target,
        "kind": kind,
        "group": "",
        "x": float(x),
        "seed": seed,
        "heads": 1,
        "depth": 1,
        "norm": "none",
        "parameters": int(10 * x),
        "train_mse": 0.9 * error,
        "train_l1": 0.7 * error**0.5,
        "test_mse": error,
        "test_l1": 0.8 * error**0.5,
        "test_sup": 3 * error**0.5,
        "bound": None,
        "diverged": False,
        **more,
    }


def noisy(error: float, seed: int, place: int, spread: float = 0.05) -> float:
    """The error times a lognormal factor that is the same in every run."""
    return float(error * np.exp(spread * NOISE[seed, place % 64]))


def sentence(findings: list[str], *parts: str) -> str:
    """The one finding that has all the parts."""
    found = [text for text in findings if all(part in text for part in parts)]
    assert len(found) == 1, (parts, findings)
    return found[0]
