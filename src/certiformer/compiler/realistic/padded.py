"""The forward pass of a compiled transformer on inputs of all lengths at once, with everything that its tensors read.

Training needs one compiled function for a batch of different lengths, so inputs are filled up and the fillers are
hidden from every head. It computes what `model.forward` does for softmax attention, ReLU units and the read-out
`all`; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from certiformer.model.config import Config

Forms = dict[str, Float[Array, "inputs positions _"]]


def padded_forms(
    config: Config,
    tensors: Mapping[str, Array],
    ids: Int[Array, "inputs tokens"],
    present: Bool[Array, "inputs positions"],
) -> tuple[Forms, list[Float[Array, "inputs positions width"]]]:
    """What every reading tensor reads, its bias included, at every position (the start first); and the states.

    **Arguments:**

    - `ids`: token ids, whatever after the end of an input.
    - `present`: which positions belong to the input; the start always does.
    """
    data = tensors["embed.weight"][ids] + tensors["code.table"][None, : ids.shape[1]]
    start = jnp.broadcast_to(tensors["registers"][None], (ids.shape[0], *tensors["registers"].shape))
    stream = jnp.concatenate([start, data], axis=1)
    forms: Forms = {}
    states = [stream]
    for index, block in enumerate(config.blocks):
        if block.attention is not None:
            name = f"blocks.{index}.attention"
            seen = present[:, None, None, :]
            if block.attention.mask == "causal":
                seen = seen & jnp.tri(stream.shape[1], dtype=bool)[None, None]
            added = tensors[f"{name}.output_bias"]
            for group in range(len(block.attention.heads)):
                added = added + _heads(tensors, f"{name}.groups.{group}", stream, seen, forms)
            stream = stream + added
            states.append(stream)
        if block.ffn is not None:
            name = f"blocks.{index}.ffn"
            hidden = stream @ tensors[f"{name}.up"] + tensors[f"{name}.up_bias"]
            forms[f"{name}.up"] = hidden
            stream = stream + jax.nn.relu(hidden) @ tensors[f"{name}.down"] + tensors[f"{name}.down_bias"]
            states.append(stream)
    forms["readout.weight"] = stream @ tensors["readout.weight"] + tensors["readout.bias"]
    return forms, states


def _heads(
    tensors: Mapping[str, Array], name: str, stream: Array, seen: Bool[Array, "inputs _ _ positions"], forms: Forms
) -> Float[Array, "inputs positions width"]:
    parts = {}
    for role in ("query", "key", "value"):
        bias = tensors[f"{name}.{role}_bias"][None, :, None, :]
        parts[role] = jnp.einsum("bid,hdk->bhik", stream, tensors[f"{name}.{role}"]) + bias
        forms[f"{name}.{role}"] = jnp.moveaxis(parts[role], 1, 2).reshape(*stream.shape[:2], -1)
    scores = jnp.einsum("bhik,bhjk->bhij", parts["query"], parts["key"])
    weights = jax.nn.softmax(jnp.where(seen, scores, -jnp.inf), axis=-1)
    return jnp.einsum("bhij,bhjv,hvd->bid", weights, parts["value"], tensors[f"{name}.output"])
