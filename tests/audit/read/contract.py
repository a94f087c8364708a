"""The contract of readers: `check_reader` holds for every family, whatever its names and layouts are."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from audit.read.synthetic import Full, Synthetic
from certiformer.audit.form import Attention, Checkpoint, Coverage
from certiformer.audit.read import read_checkpoint

# Products of two rounded matrices in another order of summation: sums of at most 20 terms below 1/4 each.
SUMS = 1e-14


def write(folder: Path, tensors: dict[str, np.ndarray], config: dict | None) -> Path:
    """A checkpoint as the libraries write it."""
    folder.mkdir(parents=True, exist_ok=True)
    save_file({name: np.ascontiguousarray(array) for name, array in tensors.items()}, str(folder / "model.safetensors"))
    if config:
        (folder / "config.json").write_text(json.dumps(config))
    return folder


def check_reader(made: Synthetic, folder: Path, prefix: str = "") -> tuple[Checkpoint, Coverage]:
    """Every stored number is read once and has its provenance; shapes fit; heads together are the full maps."""
    tensors = made.tensors()
    write(folder, {prefix + name: array for name, array in tensors.items()}, made.config)
    checkpoint, coverage = read_checkpoint(folder, **made.given)
    assert checkpoint.family == made.family
    assert coverage.accounted == coverage.total == sum(array.size for array in tensors.values())
    assert not coverage.missing and not coverage.buffers and not coverage.copies
    _check_numbers(checkpoint, {prefix + name: array for name, array in tensors.items()}, made.offset)
    attentions = [attention for layer in checkpoint.layers for attention in layer.attention]
    full = made.full(tensors)
    assert len(attentions) == len(full)
    for attention, maps in zip(attentions, full, strict=True):
        _check_attention(attention, maps, made.heads, checkpoint.width)
    assert all(layer.heads_known for layer in checkpoint.layers)
    assert checkpoint.config.items() >= made.config.items()
    return checkpoint, coverage


def _check_numbers(checkpoint: Checkpoint, tensors: dict[str, np.ndarray], offset: tuple[str, ...]) -> None:
    """The numbers of all weights together are those of the file, each once, under the tensor they name."""
    read: dict[str, Counter] = {name: Counter() for name in tensors}
    for weight in checkpoint.weights():
        array = weight.read()
        assert array.dtype == np.float64 and array.shape == weight.shape and array.flags.c_contiguous
        assert np.isfinite(array).all() and weight.count == array.size
        assert weight.source.file == "model.safetensors" and weight.stored == "F64"
        added = offset and weight.source.tensor.endswith(offset)
        assert weight.source.made == ("1 + w" if added else "")
        # Numbers are multiples of 1 / total near 1/2: adding and taking away 1 may round them.
        read[weight.source.tensor].update(np.round(array.ravel() - (1.0 if added else 0.0), 9).tolist())
    for name, array in tensors.items():
        assert read[name] == Counter(np.round(array.ravel(), 9).tolist()), name


def _check_attention(attention: Attention, maps: Full, heads: tuple[int, int, int], width: int) -> None:
    count, groups, size = heads
    query, key, value, output = maps
    assert attention.query.shape == (count, size, width)
    assert attention.key.shape == attention.value.shape == (groups, size, width)
    for bias, rows in ((attention.query_bias, count), (attention.key_bias, groups), (attention.value_bias, groups)):
        assert bias is None or bias.shape == (rows, size)
    share = count // groups
    q, k, v = (weight.read() for weight in (attention.query, attention.key, attention.value))
    assert np.array_equal(q.reshape(-1, width), query)
    # What the model computes with full maps: keys and values repeated for the queries that share them.
    wide_key, wide_value = (each.reshape(groups, size, width).repeat(share, 0) for each in (key, value))
    whole = query.T @ wide_key.reshape(-1, width)
    assert np.abs(sum(q[h].T @ k[h // share] for h in range(count)) - whole).max() < SUMS
    if output is None:
        assert attention.output is None
        return
    assert attention.output is not None and attention.output.shape == (count, width, size)
    o = attention.output.read()
    whole = output @ wide_value.reshape(-1, width)
    assert np.abs(sum(o[h] @ v[h // share] for h in range(count)) - whole).max() < SUMS
