"""What `report.html` shows about a run, as plain data (the schema is in `certiformer.report`).

Nothing here is evidence: that is what `certiformer check` accepts.
"""

from __future__ import annotations

from typing import Any

from certiformer.artifact import Artifact
from certiformer.errors import BadInput
from certiformer.kernel.certificate import Boxes, Node, Theorem, rule_name
from certiformer.kernel.rules import LEAF
from certiformer.model import Transformer
from certiformer.model.store import tensors_to_bytes
from certiformer.search.report_attention import attention_picture
from certiformer.search.report_pictures import anchor, boxes_of, depth_pictures, error_pictures, leaf_depths, middle
from certiformer.search.report_sizes import size_picture
from certiformer.target import sentence_of
from certiformer.target.anything import programs_of
from certiformer.theorem import find


def report_data(run: Artifact, *, checked: bool) -> dict[str, Any]:
    """The data of the report; `checked` says whether the caller has just seen the checker accept."""
    certificate, target, model = run.certificate, run.subject.target, run.model
    return {
        "sentence": sentence_of(target, certificate.epsilon),
        "source": target.source,
        "variables": target.domain.dimension,
        "outputs": target.outputs,
        "domain": target.domain.exactly,
        "formulas": programs_of(target) or [f"the transformer {target.source}"],
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
        "sizes": None if model is None else sizes(model),
        "proof": None if certificate.proof is None else _proof(certificate.proof, run.subject.leaves),
        "assumptions": [text for identifier in _theorems(certificate.proof) for text in _trusted(identifier)],
        "candidates": list(run.candidates or []),
        "pictures": [] if model is None else _pictures(run, model),
        "boxes": boxes_of(certificate.proof, run.subject.leaves, getattr(target, "program", None), target.domain),
        "seconds": dict(certificate.seconds),
        "versions": dict(certificate.versions),
        "seals": dict(certificate.seals),
        "directory": None if run.directory is None else str(run.directory),
    }


def _pictures(run: Artifact, model: Transformer) -> list[dict[str, Any]]:
    places = {"in the middle": middle(run.subject.target.domain)}
    if run.certificate.witness is not None:
        places["at the largest error found"] = anchor(run)
    about = [size_picture(run), attention_picture(model, places)]
    return [*error_pictures(run, model), *depth_pictures(run), *(picture for picture in about if picture is not None)]


def sizes(model: Transformer) -> dict[str, int]:
    """The numbers that say how large a transformer is."""
    config = model.config
    heads = [group.count for block in config.blocks if block.attention for group in block.attention.heads]
    return {
        "blocks": len(config.blocks) * config.loops,
        "heads": sum(heads),
        "units": sum(block.ffn.width for block in config.blocks if block.ffn is not None),
        "registers": config.registers,
        "width": config.width,
        "nonzero": model.nonzero_count(),
        "dense": model.parameter_count(),
        "bytes": len(tensors_to_bytes(model)),
    }


# --- the proof --------------------------------------------------------------------------------------------------------


def _theorems(node: Node | None) -> list[str]:
    """The theorems of a proof tree, from the root."""
    if isinstance(node, Theorem):
        return [node.id]
    return [name for child in getattr(node, "children", ()) for name in _theorems(child)]


def _proof(node: Node, leaves: bytes) -> dict[str, Any]:
    children = [_proof(child, leaves) for child in getattr(node, "children", ())]
    notes = []
    if isinstance(node, Boxes):
        notes.append(_boxes_note(leaves[node.offset : node.offset + node.length], node.order))
    elif isinstance(node, Theorem):
        notes.append(f"{node.id}: {_title(node.id)}")
    return {"rule": rule_name(node), "bound": node.bound, "notes": notes, "children": children}


def _boxes_note(tree: bytes, order: int) -> str:
    count, (least, most) = tree.count(LEAF), leaf_depths(tree)
    pieces = "1 box, never cut" if count == 1 else f"{count:,} boxes, cut {least} to {most} times"
    if least == most > 0:
        pieces = f"{count:,} boxes, cut {most} times everywhere"
    return f"{pieces}; Taylor forms of order {order}"


def _title(identifier: str) -> str:
    try:
        return find(identifier).record.title
    except BadInput:
        return "a theorem that this version does not list"


def _trusted(identifier: str) -> list[str]:
    """The assumptions of a theorem that are believed and not checked."""
    try:
        record = find(identifier).record
    except BadInput:
        return []
    return [f"{record.name}: {a.text}" for a in record.assumptions if a.status == "trusted"]
