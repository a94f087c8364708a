"""The page on the language shows real output and states the real limits."""

from __future__ import annotations

import doctest
from pathlib import Path

from certiformer import rasp
from certiformer.rasp.reasons import MAX_TRIED
from certiformer.rasp.value import MAX_BITS
from certiformer.rasp.values import MAX_TABLE, MAX_VALUES

PAGE = Path(__file__).parents[2] / "docs" / "rasp.md"


def test_the_examples_of_the_page_run():
    failed, attempted = doctest.testfile(str(PAGE), module_relative=False)
    assert attempted >= 20 and failed == 0


def test_the_page_states_the_limits_and_names_the_expressions():
    text = PAGE.read_text(encoding="utf-8")
    for limit in (MAX_BITS, MAX_VALUES, MAX_TABLE, MAX_TRIED):
        assert f"{limit:,}" in text
    kinds = [
        name
        for name in rasp.__all__
        if name[0].isupper()
        and isinstance(getattr(rasp, name), type)
        and issubclass(getattr(rasp, name), rasp.RASPExpr)
    ]
    wanted = set(kinds) - {"RASPExpr", "Selector", "TokensType", "IndicesType", "LengthType"}
    assert [name for name in sorted(wanted) if name not in text] == []
