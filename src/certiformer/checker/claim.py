"""What is claimed, read from the files of a run folder and from nothing else.

The seals are compared first: a byte changed by accident is named at once. Seals can be recomputed by anybody; everything
after them is re-derived from the content.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from certiformer.certificate import (
    CERTIFICATE,
    CONFIG,
    LEAVES,
    MODEL,
    TARGET,
    Certificate,
    digest,
    read_bytes,
)
from certiformer.checker.balls import BallDomain, working_precision
from certiformer.checker.network import Network
from certiformer.checker.problem import Problem, ProgramFunction
from certiformer.checker.prototypes import as_prototypes
from certiformer.checker.rules.refusal import Refused
from certiformer.checker.weights import read_model
from certiformer.target import Target, claim_sentence, formula, parse_epsilon, target_from_text

SEALED = (MODEL, CONFIG, TARGET, LEAVES)


@dataclass(frozen=True)
class Claim:
    """The claim of a run folder: certificate, target, epsilon, leaves, and the functions in balls."""

    certificate: Certificate
    target: Target
    epsilon: Fraction
    leaves: bytes
    problem: Problem

    def sentence(self) -> str:
        """The claim in one plain sentence."""
        target, epsilon = self.target, self.certificate.epsilon
        sizes = target.domain.dimension, len(target.program.outputs)
        return claim_sentence(*sizes, str(target.domain), formula(target.program), epsilon)


def read_claim(directory: Path) -> Claim:
    """Read and cross-check the files of a run folder."""
    working_precision()
    certificate = Certificate.from_bytes(read_bytes(directory / CERTIFICATE))
    contents = {}
    for name in SEALED:
        contents[name] = read_bytes(directory / name)
        if certificate.seals.get(name) != digest(contents[name]):
            raise Refused(f"{name} was changed after the certificate was sealed: its hash does not match")
    if set(certificate.seals) != set(SEALED):
        raise Refused("the certificate seals files that it should not, or misses one")
    target = target_from_text(contents[TARGET].decode("utf-8", errors="replace"))
    network = Network(*read_model(contents[CONFIG], contents[MODEL]))
    domain = BallDomain(target.domain)
    if network.dimension != domain.dimension or network.dimension != target.program.inputs:
        raise Refused(f"the transformer reads {network.dimension} numbers, the target {target.program.inputs}")
    if network.outputs != len(target.program.outputs):
        raise Refused(f"the transformer has {network.outputs} outputs, the target {len(target.program.outputs)}")
    left = as_prototypes(network) or network
    problem = Problem(left, ProgramFunction(target.program), domain)
    return Claim(certificate, target, parse_epsilon(certificate.epsilon), contents[LEAVES], problem)
