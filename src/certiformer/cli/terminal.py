"""What is printed, and where: results on standard output, everything else on standard error.

With `--json` standard output carries exactly one object, also for errors. Colours appear only on a terminal and never when
`NO_COLOR` is set. A reader that goes away (`| head -1`) ends the printing, not the run.
"""

from __future__ import annotations

import json as json_format
import os
import shlex
import shutil
import sys
import textwrap
from collections.abc import Sequence
from io import TextIOWrapper
from typing import Any, TextIO

LABEL = 11  # columns of the labels before a text
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

    def say(self, text: str = "") -> None:
        """A line of the result."""
        _write(sys.stdout, text)

    def emit(self, data: dict[str, Any]) -> None:
        """The one object of `--json`."""
        _write(sys.stdout, json_format.dumps(data, allow_nan=False))

    def note(self, text: str) -> None:
        """A remark beside the result, unless the user wants none."""
        if not self.quiet:
            _write(sys.stderr, text)

    def error(self, sentence: str, code: int) -> int:
        """Say what is wrong and return the exit code."""
        if self.json:
            self.emit({"outcome": "error", "reason": sentence})
        else:
            _write(sys.stderr, f"{self.paint('certiformer:', 'bad', sys.stderr)} {sentence}")
        return code

    def fact(self, label: str, text: str, tone: str = "label") -> None:
        """A labelled text, wrapped beside its label."""
        width = min(max(shutil.get_terminal_size((100, 24)).columns, WIDTHS[0]), WIDTHS[1]) - LABEL
        lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False) or [""]
        self.say(f"{self.paint(label.ljust(LABEL), tone)}{lines[0]}")
        for line in lines[1:]:
            self.say(" " * LABEL + line)

    def facts(self, label: str, lines: list[str]) -> None:
        """A label before several lines that are not wrapped (commands, programs)."""
        for line in lines:
            self.say(f"{self.paint(label.ljust(LABEL), 'label')}{line}")
            label = ""

    def paint(self, text: str, tone: str, stream: TextIO | None = None) -> str:
        return f"\033[{_TONES[tone]}m{text}\033[0m" if has_colour(stream or sys.stdout) else text

    def close(self) -> None:
        """Write out what is buffered, so that a closed pipe is noticed here and not when Python ends."""
        for stream in (sys.stdout, sys.stderr):
            _guarded(stream, stream.flush)


def has_colour(stream: TextIO) -> bool:
    """Whether a stream is a terminal whose user did not ask for plain text."""
    return is_screen(stream) and not os.environ.get("NO_COLOR")


def is_screen(stream: TextIO) -> bool:
    """Whether a stream is a terminal on which a line can be redrawn."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def _write(stream: TextIO, text: str) -> None:
    _guarded(stream, lambda: print(text, file=stream, flush=True))


def _guarded(stream: TextIO, act: Any) -> None:
    """Do `act`; when the reader of the stream is gone, send the rest nowhere."""
    try:
        act()
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
