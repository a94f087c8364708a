"""Our own models (`certiformer-model-1`): everything is in the config; matrices act on rows, so they are transposed here.

A block has groups of heads of different sizes; each group is an attention of its own, side by side with the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from certiformer.audit.form import Attention, Checkpoint, FeedForward, Layer, Norm, Weight
from certiformer.audit.read.names import Names
from certiformer.audit.read.settings import Settings
from certiformer.errors import BadInput
from certiformer.model.config import Config
from certiformer.model.layout import tensor_specs
from certiformer.model.schema import FORMAT, problems

POSITIONS = {"table": "learned", "one-hot": "one-hot", "sinusoidal": "sinusoidal", "circle": "circle", "none": "none"}
LARGEST = 1 << 40  # as for the numbers of every config


def is_own(settings: Settings) -> bool:
    """Whether the config is of one of our models."""
    return settings.get("format") == FORMAT


def read(names: Names, settings: Settings) -> Checkpoint:
    """The checkpoint of a model that we saved."""
    config = settings.config
    if any(abs(number) >= LARGEST for number in _whole_numbers(config)):
        raise BadInput("the config of this model has a number that is larger than any size")
    wrong = problems(config)
    if wrong:
        raise BadInput(f"the config of this model is not legal: {wrong[0]}")
    _check_shapes(names, config)
    width, blocks = config["width"], config["blocks"]
    ids = config["input"]["kind"] == "ids"
    embeddings = {
        "word" if ids else "input": names.take("embed.weight", transposed=not ids),
        **names.some(input_bias="embed.bias", registers="registers", position="code.table"),
    }
    places = {block["norm"]["place"] for block in blocks if block["norm"] is not None}
    return Checkpoint(
        "certiformer",
        tuple(_layer(names, f"blocks.{i}", block, width, config["loops"]) for i, block in enumerate(blocks)),
        width,
        positions="none" if config["code"].get("period") == 1 else POSITIONS[config["code"]["kind"]],
        norm_place=places.pop() if len(places) == 1 else None,
        embeddings=embeddings,
        head=names.take("readout.weight", whole=(config["outputs"], width), transposed=True),
        head_bias=names.take("readout.bias"),
        context=config["input"]["tokens"],
        vocabulary=config["input"].get("vocabulary"),
        config=config,
        notes=tuple(
            f"the {part} of block {i} has no residual"
            for i, block in enumerate(blocks)
            for part in ("attention", "ffn")
            if block[part] is not None and not block[part]["residual"]
        ),
    )


def _whole_numbers(data: Any) -> Iterator[int]:
    if isinstance(data, int):
        yield data
    elif isinstance(data, (dict, list)):
        for each in data.values() if isinstance(data, dict) else data:
            yield from _whole_numbers(each)


def _check_shapes(names: Names, config: dict[str, Any]) -> None:
    """Raises where a tensor does not have the shape that the config asks for."""
    for name, spec in tensor_specs(Config.from_json(config)).items():
        if names.shape(name) != spec.shape:
            raise BadInput(
                f"the tensor {name!r} has the shape {names.shape(name)}, but the config asks for {spec.shape}"
            )


def _layer(names: Names, place: str, block: dict[str, Any], width: int, loops: int) -> Layer:
    norm = block["norm"]
    found = {part: f"{place}.norm.{part}" for part in ("attention", "ffn") if names.has(f"{place}.norm.{part}.scale")}
    norms = {
        part: Norm(norm["kind"], names.take(f"{name}.scale"), names.take(f"{name}.shift"), norm["epsilon"])
        for part, name in found.items()
    }
    attention = block["attention"] or {"heads": ()}
    groups = range(len(attention["heads"]))
    biases = {f"score_bias_{g}": f"{place}.attention.groups.{g}.score_bias" for g in groups}
    return Layer(
        place,
        tuple(_group(names, f"{place}.attention", g, attention, width) for g in groups),
        () if block["ffn"] is None else (_hidden(names, f"{place}.ffn", block["ffn"]),),
        norms,
        names.some(**biases),
        repeats=loops,
    )


def _group(names: Names, place: str, index: int, attention: dict[str, Any], width: int) -> Attention:
    group, sizes = f"{place}.groups.{index}", attention["heads"][index]
    count, key, value = sizes["count"], sizes["key"], sizes["value"]

    def rows(name: str, size: int) -> Weight:
        return names.take(
            f"{group}.{name}", (count, size, width), whole=(count, width, size), change=_swap, part=TURNED
        )

    return Attention(
        rows("query", key),
        rows("key", key),
        rows("value", value),
        names.take(f"{group}.output", (count, width, value), whole=(count, value, width), change=_swap, part=TURNED),
        names.maybe(f"{group}.query_bias", (count, key)),
        names.maybe(f"{group}.key_bias", (count, key)),
        names.maybe(f"{group}.value_bias", (count, value)),
        # One bias for all groups; it is told once.
        names.maybe(f"{place}.output_bias", (width,)) if index == 0 else None,
        scale=key**-0.5 if attention["scale"] == "inverse-sqrt" else 1.0,
        causal={"causal": True, "none": False}.get(attention["mask"]),
        softmax=attention["kind"] == "softmax",
    )


TURNED = "last two axes exchanged"


def _swap(array: np.ndarray) -> np.ndarray:
    return array.transpose(0, 2, 1)


def _hidden(names: Names, place: str, ffn: dict[str, Any]) -> FeedForward:
    return FeedForward(
        names.take(f"{place}.up", transposed=True),
        names.take(f"{place}.down", transposed=True),
        up_bias=names.take(f"{place}.up_bias"),
        down_bias=names.take(f"{place}.down_bias"),
        activation=ffn["kind"],
    )
