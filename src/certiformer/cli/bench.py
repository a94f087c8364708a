"""`certiformer bench`: runs a script of the source checkout's `benchmarks` folder and passes its exit code on."""

from __future__ import annotations

import difflib
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

import certiformer
from certiformer.cli.options import Flag
from certiformer.cli.terminal import Terminal
from certiformer.errors import BadInput

SUMMARY = "Repeat the figures that benchmarks/README.md claims, on this machine (needs the source checkout)."
EXAMPLES = """
  certiformer bench check                 # everything we claim for build, prove and check
  certiformer bench check --list          # the names of its cases
  certiformer bench check sine-search     # one case
  certiformer bench check --json          # one JSON object
  certiformer bench compile --quick       # a few programs against Tracr
  certiformer bench train                 # training 1,000 models, against PyTorch one by one
  certiformer bench agreement --quick     # random networks: does the kernel accept what the search calls proved?
  certiformer bench soundness             # an attack on the checker: forged folders, malformed files, planted faults
  certiformer bench soundness --trials 1000000 --seed 7 --workers 8

exit codes: 0 every figure was reached, 1 one was not, 2 there are no benchmarks here
"""


@dataclass(kw_only=True)
class Options:
    """The flags of `bench`."""

    name: Annotated[Positional[str], arg(metavar="NAME")]
    """which figures: the name of a script in benchmarks/"""
    cases: Annotated[Positional[tuple[str, ...]], arg(metavar="[CASE ...]", help_behavior_hint="")] = ()
    """some of its cases (default: all)"""
    quick: Flag = False
    """a short selection, where the benchmark has one"""
    list: Flag = False
    """print the names of the cases"""
    json: Flag = False
    """print one JSON object"""
    quiet: Flag = False
    """no progress"""
    trials: Annotated[int | None, arg(metavar="N", help_behavior_hint="(for soundness, agreement)")] = None
    """how many forgeries, sources and forms together, or networks"""
    mutants: Annotated[int | None, arg(metavar="N", help_behavior_hint="(for soundness)")] = None
    """how many planted faults"""
    malformed: Annotated[int | None, arg(metavar="N", help_behavior_hint="(for soundness)")] = None
    """how many malformed folders"""
    seed: Annotated[int | None, arg(metavar="S", help_behavior_hint="(for soundness)")] = None
    """what is drawn"""
    kind: Annotated[str | None, arg(metavar="KINDS", help_behavior_hint="(for soundness)")] = None
    """kinds of claim, with commas; --list names them"""
    workers: Annotated[int | None, arg(metavar="N", help_behavior_hint="(for soundness)")] = None
    """how many processes"""
    against: Annotated[str | None, arg(metavar="DIR", help_behavior_hint="(for check_ratio)")] = None
    """another checkout, whose check is the measure"""
    bases: Annotated[str | None, arg(metavar="DIR", help_behavior_hint="(for soundness)")] = None
    """keep the honest folders here, and use those that are there"""


NUMBERED = (
    "trials",
    "mutants",
    "malformed",
    "seed",
    "kind",
    "workers",
    "against",
    "bases",
)  # passed on where they are given


def run(options: Options, terminal: Terminal) -> int:
    """Run the script with this interpreter and this package; returns its exit code."""
    del terminal
    script = find_script(options.name, Path(certiformer.__file__).resolve().parents[2])
    flags = [f"--{name}" for name in ("quick", "list", "json", "quiet") if getattr(options, name)]
    flags += [f"--{name}={value}" for name in NUMBERED if (value := getattr(options, name)) is not None]
    package = str(Path(certiformer.__file__).resolve().parents[1])
    path = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, str(script), *options.cases, *flags]
    return subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, check=False).returncode


def find_script(name: str, checkout: Path) -> Path:
    """The script of a benchmark, or one sentence why there is none."""
    folder = checkout / "benchmarks"
    if not (checkout / "pyproject.toml").is_file() or not folder.is_dir():
        raise BadInput("the benchmarks are part of the source checkout, and certiformer was installed without it")
    names = sorted(path.stem for path in folder.glob("*.py") if not path.stem.startswith("_"))
    if name not in names:
        near = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names) or 'none'}"
        raise BadInput(f"there is no benchmark {name!r}; {hint}")
    return folder / f"{name}.py"
