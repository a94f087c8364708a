"""What is claimed, read from the files of a run folder and from nothing else.

The seals are compared first: a byte changed by accident is named at once. Seals can be recomputed by anybody;
everything after them is re-derived from the content.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from certiformer.kernel.affine_softmax import as_prototypes
from certiformer.kernel.balls import BallDomain, working_precision
from certiformer.kernel.certificate import Certificate, certificate_in
from certiformer.kernel.files import BASIS, CIRCUIT, CONFIG, LEAVES, MODEL, PROGRAM, TARGET, digest
from certiformer.kernel.network import Network
from certiformer.kernel.numbers import exact_text, positive
from certiformer.kernel.problem import FiniteProblem, Function, PointNetwork, Problem, ProgramFunction
from certiformer.kernel.refusal import Refused
from certiformer.kernel.target import FunctionOnBox, Meaning, TeacherOnBox, read_target
from certiformer.kernel.weights import Tensor, read_model

SEALED = (MODEL, CONFIG, TARGET, LEAVES)
SEALED_PROGRAM = (MODEL, CONFIG, PROGRAM, CIRCUIT)


@dataclass(frozen=True)
class Claim:
    """The claim of a run folder: certificate, target, epsilon, leaves, and the functions in balls."""

    certificate: Certificate
    target: Meaning
    epsilon: Fraction
    leaves: bytes
    problem: Problem | FiniteProblem

    def sentence(self) -> str:
        """The claim in one plain sentence."""
        return self.target.sentence(exact_text(self.epsilon))


@dataclass(frozen=True)
class ProgramClaim:
    """The claim of a folder with a compiled program: certificate, stored transformer, program and circuit."""

    certificate: Certificate
    config: dict[str, Any]
    tensors: dict[str, Tensor]
    program: bytes
    circuit: bytes


def read_claim(files: Mapping[str, bytes]) -> Claim | ProgramClaim:
    """Read and cross-check the files of a run folder, given by name and content."""
    working_precision()
    certificate = certificate_in(files)
    if certificate.subject not in (TARGET, PROGRAM):
        raise Refused(f"the certificate is about {certificate.subject}, which is no function and no program")
    compiled = certificate.subject == PROGRAM
    sealed = SEALED_PROGRAM if compiled else SEALED
    if compiled and BASIS in certificate.seals:  # for readers of the circuit; no proof uses it
        sealed = (*sealed, BASIS)
    contents = {}
    for name in sealed:
        contents[name] = content(files, name)
        if certificate.seals.get(name) != digest(contents[name]):
            raise Refused(f"{name} was changed after the certificate was sealed: its hash does not match")
    if set(certificate.seals) != set(sealed):
        raise Refused("the certificate seals files that it should not, or misses one")
    if compiled:
        model = read_model(contents[CONFIG], contents[MODEL])
        return ProgramClaim(certificate, *model, contents[PROGRAM], contents[CIRCUIT])
    target, network = read_target(contents[TARGET]), read_model(contents[CONFIG], contents[MODEL])
    problem = (
        _on_box(target, Network(*network))
        if isinstance(target, FunctionOnBox | TeacherOnBox)
        else _finite(target, PointNetwork(*network))
    )
    return Claim(certificate, target, positive(certificate.epsilon), contents[LEAVES], problem)


def content(files: Mapping[str, bytes], name: str) -> bytes:
    """What a file holds that has to be there."""
    if name not in files:
        raise Refused(f"{name} does not exist in the folder")
    return files[name]


def _on_box(target: FunctionOnBox | TeacherOnBox, network: Network) -> Problem:
    domain = BallDomain(target.box)
    if network.config["input"]["kind"] != "continuous":
        raise Refused("the transformer reads token ids, the target numbers from a box")
    right = _right(target)
    if network.dimension != domain.dimension:
        raise Refused(f"the transformer reads {network.dimension} numbers, the target {domain.dimension}")
    if network.outputs != right.outputs:
        raise Refused(f"the transformer has {network.outputs} outputs, the target {right.outputs}")
    return Problem(as_prototypes(network) or network, right, domain)


def _right(target: FunctionOnBox | TeacherOnBox) -> Function:
    """The target in balls: a program, or a teacher's weights read like those of the transformer itself."""
    if isinstance(target, FunctionOnBox):
        return ProgramFunction(target.program)
    teacher = Network(*read_model(target.config, target.tensors))
    if teacher.config["input"]["kind"] != "continuous" or teacher.dimension != len(target.box.pairs):
        raise Refused("the teacher does not read numbers from the box of the claim")
    return teacher


def _finite(target: Any, network: PointNetwork) -> FiniteProblem:
    if network.config["input"]["kind"] != target.kind:
        raise Refused(f"the transformer reads {network.config['input']['kind']} inputs, the target {target.kind} ones")
    if (network.dimension, network.outputs) != (target.inputs, target.outputs):
        wanted = f"the target has {target.inputs} and {target.outputs}"
        raise Refused(f"the transformer has {network.dimension} inputs and {network.outputs} outputs, {wanted}")
    return FiniteProblem(network, target)
