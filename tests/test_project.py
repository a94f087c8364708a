"""The tools that guard the project, each with its negative control: a planted fault that it must report."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
LIBRARY = ROOT / "src" / "certiformer"


def tool(name: str) -> ModuleType:
    """A script of .ci, imported as a module."""
    specification = importlib.util.spec_from_file_location(f"ci_{name}", ROOT / ".ci" / f"{name}.py")
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module  # dataclasses look their module up
    specification.loader.exec_module(module)
    return module


# --- dropped checks ---------------------------------------------------------------------------------------------------


def dropped(tmp_path: Path, code: str, name: str = "test_sample.py") -> list[str]:
    path = tmp_path / name
    path.write_text(code)
    return [fault.partition(": ")[2] for fault in tool("dropped_checks").faults_in([path])]


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        ("x == 1\n", "comparison is dropped"),
        ("def f(a, b):\n    if a:\n        b < 2 < a\n", "comparison is dropped"),
        ("a and b\n", "comparison is dropped"),
        ("not a\n", "comparison is dropped"),
        ("np.allclose(a, b)\n", "the result of allclose(...) is dropped"),
        ("for x in y:\n    jnp.array_equal(a, x)\n", "the result of array_equal(...) is dropped"),
        ("check_enclosure(box)\n", "the result of check_enclosure(...) is dropped"),
        ("def _verify(x):\n    return x > 0\n_verify(3)\n", "the result of _verify(...) is dropped"),
        ("class A:\n    def check(self):\n        return 1\nA().check()\n", "the result of check(...) is dropped"),
        ("def check(x):\n    if x:\n        return\n    return x\ncheck(1)\n", "the result of check(...) is dropped"),
        (
            "import library\nclass A:\n    def check(self): pass\ndef check(x): return x\nlibrary.check(1)\n",
            "the result of check(...) is dropped",
        ),
        ("outcome.is_proved()\n", "the result of is_proved(...) is dropped"),
        ("async def f():\n    await validate(1)\n", "the result of validate(...) is dropped"),
        ("assert (x == 1, 'message')\n", "cannot fail"),
        ("assert (x > 0 for x in y)\n", "cannot fail"),
        ("assert 'always'\n", "cannot fail"),
        ("assert lambda: x\n", "cannot fail"),
        ("def test_runs():\n    build()\n", "test_runs asserts nothing"),
        ("class TestIt:\n    def test_runs(self):\n        good = check(1)\n", "test_runs asserts nothing"),
        ("def helper():\n    build()\ndef test_runs():\n    helper()\n", "test_runs asserts nothing"),
    ],
)
def test_a_check_that_does_not_check_is_reported(tmp_path, code, fault):
    found = dropped(tmp_path, code)
    assert len(found) == 1
    assert fault in found[0]


@pytest.mark.parametrize(
    "code",
    [
        "assert x == 1\n",
        "assert ()\n",
        "ok = allclose(a, b)\n",
        "assert np.allclose(a, b)\n",
        "def _check(x):\n    if x < 0:\n        raise ValueError\n_check(3)\n",
        "def check(x):\n    def inner():\n        return 1\n    inner()\n    return None\ncheck(3)\n",
        "with pytest.raises(BadInput):\n    check(1)\n",
        "class A:\n    def check(self):\n        pass\ndef check(x):\n    return x\nA().check()\n",
        "with pytest.raises(TypeError):\n    a < b\n",
        "def test_it():\n    assert build()\n",
        "def test_it():\n    with pytest.raises(ValueError):\n        build()\n",
        "def test_it():\n    np.testing.assert_array_equal(a, b)\n",
        "def sound(x):\n    assert x\ndef both(x):\n    sound(x)\ndef test_it():\n    both(1)\n",
        "def build():\n    run()\n",
    ],
)
def test_an_honest_check_is_left_alone(tmp_path, code):
    assert dropped(tmp_path, code) == []


def test_a_library_function_that_raises_does_not_count_as_a_test(tmp_path):
    (tmp_path / "library.py").write_text("def parse(x):\n    raise ValueError\n")
    (tmp_path / "test_it.py").write_text("def test_it():\n    parse(1)\n")
    faults = tool("dropped_checks").faults_in(sorted(tmp_path.glob("*.py")))
    assert [fault.partition(": ")[2] for fault in faults] == ["test_it asserts nothing"]


# --- the README's snippets --------------------------------------------------------------------------------------------


def faults_of_page(page: str) -> list[str]:
    return [fault for _, fault in tool("readme").run_page(page)[1]]


GOOD_PAGE = """# Page
```bash
python -m pytest -q  # two minutes
```
```console
$ echo one; echo two
one
t...
$ cd / && echo $((1 +
> 1))
2
$ (exit 3)
$ echo $?
3
$ pwd
/
```
```python
>>> x = 2
>>> x / 3
0.66...
```
```python
>>> x + 1
3
```
```python
print("alone")
```

