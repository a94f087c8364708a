"""`check`: decide from the files of a run folder alone whether its claim is proved.

Nothing that the search said is believed except what is claimed; every leaf, hypothesis, constant and witness is
recomputed in ball arithmetic. The verdict is data: `proved` or `refuted` as claimed and confirmed, `undecided` where
nothing is claimed, or `refused` with the reason when the evidence does not hold. Which kind of claim a folder makes is
decided by its certificate. Files that break the code that reads them are refused as well. A field that says nothing in a
kind of claim must be empty there: an unread field would be a claim that nobody checked.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

from flint import arb

from certiformer.errors import MALFORMED, BadInput
from certiformer.isolation import code_inside
from certiformer.kernel import Refused
from certiformer.kernel.balls import ZERO, Box, ball, decimal, larger
from certiformer.kernel.certificate import Boxes, Certificate, Finite, Node, Outcome, Witness, certificate_in
from certiformer.kernel.claim import Claim, ProgramClaim, read_claim
from certiformer.kernel.files import CERTIFICATE, DESCRIPTIONS, read_files
from certiformer.kernel.problem import FiniteProblem, Problem
from certiformer.kernel.programs import exact
from certiformer.kernel.rules import CHECK, LEAF, Effort, Progress, conclude, prove_piece, root
from certiformer.kernel.taylor import bounds

SMALL = 400  # leaves: below this, starting processes costs more than it saves
MAX_WORKERS = 64


@dataclass(frozen=True)
class Verdict:
    """What the checker found; `upper` and `lower` are decimal text of proved bounds of sup |T - f|, outward.

    `proof`: what was replayed, where the claim was proved; `steps`: how many leaves, rows or cases that were.
    """

    outcome: str
    level: int
    upper: str | None
    lower: str | None
    reason: str
    sentence: str
    claim: Claim | None = None
    covers: Mapping[tuple[int, ...], bytes] = field(default_factory=dict)
    proof: Node | None = None
    steps: Mapping[str, int] = field(default_factory=dict)

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

    The files are read once, and within limits (`kernel.files`); everything after that is about their bytes. This
    function runs in the process of its caller, whose modules it trusts; `certiformer check` has a process of its own
    (`isolation`).
    """
    if not os.path.lexists(Path(directory) / CERTIFICATE):
        raise BadInput(f"{directory} is not the folder of a finished run: it has no {CERTIFICATE}")
    code = code_inside(str(directory))
    if code is not None:
        raise BadInput(f"the checker would run code from {code}, which lies inside the folder that it should check")
    try:
        files = read_files(directory)
    except BadInput as problem:
        return Verdict("refused", 0, None, None, str(problem), "")
    return check_files(files, workers=workers, progress=progress)


def check_files(
    files: Mapping[str, bytes],
    *,
    workers: int | None = None,
    progress: Progress | None = None,
    effort: Effort = CHECK,
) -> Verdict:
    """`check` of a folder that holds these files, given by name and content; `effort` beyond what a check does."""
    try:
        return _judge(files, workers, progress, effort)
    except (BadInput, Refused) as problem:
        return Verdict("refused", 0, None, None, str(problem), "")
    except MALFORMED as problem:
        reason = f"the files are not what this checker can read ({type(problem).__name__}: {str(problem)[:200]})"
        return Verdict("refused", 0, None, None, reason, "")


def _judge(files: Mapping[str, bytes], workers: int | None, progress: Progress | None, effort: Effort) -> Verdict:
    if certificate_in(files).subject in DESCRIPTIONS:
        return import_module("certiformer.kernel.computation").decide_computation(files)
    claim = read_claim(files)
    if isinstance(claim, ProgramClaim):
        return import_module("certiformer.kernel.situations.rasp.prove").decide(claim)
    try:
        return _decide(claim, files, workers, progress, effort)
    except (BadInput, Refused) as problem:
        return Verdict("refused", 0, None, None, str(problem), claim.sentence(), claim)


