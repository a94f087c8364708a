"""Writes the tensors of the one `model` from placed heads and tables."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from certiformer.compiler.draft import START, Draft, DraftCell, DraftHead
from certiformer.compiler.draft_to_layers import Layer, Placement
from certiformer.compiler.linear_form import Form, Number
from certiformer.model.config import Attention, Block, Code, Config, FeedForward, Heads, Input, Readout
from certiformer.model.layout import tensor_specs


def layers_to_weights(
    draft: Draft, placement: Placement, vocabulary: int, length: int, dtype: str, kind: str
) -> tuple[Config, dict[str, np.ndarray]]:
    """The configuration and its tensors in the stored type; `kind` of the read-out is `logits` or `number`."""
    features = [*(draft.output_feature.numbers or ())]
    if draft.output_feature.undefined is not None:
        features.append(draft.output_feature.undefined)
    config = Config(
        input=Input("ids", tokens=length, vocabulary=vocabulary),
        width=placement.width,
        outputs=len(features) if kind == "logits" else 1,
        readout=Readout("all"),
        blocks=tuple(_block(draft, layer) for layer in placement.layers),
        registers=1,
        code=Code("table"),
        dtype=dtype,
    )
    tensors = {name: np.zeros(spec.shape) for name, spec in tensor_specs(config).items()}
    _write_embedding(draft, placement, tensors)
    for index, layer in enumerate(placement.layers):
        _write_heads(layer, placement, tensors, f"blocks.{index}.attention")
        _write_units(draft, layer, placement, tensors, f"blocks.{index}.ffn")
    column, constant = _column(draft.output, placement)
    if kind == "logits":
        f = np.array([float(x) for x in features])
        tensors["readout.weight"][:] = 2 * column[:, None] * f
        tensors["readout.bias"][:] = 2 * constant * f - f**2
    else:
        tensors["readout.weight"][:, 0] = column
        tensors["readout.bias"][0] = constant
    return config, {name: tensor.astype(_stored(dtype)) for name, tensor in tensors.items()}


def _stored(dtype: str) -> np.dtype:
    if dtype == "bfloat16":
        import ml_dtypes  # NumPy has no such type of its own

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(dtype)


def groups_of(layer: Layer) -> dict[int, list[DraftHead]]:
    """The heads of a block by key size, smallest first."""
    groups: dict[int, list[DraftHead]] = {}
    for head in sorted(layer.heads, key=lambda head: len(head.queries)):
        groups.setdefault(len(head.queries), []).append(head)
    return groups


def units_in(draft: Draft, layer: Layer) -> int:
    """The hidden units of a block: tables first, then the clearing of cells."""
    clearing = sum(len(signs(draft.cells[cell])) for cell in layer.clears)
    return sum(len(table.units) for table in layer.tables) + clearing


def _block(draft: Draft, layer: Layer) -> Block:
    attention = None
    if layer.heads:
        heads = tuple(Heads(len(members), size, 1) for size, members in groups_of(layer).items())
        attention = Attention(heads, bias=True, scale="unit", mask="causal" if layer.causal else "none")
    return Block(attention, FeedForward(units_in(draft, layer)) if layer.tables or layer.clears else None)


def _column(form: Form, placement: Placement) -> tuple[np.ndarray, float]:
    column = np.zeros(placement.width)
    for cell, factor in form.terms:
        column[placement.coordinates[cell]] = float(factor)
    return column, float(form.constant)


def _write_embedding(draft: Draft, placement: Placement, tensors: dict[str, np.ndarray]) -> None:
    rows: tuple[tuple[str, Callable[[DraftCell], tuple[Number, ...] | None]], ...] = (
        ("embed.weight", lambda cell: cell.by_token),
        ("code.table", lambda cell: cell.by_position),
    )
    for number, cell in enumerate(draft.cells):
        for name, numbers_of in rows:
            numbers = numbers_of(cell)
            if numbers is not None:
                tensors[name][:, placement.coordinates[number]] = [float(x) for x in numbers]
    tensors["registers"][0, placement.coordinates[START]] = 1.0


def _write_heads(layer: Layer, placement: Placement, tensors: dict[str, np.ndarray], prefix: str) -> None:
    for group, members in enumerate(groups_of(layer).values()):
        name = f"{prefix}.groups.{group}"
        for place, head in enumerate(members):
            for role, forms in (("query", head.queries), ("key", head.keys), ("value", (head.value,))):
                for dimension, form in enumerate(forms):
                    column, constant = _column(form, placement)
                    tensors[f"{name}.{role}"][place, :, dimension] = column
                    tensors[f"{name}.{role}_bias"][place, dimension] = constant
            tensors[f"{name}.output"][place, 0, placement.coordinates[head.cell]] = 1.0


def _write_units(draft: Draft, layer: Layer, placement: Placement, tensors: dict[str, np.ndarray], prefix: str) -> None:
    if f"{prefix}.up" not in tensors:
        return
    up, up_bias, down, down_bias = (tensors[f"{prefix}.{part}"] for part in ("up", "up_bias", "down", "down_bias"))
    first = 0
    for table in layer.tables:
        last, constant = first + len(table.units), table.ridge.constant
        for cell, factor in table.ridge.terms:
            up[placement.coordinates[cell], first:last] = [float(slope * factor) for slope, _ in table.units]
        up_bias[first:last] = [float(slope * constant + bias) for slope, bias in table.units]
        for cell, factors in table.writes.items():
            coordinate = placement.coordinates[cell]
            down[[first + unit for unit, _ in factors], coordinate] = [float(factor) for _, factor in factors]
            down_bias[coordinate] += float(table.offsets[cell])
        first = last
    for cell in layer.clears:
        coordinate = placement.coordinates[cell]
        for sign in signs(draft.cells[cell]):
            up[coordinate, first] = sign
            down[first, coordinate] = -sign
            first += 1


def signs(cell: DraftCell) -> tuple[int, ...]:
    """A cell x is cleared by adding -relu(x), and relu(-x) if it can be negative: exactly 0, whatever the error of x."""
    numbers = [*(cell.feature.numbers or (-1,)), cell.at_start]
    if cell.feature.undefined is not None:
        numbers.append(cell.feature.undefined)
    least = min(numbers)
    return (1,) if least > 0 or (least == 0 and not cell.dips) else (1, -1)
