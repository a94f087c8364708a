"""Places heads and tables in blocks, as early as what they read allows, and cells in coordinates.

Sub-layers are counted 0 (embedding), 1 (attention of block 0), 2 (its feed-forward part), 3, 4, ... Heads that are
ready share a sub-layer, except that a block is either causal or not: when both kinds are ready, the one with the longer
way to the end goes first. A coordinate whose cell nobody reads any more is cleared by one unit of a feed-forward part,
x -> x - relu(x), and used again, when that is cheaper than one more coordinate.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from certiformer.compiler.draft import START, Draft, DraftHead, DraftTable
from certiformer.kernel.situations.rasp.circuit import ATTENTION, EMBEDDING, FFN

FOREVER = 1 << 60


@dataclass
class Layer:
    """One block: heads that share a mask, tables, and the cells that are cleared."""

    causal: bool = False
    heads: list[DraftHead] = field(default_factory=list)
    tables: list[DraftTable] = field(default_factory=list)
    clears: list[int] = field(default_factory=list)


@dataclass
class Placement:
    """The blocks, the coordinate of each cell, and the sub-layers in which it is written and cleared."""

    layers: list[Layer]
    coordinates: dict[int, int]
    written: dict[int, int]
    cleared: dict[int, int]
    width: int


def sublayer_name(time: int) -> tuple[int, str]:
    """The block and the part of a sub-layer.

    >>> sublayer_name(0), sublayer_name(3), sublayer_name(4)
    ((0, 'embedding'), (1, 'attention'), (1, 'ffn'))
    """
    return (0, EMBEDDING) if time == 0 else ((time - 1) // 2, ATTENTION if time % 2 else FFN)


def draft_to_layers(draft: Draft, fixed_rows: int) -> Placement:
    """The placement; `fixed_rows` is how many rows of the embedding and read-out every coordinate takes."""
    layers, written = _schedule(draft)
    placement = Placement(layers, {}, written, {}, 0)
    _allocate(draft, placement, fixed_rows)
    return placement


# --- blocks -----------------------------------------------------------------------------------------------------------


def reads_of(op: DraftHead | DraftTable) -> set[int]:
    """The cells that a head or a table looks at."""
    forms = (op.ridge,) if isinstance(op, DraftTable) else (*op.queries, *op.keys, op.value)
    return {cell for form in forms for cell in form.cells}


def writes_of(op: DraftHead | DraftTable) -> Iterable[int]:
    return op.writes if isinstance(op, DraftTable) else (op.cell,)


def _schedule(draft: Draft) -> tuple[list[Layer], dict[int, int]]:
    ops: list[DraftHead | DraftTable] = [*draft.heads, *draft.tables]
    readers: dict[int, list[int]] = defaultdict(list)
    made_by = {cell: place for place, op in enumerate(ops) for cell in writes_of(op)}
    missing = []
    for place, op in enumerate(ops):
        needed = {cell for cell in reads_of(op) if cell in made_by}
        missing.append(len(needed))
        for cell in needed:
            readers[cell].append(place)
    height = _heights(ops, readers, missing)
    written = {cell: 0 for cell in range(len(draft.cells)) if cell not in made_by}
    ready = [place for place, count in enumerate(missing) if count == 0]
    layers: list[Layer] = []
    while ready:
        layer = Layer()
        heads = [place for place in ready if isinstance(ops[place], DraftHead)]
        if heads:
            first = max(heads, key=lambda place: height[place])
            layer.causal = ops[first].causal  # type: ignore[union-attr]
        for wanted in (DraftHead, DraftTable):
            time = 2 * len(layers) + (1 if wanted is DraftHead else 2)
            chosen = [p for p in ready if isinstance(ops[p], wanted) and _fits(ops[p], layer)]
            taken = set(chosen)
            ready = [place for place in ready if place not in taken]
            for place in chosen:
                (layer.heads if wanted is DraftHead else layer.tables).append(ops[place])  # type: ignore[arg-type]
                for cell in writes_of(ops[place]):
                    written[cell] = time
                    for reader in readers[cell]:
                        missing[reader] -= 1
                        if missing[reader] == 0:
                            ready.append(reader)
        layers.append(layer)
    return layers, written


def _fits(op: DraftHead | DraftTable, layer: Layer) -> bool:
    return isinstance(op, DraftTable) or op.causal == layer.causal


def _heights(ops: list, readers: dict[int, list[int]], missing: list[int]) -> list[int]:
    """The length of the longest way from each operation to the end."""
    left = list(missing)
    order = [place for place, count in enumerate(left) if count == 0]
    for place in order:
        for cell in writes_of(ops[place]):
            for reader in readers[cell]:
                left[reader] -= 1
                if left[reader] == 0:
                    order.append(reader)
    height = [0] * len(ops)
    for place in reversed(order):
        after = [height[reader] for cell in writes_of(ops[place]) for reader in readers[cell]]
        height[place] = 1 + max(after, default=0)
    return height


# --- coordinates ------------------------------------------------------------------------------------------------------


def _allocate(draft: Draft, placement: Placement, fixed_rows: int) -> None:
    last = _last_reads(draft, placement)
    with_units = [2 * b + 2 for b, layer in enumerate(placement.layers) if layer.tables]
    price = fixed_rows + sum(2 * len(head.queries) + 2 for head in draft.heads)
    price += sum(2 * len(table.units) for table in draft.tables)
    free: list[tuple[int, int]] = []  # (sub-layer of the clearing, cell), in no order
    waiting = sorted((time, cell) for cell, time in last.items() if cell != START)
    for cell in sorted(placement.written, key=lambda c: (placement.written[c], c)):
        time = placement.written[cell]
        while waiting and waiting[0][0] < time:
            done, old = waiting.pop(0)
            clearing = next((f for f in with_units if f >= done and f > placement.written[old]), FOREVER)
            if clearing < FOREVER:
                free.append((clearing, old))
        found = next(((when, old) for when, old in free if when < time), None)
        if found is None or 2 * placement.width + 1 > price:
            placement.coordinates[cell] = placement.width
            placement.width += 1
        else:
            free.remove(found)
            when, old = found
            placement.coordinates[cell] = placement.coordinates[old]
            placement.cleared[old] = when
            placement.layers[when // 2 - 1].clears.append(old)


def _last_reads(draft: Draft, placement: Placement) -> dict[int, int]:
    last = dict(placement.written)
    for block, layer in enumerate(placement.layers):
        for op in (*layer.heads, *layer.tables):
            time = 2 * block + (1 if isinstance(op, DraftHead) else 2)
            for cell in reads_of(op):
                last[cell] = max(last[cell], time)
    for cell in draft.output.cells:
        last[cell] = FOREVER
    last[START] = FOREVER
    return last
