"""The fixed sections of a theorem module's docstring.

The docstring opens with a title line. After it, a section begins at a line that holds nothing but its name (optionally
as a Markdown heading, between asterisks, with a colon, or underlined), or at a line that begins with its name and a
colon. Everything up to the next section belongs to it; text before the first section is the introduction.
"""

from __future__ import annotations

import inspect
import re

SECTIONS = (
    "Statement",
    "Source",
    "Differs from the source in",
    "Assumptions",
    "Certified",
    "Not certified",
    "Example",
    "Tests",
)
"""The required sections, in the order in which they must stand."""

OPTIONAL_SECTIONS = ("Proof", "Implementation notes")
"""Sections that may stand anywhere between the required ones."""

INTRODUCTION = "Introduction"

_CANONICAL = {name.lower(): name for name in SECTIONS + OPTIONAL_SECTIONS}
_NAMES = "|".join(re.escape(name) for name in sorted(_CANONICAL, key=len, reverse=True))
# "Statement", "## Statement", "**Statement.**", "Statement:" alone on the line, or "Statement: text" run in.
_HEADING = re.compile(rf"^(?:#+\s*|\*+)?({_NAMES})(?:[.:]?\*+[.:]?|[.:])?\s*$", re.IGNORECASE)
_RUN_IN = re.compile(rf"^(?:\*+)?({_NAMES})(?::\*+|\*+:|:)\s+(\S.*)$", re.IGNORECASE)
_UNDERLINE = re.compile(r"^(-{3,}|={3,}|~{3,})$")


def title_of(docstring: str) -> str:
    """The first line of a docstring, without its final period.

    >>> title_of("One head looks up a table. \\n\\nMore words.")
    'One head looks up a table'
    """
    return inspect.cleandoc(docstring).partition("\n")[0].strip().rstrip(".")


def parse_sections(docstring: str) -> dict[str, str]:
    """The sections of a theorem's docstring, in the order in which they stand, each as dedented text.

    >>> parse_sections('''Ones add up.
    ...
    ... Statement:
    ...     1 + 1 = 2.
    ...
    ... Source: classical.
    ... ''')
    {'Statement': '1 + 1 = 2.', 'Source': 'classical.'}
    """
    lines = inspect.cleandoc(docstring).split("\n")[1:]
    collected: dict[str, list[str]] = {INTRODUCTION: []}
    current = INTRODUCTION
    for previous, line in zip(["", *lines], lines, strict=False):
        if heading := _HEADING.match(line):
            current = _open(collected, heading.group(1))
        elif run_in := _RUN_IN.match(line):
            current = _open(collected, run_in.group(1))
            collected[current].append(run_in.group(2))
        elif not (_UNDERLINE.match(line) and _HEADING.match(previous)):
            collected[current].append(line)
    texts = {name: inspect.cleandoc("\n".join(body)).strip() for name, body in collected.items()}
    if not texts[INTRODUCTION]:
        del texts[INTRODUCTION]
    return texts


def _open(collected: dict[str, list[str]], heading: str) -> str:
    name = _CANONICAL[heading.lower()]
    if name in collected:
        raise ValueError(f"the docstring has the section {name!r} twice")
    collected[name] = []
    return name


def section_faults(docstring: str) -> list[str]:
    """Everything that is wrong with the sections of a theorem's docstring, as sentences; empty when nothing is.

    >>> section_faults("Ones add up.\\n\\nSource: classical.\\n\\nStatement: 1 + 1 = 2.")[0]
    "the section 'Differs from the source in' is missing"
    """
    try:
        sections = parse_sections(docstring)
    except ValueError as twice:
        return [str(twice)]
    faults = [f"the section {name!r} is missing" for name in SECTIONS if name not in sections]
    faults += [f"the section {name!r} is empty" for name, text in sections.items() if not text]
    present = [name for name in sections if name in SECTIONS]
    if present != [name for name in SECTIONS if name in present]:
        faults.append(f"the sections stand in the order {', '.join(present)}; expected {', '.join(SECTIONS)}")
    return faults
