"""circuit.json is written in one way and read strictly."""

from __future__ import annotations

import json

import pytest

from certiformer.compiler.driver import compile_program
from certiformer.errors import BadInput
from certiformer.kernel.situations.rasp.circuit import Circuit, as_rational, rational
from certiformer.rasp.library import catalogue

TEXT = compile_program(catalogue()["reverse"].make(), {"a", "b"}, 4).circuit.to_text()


def changed(path: list, value: object) -> str:
    data = json.loads(TEXT)
    place = data
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True) + "\n"


def test_a_circuit_survives_the_file():
    circuit = Circuit.from_text(TEXT)
    assert circuit.to_text() == TEXT
    assert Circuit.from_text(TEXT.encode()) == circuit
    assert circuit.cells and circuit.heads and circuit.units


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["format"], "certiformer-circuit-3"),
        (["causal"], 0),
        (["cells", 0, "coordinate"], "1"),
        (["cells", 0, "node"], True),
        (["cells", 0, "at_start"], 0.5),
        (["cells", 0, "at_start"], "2/4"),
        (["cells", 0, "at_start"], "1/0"),
        (["heads", 0, "queries"], [0.5]),
        (["units", 0, "first"], None),
        (["extended"], None),
        (["more"], 1),
        (["cells", 0, "more"], 1),
        (["cells", 0, "name"], None),
        (["cells", 0, "at_start"], None),
        (["cells", 0, "at_start"], True),
        (["cells", 0, "at_start"], "1/1"),
        (["cells", 0, "at_start"], "+1/3"),
        (["cells", 0, "at_start"], "1/" + "3" * 1400),
        (["cells", 0, "feature"], [None]),
        (["cells", 0, "feature"], 3),
        (["cells", 0, "node"], -1),
        (["cells", 0, "coordinate"], -1),
        (["cells", 0, "written"], [0, "nowhere"]),
        (["cells", 0, "written"], [0]),
        (["cells", 0, "cleared"], "ffn"),
        (["cells", 0, "or_more"], 1),
        (["cells"], {}),
        (["heads", 0, "kind"], "guess"),
        (["heads", 0, "keys"], [10_000]),
        (["heads", 0, "writes"], [-1]),
        (["units", 0, "kind"], "guess"),
        (["units", 0, "cells"], [10_000]),
        (["identities"], [{"node": 0, "offset": 0, "terms": [[1]]}]),
        (["identities"], [{"node": 0, "offset": None, "terms": []}]),
        (["output"], None),
        (["output", "kind"], "guess"),
        (["output", "reads"], [10_000]),
        (["lines"], {"0": 1}),
        (["lemmas"], {}),
        (["lemmas", 0], "same"),
        (["lemmas", 0], ["same"]),
        (["lemmas", 0], [3, 3]),
        (["lemmas", 0, 1], -1),
        (["lemmas", 0, 1], True),
    ],
)
def test_a_file_that_we_would_not_write_is_refused(path, value):
    with pytest.raises(BadInput, match="circuit file"):
        Circuit.from_text(changed(path, value))


def test_another_spelling_is_refused():
    with pytest.raises(BadInput, match="canonical"):
        Circuit.from_text(TEXT.replace(",", ", ", 1))
    with pytest.raises(BadInput, match="structure"):
        Circuit.from_text(TEXT[:-10])


def test_numbers_are_written_in_one_way():
    assert [as_rational(rational(x)) for x in (3, "-1/3")] == [3, "-1/3"]


def test_a_file_of_an_earlier_version_says_what_to_do():
    with pytest.raises(BadInput, match="compile the program again"):
        Circuit.from_text(changed(["format"], "certiformer-circuit-1"))
