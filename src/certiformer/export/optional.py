"""Libraries that only some users have: imported when they are needed, asked for in one sentence when they are absent."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from certiformer.errors import MissingExtra


def required(module: str, remedy: str) -> ModuleType:
    """The module, or `MissingExtra` with the command that installs it.

    >>> required("no_such_library", "pip install no-such-library")
    Traceback (most recent call last):
    ...
    certiformer.errors.MissingExtra: this needs the library no_such_library, which is not installed: pip install \
no-such-library
    """
    try:
        return import_module(module)
    except ImportError:
        library = module.partition(".")[0]
        raise MissingExtra(f"this needs the library {library}, which is not installed: {remedy}") from None
