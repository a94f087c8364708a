"""What is printed, and where: results on standard output, everything else on standard error.

With `--json` standard output carries exactly one object, also for errors. Colours appear only on a terminal and never when
`NO_COLOR` is set. A reader that goes away (`| head -1`) ends the printing, not the run.

Much of what is printed comes from files that somebody else may have written: names, tokens, formulas, reasons. Every text
passes `visible` before it is written, and colours and line breaks are added after it, here alone; so nothing that was read
can move the cursor, change a colour, turn the direction of writing, or begin a line that looks like one of ours.
"""

from __future__ import annotations

import json as json_format
import os
import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Sequence
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.table import Table

LABEL = 11  # columns of the labels before a text
LONGEST_SENTENCE = 2_000
NARROW = 80  # columns below which a table that does not fit as it is stands row under row
_NUMBER = re.compile(r"[-−+]?[\d.]|[–-]?$|inf$|nan$")  # how a cell with a number begins, or an empty one
WIDTHS = (60, 120)  # texts are wrapped at the width of the terminal, within these
_TONES = {"good": "32;1", "weak": "33;1", "bad": "31;1", "label": "2", "strong": "1"}


class Terminal:
    """The two output streams of one command, and the command itself as it was typed."""

    def __init__(self, arguments: Sequence[str] = ()):
        # Before the flags are parsed, so that a mistake in them is answered as the user wishes, too.
        self.json, self.quiet = "--json" in arguments, "--quiet" in arguments
        self.command = shlex.join(["certiformer", *arguments])
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):
                # A formula or a path may hold characters that the locale cannot write.
                stream.reconfigure(errors="backslashreplace")

    def say(self, text: str = "", tone: str | None = None) -> None:
        """One line of the result."""
        self._put(sys.stdout, [(visible(text), tone)])

    def page(self, text: str) -> None:
        """Several lines of our own, such as examples: never a text that was read from a file of somebody."""
        for line in text.split("\n"):
            self.say(line)

    def emit(self, data: dict[str, Any]) -> None:
        """The one object of `--json`: ASCII, and DEL is the one control character that JSON itself would let through."""
        self.write(sys.stdout, json_format.dumps(data, allow_nan=False).replace("\x7f", "\\u007f"))

    def note(self, text: str) -> None:
        """A remark beside the result, unless the user wants none."""
        if not self.quiet:
            self.complain(text)

    def complain(self, text: str) -> None:
        """One line on standard error."""
        self._put(sys.stderr, [(visible(text), None)])

    def error(self, sentence: str, code: int) -> int:
        """Say what is wrong and return the exit code."""
        sentence = shortened(sentence)
        if self.json:
            self.emit({"outcome": "error", "reason": sentence})
        else:
            self._put(sys.stderr, [("certiformer:", "bad"), (f" {visible(sentence)}", None)])
        return code

    def fact(self, label: str, text: str, tone: str = "label") -> None:
        """A labelled text, wrapped beside its label; a word that is too long is cut, lest it begins a line of its own."""
        lines = textwrap.wrap(visible(text), text_width(), break_on_hyphens=False) or [""]
        for line in lines:
            self._labelled(label, line, tone)
            label = ""

    def facts(self, label: str, lines: Sequence[str]) -> None:
        """A label before several commands, which stay whole so that they can be copied."""
        for line in lines:
            self._labelled(label, visible(line), "label")
            label = ""

    def listing(self, label: str, lines: Sequence[str]) -> None:
        """A label before several lines of a program; what does not fit goes on in the next one, indented."""
        for line in lines:
            shown, width = visible(line), text_width()
            for start in range(0, max(len(shown), 1), width):
                self._labelled(label, shown[start : start + width], "label")
                label = ""

    def entry(self, name: str, width: int, text: str) -> None:
        """A name in a column of its own, and what it stands for."""
        self._put(sys.stdout, [("  ", None), (visible(name).ljust(width), "strong"), (visible(text), None)])

    def rows(self, headings: Sequence[str], rows: Sequence[Sequence[str]], texts: Sequence[int] = ()) -> None:
        """A table of plain cells. The columns `texts` stand to the left and are broken between words; no other is,
        and those after the first whose cells all look like numbers stand to the right."""
        from rich.box import SIMPLE_HEAD
        from rich.table import Table

        table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for place, name in enumerate(headings):
            cells = [row[place] for row in rows]
            number = place > 0 and place not in texts and all(_NUMBER.match(cell) for cell in cells)
            table.add_column(visible(name), justify="right" if number else "left", no_wrap=place not in texts)
        for row in rows:
            table.add_row(*(_visible_cell(cell) for cell in row))
        self.table(table)

    def table(self, table: Table) -> None:
        """A table of rich, whose cells are made visible first.

        A column with `no_wrap` is never broken or clipped: where the columns do not fit, the table stands row under row,
        below `NARROW` columns also where a text would have to be broken.
        """
        from io import StringIO

        from rich.cells import cell_len
        from rich.console import Console
        from rich.measure import Measurement

        table.collapse_padding = True  # two blanks between columns
        for column in table.columns:
            column._cells = [_visible_cell(cell) for cell in column._cells]
            if column.no_wrap:
                column.min_width = max(cell_len(str(cell)) for cell in (column.header, *column._cells))
        coloured, buffer = has_colour(sys.stdout), StringIO()
        console = Console(
            file=buffer,
            width=text_width() + LABEL,
            force_terminal=coloured,
            color_system="standard" if coloured else None,
            no_color=not coloured,
        )
        needed = Measurement.get(console, console.options.update(width=100_000), table)
        if needed.minimum > console.width or needed.maximum > console.width < NARROW:
            self._stacked(table)
            return
        console.print(table)
        for line in buffer.getvalue().rstrip().split("\n"):
            self.write(sys.stdout, line.rstrip())

    def _stacked(self, table: Table) -> None:
        """Every row as a heading and the cells under it, each beside the name of its column."""
        names = [str(column.header) for column in table.columns]
        width = max(map(len, names)) + 2
        for row in zip(*(column._cells for column in table.columns), strict=True):
            self.say(f"{names[0]} {row[0]}")
            for name, cell in zip(names[1:], row[1:], strict=True):
                lines = textwrap.wrap(str(cell), max(text_width() + LABEL - width - 2, 20)) or [""]
                for line in lines if str(cell) else ():
                    self.say(f"  {name.ljust(width)}{line}")
                    name = ""

    def _labelled(self, label: str, line: str, tone: str) -> None:
        self._put(sys.stdout, [(label.ljust(LABEL), tone), (line, None)])

    def _put(self, stream: TextIO, parts: Sequence[tuple[str, str | None]]) -> None:
        """One line of visible texts, each in its tone."""
        coloured = has_colour(stream)
        painted = [f"\033[{_TONES[tone]}m{text}\033[0m" if tone and coloured else text for text, tone in parts]
        self.write(stream, "".join(painted))

    def write(self, stream: TextIO, line: str) -> None:
        """Where every line goes, made visible and painted."""
        _guarded(stream, lambda: print(line, file=stream, flush=True))

    def close(self) -> None:
        """Write out what is buffered, so that a closed pipe is noticed here and not when Python ends."""
        for stream in (sys.stdout, sys.stderr):
            _guarded(stream, stream.flush)


