"""Lists of numbers on the command line: `1 2 4`, `1,2,4`, and ranges with both ends, `1:16` and `1:16:5`."""

from __future__ import annotations

import re
import typing
from collections.abc import Collection, Sequence
from typing import Any

from certiformer.errors import BadInput

_RANGE = re.compile(r"(-?[0-9]{1,18}):(-?[0-9]{1,18})(?::([0-9]{1,18}))?")
LONGEST = 10_000  # numbers of one range


def is_number_list(kind: Any) -> bool:
    """Whether a field holds numbers, any number of them.

    >>> is_number_list(tuple[int, ...]), is_number_list(tuple[str, ...]), is_number_list(int)
    (True, False, False)
    """
    return typing.get_origin(kind) is tuple and typing.get_args(kind) in ((int, ...), (float, ...))


def spread(text: str) -> list[str]:
    """The numbers of one word, as they would be written one by one.

    >>> spread("1:4"), spread("2:9:3"), spread("1,2,inf"), spread("0.5")
    (['1', '2', '3', '4'], ['2', '5', '8'], ['1', '2', 'inf'], ['0.5'])
    >>> spread("4:1")
    Traceback (most recent call last):
    ...
    certiformer.errors.BadInput: the range '4:1' is empty; write the smaller number first
    """
    numbers: list[str] = []
    for part in text.strip().split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            numbers.append(part.strip())
            continue
        first, last, step = int(match[1]), int(match[2]), int(match[3] or 1)
        if last < first or step < 1:
            raise BadInput(f"the range {part!r} is empty; write the smaller number first")
        if (last - first) // step >= LONGEST:
            raise BadInput(f"the range {part!r} has more than {LONGEST:,} numbers")
        numbers += map(str, range(first, last + 1, step))
    return numbers


def spread_arguments(arguments: Sequence[str], lists: Collection[str]) -> list[str]:
    """The arguments with every list of numbers written out; `lists` are the names of the fields that hold one.

    >>> spread_arguments(["--mh", "1:3", "8", "--out", "1:3", "--mh=2:3"], ["mh"])
    ['--mh', '1', '2', '3', '8', '--out', '1:3', '--mh', '2', '3']
    """
    spelled: list[str] = []
    inside = False
    for argument in arguments:
        if argument.startswith("--"):
            flag, sign, value = argument.partition("=")
            inside = flag[2:].replace("-", "_") in lists
            spelled += [flag, *spread(value)] if inside and sign else [argument]
        else:
            spelled += spread(argument) if inside else [argument]
    return spelled
