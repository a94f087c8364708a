"""How far a run in floating point may be from the real-number function, over all sequences of letters at once.

The pass of `checker.run_error` keeps an interval of every real value and a bound of |run - real|. A box of inputs enters
it only through the embedding; here a token enters with the hull of all rows of the embedding, so that the intervals hold,
and the bound is valid, for every one of the V^n sequences. A row of the embedding is read as it is stored; adding the
position code rounds once.

Positions that cannot be told apart (no code, no mask, no bias of the scores) and queries that are zero have the same bound
at every position: it is computed at one of them.
"""

from __future__ import annotations

from typing import Any

from flint import arb, arb_mat

from certiformer.checker.run_error import RunBound, Walk
from certiformer.kernel import stream, taylor
from certiformer.kernel.balls import Box, largest, working_precision
from certiformer.kernel.points import PointNetwork
from certiformer.kernel.rounding import Format, NoBound, format_of, operations
from certiformer.kernel.rounding.operations import Rounded, exact_values, stacked
from certiformer.kernel.stream import Stream
from certiformer.kernel.taylor import Table

# Each score takes about a tenth of a millisecond, each number of the stream some microseconds.
MOST_SCORES, MOST_NUMBERS = 30_000, 100_000
_NOWHERE = Box((), ())


def sequences_run_error(network: PointNetwork, dtype: str) -> RunBound:
    """A bound of |T_run - T_real| over all sequences of full length, for runs in `dtype`; None with the reason."""
    working_precision()
    try:
        walk = _Letters(network, format_of(dtype), round_input=False)
        bound = largest([entry.upper() for entry in walk.outputs(_NOWHERE).error.entries()])
    except NoBound as problem:
        return RunBound(None, str(problem), 0)
    if not bound.is_finite():
        return RunBound(None, "a range of the transformer could not be enclosed", 0)
    return RunBound(bound, "", 1)


class _Letters(Walk):
    """The walk with every token a hull of the embedding's rows."""

    def __init__(self, network: PointNetwork, form: Format, round_input: bool):
        config = network.config
        if config["readout"]["kind"] == "all" and _positions_are_alike(config):
            network = PointNetwork({**config, "readout": {"kind": "token", "token": 0}}, network.tensors)
        super().__init__(network, form, round_input)
        self._scores = 0
        if network.tokens * config["width"] > MOST_NUMBERS:
            raise NoBound(f"the stream has more than {MOST_NUMBERS:,} numbers")

    def monomials(self) -> Table:
        """None: the letters enter as intervals."""
        return taylor.table(1, 0)

    def _embed(self, tab: Table, box: Box) -> Rounded:
        network = self.network
        rows, width = network.tensors["embed.weight"].shape
        weight = network.tensors["embed.weight"].matrix()
        hull = [_hull([weight[x, c] for x in range(rows)]) for c in range(width)]
        codes = [network.code(t) for t in range(network.tokens)]
        middle = arb_mat([[h.mid() for h in hull]] * network.tokens)
        around = arb_mat([[h.rad() for h in hull]] * network.tokens)
        letters = exact_values(Stream(tab, {0: middle}, around))
        placed = Rounded(stream.constants(tab, arb_mat(codes)), self._code_error(codes))
        data = operations.plus(self.form, letters, placed)
        return stacked(self._registers(tab), data) if network.registers else data

    def _head(self, u: Any, b: int, g: int, head: int, rows: list[int]) -> Rounded:
        attention, name = self.network.config["blocks"][b]["attention"], f"blocks.{b}.attention.groups.{g}"
        alike = attention["mask"] == "none" and attention["score_bias"] == "none" and not attention["bias"]
        alike = alike and not any(self.network.tensors[f"{name}.query"].data)
        asked = rows[:1] if alike else rows
        self._scores += len(asked) * u.shape[0]
        if self._scores > MOST_SCORES:
            raise NoBound(f"more than {MOST_SCORES:,} scores would have to be enclosed")
        result = super()._head(u, b, g, head, asked)
        return stacked(*[result] * len(rows)) if alike and len(rows) > 1 else result


def _positions_are_alike(config: dict[str, Any]) -> bool:
    layers = [block["attention"] for block in config["blocks"] if block["attention"]]
    plain = all(a["mask"] == "none" and a["score_bias"] == "none" for a in layers)
    return plain and config["code"]["kind"] == "none"


def _hull(values: list[arb]) -> arb:
    result = values[0]
    for value in values[1:]:
        result = result.union(value)
    return result
