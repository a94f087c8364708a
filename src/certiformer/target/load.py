"""Loading the callable that a user names as `file.py:name`; the file runs, once, at build time."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import jax

from certiformer.errors import BadInput


def load_callable(reference: str) -> Callable[..., Any]:
    """The function `name` of the Python file in `"file.py:name"`."""
    path_text, separator, name = reference.rpartition(":")
    if not separator or not path_text.endswith(".py") or not name.isidentifier():
        raise BadInput(f"a callable is named as file.py:name, not {reference!r}")
    path = Path(path_text)
    if not path.is_file():
        raise BadInput(f"there is no file {path_text!r}")
    module = _executed(path)
    function = getattr(module, name, None)
    if callable(function):
        return function
    if hasattr(module, name):
        raise BadInput(f"{name!r} in {path_text!r} is not callable")
    own = [n for n, v in vars(module).items() if callable(v) and getattr(v, "__module__", None) == module.__name__]
    raise BadInput(f"{path_text!r} has no function {name!r}" + (f"; it has {', '.join(own[:10])}" if own else ""))


def _executed(path: Path) -> ModuleType:
    """The module of a file, run with 64-bit types on (its constants would be float32 otherwise)."""
    spec = importlib.util.spec_from_file_location(f"certiformer_target_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise BadInput(f"{str(path)!r} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    directory, writes_bytecode = str(path.resolve().parent), sys.dont_write_bytecode
    sys.path.insert(0, directory)  # the file may import its neighbours
    sys.dont_write_bytecode = True
    try:
        with jax.enable_x64(True):
            spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == str(path)]
        line = error.lineno if isinstance(error, SyntaxError) else (lines[-1] if lines else None)
        place = f" in line {line}" if line else ""
        kind = type(error).__name__
        raise BadInput(f"{str(path)!r} cannot be imported: {kind}{place}: {_first_line(error)}") from None
    finally:
        sys.path.remove(directory)
        sys.dont_write_bytecode = writes_bytecode
    return module


def _first_line(error: BaseException) -> str:
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    return (message.strip().splitlines() or [""])[0].rstrip(".")
