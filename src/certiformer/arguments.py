"""What a function of the Python API does beside its work: NumPy scalars, misspelled arguments, errors in its own words.

The functions themselves are shared with the command line, and their errors speak of flags (`--out-tokens`); whoever calls
them from Python reads of arguments (`out_tokens`).
"""

from __future__ import annotations

import difflib
import inspect
import re
import sys
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from types import ModuleType
from typing import Any, ParamSpec, TypeVar

from certiformer.errors import BadInput

P = ParamSpec("P")
R = TypeVar("R")

_WITH_VALUE = re.compile(r"""--([a-z][a-z-]*)[ =](?=["'\d.])""")
_ADDED = re.compile(r"\badd --([a-z][a-z-]*)")
_FLAG = re.compile(r"--([a-z][a-z-]*)")


def spoken_of(text: str) -> str:
    """A sentence about flags as one about arguments.

    >>> spoken_of("--out-tokens must divide 3; add --force, or choose another --out, as in --eps 0.1")
    'out_tokens must divide 3; pass force=True, or choose another out, as in eps=0.1'
    """
    text = _ADDED.sub(lambda found: f"pass {_name(found)}=True", text)
    text = _WITH_VALUE.sub(lambda found: f"{_name(found)}=", text)
    return _FLAG.sub(_name, text)


def in_python(function: Callable[P, R]) -> Callable[P, R]:
    """The function with errors about arguments, a suggestion for an unknown one, and NumPy scalars read as numbers."""
    known = inspect.signature(function).parameters
    open_ended = any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values())

    @wraps(function)
    def called(*values: Any, **named: Any) -> Any:
        for name in named:
            if name not in known and not open_ended:
                near = difflib.get_close_matches(name, known, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(known)}"
                raise BadInput(f"{function.__name__} has no argument {name!r}; {hint}")
        try:
            return function(*map(plain, values), **{name: plain(value) for name, value in named.items()})  # type: ignore
        except BadInput as problem:
            problem.args = (spoken_of(str(problem)),)
            raise

    return called


def plain(value: Any) -> Any:
    """A scalar of NumPy as the number of Python that is printed like it; anything else as it is.

    >>> import numpy as np
    >>> plain(np.int64(3)), plain(np.float32(0.1)), plain([1])
    (3, 0.1, [1])
    """
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, numpy.generic):
        return value
    return float(str(value)) if isinstance(value, numpy.floating) else value.item()


def make_callable(module: str, home: str, name: str) -> None:
    """Let the package `module` be called as the function `name` of `home`: the verb and the package share their name."""

    class Verb(ModuleType):
        @property
        def __signature__(self) -> inspect.Signature:
            return inspect.signature(getattr(import_module(home), name))

        def __call__(self, *values: Any, **named: Any) -> Any:
            return in_python(getattr(import_module(home), name))(*values, **named)

    sys.modules[module].__class__ = Verb


def _name(found: re.Match[str]) -> str:
    return found[1].replace("-", "_")