def visible(text: str) -> str:
    """The text as one line of printable characters: control characters, line breaks, invisible and direction marks are
    spelled out.

    >>> visible("a\\x1b[32mb\\nc\\u202ed")
    'a\\\\x1b[32mb\\\\nc\\\\u202ed'
    """
    if text.isprintable():
        return text
    return "".join(mark if mark.isprintable() else mark.encode("unicode_escape").decode("ascii") for mark in text)


def text_width() -> int:
    """The columns beside a label."""
    return min(max(shutil.get_terminal_size((100, 24)).columns, WIDTHS[0]), WIDTHS[1]) - LABEL


def _visible_cell(cell: Any) -> Any:
    """A cell of a table: plain text, which is never read as markup, or rich's text with a style."""
    from rich.text import Text

    if isinstance(cell, Text):
        cell.plain = visible(cell.plain)
        return cell
    return Text(visible(str(cell)))


def has_colour(stream: TextIO) -> bool:
    """Whether a stream is a terminal whose user did not ask for plain text."""
    return is_screen(stream) and not os.environ.get("NO_COLOR")


def is_screen(stream: TextIO) -> bool:
    """Whether a stream is a terminal on which a line can be redrawn."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def _guarded(stream: TextIO, act: Any) -> None:
    """Do `act`; when the reader of the stream is gone, send the rest nowhere."""
    try:
        act()
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def shortened(sentence: str) -> str:
    """The sentence without the middle of what is too long to be read: a word of the input that it repeats, or itself.

    >>> shortened("no theorem is called " + "x" * 5000)[:60]
    'no theorem is called xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'
    """
    sentence = re.sub(r"\S{300,}", lambda word: _ends(word[0], 40), sentence)
    return sentence if len(sentence) <= LONGEST_SENTENCE else _ends(sentence, LONGEST_SENTENCE // 2)


def _ends(text: str, kept: int) -> str:
    return f"{text[:kept]}...({len(text) - 2 * kept:,} more)...{text[-kept:]}"
