"""A plain SASRec in PyTorch, as it is usually written: one user a row, filled up to the longest history.

Run by `recommend.py`: the same users, batch of users, shape, dropout and loss as ours. Prints the seconds of each epoch.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch
from torch import nn


class SASRec(nn.Module):
    """Causal blocks with norms after the sub-layers; the read-out is the table of items. Id 0 fills up."""

    def __init__(self, items: int, length: int, width: int, blocks: int, heads: int, dropout: float):
        super().__init__()
        self.items = nn.Embedding(items + 1, width, padding_idx=0)
        self.positions = nn.Embedding(length, width)
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout, "gelu", batch_first=True)
        self.blocks = nn.TransformerEncoder(layer, blocks, enable_nested_tensor=False)
        self.dropout = nn.Dropout(dropout)
        causal = torch.triu(torch.ones(length, length, dtype=torch.bool), 1)
        self.register_buffer("causal", causal)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        stream = self.items(ids) + self.positions.weight[None]
        stream = self.blocks(self.dropout(stream), mask=self.causal, is_causal=True)
        return stream @ self.items.weight.T


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data", help="an .npz with offsets and items of the training sequences")
    for name, kind in (
        ("items", int),
        ("length", int),
        ("width", int),
        ("blocks", int),
        ("heads", int),
        ("users", int),
    ):
        parser.add_argument(f"--{name}", type=kind, required=True)
    parser.add_argument("--dropout", type=float, required=True)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--device", default="cpu")
    asked = parser.parse_args()
    torch.manual_seed(0)
    data = np.load(asked.data)
    offsets, items = data["offsets"], data["items"].astype(np.int64) + 1
    inputs = np.zeros((len(offsets) - 1, asked.length), np.int64)
    wanted = np.zeros_like(inputs)
    for user in range(len(offsets) - 1):
        own = items[offsets[user] : offsets[user + 1]][-asked.length - 1 :]
        inputs[user, : len(own) - 1], wanted[user, : len(own) - 1] = own[:-1], own[1:]
    x, y = (torch.from_numpy(array).to(asked.device) for array in (inputs, wanted))
    model = SASRec(asked.items, asked.length, asked.width, asked.blocks, asked.heads, asked.dropout).to(asked.device)
    nn.init.normal_(model.items.weight, std=0.02)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    loss_of = nn.CrossEntropyLoss(ignore_index=0)
    for _ in range(asked.epochs):
        began, total = time.perf_counter(), 0.0
        order = torch.randperm(len(x), device=asked.device)
        for first in range(0, len(x), asked.users):
            rows = order[first : first + asked.users]
            scores = model(x[rows])
            loss = loss_of(scores.reshape(-1, scores.shape[-1]), y[rows].reshape(-1))
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
            total += float(loss.detach()) * len(rows)
        print(f"{time.perf_counter() - began:.4f} {total / len(x):.4f}", flush=True)


if __name__ == "__main__":
    main()
