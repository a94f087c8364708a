"""The circuit of a compiled transformer as a wiring diagram: a vertical wire for each coordinate, time running down.

Each step (an embedding, a head, a group of hidden units, a coordinate being cleared) is one row: marks on the wires that it
reads, a box on the wires that it writes, its sentence beside it. A wire is drawn while its coordinate is in use; between
two variables that share a coordinate it is interrupted.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

PITCH, ROW, TOP, LEFT, MARK = 28, 34, 30, 16, 9
LETTER = 7.2  # the width of a character of the labels, on average
LONGEST = 78  # characters of a label

_MARKS = {
    "query": '<rect class="mark query" x="{left}" y="{top}" width="9" height="9"/>',
    "key": '<path class="mark key" d="M{x} {top}L{right} {bottom}L{left} {bottom}Z"/>',
    "value": '<circle class="mark value" cx="{x}" cy="{y}" r="4.8"/>',
    "clear": '<path class="clear" d="M{left} {top}L{right} {bottom}M{left} {bottom}L{right} {top}"/>',
}


def wires(data: dict[str, Any]) -> str:
    """The drawing; `data` has `width`, `sublayers` (names) and `steps`, see `circuit_page`."""
    rows = _rows(data)
    longest = max((len(label) for _, label, _ in rows), default=0)
    right = LEFT + PITCH * data["width"]
    width = right + 16 + int(LETTER * min(longest, LONGEST))
    height = TOP + ROW * len(rows) + 12
    parts = [_heads(data["width"])]
    parts += [_wire(cell, rows, height) for cell in data["cells"]]
    for number, (kind, label, step) in enumerate(rows):
        y = TOP + ROW * number + ROW // 2
        if kind == "sublayer":
            parts.append(f'<path class="sublayer" d="M0 {y + 12}H{width}"/>')
            parts.append(f'<text class="title" x="{right + 8}" y="{y + 5}">{escape(label)}</text>')
        else:
            parts += _step(step, label, y, right, data["cells"])
    drawing = "".join(parts)
    return (
        f'<div class="scroll"><svg class="wires" role="img" aria-label="the wiring of the transformer" width="{width}"'
        f' height="{height}" viewBox="0 0 {width} {height}">{drawing}</svg></div>{LEGEND}'
    )


LEGEND = (
    '<p class="legend-line"><svg width="12" height="12"><rect class="mark query" x="1" y="1" width="10" height="10"/></svg>'
    ' query <svg width="12" height="12"><path class="mark key" d="M6 1L11 11L1 11Z"/></svg> key <svg width="12"'
    ' height="12"><circle class="mark value" cx="6" cy="6" r="5"/></svg> value read <svg width="14" height="12"><rect'
    ' class="box" x="1" y="1" width="12" height="10" rx="2"/></svg> written <svg width="12" height="12"><path'
    ' class="clear" d="M1 1L11 11M1 11L11 1"/></svg> no longer needed</p>'
)


def _rows(data: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    """The rows of the picture: a title for each sub-layer, then its steps."""
    rows: list[tuple[str, str, dict[str, Any]]] = []
    for number, name in enumerate(data["sublayers"]):
        rows.append(("sublayer", name, {"sublayer": number}))
        rows += [("step", _clip(step["text"]), step) for step in data["steps"] if step["sublayer"] == number]
    return rows


def _heads(width: int) -> str:
    """The numbers of the coordinates."""
    return "".join(f'<text class="coordinate" x="{_x(c)}" y="16">{c}</text>' for c in range(width))


def _wire(cell: dict[str, Any], rows: Sequence[tuple[str, str, Any]], height: int) -> str:
    """The life of one variable, from the row that writes it to the row that clears it."""
    begin = next((n for n, (kind, _, step) in enumerate(rows) if kind == "step" and cell["id"] in step["writes"]), 0)
    ends = [n for n, (kind, _, step) in enumerate(rows) if kind == "step" and cell["id"] in step["clears"]]
    y0 = TOP + ROW * begin + ROW // 2
    y1 = TOP + ROW * ends[0] + ROW // 2 if ends else height - 6
    title = f"<title>{escape(cell['name'])} in coordinate {cell['coordinate']}</title>"
    return f'<path class="wire" d="M{_x(cell["coordinate"])} {y0}V{y1}">{title}</path>'


def _step(step: dict[str, Any], label: str, y: int, right: int, cells: Sequence[dict[str, Any]]) -> list[str]:
    touched = [_x(cells[c]["coordinate"]) for role in ("query", "key", "value") for c in step["reads"].get(role, ())]
    touched += [_x(cells[c]["coordinate"]) for c in (*step["writes"], *step["clears"])]
    parts = []
    if touched:
        parts.append(f'<path class="rail {step["kind"]}" d="M{min(touched)} {y}H{right}"/>')
    for cell in step["writes"]:
        x = _x(cells[cell]["coordinate"])
        parts.append(f'<rect class="box {step["kind"]}" x="{x - 9}" y="{y - 9}" width="18" height="18" rx="3"/>')
    roles: dict[int, list[str]] = {}
    for role in ("query", "key", "value"):
        for cell in step["reads"].get(role, ()):
            roles.setdefault(_x(cells[cell]["coordinate"]), []).append(role)
    for x, read_as in roles.items():  # a coordinate that is a query and a key at once shows both marks side by side
        for place, role in enumerate(read_as):
            parts.append(_mark(role, x + MARK * place - MARK * (len(read_as) - 1) / 2, y))
    parts += [_mark("clear", _x(cells[c]["coordinate"]), y) for c in step["clears"]]
    parts.append(f'<text class="label" x="{right + 8}" y="{y + 4}">{escape(label)}</text>')
    return parts


def _mark(role: str, x: float, y: float) -> str:
    half = MARK / 2
    points = {"x": x, "y": y, "left": x - half, "right": x + half, "top": y - half, "bottom": y + half}
    return _MARKS[role].format(**{name: f"{value:g}" for name, value in points.items()})


def _x(coordinate: int) -> int:
    return LEFT + PITCH * coordinate


def _clip(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


CSS = """
svg.wires{display:block;font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
svg.wires path,.legend-line path{vector-effect:none}
.wires .wire{stroke:var(--wide);stroke-width:3;stroke-linecap:round}
.wires .coordinate{fill:var(--quiet);text-anchor:middle;font-size:10px}
.wires .sublayer{stroke:var(--line);stroke-width:1}
.wires .title{fill:var(--quiet);font-weight:700}
.wires .label{fill:var(--ink)}
.wires .rail{stroke:var(--quiet);stroke-width:1;stroke-dasharray:1 3}
.wires .rail.head{stroke:var(--accent)}.wires .rail.table{stroke:var(--good)}
.box{fill:var(--card);stroke:var(--quiet);stroke-width:2}
.box.head{stroke:var(--accent)}.box.table{stroke:var(--good)}
.mark{stroke:var(--card);stroke-width:1}
.mark.query,path.mark.query{fill:var(--weak)}path.mark.key,.mark.key{fill:var(--error)}.mark.value{fill:var(--accent)}
.clear{stroke:var(--bad);stroke-width:2}
.legend-line{font-size:.85rem;color:var(--quiet)}.legend-line svg{vertical-align:-1px;margin-left:.6rem}
.variables td,.variables th{white-space:nowrap;overflow-wrap:normal;padding-right:1rem}
.circuit{width:max-content;min-width:100%;max-width:96vw;position:relative;left:50%;transform:translateX(-50%)}
.patterns .heads{grid-template-columns:repeat(auto-fill,minmax(min(100%,19rem),1fr))}
.answer{width:auto;font-variant-numeric:tabular-nums}
.answer td,.answer th{text-align:center;padding:.25rem .5rem;white-space:nowrap}
.answer th:first-child{text-align:right}
"""
