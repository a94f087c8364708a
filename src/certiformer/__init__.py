"""certiformer: transformers with mathematical guarantees.

>>> import certiformer
>>> run = certiformer.build("sin(x1)", on="[0, 2*pi]", eps=0.05)
>>> run.certified
True

`build` and `prove` return a `Run`, `compile` a `CompiledProgram`; `load` opens the folder of either, and `check` is the
checker; `size` says how large a transformer for a class of functions must be. Everything is imported on first use, so that
`import certiformer` alone is fast and runs no code but its own (see `certiformer.isolation`; hence no `__future__` and
no `typing` here).
"""

from certiformer._version import __version__ as __version__
from certiformer.errors import BadInput as BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from certiformer.compiled import CompiledProgram as CompiledProgram
    from certiformer.compiled import compile as compile  # noqa: A004
    from certiformer.curves import Curve as Curve
    from certiformer.curves import curve as curve
    from certiformer.kernel.certificate import Certificate as Certificate
    from certiformer.kernel.certificate import Outcome as Outcome
    from certiformer.kernel.check import Verdict as Verdict
    from certiformer.kernel.check import check as check
    from certiformer.model import Transformer as Transformer
    from certiformer.model.from_torch import from_torch as from_torch
    from certiformer.search import Run as Run
    from certiformer.search import build as build
    from certiformer.search import prove as prove
    from certiformer.sizes import size as size

_HOMES = {
    "Certificate": "kernel.certificate",
    "Outcome": "kernel.certificate",
    "Verdict": "kernel.check",
    "check": "kernel.check",
    "CompiledProgram": "compiled",
    "compile": "compiled",
    "Transformer": "model",
    "from_torch": "model.from_torch",
    "Curve": "curves",
    "curve": "curves",
    "Run": "search",
    "build": "search",
    "prove": "search",
    "size": "sizes",
}

__all__ = [
    "BadInput",
    "Certificate",
    "CompiledProgram",
    "Curve",
    "Outcome",
    "Run",
    "Transformer",
    "Verdict",
    "__version__",
    "build",
    "check",
    "compile",
    "curve",
    "from_torch",
    "load",
    "prove",
    "size",
]


def load(directory: "str | Path") -> "Run | CompiledProgram":
    """Open a run folder, or that of a compiled program. Reads only: what the certificate says is not re-checked here,
    `check` does that."""
    from certiformer.kernel.certificate import read_certificate
    from certiformer.kernel.files import PROGRAM

    if read_certificate(directory).subject == PROGRAM:
        from certiformer.compiled import load_compiled

        return load_compiled(directory)
    from certiformer.search import load_run

    return load_run(directory)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'certiformer' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"certiformer.{_HOMES[name]}"), name)
