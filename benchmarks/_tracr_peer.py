"""The peer's half of `compile.py`: one program compiled by Tracr, at its default settings, in a process of its own.

Runs under a Python that has tracr (and need not have certiformer).

    python _tracr_peer.py '{"name": "reverse", "length": 20, "vocab": ["a", "b"], "limit": 60, "forward": 256}'

prints one JSON object:

- `seconds`, `cpu`: the first `compile_rasp_to_model` of the process, imports not counted, on the clock and on the
  processor. It contains the initialisation of a Haiku model, most of which is JAX compiling for shapes that it has not
  seen; `again` is a second compile of the same program in the same process (processor), where that is cached.
- `parameters`, `nonzero`: all that the model stores. The unembedding is not among them.
- `wrong` of `tried`: inputs of full and half length (`_compile_inputs.py`) on which an output differs from Tracr's own
  interpreter (numbers: by more than 0.001). Positions where the program is undefined are not scored.
- `jitted`, `shipped`: sequences a second of full length, through `forward` under jit in batches of `forward`, returning the
  outputs only, and through `apply`, which is what Tracr ships and takes one sequence at a time.

A compile that takes longer than `limit` seconds of processor time is interrupted: `reason` says so and the limit counts as
its seconds.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from _compile_inputs import drawn
from tracr.compiler import compiling, lib
from tracr.rasp import rasp

BOS = compiling.COMPILER_BOS
INPUTS, LONG_INPUTS, SHORT = 32, 3, 100  # of each length; fewer above length 100
TOLERANCE = 1e-3
FORWARD_SECONDS, SHIPPED_CALLS = 2.0, 3

PROGRAMS: dict[str, Callable[[int], rasp.SOp]] = {
    "length": lambda n: lib.make_length(),
    "reverse": lambda n: lib.make_reverse(rasp.tokens),
    "hist": lambda n: lib.make_hist(),
    "sort": lambda n: lib.make_sort(rasp.tokens, rasp.tokens, max_seq_len=n, min_key=1),
    "sort_unique": lambda n: lib.make_sort_unique(rasp.tokens, rasp.tokens),
    "sort_freq": lambda n: lib.make_sort_freq(n),
    "frac_prevs": lambda n: lib.make_frac_prevs(rasp.tokens == "a"),
    "pair_balance": lambda n: lib.make_pair_balance(rasp.tokens, "(", ")"),
    "dyck1": lambda n: lib.make_shuffle_dyck(["()"]),
    "shuffle_dyck1": lambda n: lib.make_shuffle_dyck(["()"]),
    "shuffle_dyck2": lambda n: lib.make_shuffle_dyck(["()", "[]"]),
    "shuffle_dyck3": lambda n: lib.make_shuffle_dyck(["()", "[]", "{}"]),
    "shift": lambda n: lib.shift_by(1, rasp.tokens),
    "count": lambda n: lib.make_count(rasp.tokens, "a"),
    "count_less_freq": lambda n: lib.make_count_less_freq(2),
    "detect_pattern": lambda n: lib.detect_pattern(rasp.tokens, "ab"),
}


class OutOfTime(Exception):
    """The compile took longer than it may."""


def main() -> None:
    case = json.loads(sys.argv[1])
    print(json.dumps(measured(**case)), flush=True)


def measured(name: str, length: int, vocab: list[Any], limit: float, forward: int) -> dict[str, Any]:
    """The figures of one program; `reason` where there is no compiled model."""
    try:
        model, seconds, cpu = compiled(name, length, vocab, limit)
    except OutOfTime:
        return {"seconds": limit, "cpu": limit, "reason": f"out of time after {limit:g} s"}
    except Exception as error:  # whatever Tracr refuses a program with
        first = (str(error).strip().splitlines() or [""])[0]
        return {"reason": f"cannot be compiled: {type(error).__name__}: {first[:200]}"}
    row = {"seconds": seconds, "cpu": cpu, **size(model)}
    if cpu < limit / 4:
        row["again"] = compiled(name, length, vocab, limit)[2]
    row |= wrong_answers(model, name, length, vocab)
    return row | (speed(model, name, length, vocab, forward) if forward else {})


def compiled(name: str, length: int, vocab: list[Any], limit: float) -> tuple[Any, float, float]:
    """The model, and how long it took on the clock and on the processor."""

    def stop(signum: int, frame: Any) -> None:
        raise OutOfTime

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, limit)
    began, began_cpu = time.perf_counter(), time.process_time()
    try:
        model = compiling.compile_rasp_to_model(PROGRAMS[name](length), set(vocab), length)
        return model, time.perf_counter() - began, time.process_time() - began_cpu
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def size(model: Any) -> dict[str, int]:
    arrays = [np.asarray(array) for array in jax.tree_util.tree_leaves(model.params)]
    config = model.model_config
    counts = {"parameters": sum(a.size for a in arrays), "nonzero": sum(int(np.count_nonzero(a)) for a in arrays)}
    return counts | {"width": len(model.residual_labels), "layers": config.num_layers}


def outputs_only(model: Any) -> Callable[[Any, Any], Any]:
    """The jitted forward pass; the activations that `forward` also returns need not be kept."""
    return jax.jit(lambda params, ids: model.forward(params, ids).unembedded_output)


def encoded(model: Any, inputs: list[list[Any]]) -> Any:
    return jnp.array([model.input_encoder.encode([BOS, *xs]) for xs in inputs])


def wrong_answers(model: Any, name: str, length: int, vocab: list[Any]) -> dict[str, int]:
    run, program, tried, wrong = outputs_only(model), PROGRAMS[name](length), 0, 0
    for n in sorted({length, max(1, length // 2)}):
        inputs = drawn(name, n, vocab, INPUTS if n <= SHORT else LONG_INPUTS)
        outputs = np.asarray(run(model.params, encoded(model, inputs)))[:, 1:]
        for xs, row in zip(inputs, outputs.tolist(), strict=True):
            answers = model.output_encoder.decode(row)
            tried += 1
            wrong += any(differ(a, b) for a, b in zip(program(xs), answers, strict=True))
    return {"wrong": wrong, "tried": tried}


def differ(wanted: Any, answer: Any) -> bool:
    if wanted is None:
        return False
    if isinstance(wanted, (int, float)) and isinstance(answer, (int, float)):
        return not abs(wanted - answer) <= TOLERANCE
    return wanted != answer


def speed(model: Any, name: str, length: int, vocab: list[Any], batch: int) -> dict[str, float]:
    inputs = drawn(name, length, vocab, batch)
    run, ids = outputs_only(model), encoded(model, inputs)
    run(model.params, ids).block_until_ready()
    times, until = [], time.perf_counter() + FORWARD_SECONDS
    while not times or time.perf_counter() < until:
        began = time.perf_counter()
        run(model.params, ids).block_until_ready()
        times.append(time.perf_counter() - began)
    model.apply([BOS, *inputs[0]])
    began = time.perf_counter()
    for xs in inputs[:SHIPPED_CALLS]:
        model.apply([BOS, *xs])
    shipped = SHIPPED_CALLS / (time.perf_counter() - began)
    return {"jitted": batch / min(times), "shipped": shipped}


if __name__ == "__main__":
    main()
