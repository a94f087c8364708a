"""Smoothness of the target against size and sample size: the exponents of Takakura & Suzuki, measured.

Three measurements of the same functions: truncation to dyadic blocks (no model, no noise), least squares on those blocks
from n noisy values (no training), and trained transformers whose tokens are the coordinates of the point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from certiformer.model.config import Attention, Block, Code, Config, FeedForward, Heads, Input, Readout
from certiformer.model.transformer import Transformer
from certiformer.rates.smooth_targets import axis_sum, filled_sample, grid_sample, least_squares_errors
from certiformer.rates.smoothness_summary import QUESTION, summary
from certiformer.rates.spectral_smoothness import smoothness, truncation_errors
from certiformer.rates.study import Study
from certiformer.sweep.job import Job, Row
from certiformer.train import Optimiser, Problem, stack, train, transformer_outputs

HERE = "certiformer.rates.studies.smoothness"
TESTED = 4096  # fresh points behind every error
POOL = 2**16  # the data set without noise, many more points than a small model has weights
BATCH = 128


@dataclass(frozen=True)
class Options:
    """The trained target is the sum over the axes of sines of frequency 2^j and size 2^(-a_i j), j = 0 .. levels."""

    exponents: tuple[float, ...] = (1.0, 2.0)
    """Smoothness a_i of the trained target along each axis."""
    levels: int = 4
    """Largest j of the trained target."""
    grid: int = 1024
    """Points per axis of the FFT, a power of two."""
    widths: tuple[int, ...] = (4, 8, 16, 32)
    """Widths of the trained transformers; hidden layers are twice as wide."""
    samples: tuple[int, ...] = (256, 512, 1024, 2048, 4096, 8192)
    """Numbers of noisy training points."""
    noise: float = 1.0
    """Standard deviation of the noise."""
    seeds: int = 3
    """Independent runs."""
    steps: int = 4000
    """Steps of Adam."""
    rate: float = 3e-3
    """Learning rate at the start; it falls to 0 as a cosine."""
    seed: int = 0
    """Where all randomness starts."""


def jobs(options: Options) -> list[Job]:
    """One job for the FFTs, one per seed for least squares, one per width and seed for the trained models."""
    target = {"exponents": list(options.exponents), "seed": options.seed}
    found = [Job(f"{HERE}:analysed", {**target, "grid": options.grid})]
    seeds = [options.seed + 1000 * repeat for repeat in range(options.seeds)]
    noisy = {"samples": list(options.samples), "noise": options.noise}
    found += [Job(f"{HERE}:estimated", {**target, **noisy, "seed": seed}) for seed in seeds]
    learning = {"levels": options.levels, "steps": options.steps, "rate": options.rate}
    return found + [
        Job(f"{HERE}:run", {**target, **noisy, **learning, "width": width, "seed": seed})
        for width in options.widths
        for seed in seeds
    ]


def analysed(config: dict[str, Any]) -> list[Row]:
    """Exponents found by FFT, and truncation errors, for the sum over axes and for functions with every block filled."""
    a, grid = config["exponents"], config["grid"]
    levels = int(np.log2(grid)) - 2  # the octave below the highest frequency stays empty
    samples = {
        "sum over axes": grid_sample(a, levels, grid),
        "filled, anisotropic": filled_sample(a, "anisotropic", grid, config["seed"]),
        "filled, mixed": filled_sample(a, "mixed", grid, config["seed"]),
    }
    rows = []
    for name, values in samples.items():
        found = smoothness(values)
        # Levels at which every axis gains whole blocks, so that the count does not jump between them; the least smooth
        # axis must still have blocks left out. A sliver above, since the blocks kept are those strictly below T.
        steps = np.arange(2, int(levels * min(a) / max(a)) + 1)
        for kind in ("anisotropic", "mixed"):
            if name.endswith("mixed") and kind == "anisotropic" or name.endswith("anisotropic") and kind == "mixed":
                continue
            counts, mse, l1 = truncation_errors(values, a, steps * max(a) + 1e-9, kind)
            rows.append(
                {
                    "kind": "truncation",
                    "target": name,
                    "gamma": kind,
                    "found": found.kind,
                    "a": found.a,
                    "a_low": [low for low, _ in found.intervals],
                    "a_high": [high for _, high in found.intervals],
                    "misfit_mixed": found.misfit_mixed,
                    "misfit_anisotropic": found.misfit_anisotropic,
                    "terms": counts.tolist(),
                    "mse": mse.tolist(),
                    "l1": l1.tolist(),
                }
            )
    return rows


def estimated(config: dict[str, Any]) -> list[Row]:
    """Least squares on dyadic blocks from noisy values, with the best level for each number of samples."""
    a = config["exponents"]
    levels = 10  # far above what the largest sample resolves
    generator = np.random.default_rng([config["seed"], 1])
    test = generator.random((TESTED, len(a)))
    wanted = axis_sum(test, a, levels)
    rows = []
    for count in config["samples"]:
        x = generator.random((count, len(a)))
        y = axis_sum(x, a, levels) + config["noise"] * generator.standard_normal(count)
        for kind in ("anisotropic", "mixed"):
            found = least_squares_errors(x, y, (test, wanted), a, kind, np.arange(1, 24) * min(a) + 1e-9)
            named = dict(zip(("mse", "l1", "terms"), found, strict=True))
            rows.append({"kind": "least squares", "gamma": kind, "samples": count, "seed": config["seed"], **named})
    return rows


def model_config(axes: int, width: int) -> Config:
    """The coordinates are tokens, told apart by a stored code: feed-forward, attention, feed-forward, mean."""
    attention = Attention((Heads(1, 4, width),), bias=True, scale="unit")
    blocks = (Block(ffn=FeedForward(2 * width)), Block(attention, FeedForward(2 * width)))
    return Config(
        Input("continuous", axes, 1), width, 1, Readout("mean"), blocks=blocks, code=Code("table"), dtype="float32"
    )


@cache
def problem(config: Config) -> Problem:
    """A batch from the first n points of a shared data set; each member has its own n and its own noise."""

    def draw(key: Any, member: Any, shared: Any) -> Any:
        place = jax.random.randint(key, (BATCH,), 0, member["samples"], jnp.int32)
        x, y, noise = (each[place] for each in shared)
        return x[..., None], (y + member["noise"] * noise)[:, None]

    return Problem(transformer_outputs(config), draw)


def run(config: dict[str, Any]) -> list[Row]:
    """Train one width on the data set without noise and on every number of noisy samples."""
    a, seed, counts = config["exponents"], config["seed"], [POOL, *config["samples"]]
    noises = [0.0] + [config["noise"]] * len(config["samples"])
    generator = np.random.default_rng([seed, 2])
    pool = max(counts)
    x = generator.random((pool + TESTED, len(a)), np.float32)
    y = np.asarray(axis_sum(x, a, config["levels"]), np.float32)
    noise = generator.standard_normal(pool, np.float32)
    model = model_config(len(a), config["width"])
    start = Transformer.random(model, seed)
    weights = {name: jnp.asarray(tensor, jnp.float32) for name, tensor in start.tensors.items()}
    member = {"samples": jnp.asarray(counts, jnp.int32), "noise": jnp.asarray(noises, jnp.float32)}
    trained = train(
        problem(model),
        stack([weights] * len(counts)),
        seeds=np.full(len(counts), seed),
        optimiser=Optimiser(rate=config["rate"], schedule="cosine"),
        steps=config["steps"],
        member=member,
        shared=tuple(jnp.asarray(each) for each in (x[:pool], y[:pool], noise)),
    )
    rows = []
    for place, count in enumerate(counts):
        diverged = bool(trained.diverged[place])
        error = np.zeros(1)
        if not diverged:
            tensors = {name: np.asarray(stacked[place]) for name, stacked in trained.params.items()}
            error = Transformer(model, tensors).evaluate(x[pool:], "float32")[:, 0].astype(float) - y[pool:]
        rows.append(
            {
                "kind": "trained",
                "width": config["width"],
                "parameters": start.parameter_count(),
                "samples": 0 if place == 0 else count,
                "seed": seed,
                "diverged": diverged,
                "mse": None if diverged else float(np.mean(error**2)),
                "l1": None if diverged else float(np.mean(np.abs(error))),
            }
        )
    return rows


def _summary(rows: Sequence[Row], options: Options) -> Any:
    return summary(rows, asdict(options))


STUDY = Study(
    name="smoothness",
    question=QUESTION,
    options=Options,
    full={
        "grid": 2048,
        "widths": (4, 8, 16, 32, 64),
        "samples": (256, 512, 1024, 2048, 4096, 8192, 16_384, 32_768),
        "seeds": 8,
        "steps": 20_000,
    },
    jobs=jobs,
    summary=_summary,
)
