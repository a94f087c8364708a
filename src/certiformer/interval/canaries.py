"""Start-up checks that compiler and hardware behave as the rounding rules of `padding` assume.

Level 1 rests on assumptions about compiled float64 code that no standard guarantees. Each is probed here once per process,
in a fraction of a second; a failure means that level 1 is refused on this installation. Passing is evidence, not proof.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import jaxlib
import numpy as np

from certiformer.interval.exact_values import EXACT
from certiformer.interval.padding import TINY, UNIT, relative
from certiformer.interval.rigorous import rigorous_jit

BROKEN_VERSIONS = {"0.10.2": "wrong rows of a batched matrix-vector product followed by a sum on CPU (jax issue 39103)"}

FUNCTIONS: dict[str, Callable] = {
    "sqrt": jnp.sqrt,
    "exp": jnp.exp,
    "log": jnp.log,
    "sin": jnp.sin,
    "cos": jnp.cos,
    "tan": jnp.tan,
    "tanh": jnp.tanh,
    "atan": jnp.arctan,
    "erf": jax.scipy.special.erf,
}


class Canaries(NamedTuple):
    """What the checks found: one sentence for each assumption that does not hold here."""

    failures: tuple[str, ...]

    @property
    def sound(self) -> bool:
        """Whether level 1 may be used."""
        return not self.failures


@cache
def run_canaries(batch: int = 1024) -> Canaries:
    """Probe every assumption, with `batch` as the number of boxes per compiled call."""
    failures = _versions(jax.__version__, jaxlib.version.__version__) + _device()
    if not failures:
        failures = _arithmetic(optimise=True) + _arithmetic(optimise=False) + _batches(batch)
    return Canaries(tuple(dict.fromkeys(failures)))


def _versions(*versions: str) -> list[str]:
    return [f"jax {v} is refused: {BROKEN_VERSIONS[v]}" for v in dict.fromkeys(versions) if v in BROKEN_VERSIONS]


def _device() -> list[str]:
    failures = []
    if not jax.config.read("jax_enable_x64"):
        failures.append("64-bit floats are off: set jax_enable_x64")
    if jax.default_backend() != "cpu":
        failures.append(f"rounding was measured on CPU only, and the default device is {jax.default_backend()}")
    return failures


def _probe(x: jax.Array, tiny: jax.Array, points: dict[str, jax.Array]) -> dict[str, jax.Array]:
    values = {name: FUNCTIONS[name](z) for name, z in points.items()}
    return values | {
        "third": x / 3,
        "padded": x * (1 + UNIT) * (1 / 3),
        "nested": (x / 1.7) / x[::-1],
        "shifted": (x + 1.1) + 2.3,
        "tiny sum": tiny[0] + tiny[1],
        "tiny pad": jnp.zeros(()) - tiny[0],
        "tiny below": tiny[2] + jnp.zeros(()),
        "unknown": jnp.stack(_of_nan(tiny[3], tiny[0])),
    }


def _of_nan(nan: jax.Array, number: jax.Array) -> list[jax.Array]:
    """Operations through which NaN must survive in either place, and comparisons that it must fail (written as NaN)."""
    pairs = [(nan, number), (number, nan)]
    out = [op(a, b) for a, b in pairs for op in (jnp.maximum, jnp.minimum)]
    out += [op(jnp.stack([a, b, a])) for a, b in pairs for op in (jnp.max, jnp.min, jnp.sum)]
    out += [jnp.clip(nan, -number, number), jnp.clip(number, nan, number)]
    return out + [jnp.where((a <= b) | (a >= b), 0.0, jnp.nan) for a, b in pairs]


def _arithmetic(optimise: bool) -> list[str]:
    """Exact division, surviving padding, flushed denormals and spot values of the elementary functions."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0.5, 2.0, 4099) * 2.0 ** rng.integers(-20, 20, 4099)
    tiny = np.array([TINY, TINY, 1e-310, np.nan])
    points = {n: np.array([float.fromhex(a) for a, _ in pairs]) for n, pairs in EXACT.items()}
    got = {
        n: np.asarray(v) for n, v in rigorous_jit(lambda *inputs: _probe(*inputs), optimise)(x, tiny, points).items()
    }
    failures = []
    if not (got["third"] == x / 3).all():
        failures.append("x / 3 is not an exact IEEE division: the algebraic simplifier is still on")
    if not (got["nested"] == (x / 1.7) / x[::-1]).all() or not (got["shifted"] == (x + 1.1) + 2.3).all():
        failures.append("constants are re-associated: the algebraic simplifier is still on")
    if not (got["padded"] > x * (1 / 3)).all():
        failures.append("a padding factor was folded into a constant")
    if not (got["tiny sum"] == 2 * TINY and got["tiny pad"] == -TINY and 0 <= got["tiny below"] <= 1e-310):
        failures.append(f"the absolute padding {TINY} does not survive")
    if not np.isnan(got["unknown"]).all():
        failures.append("NaN does not survive maximum, minimum or a comparison")
    for name, pairs in EXACT.items():
        exact = np.array([float.fromhex(v) for _, v in pairs])
        # Half a unit of the stored rounding is inside the quarter of the allowance that was ever measured.
        wrong = ~(np.abs(got[name] - exact) <= relative(name) * np.abs(exact) + TINY)
        if wrong.any():
            at = points[name][wrong][0]
            failures.append(
                f"{name}({at!r}) is {got[name][wrong][0]!r}, further from {exact[wrong][0]!r} than its padding"
            )
    return failures


def _batches(batch: int) -> list[str]:
    """A batched matrix-vector product followed by a sum: right for this batch size, and the same for another one.

    Small integers make every product and sum exact, so any difference is a wrong row and not a rounding.
    """
    rows = np.random.default_rng(1).integers(-50, 50, (batch, 3)).astype(float)
    matrix = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, -1.0], [3.0, 0.0, 1.0]])
    expected = ((rows @ matrix.T) ** 2).sum(1)

    def norms(x: jax.Array) -> jax.Array:
        return jax.vmap(lambda row: jnp.sum((jnp.asarray(matrix) @ row) ** 2))(x)

    failures = []
    if not (np.asarray(rigorous_jit(norms)(rows)) == expected).all():
        failures.append(
            f"a batched matrix-vector product followed by a sum is wrong at batch {batch} (jax issue 39103)"
        )
    half = max(1, batch // 2)
    if not (np.asarray(rigorous_jit(norms)(rows[:half])) == expected[:half]).all():
        failures.append(f"results at batch {half} differ from those at batch {batch}")
    return failures
