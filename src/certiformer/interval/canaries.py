"""Start-up checks that compiler and hardware behave as the rounding rules of `padding` assume.

Level 1 rests on assumptions about compiled float64 code that no standard guarantees. Each is probed here once per process,
in a fraction of a second; a failure means that level 1 is refused on this installation. Passing is evidence, not proof.

`EXACT` holds elementary functions as (argument, correctly rounded value), in hexadecimal doubles that were computed with
ball arithmetic at 400 bits. The arguments are the worst ones met when the errors of `padding.MEASURED` were
measured, and hard or extreme ones: next to multiples of pi/2, at saturation, near overflow, near 1.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import jaxlib
import numpy as np

from certiformer.interval.padding import TINY, UNIT, relative
from certiformer.interval.rigorous import rigorous_jit

EXACT: dict[str, tuple[tuple[str, str], ...]] = {
    "sqrt": (
        ("0x1.0000000000000p+1", "0x1.6a09e667f3bcdp+0"),
        ("0x1.56e1fc2f8f359p-997", "0x1.a2fe76a3f9475p-499"),
        ("0x1.355c3c7a73afap+666", "0x1.196b12fdfb6dbp+333"),
        ("0x1.999999999999ap-4", "0x1.43d136248490fp-2"),
    ),
    "exp": (
        ("0x1.8f8253e7f5388p-2", "0x1.7a2981f1c4e14p+0"),
        ("0x1.c3969a6bb1f74p+8", "0x1.6b1797788dde8p+651"),
        ("-0x1.1f1f04a9dddc0p+2", "0x1.710d7f102b164p-7"),
        ("-0x1.5e00000000000p+9", "0x1.14f2b0fb9307fp-1010"),
        ("0x1.62d999999999ap+9", "0x1.d75ae7a50ee14p+1023"),
        ("0x1.70ef54646d497p-57", "0x1.0000000000000p+0"),
        ("-0x1.51e1a9311e018p-2", "0x1.701a50ccb318bp-1"),
        ("-0x1.70b0934db875fp+5", "0x1.6cf8c7b3ba05bp-67"),
    ),
    "log": (
        ("0x1.1a1d0022a24d8p+0", "0x1.8dd981fb7de3ep-4"),
        ("0x1.021c8b59cf4b3p+0", "0x1.0d29e50e00434p-7"),
        ("0x1.4ac68994a7d5cp-1019", "-0x1.6107c57d858aap+9"),
        ("0x1.7e43c8800759cp+996", "0x1.5963447f87fb5p+9"),
        ("0x1.6a09e667f3bccp-1", "-0x1.62e42fefa39f1p-2"),
        ("0x1.c4297316c7366p-1", "-0x1.fd1187b5a4a2ap-4"),
    ),
    "sin": (
        ("-0x1.ea490fad99ac0p-3", "-0x1.e59d9cb2e49d3p-3"),
        ("0x1.f2ace75e100a8p+14", "0x1.b29492207d847p-3"),
        ("0x1.53ceb35912c6ep+16", "0x1.5c3c0a80bc1f5p-35"),
        ("0x1.921fb54442d18p+1", "0x1.1a62633145c07p-53"),
        ("0x1.6000000000000p+4", "-0x1.220a29f6eb9f4p-7"),
        ("0x1.6300000000000p+8", "-0x1.f9bd0307d1de3p-16"),
        ("0x1.86a0000000000p+16", "0x1.24daa9c527e96p-5"),
    ),
    "cos": (
        ("-0x1.b995ab469bb20p+0", "-0x1.3a7008ae7f569p-3"),
        ("-0x1.542a3f9d80941p+15", "0x1.c0aa4492f7525p-3"),
        ("0x1.4f3c75128f204p+16", "-0x1.7c4f1d3ba50a1p-41"),
        ("0x1.921fb54442d18p+0", "0x1.1a62633145c07p-54"),
        ("0x1.6000000000000p+3", "0x1.220ae41ee2fdfp-8"),
        ("0x1.2d97c7f3321d2p+2", "-0x1.a79394c9e8a0ap-53"),
        ("0x1.869f800000000p+16", "-0x1.b8428c9f69a31p-1"),
    ),
    "tan": (
        ("0x1.83579c20c91bep+1", "-0x1.db2051abb085dp-4"),
        ("-0x1.d2f5adc95aa5cp+0", "0x1.ee8c11f840304p+1"),
        ("-0x1.4bef571ce80dap+15", "-0x1.f18f3433c9f1cp-1"),
        ("0x1.2d97c7f3321d2p+3", "-0x1.a79394c9e8a0ap-52"),
        ("0x1.9219652bd3c36p+0", "0x1.446a9e8d1a52fp+13"),
        ("0x1.4f8b588e368f1p-17", "0x1.4f8b588e6698ep-17"),
    ),
    "tanh": (
        ("0x1.113bcaa3b5430p-1", "0x1.f3e3b3f6d8b0cp-2"),
        ("-0x1.30fa0d4130658p+4", "-0x1.fffffffffffffp-1"),
        ("0x1.29e610e856aa8p+4", "0x1.fffffffffffffp-1"),
        ("0x1.5798ee2308c3ap-27", "0x1.5798ee2308c3ap-27"),
        ("0x1.6800000000000p+4", "0x1.0000000000000p+0"),
        ("-0x1.a36e2eb1c432dp-12", "-0x1.a36e2d3a7769ap-12"),
    ),
    "atan": (
        ("0x1.bc703510a3500p-3", "0x1.b5a6fceb4023dp-3"),
        ("-0x1.e42c664d58a9dp+3", "-0x1.813a977ee8eb2p+0"),
        ("0x1.7e43c8800759cp+996", "0x1.921fb54442d18p+0"),
        ("0x1.12e0be826d695p-30", "0x1.12e0be826d695p-30"),
        ("0x1.b851eb851eb85p-2", "0x1.9fd82b5dc5e5fp-2"),
    ),
    "erf": (
        ("-0x1.a8f71d81b0700p-8", "-0x1.df83e84fdcd17p-8"),
        ("0x1.5dcb9b0f42470p-4", "0x1.89be8d10a9565p-4"),
        ("0x1.ac926e42efb76p-1", "0x1.86e924bcb7691p-1"),
        ("0x1.799999999999ap+2", "0x1.fffffffffffffp-1"),
        ("-0x1.8000000000000p+1", "-0x1.fffd1ac4135f9p-1"),
        ("0x1.19799812dea11p-40", "0x1.3d9c49b6a903ep-40"),
    ),
}


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
