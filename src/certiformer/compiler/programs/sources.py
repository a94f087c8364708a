"""What a user may name as a program: one of the library, a variable of a Python file, or a CSV table.

The Python of a file runs here, once, when a program is compiled; nothing that is written afterwards needs it.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from certiformer.compiler.programs.lookup_table import read_value, table_program
from certiformer.errors import BadInput
from certiformer.rasp.expression import RASPExpr
from certiformer.rasp.library import catalogue
from certiformer.rasp.sequences import SOp
from certiformer.rasp.value import Value
from certiformer.target.python_file import executed, what_happened


@dataclass(frozen=True)
class Source:
    """A program with its name, and the vocabulary and length that it brings along, if any."""

    name: str
    program: SOp
    vocab: tuple[Value, ...] | None = None
    length: int | None = None


def read_source(text: str) -> Source:
    """The program that a text names: `reverse`, `file.py:program`, or `table.csv`.

    >>> read_source("reverse").vocab
    ('a', 'b', 'c')
    """
    if text.lower().endswith(".csv"):
        program, vocab, length = table_program(text)
        return Source(Path(text).stem, program, vocab, length)
    if text.endswith(".py") or ".py:" in text:
        path, _, name = text.rpartition(":") if ".py:" in text else (text, "", "program")
        return Source(name, _from_file(Path(path), name))
    entries = catalogue()
    if text not in entries:
        near = difflib.get_close_matches(text, entries, n=1)
        hint = f"did you mean {near[0]!r}?" if near else "a file is named as file.py:program, a table as table.csv"
        raise BadInput(f"the library has no program {text!r}; {hint}")
    return Source(text, entries[text].make(), entries[text].vocab)


def read_vocab(text: str) -> list[Value]:
    """The tokens of a comma-separated list; numerals are integers.

    >>> read_vocab("a,b,12,-1")
    ['a', 'b', 12, -1]
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(parts):
        raise BadInput(f"--vocab is a list of tokens with commas between them, as in a,b,c; {text!r} has an empty one")
    if any(
        " " in part for part in parts
    ):  # tokens of an input are separated by blanks: such a token could not be typed
        raise BadInput(
            f"--vocab is a list of tokens with commas between them and no blanks in them, as in a,b,c, not {text!r}"
        )
    return [read_value(part) for part in parts]


def read_input(text: str, vocab: Sequence[Value]) -> list[Value]:
    """The tokens of an input text: separated by blanks, or, without blanks, the letters of a one-letter vocabulary.

    >>> read_input("a b 1", ["a", "b", 1]), read_input("abba", ["a", "b"]), read_input("12", [1, 2])
    (['a', 'b', 1], ['a', 'b', 'b', 'a'], [1, 2])
    """
    parts = text.replace(",", " ").split() if "," not in map(str, vocab) else text.split()
    known = {str(token): token for token in vocab}
    if len(parts) == 1 and parts[0] not in known and all(letter in known for letter in parts[0]):
        parts = list(parts[0])
    return [known.get(part, read_value(part)) for part in parts]


def _from_file(path: Path, name: str) -> SOp:
    if not name.isidentifier():
        raise BadInput(f"a program of a file is named as file.py:program, not {path}:{name}")
    if not path.is_file():
        raise BadInput(f"there is no file {str(path)!r}")
    content = vars(executed(path, "certiformer_program_"))
    found = content.get(name)
    if callable(found) and not isinstance(found, RASPExpr):
        found = _made(path, name, found)
    if isinstance(found, SOp):
        return found
    own = [n for n, value in content.items() if isinstance(value, SOp) and value.place]
    if found is None:
        raise BadInput(f"{path} has no program {name!r}" + (f"; it has {', '.join(own[:10])}" if own else ""))
    raise BadInput(f"{name!r} in {path} is a {type(found).__name__}; a program is a sequence of values (an SOp)")


def _made(path: Path, name: str, function: Any) -> Any:
    """A function without arguments may make the program."""
    try:
        return function()
    except BadInput:
        raise
    except (Exception, SystemExit) as error:
        raise BadInput(f"{name}() in {path} does not make a program: {what_happened(error, path)}") from None
