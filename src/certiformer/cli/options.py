"""From arguments to the `Options` of a verb, through tyro: flags, then the keys of `--config`, then the defaults."""

from __future__ import annotations

import contextlib
import difflib
import io
import os
import re
from collections.abc import Sequence
from dataclasses import fields
from itertools import pairwise
from typing import Annotated, Any

import tyro
from tyro.conf import arg

from certiformer.cli.config_file import peek, read_config
from certiformer.cli.terminal import LONGEST_SENTENCE, Terminal
from certiformer.errors import BadInput

FLAG_STYLE = (tyro.conf.FlagCreatePairsOff, tyro.conf.HelptextFromCommentsOff)

Flag = Annotated[bool, arg(help_behavior_hint="")]
"""A switch that is off unless it is given."""

OptionalText = Annotated[str | None, arg(metavar="TEXT", help_behavior_hint="")]
OptionalFolder = Annotated[str | None, arg(metavar="DIR", help_behavior_hint="")]
OptionalFile = Annotated[str | None, arg(metavar="FILE.toml", help_behavior_hint="")]

_BOX_LINES = re.compile(r"[╭╮╰╯│─┌┐└┘|]+|^\++|-{3,}|\+-+|\x1b\[[0-9;]*m", re.MULTILINE)
MAX_DIGITS = 300
_UNKNOWN_FLAG = re.compile(r"Unrecognized options?: (--[^\s,=]+)")
_WRONG_VALUE = re.compile(r"Error parsing (--[\w-]+): no type matching \{None\} (INT|FLOAT) could .*?\[('[^']*')\]")
_FOOTER = re.compile(r"For full helptext.*", re.DOTALL)


def parse(module: Any, verb: str, arguments: Sequence[str], terminal: Terminal) -> Any:
    """The options of a verb (`module` has its `Options`, `SUMMARY` and `EXAMPLES`), or the exit code when there is nothing
    to run: 0 after help, 2 after a usage error."""
    _refuse_endless_numbers(arguments)
    given = [_as_value(argument) for argument in arguments]
    default = _defaults(module.Options, verb, given)
    if os.environ.get("NO_COLOR"):
        tyro._experimental_options["ansi_codes"] = False
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors):
            options = tyro.cli(
                module.Options,
                args=given,
                prog=f"certiformer {verb}",
                description=module.SUMMARY,
                default=default,
                config=FLAG_STYLE,
            )
    except SystemExit as stop:
        if stop.code:
            message = errors.getvalue()
            sentence = plain_sentence(one_line(message), [field.name for field in fields(module.Options)])
            return _usage_error(message, terminal) if sentence is None else terminal.error(sentence, 2)
        terminal.page(f"\nexamples:\n{module.EXAMPLES.rstrip()}")
        return 0
    return _stripped(options)


def _refuse_endless_numbers(arguments: Sequence[str]) -> None:
    """One sentence for a flag whose number has more digits than anything here can mean; Python would refuse it, too."""
    for flag, value in pairwise([*arguments, ""]):
        flag, sign, joined = flag.partition("=")
        digits = (joined if sign else value).lstrip("+-")
        if flag.startswith("--") and len(digits) > MAX_DIGITS and digits.isdigit():
            raise BadInput(f"{flag} is a number of {len(digits):,} digits; at most {MAX_DIGITS} are read")


def _usage_error(message: str, terminal: Terminal) -> int:
    """tyro's own words for a reader, one object for a program."""
    if terminal.json or len(message) > LONGEST_SENTENCE:  # tyro repeats a value, however long it is
        return terminal.error(one_line(message), 2)
    for line in message.rstrip("\n").split("\n"):
        terminal.complain(line)
    return 2


def plain_sentence(message: str, names: Sequence[str]) -> str | None:
    """What is wrong with a value or a flag that does not exist, in words that say nothing about Python's types; None for
    any other message. `names` are the flags that there are.

    >>> plain_sentence("Unrecognized options: Unrecognized options: --epsilon, 0.1", ["eps", "on"])
    'there is no flag --epsilon; did you mean --eps?'
    >>> plain_sentence("Error parsing --length: no type matching {None} INT could be made from ['eight']", [])
    "--length is a whole number, not 'eight'"
    """
    unknown = _UNKNOWN_FLAG.search(message)
    if unknown is not None:
        wanted = unknown[1].removeprefix("--")
        flags = [name.replace("_", "-") for name in names]
        begins = [name for name in flags if wanted.startswith(name) or name.startswith(wanted)]
        near = [*begins, *difflib.get_close_matches(wanted, flags, n=1)]
        return f"there is no flag {unknown[1]}" + (f"; did you mean --{near[0]}?" if near else "")
    wrong = _WRONG_VALUE.search(message)
    if wrong is None:
        return None
    kind = "a whole number" if wrong[2] == "INT" else "a number"
    return f"{wrong[1]} is {kind}, not {wrong[3]}"


def one_line(message: str) -> str:
    """tyro's message without its box, as one sentence.

    >>> one_line("╭─ Bad ─────╮\\n│ no --x │\\n│ ─────── │\\n│ For full helptext, run p │\\n╰────────╯")
    'Bad: no --x'
    """
    lines = [re.sub(r"\s+", " ", line).strip() for line in _BOX_LINES.sub(" ", message).splitlines()]
    title, *rest = [line for line in lines if line] or ["bad usage"]
    body = _FOOTER.sub("", " ".join(rest)).strip()
    return f"{title}: {body}" if body else title


def _as_value(argument: str) -> str:
    """Let a value begin with a minus sign (`-x1**2`, `-1`): only `-h` and words after `--` are flags."""
    return f" {argument}" if re.match(r"-[^-h]", argument) else argument


def _stripped(options: Any) -> Any:
    """Without the blanks that `_as_value` put before values."""
    for field in fields(options):
        value = getattr(options, field.name)
        if isinstance(value, str):
            object.__setattr__(options, field.name, value.strip())
    return options


def _defaults(kind: type, verb: str, given: Sequence[str]) -> Any:
    """The options of the configuration file, with tyro's mark where a value is still needed."""
    path = _config_path(given)
    if path is None:
        return tyro.MISSING_NONPROP
    values = read_config(kind, verb, path)
    for name in [name for name, value in values.items() if value is True]:
        if f"--{name.replace('_', '-')}" in given:
            del values[name]  # tyro would offer `--no-...` only, and the flag says the same
    needed = {field.name: tyro.MISSING for field in fields(kind) if not _has_default(field)}
    return kind(**{**needed, **values})


def _has_default(field: Any) -> bool:
    from dataclasses import MISSING

    return field.default is not MISSING or field.default_factory is not MISSING


def given_config(given: Sequence[str]) -> dict[str, Any]:
    """The keys of `--config` as they stand in the file, unchecked; nothing where there is no such file."""
    path = _config_path(given)
    return {} if path is None else peek(path)


def _config_path(given: Sequence[str]) -> str | None:
    for position, argument in enumerate(given):
        if argument == "--config" and position + 1 < len(given):
            return given[position + 1]
        if argument.startswith("--config="):
            return argument.partition("=")[2]
    return None
