"""Programs as text: what is a part of the language, and that nothing else of Python is."""

from __future__ import annotations

import pytest

from certiformer.errors import BadInput
from certiformer.rasp.text import parse_program

FOREIGN = (
    "__import__('os')", "tokens.__class__", "[x for x in tokens]", "lambda: 1", "a = tokens\na.x = 1", "f'{tokens}'",
    "(a := tokens)", "tokens if 1 else tokens", "Select(tokens, tokens, EQ)(1)", "Aggregate(*[1])", "tokens ** 2",
    "import os", "tokens = indices", "tokens[0]", "'%9999999999s' % tokens", "\x00", "-" * 3000 + "tokens", "1e999 * tokens",
    "tokens\n" * 101, "", "1 + 1", "Select(tokens, tokens, EQ)", "b'a' == tokens", "1j * tokens",
)  # fmt: skip


@pytest.mark.parametrize("text", FOREIGN, ids=lambda text: repr(text[:24]))
def test_what_is_no_part_of_the_language_is_refused(text):
    with pytest.raises(BadInput):
        parse_program(text)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("tokens % 2", [1, 0, 1]),
        ("a = tokens + 1\nb = a * a\nb // 2", [2, 4, 8]),
        ("Aggregate(Select(indices, length - indices - 1, EQ), tokens)", [3, 2, 1]),
        ("SelectorWidth(Select(tokens, 2, LEQ) & ~Select(tokens, 1, EQ))", [1, 1, 1]),
    ],
)
def test_programs_of_the_language(text, answer):
    assert parse_program(text)([1, 2, 3]) == answer
