"""How much code each claim rests on, all lines counted: what somebody has to read who wants to believe it.

The limits are those of the design, not of what is used. What is over its limit today stands in `TODAY` with the size that it
may not outgrow; an entry goes when it is no longer needed, and the table goes when it is empty.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

import certiformer
from certiformer.kernel.certificate import AXIOMS, USES
from certiformer.theorem import find

PACKAGE = Path(certiformer.__file__).parent
BOX = "kernel.check"  # behind every claim; alone behind one about a box or a list
WORDS = "kernel.situations"  # behind a claim about words and steps, with what reads such folders and compares weights
RULES = [BOX, "kernel.rounding.runs", WORDS]  # each may rest on those before it, axioms on all of them
MEANINGS = sorted(f"kernel.meanings.{path.stem}" for path in (PACKAGE / "kernel" / "meanings").glob("[a-z]*.py"))
LIMITS = {
    BOX: 3_300,
    WORDS: 1_600,
    "kernel.rounding.runs": 700,
    **dict.fromkeys(MEANINGS, 180),
    "kernel.meanings.rasp": 450,
    **{f"axioms.{name}": 350 for name in AXIOMS},
    "all axioms": 5_000,
}
TODAY: dict[str, int] = {
    "kernel.check": 4_996,
    "kernel.situations": 6_385,
    "kernel.rounding.runs": 1_128,
    "axioms.korovkin_ridges": 802,
    "axioms.shifted_grids": 954,
    "axioms.squares_rbf": 565,
    "axioms.temperatures": 770,
    "axioms.voronoi_first_order": 645,
    "axioms.voronoi_second_order": 655,
    "all axioms": 5_958,
}


@cache
def imported(path: Path, package: Path) -> set[Path]:
    """The modules of the package that a module imports, inside functions too, with the packages on the way."""
    names: set[str] = set()
    here = path.relative_to(package.parent).with_suffix("").parts
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = [*here[: len(here) - node.level], *filter(None, [node.module])] if node.level else [str(node.module)]
            names |= {".".join(base), *(".".join([*base, alias.name]) for alias in node.names)}
    found = set()
    for name in names:
        parts = name.split(".")
        for depth in range(2, len(parts) + 1):  # the package itself imports nothing of its own at once
            if parts[0] == package.name:
                stem = package.joinpath(*parts[1:depth])
                found |= {file for file in (stem.with_suffix(".py"), stem / "__init__.py") if file.is_file()}
    return found


def closure(start: set[Path], package: Path = PACKAGE) -> set[Path]:
    found: set[Path] = set()
    waiting = set(start)
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting |= imported(path, package)
            waiting |= {
                p / "__init__.py" for p in path.parents if package in p.parents and (p / "__init__.py").is_file()
            }
    return found


def lines(paths: set[Path]) -> int:
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)


def module(name: str) -> set[Path]:
    stems = [PACKAGE.joinpath(*name.split("."))]
    stems += [PACKAGE / "kernel" / part for part in ("computation", "construction") if name == WORDS]
    return {path for stem in stems for path in (stem.with_suffix(".py"), stem / "__init__.py") if path.is_file()}


def resting_on(name: str) -> int:
    """The lines behind a claim by this part, beyond those of rules and meanings that have limits of their own.

    An axiom that says that it rests on another one is counted without it, as both are named by who uses it.
    """
    if name in MEANINGS:
        return lines(module(name))
    starts = [f"axioms.{axiom}" for axiom in AXIOMS] if name == "all axioms" else [name]
    others = set(RULES[: RULES.index(name)] if name in RULES else RULES)
    others |= {*MEANINGS} if name != BOX else set()
    others |= {f"axioms.{other}" for other in USES.get(name.removeprefix("axioms."), ())}
    return lines(
        closure(set().union(*map(module, starts))) - set().union(*(closure(module(other)) for other in others))
    )


@pytest.mark.parametrize("name", LIMITS)
def test_a_part_keeps_its_limit(name):
    assert resting_on(name) <= TODAY.get(name, LIMITS[name])
    assert name == "all axioms" or module(name)


def test_an_axiom_is_counted_without_another_one_only_if_it_says_that_it_rests_on_it():
    for name, others in USES.items():
        assert {f"axioms.{other}" for other in others} == set(find(f"axioms.{name}").record.uses)
        assert all(module(f"axioms.{other}") <= closure(module(f"axioms.{name}")) for other in others)


def test_the_closure_sees_packages_relative_imports_and_functions(tmp_path):
    """The negative control."""
    package = tmp_path / "sample"
    (package / "inner").mkdir(parents=True)
    texts = {
        "__init__.py": "", "a.py": "def f():\n    from sample.inner import b\n", "inner/__init__.py": "from . import c\n",
        "inner/b.py": "x = 1\n", "inner/c.py": "from ..d import y\n", "d.py": "y = 2\nz = 3\n", "e.py": "import json\n",
    }  # fmt: skip
    for name, text in texts.items():
        (package / name).write_text(text)
    seen = closure({package / "a.py"}, package)
    assert {path.relative_to(package).as_posix() for path in seen} == set(texts) - {"__init__.py", "e.py"}
    assert lines(seen) == 7
    assert resting_on(BOX) > 1_000
