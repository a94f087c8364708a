"""Training thousands of small transformers on one GPU: `certiformer.train` against PyTorch.

    PYTHONPATH=src python benchmarks/gpu/train.py            # about two minutes
    python benchmarks/gpu/train.py --models 1024 --json      # one size, for machines
    python benchmarks/gpu/train.py --tiny                    # a short try on any machine; PyTorch is compiled nowhere

It needs JAX, NumPy, jaxtyping, safetensors, PyTorch and the files of this checkout; no installation, no network. The
first line says which device it is.

The models are those of `../_train_models.py` in batches of 32, every model with a start of its own, all with the
same batches, Adam in float32 with products in full precision on both sides (no TF32). Three ways:

- *ours*: `train(..., engine="vmap")`, all steps in one call;
- *one by one*: PyTorch as most people write it, one model after the other; its rate does not depend on how many there are.
  `Adam(fused=True)` is tried too, and the better of the two counts;
- *compiled*: the step of all models, `vmap(grad)` and Adam, in one `torch.compile`.

Compilation is not counted on either side; its seconds are shown. Goals: 1,000 times one by one, and 1.5 times compiled at
every size. Exit code 1: a goal was missed, or the mean losses after the same steps are apart.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # PyTorch needs room on the same device
ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks")]

import numpy as np  # noqa: E402
from _train_models import B1, B2, EPSILON, RATE, batches, config, draw, order, starts, step_operations  # noqa: E402

BATCH, STEPS, REPEATS = 32, 100, 3
ONE_BY_ONE, COMPILED = 1000.0, 1.5
# Sums in another order move a mean loss of 0.03 by 1e-6 in 100 steps; a wrong head or gradient moves it by 1e-3.
AGREE = 1e-4


def main(arguments: list[str] | None = None) -> int:
    """Runs all three ways and returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=int, nargs="+", default=[1024, 4096, 32768], help="(default: %(default)s)")
    parser.add_argument("--compiled", type=int, nargs="*", help="sizes at which PyTorch is compiled (default: all)")
    parser.add_argument("--tiny", action="store_true", help="8 models, 10 steps")
    parser.add_argument("--json", action="store_true", help="print one JSON object only")
    chosen = parser.parse_args(arguments)
    sizes = [8] if chosen.tiny else chosen.models
    peers = sizes if chosen.compiled is None else chosen.compiled
    import jax

    device = jax.devices()[0]
    facts: dict[str, Any] = {"device": f"{device.platform} {device.device_kind}", "jax": jax.__version__, "sizes": {}}

    def say(text: str) -> None:
        if not chosen.json:
            print(text, flush=True)

    say(facts["device"])
    tries = [torch_one_by_one(10 if chosen.tiny else STEPS, fused) for fused in (False, True)]
    facts["one_by_one"] = max(tries, key=lambda each: each["rate"])
    say(f"PyTorch one by one: {tries[0]['rate']:,.0f} model-steps/s, with fused Adam {tries[1]['rate']:,.0f}")
    for models in sizes:
        row = facts["sizes"][models] = compared(models, chosen.tiny, models in peers, facts["one_by_one"]["rate"])
        say(described(models, row))
    facts["right"] = all(row["right"] for row in facts["sizes"].values())
    print(json.dumps(facts))
    return 0 if facts["right"] or chosen.tiny else 1


