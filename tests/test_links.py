"""One thread through theorem, code, test, page and citation: every link must hold, and a planted break is reported."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from certiformer.kernel.certificate import Node, Outcome
from certiformer.theorem import BIBLIOGRAPHY, Entry, all_theorems
from certiformer.theorem.registry import parse_sections, path_of_tests, section_faults

ROOT = Path(__file__).resolve().parent.parent
LIBRARY = ROOT / "src" / "certiformer"
ENTRIES = all_theorems(LIBRARY)
IDS = {entry.record.id for entry in ENTRIES}


def link_faults(entry: Entry, known_ids: set[str], package: Path = LIBRARY) -> list[str]:
    """Everything that does not agree between a theorem's record, its docstring, its imports and its test file."""
    faults = section_faults(entry.docstring)
    if faults:
        return faults
    record, sections = entry.record, entry.sections
    listed = listed_assumptions(sections["Assumptions"])
    if listed != {a.name: a.status for a in record.assumptions}:
        faults.append(
            f"the docstring lists the assumptions {listed}, the record {[a.name for a in record.assumptions]}"
        )
    for key in set(record.citations) - {"classical"}:
        surname = BIBLIOGRAPHY[key]["author"].partition(",")[0]
        if surname not in sections["Source"] and key not in sections["Source"]:
            faults.append(f"the record cites {key}, but the section Source names neither the key nor {surname}")
    faults += [f"uses names {used}, which does not exist" for used in record.uses if used not in known_ids]
    imports = imported_theorems(entry, known_ids, package)
    faults += [f"imports the theorem {used}, which uses does not name" for used in sorted(imports - set(record.uses))]
    test_name = f"tests/theorems/test_{record.name}.py"
    if path_of_tests(record, package) is None:
        faults.append(f"{test_name} does not exist")
    if test_name not in sections["Tests"]:
        faults.append(f"the section Tests does not name {test_name}")
    return faults


def listed_assumptions(section: str) -> dict[str, str]:
    """Name -> status of the items of an Assumptions section: `- name (checked): ...` or `- name: **trusted** ...`."""
    return dict(re.findall(r"^(?:[-*] +)?[`*]*([a-z][a-z0-9-]*)\b\W+(checked|trusted)\b", section, re.MULTILINE))