```text
alone
```
<!-- not run: needs another machine -->
```console
$ false
```
"""


def test_a_page_that_tells_the_truth_passes(tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text(GOOD_PAGE)
    assert tool("readme").main(["run", str(page)]) == 0
    printed = capsys.readouterr().out
    assert "not run: needs another machine" in printed
    assert f"{page}: 4 snippets executed, 0 not as shown" in printed
    page.write_text(GOOD_PAGE.replace("0.66...", "0.67..."))
    assert tool("readme").main(["run", str(page)]) == 1


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("one\nt...", "one\nthree", "does not print what is shown"),
        ("$ (exit 3)\n$ echo $?\n3\n", "$ (exit 3)\n", "exit code 3"),
        ("$ (exit 3)\n", "$ exit 3\n", "ended the shell"),
        ("0.66...", "0.67...", "Expected"),
        ("x + 1\n3", "x + 1\n4", "Expected"),
        ("```text\nalone", "```text\ntogether", "does not print what is shown"),
        ('print("alone")', "raise SystemExit(1)", "exit code 1"),
        ("<!-- not run: needs another machine -->", "", "exit code 1"),
    ],
)
def test_a_page_that_does_not_is_reported(old, new, fault):
    assert old in GOOD_PAGE
    found = faults_of_page(GOOD_PAGE.replace(old, new))
    assert len(found) == 1
    assert fault in found[0]


def test_the_test_command_is_found_and_must_be_one():
    command = tool("readme").test_command
    assert command(GOOD_PAGE) == "python -m pytest -q"
    assert command("```console\n$ python -m pytest -q -n 2\n... passed\n```\n") == "python -m pytest -q -n 2"
    for page in ("# Page\n", GOOD_PAGE + "```bash\npytest\n```\n"):
        with pytest.raises(SystemExit, match="must show one test command"):
            command(page)


def test_the_readme_begins_with_the_plain_install_and_the_main_job():
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    tests = tool("readme").test_command(page)
    first = next(line for line in page.splitlines() if line.startswith("$ "))
    assert "pip install -q -e . && certiformer build" in first
    assert 'pip install -q -e ".[test]" && python -m pytest' in tests
    plain = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    assert not any(name.startswith(("pyarrow", "matplotlib", "torch", "onnx")) for name in plain)


def test_the_citation_names_this_version():
    from certiformer import __version__

    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {__version__}\n" in text and text.startswith("cff-version: 1.2.0\n")


def test_the_full_run_knows_its_word():
    done = subprocess.run(["bash", str(ROOT / ".ci" / "run"), "--fulll"], capture_output=True, text=True)
    assert done.returncode == 2 and "usage: .ci/run [--full]" in done.stderr


# --- the navigation of the documentation ------------------------------------------------------------------------------


def test_the_navigation_lists_every_page():
    assert tool("navigation").navigation_faults(ROOT) == []


def test_a_wrong_navigation_is_reported(tmp_path):
    (tmp_path / "docs" / "theorems").mkdir(parents=True)
    for page in ("index.md", "lost.md", "theorems/index.md", "theorems/construct.one.md"):
        (tmp_path / "docs" / page).touch()
    navigation = ["- Start: index.md", "- More:", "    - theorems/index.md", "    - Gone: gone.md", "    - index.md"]
    (tmp_path / "mkdocs.yml").write_text("\n".join(["nav:", *(f"  {line}" for line in navigation), "plugins: []"]))
    assert tool("navigation").navigation_faults(tmp_path) == [
        "mkdocs.yml lists gone.md, which does not exist",
        "docs/lost.md is not in the navigation of mkdocs.yml",
        "mkdocs.yml lists index.md twice",
    ]


# --- the FAQ ----------------------------------------------------------------------------------------------------------


def messages_of_the_library() -> list[str]:
    """Every text in the library that could be a message (docstrings cannot), with `...` for what is filled in."""
    messages = []
    for path in LIBRARY.rglob("*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        for node in nodes:
            if id(node) in docstrings:
                continue
            if isinstance(node, ast.JoinedStr):
                messages.append("".join(str(v.value) if isinstance(v, ast.Constant) else "..." for v in node.values))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                messages.append(node.value)
    return messages


def is_shown(heading: str, messages: list[str]) -> bool:
    """Whether the pieces of a heading between its `...` stand in one message, in this order."""
    pattern = re.compile(".*".join(re.escape(piece.strip()) for piece in heading.split("...")), re.DOTALL)
    return any(pattern.search(message) for message in messages)


def test_the_headings_of_the_faq_are_messages_of_the_library():
    page = (ROOT / "docs" / "faq.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.*)$", page, re.MULTILINE)
    assert len(headings) >= 10
    messages = messages_of_the_library()
    wrong = [heading for heading in headings if not is_shown(heading.strip("`"), messages)]
    assert wrong == []


def test_a_heading_that_no_message_has_is_noticed():
    messages = ["unknown name ...", "the box has ... axes"]
    assert is_shown("the box has ... axes", messages)
    assert not is_shown("the box has ... corners", messages)
    assert not is_shown("axes ... the box has", messages)
    assert not is_shown("unknown name ... axes", messages)


# --- the direction of imports -----------------------------------------------------------------------------------------


def lint_imports(checkout: Path) -> subprocess.CompletedProcess[str]:
    """import-linter on a checkout, through its own interpreter so that the copy is linted and not the installation."""
    program = "import sys; sys.path.insert(0, 'src'); from importlinter.cli import lint_imports_command as lint; lint()"
    arguments = [sys.executable, "-c", program, "--no-cache", "--no-logo"]
    wide = {**os.environ, "COLUMNS": "200"}  # a contract and its verdict on one line
    return subprocess.run(arguments, cwd=checkout, capture_output=True, text=True, timeout=120, env=wide)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what import-linter reads."""
    copy = tmp_path_factory.mktemp("copy")
    shutil.copy(ROOT / "pyproject.toml", copy)
    shutil.copytree(LIBRARY, copy / "src" / "certiformer", ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def test_imports_go_down(checkout):
    done = lint_imports(checkout)
    assert done.returncode == 0, done.stdout
    assert "0 broken" in done.stdout


@pytest.mark.parametrize(
    ("module", "statement", "broken"),
    [
        ("model/planted.py", "import certiformer.verify", "Layers"),
        ("interval/planted.py", "def late():\n    import certiformer.model", "Layers"),
        ("verify/planted.py", "import certiformer.construct", "Layers"),
        ("search/planted.py", "import certiformer.cli", "Layers"),
        ("newcomer/__init__.py", "", "Layers"),
        ("axioms/planted.py", "import numpy", "axioms stand on"),
        ("kernel/planted.py", "import jax", "kernel needs"),
        ("target/split.py", "import jax", "report renders data"),  # imported on the way
        ("theorem/planted.py", "import flint", "standard library only"),
        ("report/planted.py", "import jax", "report renders data"),
    ],
)
def test_an_import_that_goes_up_is_reported(checkout, module, statement, broken):
    path = checkout / "src" / "certiformer" / module
    before = path.read_text() if path.exists() else None
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"{before or ''}\n{statement}\n")
    try:
        done = lint_imports(checkout)
    finally:
        if before is not None:
            path.write_text(before)
        elif path.parent.name == "newcomer":
            shutil.rmtree(path.parent)
        else:
            path.unlink()
    assert done.returncode == 1
    kept_or_broken = [line for line in done.stdout.splitlines() if broken in line]
    assert kept_or_broken and "BROKEN" in kept_or_broken[0], done.stdout


