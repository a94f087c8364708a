"""Norms and per-head spectra of a model with the shapes of Llama-2 7B, on whatever device JAX chooses: goal 60 s.

    python benchmarks/gpu/audit.py                   # 32 layers, 6.7 billion random bfloat16 weights, made on the device
    python benchmarks/gpu/audit.py --layers 1 --json # a short try, for machines
    python benchmarks/gpu/audit.py --tiny            # two small layers, on any machine

It needs JAX, NumPy and jaxtyping, the files of this checkout, and nothing else: no installation, no network. The first
line says which device it is.

What is computed, layer by layer, in float64 from the bfloat16 weights: of every map the Frobenius, l1, (2,1) and largest
row norms and the spectral norm (Lanczos steps with full orthogonalisation, as in `certiformer.spectrum.lanczos`); of every
head all singular values of W_Q^T W_K / sqrt e and of W_O W_V through triangular cores (two Cholesky factorisations). The
heads of the first layer are compared with `certiformer.spectrum` on the processor, and so is the spectral norm of a map.

Exit code 1: the heads differ by more than 1e-8 of the largest value or the map by more than 1e-4, or it took too long.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from certiformer.spectrum import largest_by_lanczos, product_values

GOAL, AGREE, STEPS = 60.0, 1e-8, 64
AGREE_MAPS = (
    1e-4  # Lanczos from two random starts: after 64 steps both are this near to the edge of a Gaussian spectrum
)


class Shape(NamedTuple):
    """Widths of a model."""

    width: int = 4096
    hidden: int = 11008
    heads: int = 32
    words: int = 32000

    @property
    def maps(self) -> tuple[tuple[int, int], ...]:
        """Query, key, value, output, then gate, up and down."""
        return (*((self.width, self.width),) * 4, *((self.hidden, self.width),) * 2, (self.width, self.hidden))


def main(arguments: list[str] | None = None) -> int:
    """Runs all layers and returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=32, help="(default: %(default)s)")
    parser.add_argument("--tiny", action="store_true", help="two layers of width 64")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    chosen = parser.parse_args(arguments)
    jax.config.update("jax_enable_x64", True)
    shape, layers = (Shape(64, 96, 4, 200), 2) if chosen.tiny else (Shape(), chosen.layers)
    device = jax.devices()[0]
    facts: dict[str, Any] = {"device": f"{device.platform} {device.device_kind}", "jax": jax.__version__}
    if not chosen.json:
        print(facts["device"], flush=True)
    facts |= {"layers": layers, "parameters": parameters(shape, layers), **measured(shape, layers)}
    agrees = facts["deviation"] < AGREE and facts["map_deviation"] < AGREE_MAPS
    facts["right"] = facts["seconds"] < GOAL and agrees
    print(json.dumps(facts, indent=1) if chosen.json else described(facts))
    return 0 if facts["right"] else 1


def parameters(shape: Shape, layers: int) -> int:
    own = sum(rows * columns for rows, columns in shape.maps) + 2 * shape.width
    return layers * own + 2 * shape.words * shape.width + shape.width


def measured(shape: Shape, layers: int) -> dict[str, Any]:
    """All layers and both tables; the time is from the first weight to the last number, compilation included."""
    key, spectra, spectral, layer_seconds, first = jax.random.key(0), [], [], [], None
    began = time.perf_counter()
    for number in range(layers):
        start = time.perf_counter()
        weights = [random_map(jax.random.fold_in(key, 16 * number + k), m) for k, m in enumerate(shape.maps)]
        spectra.append(np.array(head_spectra(*weights[:4], heads=shape.heads)))
        spectral += [np.array(map_norms(weight)) for weight in weights]
        layer_seconds.append(round(time.perf_counter() - start, 3))
        first = [np.asarray(weight, np.float64) for weight in weights[:5]] if number == 0 else first
    for table in range(2):
        spectral.append(
            np.array(map_norms(random_map(jax.random.fold_in(key, 16 * layers + table), (shape.words, shape.width))))
        )
    seconds = time.perf_counter() - began
    facts = {"seconds": round(seconds, 3), "first_layer_seconds": layer_seconds[0]}
    facts |= {"other_layers_seconds": round(sum(layer_seconds[1:]), 3)}
    facts |= {
        "largest_qk": float(np.max([s[0, :, 0] for s in spectra])),
        "largest_vo": float(np.max([s[1, :, 0] for s in spectra])),
    }
    facts |= {"largest_map": float(np.max([norms[-1] for norms in spectral])), "maps": len(spectral)}
    query, key_map, value, output, gate = first or []
    facts["deviation"] = deviation(query, key_map, value, output, spectra[0])
    expected = largest_by_lanczos(gate.astype(np.float32), STEPS)[0]
    return {**facts, "map_deviation": float(abs(spectral[4][-1] / expected - 1))}


@partial(jax.jit, static_argnums=1)
def random_map(key: Array, shape: tuple[int, int]) -> Float[Array, "rows columns"]:
    """Gaussian weights, rounded to bfloat16."""
    return (0.02 * jax.random.normal(key, shape, jnp.float32)).astype(jnp.bfloat16)