def compared(models: int, tiny: bool, peer: bool, one_by_one: float) -> dict:
    """Ours and compiled PyTorch with so many models; as many steps as make a million model-steps, 100 at least."""
    steps = 10 if tiny else max(STEPS, 2**20 // models)
    mine = ours(models, steps)
    row: dict[str, Any] = {"steps": steps, "ours": mine, "times_one_by_one": mine["rate"] / one_by_one}
    row["right"] = row["times_one_by_one"] >= ONE_BY_ONE
    if peer:
        other = row["compiled"] = torch_together(models, steps, compiled=not tiny)
        row |= {"times_compiled": mine["rate"] / other["rate"], "loss_difference": abs(mine["loss"] - other["loss"])}
        row["right"] &= row["times_compiled"] >= COMPILED and row["loss_difference"] < AGREE
    return row


def described(models: int, row: dict) -> str:
    mine = row["ours"]
    text = (
        f"{models:7,} models, {row['steps']} steps: ours {mine['rate']:11,.0f} model-steps/s "
        f"({mine['operations'] / 1e12:.1f} TFLOP/s), {row['times_one_by_one']:,.0f} times one by one; "
        f"first call {mine['first']:.0f} s more"
    )
    if "compiled" not in row:
        return text
    other = row["compiled"]
    return text + (
        f"\n        compiled PyTorch {other['rate']:11,.0f}: {row['times_compiled']:.2f} times that; first call "
        f"{other['first']:.0f} s more; losses {row['loss_difference']:.1e} apart"
    )


def ours(models: int, steps: int) -> dict:
    """`certiformer.train` with all members side by side."""
    import jax
    import jax.numpy as jnp

    from certiformer.train import Optimiser, Problem, train, transformer_outputs

    start = {name: jnp.asarray(tensor) for name, tensor in starts(models).items()}
    shared = tuple(jnp.asarray(each) for each in batches(None, BATCH))
    problem, optimiser = (
        Problem(transformer_outputs(config()), draw),
        Optimiser("adam", RATE, b1=B1, b2=B2, epsilon=EPSILON),
    )

    def run() -> np.ndarray:
        seeds = np.zeros(models, int)
        done = train(
            problem, start, seeds=seeds, optimiser=optimiser, steps=steps, shared=shared, record=steps, engine="vmap"
        )
        jax.block_until_ready(done.params)
        return done.losses

    began = time.perf_counter()
    losses = run()
    first, seconds = time.perf_counter() - began, timed(run)
    rate = models * steps / seconds
    return {
        "rate": rate,
        "first": first - seconds,
        "loss": float(losses.mean()),
        "operations": rate * step_operations(BATCH),
    }


def timed(run: Any) -> float:
    """The median of the seconds of a few runs."""
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def torch_parts() -> tuple[Any, str, Any]:
    """PyTorch, the device, and the loss of one model with weights by the names of our tensors."""
    import torch

    torch.set_float32_matmul_precision("highest")
    group = "blocks.0.attention.groups.0."

    def loss(w: dict, x: Any, y: Any) -> Any:
        h = x @ w["embed.weight"] + w["embed.bias"] + w["code.table"]
        q, k, v = (torch.einsum("bnd,hdk->bhnk", h, w[group + name]) for name in ("query", "key", "value"))
        mixed = torch.softmax(q @ k.transpose(-1, -2) / (k.shape[-1]) ** 0.5, -1) @ v
        h = h + mixed.transpose(-3, -2).flatten(-2) @ w[group + "output"].flatten(0, 1)
        hidden = torch.relu(h @ w["blocks.0.ffn.up"] + w["blocks.0.ffn.up_bias"])
        h = h + hidden @ w["blocks.0.ffn.down"] + w["blocks.0.ffn.down_bias"]
        return ((h.mean(-2) @ w["readout.weight"] + w["readout.bias"] - y) ** 2).mean()

    return torch, "cuda" if torch.cuda.is_available() else "cpu", loss


def torch_batches(torch: Any, device: str, steps: int) -> list:
    """The batch of every step, on the device."""
    points, wanted = (torch.tensor(each, device=device) for each in batches(None, BATCH))
    return [(points[place], wanted[place]) for place in order(steps).tolist()]


def waited(torch: Any, device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def torch_one_by_one(steps: int, fused: bool) -> dict:
    """The usual loop; the rate over a few models, the first not counted."""
    torch, device, loss = torch_parts()
    stream, weights = torch_batches(torch, device, steps), starts(REPEATS + 1)
    times = []
    for place in range(REPEATS + 1):
        own = {name: torch.tensor(w[place], device=device, requires_grad=True) for name, w in weights.items()}
        adam = torch.optim.Adam(own.values(), lr=RATE, betas=(B1, B2), eps=EPSILON, fused=fused or None)
        waited(torch, device)
        began = time.perf_counter()
        for x, y in stream:
            adam.zero_grad(set_to_none=True)
            loss(own, x, y).backward()
            adam.step()
        waited(torch, device)
        times.append(time.perf_counter() - began)
    return {"rate": steps / statistics.median(times[1:]), "fused": fused, "torch": torch.__version__}


def torch_together(models: int, steps: int, compiled: bool) -> dict:
    """`vmap(grad)` and Adam for all models in one function, compiled."""
    torch, device, loss = torch_parts()
    torch._dynamo.reset()
    stream = torch_batches(torch, device, steps)
    start = {name: torch.tensor(w, device=device) for name, w in starts(models).items()}
    slopes = torch.func.vmap(torch.func.grad_and_value(loss), in_dims=(0, None, None))

    def step(p: dict, m: dict, s: dict, t: Any, x: Any, y: Any) -> tuple:
        g, value = slopes(p, x, y)
        m = {k: B1 * m[k] + (1 - B1) * g[k] for k in p}
        s = {k: B2 * s[k] + (1 - B2) * g[k] ** 2 for k in p}
        first, second = 1 / (1 - B1**t), 1 / (1 - B2**t)
        return {k: p[k] - RATE * (m[k] * first) / ((s[k] * second).sqrt() + EPSILON) for k in p}, m, s, value

    step = torch.compile(step) if compiled else step

    def run() -> float:
        p, zero = start, {name: torch.zeros_like(w) for name, w in start.items()}
        m, s, t, total = zero, zero, torch.ones((), device=device), torch.zeros(models, device=device)
        for x, y in stream:
            p, m, s, value = step(p, m, s, t, x, y)
            t, total = t + 1, total + value
        waited(torch, device)
        return float(total.mean()) / steps

    began = time.perf_counter()
    mean = run()
    first, seconds = time.perf_counter() - began, timed(run)
    return {"rate": models * steps / seconds, "first": first - seconds, "loss": mean}


if __name__ == "__main__":
    sys.exit(main())
