"""Loading the callable that a user names as `file.py:name`; the file runs, once, at build time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax

from certiformer.errors import BadInput
from certiformer.target.python_file import executed


def load_callable(reference: str) -> Callable[..., Any]:
    """The function `name` of the Python file in `"file.py:name"`."""
    path_text, separator, name = reference.rpartition(":")
    if not separator or not path_text.endswith(".py") or not name.isidentifier():
        raise BadInput(f"a callable is named as file.py:name, not {reference!r}")
    path = Path(path_text)
    if not path.is_file():
        raise BadInput(f"there is no file {path_text!r}")
    # With 64-bit types on: the constants of the file would be float32 otherwise.
    module = executed(path, "certiformer_target_", jax.enable_x64(True))
    function = getattr(module, name, None)
    if callable(function):
        return function
    if hasattr(module, name):
        raise BadInput(f"{name!r} in {path_text!r} is not callable")
    own = [n for n, v in vars(module).items() if callable(v) and getattr(v, "__module__", None) == module.__name__]
    raise BadInput(f"{path_text!r} has no function {name!r}" + (f"; it has {', '.join(own[:10])}" if own else ""))
