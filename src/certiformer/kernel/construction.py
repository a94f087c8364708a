"""The transformer of a construction, given by its few nonzero weights, and the comparison of a stored one with it.

Where a theorem leaves no freedom, the weights are numbers in a sea of zeros. They are listed once: the compiler stores
them, and the axiom refuses a model that differs in a single entry, be it a number where a zero should be.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from certiformer.errors import BadInput
from certiformer.kernel import Refused
from certiformer.kernel.weights import FORMAT, Tensor

Row = Mapping[int, float]  # numbers by coordinate
Entries = Sequence[tuple[int, int, float]]  # (row, column, weight)
Head = tuple[Entries, Entries, Entries, Entries]  # query, key, value, output
Unit = tuple[Row, float, Row]  # what is read, bias, what is added
MAX_ENTRIES = 2_000_000  # nonzero weights


class Construction:
    """A transformer in the making whose tokens are copied into the stream and whose read-out is one token.

    `read` maps every output to a coordinate and a factor, `registers` and `bias` map coordinates to numbers.
    """

    mask = "none"

    def __init__(
        self,
        kind: str,
        sizes: tuple[int, int, int],
        read: Sequence[tuple[int, float]],
        token: int,
        bias: Row | None = None,
        registers: Sequence[Row] = (),
    ) -> None:
        self.kind, self._made, (tokens, inputs, width) = kind, 0, sizes
        self.config: dict[str, Any] = {
            "format": FORMAT,
            "input": {"kind": "continuous", "tokens": tokens, "width": inputs},
            "width": width,
            "registers": len(registers),
            "code": {"kind": "none"},
            "blocks": [],
            "readout": {"kind": "token", "token": token},
            "outputs": len(read),
        }
        self.entries: dict[str, dict[tuple[int, ...], float]] = {
            "embed.weight": {(i, i): 1.0 for i in range(inputs)},
            "embed.bias": {(i,): b for i, b in (bias or {}).items()},
            "readout.weight": {(c, output): factor for output, (c, factor) in enumerate(read)},
            "readout.bias": {},
        }
        if registers:
            self.entries["registers"] = {(r, c): w for r, row in enumerate(registers) for c, w in row.items()}

    @classmethod
    def of_rows(
        cls,
        kind: str,
        width: int,
        embed: Sequence[Row],
        codes: Sequence[Row],
        read: Sequence[Row],
        bias: Row | None = None,
        registers: Sequence[Row] = (),
    ) -> Construction:
        """One with a causal mask that reads numbered tokens and is read at every row; the numbers of every token, every
        row and every output by coordinate, and the bias by output."""
        made = cls(kind, (len(codes), 1, width), (), 0, None, registers)
        source = {"kind": "ids", "tokens": len(codes), "vocabulary": len(embed)}
        made.config |= {"input": source, "code": {"kind": "table"}, "readout": {"kind": "all"}, "outputs": len(read)}
        made.mask = "causal"
        made.entries = {name: entries for name, entries in made.entries.items() if name == "registers"}
        made.entries["embed.weight"] = {(n, c): w for n, row in enumerate(embed) for c, w in row.items()}
        made.entries["code.table"] = {(n, c): w for n, row in enumerate(codes) for c, w in row.items()}
        made.entries["readout.weight"] = {(c, n): w for n, row in enumerate(read) for c, w in row.items()}
        made.entries["readout.bias"] = {(n,): w for n, w in (bias or {}).items()}
        return made

    def block(self) -> None:
        """Begin the next block."""
        self.config["blocks"].append({"attention": None, "ffn": None, "norm": None})

    def heads(self, key: int, value: int, heads: Iterable[Head]) -> None:
        """A group of heads of the block."""
        block = self.config["blocks"][-1]
        if block["attention"] is None:
            rest = {"bias": False, "scale": "unit", "mask": self.mask, "score_bias": "none", "residual": True}
            block["attention"] = {"kind": self.kind, "heads": [], **rest}
        groups, count = block["attention"]["heads"], 0
        name = f"blocks.{len(self.config['blocks']) - 1}.attention.groups.{len(groups)}"
        parts = [self.entries.setdefault(f"{name}.{role}", {}) for role in ("query", "key", "value", "output")]
        for head in heads:
            for part, entries in zip(parts, head, strict=True):
                part.update({(count, row, column): weight for row, column, weight in entries})
            self._limit(sum(map(len, head)))
            count += 1
        groups.append({"count": count, "key": key, "value": value})

    def units(self, units: Iterable[Unit]) -> None:
        """The hidden units of the block."""
        name, count = f"blocks.{len(self.config['blocks']) - 1}.ffn", 0
        up, shift, down, _ = (
            self.entries.setdefault(f"{name}.{role}", {}) for role in ("up", "up_bias", "down", "down_bias")
        )
        for ins, bias, outs in units:
            up.update({(c, count): weight for c, weight in ins.items()})
            down.update({(count, c): weight for c, weight in outs.items()})
            shift.update({(count,): bias} if bias else {})
            self._limit(len(ins) + len(outs))
            count += 1
        self.config["blocks"][-1]["ffn"] = {"kind": "relu", "width": count, "residual": True}

    @property
    def count(self) -> int:
        """How many weights are listed."""
        return sum(map(len, self.entries.values()))

    def _limit(self, entries: int) -> None:
        """A description is a few numbers, what it calls for may be any size."""
        self._made += entries
        if self._made > MAX_ENTRIES:
            raise BadInput(f"the construction has more than {MAX_ENTRIES:,} weights, the most that are compared")

    def finished(self, loops: int, dtype: str) -> Construction:
        """The construction, applied `loops` times, with numbers of type `dtype`."""
        self.config |= {"loops": loops, "dtype": dtype}
        return self

    def require(self, config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        """Refuse a stored model that is not this one."""
        if config != self.config or set(tensors) != set(self.entries):
            odd = [name for name in self.config if config.get(name) != self.config[name]]
            raise Refused(f"the transformer is not of the form of the construction: {', '.join(odd)} differs")
        for name, entries in self.entries.items():
            tensor = tensors[name]
            wanted = {_offset(tensor.shape, index): weight for index, weight in entries.items() if weight}
            stored = {place: weight for place, weight in enumerate(tensor.data) if weight}
            if stored != wanted:
                place = min(p for p in stored.keys() | wanted.keys() if stored.get(p) != wanted.get(p))
                what = f"{stored.get(place, 0.0)!r}, but the construction has {wanted.get(place, 0.0)!r} there"
                raise Refused(f"entry {place} of {name} is {what}")


def _offset(shape: tuple[int, ...], index: tuple[int, ...]) -> int:
    offset = 0
    for size, i in zip(shape, index, strict=True):
        offset = offset * size + i
    return offset


def copy(source: int, count: int, to: int = 0, factor: float = 1.0) -> list[tuple[int, int, float]]:
    """`count` entries along a diagonal."""
    return [(source + i, to + i, factor) for i in range(count)]


def step(slot: int, threshold: int, to: int) -> list[Unit]:
    """Two units that add exactly 1 where `slot` has reached the threshold up to 1/4, exactly 0 where it is 3/4 below."""
    return [({slot: 1.0}, 0.75 - threshold, {to: 2.0}), ({slot: 1.0}, 0.25 - threshold, {to: -2.0})]


def cleared(coordinate: int) -> Unit:
    """h - max(h, 0) = 0 for h that is not negative."""
    return ({coordinate: 1.0}, 0.0, {coordinate: -1.0})


def eraser(coordinates: Sequence[int]) -> list[Unit]:
    """h - max(h, 0) + max(-h, 0) = 0: two units for every coordinate."""
    return [({c: sign}, 0.0, {c: -sign}) for c in coordinates for sign in (1.0, -1.0)]
