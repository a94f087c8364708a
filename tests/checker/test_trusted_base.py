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
from negative.forge import theorem_run

PACKAGE = Path(certiformer.__file__).parent
# The modules of `target` that need jax are for building, not for checking.
JAX_PART = {"trace.py", "load.py", "floating.py", "interpret.py", "primitives.py", "scalars.py"}
# The aim of the design is 2,500 lines for everything. The checker alone keeps to it; with the parser and builder of
# the target language, the certificate files and the theorem records it is about 4,000, and must not grow unnoticed.
CHECKER_LIMIT, WHOLE_LIMIT = 2_500, 4_200


def trusted_files() -> list[Path]:
    found = [PACKAGE / "errors.py"]
    for package in ("theorem", "certificate", "checker", "target"):
        found += [path for path in sorted((PACKAGE / package).rglob("*.py")) if path.name not in JAX_PART]
    return found


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


def test_the_trusted_base_is_small(capsys):
    sizes = {path.relative_to(PACKAGE): code_lines(path.read_text(encoding="utf-8")) for path in trusted_files()}
    by_package: dict[str, int] = {}
    for path, size in sizes.items():
        by_package[path.parts[0]] = by_package.get(path.parts[0], 0) + size
    with capsys.disabled():
        print(f"\ntrusted base: {sum(sizes.values())} lines of code in {len(sizes)} modules ({by_package})")
    assert len(sizes) > 25
    assert by_package["checker"] < CHECKER_LIMIT
    assert sum(sizes.values()) < WHOLE_LIMIT


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
