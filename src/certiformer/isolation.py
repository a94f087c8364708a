"""Starting an interpreter that runs this package and nothing that lies where a run folder could put it.

`python -I` ignores PYTHONPATH and every other PYTHON... variable, the user's own start-up files and the current folder.
What it then may not find (a checkout, an installation for one user) is named to it by absolute folders. Of the
environment only what the terminal and the system's loader need is passed on.

`certiformer check` begins here, before anything else is imported: a module called `json` in a folder that PYTHONPATH names
would be imported otherwise. Hence this module imports `os` and `sys` only, not even `__future__`.
"""

import os
import sys

WORKER, COMMAND = "certiformer.kernel.workers", "certiformer.cli.main"

# This package is imported from `home` whatever else is installed; what it needs is looked for there last.
BOOT = """
import sys
home, libraries, job = sys.argv[1:4]
sys.argv[:] = ["certiformer", *sys.argv[4:]]
sys.path.insert(0, home)
import certiformer
sys.path[:1] = []
sys.path += [folder for folder in (home, libraries) if folder not in sys.path]
from importlib import import_module
sys.exit(import_module(job).main())
"""

# How things look on a terminal, which language and devices there are, whether defects are shown; none of them names code.
KEPT = (
    "TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLUMNS", "LINES",
    "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_MESSAGES", "TZ", "TMPDIR",
    "CERTIFORMER_DEBUG", "CUDA_VISIBLE_DEVICES", "JAX_PLATFORMS", "NPROC", "OMP_NUM_THREADS",
)  # fmt: skip
# Some interpreters do not start without these; relative entries, which mean the current folder, are left out.
LIBRARY_PATHS = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")


def environment() -> dict[str, str]:
    """The variables that an isolated interpreter is given."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    for name in LIBRARY_PATHS:
        folders = [folder for folder in os.environ.get(name, "").split(os.pathsep) if os.path.isabs(folder)]
        if folders:
            kept[name] = os.pathsep.join(folders)
    return {"PATH": os.defpath, **kept}


def code_folders() -> tuple[str, str]:
    """The folder that holds this package, and the one that holds python-flint or, before that is loaded, what is installed
    for this user alone (the same folder again where there is nothing to add)."""
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    flint, site = sys.modules.get("flint"), sys.modules.get("site")
    if flint is not None and flint.__file__:
        return home, os.path.dirname(os.path.dirname(os.path.abspath(flint.__file__)))
    return home, (site is not None and site.ENABLE_USER_SITE and site.USER_SITE) or home


def command(job: str, *arguments: str) -> list[str]:
    """The command line of an isolated interpreter that runs `main` of the module `job`."""
    quiet = ["-B"] if sys.dont_write_bytecode else []
    return [sys.executable, "-I", *quiet, "-c", BOOT, *code_folders(), job, *arguments]


def become(*arguments: str) -> None:
    """Go on as an isolated `certiformer ...`: the same process, terminal and standard streams. Does not return."""
    os.execve(sys.executable, command(COMMAND, *arguments), environment())


def code_inside(folder: str) -> str | None:
    """A folder inside `folder` from which this process imports code, or None.

    Whoever made such a run folder made its checker, too."""
    around = os.path.join(os.path.realpath(folder), "")
    for place in (*code_folders(), sys.prefix, *sys.path):
        if os.path.join(os.path.realpath(place), "").startswith(around):
            return os.path.realpath(place)
    return None
