"""What level 2 rests on: small, without jax and numpy, without checks that `python -O` would strip."""

from __future__ import annotations

import ast
import io
import json
import os
import subprocess
import sys
import tokenize
from pathlib import Path

import pytest

import certiformer
from certiformer.checker import computation, rules
from certiformer.checker.rules import finite
from negative.forge import theorem_run

PACKAGE = Path(certiformer.__file__).parent
# The modules of `target` that need jax or read the files of a user are for building, not for checking.
JAX_PART = {"trace.py", "load.py", "floating.py", "interpret.py", "primitives.py", "scalars.py"}
JAX_PART |= {"csv_file.py", "python_file.py"}
# A proof rests on the core, which every check runs, and on the modules of the theorems that its tree names. The aim of the
# design is 2,500 lines for everything. It is not reached: see the figures that the test prints. They must not grow unnoticed.
# One theorem brings at most a few hundred lines of its own.
CORE_LIMIT, WHOLE_LIMIT, THEOREM_LIMIT = 2_700, 4_800, 700
# Claims of their own, each loaded for such folders only: how a run in a dtype rounds, and transformers that compute. Of the
# latter, a proof rests on the frame and on the module of its one theorem.
RUNS, COMPUTATIONS = PACKAGE / "checker" / "run_claim.py", PACKAGE / "checker" / "computation.py"
RUNS_LIMIT, COMPUTATIONS_LIMIT = 1_000, 150
# Compiled programs are another kind of claim: the rule margin reads a whole language (the typed graph, its value sets and
# facts, about 1,300 lines of `rasp`) and re-derives every gadget from the weights (about 2,100 lines of `checker.margin`:
# scores, means, tables, identities, rounding). It is loaded for such folders only, so that no other proof rests on it.
PROGRAMS = PACKAGE / "checker" / "rules" / "margin.py"
MARGIN_LIMIT, LANGUAGE_LIMIT = 2_300, 1_800


def trusted_files() -> list[Path]:
    found = [PACKAGE / "errors.py"]
    for package in ("theorem", "certificate", "checker", "target"):
        found += [path for path in sorted((PACKAGE / package).rglob("*.py")) if path.name not in JAX_PART]
    return found + [path for path in sorted(closure([PROGRAMS], set())) if path.is_relative_to(PACKAGE / "rasp")]


def docstring_lines(source: str) -> set[int]:
    lines: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and node.body:
            first = node.body[0]
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                lines.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return lines


def code_lines(source: str) -> int:
    """Lines that hold a token other than comments, blank lines and docstrings."""
    skipped = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    used: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in skipped:
            used.update(range(token.start[0], token.end[0] + 1))
    return len(used - docstring_lines(source))


def test_the_counter_counts_code_only():
    source = '"""Doc.\n\nMore."""\n\nimport os  # why\n# comment\n\ndef f():\n    """Doc."""\n    return (1,\n            2)\n'
    assert code_lines(source) == 4


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


def theorem_modules() -> dict[str, Path]:
    """The modules of theorem rules, by id."""
    names = {*rules.THEOREMS, *finite.THEOREMS}
    return {name: PACKAGE / "checker" / "rules" / f"{name}.py" for name in names}


def computation_modules() -> dict[str, Path]:
    """The theorems about transformers that compute."""
    return {name: PACKAGE / "checker" / "rules" / f"{name}.py" for name in computation.RULES}


def test_the_trusted_base_is_small(capsys):
    theorems, computing = theorem_modules(), computation_modules()
    assert all(path.exists() for path in computing.values())
    assert all(path.exists() for path in theorems.values())
    leave_out = {*theorems.values(), PROGRAMS, RUNS, COMPUTATIONS}
    core = closure([PACKAGE / "checker" / "check.py", PACKAGE / "theorem" / "__init__.py"], leave_out)
    sizes = {path: code_lines(path.read_text(encoding="utf-8")) for path in trusted_files()}
    sizes[PACKAGE / "theorem" / "bibliography.py"] = 0  # titles of papers; no proof rests on them
    of_checker = sum(sizes[path] for path in core if path.is_relative_to(PACKAGE / "checker"))
    whole = sum(sizes.get(path, 0) for path in core)
    own = {
        name: sum(sizes[each] for each in closure([path], core | set(theorems.values()) - {path}))
        for name, path in theorems.items()
    }
    of_runs = closure([RUNS], core)
    runs = sum(sizes[each] for each in of_runs)
    frame = closure([COMPUTATIONS], core)
    of_frame = sum(sizes[each] for each in frame)
    computed = {
        name: sum(sizes[each] for each in closure([path], core | of_runs | frame)) for name, path in computing.items()
    }
    margin = {path: sizes[path] for path in closure([PROGRAMS], core | of_runs)}
    language = sum(size for path, size in margin.items() if path.is_relative_to(PACKAGE / "rasp"))
    with capsys.disabled():
        print(
            f"\ncore: {whole} lines of code in {len(core)} modules, {of_checker} of them in the checker; theorems: {own};"
            f" margin: {sum(margin.values()) - language}, and {language} of the language; runs: {runs};"
            f" transformers that compute: {of_frame} and {computed}"
        )
    assert 300 < runs < RUNS_LIMIT
    assert 50 < of_frame < COMPUTATIONS_LIMIT
    assert max(computed.values()) < THEOREM_LIMIT
    assert min(computed.values()) > 50
    assert sum(margin.values()) - language < MARGIN_LIMIT
    assert 500 < language < LANGUAGE_LIMIT
    assert len(core) > 25
    assert of_checker < CORE_LIMIT
    assert whole < WHOLE_LIMIT
    assert max(own.values()) < THEOREM_LIMIT
    assert min(own.values()) > 15


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
from certiformer.checker import check
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
        assert packages <= {"_version", "errors", "theorem", "certificate", "checker", "target"}
        assert not any(name.rsplit(".", 1)[1] + ".py" in JAX_PART for name in modules)


def test_every_trusted_module_that_was_loaded_is_counted(probed):
    counted = {
        path.relative_to(PACKAGE.parent).with_suffix("").as_posix().replace("/", ".") for path in trusted_files()
    }
    counted = {name.removesuffix(".__init__") for name in counted}
    for _, _, modules in probed.values():
        assert set(modules) <= counted | {"certiformer._version"}
