"""A learned narrow code of the residual stream: n coordinates in d < n numbers.

The stream x is held as x @ A with one learned n x d matrix A, and each sub-layer reads it through an affine map of
its own, as in the compression of Tracr (Lindner et al. 2023, arXiv:2301.05062, section 5), whose transpose of A reads
everywhere. A variable then shares its numbers with others that are read at other times, or is held at a smaller scale
below them.

*What is minimised.* At a state with second moments G of the centred stream, let F be all that its sub-layer reads:
the columns of queries, keys, values, units or the read-out, each divided by the error that is allowed to it. The best
reader for a given A is a least squares problem, and what it leaves over is

    tr F^T (G - G A (A^T G A + rho)^-1 A^T G) F,

so only A is trained (variable projection, Golub and Pereyra 1973), by Adam on the logarithm of the sum over all
states; no forward pass is needed. rho = max(1e-10, (4 u)^2) times the trace of A^T G A stands for the rounding of the
stream: it keeps the code from hiding a variable below what the stored type can resolve.

*Allowed errors.* An error e in a query adds e k to the score, so its share is e times the root mean square of k, in
units of scores, and likewise for keys. Values, units and outputs are measured by their own standard deviation.

A code that the data determine exactly would leave 0; what is left otherwise is an error on every input, and only
running them shows whether the decoding bears it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from certiformer.compiler.driver import Compiled
from certiformer.compiler.programs.exhaustive import batches
from certiformer.compiler.realistic.basis import Basis, Reader
from certiformer.compiler.realistic.evidence import Evidence, Progress, sample_batches
from certiformer.compiler.realistic.padded import padded_forms
from certiformer.compiler.realistic.stream import Tensors, as_float64, in_basis, reads, refuse_others, state_read
from certiformer.errors import BadInput
from certiformer.model.config import Config
from certiformer.rasp.inputs import count_inputs
from certiformer.train import Optimiser, Problem, train

FITTED = 4096  # inputs that the code is trained on
STARTS, STEPS, RATE = 8, 1500, 0.05
LEAST_RIDGE = 1e-10
UNIT_ROUNDOFF = {"float64": 2.0**-53, "float32": 2.0**-24, "bfloat16": 2.0**-8}


@dataclass(frozen=True)
class State:
    """The streams at one state, one row for each position, and the columns that are read, by what they may err."""

    streams: Float[np.ndarray, "rows width"]
    columns: Float[np.ndarray, "width columns"]


def compressed(
    compiled: Compiled,
    width: int,
    seed: int,
    seconds: float,
    progress: Progress | None,
    tried: Callable[[Config, Tensors], Evidence],
) -> tuple[Config, Tensors, Basis]:
    """The model in a code of `width` numbers, in float64, that answers rightly all that is `tried`; or refused."""
    refuse_others(compiled.config)
    own = compiled.config.width
    if not 1 <= width <= own:
        raise BadInput(f"a narrower code has 1 to {own} coordinates for this program, not {width}")
    began = time.monotonic()
    with jax.enable_x64(True):
        states = _states(compiled, seed)
        ridge = max(LEAST_RIDGE, (4.0 * UNIT_ROUNDOFF[compiled.config.dtype]) ** 2)
        number, accuracy = 0, 0.0
        for number, start in enumerate(_starts(states, own, width, seed)):
            if progress is not None:
                so_far = f"; {accuracy:.1%} right so far" if number else ""
                progress("compress", number, STARTS, f"learning a code of {width} coordinates for {own}{so_far}")
            basis = _basis(states, _trained(states, start, ridge), ridge)
            config, tensors = in_basis(compiled.config, compiled.tensors, basis)
            evidence = tried(config, tensors)
            if not evidence.wrong:
                return config, tensors, basis
            accuracy = max(accuracy, evidence.accuracy)
            if time.monotonic() - began > seconds:
                break
    raise BadInput(
        f"no code of {width} coordinates was found for this program of {own}: with the best of {number + 1} that were"
        f" trained {accuracy:.2%} of the answers are right; try {width + 1}, or more time"
    )


def _states(compiled: Compiled, seed: int) -> list[State]:
    """The streams of the compiled model on its inputs (a sample where they are many), and what is read from them."""
    config, graph = compiled.config, compiled.graph
    few = count_inputs(graph.vocab, graph.length) <= FITTED
    parts = list(batches(len(graph.vocab), graph.length) if few else sample_batches(graph, FITTED, seed))
    ids = np.concatenate([np.pad(part, ((0, 0), (0, graph.length - part.shape[1]))) for part in parts])
    lengths = np.concatenate([np.full(len(part), part.shape[1]) for part in parts])
    present = np.arange(graph.length + 1)[None] <= lengths[:, None]
    tensors = as_float64(compiled.tensors)
    forms, states = jax.jit(partial(padded_forms, config))(
        {n: jnp.asarray(t) for n, t in tensors.items()}, ids, present
    )
    read = {name: np.asarray(form)[present] for name, form in forms.items()}
    columns: list[list[np.ndarray]] = [[] for _ in states]
    for name, tensor in tensors.items():
        if reads(name):
            heads = tensor.reshape(-1, *tensor.shape[-2:])
            flat = np.moveaxis(heads, 0, 1).reshape(config.width, -1)
            columns[state_read(config, name)].append(flat / _allowed(name, read))
    empty = np.zeros((config.width, 0))
    return [State(np.asarray(s)[present], np.hstack([empty, *c])) for s, c in zip(states, columns, strict=True)]


def _allowed(name: str, read: dict[str, np.ndarray]) -> np.ndarray:
    """The error that is allowed to each column of a reading tensor."""
    for role, partner in ((".query", ".key"), (".key", ".query")):
        if name.endswith(role):
            other = read[name.removesuffix(role) + partner]
            return 1.0 / np.maximum(np.sqrt((other**2).mean(axis=0)), 1e-6)
    spread = read[name].std(axis=0)
    return np.where(spread > 1e-9, spread, 1.0)


def _starts(states: list[State], own: int, width: int, seed: int) -> list[np.ndarray]:
    """The principal directions of all streams together, then random ones."""
    generator = np.random.default_rng(seed)
    rows = np.concatenate([state.streams for state in states])
    scaled = (rows - rows.mean(axis=0)) / _spread(states)
    principal = np.linalg.svd(scaled, full_matrices=False)[2].T
    principal = np.linalg.qr(np.hstack([principal, generator.normal(size=(own, own))]))[0][:, :width]
    return [principal, *(generator.normal(size=(own, width)) for _ in range(STARTS - 1))]


def _spread(states: list[State]) -> np.ndarray:
    spread = np.concatenate([state.streams for state in states]).std(axis=0)
    return np.where(spread > 0, spread, 1.0)


def _trained(states: list[State], start: np.ndarray, ridge: float) -> np.ndarray:
    """The code that Adam reaches."""
    moments = tuple(
        (np.cov(state.streams.T, bias=True).reshape(len(start), -1), state.columns)
        for state in states
        if state.columns.shape[1]
    )
    spread = _spread(states)
    adam = Optimiser("adam", RATE, schedule="cosine")
    reached = train(
        PROBLEM,
        start[None],
        seeds=np.zeros(1, int),
        optimiser=adam,
        steps=STEPS,
        shared=(moments, spread, np.float64(ridge)),
        record=STEPS,
    )
    return np.asarray(_code(reached.params[0], jnp.asarray(spread)))


def _code(free: Float[Array, "own width"], spread: Float[Array, " own"]) -> Float[Array, "own width"]:
    return jnp.linalg.qr(free)[0] / spread[:, None]


def _log_left_over(free: Float[Array, "own width"], given: tuple) -> Float[Array, ""]:
    """The logarithm of what the best readers of all states leave over."""
    moments, spread, ridge = given
    left = (_left(gram, columns, _code(free, spread), ridge) for gram, columns in moments)
    return jnp.log(sum(left, jnp.zeros(())) + 1e-14)


# Every step sees all of the data.
PROBLEM = Problem(_log_left_over, lambda key, member, shared: (shared, jnp.zeros(())), loss="value")


def _left(gram: Array, columns: Array, code: Array, ridge: float) -> Array:
    seen = gram @ code
    small = code.T @ seen
    small = small + ridge * jnp.trace(small) * jnp.eye(len(small))
    wanted = seen.T @ columns
    return jnp.sum(columns * (gram @ columns)) - jnp.sum(wanted * jnp.linalg.solve(small, wanted))


def _basis(states: list[State], code: np.ndarray, ridge: float) -> Basis:
    """The code with the best affine reader of every state."""
    readers = []
    for state in states:
        held = state.streams @ code
        centre, mean = held.mean(axis=0), state.streams.mean(axis=0)
        small = (held - centre).T @ (held - centre)
        # A state that never varies is read by its mean alone.
        small = small + max(ridge * np.trace(small), 1e-300) * np.eye(len(small))
        matrix = np.linalg.solve(small, (held - centre).T @ (state.streams - mean))
        offset = mean - centre @ matrix
        readers.append(Reader(matrix, offset, np.abs(held @ matrix + offset - state.streams).max(axis=0)))
    return Basis(code, tuple(readers))
