"""A certiformer transformer as a plain PyTorch module: this file, `config.json` and `model.safetensors` are all it needs.

    from module import load                     # in the folder of this file
    model = load(".")                           # a torch.nn.Module
    outputs = model(points)                     # (batch, D) -> (batch, outputs); token ids: (batch, tokens)

The state dict has the names of the safetensors file: `load_state_dict(safetensors.torch.load_file(...))` works.
The computation runs in the wider of the types of the weights and of the points: feed float64 points to lose nothing.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import torch  # pyright: ignore[reportMissingImports]
from torch import nn  # pyright: ignore[reportMissingImports]

DTYPES = {"float64": torch.float64, "float32": torch.float32, "bfloat16": torch.bfloat16}


def load(folder) -> Transformer:
    """The model whose `config.json` and `model.safetensors` lie in `folder`."""
    from safetensors.torch import load_file  # pyright: ignore[reportMissingImports]

    config = json.loads(Path(folder, "config.json").read_text(encoding="utf-8"))
    return Transformer(config, load_file(Path(folder, "model.safetensors")))


class Transformer(nn.Module):
    """The transformer that `config` (the content of `config.json`) and its tensors describe."""

    def __init__(self, config, tensors):
        super().__init__()
        self.config = config
        for name, tensor in tensors.items():
            *path, leaf = name.split(".")
            owner = self
            for part in path:
                if part not in dict(owner.named_children()):
                    owner.add_module(part, nn.Module())
                owner = owner.get_submodule(part)
            if tensor.is_floating_point():
                owner.register_parameter(leaf, nn.Parameter(tensor.clone()))
            else:
                owner.register_buffer(leaf, tensor.clone())

    def forward(self, points):
        config = self.config
        tensors = {**dict(self.named_parameters()), **dict(self.named_buffers())}
        dtype = tensors["readout.weight"].dtype
        if config["input"]["kind"] == "continuous":
            dtype = torch.promote_types(dtype, points.dtype)
        tensors = {name: t.to(dtype) if t.is_floating_point() else t for name, t in tensors.items()}
        pieces = self._sequence(tensors, self._embed(tensors, self._checked(points)))
        places = torch.arange(sum(piece.shape[1] for piece in pieces), device=points.device)
        order = [index for _ in range(config["loops"]) for index in range(len(config["blocks"]))]
        for index in order[:-1]:
            pieces = [self._block(index, tensors, pieces, places, pieces[0], places)]
        rows, row_places = self._rows_read(pieces, places)
        if order:  # the last block computes only what the read-out sees
            rows = self._block(order[-1], tensors, pieces, places, rows, row_places)
        return self._read_out(tensors, rows)

    def _checked(self, points):
        """The points as (batch, tokens, width) numbers or (batch, tokens) ids."""
        given, readout = self.config["input"], self.config["readout"]
        if given["kind"] == "continuous":
            size = given["tokens"] * given["width"]
            if points.ndim != 2 or points.shape[1] != size:
                raise ValueError(f"points must have the shape (batch, {size}), not {tuple(points.shape)}")
            return points.reshape(len(points), given["tokens"], given["width"])
        shortest = readout["token"] + 1 if readout["kind"] == "token" else 1
        if points.ndim != 2 or not shortest <= points.shape[1] <= given["tokens"]:
            wanted = f"(batch, {shortest} to {given['tokens']})"
            raise ValueError(f"ids must have the shape {wanted}, not {tuple(points.shape)}")
        if points.is_floating_point() or ((points < 0) | (points >= given["vocabulary"])).any():
            raise ValueError(f"ids must be integers from 0 to {given['vocabulary'] - 1}")
        return points.long()

    def _embed(self, tensors, tokens):
        weight = tensors["embed.weight"]
        if self.config["input"]["kind"] == "continuous":
            data = tokens.to(weight.dtype) @ weight + tensors["embed.bias"]
        else:
            data = weight[tokens]
        code = tensors["code.table"] if self.config["code"]["kind"] == "table" else code_rows(self.config)
        return data if code is None else data + code[: data.shape[1]].to(data)

    def _sequence(self, tensors, data):
        """Registers, then data tokens: in two pieces while the registers are the same for the whole batch."""
        if not self.config["registers"]:
            return [data]
        registers = tensors["registers"][None]
        once = self.config["loops"] * len(self.config["blocks"]) <= 1
        if once and self.config["readout"]["kind"] != "register":
            return [registers, data]
        return [torch.cat([registers.expand(len(data), -1, -1), data], 1)]

    def _rows_read(self, pieces, places):
        if self.config["readout"]["kind"] == "register":
            register = self.config["readout"]["token"]
            return pieces[0][:, register : register + 1], places[register : register + 1]
        data, places = pieces[-1], places[self.config["registers"] :]
        data = data if len(pieces) > 1 else data[:, self.config["registers"] :]
        if self.config["readout"]["kind"] != "token":
            return data, places
        token = self.config["readout"]["token"]
        return data[:, token : token + 1], places[token : token + 1]

    def _block(self, index, tensors, pieces, places, rows, row_places):
        """`rows`, which stand at `row_places` of the whole sequence, after block number `index`."""
        block, name = self.config["blocks"][index], f"blocks.{index}"
        if block["attention"] is not None:
            before, after = (normaliser(block["norm"], at, tensors, f"{name}.norm.attention") for at in ("pre", "post"))
            keys = [before(piece) for piece in pieces]
            out = self._attention(
                block["attention"], tensors, f"{name}.attention", keys, places, before(rows), row_places
            )
            rows = after(rows + out if block["attention"]["residual"] else out)
        if block["ffn"] is not None:
            before, after = (normaliser(block["norm"], at, tensors, f"{name}.norm.ffn") for at in ("pre", "post"))
            out = feed_forward(block["ffn"], tensors, f"{name}.ffn", before(rows))
            rows = after(rows + out if block["ffn"]["residual"] else out)
        return rows

    def _attention(self, options, tensors, name, keys, places, rows, row_places):
        allowed = None
        if options["mask"] == "causal":
            allowed = places[None, :] <= row_places[:, None]
        elif options["mask"] == "table":
            allowed = tensors[f"{name}.mask"][row_places][:, places] != 0
        total = tensors.get(f"{name}.output_bias", 0.0)
        for index, group in enumerate(options["heads"]):
            heads = f"{name}.groups.{index}"
            query = project(tensors, heads, "query", rows)
            scores = [query @ project(tensors, heads, "key", piece).transpose(-1, -2) for piece in keys]
            scores = torch.cat(scores, -1)
            if options["scale"] == "inverse-sqrt":
                scores = scores / math.sqrt(group["key"])
            if options["score_bias"] == "table":
                scores = scores + tensors[f"{heads}.score_bias"][:, row_places][:, :, places]
            elif options["score_bias"] == "toeplitz":  # entry i - j + (N - 1) is B[i-j]
                bias = tensors[f"{heads}.score_bias"]
                scores = scores + bias[:, row_places[:, None] - places[None, :] + (bias.shape[1] - 1) // 2]
            weights = WEIGHTS[options["kind"]](scores, allowed)
            shares = weights.split([piece.shape[1] for piece in keys], -1)
            values = [project(tensors, heads, "value", piece) for piece in keys]
            mixed = sum(share @ value for share, value in zip(shares, values, strict=True))
            total = total + (mixed @ tensors[f"{heads}.output"]).sum(1)
        return total

    def _read_out(self, tensors, rows):
        kind = self.config["readout"]["kind"]
        if kind == "mean":
            rows = rows.mean(1, keepdim=True)
        elif kind == "sum":
            rows = rows.sum(1, keepdim=True)
        return (rows @ tensors["readout.weight"] + tensors["readout.bias"]).flatten(1)


def code_rows(config):
    """What a computed position code adds to every data token, in float64; None when there is none."""
    code, tokens = config["code"], config["input"]["tokens"]
    rows = torch.zeros(tokens, config["width"], dtype=torch.float64)
    place = torch.arange(tokens, dtype=torch.float64)
    if code["kind"] == "one-hot":
        rows[range(tokens), range(code["offset"], code["offset"] + tokens)] = 1.0
    elif code["kind"] == "circle":
        angle = 2.0 * math.pi * place / code["period"]
        rows[:, code["offset"]], rows[:, code["offset"] + 1] = torch.cos(angle), torch.sin(angle)
    elif code["kind"] == "sinusoidal":
        for i in range(code["width"]):
            angle = place / 10000.0 ** (2 * (i // 2) / code["width"])
            rows[:, code["offset"] + i] = torch.sin(angle) if i % 2 == 0 else torch.cos(angle)
    else:
        return None
    return rows


def normaliser(norm, place, tensors, name):
    """The layer norm of a sub-layer if it stands at `place`, otherwise the identity."""
    if norm is None or norm["place"] != place:
        return lambda tokens: tokens
    scale, shift = tensors[f"{name}.scale"], tensors[f"{name}.shift"]
    return lambda tokens: nn.functional.layer_norm(tokens, scale.shape, scale, shift, norm["epsilon"])


def feed_forward(ffn, tensors, name, tokens):
    hidden = tokens @ tensors[f"{name}.up"] + tensors[f"{name}.up_bias"]
    return ACTIVATIONS[ffn["kind"]](hidden) @ tensors[f"{name}.down"] + tensors[f"{name}.down_bias"]


def project(tensors, name, role, tokens):
    """(batch, tokens, width) to the queries, keys or values of all heads, (batch, heads, tokens, size)."""
    projected = tokens[:, None] @ tensors[f"{name}.{role}"]
    bias = tensors.get(f"{name}.{role}_bias")
    return projected if bias is None else projected + bias[:, None, :]


def softmax(scores, allowed):
    if allowed is None:
        return torch.softmax(scores, -1)
    weights = torch.softmax(scores.masked_fill(~allowed, -math.inf), -1)
    # A row without an allowed key has the weights 0, not 0/0.
    return torch.where(allowed.any(-1, keepdim=True), weights, 0.0)


def hard(scores, allowed):
    """Equal weights on the keys with the largest score."""
    if allowed is not None:
        scores = scores.masked_fill(~allowed, -math.inf)
    best = scores == scores.amax(-1, keepdim=True)
    best = (best if allowed is None else best & allowed).to(scores.dtype)
    total = best.sum(-1, keepdim=True)
    return best / (total if allowed is None else torch.where(allowed.any(-1, keepdim=True), total, 1.0))


def nearest(scores, allowed):
    """Equal weights on the keys with the smallest |score|."""
    return hard(-scores.abs(), allowed)


def linear(scores, allowed):
    return scores if allowed is None else scores.masked_fill(~allowed, 0.0)


def relu(scores, allowed):
    return linear(torch.relu(scores), allowed)


WEIGHTS = {"softmax": softmax, "hard": hard, "nearest": nearest, "linear": linear, "relu": relu}
ACTIVATIONS = {"relu": torch.relu, "gelu": nn.functional.gelu, "identity": lambda hidden: hidden}
