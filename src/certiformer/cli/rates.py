"""`certiformer rates`: the studies of approximation rates. Each has flags of its own, taken from its options, beside the
common ones; which they are is known only once the study is, so this verb chooses its options by the first argument."""

from __future__ import annotations

import difflib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, make_dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

from tyro.conf import Positional, arg

from certiformer.cli.number_lists import is_number_list, spread_arguments
from certiformer.cli.options import Flag, OptionalFile, OptionalFolder, given_config
from certiformer.cli.terminal import Terminal
from certiformer.errors import BadInput
from certiformer.rates.studies import STUDIES, load_study

if TYPE_CHECKING:
    from certiformer.rates.study import Study

UNFINISHED = 3  # the exit code
SUMMARY = "Measure how fast errors fall with size: every claim about approximation rates is one study with a picture."
KINDS = {
    "pod": "singular values, their decay and C_1 of any kernel rho(u, v)",
    "show": "what a store holds: jobs, results, SQL, CSV",
}
EXAMPLES = """
  certiformer rates                                  # the studies, one line each
  certiformer rates jackson                          # minutes on two cores; writes runs/rates-jackson/report.html
  certiformer rates jackson --mh 1:16 --alpha 1 2    # flags of the study: certiformer rates jackson --help
  certiformer rates width --full --engine ray        # the size of the paper, on a cluster
  certiformer rates pod "exp(-3*(u-v)**2)" --ranks 8 # singular values of a kernel
  certiformer rates show runs/rates-jackson          # what is finished; --sql "select ..." asks more

exit codes: 0 done, 2 a mistake in the flags or the store, 3 jobs are missing or have failed
"""
STUDY_EXAMPLES = """
  certiformer rates {name}                  # writes runs/rates-{name}; run it again to go on
  certiformer rates {name} --full           # the size of the paper
  certiformer rates {name} --engine here    # in this process; all engines give the same numbers
  certiformer rates show runs/rates-{name}  # what is finished

exit codes: 0 done, 2 a mistake in the flags or the store, 3 jobs are missing or have failed, 130 interrupted
"""


@dataclass(frozen=True, kw_only=True)
class Options:
    """The flags of `rates` alone."""

    name: Annotated[Positional[str], arg(metavar="[STUDY]", help_behavior_hint="")] = ""
    """the study; without one they are listed"""
    json: Flag = False
    """print one JSON object"""
    quiet: Flag = False
    """no notes"""


@dataclass(frozen=True, kw_only=True)
class Common:
    """The flags that every study has."""

    full: Flag = False
    """the size of the paper: other defaults for the flags above"""
    engine: Annotated[str, arg(metavar="ENGINE")] = "cores"
    """where jobs run: here, cores, ray (a cluster on this machine), or the address of one, ray://HOST:PORT"""
    workers: Annotated[int | None, arg(metavar="N", help_behavior_hint="(default: one a core)")] = None
    """how many jobs run at once"""
    store: OptionalFolder = None
    """where finished jobs are kept (default: in the folder of --out)"""
    out: OptionalFolder = None
    """the folder to write (default: runs/rates-STUDY); a run that was stopped goes on there"""
    csv: Annotated[str | None, arg(metavar="FILE.csv", help_behavior_hint="")] = None
    """write the rows of all finished jobs there, too"""
    force: Flag = False
    """replace an existing FILE.csv"""
    tracker: Annotated[str | None, arg(metavar="NAME", help_behavior_hint="")] = None
    """tell wandb, trackio, mlflow or a FILE.jsonl how it goes"""
    config: OptionalFile = None
    """read flags from a TOML file; flags given here win"""
    json: Flag = False
    """print one JSON object"""
    quiet: Flag = False
    """no progress"""


def choose(verb: str, given: Sequence[str]) -> tuple[Any, str, list[str]]:
    """The module-like command that the first argument asks for, its name, and the rest of the arguments."""
    if not given or given[0].startswith("-"):
        return SimpleNamespace(Options=Options, SUMMARY=SUMMARY, EXAMPLES=EXAMPLES, run=run), verb, list(given)
    name, rest = given[0], list(given[1:])
    if name not in STUDIES and (near := difflib.get_close_matches(name, KINDS, n=1)):
        raise BadInput(f"there is no study {name!r}; did you mean {near[0]!r}?")
    study = load_study(name)
    lists = [field for field, kind in get_type_hints(study.options).items() if is_number_list(kind)]
    rest = spread_arguments(rest, lists)
    command = SimpleNamespace(
        Options=study_options(study, full="--full" in rest or given_config(rest).get("full") is True),
        SUMMARY=study.question,
        EXAMPLES=STUDY_EXAMPLES.format(name=name),
        run=lambda options, terminal: _run_study(study, options, terminal),
    )
    return command, f"{verb} {name}", rest


def study_options(study: Study, full: bool) -> type:
    """The flags of a study and the common ones in one class; `full` puts the defaults of the paper's size in place."""
    twice = {each.name for each in fields(study.options)} & {each.name for each in fields(Common)}
    if twice:
        raise TypeError(f"the study {study.name} has options that every study has: {', '.join(sorted(twice))}")
    types = get_type_hints(study.options, include_extras=True)
    changed = [(name, types[name], field(default=value)) for name, value in study.full.items()] if full else []
    return make_dataclass("Options", changed, bases=(Common, study.options), frozen=True)


def run(options: Options, terminal: Terminal) -> int:
    """List the studies."""
    if options.name:
        raise BadInput(f"the name of the study comes first: certiformer rates {options.name} ...")
    if terminal.json:
        terminal.emit({"studies": STUDIES, "others": KINDS})
        return 0
    width = max(map(len, STUDIES)) + 2
    terminal.page("studies (certiformer rates STUDY --help has the flags of each):\n")
    for name, line in STUDIES.items():
        terminal.entry(name, width, line)
    terminal.page("\nbeside them:\n")
    for name, line in KINDS.items():
        terminal.entry(name, width, line)
    terminal.page(f"\nexamples:\n{EXAMPLES.rstrip()}")
    return 0


def _run_study(study: Study, options: Any, terminal: Terminal) -> int:
    """Run the study; returns the exit code."""
    from certiformer.cli.progress import progress_for
    from certiformer.cli.rates_tables import say_result
    from certiformer.cli.signals import interrupted_code
    from certiformer.rates.run import STORE, Request, folder_of, run_study

    began = time.monotonic()
    chosen = study.options(**{each.name: getattr(options, each.name) for each in fields(study.options)})
    request = Request(**{each.name: getattr(options, each.name) for each in fields(Request)})
    try:
        with progress_for(terminal) as progress:
            outcome = run_study(study, chosen, request, terminal.command, progress, terminal.note)
    except KeyboardInterrupt as interrupt:
        place = Path(request.store or folder_of(study, request) / STORE)
        kept = f"what was finished is in {place}, and the same command goes on"
        sentence = f"interrupted; {kept if place.exists() else 'nothing was finished'}: {terminal.command}"
        return terminal.error(sentence, interrupted_code(interrupt))
    seconds = round(time.monotonic() - began, 3)
    if terminal.json:
        said = {"seconds": seconds, "directory": str(outcome.directory), "notes": outcome.notes}
        terminal.emit({**outcome.data, **said})
    else:
        say_result(outcome.data, outcome.directory, seconds, terminal)
    for note in outcome.notes:
        terminal.note(f"note: {note}")
    return 0 if outcome.complete else UNFINISHED
