"""Compilation for enclosures: `jax.jit` with the algebraic simplifier switched off.

With the simplifier on, XLA rewrites x/3 as a product with a rounded 1/3, re-associates constants (so that a padding
factor can vanish into them) and merges exp(x)*exp(y). Off, compiled float64 code is IEEE arithmetic except for fused
multiply-add, the order of sums and flushed denormals, which `padding` allows for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp

try:
    from jax.experimental.xla_metadata import set_xla_metadata
except ImportError:  # experimental, so it may move; without it `apart` only loses its speed
    set_xla_metadata = None

# The reshape mover undoes itself without the simplifier: it adds transposes in pairs until its iteration limit.
REQUIRED_OPTIONS = {"xla_disable_hlo_passes": "algsimp,reshape-mover"}
# Enclosures are many small kernels; the older emitter compiles them in half the time and they run as fast.
PREFERRED_OPTIONS = {"xla_cpu_use_fusion_emitters": False}


@cache
def compiler_options() -> dict[str, Any]:
    """The options of `rigorous_jit`; a preferred one that this version of XLA does not know is left out."""
    options: dict[str, Any] = dict(REQUIRED_OPTIONS)
    for name, value in PREFERRED_OPTIONS.items():
        try:
            jax.jit(jnp.negative, compiler_options={name: value}).lower(1.0).compile()
        except Exception as error:
            if "No such compile option" not in str(error):
                raise
        else:
            options[name] = value
    return options


def rigorous_jit(function: Callable, optimise: bool = True, **options: Any) -> Callable:
    """`jax.jit(function)` compiled so that outward rounding survives; needs `jax_enable_x64`.

    `optimise=False` compiles in less than half the time, and the result runs four to six times slower: better for a few
    thousand boxes. Both are equally rigorous.
    """
    if not jax.config.read("jax_enable_x64"):
        raise RuntimeError("rigorous_jit needs 64-bit floats: call jax.config.update('jax_enable_x64', True) first")
    chosen = compiler_options() if optimise else {**compiler_options(), "xla_backend_optimization_level": 0}
    return jax.jit(function, compiler_options=chosen, **options)


def apart(function: Callable, *arguments: Any) -> Any:
    """`function(*arguments)` as a call that XLA does not inline when it compiles.

    XLA's CPU fusion copies a cheap producer into each of its consumers, and a chain of enclosures is one long chain of
    cheap producers: a sine came out compiled 40 times instead of 4. A call boundary stops that. It changes speed only.
    """
    if set_xla_metadata is None:
        return function(*arguments)
    with set_xla_metadata(inlineable="false"):
        return jax.jit(function)(*arguments)
