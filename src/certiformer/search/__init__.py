"""From a target and an epsilon to a proved transformer.

Names are imported when they are used: what only reads a run folder needs no JAX.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from certiformer.search.estimate import dry_run as dry_run
    from certiformer.search.estimate import dry_run_prove as dry_run_prove
    from certiformer.search.finite import build_table as build_table
    from certiformer.search.finite import table_from_model as table_from_model
    from certiformer.search.job import build as build
    from certiformer.search.job import prove as prove
    from certiformer.search.request import Options as Options
    from certiformer.search.sequences import build_sequences as build_sequences
    from certiformer.search.sequences import build_sort as build_sort
    from certiformer.search.under_mask import build_under_mask as build_under_mask

_HOMES = {
    **dict.fromkeys(("dry_run", "dry_run_prove"), "estimate"),
    **dict.fromkeys(("build_table", "table_from_model"), "finite"),
    "Options": "request",
    **dict.fromkeys(("build_sequences", "build_sort"), "sequences"),
    "build_under_mask": "under_mask",
    **dict.fromkeys(("build", "prove"), "job"),
}
__all__ = sorted(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