@partial(jax.jit, static_argnames="heads")
def head_spectra(query: Array, key: Array, value: Array, output: Array, heads: int) -> Float[Array, "2 heads size"]:
    """The singular values of W_Q^T W_K / sqrt e and of W_O W_V for all heads."""
    width = query.shape[1]
    size = query.shape[0] // heads
    rows = [w.astype(jnp.float64).reshape(heads, size, width).swapaxes(1, 2) for w in (query, key, value)]
    columns = output.astype(jnp.float64).reshape(width, heads, size).swapaxes(0, 1)
    q, k, v, o = (triangle(each) for each in (*rows, columns))
    cores = jnp.stack([q @ k.swapaxes(1, 2) / jnp.sqrt(size), o @ v.swapaxes(1, 2)])
    return jnp.linalg.svd(cores, compute_uv=False)


def triangle(thin: Float[Array, "heads width size"]) -> Float[Array, "heads size size"]:
    """R of the QR factorisation by two Cholesky factorisations, as accurate as Householder's up to condition 1e8."""
    first = jnp.linalg.cholesky(thin.swapaxes(1, 2) @ thin).swapaxes(1, 2)
    unit = jax.scipy.linalg.solve_triangular(first, thin.swapaxes(1, 2), trans=1).swapaxes(1, 2)
    return jnp.linalg.cholesky(unit.swapaxes(1, 2) @ unit).swapaxes(1, 2) @ first


@jax.jit
def map_norms(weight: Float[Array, "rows columns"]) -> Float[Array, " norms"]:
    """Frobenius, l1, both (2,1) norms, the largest row norms in l1 and l2, and the spectral norm."""
    squares, sizes = weight.astype(jnp.float64) ** 2, jnp.abs(weight.astype(jnp.float64))
    rows, columns = squares.sum(1), squares.sum(0)
    found = [jnp.sqrt(rows.sum()), sizes.sum(), jnp.sqrt(columns).sum(), jnp.sqrt(rows).sum(), sizes.sum(1).max()]
    return jnp.stack([*found, jnp.sqrt(rows.max()), spectral_norm(weight.astype(jnp.float64))])


def spectral_norm(w: Float[Array, "rows columns"]) -> Float[Array, ""]:
    """Golub-Kahan-Lanczos steps with full orthogonalisation; the largest singular value of the small bidiagonal."""
    rows, columns = w.shape
    steps = min(STEPS, rows, columns)
    start = jax.random.normal(jax.random.key(1), (columns,), jnp.float64)

    def step(number: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
        left, right, diagonal, beside, vector = state
        right = right.at[number].set(vector)
        image = w @ vector
        for _ in range(2):  # rows that are not filled yet are zero and take nothing away
            image = image - left.T @ (left @ image)
        length = jnp.linalg.norm(image)
        left = left.at[number].set(image / length)
        following = w.T @ left[number]
        for _ in range(2):
            following = following - right.T @ (right @ following)
        rest = jnp.linalg.norm(following)
        return left, right, diagonal.at[number].set(length), beside.at[number].set(rest), following / rest

    zero = jnp.zeros(steps, jnp.float64)
    state = (jnp.zeros((steps, rows)), jnp.zeros((steps, columns)), zero, zero, start / jnp.linalg.norm(start))
    _, _, diagonal, beside, _ = jax.lax.fori_loop(0, steps, step, state)
    return jnp.linalg.svd(jnp.diag(diagonal) + jnp.diag(beside[:-1], 1), compute_uv=False)[0]


def deviation(query: np.ndarray, key: np.ndarray, value: np.ndarray, output: np.ndarray, spectra: np.ndarray) -> float:
    """How far the heads of the first layer are from those on the processor, as a share of the largest value."""
    heads, width = spectra.shape[1], query.shape[1]
    rows = [each.reshape(heads, -1, width).swapaxes(1, 2) for each in (query, key, value)]
    columns = output.reshape(width, heads, -1).swapaxes(0, 1)
    expected = [product_values(rows[0], rows[1]) / np.sqrt(rows[0].shape[2]), product_values(columns, rows[2])]
    return max(float(np.abs(found - right).max() / right.max()) for found, right in zip(spectra, expected, strict=True))


def described(facts: dict[str, Any]) -> str:
    """The facts in a few lines."""
    return (
        f"{facts['parameters']:,} parameters in {facts['layers']} layers: {facts['seconds']:.1f} s (goal {GOAL:g}), the"
        f" first layer with compilation {facts['first_layer_seconds']:.1f} s, the others"
        f" {facts['other_layers_seconds']:.1f} s\n"
        f"largest |W_Q^T W_K| / sqrt e {facts['largest_qk']:.6f}, |W_O W_V| {facts['largest_vo']:.6f}, map"
        f" {facts['largest_map']:.6f}; deviation from the processor {facts['deviation']:.1e}"
    )


if __name__ == "__main__":
    sys.exit(main())
