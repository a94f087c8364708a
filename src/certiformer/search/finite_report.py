"""What `report.html` shows about a claim on a finite set of rows: the claim, the bracket, the size, the proof.

There are no pictures: between the rows nothing is claimed, and a curve would suggest otherwise.
"""

from __future__ import annotations

from typing import Any

from certiformer.artifact import Artifact
from certiformer.kernel.certificate import Theorem, rule_name
from certiformer.search.report_data import sizes
from certiformer.target import sentence_of
from certiformer.target.anything import place_of


def finite_report_data(run: Artifact, *, checked: bool) -> dict[str, Any]:
    """The data of the report; the schema is in `certiformer.report`."""
    certificate, target, proof = run.certificate, run.subject.target, run.certificate.proof
    note = proof.id if isinstance(proof, Theorem) else f"evaluated at {place_of(target)}"
    return {
        "source": target.source,
        "sentence": sentence_of(target, certificate.epsilon),
        "variables": target.inputs,
        "outputs": target.outputs,
        "domain": place_of(target),
        "where": "rows",
        "formulas": [],
        "epsilon": certificate.epsilon,
        "outcome": certificate.outcome.value,
        "level": certificate.level,
        "checked": checked,
        "recorded": run.recorded,
        "reason": certificate.reason,
        "notes": list(run.notes),
        "method": certificate.method,
        "lower": certificate.lower,
        "upper": certificate.upper,
        "apriori": certificate.apriori,
        "witness": None if certificate.witness is None else certificate.witness.to_json(),
        "sizes": None if run.model is None else sizes(run.model),
        "proof": None
        if proof is None
        else {"rule": rule_name(proof), "bound": proof.bound, "notes": [note], "children": []},
        "assumptions": list(certificate.assumptions),
        "pictures": [],
        "seconds": dict(certificate.seconds),
        "versions": dict(certificate.versions),
        "seals": dict(certificate.seals),
        "directory": None if run.directory is None else str(run.directory),
    }