def _decide(
    claim: Claim, files: Mapping[str, bytes], workers: int | None, progress: Progress | None, effort: Effort
) -> Verdict:
    certificate, epsilon, sentence = claim.certificate, ball(claim.epsilon), claim.sentence()
    if certificate.run_error is not None:  # loaded here: no other claim rests on the rounding of runs
        import_module("certiformer.kernel.rounding.runs").confirm_run_error(claim, files, certificate.run_error)
    lower = None if certificate.witness is None else error_lower(claim.problem, certificate.witness)
    shown = None if lower is None else decimal(lower, up=False)
    require_lower(certificate, lower)
    if certificate.outcome is not Outcome.PROVED:
        require_absent(certificate, "upper", "proof")
    if certificate.outcome is Outcome.REFUTED:
        if certificate.witness is None or lower is None or not lower > epsilon:
            raise Refused("the recorded counterexample does not exceed epsilon")
        reason = f"at the point ({', '.join(certificate.witness.point)}) the error is at least {shown}"
        return Verdict("refuted", 2, None, shown, reason, sentence, claim)
    if claims_nothing(certificate):
        return Verdict("undecided", 0, None, shown, nothing_claimed(certificate), sentence, claim)
    if certificate.proof is None:
        raise Refused("the certificate claims a proof but carries none")

    covers: dict[tuple[int, ...], bytes] = {}

    def boxes(node: Boxes, problem: Problem, path: tuple[int, ...], limit: arb) -> arb:
        if node.offset < 0 or node.length < 1 or node.offset + node.length > len(claim.leaves):
            raise Refused("a boxes node points outside leaves.bin")
        tree = claim.leaves[node.offset : node.offset + node.length]
        total, done, count = tree.count(LEAF), 0, min(workers or _cores(), MAX_WORKERS)

        def tick(leaves: int) -> None:
            nonlocal done
            done += leaves
            if progress:
                progress(done, total)

        if count == 1 or total < SMALL:
            accepted, whole = bytearray(), root(problem.domain.dimension)
            bound = prove_piece(problem, whole, tree, node.order, limit, tick, effort, accepted)
        else:
            from certiformer.kernel.workers import prove_pieces  # few claims need it

            bound, accepted = prove_pieces(files, path, tree, problem.domain.dimension, count, effort, tick)
        covers[path] = bytes(accepted)
        return bound

    upper = conclude(certificate.proof, claim.problem, boxes, progress).bound
    if not upper <= epsilon:
        raise Refused(f"the proof only gives about {float(upper):.6g}, which exceeds epsilon = {certificate.epsilon}")
    if certificate.upper is not None and not upper <= ball(exact(certificate.upper)):
        raise Refused(f"the certificate states an error of at most {certificate.upper}, which is not proved")
    if lower is not None and lower > upper:
        raise Refused("the recorded witness contradicts the proof")
    steps = {"leaves": sum(tree.count(LEAF) for tree in covers.values())} if covers else {}
    if isinstance(certificate.proof, Finite) and isinstance(claim.problem, FiniteProblem):
        steps = {"rows": claim.problem.target.count}
    proved, reason = decimal(upper, up=True), "every step was recomputed"
    return Verdict("proved", 2, proved, shown, reason, sentence, claim, covers, certificate.proof, steps)


def _cores() -> int:
    """The cores this process may use, which a container or a pinned job may have restricted."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def error_lower(problem: Problem | FiniteProblem, witness: Witness) -> arb:
    """A lower bound of |left - right| at the witness, an exact rational point that must lie in the domain."""
    if isinstance(problem, FiniteProblem):
        return problem.error_lower(tuple(exact(text) for text in witness.point), witness.output)
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


# The fields of a certificate beside its proof, compared with what was proved.


def require_absent(certificate: Certificate, *names: str) -> None:
    """Refuse fields that have no meaning in this kind of claim."""
    for name in names:
        if getattr(certificate, name) is not None:
            raise Refused(f"the certificate states the field {name}, which such a claim does not have")


def require_lower(certificate: Certificate, proved: arb | None) -> None:
    """The stated lower bound, and the error that the witness is said to have, are not above what the witness proves."""
    witness = certificate.witness
    if witness is None or proved is None:
        return require_absent(certificate, "lower")
    for text in (witness.error, certificate.lower or "0"):
        if not ball(exact(text)) <= proved:
            raise Refused(f"the certificate states an error of at least {text}, which its witness does not have")


def claims_nothing(certificate: Certificate) -> bool:
    """Whether the certificate leaves its claim undecided; what then remains of it must not state a proof.

    That a claim is invalid is said before there is a transformer, and no folder can show it.
    """
    if certificate.outcome is Outcome.INVALID:
        raise Refused("the certificate calls its claim invalid, which a folder with a transformer cannot show")
    if certificate.outcome is Outcome.UNDECIDED:
        require_absent(certificate, "upper")
        return True
    return False


def nothing_claimed(certificate: Certificate) -> str:
    """What the checker says about a claim that its certificate leaves undecided."""
    reason = certificate.reason
    return f"nothing is claimed (recorded, not checked: {reason})" if reason else "nothing is claimed"
