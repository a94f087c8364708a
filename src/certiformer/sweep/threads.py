"""One thread per worker, on every engine: sums that are split over threads end in other last bits.

What it takes for XLA on a CPU is NPROC=1, read when JAX starts its backend (not when it is imported): it sets the size
of the thread pool by which long contractions are split. With jax 0.10.1, the product of a 10 x 100,000 matrix with a
100,000 x 10 one has other last bits for pools of 1, 2 and 8 threads; the flag xla_cpu_multi_thread_eigen=false alone
changes nothing. The linear algebra behind numpy reads its variables when it is loaded. Workers are started with all of
them set. This process sets NPROC as long as JAX has not started, and holds the other libraries to one thread while
jobs run.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

_LIBRARIES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
_XLA = "--xla_cpu_multi_thread_eigen=false"
_JAX_SETTINGS = (
    "jax_enable_x64",
    "jax_default_matmul_precision",
    "jax_default_prng_impl",
    "jax_threefry_partitionable",
)


def worker_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """What to set for a worker, given the environment it starts from: one thread, the CPU, and the settings of JAX that
    this process has changed and that decide numbers.

    >>> worker_environment({"XLA_FLAGS": "--some_flag=1"})["XLA_FLAGS"]
    '--some_flag=1 --xla_cpu_multi_thread_eigen=false'
    """
    settings = {name: "1" for name in _LIBRARIES} | {"NPROC": "1", "JAX_PLATFORMS": "cpu"}
    settings["XLA_FLAGS"] = _with_flag(environment.get("XLA_FLAGS", ""))
    jax = sys.modules.get("jax")
    if jax is not None:
        values = {name: getattr(jax.config, name, None) for name in _JAX_SETTINGS}
        settings |= {name.upper(): str(value) for name, value in values.items() if value is not None}
    return settings


def _with_flag(flags: str) -> str:
    return flags if _XLA in flags.split() else f"{flags} {_XLA}".strip()


@contextmanager
def one_thread_here() -> Iterator[str | None]:
    """The same for this process, as far as it can still be set; what cannot is said in the sentence that is given."""
    note = None
    if not _jax_runs():
        os.environ["XLA_FLAGS"] = _with_flag(os.environ.get("XLA_FLAGS", ""))
        os.environ["NPROC"] = "1"
    elif os.environ.get("NPROC") != "1" and usable_cores() > 1:
        note = (
            "JAX was started in this process with several threads, so the last bits of results can differ from those "
            "of other engines: set NPROC=1 before it starts, or choose the engine cores"
        )
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):
        yield note


def _jax_runs() -> bool:
    """Whether JAX has started a backend in this process."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    return bridge is not None and bool(bridge.backends_are_initialized())


def usable_cores() -> int:
    """How many workers of one thread fit here: the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
