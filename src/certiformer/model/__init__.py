"""The one transformer: configuration, forward pass, files, cost.

Constructed, compiled, trained and loaded transformers are all `Transformer`; there is no second forward pass. Names are
imported when they are used: configurations and layouts need no JAX, so a compiler that only writes weights does without.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from certiformer.model.config import Attention as Attention
    from certiformer.model.config import Block as Block
    from certiformer.model.config import Code as Code
    from certiformer.model.config import Config as Config
    from certiformer.model.config import FeedForward as FeedForward
    from certiformer.model.config import Heads as Heads
    from certiformer.model.config import Input as Input
    from certiformer.model.config import Norm as Norm
    from certiformer.model.config import Readout as Readout
    from certiformer.model.cost import Cost as Cost
    from certiformer.model.layout import Spec as Spec
    from certiformer.model.layout import tensor_specs as tensor_specs
    from certiformer.model.store import from_bytes as from_bytes
    from certiformer.model.store import load as load
    from certiformer.model.store import save as save
    from certiformer.model.transformer import Transformer as Transformer

_HOMES = {
    **dict.fromkeys(
        ("Attention", "Block", "Code", "Config", "FeedForward", "Heads", "Input", "Norm", "Readout"), "config"
    ),
    "Cost": "cost",
    **dict.fromkeys(("Spec", "tensor_specs"), "layout"),
    **dict.fromkeys(("from_bytes", "load", "save"), "store"),
    "Transformer": "transformer",
}
__all__ = sorted(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
