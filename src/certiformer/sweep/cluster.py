"""The engines on Ray: a cluster on this machine, or one that is joined by its address.

Only the driver touches the store: it claims, submits tasks, keeps the leases alive and writes what comes back, so no
machine of the cluster needs to see its disk. Ray's own retries are off, since the ledger counts tries; a task whose
process was killed comes back as an error, and its job is opened again.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

from certiformer.errors import BadInput, MissingExtra
from certiformer.sweep.job import Job
from certiformer.sweep.pool import Answer, Outcome, compute, sentence
from certiformer.sweep.store import Claim
from certiformer.sweep.threads import usable_cores, worker_environment

CONNECT_SECONDS = 10  # until somebody listens at the address of a cluster
JOIN_SECONDS = 60  # until the cluster has let us in (idle: 3 s)
_TRIAL = """
import logging, sys, ray
try:
    ray.init(address=sys.argv[1], log_to_driver=False, logging_level=logging.CRITICAL)
except Exception as error:
    sys.exit(print(error) or 1)
"""
OBJECT_STORE_BYTES = 100 * 2**20  # chunks are small; Ray's default would reserve a third of the memory
_SETTINGS = {
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",  # else every worker resolves the environment of `uv run` again
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # asks about a future default in a warning otherwise
    "RAY_DEDUP_LOGS": "0",
}


def task(function: str, config: dict[str, Any]) -> tuple[bytes | None, int, str, bool]:
    """What runs on the cluster: the fields of the answer."""
    answer = compute(Job(function, config))
    return answer.content, answer.rows, answer.raised, answer.final


class Cluster:
    """Tasks on a Ray cluster. `engine`: `ray`, or the address of a cluster to join."""

    def __init__(self, engine: str, workers: int | None) -> None:
        self._ray, self._folder = _library(engine), None
        self._printing: tuple[Any, Any] | None = None
        self._joined_before = bool(self._ray.is_initialized())
        if not self._joined_before:
            self._init(engine, workers)
        cores = int(self._ray.cluster_resources().get("CPU", 1))
        self.size = workers or max(1, cores)
        environment = worker_environment(os.environ)
        if engine == "ray":
            environment["PYTHONPATH"] = os.pathsep.join(path or os.getcwd() for path in sys.path)
        self._task = self._ray.remote(num_cpus=1, max_retries=0, runtime_env={"env_vars": environment})(task)
        self._flying: dict[Any, Claim] = {}

    def _init(self, engine: str, workers: int | None) -> None:
        os.environ.update({name: value for name, value in _SETTINGS.items() if name not in os.environ})
        self._hush()
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
        if engine == "ray":
            self._folder = tempfile.mkdtemp(prefix="ray-")
            # The sockets of Ray lie in this folder, and the name of a socket has at most 107 bytes.
            own = {"_temp_dir": self._folder} if len(self._folder) < 40 else {}
            cores = max(workers or 0, usable_cores())
            quiet |= {"num_cpus": cores, "include_dashboard": False, "object_store_memory": OBJECT_STORE_BYTES, **own}
        else:
            _probe(engine)
            _try(engine)
        try:
            with warnings.catch_warnings():
                # Ray starts its processes by a fork that becomes another program at once; JAX warns of any fork.
                warnings.filterwarnings("ignore", "os.fork", RuntimeWarning)
                self._ray.init(address="local" if engine == "ray" else engine, **quiet)
        except Exception as error:
            raise BadInput(f"no Ray cluster can be had ({engine}): {_first_sentence(str(error))}") from error

    def _hush(self) -> None:
        """Ray prints a paragraph about every death of a worker on standard output, where results go; nothing public
        turns that off. The driver tells of deaths itself."""
        printing = sys.modules.get("ray._private.worker")
        if printing is not None and hasattr(printing, "print_to_stdstream"):
            self._printing = printing, printing.print_to_stdstream
            printing.print_to_stdstream = lambda *_, **__: None  # type: ignore[attr-defined]

    def submit(self, claim: Claim) -> None:
        self._flying[self._task.remote(claim.job.function, claim.job.config)] = claim

    def wait(self, seconds: float) -> list[Outcome]:
        waiting = list(self._flying)
        ready, _ = self._ray.wait(waiting, num_returns=1, timeout=seconds)
        if ready:
            ready, _ = self._ray.wait(waiting, num_returns=len(waiting), timeout=0)
        return [self._outcome(reference) for reference in ready]

    def _outcome(self, reference: Any) -> Outcome:
        claim = self._flying.pop(reference)
        try:
            return Outcome(claim, Answer(*self._ray.get(reference)))
        except self._ray.exceptions.RayTaskError as error:  # raised outside the job: certiformer cannot be imported
            return Outcome(claim, Answer(None, raised=sentence(error.cause or error)))
        except self._ray.exceptions.RayError as error:
            return Outcome(
                claim, None, died=f"its Ray worker died ({type(error).__name__}: {_first_sentence(str(error))})"
            )

    def close(self) -> None:
        for reference in self._flying:
            self._ray.cancel(reference, force=True)
        if not self._joined_before:
            self._ray.shutdown()
        if self._printing is not None:
            self._printing[0].print_to_stdstream = self._printing[1]
        if self._folder is not None:
            shutil.rmtree(Path(self._folder), ignore_errors=True)


def _library(engine: str) -> ModuleType:
    """Ray, or the sentence that says how to get it."""
    if importlib.util.find_spec("ray") is None:
        raise MissingExtra(f"the engine {engine} needs Ray, which is not installed: pip install 'certiformer[ray]'")
    if engine.startswith("ray://") and importlib.util.find_spec("grpc") is None:
        raise MissingExtra("addresses with ray:// need the client of Ray: pip install 'certiformer[ray]'")
    import ray

    return ray


def _probe(engine: str) -> None:
    """Refuse an address where nothing listens, before Ray tries for minutes."""
    if engine == "auto":
        return
    host, _, port = engine.removeprefix("ray://").rpartition(":")
    try:
        with socket.create_connection((host.strip("[]") or "127.0.0.1", int(port)), timeout=CONNECT_SECONDS):
            return
    except (OSError, OverflowError) as error:
        raise BadInput(
            f"no Ray cluster can be reached at {engine} (tried for at most {CONNECT_SECONDS} s): {error}"
        ) from error


def _try(engine: str) -> None:
    """Join once in a process that can be ended: against a server that is not Ray, or one that wants a token, Ray tries
    for minutes and fills the standard error stream."""
    command = [sys.executable, "-c", _TRIAL, engine]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=JOIN_SECONDS)
    except subprocess.TimeoutExpired:
        raise BadInput(f"no Ray cluster answers at {engine} (tried for {JOIN_SECONDS} s)") from None
    if done.returncode:
        reason = _first_sentence(done.stdout) or f"exit code {done.returncode}"
        raise BadInput(
            f"no Ray cluster can be joined at {engine}: {reason} "
            "(if it asks for a token: set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN as on its machines)"
        )


def _first_sentence(text: str) -> str:
    return " ".join(text.split()).partition(". ")[0].rstrip(".")
