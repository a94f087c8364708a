"""Learners without JAX: stored weights of linear attention in any numbers (floats, fractions), and descent by hand."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from certiformer.compiler.incontext.compiled import ContextLearner
from certiformer.kernel.meanings.least_squares import LeastSquares


def fractions(values: Any, number: Callable[[float], Any] = Fraction) -> np.ndarray:
    """The same numbers as exact fractions, or as another exact kind of `number`."""
    return np.vectorize(lambda value: number(float(value)), otypes=[object])(np.asarray(values, float))


def tokens_of(learner: LeastSquares, x: np.ndarray, y: np.ndarray, query: np.ndarray) -> np.ndarray:
    """The tokens, with x / n in the arithmetic of `x`."""
    d, zero = learner.features, type(x.flat[0])(0)
    tokens = np.full((learner.rows + 1, 2 * d + 1), zero, dtype=x.dtype)
    tokens[: len(x), :d], tokens[: len(x), d : 2 * d], tokens[: len(x), 2 * d] = x / len(x), x, y
    tokens[-1, d : 2 * d] = query
    return tokens


def forward(compiled: ContextLearner, tokens: np.ndarray, number: Callable[[float], Any] = Fraction) -> Any:
    """The output of stored linear attention on tokens, in their own arithmetic (`number`, where tokens are objects)."""
    exact = tokens.dtype == object
    t = {name: fractions(a, number) if exact else a.astype(tokens.dtype) for name, a in compiled.tensors.items()}
    config = compiled.config
    data = tokens @ t["embed.weight"] + t["embed.bias"]
    stream = np.concatenate([t["registers"], data]) if config.registers else data
    for _ in range(config.loops):
        for number, block in enumerate(config.blocks):
            assert block.attention is not None and block.attention.kind == "linear"
            change = 0
            for group, heads in enumerate(block.attention.heads):
                name = f"blocks.{number}.attention.groups.{group}"
                for head in range(heads.count):
                    query, key, value, output = (
                        t[f"{name}.{role}"][head] for role in ("query", "key", "value", "output")
                    )
                    scores = (stream @ query) @ (stream @ key).T
                    change = change + (scores @ (stream @ value)) @ output
            stream = stream + change
    token = config.registers + (config.readout.token or 0)
    return (stream[token] @ t["readout.weight"] + t["readout.bias"])[0]


def descent(
    learner: LeastSquares, x: np.ndarray, y: np.ndarray, query: np.ndarray, number: Callable[[float], Any] = Fraction
) -> Any:
    """The steps of `meanings.least_squares` in exact numbers (or balls), written with weights instead of tokens."""
    x, y, query = (fractions(part, number) for part in (x, y, query))
    d, n = learner.features, len(x)
    eye = fractions(np.eye(d), number)
    matrix = x.T @ x / n + number(learner.strength) * eye
    weights, change = fractions(np.zeros(d), number), eye
    for step, beta in zip(learner.steps, learner.whiten, strict=True):
        weights = weights + number(step) * (change @ (change @ (x.T @ y / n - matrix @ weights)))
        change = change - number(beta) * (change @ matrix @ change) @ change
    return query @ weights


def contexts(learner: LeastSquares, seed: int, count: int):
    """Contexts of the box: corners, sparse, tiny, almost dependent and plain random ones, of all numbers of rows."""
    rng = np.random.default_rng(seed)
    d, dtype = learner.features, learner.dtype
    for number in range(count):
        n = 1 + number % learner.rows
        x, y = rng.uniform(-1, 1, (n, d)), rng.uniform(-1, 1, n)
        kind = number % 5
        if kind == 0:
            x, y = np.sign(x), np.sign(y)
        elif kind == 1:
            x = x * (rng.random((n, d)) < 0.3)
        elif kind == 2:
            x = x * 10.0 ** rng.integers(-12, 1, (n, d))
        elif kind == 3:
            x = np.repeat(x[:, :1], d, axis=1) * (1 - 1e-6 * rng.random((n, d)))
        query = np.sign(rng.uniform(-1, 1, d)) if number % 2 else rng.uniform(-1, 1, d)
        scaled = (learner.bound * x, learner.label_bound * y, learner.bound * query)
        # Rounding to the type may leave the box by half a unit; towards zero it does not.
        yield tuple(np.asarray(part).astype(dtype).astype(float) * (1 - 2.0**-7) for part in scaled)


class Leaning:
    """Numbers whose operations round as badly as they may: by one unit, upwards or downwards as `LEANS` says.

    Adding zero and multiplying by a power of two are exact, as in every binary format.
    """

    UNIT = 2.0**-20
    LEANS = (1, 1, 1)  # of sums, products and quotients

    def __init__(self, value: float):
        self.value = value

    def __add__(self, other: Any) -> Leaning:
        other = other.value if isinstance(other, Leaning) else other
        exact = other == 0 or self.value == 0 or self.value + other == 0
        return Leaning((self.value + other) * (1 if exact else 1 + self.LEANS[0] * self.UNIT))

    __radd__ = __add__

    def __mul__(self, other: Leaning) -> Leaning:
        exact = any(abs(np.frexp(part.value)[0]) in (0.5, 0.0) for part in (self, other))
        return Leaning(self.value * other.value * (1 if exact else 1 + self.LEANS[1] * self.UNIT))

    def __truediv__(self, count: int) -> Leaning:
        return Leaning(self.value / count * (1 + self.LEANS[2] * self.UNIT))
