"""Compiled programs: making, certifying, saving, running and debugging them.

The compiler proper is `certiformer.compiler`; its certificates rest on the axiom `margin`. Here is what
a user holds in the hand. JAX is imported when a transformer is run, not before.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from certiformer.compiled.make import compile as compile  # noqa: A004
    from certiformer.compiled.program import CompiledProgram as CompiledProgram
    from certiformer.compiled.program import load_compiled as load_compiled

_HOMES = {"compile": "make", "CompiledProgram": "program", "load_compiled": "program"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'certiformer.compiled' has no attribute {name!r}")
    return getattr(import_module(f"certiformer.compiled.{_HOMES[name]}"), name)
