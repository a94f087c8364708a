"""The module of a user's Python file: executed with its neighbours importable, leaving nothing on disk."""

from __future__ import annotations

import importlib.util
import os
import sys
import traceback
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import ModuleType

from certiformer.errors import BadInput


def executed(path: Path, prefix: str, during: AbstractContextManager | None = None) -> ModuleType:
    """The module of a file, called `prefix` and the stem of its name; `during` is entered while it runs."""
    spec = importlib.util.spec_from_file_location(f"{prefix}{path.stem}", path)
    if spec is None or spec.loader is None:
        raise BadInput(f"{str(path)!r} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    directory, writes_bytecode = str(path.resolve().parent), sys.dont_write_bytecode
    sys.path.insert(0, directory)  # the file may import its neighbours
    sys.dont_write_bytecode = True
    try:
        with during or nullcontext():
            spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise BadInput(f"{str(path)!r} cannot be imported: {what_happened(error, path)}") from None
    finally:
        sys.path.remove(directory)
        sys.dont_write_bytecode = writes_bytecode
    return module


def what_happened(error: BaseException, path: Path) -> str:
    """An error of the user's code in a few words: its kind, the line of `path` it comes from, and what it says."""
    here = os.path.abspath(path)
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if os.path.abspath(f.filename) == here]
    line = error.lineno if isinstance(error, SyntaxError) else (lines[-1] if lines else None)
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    first = (message.strip().splitlines() or [""])[0].rstrip(".")
    return f"{type(error).__name__}{f' in line {line}' if line else ''}: {first}"
