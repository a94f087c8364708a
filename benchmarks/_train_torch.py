"""The peer's half of `train.py`: the same models trained by PyTorch one after the other, the way most people write it.

Runs under a Python that has torch and numpy (and need not have certiformer). `way`: *plain* is `torch.optim.Adam` as it
comes and attention as it is written; *tuned* adds `fused=True` and `scaled_dot_product_attention`.

    python _train_torch.py PROBLEM.npz --way plain|tuned --steps S --seconds T
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np
import torch
from torch import nn

CHECKED = 4  # models whose losses are compared


class Net(nn.Module):
    """The model of `_train_models.py` with the weights of one member."""

    def __init__(self, weights: dict[str, np.ndarray], tuned: bool):
        super().__init__()
        self.tuned = tuned
        group = "blocks.0.attention.groups.0."
        self.heads = weights[group + "query"].shape[0]
        self.embed = linear(weights["embed.weight"], weights["embed.bias"])
        self.table = nn.Parameter(torch.tensor(weights["code.table"]))
        side = [weights[group + name].transpose(1, 0, 2) for name in ("query", "key", "value")]
        self.query, self.key, self.value = (linear(each.reshape(len(each), -1)) for each in side)
        output = weights[group + "output"]
        self.output = linear(output.reshape(-1, output.shape[-1]))
        self.up = linear(weights["blocks.0.ffn.up"], weights["blocks.0.ffn.up_bias"])
        self.down = linear(weights["blocks.0.ffn.down"], weights["blocks.0.ffn.down_bias"])
        self.readout = linear(weights["readout.weight"], weights["readout.bias"])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.embed(x) + self.table
        q, k, v = (
            each(h).unflatten(-1, (self.heads, -1)).transpose(-3, -2) for each in (self.query, self.key, self.value)
        )
        if self.tuned:
            mixed = nn.functional.scaled_dot_product_attention(q, k, v)
        else:
            mixed = torch.softmax(q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5, -1) @ v
        h = h + self.output(mixed.transpose(-3, -2).flatten(-2))
        h = h + self.down(torch.relu(self.up(h)))
        return self.readout(h.mean(-2))


def linear(weight: np.ndarray, bias: np.ndarray | None = None) -> nn.Linear:
    layer = nn.Linear(*weight.shape, bias=bias is not None)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(weight.T))
        if bias is not None:
            layer.bias.copy_(torch.tensor(bias))
    return layer


def trained(net: Net, points: torch.Tensor, wanted: torch.Tensor, order: list[int], rate: float) -> list[float]:
    """The usual loop; the loss of every step."""
    optimiser = torch.optim.Adam(net.parameters(), lr=rate, fused=net.tuned or None)
    losses = []
    for place in order:
        optimiser.zero_grad(set_to_none=True)
        loss = ((net(points[place]) - wanted[place]) ** 2).mean()
        loss.backward()
        optimiser.step()
        losses.append(loss.detach())
    return torch.stack(losses).tolist()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("problem")
    parser.add_argument("--way", choices=("plain", "tuned"), default="plain")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--check", type=int, default=24)
    parser.add_argument("--seconds", type=float, default=8.0)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    data = np.load(chosen.problem)
    points, wanted = torch.tensor(data["points"]), torch.tensor(data["wanted"])
    order, tuned = data["order"].tolist(), chosen.way == "tuned"

    def net(place: int) -> Net:
        return Net({name[2:]: data[name][place] for name in data.files if name.startswith("w:")}, tuned)

    models = len(points)
    losses = [
        np.mean(trained(net(m), points[m], wanted[m], order[: chosen.check], float(data["rate"])))
        for m in range(CHECKED)
    ]
    made, spent, used = 0, 0.0, 0.0
    while spent < chosen.seconds:
        fresh = net(made % models)
        began, cpu = time.perf_counter(), time.process_time()
        trained(fresh, points[made % models], wanted[made % models], order[: chosen.steps], float(data["rate"]))
        spent, used, made = spent + time.perf_counter() - began, used + time.process_time() - cpu, made + 1
    rates = {"rate": made * chosen.steps / spent, "cpu_rate": made * chosen.steps / used}
    print(json.dumps({**rates, "losses": [float(each) for each in losses], "torch": torch.__version__}))


if __name__ == "__main__":
    main()
