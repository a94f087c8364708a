"""The claim `run_error` of a certificate: recomputed from the stored weights, or refused."""

from __future__ import annotations

from collections.abc import Mapping

from certiformer.checker.run_error import run_error
from certiformer.checker.run_sequences import sequences_run_error
from certiformer.kernel.balls import ball, exact
from certiformer.kernel.claim import Claim
from certiformer.kernel.files import CONFIG, MODEL
from certiformer.kernel.network import Network
from certiformer.kernel.points import FiniteProblem, PointNetwork
from certiformer.kernel.problem import Problem
from certiformer.kernel.refusal import Refused
from certiformer.kernel.weights import read_model
from certiformer.target import SequenceMap


def confirm_run_error(claim: Claim, files: Mapping[str, bytes], stated: str) -> None:
    """Raises `Refused` unless runs in the stored dtype are proved to stay within `stated` of the real numbers."""
    sequences = isinstance(claim.problem, FiniteProblem) and isinstance(claim.problem.target, SequenceMap)
    if not sequences and not isinstance(claim.problem, Problem):
        raise Refused("the certificate bounds the error of a run, which is not done for the rows of a table")
    limit = exact(stated)
    if limit < 0:
        raise Refused("the certificate bounds the error of a run by a negative number")
    model = read_model(files[CONFIG], files[MODEL])
    if isinstance(claim.problem, Problem):
        network = Network(*model)
        found = run_error(network, claim.problem.domain, network.config["dtype"], goal=ball(limit).lower())
    else:
        letters = PointNetwork(*model)
        found = sequences_run_error(letters, letters.config["dtype"])
    if found.bound is None:
        raise Refused(f"the certificate bounds the error of a run by {stated}, but {found.reason}")
    if not found.bound <= ball(limit):
        raise Refused(
            f"the certificate bounds the error of a run by {stated}, but only about {float(found.bound):.6g} is proved"
        )
