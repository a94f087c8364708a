"""`check`: decide from the files of a run folder alone whether its claim is proved.

Nothing that the search said is believed except what is claimed; every leaf, hypothesis, constant and witness is
recomputed in ball arithmetic. The verdict is data: `proved`, `refuted`, `undecided`, `invalid` as claimed and
confirmed, or `refused` with the reason when the evidence does not hold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from flint import arb

from certiformer.certificate import Boxes, Outcome, Witness, description_of
from certiformer.checker.balls import ZERO, Box, ball, decimal, exact, larger
from certiformer.checker.claim import Claim, ProgramClaim, read_claim
from certiformer.checker.points import FiniteProblem
from certiformer.checker.pool import prove_boxes
from certiformer.checker.problem import Problem
from certiformer.checker.rules import Refused, finite, prove, stated_bound
from certiformer.checker.taylor import bounds
from certiformer.errors import BadInput

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Verdict:
    """What the checker found; `upper` and `lower` are decimal text of proved bounds of sup |T - f|, outward."""

    outcome: str
    level: int
    upper: str | None
    lower: str | None
    reason: str
    sentence: str
    claim: Claim | None = None

    @property
    def accepted(self) -> bool:
        """Whether the claim *proved* was confirmed."""
        return self.outcome == Outcome.PROVED.value

    @property
    def exit_code(self) -> int:
        return 1 if self.outcome == "refused" else Outcome(self.outcome).exit_code(self.level)


def check(directory: str | Path, *, workers: int | None = None, progress: Progress | None = None) -> Verdict:
    """Check the claim of a run folder at level 2.

    Arguments: `directory` of a finished run; `workers`, how many processes share the boxes (default: one a core);
    `progress(done, total)` is called as leaves are confirmed.
    Raises `BadInput` when the folder is not a run folder at all.
    """
    folder = Path(directory)
    if not (folder / "certificate.json").is_file():
        raise BadInput(f"{directory} is not the folder of a finished run: it has no certificate.json")
    if description_of(folder) is not None:
        from certiformer.checker.computation import check_computation

        return check_computation(folder)
    try:
        claim = read_claim(folder)
    except (BadInput, Refused) as problem:
        return Verdict("refused", 0, None, None, str(problem), "")
    if isinstance(claim, ProgramClaim):
        return _decide_program(claim)
    try:
        return _decide(claim, folder, workers, progress)
    except (BadInput, Refused) as problem:
        return Verdict("refused", 0, None, None, str(problem), claim.sentence(), claim)


def _decide_program(claim: ProgramClaim) -> Verdict:
    """A compiled program; nothing else needs the language of programs, so that it is loaded here."""
    from certiformer.checker.rules import margin

    certificate = claim.certificate
    if certificate.outcome is not Outcome.PROVED:
        return Verdict(certificate.outcome.value, 0, None, None, certificate.reason, "")
    try:
        report = margin.check(claim)
    except (BadInput, Refused) as problem:
        return Verdict("refused", 0, None, None, str(problem), "")
    return Verdict("proved", 2, "0", None, report.reason, report.sentence)


def _decide(claim: Claim, folder: Path, workers: int | None, progress: Progress | None) -> Verdict:
    certificate = claim.certificate
    if certificate.run_error is not None:  # loaded here: no other claim rests on the rounding of runs
        from certiformer.checker.run_claim import confirm_run_error

        confirm_run_error(claim, folder, certificate.run_error)
    lower = None if certificate.witness is None else error_lower(claim.problem, certificate.witness)
    shown = None if lower is None else decimal(lower, up=False)
    if certificate.outcome is Outcome.REFUTED:
        if certificate.witness is None or lower is None or not lower > ball(claim.epsilon):
            raise Refused("the recorded counterexample does not exceed epsilon")
        reason = f"at the point ({', '.join(certificate.witness.point)}) the error is at least {shown}"
        return Verdict("refuted", 2, None, shown, reason, claim.sentence(), claim)
    if certificate.outcome is not Outcome.PROVED:
        return Verdict(certificate.outcome.value, 0, None, shown, certificate.reason, claim.sentence(), claim)
    if certificate.proof is None:
        raise Refused("the certificate claims a proof but carries none")

    def boxes(node: Boxes, problem: Problem, path: tuple[int, ...], limit: arb) -> arb:
        return prove_boxes(claim, folder, node, problem, path, limit, workers, progress)

    if isinstance(claim.problem, FiniteProblem):
        upper = finite.prove(certificate.proof, claim.problem, progress)
        if not upper <= stated_bound(certificate.proof):
            raise Refused(f"the proof claims {certificate.proof.bound} but only {float(upper):.6g} is proved")
    else:
        upper = prove(certificate.proof, claim.problem, boxes)
    if not upper <= ball(claim.epsilon):
        raise Refused(f"the proof only gives {float(upper):.6g}, which exceeds epsilon = {certificate.epsilon}")
    if lower is not None and lower > upper:
        raise Refused("the recorded witness contradicts the proof")
    return Verdict("proved", 2, decimal(upper, up=True), shown, "every step was recomputed", claim.sentence(), claim)


def error_lower(problem: Problem | FiniteProblem, witness: Witness) -> arb:
    """A lower bound of |left - right| at the witness, an exact rational point that must lie in the domain."""
    if isinstance(problem, FiniteProblem):
        return problem.error_lower(witness)
    point = [ball(exact(text)) for text in witness.point]
    if len(point) != problem.domain.dimension or not problem.domain.contains(point):
        raise Refused("the recorded witness is not a point of the domain")
    if not 0 <= witness.output < problem.left.outputs:
        raise Refused("the recorded witness names an output that does not exist")
    # A rational is a ball of radius 2^-PRECISION: its midpoint is the centre, its radius the box.
    box = Box(tuple(p.mid() for p in point), tuple(p.rad() for p in point))
    left, right = problem.left.forms(box, 0)[witness.output], problem.right.forms(box, 0)[witness.output]
    if left.singular or right.singular:
        raise Refused(f"the functions are not defined at the recorded witness: {left.singular or right.singular}")
    a, b = bounds(left), bounds(right)
    lower = larger(larger((a[0] - b[1]).lower(), (b[0] - a[1]).lower()), ZERO)
    if not lower.is_finite():
        raise Refused("the error at the recorded witness could not be enclosed")
    return lower
