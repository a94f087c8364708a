"""The transformer as an ONNX file, written node by node from the configuration.

The graph is the forward pass of `certiformer.model` with the batch as first axis and the loops unrolled: all blocks but the
last update every token, the last one only the tokens that the read-out sees.

| name | type | shape |
|---|---|---|
| `points` | the type of the weights, int64 for token ids | (batch, D), for ids (batch, tokens) of any length allowed |
| `outputs` | the type of the weights | (batch, outputs) |

bfloat16 weights are computed in float32. An id outside the vocabulary is an error of the runtime, as is a wrong shape.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from certiformer.export.graph import Graph
from certiformer.export.onnx_attention import ACTIVATIONS, Keys, Rows, attention
from certiformer.model import Block, Config, FeedForward, Norm, Transformer
from certiformer.model.codes import code_rows

Tensors = Mapping[str, np.ndarray]


def to_onnx(model: Transformer, notes: Mapping[str, str] | None = None) -> bytes:
    """The content of an `.onnx` file (opset 18) that computes what the model computes.

    **Arguments:**

    - `model`: any transformer of `certiformer.model`.
    - `notes`: texts to carry along as `metadata_props`; `claim` also becomes the description of the graph.

    **Raises:** `MissingExtra` without the library onnx, `BadInput` for a model that no ONNX file can hold.
    """
    config = model.config
    tensors = {name: np.asarray(tensor) for name, tensor in model.tensors.items()}
    graph = Graph(config.dtype)
    rows = _last_rows(graph, config, tensors, _embed(graph, config, tensors))
    outputs = _read_out(graph, config, tensors, rows)
    any_length = _any_length(config)
    if config.input.width is None:
        points = np.int64, ("batch", "tokens" if any_length else config.tokens)
    else:
        points = graph.float, ("batch", config.tokens * config.input.width)
    unknown = any_length and config.readout.kind == "all"
    return graph.to_bytes(points, (outputs, ("batch", "outputs" if unknown else model.output_size)), notes or {})


def _any_length(config: Config) -> bool:
    """Whether the number of data tokens is known only when a point is fed."""
    return config.input.kind == "ids" and config.tokens > 1


def _embed(graph: Graph, config: Config, tensors: Tensors) -> str:
    """(batch, tokens, width): the data tokens before the first block."""
    graph.scope = "embed"
    weight = graph.tensor("embed.weight", tensors["embed.weight"])
    if config.input.width is not None:
        tokens = graph.apply("Reshape", "points", graph.integers(0, config.tokens, config.input.width))
        bias = graph.tensor("embed.bias", tensors["embed.bias"])
        data = graph.apply("Add", graph.apply("MatMul", tokens, weight), bias)
    else:
        # ONNX counts a negative index from the end; it becomes one that no runtime accepts.
        outside = graph.apply("Less", "points", graph.integers(0))
        ids = graph.apply("Where", outside, graph.integers(tensors["embed.weight"].shape[0]), "points")
        data = graph.apply("Gather", weight, ids, axis=0)
    code = tensors["code.table"] if config.code.kind == "table" else code_rows(config)
    if _any_length(config):
        # Adding a code of as many rows as the model has tokens is what refuses a longer input; without one, zeros do it.
        rows = graph.tensor("code", np.zeros((config.tokens, 1)) if code is None else code)
        return graph.apply(
            "Add", data, graph.apply("Slice", rows, graph.integers(0), _length(graph), graph.integers(0))
        )
    return data if code is None else graph.apply("Add", data, graph.tensor("code", code))


def _length(graph: Graph) -> str:
    """The number of data tokens that were fed, as a vector with one entry."""
    return graph.apply("Shape", "points", start=1, end=2)


def _last_rows(graph: Graph, config: Config, tensors: Tensors, data: str) -> str:
    """(batch, rows, width): the tokens that the read-out sees, after all blocks."""
    applied = config.loops * len(config.blocks)
    keys = _sequence(graph, config, tensors, data, shared=applied <= 1 and config.readout.kind != "register")
    for number in range(applied):
        index = number % len(config.blocks)
        if number + 1 == applied:
            return _block(
                graph, config.blocks[index], tensors, f"blocks.{index}", keys, _rows_read(graph, config, keys)
            )
        rows = Rows(keys.pieces[0], keys.places)
        keys = keys._replace(pieces=(_block(graph, config.blocks[index], tensors, f"blocks.{index}", keys, rows),))
    return _rows_read(graph, config, keys).values


def _sequence(graph: Graph, config: Config, tensors: Tensors, data: str, shared: bool) -> Keys:
    """Registers and data tokens: two pieces while the registers are shared by the batch, otherwise one."""
    registers, graph.scope = config.registers, "sequence"
    places = graph.positions(config.length)
    if _any_length(config):
        length = graph.apply("Add", _length(graph), graph.integers(registers))
        places = graph.apply("Slice", places, graph.integers(0), length, graph.integers(0))
    pieces = (data,)
    if registers:
        prefix = graph.tensor("registers", tensors["registers"][None])
        pieces = (prefix, data)
        if not shared:
            batch = graph.apply("Shape", "points", start=0, end=1)
            shape = graph.apply("Concat", batch, graph.integers(registers, config.width), axis=0)
            pieces = (graph.apply("Concat", graph.apply("Expand", prefix, shape), data, axis=1),)
    return Keys(pieces, places, registers, config.length)


def _rows_read(graph: Graph, config: Config, keys: Keys) -> Rows:
    graph.scope = "rows"
    data, places = keys.pieces[-1], keys.places
    if config.readout.kind == "register" and config.readout.token is not None:
        register = graph.integers(config.readout.token)
        return Rows(graph.apply("Gather", data, register, axis=1), graph.apply("Gather", places, register, axis=0))
    if config.registers:
        places = graph.piece(places, config.registers, None, axis=0)
        if len(keys.pieces) == 1:
            data = graph.piece(data, config.registers, None, axis=1)
    if config.readout.token is None:
        return Rows(data, places)
    token = graph.integers(config.readout.token)
    return Rows(graph.apply("Gather", data, token, axis=1), graph.apply("Gather", places, token, axis=0))


def _block(graph: Graph, block: Block, tensors: Tensors, prefix: str, keys: Keys, rows: Rows) -> str:
    """`rows` after the block."""
    h = rows.values
    if block.attention is not None:
        graph.scope = name = f"{prefix}.attention"
        norm = f"{prefix}.norm.attention"
        normed = keys._replace(pieces=tuple(_norm(graph, block.norm, "pre", tensors, norm, p) for p in keys.pieces))
        queries = rows._replace(values=_norm(graph, block.norm, "pre", tensors, norm, h))
        out = attention(graph, block.attention, tensors, name, normed, queries)
        h = graph.apply("Add", h, out) if block.attention.residual else out
        h = _norm(graph, block.norm, "post", tensors, norm, h)
    if block.ffn is not None:
        graph.scope = f"{prefix}.ffn"
        norm = f"{prefix}.norm.ffn"
        out = _feed_forward(
            graph, block.ffn, tensors, f"{prefix}.ffn", _norm(graph, block.norm, "pre", tensors, norm, h)
        )
        h = graph.apply("Add", h, out) if block.ffn.residual else out
        h = _norm(graph, block.norm, "post", tensors, norm, h)
    return h


def _feed_forward(graph: Graph, ffn: FeedForward, tensors: Tensors, prefix: str, tokens: str) -> str:
    return _affine(
        graph, tensors, f"{prefix}.down", ACTIVATIONS[ffn.kind](graph, _affine(graph, tensors, f"{prefix}.up", tokens))
    )


def _affine(graph: Graph, tensors: Tensors, name: str, tokens: str) -> str:
    product = graph.apply("MatMul", tokens, graph.tensor(name, tensors[name]))
    return graph.apply("Add", product, graph.tensor(f"{name}_bias", tensors[f"{name}_bias"]))


def _norm(graph: Graph, norm: Norm | None, place: str, tensors: Tensors, prefix: str, tokens: str) -> str:
    """The tokens normalised if the block does that at `place`, otherwise the tokens.

    Written out because ONNX's LayerNormalization computes mean and variance in float32 unless told otherwise.
    """
    if norm is None or norm.place != place:
        return tokens
    centred = graph.apply("Sub", tokens, graph.reduce("ReduceMean", tokens, -1))
    variance = graph.reduce("ReduceMean", graph.apply("Mul", centred, centred), -1)
    deviation = graph.apply("Sqrt", graph.apply("Add", variance, graph.number(norm.epsilon)))
    scaled = graph.apply("Mul", graph.apply("Div", centred, deviation), _vector(graph, tensors, f"{prefix}.scale"))
    return graph.apply("Add", scaled, _vector(graph, tensors, f"{prefix}.shift"))


def _vector(graph: Graph, tensors: Tensors, name: str) -> str:
    return graph.tensor(name, tensors[name])


def _read_out(graph: Graph, config: Config, tensors: Tensors, rows: str) -> str:
    """(batch, outputs), the tokens one after the other."""
    graph.scope = "readout"
    over_tokens = {"mean": "ReduceMean", "sum": "ReduceSum"}.get(config.readout.kind)
    if over_tokens is not None:
        rows = graph.reduce(over_tokens, rows, 1)
    product = graph.apply("MatMul", rows, graph.tensor("readout.weight", tensors["readout.weight"]))
    biased = graph.apply("Add", product, graph.tensor("readout.bias", tensors["readout.bias"]))
    return graph.apply("Flatten", biased, axis=1)
