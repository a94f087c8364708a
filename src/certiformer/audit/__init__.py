"""Which guarantees hold for a trained checkpoint, with every constant shown.

`audit(path)` reads any checkpoint into one form (`audit.form`), accounts for every parameter, measures every head and
map, and says theorem by theorem what holds."""

from typing import TYPE_CHECKING, Any

from certiformer.arguments import make_callable

if TYPE_CHECKING:
    from certiformer.audit.result import Audit as Audit
    from certiformer.audit.result import audit as audit
    from certiformer.audit.verdict import Given as Given

_HOMES = {"Audit": "result", "audit": "result", "Given": "verdict"}
__all__ = sorted(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


make_callable(__name__, "certiformer.api.auditing", "audit")  # `certiformer.audit` is the verb, too
