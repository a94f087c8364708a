"""`build_table`: from a table of data to a transformer that is proved to memorise it.

CSV or teacher -> exact table -> construction (`construct.memorise`) -> files -> independent check -> run folder
"""

from __future__ import annotations

import math
import shutil
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
from jaxtyping import ArrayLike, Num

from certiformer.certificate import Certificate, Finite, Node, Outcome, Witness, canonical, decimal_text, digest
from certiformer.checker import check
from certiformer.checker.balls import decimal, working_precision
from certiformer.checker.points import FiniteProblem, PointNetwork
from certiformer.checker.rules.refusal import Refused
from certiformer.checker.weights import read_model
from certiformer.construct.memorise import Memory, Progress, memorise
from certiformer.construct.sort_alphabet import sort_proof, sort_transformer
from certiformer.errors import BadInput
from certiformer.model import Transformer
from certiformer.model import load as load_model
from certiformer.model.store import tensors_to_bytes
from certiformer.search import folder as folders
from certiformer.search.request import read_epsilon
from certiformer.search.run import Run, versions
from certiformer.search.table_csv import names_of, read_csv, table_from_csv
from certiformer.target import FiniteTarget, SortMap, Table

EPSILON = "1e-6"  # unless the user says otherwise
BITS = 64  # of a stored weight
ASSUMPTIONS = ("python-flint's balls contain the exact results of their operations",)
_SMALLEST = Fraction(1, 10**300)


def build_table(
    data: str | Path | Table,
    *,
    inputs: str | Sequence[str] | None = None,
    outputs: str | Sequence[str] | None = None,
    eps: str | float = EPSILON,
    tokens: int = 1,
    out_tokens: int = 1,
    teacher: Transformer | str | Path | None = None,
    out: str | Path | None = None,
    force: bool = False,
    keep: bool = False,
    progress: Progress | None = None,
    seed: int = 0,
) -> Run:
    """A transformer proved to be within `eps` of every row of a table.

    Arguments: `data` a CSV file or a `Table`; `inputs`, `outputs` the names of its columns; `tokens` n, as which the
    inputs are read; `out_tokens` 1 (the last token answers) or n (every token answers for its share of the outputs);
    `teacher`, a model (folder) whose outputs at the inputs are memorised instead of columns; `out`, `force`, `keep`,
    `progress` as for `build`.

    >>> rows = tuple(((Fraction(i),), (Fraction(3 * i + 1),)) for i in range(5))
    >>> run = build_table(Table("line", "continuous", rows))
    >>> run.sentence()
    'certified: |T - y| <= 1e-6 at every one of the 5 rows of line'
    >>> run.notes[0]
    '5 rows, 0 hidden units; plain interpolation needs 3'
    """
    table, remarks = _table(data, names_of(inputs), names_of(outputs), teacher)
    text, epsilon = read_epsilon(eps)
    arranged = {"tokens": tokens, "out_tokens": out_tokens, "seed": seed}
    job = _Job(table, text, epsilon, "memorise", str(arranged), progress)

    def make() -> tuple[Transformer, Node, Witness | None, list[str]]:
        found = memorise(table, epsilon, **arranged, progress=job.progress)
        bound = decimal_text(max(found.error, _SMALLEST), up=True)
        return found.model, Finite(bound), found.witness, [*remarks, *comparison(table, epsilon, found)]

    return job.run(make, out, force, keep)


def build_sort(
    alphabet: int,
    tokens: int,
    *,
    eps: str | float = EPSILON,
    out: str | Path | None = None,
    force: bool = False,
    keep: bool = False,
    progress: Progress | None = None,
) -> Run:
    """A transformer proved to sort every sequence of `tokens` letters from an alphabet, all V^n of them.

    >>> build_sort(3, 8).certified
    True
    """
    target = SortMap(f"sort of {tokens} letters from {alphabet}", alphabet, tokens)
    text, epsilon = read_epsilon(eps)
    job = _Job(target, text, epsilon, "sort", "", progress)
    return job.run(lambda: (sort_transformer(alphabet, tokens), sort_proof(), None, []), out, force, keep)


def table_from_model(model: Transformer | str | Path, inputs: Num[ArrayLike, "rows size"], source: str = "") -> Table:
    """The table of a teacher's float64 outputs at given inputs, as exact numbers: what `build_table` then memorises."""
    network = model if isinstance(model, Transformer) else load_model(model)
    points = np.asarray(inputs)
    values = network.evaluate(points)
    if not np.all(np.isfinite(values)):
        raise BadInput("the teacher's output is not finite at a row of the inputs")
    name = source or "float64 outputs of a teacher transformer"
    rows: dict[tuple[Fraction, ...], tuple[Fraction, ...]] = {}
    for point, value in zip(points.tolist(), values.tolist(), strict=True):
        rows.setdefault(tuple(map(Fraction, point)), tuple(map(Fraction, value)))
    return Table(name, network.config.input.kind, tuple(rows.items()))


def _table(
    data: str | Path | Table, inputs: list[str], outputs: list[str], teacher: Transformer | str | Path | None
) -> tuple[Table, list[str]]:
    """The exact table and remarks on how it was read."""
    if isinstance(data, Table):
        if inputs or outputs or teacher is not None:
            raise BadInput("a Table is complete: inputs, outputs and teacher are for CSV files")
        return data, []
    if not inputs:
        raise BadInput("--inputs names the columns that the transformer reads, for instance --inputs x1,x2")
    if teacher is None:
        table, merged = table_from_csv(data, inputs, outputs)
    else:
        if outputs:
            raise BadInput("--outputs and --teacher exclude each other: the teacher says what the outputs are")
        rows, merged = read_csv(data, inputs, [])
        name = teacher if isinstance(teacher, str | Path) else "a transformer"
        points = np.array([[_nearest(x) for x in point] for point, _ in rows])
        table = table_from_model(teacher, points, f"{Path(data).name}, outputs of {name} in float64")
    return table, [f"{merged:,} repeated rows were merged"] if merged else []


