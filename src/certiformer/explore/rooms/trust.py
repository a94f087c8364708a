"""*Trust*: a proof tree node by node, with the kernel's rule, its lines of code, and what is known of it formally.

The code that is shown is read from the very modules that this process has loaded.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path
from typing import Any

from certiformer.errors import BadInput
from certiformer.explore.requests import optional, read_entries, run_name
from certiformer.explore.rooms.events import Emit

# Where the kernel derives each rule.
RULE_CODE = {
    "boxes": ("certiformer.kernel.rules", "prove_piece"),
    "split": ("certiformer.kernel.rules", "split"),
    "outputs": ("certiformer.kernel.rules", "outputs"),
    "triangle": ("certiformer.kernel.rules", "triangle"),
    "finite": ("certiformer.kernel.rules", "finite"),
}
PAPER = "proved on paper, in the docstring; no proof assistant has checked it"


def read(request: dict[str, Any]) -> dict[str, Any]:
    """What may be asked: a run of this server, or nothing for the folder named when it began."""
    return read_entries(request, run=optional(run_name))


def run(request: dict[str, Any], folder: str | None, emit: Emit) -> dict[str, Any]:
    """The recorded proof with the rules that it uses, and the verdict of the checker, asked now."""
    import certiformer
    from certiformer.explore.rooms.watching_build import outline
    from certiformer.kernel.check import check

    if folder is None or not (Path(folder) / "certificate.json").is_file():
        raise BadInput("build something first, or name a run folder when you start: certiformer explore runs/NAME")
    artifact = certiformer.load(folder)
    emit("note", stage="check", note="the checker derives every step again")
    verdict = check(folder, workers=1)
    proof = artifact.certificate.proof
    tree = None if proof is None else outline(proof)
    return {
        "claim": artifact.claim,
        "accepted": verdict.accepted,
        "reason": verdict.reason,
        "upper": artifact.certificate.upper,
        "proof": tree,
        "rules": {} if tree is None else {name: rule_facts(name) for name in sorted(_names(tree))},
        "seals": dict(artifact.certificate.seals),
    }


def _names(node: dict[str, Any]) -> set[str]:
    """The rules and theorems of a tree; a theorem is named by its id."""
    own = node["theorem"] or node["rule"]
    return {own}.union(*(_names(child) for child in node["children"]))


def rule_facts(name: str) -> dict[str, Any]:
    """What a rule or theorem says, its code with the place, and its status."""
    from certiformer.report.wording import RULES
    from certiformer.theorem import find

    if name in RULE_CODE:
        module, function = RULE_CODE[name]
        code = getattr(import_module(module), function)
        return {"says": RULES[name], "status": PAPER, **_source(code)}
    try:
        entry = find(name)
    except BadInput:
        return {"says": "a rule of the kernel", "status": PAPER, "code": "", "place": ""}
    statement = entry.sections.get("Statement", entry.record.title)
    text = entry.path.read_text(encoding="utf-8")
    first = text.index('"""', text.index('"""') + 3) + 4
    line = text[:first].count("\n") + 1
    facts = {"code": text[first:], "place": f"{entry.module} from line {line}"}
    assumptions = [[a.name, a.text, a.status] for a in entry.record.assumptions]
    return {"says": statement, "status": f"{entry.status}; {PAPER}", "assumptions": assumptions, **facts}


def _source(code: Any) -> dict[str, str]:
    lines, first = inspect.getsourcelines(code)
    return {"code": "".join(lines), "place": f"{code.__module__}, lines {first} to {first + len(lines) - 1}"}
