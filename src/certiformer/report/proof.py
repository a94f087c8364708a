"""The proof tree as nested lists."""

from __future__ import annotations

from html import escape
from typing import Any

from certiformer.report.numbers import bound_text
from certiformer.report.wording import RULES


def proof_tree(node: dict[str, Any] | None) -> str:
    """The tree, or a sentence that there is none."""
    if node is None:
        return "<p>There is no proof in this folder.</p>"
    return f'<ul class="tree">{_item(node, "|T − f|")}</ul>'


def _item(node: dict[str, Any], what: str) -> str:
    children = "".join(_item(child, "its part") for child in node["children"])
    notes = "".join(f"<li>{escape(note)}</li>" for note in node["notes"])
    return (
        f'<li><p><b class="rule">{escape(node["rule"])}</b> proves {what} ≤ {bound_text(node["bound"], up=True)}'
        f'<span class="quiet"> · {escape(RULES.get(node["rule"], ""))}</span></p>'
        f"{f'<ul class=notes>{notes}</ul>' if notes else ''}{f'<ul>{children}</ul>' if children else ''}</li>"
    )
