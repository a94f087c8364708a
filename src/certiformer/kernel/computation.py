"""Transformers that compute something: weights and a description in, verdict out.

A folder of this kind holds a transformer, the description of what it computes (a machine, an automaton, a circuit, a
learner) and a certificate that names one theorem. The claim follows from the first three files alone; the certificate adds
the seals and the numbers of the proof, which are found again here.

A module of a theorem offers `sentence(files)`, the claim in one plain sentence, `NOT_CLAIMED`, sentences on what is not
said, and `find(files)`, which raises `Refused` or `BadInput` unless the claim is proved; `files` maps names to contents.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from certiformer.errors import BadInput
from certiformer.kernel import Refused
from certiformer.kernel.certificate import STATEMENTS, Certificate, Outcome, Theorem, axiom, certificate_in
from certiformer.kernel.check import Verdict, claims_nothing, nothing_claimed, require_absent
from certiformer.kernel.claim import sealed_contents
from certiformer.kernel.files import CONFIG, DESCRIPTIONS, MODEL, read_files
from certiformer.kernel.programs import decimal_text, exact

Files = Mapping[str, bytes]


@dataclass(frozen=True)
class Finding:
    """What a theorem found: why it holds, the numbers that the certificate states, and the error that is left.

    Among the parameters, `margin` (decimal text) is how far the proof is from failing and may be stated smaller; any other
    decimal text is an upper bound and may be stated larger; whole numbers are stated as they are. `bound` is decimal text:
    how far an output may be from what is described, 0 where the claim is exactness. `cases`: how many situations were gone
    through, 0 where the proof has no such number.
    """

    reason: str
    parameters: Mapping[str, int | str] = field(default_factory=dict)
    bound: str = "0"
    cases: int = 0


def check_computation(directory: str | Path) -> Verdict:
    """Check the claim of such a folder from its files alone."""
    return decide_computation(read_files(directory))


def decide_computation(present: Files) -> Verdict:
    """Check the claim of the files of such a folder."""
    sentence = ""
    try:
        certificate = certificate_in(present)
        module, files = _module(_rule(certificate)), _sealed(certificate, present)
        sentence = module.sentence(files)
        require_absent(certificate, "lower", "witness", "apriori", "run_error")
        if claims_nothing(certificate):
            _require_nothing_stated(certificate)
            return Verdict("undecided", 0, None, None, nothing_claimed(certificate), sentence)
        if certificate.outcome is not Outcome.PROVED:
            raise Refused("what a transformer computes is proved or not; no folder refutes it")
        found = module.find(files)
        _require_stated(certificate, found)
    except (Refused, BadInput) as problem:
        return Verdict("refused", 0, None, None, str(problem), sentence)
    upper, steps = decimal_text(exact(found.bound), up=True), {"cases": found.cases} if found.cases else {}
    return Verdict("proved", 2, upper, None, found.reason, sentence, proof=certificate.proof, steps=steps)


def claimed(certificate: Certificate, files: Files) -> tuple[str, tuple[str, ...]]:
    """What the folder claims in one sentence, and what it does not say; nothing is proved here."""
    module = _module(_rule(certificate))
    return module.sentence(_sealed(certificate, files)), module.NOT_CLAIMED


def _module(rule: str) -> Any:
    return axiom(rule, STATEMENTS[rule])


def _rule(certificate: Certificate) -> str:
    proof = certificate.proof
    if not isinstance(proof, Theorem) or STATEMENTS.get(proof.id) not in DESCRIPTIONS:
        raise Refused("the certificate does not rest on a theorem about transformers that compute")
    if STATEMENTS[proof.id] != certificate.subject:
        raise Refused(
            f"the theorem {proof.id} speaks of a {STATEMENTS[proof.id]}, which is not what the certificate seals"
        )
    return proof.id


def _sealed(certificate: Certificate, present: Files) -> dict[str, bytes]:
    return sealed_contents(certificate, present, (MODEL, CONFIG, certificate.subject))


def _require_nothing_stated(certificate: Certificate) -> None:
    """An undecided certificate names its theorem and no number."""
    proof = certificate.proof
    if certificate.epsilon != "0" or not isinstance(proof, Theorem) or proof.bound != "0" or proof.parameters:
        raise Refused("the certificate claims nothing but states numbers of a proof")


def _require_stated(certificate: Certificate, found: Finding) -> None:
    """The numbers of the certificate are those that were found, or weaker ones."""
    proof = certificate.proof
    stated = proof.parameters if isinstance(proof, Theorem) else {}
    if set(stated) != set(found.parameters):
        raise Refused(f"the certificate does not state exactly {', '.join(sorted(found.parameters))}")
    for name, value in found.parameters.items():
        said = stated[name]
        if type(said) is not type(value):
            raise Refused(f"the certificate states {name} as another kind of number")
        if isinstance(value, str) and isinstance(said, str):
            fine = exact(said) <= exact(value) if name == "margin" else exact(said) >= exact(value)
        else:
            fine = said == value
        if not fine:
            raise Refused(f"the certificate states a better {name} than the weights have")
    upper = certificate.upper
    if upper is None or proof is None or (certificate.epsilon, proof.bound) != (upper, upper):
        raise Refused("the certificate does not state one bound")
    if not exact(upper) >= exact(found.bound):
        raise Refused("the certificate states a better bound than the weights have")
