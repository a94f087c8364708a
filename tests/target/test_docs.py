"""The page on targets shows real output, and names every function of the grammar."""

from __future__ import annotations

import doctest
from pathlib import Path

from certiformer.kernel.programs import MAX_POWER
from certiformer.target.functions import FUNCTIONS
from certiformer.target.parse import MAX_NESTING
from certiformer.target.tokens import MAX_TEXT

PAGE = Path(__file__).parents[2] / "docs" / "targets.md"


def test_the_examples_of_the_page_run():
    failed, attempted = doctest.testfile(str(PAGE), module_relative=False)
    assert attempted >= 10 and failed == 0


def test_the_page_names_every_function_and_limit():
    text = PAGE.read_text(encoding="utf-8")
    words = set(text.replace("`", " ").split())
    assert {*FUNCTIONS, "min", "max", "pi"} - words - {"pi"} == set()
    for limit in (MAX_POWER, MAX_NESTING, MAX_TEXT):
        assert f"{limit:,}" in text
