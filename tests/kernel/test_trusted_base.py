"""What level 2 rests on: as large as the pages say, without jax and numpy, without checks that `python -O` would strip."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import certiformer
from negative.forge import theorem_run

PACKAGE = Path(certiformer.__file__).parent


def trusted_files() -> list[Path]:
    found = [PACKAGE / name for name in ("errors.py", "isolation.py", "reading.py")]
    for package in ("kernel", "axioms"):
        found += sorted((PACKAGE / package).rglob("*.py"))
    return found


def imported(path: Path) -> set[Path]:
    """The modules of the package that a module imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("certiformer"):
            base = PACKAGE.parent / Path(*(node.module or "").split("."))
            for name in (None, *(alias.name for alias in node.names)):
                stem = base if name is None else base / name
                found |= {file for file in (stem.with_suffix(".py"), stem / "__init__.py") if file.exists()}
    return found


def closure(start: list[Path], leave_out: set[Path]) -> set[Path]:
    """Everything that is imported, directly or not, without going through the modules left out."""
    found, open_ends = set(), list(start)
    while open_ends:
        path = open_ends.pop()
        if path not in found and path not in leave_out:
            found.add(path)
            open_ends += imported(path)
    return found


def test_the_language_of_programs_is_nowhere_in_what_is_trusted():
    """What a program means is defined in the kernel; the language infers, and its inference is only proposed."""
    rasp = {path for path in closure(trusted_files(), set()) if path.is_relative_to(PACKAGE / "rasp")}
    assert not rasp
    assert closure([PACKAGE / "compiler" / "driver.py"], set()) & {
        PACKAGE / "rasp" / "facts.py"
    }  # the closure would see it


def wrong_size(page: str, lines: int) -> str | None:
    """Whether a page states the number of trusted lines, and is off by more than a fifth: *about* means no less."""
    stated = re.search(r"about ([\d,]+) lines in all", page)
    if stated is None:
        return "the page does not say how many lines are trusted"
    number = int(stated[1].replace(",", ""))
    return None if 0.8 * number <= lines <= 1.2 * number else f"the page says {number:,} lines, there are {lines:,}"


def test_the_page_says_how_much_is_trusted():
    """All lines count, those of comments and proofs too: whoever wants to trust them has to read them."""
    page = (PACKAGE.parents[1] / "docs" / "kernel.md").read_text(encoding="utf-8")
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in trusted_files())
    assert wrong_size(page, lines) is None
    assert wrong_size("small", lines) and wrong_size(page, lines // 2) and wrong_size(page, 2 * lines)


def asserts_in(source: str) -> list[int]:
    return [node.lineno for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Assert)]


def test_there_is_no_assert_in_the_trusted_base():
    found = {str(path): asserts_in(path.read_text(encoding="utf-8")) for path in trusted_files()}
    assert {path: lines for path, lines in found.items() if lines} == {}
    assert asserts_in("def f(x):\n    assert x\n") == [2]  # the scan sees one


def test_no_code_is_run_from_data():
    for path in trusted_files():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("eval", "exec", "compile", "__import__"), path
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                names = [alias.name for alias in node.names] + [getattr(node, "module", "") or ""]
                assert not any(name.split(".")[0] in ("pickle", "marshal", "shelve", "ctypes") for name in names), path


PROBE = """
import json, sys
from certiformer.kernel.check import check
verdict = check(sys.argv[1], workers=1)
loaded = sorted(name for name in sys.modules if "." not in name)
print(json.dumps([verdict.outcome, loaded, [name for name in sys.modules if name.startswith("certiformer.")]]))
"""


@pytest.fixture(scope="module")
def probed(tmp_path_factory):
    folder = theorem_run("sin(x1)", "[0,1]", "0.1").write(tmp_path_factory.mktemp("probe") / "run")
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    outputs = {}
    for flags in ((), ("-O",)):
        done = subprocess.run(
            [sys.executable, *flags, "-c", PROBE, str(folder)],
            capture_output=True,
            text=True,
            env=environment,
            check=True,
        )
        outputs[flags] = json.loads(done.stdout)
    return outputs


def test_checking_loads_neither_jax_nor_numpy(probed):
    for outcome, loaded, _ in probed.values():
        assert outcome == "proved"
        foreign = {"jax", "jaxlib", "numpy", "scipy", "equinox", "optax", "safetensors", "jaxtyping", "torch"}
        assert foreign.isdisjoint(loaded)
        assert "flint" in loaded


def test_checking_loads_nothing_of_the_search(probed):
    for _, _, modules in probed.values():
        packages = {name.split(".")[1] for name in modules}
        files = {"_version", "errors", "isolation", "reading"}
        assert packages <= files | {"kernel", "axioms"}


def test_every_trusted_module_that_was_loaded_is_counted(probed):
    counted = {
        path.relative_to(PACKAGE.parent).with_suffix("").as_posix().replace("/", ".") for path in trusted_files()
    }
    counted = {name.removesuffix(".__init__") for name in counted}
    for _, _, modules in probed.values():
        assert set(modules) <= counted | {"certiformer._version"}


def test_the_checker_is_at_most_sixteen_modules(probed):
    """On a claim about a box, axioms left aside: the package itself, `errors`, `isolation` and the kernel."""
    for _, _, modules in probed.values():
        own = {name for name in modules if not name.startswith("certiformer.axioms") and name != "certiformer._version"}
        assert 8 < len({"certiformer", *own}) <= 16
        assert "certiformer.kernel.layers" in own  # the count sees what is loaded inside


def test_the_command_adds_only_what_reads_flags_and_prints(tmp_path):
    folder = theorem_run("sin(x1)", "[0,1]", "0.1").write(tmp_path / "run")
    probe = "from certiformer.cli.main import main; main(['check', sys.argv[1], '--workers', '1'])"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; {probe}; print(*sys.modules)", str(folder)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)},
        check=True,
    )
    loaded = {name.split(".")[1] for name in done.stdout.split() if name.startswith("certiformer.")}
    assert "certified" in done.stdout
    assert loaded <= {"_version", "axioms", "cli", "disk", "errors", "isolation", "kernel", "reading", "report"}
