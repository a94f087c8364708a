"""Our half of `compile.py`: programs compiled, checked and run, in a process of their own.

    python _compile_ours.py seconds DTYPE CASE     # how long the first compile of a process takes, imports not counted
    python _compile_ours.py figures CASE ...       # everything else

A CASE is the text of a `_compile_cases.Case`. Prints one JSON object for each; `reason` where something failed.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from _compile_cases import BATCH, Case
from _compile_inputs import drawn

from certiformer.compiler.driver import compile_program
from certiformer.rasp.library import catalogue

EXHAUSTIVE = 6_000  # inputs that are all tried
SAMPLE, LONG_SAMPLE, SHORT = 24, 3, 100  # inputs of each length otherwise; fewer above length 100
FORWARD_SECONDS = 2.0


def compile_seconds(case: Case, dtype: str) -> dict[str, float]:
    """The first compile, on the clock and on the processor, and a second one (`again`, processor)."""
    program, times = catalogue()[case.name].make(), []
    for _ in range(2):
        began, began_cpu = time.perf_counter(), time.process_time()
        compile_program(program, case.vocab, case.length, dtype=dtype)
        times.append((time.perf_counter() - began, time.process_time() - began_cpu))
    return {"seconds": times[0][0], "cpu": times[0][1], "again": times[1][1]}


def figures(case: Case) -> dict[str, Any]:
    """Size, certificate, agreement with the interpreter, and, where it is compared, the speed of the forward pass."""
    from certiformer.api.compiling import compile as certified

    program = catalogue()[case.name].make()
    try:
        made = certified(program, case.vocab, case.length)
        why = made.certificate.reason
    except Exception as error:  # the size is of interest even so
        made, why = certified(program, case.vocab, case.length, certified=False), sentence(error)
    row: dict[str, Any] = {"dtype": made.dtype, "certified": made.certified, "margin": why}
    row |= {"check": made.certificate.seconds.get("check"), "width": made.subject.config.width}
    row |= {"parameters": made.model.parameter_count(), "nonzero": made.model.nonzero_count()}
    row |= {"layers": len(made.subject.config.blocks), **agreement(case, made.subject, program)}
    return row | ({"jitted": sequences_per_second(case, made)} if case.forward else {})


def agreement(case: Case, made: Any, program: Any) -> dict[str, Any]:
    """How many inputs were tried through the real model, and on how many an answer was not the interpreter's."""
    from certiformer.compiler.programs.exhaustive import exhaust
    from certiformer.rasp.inputs import count_inputs
    from certiformer.rasp.interpreter import Interpreter

    if count_inputs(made.vocab, made.length) <= EXHAUSTIVE:
        found = exhaust(made)
        return {"tried": found.tried, "wrong": int(found.wrong is not None), "all_inputs": True}
    meaning, tried, wrong = Interpreter(program), 0, 0
    for length in sorted({case.length, (case.length + 1) // 2}):
        inputs = drawn(case.name, length, case.vocab, SAMPLE if length <= SHORT else LONG_SAMPLE)
        for xs, answers in zip(inputs, decoded(made, inputs), strict=True):
            tried += 1
            wrong += not same(meaning.run(xs), answers)
    return {"tried": tried, "wrong": wrong, "all_inputs": False}


def decoded(made: Any, inputs: list[list[Any]]) -> list[list[Any]]:
    """The answers of the transformer to inputs of one length, in its own dtype."""
    import numpy as np

    from certiformer.compiler.programs.decode import Decoder
    from certiformer.rasp.value import identity

    places = {identity(token): place for place, token in enumerate(made.vocab)}
    ids = np.array([[places[identity(x)] for x in xs] for xs in inputs])
    outputs = made.model.evaluate(ids, dtype=made.dtype)
    flat = Decoder(made.graph, made.circuit).decode(outputs.reshape(ids.size, -1))
    return [flat[start : start + ids.shape[1]] for start in range(0, ids.size, ids.shape[1])]


def same(wanted: list[Any], answers: list[Any]) -> bool:
    """Equal at every position; True is not 1."""
    from certiformer.rasp.value import identity

    return [identity(x) for x in wanted] == [identity(x) for x in answers]


def sequences_per_second(case: Case, made: Any) -> float:
    """The compiled forward pass in batches, the fastest of two seconds of runs."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    with jax.enable_x64(made.dtype == "float64"):
        model = jax.tree_util.tree_map(lambda t: jnp.asarray(t, made.dtype), made.model)
        run = jax.jit(lambda model, ids: jax.vmap(model)(ids))
        ids = jnp.asarray(np.random.default_rng(0).integers(len(made.vocab), size=(BATCH, case.length)))
        run(model, ids).block_until_ready()
        times, until = [], time.perf_counter() + FORWARD_SECONDS
        while not times or time.perf_counter() < until:
            began = time.perf_counter()
            run(model, ids).block_until_ready()
            times.append(time.perf_counter() - began)
    return BATCH / min(times)


def sentence(error: Exception) -> str:
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"


def main() -> None:
    what, rest = sys.argv[1], sys.argv[2:]
    for text in rest[1:] if what == "seconds" else rest:
        case = Case.from_text(text)
        try:
            row = compile_seconds(case, rest[0]) if what == "seconds" else figures(case)
        except Exception as error:
            row = {"reason": sentence(error)}
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
