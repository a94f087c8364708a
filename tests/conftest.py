"""Settings for every test: 64-bit arithmetic, one XLA thread per worker, warnings of JAX as errors."""

import gc
import os
import signal

# Workers keep the cores busy: programs are neither run nor compiled in several threads.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1 --xla_cpu_parallel_codegen_split_count=1",
)
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import pytest

from certiformer.kernel.balls import working_precision

jax.config.update("jax_enable_x64", True)
# A shell starts what runs in the background with Ctrl-C ignored, and so would every process that a test sends one to.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# Thousands of tests and traced programs are alive: looking through them for garbage as often as usual takes 5 % of the time.
gc.set_threshold(100_000, 50, 50)


def pytest_collection_finish() -> None:
    """What is there before the first test stays."""
    gc.freeze()


@pytest.fixture(autouse=True)
def checkers_precision():
    """Some tests compute oracles at another precision of python-flint's global context; none may leak into the next."""
    working_precision()
