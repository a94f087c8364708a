"""Settings for every test: 64-bit arithmetic, one XLA thread per worker, warnings of JAX as errors."""

import os

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import pytest

from certiformer.checker.balls import working_precision

jax.config.update("jax_enable_x64", True)


@pytest.fixture(autouse=True)
def checkers_precision():
    """Some tests compute oracles at another precision of python-flint's global context; none may leak into the next."""
    working_precision()
