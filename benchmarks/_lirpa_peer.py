"""The peer's half of `against_auto_lirpa.py`: CROWN branch and bound with input splitting, on one core.

Runs under a Python that has torch, numpy and auto_LiRPA (and need not have certiformer). T - f is one graph, so that f is
subtracted before anything is concretised, as in our own enclosure. The peer gets its best case: no padding of batches, no
outward rounding, the graph built beforehand, and whichever batch size and splitting rule given on the command line.

    python _lirpa_peer.py FOLDER EPSILON ... [--batch N] [--grid N] [--split both|one] [--limit SECONDS]

prints one JSON line for each epsilon.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import warnings
from pathlib import Path

import numpy as np

warnings.filterwarnings("ignore")

import torch  # noqa: E402

try:
    from auto_LiRPA import BoundedModule, BoundedTensor, PerturbationLpNorm
except ImportError as error:
    raise SystemExit(f"auto_LiRPA cannot be imported: {error}") from None

WIDTH = 2 * math.pi


def read_tensors(path: Path) -> dict[str, torch.Tensor]:
    """The float64 tensors of a safetensors file."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header, body = json.loads(data[8 : 8 + size]), data[8 + size :]
    return {
        name: torch.tensor(np.frombuffer(body[slice(*entry["data_offsets"])], np.float64).reshape(entry["shape"]))
        for name, entry in header.items()
        if name != "__metadata__"
    }


class Error(torch.nn.Module):
    """T(x) - sin(x1) - sin(x2) for the shipped net, in operations that the peer knows."""

    def __init__(self, tensors: dict[str, torch.Tensor]):
        super().__init__()
        for name, tensor in tensors.items():
            self.register_buffer(name.replace(".", "_"), tensor)
        row, width = tensors["embed.weight"][0], tensors["embed.weight"].shape[1]
        # Both tokens by one affine map 2 -> 2 * width: indexing is not needed.
        spread = torch.zeros(2, 2 * width)
        spread[0, :width], spread[1, width:] = row, row
        self.register_buffer("spread", spread)
        self.register_buffer("shift", (tensors["embed.bias"] + tensors["code.table"]).reshape(-1))
        self.register_buffer("ones", torch.ones(2, 1))
        self.width, self.root = width, math.sqrt(tensors["blocks.0.attention.groups.0.query"].shape[-1])

    def forward(self, x):
        part = "blocks_0_attention_groups_0_"
        query, key, value, output = (getattr(self, part + name)[0] for name in ("query", "key", "value", "output"))
        h = (x @ self.spread + self.shift).reshape(-1, 2, self.width)
        scores = torch.matmul(h @ query, (h @ key).transpose(1, 2)) / self.root
        h = h + torch.matmul(torch.nn.functional.softmax(scores, dim=-1), h @ value) @ output
        up, down = self.blocks_0_ffn_up, self.blocks_0_ffn_down
        h = h + torch.relu(h @ up + self.blocks_0_ffn_up_bias) @ down + self.blocks_0_ffn_down_bias
        return h.mean(dim=1) @ self.readout_weight + self.readout_bias - torch.sin(x) @ self.ones


class Crown:
    """Bounds of |T - f| on boxes."""

    def __init__(self, error: Error, batch: int):
        self.batch, self.module = batch, BoundedModule(error, torch.zeros(batch, 2), device="cpu", verbose=False)
        self.needed = {self.module.output_name[0]: {self.module.input_name[0]}}

    def bound(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            lower, upper = self.module.compute_bounds(x=(_box(low, high),), method="CROWN")
        return torch.maximum(upper, -lower)[:, 0].numpy()

    def bound_and_slopes(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The bounds, and per axis how much the linear bounds vary along it."""
        with torch.no_grad():
            lower, upper, found = self.module.compute_bounds(
                x=(_box(low, high),), method="CROWN", return_A=True, needed_A_dict=self.needed
            )
        line = found[self.module.output_name[0]][self.module.input_name[0]]
        vary = torch.maximum(line["lA"].abs(), line["uA"].abs())[:, 0].numpy() * (high - low)
        return torch.maximum(upper, -lower)[:, 0].numpy(), vary


def _box(low: np.ndarray, high: np.ndarray) -> BoundedTensor:
    return BoundedTensor(
        torch.tensor((low + high) / 2), PerturbationLpNorm(x_L=torch.tensor(low), x_U=torch.tensor(high))
    )


def branch_and_bound(crown: Crown, epsilon: float, grid: int, split: str, limit: float) -> dict:
    """Bisect (`one` axis, the one along which the bound varies most, or `both`) until every box is below epsilon."""
    edges = np.linspace(0, WIDTH, grid + 1)
    low = np.stack(np.meshgrid(edges[:-1], edges[:-1], indexing="ij"), -1).reshape(-1, 2)
    high = np.stack(np.meshgrid(edges[1:], edges[1:], indexing="ij"), -1).reshape(-1, 2)
    boxes, began = 0, time.process_time()
    while len(low):
        pairs = []
        for start in range(0, len(low), crown.batch):
            a, b = low[start : start + crown.batch], high[start : start + crown.batch]
            boxes += len(a)
            if split == "one":
                bound, vary = crown.bound_and_slopes(a, b)
                still = ~(bound <= epsilon)
                pairs.append(halves(a[still], b[still], vary[still]))
            else:
                still = ~(crown.bound(a, b) <= epsilon)
                pairs.append(quarters(a[still], b[still]))
            if time.process_time() - began > limit:
                return {"epsilon": epsilon, "closed": False, "boxes": boxes, "seconds": time.process_time() - began}
        low, high = (np.concatenate(part) for part in zip(*pairs, strict=True))
    return {"epsilon": epsilon, "closed": True, "boxes": boxes, "seconds": time.process_time() - began}


def halves(low: np.ndarray, high: np.ndarray, vary: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rows, axis = np.arange(len(low)), vary.argmax(1) if len(low) else np.zeros(0, int)
    middle_high, middle_low = high.copy(), low.copy()
    middle_high[rows, axis] = middle_low[rows, axis] = (low[rows, axis] + high[rows, axis]) / 2
    return np.concatenate([low, middle_low]), np.concatenate([middle_high, high])


def quarters(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    half = (high - low) / 2
    corners = [low + half * np.array(corner) for corner in ((0, 0), (0, 1), (1, 0), (1, 1))]
    return np.concatenate(corners), np.concatenate([corner + half for corner in corners])


def main() -> None:
    parser = argparse.ArgumentParser(description="CROWN branch and bound by auto_LiRPA")
    parser.add_argument("folder", type=Path)
    parser.add_argument("epsilon", type=float, nargs="+")
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--grid", type=int, default=16)
    parser.add_argument("--split", choices=("both", "one"), default="both")
    parser.add_argument("--limit", type=float, default=120.0)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    crown = Crown(Error(read_tensors(arguments.folder / "model.safetensors")), arguments.batch)
    branch_and_bound(crown, 1e9, 2, "both", arguments.limit)  # warm up
    for epsilon in arguments.epsilon:
        # The fastest of three counts, as on our side.
        runs = [branch_and_bound(crown, epsilon, arguments.grid, arguments.split, arguments.limit) for _ in range(3)]
        print(json.dumps(min(runs, key=lambda run: run["seconds"])), flush=True)


if __name__ == "__main__":
    main()
