"""From the text of a formula to its tokens: numbers, names, operators, each with its column.

Only ASCII is read; a look-alike such as the minus sign U+2212 is refused with the character to type instead.
Standard library only.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from certiformer.errors import BadInput

MAX_TEXT = 2_000

_TOKEN = re.compile(
    r"(?P<blank>[ \t\r\n]+)"
    r"|(?P<number>([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<operator>\*\*|<=|>=|==|!=|[-+*/^()\[\],<>])"
)
_ASCII_SPELLING = {
    "−": "-", "–": "-", "×": "*", "·": "*", "⋅": "*", "÷": "/", "π": "pi", "≤": "<=", "≥": ">=", "√": "sqrt",
    "²": "**2", "³": "**3", "=": "<= or >=", ";": ",", "{": "(", "}": ")", "|": "abs",
}  # fmt: skip


@dataclass(frozen=True)
class Token:
    """One token of a text: `kind` is number, name, operator or end; `start` and `stop` are positions in the text."""

    kind: str
    text: str
    start: int
    stop: int

    @property
    def column(self) -> int:
        return self.start + 1

    def __str__(self) -> str:
        return "the end" if self.kind == "end" else quoted(self.text)


def tokenize(text: object, what: str) -> list[Token]:
    """The tokens of `text`, closed by one of kind `end`; `what` names the text in error sentences."""
    if not isinstance(text, str):
        raise BadInput(f"{what} must be text, not {type(text).__name__}")
    if len(text) > MAX_TEXT:
        raise BadInput(f"{what} has {len(text)} characters; at most {MAX_TEXT} are read")
    tokens, position = [], 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise _stray_character(text, position, what)
        if match.lastgroup != "blank":
            tokens.append(Token(_kind(match), match.group(), position, match.end()))
        position = match.end()
    if not tokens:
        raise BadInput(f"{what} is empty")
    return [*tokens, Token("end", "", len(text), len(text))]


def quoted(text: str) -> str:
    """`text` for an error sentence: escaped, and cut if it is long."""
    return repr(text) if len(text) <= 40 else repr(text[:37] + "...")


def _kind(match: re.Match[str]) -> str:
    return next(kind for kind in ("number", "name", "operator") if match.group(kind) is not None)


def _stray_character(text: str, position: int, what: str) -> BadInput:
    character = text[position]
    spelling = _ASCII_SPELLING.get(character)
    advice = f"; write {spelling} instead" if spelling else ""
    return BadInput(f"{what} may not contain the character {ascii(character)} at column {position + 1}{advice}")
