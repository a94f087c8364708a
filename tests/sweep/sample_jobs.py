"""Job functions for the tests of sweeps. Workers import this module by name, from the path they are given."""

from __future__ import annotations

import math
import os
import signal
import time
from typing import Any

from certiformer.errors import BadInput


def square(config: dict[str, Any]) -> list[dict[str, Any]]:
    """One row; takes `seconds`; with `trace`, adds a line to that file (how often was this job run?)."""
    time.sleep(config.get("seconds", 0.0))
    note(config)
    return [{"x": config["x"], "square": config["x"] ** 2, "root": math.sqrt(config["x"])}]


def broken(config: dict[str, Any]) -> list[dict[str, Any]]:
    note(config)
    raise ValueError(f"no result for {config['x']}")


def misused(config: dict[str, Any]) -> list[dict[str, Any]]:
    note(config)
    raise BadInput("x has to be even")


def deadly(config: dict[str, Any]) -> list[dict[str, Any]]:
    """Kills the process it runs in."""
    note(config)
    os.kill(os.getpid(), signal.SIGKILL)
    return []


def deadly_once(config: dict[str, Any]) -> list[dict[str, Any]]:
    """Kills the process it runs in, the first time."""
    return square(config) if os.path.exists(config["trace"]) else deadly(config)


def interrupted(config: dict[str, Any]) -> list[dict[str, Any]]:
    """What Ctrl-C does while a job runs, the first time."""
    if not os.path.exists(config["trace"]):
        note(config)
        raise KeyboardInterrupt
    return square(config)


def many_numbers(config: dict[str, Any]) -> list[dict[str, Any]]:
    """A kilobyte per row, which no compression shortens."""
    return [{"bytes": list(os.urandom(1000))} for _ in range(config["rows"])]


def contraction(config: dict[str, Any]) -> list[dict[str, Any]]:
    """A product whose sums are long enough for XLA to split them over its threads, and the same with numpy."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    values = jax.random.normal(jax.random.key(config["seed"]), (100_000, 10), jnp.float32)
    product = jax.jit(lambda a: jnp.einsum("ki,kj->ij", a, a))(values)
    host = np.asarray(values, np.float64)
    return [{"jax": np.asarray(product)[row], "numpy": (host.T @ host)[row]} for row in range(10)]


def training(config: dict[str, Any]) -> list[dict[str, Any]]:
    """Four members of a small two-layer network, trained for a few steps."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    from certiformer.train import Optimiser, Problem, train

    keys = jax.random.split(jax.random.key(config["seed"]), 4)
    start = {
        "in": jax.vmap(lambda key: jax.random.normal(key, (2, 16), jnp.float32))(keys),
        "out": jax.vmap(lambda key: jax.random.normal(key, (16, 1), jnp.float32) / 4)(keys),
    }
    result = train(
        Problem(_outputs, _draw), start, seeds=np.arange(4), optimiser=Optimiser(rate=1e-2), steps=20, record=10
    )
    return [{"member": i, "losses": result.losses[i], "weights": result.params["in"][i].ravel()} for i in range(4)]


def _outputs(params: Any, x: Any) -> Any:
    import jax

    return jax.nn.relu(x @ params["in"]) @ params["out"]


def _draw(key: Any, member: Any, shared: Any) -> Any:
    import jax
    import jax.numpy as jnp

    x = jax.random.normal(key, (32, 2), jnp.float32)
    return x, jnp.sin(x.sum(1, keepdims=True))


def note(config: dict[str, Any]) -> None:
    if "trace" in config:
        with open(config["trace"], "a") as file:
            file.write(f"{config['x']}\n")
