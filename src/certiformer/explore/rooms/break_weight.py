"""Break one weight of a run: what the kernel says about the old proof, and the counterexample, if there is one.

Every hash is made anew, so that the folder looks untouched: the kernel refuses because of what the weights say.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from certiformer.errors import BadInput
from certiformer.explore.requests import number, read_entries, run_name, text, whole
from certiformer.explore.rooms.events import Emit
from certiformer.report.live import numbers

LARGEST_MOVE = 1e6
BOXES, SECONDS = 2_000, 10.0


def read(request: dict[str, Any]) -> dict[str, Any]:
    """What may be asked."""
    readers = {"run": run_name, "tensor": text(200), "at": whole(0, 10**9), "by": number(-LARGEST_MOVE, LARGEST_MOVE)}
    return read_entries(request, **readers)


def run(request: dict[str, Any], folder: str | None, emit: Emit) -> dict[str, Any]:
    """Move the weight, ask the kernel, look for a counterexample."""
    import numpy as np

    from certiformer.api.folders import load
    from certiformer.kernel.check import check_files
    from certiformer.kernel.files import CERTIFICATE, MODEL, digest
    from certiformer.model import Transformer
    from certiformer.model.store import tensors_to_bytes
    from certiformer.search.evidence import collect
    from certiformer.search.report_pictures import error_pictures
    from certiformer.search.request import Options
    from certiformer.target import parse_epsilon

    artifact = load(str(folder))
    model = artifact.model
    if model is None or request["tensor"] not in model.tensors:
        raise BadInput("this run has no such weight")
    tensor = np.array(model.tensors[request["tensor"]])
    if request["at"] >= tensor.size:
        raise BadInput("this run has no such weight")
    before = float(tensor.flat[request["at"]])
    tensor.flat[request["at"]] = before + request["by"]
    broken = Transformer(model.config, {**model.tensors, request["tensor"]: tensor})
    files = {name: content for name, content in artifact.files.items() if name in artifact.certificate.seals}
    files[MODEL] = tensors_to_bytes(broken)
    seals = {name: digest(content) for name, content in files.items()}
    files[CERTIFICATE] = replace(artifact.certificate, seals=seals).to_bytes()
    verdict = check_files(files, workers=1)
    emit("verdict", accepted=verdict.accepted, reason=verdict.reason)
    target, epsilon = artifact.subject.target, parse_epsilon(artifact.certificate.epsilon)
    evidence = collect(broken, target, epsilon, Options(rule="theorem", boxes=BOXES, seconds=SECONDS, workers=1))
    witness = None
    if evidence.witness is not None:
        point = numbers([_fraction(x) for x in evidence.witness.point], 9)
        witness = {"point": point, "error": evidence.witness.error, "refutes": evidence.lower > epsilon}
    pictures = [p for p in error_pictures(artifact, broken) if p["kind"] == "curves" or p.get("palette") == "error"]
    facts = {"accepted": verdict.accepted, "reason": verdict.reason, "witness": witness, "before": before}
    return {**facts, "after": before + request["by"], "pictures": pictures[:1]}


def _fraction(text: str) -> float:
    from fractions import Fraction

    return float(Fraction(text))
