"""The folder of a compiled machine, checked: weights and table in, verdict out.

The claim is that of `checker.rules.looped_machine`; it follows from `model.safetensors`, `config.json` and `machine.json`
alone. The certificate adds the seals and the margin, which is recomputed here.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import frexp
from pathlib import Path

from certiformer.certificate import CERTIFICATE, CONFIG, MODEL, Certificate, Outcome, Theorem, digest, read_bytes
from certiformer.checker.balls import ball, exact
from certiformer.checker.check import Verdict, decimal
from certiformer.checker.rules.looped_machine import LoopedReport, prove_looped
from certiformer.checker.rules.refusal import Refused
from certiformer.checker.weights import read_model
from certiformer.errors import BadInput
from certiformer.target.machine import Machine

MACHINE = "machine.json"
SEALED = (MODEL, CONFIG, MACHINE)
RULE, METHOD = "looped_machine", "compile machine"


def machine_sentence(machine: Machine, cells: int, dtype: str) -> str:
    """The claim in one plain sentence."""
    first = -(cells // 2)
    return (
        f"On the {cells:,} cells {first} to {first + cells - 1}, from every configuration with one head, any number of"
        f" passes of the block gives exactly the configuration that the machine of {len(machine.states)} states and"
        f" {len(machine.symbols)} symbols reaches in as many steps, in real arithmetic and in a run in {dtype}, as long"
        " as its head stays on the tape; a step off the tape is not made and raises a flag."
    )


def report_files(files: Mapping[str, bytes]) -> LoopedReport:
    """What the checker finds in the files of a compiled machine; raises `Refused` or `BadInput`."""
    return prove_looped(Machine.from_text(files[MACHINE]), *read_model(files[CONFIG], files[MODEL]))


def machine_certificate(files: Mapping[str, bytes]) -> Certificate:
    """The certificate of the files: proved at level 2, or undecided with the checker's reason."""
    seals = {name: digest(files[name]) for name in SEALED}
    try:
        report = report_files(files)
    except (Refused, BadInput) as refusal:
        return Certificate("0", Outcome.UNDECIDED, 0, seals, method=METHOD, reason=str(refusal))
    parameters = {
        "cells": report.cells,
        "margin": decimal(report.margin, up=False),
        "leak": decimal(report.leak, up=True),
    }
    proof = Theorem("0", RULE, parameters)
    return Certificate("0", Outcome.PROVED, 2, seals, method=METHOD, upper="0", proof=proof, reason=reason_of(report))


def reason_of(report: LoopedReport) -> str:
    """The smallest margin, and what it was found over."""
    power = frexp(float(report.leak))[1]  # the leak is below 2^power
    return (
        f"all {report.situations:,} situations of a cell were run through the stored weights; what arrives from a neighbour"
        f" stays {decimal(report.margin, up=False)} away from the thresholds 1/4 and 3/4, and a wrong cell gets less than"
        f" 2^{power}"
    )


def is_machine(directory: str | Path) -> bool:
    """Whether a folder looks like that of a compiled machine."""
    return (Path(directory) / MACHINE).is_file()


def check_machine(directory: str | Path) -> Verdict:
    """Check the claim of a compiled machine from its files alone."""
    folder = Path(directory)
    if not is_machine(folder) or not (folder / CERTIFICATE).is_file():
        raise BadInput(f"{directory} is not the folder of a compiled machine: it has no {MACHINE} or {CERTIFICATE}")
    sentence = ""
    try:
        certificate = Certificate.from_bytes(read_bytes(folder / CERTIFICATE))
        files = {name: read_bytes(folder / name) for name in SEALED}
        for name, data in files.items():
            if certificate.seals.get(name) != digest(data):
                raise Refused(f"{name} was changed after the certificate was sealed: its hash does not match")
        if set(certificate.seals) != set(SEALED):
            raise Refused("the certificate seals files that it should not, or misses one")
        machine, (config, _) = Machine.from_text(files[MACHINE]), read_model(files[CONFIG], files[MODEL])
        sentence = machine_sentence(machine, config["input"]["tokens"], config["dtype"])
        if certificate.outcome is not Outcome.PROVED:
            return Verdict(certificate.outcome.value, 0, None, None, certificate.reason, sentence)
        report = report_files(files)
        _require_stated(certificate, report)
    except (Refused, BadInput) as problem:
        return Verdict("refused", 0, None, None, str(problem), sentence)
    return Verdict("proved", 2, "0", None, reason_of(report), sentence)


def _require_stated(certificate: Certificate, report: LoopedReport) -> None:
    proof = certificate.proof
    if not isinstance(proof, Theorem) or proof.id != RULE or certificate.epsilon != "0" or certificate.upper != "0":
        raise Refused(f"the certificate of a machine rests on the theorem {RULE} and claims exactness")
    stated = proof.parameters
    if (
        set(stated) != {"cells", "margin", "leak"}
        or type(stated["cells"]) is not int
        or stated["cells"] != report.cells
    ):
        raise Refused("the certificate does not state the tape, the margin and the leak of the proof")
    if any(type(stated[name]) is not str for name in ("margin", "leak")):
        raise Refused("the certificate states a margin or a leak that is not decimal text")
    if not (ball(exact(stated["margin"])) <= report.margin and report.leak <= ball(exact(stated["leak"]))):
        raise Refused("the certificate states a better margin than the weights have")
