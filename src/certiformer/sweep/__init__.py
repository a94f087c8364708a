"""Many jobs: in this process, on all cores, or on a Ray cluster; and the store where their results land.

Names are imported when they are used: the store needs Apache Arrow, which the extra `rates` brings, and a study that is
only listed does not.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from certiformer.errors import MissingExtra

if TYPE_CHECKING:
    from certiformer.sweep.engines import ENGINES as ENGINES
    from certiformer.sweep.job import Job as Job
    from certiformer.sweep.job import Row as Row
    from certiformer.sweep.ledger import StoreFault as StoreFault
    from certiformer.sweep.questions import query as query
    from certiformer.sweep.questions import read_table as read_table
    from certiformer.sweep.questions import to_csv as to_csv
    from certiformer.sweep.run import Progress as Progress
    from certiformer.sweep.run import run_jobs as run_jobs
    from certiformer.sweep.store import Store as Store
    from certiformer.sweep.tracker import Tracker as Tracker
    from certiformer.sweep.trackers import open_tracker as open_tracker

_HOMES = {
    "ENGINES": "engines",
    **dict.fromkeys(("Job", "Row"), "job"),
    "StoreFault": "ledger",
    **dict.fromkeys(("query", "read_table", "to_csv"), "questions"),
    **dict.fromkeys(("Progress", "run_jobs"), "run"),
    "Store": "store",
    "Tracker": "tracker",
    "open_tracker": "trackers",
}
__all__ = sorted(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] != "pyarrow":
            raise
        remedy = 'pip install "certiformer[rates]"'
        raise MissingExtra(f"results of studies are kept by Apache Arrow, which is not installed: {remedy}") from None
