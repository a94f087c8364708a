"""All theorems of the package, found by reading its source text.

No theorem module is imported: the module-level literal `THEOREM = {...}` is evaluated from the syntax tree, so listing
a hundred theorems costs no JAX. The price is that the record must be a literal: names, arithmetic and f-strings inside
it are refused. An axiom, which a certificate may load, thus needs none of this package.

The status is computed, never typed:

- *stated*: there is a record and a docstring and nothing else;
- *implemented*: the module holds code besides the record;
- *tested*: in a source checkout, the test file `tests/theorems/test_NAME.py` compares it with examples;
- *checked*: a rule of the same name stands in `axioms`: where a certificate uses the theorem, `check` verifies the
  assumptions that are marked so and recomputes the constants.

No status speaks of the proof: it is written in the docstring, for people to read.

The docstring of a theorem module has fixed sections. It opens with a title line. After it, a section begins at a line
that holds nothing but its name (optionally as a Markdown heading, between asterisks, with a colon, or underlined), or
at a line that begins with its name and a colon. Everything up to the next section belongs to it; text before the first
section is the introduction.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import re
from dataclasses import dataclass
from pathlib import Path

from certiformer.errors import BadInput
from certiformer.theorem.record import Assumption, Theorem

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


PACKAGE = Path(__file__).resolve().parent.parent
STATUSES = ("stated", "implemented", "tested", "checked")


@dataclass(frozen=True)
class Entry:
    """A theorem with its text and its place: the record, the module's docstring, its dotted path, file and status."""

    record: Theorem
    docstring: str
    module: str
    path: Path
    status: str

    @property
    def sections(self) -> dict[str, str]:
        """The docstring's sections by name, in the order in which they stand."""
        return parse_sections(self.docstring)


def all_theorems(package: Path = PACKAGE) -> list[Entry]:
    """Every theorem of the package, sorted by id."""
    entries = [entry for path in sorted(package.rglob("*.py")) if (entry := _read(path, package)) is not None]
    return sorted(entries, key=lambda entry: entry.record.id)


def find(identifier: str, package: Path = PACKAGE) -> Entry:
    """The theorem with this id, or else the only one whose id ends in it (`lookup` for `construct.lookup`).

    **Raises:** `BadInput` when none or several match; the message names the nearest ids.
    """
    entries = all_theorems(package)
    wanted = identifier.strip().removeprefix(f"{package.name}.")
    exact = [e for e in entries if e.record.id == wanted]
    whole = [e for e in entries if e.record.id.endswith(f".{wanted}")]
    suffix = [e for e in entries if wanted and e.record.id.endswith(wanted)]
    matches = next((found for found in (exact, whole, suffix) if found), [])
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise BadInput(f"several theorems end in {identifier!r}: {', '.join(e.record.id for e in matches)}")
    raise BadInput(f"no theorem is called {identifier!r}; {_hint(wanted, entries)}")


def _hint(wanted: str, entries: list[Entry]) -> str:
    by_name = {entry.record.name: entry.record.id for entry in entries}
    by_id = {entry.record.id: entry.record.id for entry in entries}
    # Half a name with a slip in it is nearest to the beginning of the name as long as it.
    by_beginning = {name[: len(wanted)]: identifier for name, identifier in by_name.items() if wanted}
    for known, cutoff in ((by_name | by_id, 0.5), (by_beginning, 0.7)):
        near = difflib.get_close_matches(wanted, known, n=1, cutoff=cutoff)
        if near:
            return f"did you mean {known[near[0]]!r}?"
    return "`certiformer theorem` lists them all"


def _read(path: Path, package: Path) -> Entry | None:
    text = path.read_text(encoding="utf-8")
    if "THEOREM" not in text:
        return None
    tree = ast.parse(text, filename=str(path))
    literals = [node.value for node in tree.body if isinstance(node, (ast.Assign, ast.AnnAssign)) and _is_record(node)]
    if not literals:
        return None
    record = _record(literals[0], path)
    below = path.relative_to(package).with_suffix("").parts
    dotted = ".".join(below[:-1] if below[-1] == "__init__" else below)
    if record.id != dotted:
        raise ValueError(f"{path}: the theorem's id is {record.id!r}, but its module is {dotted!r}")
    docstring = ast.get_docstring(tree, clean=False) or ""
    return Entry(record, docstring, f"{package.name}.{dotted}", path, _status(record, tree, package))


def _is_record(node: ast.Assign | ast.AnnAssign) -> bool:
    """Whether an assignment is `THEOREM = ...` or `THEOREM: dict = ...`."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return any(isinstance(target, ast.Name) and target.id == "THEOREM" for target in targets)


def _record(node: ast.expr | None, path: Path) -> Theorem:
    """The record that a literal writes down: its fields by name, every assumption as (name, text, status)."""
    try:
        fields = ast.literal_eval(node) if node is not None else None
        if not isinstance(fields, dict):
            raise TypeError("it is not a dictionary")
        return Theorem(**{**fields, "assumptions": tuple(Assumption(*parts) for parts in fields["assumptions"])})
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(
            f"{path}, line {getattr(node, 'lineno', 0)}: THEOREM is no record of a theorem: {error}"
        ) from None


def _status(record: Theorem, tree: ast.Module, package: Path) -> str:
    rule = package / "axioms" / f"{record.name}.py"
    if rule.is_file():
        return "checked"
    if path_of_tests(record, package) is not None:
        return "tested"
    code = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return "implemented" if any(isinstance(node, code) for node in tree.body) else "stated"


def path_of_tests(record: Theorem, package: Path = PACKAGE) -> Path | None:
    """The theorem's test file, or None when there is none or the package was not installed from a source checkout."""
    checkout = package.parent.parent
    path = checkout / "tests" / "theorems" / f"test_{record.name}.py"
    return path if (checkout / "pyproject.toml").is_file() and path.is_file() else None
