"""The registry reads records from source text, computes their status, and finds them by suffix."""

import subprocess
import sys
from pathlib import Path

import pytest

from certiformer.errors import BadInput
from certiformer.theorem import all_theorems, find
from certiformer.theorem.registry import PACKAGE, path_of_tests

MODULE = '''"""Ones add up.

Statement: 1 + 1 = 2.
"""
from elsewhere import nothing  # would fail if the registry imported the module

THEOREM = {{
    "id": "construct.{name}",
    "title": "Ones add up.",
    "kind": "exact",
    "sources": ("classical",),
    "verb": "theorem",
    "assumptions": (("two-ones", "There are " "two ones.", "checked"),),
}}
'''


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A small package in a source checkout, with two theorems `construct.ones` and `construct.many_ones`."""
    root = tmp_path / "src" / "toy"
    (root / "construct").mkdir(parents=True)
    (root / "axioms").mkdir()
    (tmp_path / "tests" / "theorems").mkdir(parents=True)
    (tmp_path / "pyproject.toml").touch()
    (root / "construct" / "plain.py").write_text("THEOREMS_ARE_ELSEWHERE = True\n")
    for name in ("ones", "many_ones"):
        (root / "construct" / f"{name}.py").write_text(MODULE.format(name=name))
    return root


def test_records_are_read_without_importing_their_modules(package):
    entries = all_theorems(package)
    assert [entry.record.id for entry in entries] == ["construct.many_ones", "construct.ones"]
    assert entries[1].module == "toy.construct.ones"
    assert entries[1].record.assumptions[0].text == "There are two ones."
    assert entries[1].sections == {"Statement": "1 + 1 = 2."}


def test_the_status_is_computed(package):
    module = package / "construct" / "ones.py"
    assert find("construct.ones", package).status == "stated"
    module.write_text(module.read_text() + "\n\ndef add_up():\n    return 2\n")
    assert find("construct.ones", package).status == "implemented"
    (package / "axioms" / "ones.py").touch()
    assert find("construct.ones", package).status == "checked"
    assert find("construct.many_ones", package).status == "stated"


def test_a_test_file_makes_it_tested_not_checked_and_in_a_source_checkout_only(package):
    checkout = package.parent.parent
    (checkout / "tests" / "theorems" / "test_ones.py").touch()
    entry = find("construct.ones", package)
    assert entry.status == "tested"
    assert path_of_tests(entry.record, package) == checkout / "tests" / "theorems" / "test_ones.py"
    (checkout / "pyproject.toml").unlink()
    assert find("construct.ones", package).status == "stated"
    assert path_of_tests(entry.record, package) is None


def test_find_accepts_unique_suffixes(package):
    assert find("toy.construct.ones", package).record.id == "construct.ones"
    assert find(" ones ", package).record.id == "construct.ones"  # a whole last name wins over `many_ones`
    assert find("y_ones", package).record.id == "construct.many_ones"
    with pytest.raises(BadInput, match="several theorems end in 'nes': construct.many_ones, construct.ones"):
        find("nes", package)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("construct.oness", "did you mean 'construct.ones'?"),
        ("many_one", "did you mean 'construct.many_ones'?"),
        ("zzz", "`certiformer theorem` lists them all"),
        ("", "`certiformer theorem` lists them all"),
    ],
)
def test_find_suggests_the_nearest(package, wanted, message):
    with pytest.raises(BadInput) as refused:
        find(wanted, package)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"id": "construct.ones"', '"id": "construct.twos"', "its module is 'construct.ones'"),
        ('"Ones add up."', 'f"{1} adds up."', "line 7: THEOREM is no record .* malformed node"),
        ('"sources": ("classical",)', '"sources": ["classical"]', "sources is a tuple"),
        ('"sources": ("classical",)', '"sources": SOURCES', "malformed node"),
        ('"sources": ("classical",),', "", "missing 1 required positional argument: 'sources'"),
        ('"verb": "theorem"', '"verbs": "theorem"', "unexpected keyword argument 'verbs'"),
        ("THEOREM = {", "THEOREM = 1, {", "it is not a dictionary"),
        ('"checked"', '"hoped"', "'checked' or 'trusted'"),
    ],
)
def test_a_record_that_is_not_a_literal_or_lies_is_refused(package, old, new, message):
    module = package / "construct" / "ones.py"
    assert old in module.read_text()
    module.write_text(module.read_text().replace(old, new))
    with pytest.raises(ValueError, match=message):
        all_theorems(package)


def test_an_annotated_record_is_found(package):
    module = package / "construct" / "ones.py"
    module.write_text(module.read_text().replace("THEOREM = ", "THEOREM: dict = "))
    assert find("construct.ones", package).record.kind == "exact"


def test_the_registry_loads_neither_jax_nor_numpy():
    listing = (
        "import sys; from certiformer.theorem import all_theorems; all_theorems();"
        "print(sorted({'jax', 'numpy', 'flint', 'equinox'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True, cwd=PACKAGE.parent)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