def imported_theorems(entry: Entry, known_ids: set[str], package: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(entry.path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
    return {name.removeprefix(f"{package.name}.") for name in names} & known_ids


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.record.id)
def test_a_theorem_agrees_with_its_docstring_tests_and_sources(entry):
    assert link_faults(entry, IDS) == []


def test_there_are_theorems():
    """Without this, the test above would pass on an empty list."""
    assert len(ENTRIES) >= 2


@pytest.mark.parametrize("path", sorted(LIBRARY.rglob("*.py")), ids=lambda path: path.relative_to(LIBRARY).as_posix())
def test_a_statement_has_a_record(path):
    """A module whose docstring has a Statement is a theorem, or a rule of the kernel."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    if "Statement" in parse_sections(docstring):
        assert path.is_relative_to(LIBRARY / "kernel") or path in {entry.path for entry in ENTRIES}


# --- negative controls ------------------------------------------------------------------------------------------------

MODULE = '''"""Ones add up.

Statement:
    1 + 1 = 2.

Source: Moore (1966).

Differs from the source in: nothing.

Assumptions:
    - `two-ones`: **checked** there are two ones, as checked by counting.
    peano (**trusted**, by everyone): arithmetic holds.

Certified: the sum.

Not certified: the difference.

Example:
    >>> 1 + 1
    2

Tests: tests/theorems/test_ones.py
"""

from toy.construct.zeros import nothing

THEOREM = {
    "id": "construct.ones",
    "title": "Ones add up.",
    "kind": "exact",
    "sources": ("moore1966, page 1",),
    "verb": "theorem",
    "assumptions": (
        ("two-ones", "There are two ones.", "checked"),
        ("peano", "Arithmetic holds.", "trusted"),
    ),
    "uses": ("construct.zeros",),
}
'''


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    package = tmp_path / "src" / "toy"
    (package / "construct").mkdir(parents=True)
    (tmp_path / "tests" / "theorems").mkdir(parents=True)
    (tmp_path / "tests" / "theorems" / "test_ones.py").touch()
    (tmp_path / "pyproject.toml").touch()
    (package / "construct" / "ones.py").write_text(MODULE)
    return package


def toy_faults(package: Path) -> list[str]:
    [entry] = all_theorems(package)
    return link_faults(entry, {"construct.ones", "construct.zeros"}, package)


def test_a_theorem_whose_links_hold_has_no_faults(toy):
    assert toy_faults(toy) == []


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("Certified: the sum.\n\nNot", "Not", "the section 'Certified' is missing"),
        ("`two-ones`", "`three-ones`", "lists the assumptions"),
        ("`two-ones`: **checked**", "`two-ones`: **trusted**", "lists the assumptions"),
        ("    peano (**trusted**, by everyone): arithmetic holds.\n", "", "lists the assumptions"),
        ("Moore (1966)", "folklore", "names neither the key nor Moore"),
        ('"uses": ("construct.zeros",)', '"uses": ("construct.zeros", "construct.twos")', "which does not exist"),
        ('"uses": ("construct.zeros",)', '"uses": ()', "imports the theorem construct.zeros"),
        ("Tests: tests/theorems/test_ones.py", "Tests: somewhere.", "does not name tests/theorems/test_ones.py"),
    ],
)
def test_a_broken_link_is_reported(toy, old, new, fault):
    module = toy / "construct" / "ones.py"
    assert old in MODULE
    module.write_text(MODULE.replace(old, new))
    faults = toy_faults(toy)
    assert len(faults) == 1
    assert fault in faults[0]


def test_a_missing_test_file_is_reported(toy):
    (toy.parent.parent / "tests" / "theorems" / "test_ones.py").unlink()
    assert toy_faults(toy) == ["tests/theorems/test_ones.py does not exist"]


# --- pages ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    specification = importlib.util.spec_from_file_location("ci_theorem_pages", ROOT / ".ci" / "theorem_pages.py")
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module
    specification.loader.exec_module(module)
    return module


def test_the_pages_of_the_theorems_are_fresh(generator):
    assert generator.stale_pages(generator.pages(ENTRIES), ROOT / "docs" / "theorems") == []


def test_a_stale_a_missing_and_a_surplus_page_are_reported(generator, toy, tmp_path):
    wanted = generator.pages(all_theorems(toy))
    assert sorted(wanted) == ["construct.ones.md", "index.md"]
    (tmp_path / "index.md").write_text(wanted["index.md"] + "typed by hand\n")
    (tmp_path / "construct.gone.md").touch()
    assert generator.stale_pages(wanted, tmp_path) == ["construct.gone.md", "construct.ones.md", "index.md"]


def test_a_page_shows_the_sections_the_assumptions_and_the_sources(generator, toy):
    [entry] = all_theorems(toy)
    page = generator.theorem_page(entry)
    assert page.startswith("# Ones add up\n\n`construct.ones`, exact, used by `certiformer theorem`, tested.")
    assert "## Differs from the source in\n\nnothing.\n" in page
    assert "```pycon\n>>> 1 + 1\n2\n```\n" in page
    assert "\n- peano (**trusted**, by everyone): arithmetic holds.\n" in page
    assert "- Moore (1966), Interval Analysis, Prentice-Hall" in page
    assert "- [`construct.zeros`](construct.zeros.md)" in page


def test_text_cannot_become_markup_by_accident(generator):
    assert generator.as_markdown("a <b, c> and `<b>` if x <= 1 < y") == "a &lt;b, c> and `<b>` if x <= 1 < y"
    assert generator.as_markdown("see\n\n    a <b, c>") == "see\n\n    a <b, c>"
    assert generator.cell("|T - f|") == "\\|T - f\\|"


def test_every_outcome_and_every_rule_is_explained_to_readers():
    text = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")
    headings = set(re.findall(r"^#+ .*", text, re.MULTILINE))
    for kind in Node.__args__:
        assert any(f"`{kind.__name__.lower()}`" in heading for heading in headings), kind
    for outcome in Outcome:
        assert f"*{outcome.value}*" in text
