"""The transformer that a description calls for, entry by entry, and the comparison with the one that is stored.

Weights of a learner are few numbers in a sea of zeros. A plan lists them; `Plan.compare` refuses a model that differs
from it in a single entry, be it a number where a zero should be. Nothing of `certiformer.compiler` is used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from certiformer.kernel.refusal import Refused
from certiformer.kernel.weights import Tensor

Entries = Sequence[tuple[int, int, float]]
_ATTENTION = {
    "kind": "relu", "bias": False, "scale": "unit", "mask": "none", "score_bias": "none", "residual": True,
}  # fmt: skip


def copy(source: int, count: int, to: int = 0, factor: float = 1.0) -> list[tuple[int, int, float]]:
    """`count` entries (row, column, weight) along a diagonal."""
    return [(source + i, to + i, factor) for i in range(count)]


class Plan:
    """A transformer of ReLU attention and ReLU units in the making, for inputs that are copied into the stream."""

    def __init__(self, tokens: int, inputs: int, width: int, read: Sequence[int], ones: Sequence[int] = ()) -> None:
        self.config: dict[str, Any] = {
            "input": {"kind": "continuous", "tokens": tokens, "width": inputs},
            "width": width,
            "registers": 0,
            "code": {"kind": "none"},
            "blocks": [],
            "readout": {"kind": "token", "token": tokens - 1},
            "outputs": len(read),
        }
        self.entries: dict[str, dict[tuple[int, ...], float]] = {
            "embed.weight": {(i, i): 1.0 for i in range(inputs)},
            "embed.bias": {(i,): 1.0 for i in ones},
            "readout.weight": {(c, place): 1.0 for place, c in enumerate(read)},
            "readout.bias": {},
        }

    def block(self) -> None:
        """Begin the next block."""
        self.config["blocks"].append({"attention": None, "ffn": None, "norm": None})

    def heads(self, key: int, value: int, heads: Sequence[tuple[Entries, Entries, Entries, Entries]]) -> None:
        """A group of heads of the block: (query, key, value, output), each a list of (row, column, weight)."""
        block = self.config["blocks"][-1]
        block["attention"] = block["attention"] or {**_ATTENTION, "heads": []}
        group = len(block["attention"]["heads"])
        block["attention"]["heads"].append({"count": len(heads), "key": key, "value": value})
        name = f"blocks.{len(self.config['blocks']) - 1}.attention.groups.{group}"
        for part, role in enumerate(("query", "key", "value", "output")):
            self.entries[f"{name}.{role}"] = {(h, r, c): w for h, head in enumerate(heads) for r, c, w in head[part]}

    def units(self, units: Sequence[tuple[Mapping[int, float], float, Mapping[int, float]]]) -> None:
        """The hidden units of the block: (what is read, bias, what is added)."""
        self.config["blocks"][-1]["ffn"] = {"kind": "relu", "width": len(units), "residual": True}
        name = f"blocks.{len(self.config['blocks']) - 1}.ffn"
        self.entries[f"{name}.up"] = {(c, u): w for u, (ins, _, _) in enumerate(units) for c, w in ins.items()}
        self.entries[f"{name}.up_bias"] = {(u,): bias for u, (_, bias, _) in enumerate(units) if bias}
        self.entries[f"{name}.down"] = {(u, c): w for u, (_, _, outs) in enumerate(units) for c, w in outs.items()}
        self.entries[f"{name}.down_bias"] = {}

    def compare(self, config: Mapping[str, Any], tensors: Mapping[str, Tensor], loops: int, dtype: str) -> None:
        """Refuse a stored model that is not the plan, applied `loops` times, with numbers of type `dtype`."""
        for name, wanted in {**self.config, "loops": loops, "dtype": dtype}.items():
            if config[name] != wanted:
                raise Refused(f"the transformer is not of the form that the learner needs: {name} differs")
        for name, wanted in self.entries.items():
            tensor = tensors[name]
            flat = {_flat(tensor.shape, place): weight for place, weight in wanted.items()}
            stored = {place: weight for place, weight in enumerate(tensor.data) if weight}
            if stored != flat:
                place = min(p for p in stored.keys() | flat.keys() if stored.get(p) != flat.get(p))
                is_, should = stored.get(place, 0.0), flat.get(place, 0.0)
                raise Refused(f"weight {place} of {name} is {is_!r}, but the learner needs {should!r}")


def _flat(shape: tuple[int, ...], place: tuple[int, ...]) -> int:
    index = 0
    for size, i in zip(shape, place, strict=True):
        index = index * size + i
    return index


def eraser(coordinates: Sequence[int]) -> list[tuple[dict[int, float], float, dict[int, float]]]:
    """h - max(h, 0) + max(-h, 0) = 0: two units for every coordinate."""
    return [({c: sign}, 0.0, {c: -sign}) for c in coordinates for sign in (1.0, -1.0)]
