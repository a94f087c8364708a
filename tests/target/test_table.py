"""Finite targets: exact rows, one canonical file, and a reader that does not guess."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from certiformer.errors import BadInput
from certiformer.target import (
    CountMap,
    InductionMap,
    SortMap,
    Table,
    WidthMap,
    any_target_from_text,
    any_target_to_text,
)


def table(*rows, kind="continuous"):
    exact = tuple((tuple(map(Fraction, x)), tuple(map(Fraction, y))) for x, y in rows)
    return Table("data.csv", kind, exact)


TABLE = table((["0.1", "-3"], ["1/3"]), (["1e-20", "0"], ["7"]))


@pytest.mark.parametrize("target", [TABLE, SortMap("sort", 3, 4), table(([1], [0]), ([0], [1]), kind="ids")])
def test_the_file_gives_back_the_target(target):
    assert any_target_from_text(any_target_to_text(target)) == target
    assert any_target_from_text(any_target_to_text(target).encode()) == target


def test_sentences_name_the_rows():
    assert TABLE.sentence("1e-6").startswith(
        "For every one of the 2 rows of the table, the transformer's output differs"
    )
    assert "2^3 = 8 sequences of 3 letters" in SortMap("s", 2, 3).sentence("0.1")


def test_all_sequences_are_listed_with_their_sorted_letters():
    rows = dict(SortMap("sort", 2, 2).rows)
    assert len(rows) == 4
    assert rows[(Fraction(1), Fraction(0))] == (1, 0, 0, 1)  # sorted: 0 then 1
    assert SortMap("sort", 2, 2).find((Fraction(1), Fraction(2))) is None
    assert SortMap("sort", 2, 2).find((Fraction(1, 2), Fraction(0))) is None


@pytest.mark.parametrize(
    "change",
    [
        {"rows": [[["1/10"], ["2/4"]]]},  # not reduced
        {"rows": [[["0.1"], ["2"]]]},  # another spelling of 1/10
        {"rows": [[["nan"], ["2"]]]},
        {"rows": [[["1/0"], ["2"]]]},
        {"rows": [[[0.1], ["2"]]]},  # a float means what it prints as to nobody
        {"rows": [[["1e5"], ["2"]]]},
        {"rows": [[[str(2**5000)], ["2"]]]},
        {"rows": [[["1"], ["2"]], [["1"], ["3"]]]},  # the same inputs twice
        {"rows": [[["1"], ["2"]], [["1", "2"], ["3"]]]},
        {"rows": []},
        {"rows": [[[], ["2"]]]},
        {"kind": "boxes"},
        {"kind": "ids", "rows": [[["1/2"], ["2"]]]},
        {"norm": "l2"},
        {"extra": 1},
        {"source": None},
    ],
)
def test_anything_else_is_refused(change):
    data = json.loads(any_target_to_text(table((["1"], ["2"])))) | change
    text = json.dumps(data, sort_keys=True, separators=(",", ":")) + "\n"
    with pytest.raises(BadInput):
        any_target_from_text(text)


def test_only_the_canonical_bytes_are_read():
    text = any_target_to_text(TABLE)
    for changed in (text.replace(",", ", ", 1), text[:-1], text.replace('"norm":"max"', '"norm":"max","norm":"max"')):
        with pytest.raises(BadInput):
            any_target_from_text(changed)


@pytest.mark.parametrize("sizes", [(0, 3), (3, 0), (True, 3), (10_001, 1), (10_000, 10_000)])
def test_impossible_sizes_of_sorting_are_refused(sizes):
    with pytest.raises(BadInput):
        SortMap("sort", *sizes)


def test_formulas_are_still_read_as_formulas():
    with pytest.raises(BadInput):
        any_target_from_text('{"format":"certiformer-target-1"}')


MAPS = [SortMap("s", 3, 4), CountMap("c", 3, 4, "count"), CountMap("p", 2, 4, "parity"), CountMap("m", 2, 5, "majority"),
        WidthMap("h", 2, 3), InductionMap("i", 3, 3)]  # fmt: skip


@pytest.mark.parametrize("target", MAPS, ids=lambda target: target.source)
def test_maps_on_sequences_have_one_file_and_list_their_rows(target):
    assert any_target_from_text(any_target_to_text(target)) == target
    rows = dict(target.rows)
    assert len(rows) == target.count == target.alphabet**target.tokens
    assert all(len(outputs) == target.outputs and target.find(inputs) == outputs for inputs, outputs in rows.items())
    assert f"{target.alphabet}^{target.tokens}" in target.sentence("0.1")
    for change in (
        {"tokens": 0},
        {"tokens": "4"},
        {"alphabet": True},
        {"what": "product"},
        {"extra": 1},
        {"norm": "l2"},
    ):
        text = json.dumps(json.loads(any_target_to_text(target)) | change, sort_keys=True, separators=(",", ":")) + "\n"
        with pytest.raises(BadInput):
            any_target_from_text(text)


def test_maps_mean_what_they_say():
    assert dict(CountMap("m", 2, 2, "majority").rows) == {
        (0, 0): (1, 0), (0, 1): (0, 0), (1, 0): (0, 0), (1, 1): (0, 1),
    }  # fmt: skip
    assert CountMap("p", 3, 5, "parity").answer([1, 2, 1, 0, 1]) == [1]
    assert WidthMap("h", 3, 4).answer([2, 2, 0, 2]) == [3, 3, 1, 3]
    assert InductionMap("i", 2, 3).answer([0, 0, 1]) == [0, 0, 1, 0, 0, 0]


def test_a_format_that_is_no_word_is_no_finite_target():
    with pytest.raises(BadInput):
        any_target_from_text('{"format":["certiformer-sort-1"]}')