def imported(path: Path) -> set[str]:
    """The modules a file imports, anywhere in it, by their full names."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def files_of(module: str) -> set[Path]:
    """The files that run when a module of ours is imported: its own and those of the packages around it."""
    parts = module.split(".")[1:]
    stems = [LIBRARY.joinpath(*parts[:depth]) for depth in range(1, len(parts) + 1)]
    return {path for stem in stems for path in (stem.with_suffix(".py"), stem / "__init__.py") if path.is_file()}


def test_the_trusted_base_needs_the_standard_library_and_flint_only():
    """The linter forbids a list of packages; here everything else is forbidden too, along the chain of our imports."""
    pending = {path for name in ("axioms", "theorem", "kernel") for path in (LIBRARY / name).rglob("*.py")}
    seen: set[Path] = set()
    while pending:
        path = pending.pop()
        seen.add(path)
        for name in imported(path):
            top = name.partition(".")[0]
            if top == "certiformer":
                pending |= files_of(name) - seen
            else:
                assert top in sys.stdlib_module_names or top == "flint", f"{path} imports {name}"
    assert LIBRARY / "kernel" / "programs.py" in seen


# --- the shape of the library -----------------------------------------------------------------------------------------

MODULES = sorted(LIBRARY.rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(LIBRARY).as_posix())
def test_every_module_says_what_it_is_for(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    if tree.body:
        assert ast.get_docstring(tree), "no module docstring"
    assert path.stem not in {"utils", "helpers", "misc", "common"}, "a name that says nothing"


# What the checker is not: other code than the search, a short program, an hour's reading.
UNTRUE = re.compile(
    r"independent(ly)?\s+(check|program|verif)|shares\s+no\s+code\s+with\s+the\s+search|in\s+an\s+hour|nothing\s+else\s+of\s+ours"
    r"|small\s+(checker|program\s+that)|(checker|trusted\s+base)[^.|]{0,40}\bsmall\b"
)


def test_no_page_calls_the_checker_small_or_independent():
    pages = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "pyproject.toml")]
    pages += [*(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.py")]
    found = {str(page): match[0] for page in pages if (match := UNTRUE.search(page.read_text(encoding="utf-8")))}
    assert found == {}
    planted = (
        "an independent\nprogram checks it",
        "the independent checker",
        "the trusted base; small",
        "read in an hour",
    )
    assert all(UNTRUE.search(text) for text in planted)


def test_the_reference_shows_every_public_name():
    page = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    import certiformer

    reference = tool("reference")
    headings = re.findall(r"^### (\w+)$", page, re.MULTILINE)
    assert sorted(headings) == sorted(set(certiformer.__all__) - reference.NOT_SHOWN)
    assert page == reference.page()
    assert reference.prose("Text.\n>>> 1 + 1\n2\n\nMore.") == [
        "Text.",
        "",
        "```pycon",
        ">>> 1 + 1",
        "2",
        "```",
        "",
        "More.",
    ]


def test_the_pages_load_nothing_from_elsewhere():
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert "font: false" in settings and "://" not in settings
    assets = [ROOT / "docs" / path for path in re.findall(r"^  - (assets/\S+)$", settings, re.MULTILINE)]
    assert len(assets) == 4 and all(path.is_file() for path in assets)
    styles = (ROOT / "docs" / "assets" / "katex" / "katex.min.css").read_text(encoding="utf-8")
    fonts = set(re.findall(r"url\(([^)]+)\)", styles))
    assert fonts and all((ROOT / "docs" / "assets" / "katex" / font).is_file() for font in fonts)
