"""`certiformer theorem`: the list of theorems, or one of them in full."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import Positional, arg

from certiformer.cli.options import Flag
from certiformer.cli.terminal import Terminal

if TYPE_CHECKING:
    from certiformer.theorem import Entry

SUMMARY = "List the theorems that the guarantees rest on, or print one: statement, assumptions, sources."
EXAMPLES = """
  certiformer theorem                                  # all, by the verb that uses them, with their status
  certiformer theorem voronoi_second_order             # one in full
  certiformer theorem voronoi_second_order --bibtex    # its sources for your paper
  certiformer theorem --bibtex > sources.bib           # the sources of all
  certiformer theorem hardmax_not_contextual --run     # its experiment, executed here: what is asked, what is found

exit codes: 0 done, 1 the experiment found something else than its page shows, 2 no such theorem, or none to run
"""


@dataclass(kw_only=True)
class Options:
    """The flags of `theorem`."""

    id: Annotated[Positional[str | None], arg(metavar="[ID]", help_behavior_hint="")] = None
    """a theorem's id, or its last part (default: list them all)"""
    bibtex: Flag = False
    """print the sources as BibTeX entries"""
    run: Flag = False
    """execute the example of the theorem and print what is found"""
    json: Flag = False
    """print one JSON object"""


def run(options: Options, terminal: Terminal) -> int:
    """Print what was asked for; returns the exit code."""
    from certiformer.theorem import all_theorems, find

    if options.run:
        return _run(options, terminal)

    entries = [find(options.id)] if options.id else all_theorems()
    if options.bibtex:
        _bibtex(entries, terminal)
    elif terminal.json:
        facts = [_facts(entry, whole=bool(options.id)) for entry in entries]
        terminal.emit(facts[0] if options.id else {"theorems": facts})
    elif options.id:
        _print_one(entries[0], terminal)
    else:
        _print_all(entries, terminal)
    return 0


def _run(options: Options, terminal: Terminal) -> int:
    """Execute the experiment of one theorem."""
    from certiformer.api.studies import theorem
    from certiformer.theorem import find

    steps = theorem(options.id, bibtex=options.bibtex, run=True)
    as_written = all(step.as_written for step in steps)
    if terminal.json:
        steps_told = [{"asked": step.asked, "found": step.answer, "as_written": step.as_written} for step in steps]
        terminal.emit({"id": find(str(options.id)).record.id, "as_written": as_written, "steps": steps_told})
        return 0 if as_written else 1
    terminal.say(find(str(options.id)).record.title, "strong")
    for step in steps:
        first, *more = step.asked.split("\n")
        terminal.page("\n".join([f">>> {first}", *(f"... {line}" for line in more)]))
        if step.answer:
            terminal.page(step.answer)
        if not step.as_written:
            terminal.say("(its page shows something else)", "strong")
    return 0 if as_written else 1


def _bibtex(entries: list[Entry], terminal: Terminal) -> None:
    from certiformer.theorem import bibtex

    keys = list(dict.fromkeys(key for entry in entries for key in entry.record.citations))
    if terminal.json:
        terminal.emit({"bibtex": {key: bibtex(key) for key in keys}})
    else:
        terminal.page("\n\n".join(bibtex(key) for key in keys))


def _facts(entry: Entry, whole: bool) -> dict[str, Any]:
    record = entry.record
    facts = {
        "id": record.id,
        "title": record.title,
        "kind": record.kind,
        "verb": record.verb,
        "status": entry.status,
        "sources": list(record.sources),
        "assumptions": [{"name": a.name, "text": a.text, "status": a.status} for a in record.assumptions],
        "uses": list(record.uses),
        "axiom": _axiom(entry),
    }
    return {**facts, "sections": entry.sections} if whole else facts


# What an axiom speaks of -> the claims that may rest on it.
CLAIMS = {
    "functions on a box": "functions on a box (build, prove)",
    "sequences": "all sequences over an alphabet (build)",
    "machine.json": "Turing machines (compile machine)",
    "automaton.json": "automata (compile automaton)",
    "learner.json": "in-context learners (compile incontext)",
    "hits.json": "recommenders (recommend guarantee)",
}


def _axiom(entry: Entry) -> dict[str, Any] | None:
    """Of an axiom: what is known of its proof, and which claims may rest on it; None for other theorems."""
    from certiformer.kernel.certificate import AXIOMS
    from certiformer.report.wording import AXIOM_STATUS

    record = entry.record
    if record.id != f"axioms.{record.name}" or record.name not in AXIOMS:
        return None
    return {"status": AXIOM_STATUS, "machine_checked": False, "claims": CLAIMS[AXIOMS[record.name]]}


def _print_axioms(entries: list[Entry], terminal: Terminal) -> None:
    """The axioms by the claims that may rest on them."""
    from certiformer.report.wording import AXIOM_STATUS

    axioms = [(entry.record, facts["claims"]) for entry in entries if (facts := _axiom(entry))]
    terminal.say("axioms: a certificate may rest on these, and `check` then names them", "strong")
    width = max(len(record.id) for record, _ in axioms)
    for claims in CLAIMS.values():
        own = [record for record, named in axioms if named == claims]
        if own:
            terminal.say(f"  for claims about {claims}")
        for record in own:
            terminal.say(f"    {record.id:<{width}}  {AXIOM_STATUS}  {record.title}")
    terminal.say("  a proof that a machine has checked: none yet")
    terminal.say()


def _print_all(entries: list[Entry], terminal: Terminal) -> None:
    _print_axioms(entries, terminal)
    entries = [entry for entry in entries if _axiom(entry) is None]
    for verb in dict.fromkeys(entry.record.verb for entry in sorted(entries, key=lambda entry: entry.record.verb)):
        terminal.say(f"used by {verb}" if verb != "theorem" else "on their own", "strong")
        own = sorted((e for e in entries if e.record.verb == verb), key=lambda e: (e.status, e.record.id))
        width = max(len(entry.record.id) for entry in own)
        for entry in own:
            terminal.say(f"  {entry.record.id:<{width}}  {entry.status:<11}  {entry.record.title}")
        terminal.say()
    terminal.say(
        "status: checked (`check` verifies each use of it by a rule), tested (on examples, by tests of its own),"
    )
    terminal.say("        implemented (code), stated (text only); the proofs are written out, for people to read")
    terminal.say("certiformer theorem ID prints one in full")


def _print_one(entry: Entry, terminal: Terminal) -> None:
    from certiformer.theorem import cite

    record = entry.record
    terminal.say(record.title, "strong")
    axiom = _axiom(entry)
    terminal.say(f"{record.id}: {record.kind}, {entry.status}, used by `{record.verb}`")
    if axiom:
        terminal.say(f"an axiom, {axiom['status']} (checked by a machine: not yet), for claims about {axiom['claims']}")
    for name, text in entry.sections.items():
        _heading(name, terminal)
        terminal.page(textwrap.indent(text, "  "))
    if record.assumptions:
        _heading("Which assumptions are checked", terminal)
        for assumption in record.assumptions:
            terminal.say(f"  {assumption.status:<8} {assumption.name}: {assumption.text}")
    _heading("Works cited", terminal)
    for key in dict.fromkeys(record.citations):
        terminal.say(f"  {cite(key)}")
    if record.uses:
        terminal.page(f"\nuses {', '.join(record.uses)}")


def _heading(text: str, terminal: Terminal) -> None:
    terminal.say()
    terminal.say(text, "strong")
