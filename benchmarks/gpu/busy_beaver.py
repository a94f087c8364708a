"""The five-state busy beaver as a looped transformer, to its halt: 47,176,870 steps, 4,098 ones.

    python benchmarks/gpu/busy_beaver.py                        # windows to the halt, then a stretch of single steps
    python benchmarks/gpu/busy_beaver.py --near-steps 47176870  # every single step evaluated, to the halt
    python benchmarks/gpu/busy_beaver.py --steps 1000000 --json # a short try, for machines

It needs JAX, NumPy and jaxtyping, the files of this checkout, and nothing else: no installation, no network. It runs on
whatever device JAX chooses; the first line says which.

Two evaluations, both proved equal to the forward pass over the whole tape:

- *cached*: windows of 64 cells around the head, each computed once by the transformer for 64 cells
  (`certiformer.compiler.machines.windows`). Most of the steps are looked up.
- *near*: every step is a pass of the block, computed at the three cells that can change
  (`certiformer.compiler.machines.passes`). After each chunk all cells are compared with 0 and 1 exactly.

Exit code 1: a count is wrong, or a number of the stream is not exactly 0 or 1.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

import jax
import jax.numpy as jnp
import numpy as np

from certiformer.compiler.machines import LoopedMachine, machine_loop, simulate
from certiformer.compiler.machines.examples import busy_beaver
from certiformer.compiler.machines.layout import start_tokens
from certiformer.compiler.machines.passes import Tape, first_tape, near_pass, run_passes
from certiformer.compiler.machines.simulate import bounds
from certiformer.compiler.machines.windows import run_cached

HALT, ONES = 47_176_870, 4_098
CELLS = 24_600  # the champion visits the cells -12,242 to 44; cell 0 is the middle of the tape
CHUNK = 100_000


def main(arguments: list[str] | None = None) -> int:
    """Runs both evaluations and returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=HALT, help="steps of the cached run (default: to the halt)")
    parser.add_argument(
        "--near-steps", type=int, default=CHUNK, help="steps that are evaluated one by one (default: %(default)s)"
    )
    parser.add_argument("--tape", type=int, default=CELLS, help="cells (default: %(default)s)")
    parser.add_argument("--dtype", default="float32", choices=("float64", "float32", "bfloat16"))
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    chosen = parser.parse_args(arguments)
    device = jax.devices()[0]
    facts: dict[str, Any] = {"device": f"{device.platform} {device.device_kind}", "jax": jax.__version__}
    facts |= {"cells": chosen.tape, "dtype": chosen.dtype}
    compiled = machine_loop(busy_beaver(5), chosen.tape, chosen.dtype)
    facts |= {"width": compiled.config.width, "hidden": compiled.config.blocks[0].ffn.width}
    facts["cached"] = cached(compiled, chosen.steps)
    facts["near"] = near(compiled, chosen.near_steps)
    right = all(part["right"] for part in (facts["cached"], facts["near"]))
    print(json.dumps(facts, indent=1) if chosen.json else described(facts))
    return 0 if right else 1


def cached(compiled: LoopedMachine, steps: int) -> dict[str, Any]:
    """The run by windows; both compilations and look-ups are part of the time."""
    began = time.perf_counter()
    result, effort = run_cached(compiled, (), steps)
    seconds = time.perf_counter() - began
    found = {"halted": result.halted, "steps": result.steps, "ones": result.ones, "state": result.state}
    found |= {"seconds": round(seconds, 3), "steps_per_second": round(result.steps / seconds)}
    found |= {"windows": effort.windows, "passes_computed": effort.passes, "windows_visited": effort.visits}
    return {**found, "right": is_right(result.halted, result.steps, result.ones)}


def near(compiled: LoopedMachine, steps: int) -> dict[str, Any]:
    """Every step as a pass near the head, in chunks; the first chunk, which compiles, is made twice and timed once."""
    layout = compiled.layout
    with jax.enable_x64(compiled.config.dtype == "float64"):
        tensors = {name: jnp.asarray(tensor) for name, tensor in compiled.tensors.items()}
        stops = jnp.asarray(compiled.stops)
        # A number of passes that is known beforehand spares the device a question to the host after every pass.
        advance = jax.jit(partial(chunk, compiled, tensors), static_argnums=1)
        tokens = start_tokens(compiled.machine, layout, ())
        start = first_tape(compiled.tensors, tokens, -bounds(compiled.cells)[0])
        jax.block_until_ready(advance(start, min(CHUNK, steps)))
        began, tape, before, deviation = time.perf_counter(), start, start, 0.0
        while int(tape.passes) < steps and not bool(stopped(compiled, stops, tape)):
            before, tape = tape, jax.block_until_ready(advance(tape, min(CHUNK, steps - int(tape.passes))))
            contents = tape.stream[:, : layout.outputs]
            deviation = max(deviation, float(jnp.max(jnp.minimum(jnp.abs(contents), jnp.abs(contents - 1)))))
        seconds = time.perf_counter() - began
        halted = bool(stopped(compiled, stops, tape))
        if halted:
            # Somewhere in the last chunk; the rest of it changed nothing. Where, is found by testing every pass.
            ended = run_passes(compiled.config, layout, tensors, stops, before, jnp.asarray(CHUNK), True)
            deviation = max(deviation, float(jnp.max(jnp.abs(ended.stream - tape.stream))))
            tape = ended
        ones = int(np.sum(np.asarray(tape.stream[:, 1], np.float64)))
    made = int(tape.passes)
    found = {"halted": halted, "steps": made, "ones": ones, "deviation": deviation, "seconds": round(seconds, 3)}
    found["steps_per_second"] = round(made / seconds) if seconds else 0
    return {**found, "right": deviation == 0.0 and is_right(halted, made, ones)}


def chunk(compiled: LoopedMachine, tensors: dict[str, Any], tape: Tape, passes: int) -> Tape:
    """`passes` passes, no test between them: a machine that has stopped stays as it is."""
    advance = partial(near_pass, compiled.config, compiled.layout, tensors)
    return jax.lax.fori_loop(0, passes, lambda _, now: advance(now), tape)


def stopped(compiled: LoopedMachine, stops: jax.Array, tape: Tape) -> jax.Array:
    """Whether the head is on a pair where the machine stops, or would have to leave the tape."""
    row = tape.stream[tape.head]
    return jnp.any((row[compiled.layout.pairs] > 0.5) & stops) | (row[compiled.layout.off] > 0.5)


def is_right(halted: bool, steps: int, ones: int) -> bool:
    """Against the known figures at the halt, and against the plain simulator for short runs."""
    if halted or steps >= HALT:
        return (halted, steps, ones) == (True, HALT, ONES)
    return steps > 2_000_000 or simulate(busy_beaver(5), steps=steps).ones == ones


def described(facts: dict[str, Any]) -> str:
    """The facts for a reader."""
    lines = [f"{facts['device']}, jax {facts['jax']}; {facts['cells']:,} cells, {facts['dtype']}"]
    for name in ("cached", "near"):
        part = facts[name]
        end = "halted" if part["halted"] else "still running"
        line = f"{name:>6}: {part['steps']:,} steps, {end}, {part['ones']:,} ones, {part['seconds']:.2f} s,"
        line += f" {part['steps_per_second']:,} steps per second, {'right' if part['right'] else 'WRONG'}"
        if name == "cached":
            line += f"; {part['windows']:,} windows, {part['passes_computed']:,} passes computed"
        else:
            line += f"; largest deviation from 0 and 1: {part['deviation']}"
        lines.append(line)
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
