"""The claim `run_error` of a certificate: recomputed from the stored weights, or refused."""

from __future__ import annotations

from pathlib import Path

from certiformer.certificate import CONFIG, MODEL, digest, read_bytes
from certiformer.checker.balls import ball, exact
from certiformer.checker.claim import Claim
from certiformer.checker.network import Network
from certiformer.checker.points import FiniteProblem, PointNetwork
from certiformer.checker.problem import Problem
from certiformer.checker.rules.refusal import Refused
from certiformer.checker.run_error import run_error
from certiformer.checker.run_sequences import sequences_run_error
from certiformer.checker.weights import read_model
from certiformer.target import SequenceMap


def confirm_run_error(claim: Claim, folder: Path, stated: str) -> None:
    """Raises `Refused` unless runs in the stored dtype are proved to stay within `stated` of the real numbers."""
    sequences = isinstance(claim.problem, FiniteProblem) and isinstance(claim.problem.target, SequenceMap)
    if not sequences and not isinstance(claim.problem, Problem):
        raise Refused("the certificate bounds the error of a run, which is not done for the rows of a table")
    limit = exact(stated)
    if limit < 0:
        raise Refused("the certificate bounds the error of a run by a negative number")
    contents = {name: read_bytes(folder / name) for name in (CONFIG, MODEL)}
    if any(claim.certificate.seals.get(name) != digest(data) for name, data in contents.items()):
        raise Refused("the files were changed while they were being checked")
    files = read_model(contents[CONFIG], contents[MODEL])
    if isinstance(claim.problem, Problem):
        network = Network(*files)
        found = run_error(network, claim.problem.domain, network.config["dtype"], goal=ball(limit).lower())
    else:
        letters = PointNetwork(*files)
        found = sequences_run_error(letters, letters.config["dtype"])
    if found.bound is None:
        raise Refused(f"the certificate bounds the error of a run by {stated}, but {found.reason}")
    if not found.bound <= ball(limit):
        raise Refused(
            f"the certificate bounds the error of a run by {stated}, but only {float(found.bound):.6g} is proved"
        )
