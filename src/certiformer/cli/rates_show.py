"""`certiformer rates show`: what a store of finished jobs holds, and questions about it in SQL."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import Positional, arg

from certiformer.cli.options import Flag
from certiformer.cli.rates_tables import say_faults, say_slopes, say_table
from certiformer.cli.terminal import Terminal
from certiformer.errors import BadInput
from certiformer.kernel.files import parse_json, read_bytes

if TYPE_CHECKING:
    from certiformer.sweep import Store

SUMMARY = "What a store of finished jobs holds: studies, jobs, rows; answers to SQL questions, and CSV."
EXAMPLES = """
  certiformer rates show                                    # every run under runs/
  certiformer rates show runs/rates-jackson                 # its jobs, its slopes and its first rows
  certiformer rates show runs/rates-jackson --sql "select mh, avg(mse) from rows group by mh order by mh"
  certiformer rates show runs/rates-jackson --csv rows.csv  # all rows
  certiformer rates show runs/rates-jackson --json          # one JSON object

SQL sees two tables: rows (job, function, the columns of the study) and jobs (job, function, config, state, tries, reason).
exit codes: 0 shown, 2 there is no store, or DuckDB does not take the question
"""
LEDGER, STORE, RESULT = "ledger.sqlite", "store", "result.json"
STATES = ("done", "open", "running", "failed")


@dataclass(kw_only=True)
class Options:
    """The flags of `rates show`."""

    directory: Annotated[Positional[str], arg(metavar="[DIR]", help_behavior_hint="")] = ""
    """the folder of a run, or a store (default: all under runs/)"""
    sql: Annotated[str | None, arg(metavar="QUESTION", help_behavior_hint="")] = None
    """ask DuckDB (needs the extra sql)"""
    csv: Annotated[str | None, arg(metavar="FILE.csv", help_behavior_hint="")] = None
    """write all rows there"""
    force: Flag = False
    """replace an existing FILE.csv"""
    rows: Annotated[int, arg(metavar="N")] = 12
    """how many rows are shown"""
    json: Flag = False
    """print one JSON object"""
    quiet: Flag = False
    """no notes"""


def run(options: Options, terminal: Terminal) -> int:
    """Show one store, or one line for each."""
    from certiformer.sweep import Store

    if not options.directory:
        if options.sql is not None or options.csv is not None:
            raise BadInput("--sql and --csv are about one store: certiformer rates show DIR ...")
        return _show_all(terminal)
    place = store_of(Path(options.directory))
    with Store(place, say=terminal.note) as store:
        if options.sql is not None:
            return _ask(store, options.sql, terminal)
        if options.csv is not None:
            from certiformer.sweep import to_csv

            count = to_csv(store, options.csv, force=options.force)
            terminal.note(f"wrote {count:,} rows to {options.csv}")
        return _show(store, Path(options.directory), options, terminal)


def store_of(folder: Path) -> Path:
    """The store in a folder: itself, or the one that a run keeps inside."""
    for place in (folder, folder / STORE):
        if (place / LEDGER).is_file():
            return place
    if not folder.exists():
        raise BadInput(f"{folder} does not exist; `certiformer rates STUDY` makes a store")
    raise BadInput(f"{folder} holds no store of finished jobs ({LEDGER} is missing)")


def standing(store: Store) -> dict[str, dict[str, int]]:
    """For every study how many jobs are in which state."""
    found: dict[str, dict[str, int]] = {}
    for job, state in store.jobs():
        mine = found.setdefault(study_name(job.function), dict.fromkeys(STATES, 0))
        mine[state] = mine.get(state, 0) + 1
    return found


def study_name(function: str) -> str:
    """The study that a job function belongs to.

    >>> study_name("certiformer.rates.studies.width:run"), study_name("my.module:run")
    ('width', 'my.module:run')
    """
    head, _, tail = function.partition(":")[0].rpartition(".")
    return tail if head == "certiformer.rates.studies" else function


def none_yet(store: Store) -> str | None:
    """The sentence for a store without results."""
    counts = store.counts()
    if counts["done"]:
        return None
    if not sum(counts.values()):
        return f"{store.path} holds no job yet"
    waiting = ", ".join(f"{counts[state]} {state}" for state in ("open", "running", "failed") if counts[state])
    return f"no job of {store.path} has finished yet ({waiting}); the command that made it goes on with them"


def _show_all(terminal: Terminal) -> int:
    from certiformer.sweep import Store

    folders = sorted(path for path in Path("runs").glob("*") if (path / STORE / LEDGER).is_file())
    if terminal.json:
        data = {}
        for folder in folders:
            with Store(folder / STORE, say=terminal.note) as store:
                data[str(folder)] = standing(store)
        terminal.emit({"stores": data})
        return 0
    if not folders:
        terminal.say("there is no run of a study under runs/; `certiformer rates` lists the studies")
    rows = []
    for folder in folders:
        with Store(folder / STORE, say=terminal.note) as store:
            rows += [
                [str(folder), name, *(counts[state] for state in STATES)] for name, counts in standing(store).items()
            ]
    if rows:
        say_table(["run", "study", *STATES], rows, terminal)
    return 0


def _show(store: Store, folder: Path, options: Options, terminal: Terminal) -> int:
    from certiformer.report.rates_data import plain
    from certiformer.sweep import read_table

    table = read_table(store)
    result = _result(folder)
    failed = [{"id": job.id, "reason": reason} for job, reason in store.failed()]
    first = table.slice(0, max(options.rows, 0)).to_pylist()
    if terminal.json:
        data = {"store": str(store.path), "studies": standing(store), "failed": failed, "rows": table.num_rows}
        known = {key: result.get(key) for key in ("study", "findings", "series", "limits")} if result else None
        terminal.emit(
            {**data, "columns": table.column_names, "first": plain({"series": first})["series"], "result": known}
        )
        return 0
    terminal.fact("store", str(store.path))
    for name, counts in standing(store).items():
        terminal.fact(
            "study", f"{name}: " + ", ".join(f"{counts[state]:,} {state}" for state in STATES if counts[state])
        )
    say_faults({"failed": failed, "missing": []}, terminal)
    sentence = none_yet(store)
    if sentence is not None:
        terminal.fact("rows", sentence)
        return 0
    if result and result.get("series"):
        terminal.say()
        say_slopes(result["series"], terminal)
    if first:
        terminal.say()
        names = [name for name in table.column_names if name != "function"]
        say_table(names, [[_short(name, row[name]) for name in names] for row in first], terminal)
    terminal.fact("rows", f"{table.num_rows:,} in all, {table.num_columns} columns")
    place = shlex.quote(str(folder))
    terminal.facts("next", [f'certiformer rates show {place} --sql "select ... from rows"'])
    return 0


def _short(name: str, value: Any) -> Any:
    return str(value)[:8] if name == "job" else value


def _ask(store: Store, sql: str, terminal: Terminal) -> int:
    from certiformer.report.rates_data import plain
    from certiformer.sweep import query

    try:
        answer = query(store, sql)
    except BadInput as refused:
        sentence = none_yet(store)
        raise BadInput(f"{refused}; {sentence}" if sentence else str(refused)) from None
    if terminal.json:
        terminal.emit({"rows": plain({"series": answer})["series"]})
    elif answer:
        say_table(list(answer[0]), [list(row.values()) for row in answer], terminal)
    else:
        terminal.say("no rows")
    return 0


def _result(folder: Path) -> dict[str, Any] | None:
    """The result beside the store, if there is one that can be read."""
    try:
        found = parse_json(read_bytes(folder / RESULT), RESULT)
    except BadInput:
        return None
    return found if isinstance(found, dict) else None
