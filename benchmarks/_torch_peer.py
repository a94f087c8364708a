"""The peer's half of `against_pytorch.py`: a block of given size, trained by a plain PyTorch Adam loop for given seconds.

Runs under a Python that has torch and numpy (and need not have certiformer).

    python _torch_peer.py PROBLEM.npz --units N --activation relu|gelu --rows N --seconds S --rates R ...

prints one JSON line for each learning rate and seed (`--seeds N`: 0 to N - 1): the largest error at the test points (a
*lower* estimate of the true one) after that many seconds of training. What it may have, it gets: the inputs scaled to
[-1, 1] and the outputs by one factor (both fold into the weights), a ready pool of points and values instead of
evaluations of the target, one or two threads, whichever is faster, and the errors of the float32 weights computed in
float64.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import json
import math
import time
from pathlib import Path

import numpy as np
import torch

BATCH = 4096
TRIAL_STEPS = 100  # to find out how many threads are faster; not counted as training


class Block(torch.nn.Module):
    """The function of one transformer block whose attention gathers the sequence with fixed weights.

    Those weights do not depend on x, so attention and residual together are one fixed invertible linear map of the
    numbers of all tokens, and in exact arithmetic the row that answers is

        c + A x + sum_u out_u act(w_u . x + b_u)

    with every one of w, b, out, A, c trained here. Where each of several rows answers for its own token, they share all
    weights and see the token's own numbers, its one-hot code and the gathered x.
    """

    def __init__(self, inputs: int, outputs: int, rows: int, units: int, activation: str):
        super().__init__()
        self.rows = rows
        seen = inputs if rows == 1 else inputs // rows + rows + inputs
        self.skip = torch.nn.Linear(seen, outputs // rows)
        self.up = torch.nn.Linear(seen, units) if units else None
        self.down = torch.nn.Linear(units, outputs // rows, bias=False) if units else None
        self.activation = {"relu": torch.nn.ReLU(), "gelu": torch.nn.GELU()}[activation]

    def seen(self, x: torch.Tensor) -> torch.Tensor:
        """What every answering row sees after the attention."""
        if self.rows == 1:
            return x
        code = torch.eye(self.rows, dtype=x.dtype).expand(len(x), -1, -1)
        return torch.cat([x.reshape(len(x), self.rows, -1), code, x[:, None].expand(-1, self.rows, -1)], dim=-1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.seen(x)
        out = self.skip(h)
        if self.up is not None and self.down is not None:
            out = out + self.down(self.activation(self.up(h)))
        return out.reshape(len(x), -1)


class Scaled:
    """The problem as a practitioner would pose it: inputs in [-1, 1], outputs around 0 with one common scale."""

    def __init__(self, problem: dict[str, np.ndarray]):
        self.low, self.high = problem["low"], problem["high"]
        most, least = problem["train_values"].max(0), problem["train_values"].min(0)
        self.shift, self.scale = (most + least) / 2, float((most - least).max()) / 2 or 1.0
        self.inputs, self.outputs = len(self.low), len(self.shift)
        points = torch.tensor(self._inside(problem["train_points"]), dtype=torch.float32)
        values = torch.tensor((problem["train_values"] - self.shift) / self.scale, dtype=torch.float32)
        self.batches = list(zip(points.split(BATCH), values.split(BATCH), strict=True))
        self.test = torch.tensor(self._inside(problem["test_points"]), dtype=torch.float64)
        self.wanted = problem["test_values"]

    def _inside(self, points: np.ndarray) -> np.ndarray:
        return (2 * points - self.low - self.high) / (self.high - self.low)

    def sampled_error(self, block: Block) -> float:
        """The largest error at the test points, in units of the target; infinite if training diverged."""
        with torch.no_grad():
            outputs = copy.deepcopy(block).double()(self.test).numpy() * self.scale + self.shift
        error = float(np.abs(outputs - self.wanted).max())
        return error if math.isfinite(error) else math.inf


def train(block: Block, problem: Scaled, rate: float, seconds: float, most_steps: int | None = None) -> int:
    """Adam on the mean square for that many seconds; returns the number of steps."""
    optimiser = torch.optim.Adam(block.parameters(), lr=rate)
    loss = torch.nn.MSELoss()
    steps, until = 0, time.perf_counter() + seconds
    while time.perf_counter() < until and steps != most_steps:
        x, y = problem.batches[steps % len(problem.batches)]
        optimiser.zero_grad()
        loss(block(x), y).backward()
        optimiser.step()
        steps += 1
    return steps


def faster_threads(block: Block, problem: Scaled) -> int:
    """One or two threads, whichever makes the trial steps sooner."""
    taken = {}
    for threads in (1, 2):
        torch.set_num_threads(threads)
        for steps in (TRIAL_STEPS // 5, TRIAL_STEPS):  # the first ones warm up
            began = time.perf_counter()
            train(copy.deepcopy(block), problem, 1e-3, math.inf, steps)
            taken[threads] = time.perf_counter() - began
    return min(taken, key=taken.__getitem__)


def main() -> None:
    parser = argparse.ArgumentParser(description="a block trained by a plain PyTorch Adam loop")
    parser.add_argument("problem", type=Path)
    parser.add_argument("--units", type=int, required=True)
    parser.add_argument("--activation", choices=("relu", "gelu"), required=True)
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--rates", type=float, nargs="+", required=True)
    parser.add_argument("--seeds", type=int, default=1)
    arguments = parser.parse_args()
    with np.load(arguments.problem) as arrays:
        problem = Scaled(dict(arrays))
    threads = None
    for rate, seed in itertools.product(arguments.rates, range(arguments.seeds)):
        torch.manual_seed(seed)
        block = Block(problem.inputs, problem.outputs, arguments.rows, arguments.units, arguments.activation)
        threads = threads or faster_threads(block, problem)
        torch.set_num_threads(threads)
        steps = train(block, problem, rate, arguments.seconds)
        error = problem.sampled_error(block)
        answer = {"rate": rate, "seed": seed, "sampled": error, "steps": steps, "threads": threads}
        print(json.dumps(answer if math.isfinite(error) else {**answer, "sampled": None}), flush=True)


if __name__ == "__main__":
    main()
