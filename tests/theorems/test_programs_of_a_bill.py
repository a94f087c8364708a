"""The family of tables: compiled, within its bill, different; and the count of stored numbers."""

from __future__ import annotations

from random import Random

import pytest

from certiformer import rasp
from certiformer.compiler.driver import compile_program
from certiformer.compiler.programs.bill import bill_of
from certiformer.expressivity.programs_of_a_bill import needed_bits, weights


def table(symbols: int, seed: int) -> tuple[rasp.SOp, dict[tuple[str, str], str]]:
    random = Random(seed)
    names = [f"s{k}" for k in range(symbols)]
    entries = {(a, b): random.choice(names) for a in names for b in names}
    before = rasp.Aggregate(
        rasp.Select(rasp.indices, rasp.indices - 1, rasp.Comparison.EQ), rasp.tokens, default=names[0]
    )
    return rasp.SequenceMap(lambda here, there: entries[here, there], rasp.tokens, before), entries


@pytest.mark.parametrize("symbols", [2, 3, 5, 8])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_tables_stay_within_the_bill(symbols, seed):
    program, entries = table(symbols, seed)
    compiled = compile_program(program, {f"s{k}" for k in range(symbols)}, 6)
    made = bill_of(compiled.config, compiled.circuit)
    assert made.layers <= 1 and made.heads <= 1 and made.width <= 7 and made.units <= symbols**2 - 1
    assert made.parameters <= weights(symbols, 6, layers=1, width=7, heads=1, units=symbols**2 - 1)
    for pair in entries:
        assert rasp.evaluate(program, [pair[1], pair[0]])[1] == entries[pair]


def test_the_family_is_counted_and_limited_by_every_entry_of_the_bill():
    """Negative controls: too few units for the table, no head to look back, a stream that is too narrow."""
    bill = {"layers": 1, "width": 7, "heads": 1, "units": 63}
    assert needed_bits(8, 6, **bill) == 64 * 3
    assert needed_bits(8, 6, **{**bill, "units": 62}) < 64 * 3
    assert needed_bits(4, 6, **bill) == 16 * 2
    for change in ({"heads": 0}, {"layers": 0}, {"width": 6}):
        assert needed_bits(8, 6, **{**bill, **change}) == 0
    assert needed_bits(8, 1, **bill) == 0
