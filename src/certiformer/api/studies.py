"""`rates`, `size` and `theorem`: what is measured, what is proved about sizes, and the theorems behind it all."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import fields
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, overload

from certiformer.errors import BadInput

if TYPE_CHECKING:
    from certiformer.rates.run import Outcome
    from certiformer.sizes import Budget, Statement
    from certiformer.theorem import Entry
    from certiformer.theorem.experiment import Step


def rates(
    study: str,
    *,
    full: bool = False,
    engine: str = "cores",
    workers: int | None = None,
    store: str | None = None,
    out: str | None = None,
    csv: str | None = None,
    force: bool = False,
    tracker: str | None = None,
    progress: Callable[[str, float, float | None, str], None] | None = None,
    **options: Any,
) -> Outcome:
    """Run a study of approximation rates: what is missing is computed, and the folder is written.

    The store of finished jobs needs `certiformer[rates]`.

    **Arguments:**

    - `study`: its name, one of `certiformer.rates.studies.STUDIES`.
    - `full`: the size of the paper: other defaults for the options of the study.
    - `engine`: where jobs run: `here`, `cores`, `ray`, or the address of a cluster.
    - `workers`: how many jobs run at once (default: one for each core).
    - `store`: where finished jobs are kept (default: in the folder of `out`).
    - `out`: the folder to write (default: `runs/rates-STUDY`); a run that was stopped goes on there.
    - `csv`: a file for the rows of all finished jobs, too.
    - `force`: whether `csv` may replace a file.
    - `tracker`: `wandb`, `trackio`, `mlflow` or a `FILE.jsonl` that is told how it goes.
    - `progress`: called with the stage, what is done, all there is, and a note.
    - `options`: those of the study, as on its page.

    The result has `data` (series with slopes and intervals, tables, findings), `directory` and `complete`.

    >>> import certiformer
    >>> certiformer.rates("jackson", step=3)
    Traceback (most recent call last):
    ...
    certiformer.errors.BadInput: the study jackson has no option 'step'; did you mean 'steps'?
    """
    from certiformer.rates.run import Request, run_study
    from certiformer.rates.studies import load_study

    chosen = load_study(study)
    known = [option.name for option in fields(chosen.options)]
    for name in options:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(known)}"
            raise BadInput(f"the study {study} has no option {name!r}; {hint}")
    wanted = chosen.options(**{**(chosen.full if full else {}), **options})
    request = Request(engine, workers, store, out, csv, force, tracker)
    silent = lambda *_: None  # noqa: E731
    return run_study(chosen, wanted, request, f"certiformer.rates({study!r})", progress or silent, silent)


def size(
    kind: str,
    *,
    eps: str | float | Fraction | None = None,
    weights: int | None = None,
    bits: int = 64,
    constant: str | float | Fraction | None = None,
    dimension: int | None = None,
    smoothness: int | None = None,
    radius: str | float | Fraction | None = None,
    ridges: int | None = None,
    inputs: int | None = None,
    depth: int | None = None,
    states: int | None = None,
    symbols: int | None = None,
    length: int | None = None,
    units: int | None = None,
    layers: int | None = None,
    heads: int | None = None,
    width: int | None = None,
    over: str | None = None,
    values: Sequence[Any] | None = None,
) -> Statement | Budget | list[Statement]:
    """How large a transformer for a class of functions must be, and how large one is that suffices, both proved.

    **Arguments:**

    - `kind`: the class, one of `certiformer.sizes.CLASSES`.
    - `eps`: the error in the sup norm.
    - `weights`: instead of `eps`: what so many weights buy.
    - `bits`: how many bits a weight has.
    - `constant`: of a class of real functions: L, or M for analytic ones.
    - `dimension`: D: the functions live on [0,1]^D.
    - `smoothness`: smooth: the order of the derivatives that are bounded.
    - `radius`: analytic: how far the power series converge at every point.
    - `ridges`: how many terms the sums of ridges have.
    - `inputs`, `depth`: circuits: their input bits, and their depth with gates of two operands.
    - `states`: languages: the states of the automata.
    - `symbols`, `length`: languages, programs: the size of the alphabet, the longest sequence.
    - `units`, `layers`, `heads`, `width`: programs: the bill.
    - `over`: ask for one statement for each of `values` of `eps` or of a parameter.
    - `values`: its values.

    >>> import certiformer
    >>> statement = certiformer.size("lipschitz", constant=1, dimension=2, eps="0.01")
    >>> statement.upper.values, statement.lower.values, statement.lower.bits
    (2601, 2401, 2401)
    """
    from certiformer.sizes import make_class, sweep
    from certiformer.sizes import size as answer
    from certiformer.sizes.kinds import positive

    real: dict[str, Any] = {"constant": constant, "dimension": dimension, "smoothness": smoothness, "radius": radius}
    finite: dict[str, Any] = {"inputs": inputs, "depth": depth, "states": states, "symbols": symbols, "length": length}
    bill: dict[str, Any] = {"units": units, "layers": layers, "heads": heads, "width": width}
    parameters = {**real, "ridges": ridges, **finite, **bill}
    if over is None:
        if values is not None:
            raise BadInput("--values belongs to --over AXIS, such as --over eps --values 0.1,0.03,0.01")
        return answer(kind, eps=eps, weights=weights, bits=bits, **parameters)
    if weights is not None:
        raise BadInput("--weights answers one question; leave --over away")
    texts = [str(value) for value in values or ()]
    if not texts or not all(texts):
        raise BadInput("--over needs --values, such as --over eps --values 0.1,0.03,0.01")
    if over in parameters and parameters[over] is None:  # the axis itself need not be given
        parameters[over] = int(texts[0]) if texts[0].isdigit() else texts[0]
    members = make_class(kind, parameters)
    if over != "eps" and members.exact == (eps is not None):
        raise BadInput(f"--class {kind} " + ("is exact: it takes no --eps" if members.exact else "needs --eps"))
    return sweep(members, over, texts, Fraction(0) if eps is None else positive("eps", eps), bits)


@overload
def theorem(id: str, *, bibtex: Literal[False] = False, run: Literal[False] = False) -> Entry: ...
@overload
def theorem(id: None = None, *, bibtex: Literal[False] = False, run: Literal[False] = False) -> list[Entry]: ...
@overload
def theorem(id: str | None = None, *, bibtex: Literal[True], run: Literal[False] = False) -> str: ...
@overload
def theorem(id: str | None = None, *, bibtex: bool = False, run: Literal[True]) -> list[Step]: ...
def theorem(id: str | None = None, *, bibtex: bool = False, run: bool = False) -> Any:  # noqa: A002
    """The theorems that the guarantees rest on: statements, assumptions, sources.

    **Arguments:**

    - `id`: of one theorem, or its last part (default: all of them).
    - `bibtex`: the sources as BibTeX entries instead.
    - `run`: execute the example of the theorem and return its steps, each with `asked`, `answer` and `as_written`.

    >>> import certiformer
    >>> entry = certiformer.theorem("voronoi_second_order")
    >>> entry.record.id, entry.status, list(entry.sections)[0]
    ('axioms.voronoi_second_order', 'checked', 'Statement')
    >>> certiformer.theorem("hardmax_not_contextual", run=True)[1].answer
    'True'
    """
    from certiformer.theorem import all_theorems, find
    from certiformer.theorem import bibtex as entry_of

    if run:
        if id is None or bibtex:
            raise BadInput("--run executes the example of one theorem: name it, and leave --bibtex away")
        from certiformer.theorem.experiment import run_experiment

        return run_experiment(find(id))
    entries = [find(id)] if id else all_theorems()
    if bibtex:
        keys = dict.fromkeys(key for entry in entries for key in entry.record.citations)
        return "\n\n".join(entry_of(key) for key in keys)
    return entries[0] if id else entries
