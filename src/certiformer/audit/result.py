"""One audit as one record: what was read, what was measured, what theorems say, and what is often mistaken.

`audit(path)` reads a checkpoint once. A checkpoint with entries that are not finite is measured as far as it goes, but
no theorem is asked about it: NaN is never a proof."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from certiformer.audit import expressivity_checks, lipschitz, position_domains, stack_verdicts
from certiformer.audit.diagnostics import Diagnostic, diagnostics
from certiformer.audit.form import Checkpoint, Coverage
from certiformer.audit.generalization import STACKS, generalization
from certiformer.audit.local_verdict import LOCAL, local
from certiformer.audit.measure import Measurements, Progress, measure
from certiformer.audit.read import read_checkpoint
from certiformer.audit.record import record
from certiformer.audit.verdict import Given, Verdict
from certiformer.errors import BadInput

IDS = (
    "bounds.compression",
    *stack_verdicts.IDS,
    *(name for name, _ in STACKS),
    "bounds.mixing_path",
    *lipschitz.IDS,
    LOCAL,
    *position_domains.IDS,
    *expressivity_checks.IDS,
)


@dataclass(frozen=True)
class Audit:
    """Everything that is known about one checkpoint; `audit.record` says what its JSON data promises."""

    path: str
    given: Given
    checkpoint: Checkpoint
    coverage: Coverage
    measurements: Measurements
    verdicts: tuple[Verdict, ...]
    diagnostics: tuple[Diagnostic, ...]

    @property
    def complete(self) -> bool:
        """Whether every stored parameter is accounted for and finite."""
        return not self.coverage.missing and not self.measurements.not_finite

    def to_json(self) -> dict[str, Any]:
        """One object of JSON data; NaN and infinities are null."""
        return record(self)


def audit(path: str | Path, given: Given | None = None, *, progress: Progress | None = None, **config: Any) -> Audit:
    """Read, measure and judge the checkpoint at a path.

    **Arguments:**

    - `given`: what no file says: how much data it was trained on, the length it is used at, the radius of its tokens.
    - `progress`: called as (done, in all, what is done); a second count begins where maps are read again.
    - `config`: entries that stand in for those of a missing config, for instance `heads=12`.

    **Raises:** `BadInput` with one sentence where there is nothing that can be audited.
    """
    known = Given() if given is None else given
    checkpoint, coverage = read_checkpoint(path, **config)
    try:
        figures = measure(checkpoint, progress)
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is no proof, and is looked for
            verdicts = tuple(_verdicts(path, checkpoint, figures, coverage, known, progress))
    except (np.linalg.LinAlgError, OverflowError):
        raise BadInput(f"{path} has weights so large that their products are not finite in float64") from None
    return Audit(
        str(path), known, checkpoint, coverage, figures, verdicts, diagnostics(checkpoint, figures, verdicts, known)
    )


def _verdicts(
    path: str | Path,
    checkpoint: Checkpoint,
    figures: Measurements,
    coverage: Coverage,
    given: Given,
    progress: Progress | None,
) -> Iterator[Verdict]:
    if figures.not_finite:
        first = figures.not_finite[0]
        for name in IDS:
            yield Verdict(name, "does-not-apply", f"The tensor {first!r} has entries that are not finite.")
        return
    yield from generalization(checkpoint, figures, coverage, given)
    yield from lipschitz.lipschitz(checkpoint, figures, given, progress)
    yield local(path, checkpoint, figures, given, progress)
    yield position_domains.disjoint_positions(checkpoint, figures, given)
    yield from expressivity_checks.expressivity(checkpoint, figures, coverage, given)
