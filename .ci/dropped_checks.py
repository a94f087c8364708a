"""Find checks that do not check: results that are computed and dropped, assertions that cannot fail, empty tests.

    python .ci/dropped_checks.py [PATH ...]        # default: src tests .ci benchmarks

It reports, as `path:line: sentence`, and exits 1 when there is at least one:

* a comparison, `and`, `or` or `not` that stands alone as a statement;
* a call of `check*`, `verify*`, `validate*`, `is_*`, `has_*`, `allclose`, `array_equal`, `isclose` or `equal` whose
  result is not used, unless every function (or, for `object.check()`, every method) of that name defined here returns
  nothing: such a check raises instead;
* an `assert` whose condition is always true: a tuple, list, set, dict, generator, lambda, f-string or true constant;
* a `test_*` function in a `test_*.py` file that asserts nothing, neither itself nor through a function it calls.

Statements inside `with pytest.raises(...)` are left alone: there the call itself is the check.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

DEFAULT_PATHS = ("src", "tests", ".ci", "benchmarks")
CHECK_NAME = re.compile(r"_*(check|verify|validate|is_|has_)\w*|allclose|array_equal|isclose|equal")
ASSERTING_NAME = re.compile(r"_*assert\w*|raises|warns|deprecated_call|fail")
EXPECTS_EXCEPTION = re.compile(r"(raises|warns|assertRaises\w*)")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def main(arguments: list[str]) -> int:
    paths = [Path(argument) for argument in arguments or DEFAULT_PATHS]
    faults = faults_in(python_files(path for path in paths if path.exists() or arguments))
    for fault in faults:
        print(fault)
    return 1 if faults else 0


def python_files(paths: Iterable[Path]) -> list[Path]:
    found: list[Path] = []
    for path in paths:
        found += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return found


def faults_in(files: list[Path]) -> list[str]:
    trees = {path: ast.parse(path.read_text(encoding="utf-8"), filename=str(path)) for path in files}
    everywhere = [function for tree in trees.values() for function in functions_of(tree)]
    in_tests = [f for path, tree in trees.items() if is_of_the_tests(path) for f in functions_of(tree)]
    asserting = asserting_names(in_tests)
    faults = []
    for path, tree in trees.items():
        for line, sentence in sorted(module_faults(tree, everywhere)):
            faults.append(f"{path}:{line}: {sentence}")
        if path.name.startswith("test_"):
            for function in functions_of(tree):
                if function.name.startswith("test_") and not is_asserting(function, asserting):
                    faults.append(f"{path}:{function.lineno}: {function.name} asserts nothing")
    return faults


def module_faults(tree: ast.Module, everywhere: list[Function]) -> Iterator[tuple[int, str]]:
    here, modules = list(functions_of(tree)), imported_modules(tree)
    for node in statements_outside_raises(tree):
        if isinstance(node, ast.Expr):
            if isinstance(node.value, (ast.Compare, ast.BoolOp)) or is_not(node.value):
                yield node.lineno, "the result of this comparison is dropped"
            elif is_check_call(node) and any(map(has_result, meant_by(node.value, here, everywhere, modules))):
                yield node.lineno, f"the result of {called_name(node.value)}(...) is dropped"
        elif isinstance(node, ast.Assert) and is_always_true(node.test):
            yield node.lineno, "this assertion cannot fail"


def statements_outside_raises(tree: ast.AST) -> Iterator[ast.stmt]:
    """Every statement at any depth, except those inside a block that expects an exception."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, (ast.With, ast.AsyncWith)) and any(expects_exception(item) for item in child.items):
            continue
        if isinstance(child, ast.stmt):
            yield child
        yield from statements_outside_raises(child)


def is_check_call(statement: ast.Expr) -> bool:
    return (name := called_name(statement.value)) is not None and CHECK_NAME.fullmatch(name) is not None


def expects_exception(item: ast.withitem) -> bool:
    name = called_name(item.context_expr)
    return name is not None and EXPECTS_EXCEPTION.fullmatch(name) is not None


def called_name(node: ast.expr) -> str | None:
    """The last name of a call: `allclose` for `numpy.allclose(a, b)`, None for anything that is not a named call."""
    if isinstance(node, ast.Await):
        node = node.value
    if not isinstance(node, ast.Call):
        return None
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else None


def meant_by(
    call: ast.expr, here: list[Function], everywhere: list[Function], modules: set[str]
) -> list[Function | None]:
    """The functions that a call may mean, by its name; [None] when none is known.

    A plain name means a function of the same file if there is one; `object.name()` means a method if there is one,
    unless the object is a module.
    """
    known = [function for function in everywhere if function.name == called_name(call)]
    functions = [function for function in known if not is_method(function)]
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        root = ast.unparse(call.func.value).partition(".")[0]
        meant = functions if root in modules else [f for f in known if is_method(f)] or functions
    else:
        meant = [function for function in functions if function in here] or functions
    return [*meant] or [None]


def imported_modules(tree: ast.Module) -> set[str]:
    """The imported names that are modules by their spelling: all lower case, as no class of ours is."""
    imports = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    names = {(alias.asname or alias.name).partition(".")[0] for node in imports for alias in node.names}
    return {name for name in names if name.islower()}


def is_method(function: Function) -> bool:
    arguments = [*function.args.posonlyargs, *function.args.args]
    return bool(arguments) and arguments[0].arg in ("self", "cls")


def has_result(function: Function | None) -> bool:
    """Whether a function returns or yields a value (an unknown one is taken to); functions inside it do not count."""
    if function is None:
        return True
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return True
        if isinstance(node, ast.Return):
            if not (node.value is None or (isinstance(node.value, ast.Constant) and node.value.value is None)):
                return True
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            pending.extend(ast.iter_child_nodes(node))
    return False


def is_not(node: ast.expr) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)


def is_always_true(test: ast.expr) -> bool:
    if isinstance(test, (ast.Tuple, ast.List, ast.Set)):
        return bool(test.elts)
    if isinstance(test, ast.Dict):
        return bool(test.keys)
    if isinstance(test, ast.Constant):
        return bool(test.value)
    return isinstance(test, (ast.GeneratorExp, ast.Lambda, ast.JoinedStr))


def functions_of(tree: ast.AST) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))


def is_of_the_tests(path: Path) -> bool:
    return path.name.startswith("test_") or "tests" in path.parts


def asserting_names(functions: list[Function]) -> set[str]:
    """Names of the functions that assert something, directly or through one another."""
    names: set[str] = set()
    while more := {function.name for function in functions if is_asserting(function, names)} - names:
        names |= more
    return names


def is_asserting(function: Function, asserting: set[str]) -> bool:
    """Whether a function asserts, raises, or calls something that does.

    A check called as a statement counts: the rule above makes sure that such a check raises.
    """
    for node in ast.walk(function):
        if isinstance(node, (ast.Assert, ast.Raise)) or (isinstance(node, ast.Expr) and is_check_call(node)):
            return True
        name = called_name(node) if isinstance(node, ast.expr) else None
        if name is not None and (ASSERTING_NAME.fullmatch(name) or name in asserting):
            return True
    return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