def _nearest(value: Fraction) -> float | int:
    """A number the teacher can read: token ids stay whole."""
    return int(value) if value.denominator == 1 and abs(value) < 2**53 else float(value)


def comparison(table: Table, epsilon: Fraction, found: Memory) -> list[str]:
    """How far the transformer is from memorising with fewer weights, in words.

    The counting bound: outputs on a grid of spacing above 2 eps over the table's range can only be told apart by
    different weights, so *some* table of this shape needs rows x outputs x log2(range / 2 eps) bits. It says nothing
    about this table.
    """
    values = [y for _, row in table.rows for y in row]
    levels = max(1, math.ceil((max(values) - min(values)) / (2 * epsilon)))
    bits = table.count * table.outputs * math.log2(levels)
    units = f"{table.count:,} rows, {found.units:,} hidden units; plain interpolation needs {found.plain_units:,}"
    if found.fewest_units is not None and found.fewest_units < found.units:
        units += f"; any piecewise linear function of this key needs {found.fewest_units:,} (computed, not proved)"
    counting = f"some table of this shape and range needs {math.ceil(bits / BITS):,} weights of {BITS} bits (counting)"
    deep = (
        "with weights of unlimited length deep networks reach about the square root of the rows"
        " (Kim, Kim and Mozafari 2023; Kajitsuka and Sato 2025)"
    )
    weights = f"{found.model.nonzero_count():,} nonzero weights; {counting}; {deep}"
    return [units, weights]


class _Job:
    """One finite claim on its way through construction and check."""

    def __init__(
        self, target: FiniteTarget, text: str, epsilon: Fraction, method: str, details: str, progress: Progress | None
    ):
        self.target, self.text, self.epsilon, self.method, self.details = target, text, epsilon, method, details
        self.progress = progress or (lambda stage, done, total, note: None)

    def run(self, make, out: str | Path | None, force: bool, keep: bool) -> Run:
        """Construct, write, check, publish; files stay only when `out` or `keep` asks for them."""
        with ExitStack() as stack:
            if out is None and not keep:
                home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="certiformer-")))
            else:
                home = folders.claim_folder(out, folders.slug(self.target.source), self._request(), force)
            began = time.monotonic()
            try:
                model, proof, witness, notes = make()
            except (Refused, BadInput) as problem:
                folders.abandon(home)
                if isinstance(problem, BadInput):
                    raise
                reason = str(problem)
                nothing = Certificate(self.text, Outcome.UNDECIDED, 0, {}, method=self.method, reason=reason)
                return Run(None, self.target, replace(nothing, versions=versions()), b"")
            seconds = {"construct": round(time.monotonic() - began, 3)}
            certificate = self._settle(home, model, proof, witness, seconds)
            kept = None if out is None and not keep else home
            return Run(model, self.target, certificate, b"", kept, notes=tuple(notes))

    def _request(self) -> str:
        keys = {"target": self.target.to_text(), "epsilon": self.text, "method": self.method, "details": self.details}
        return digest(canonical(keys))

    def _settle(
        self, home: Path, model: Transformer, proof: Node, witness: Witness | None, seconds: dict[str, float]
    ) -> Certificate:
        """Write the files, ask the checker, and publish what it said."""
        staging = home / folders.STAGING
        shutil.rmtree(staging, ignore_errors=True)
        staging.mkdir(parents=True)
        config, tensors = model.config.to_bytes(), tensors_to_bytes(model)
        seals = folders.write_inputs(staging, config, tensors, self.target.to_text().encode(), b"")
        witness = self._proved(witness, config, tensors)
        certificate = Certificate(
            self.text,
            Outcome.PROVED,
            1,
            seals,
            method=self.method,
            upper=proof.bound,
            lower=None if witness is None else witness.error,
            witness=witness,
            proof=proof,
            assumptions=ASSUMPTIONS,
            versions=versions(),
        )
        folders.write_certificate(staging, certificate)
        began = time.monotonic()
        verdict = check(staging, progress=lambda done, total: self._checked(done, total))
        seconds["check"] = round(time.monotonic() - began, 3)
        certificate = replace(certificate, seconds=seconds)
        if verdict.accepted:
            certificate = replace(certificate, level=2, upper=verdict.upper)
        else:
            reason = f"the independent checker refused: {verdict.reason}"
            certificate = replace(
                certificate, outcome=Outcome.UNDECIDED, level=0, proof=None, upper=None, reason=reason
            )
        folders.write_certificate(staging, certificate)
        folders.publish(staging, home)
        return certificate

    def _proved(self, witness: Witness | None, config: bytes, tensors: bytes) -> Witness | None:
        """The witness with a proved error, unless that is zero."""
        if witness is None:
            return None
        working_precision()
        problem = FiniteProblem(PointNetwork(*read_model(config, tensors)), self.target)
        error = decimal(problem.error_lower(witness), up=False)
        return replace(witness, error=error) if Fraction(error) > 0 else None

    def _checked(self, done: int, total: int) -> None:
        self.progress("check", done, total, f"{done:,} of {total:,} rows confirmed")
