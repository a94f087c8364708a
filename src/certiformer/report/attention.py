"""Attention maps: where every head looks at a few inputs, in small multiples.

A head with one query is drawn as bars over its keys, one with several queries as a table of shaded cells. Plain HTML, so
that labels stay readable on a telephone.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from certiformer.report.frame import figure


def attention(picture: dict[str, Any]) -> str:
    """One small card a head, with one map for every input."""
    cards = []
    for head in picture["heads"]:
        maps = "".join(
            f'<div><p class="at">{escape(place)}</p>{_map(drawn)}</div>'
            for place, drawn in zip(picture["inputs"], head["maps"], strict=True)
        )
        cards.append(f'<div class="head"><h4>{escape(head["name"])}</h4><div class="maps">{maps}</div></div>')
    few = " few" if len(cards) < 3 else ""
    return figure(picture["title"], picture["caption"], f'<div class="heads{few}">{"".join(cards)}</div>')


def _map(drawn: dict[str, Any]) -> str:
    rows, columns, values = drawn["rows"], drawn["columns"], drawn["values"]
    return _bars(columns, values[0]) if len(rows) == 1 else _cells(rows, columns, values)


def _bars(keys: Sequence[str], weights: Sequence[float]) -> str:
    lines = ""
    for key, weight in zip(keys, weights, strict=True):
        bar = f'<td><i style="width:{_percent(weight)}"></i></td>'
        lines += f'<tr><th>{escape(key)}</th>{bar}<td class="number">{_weight(weight)}</td></tr>'
    return f'<table class="bars"><tbody>{lines}</tbody></table>'


def _cells(rows: Sequence[str], columns: Sequence[str], values: Sequence[Sequence[float]]) -> str:
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    lines = ""
    for row, weights in zip(rows, values, strict=True):
        cells = "".join(
            f'<td title="{_weight(w)}"><i style="opacity:{min(max(w, 0.0), 1.0):.3f}"></i></td>' for w in weights
        )
        lines += f"<tr><th>{escape(row)}</th>{cells}</tr>"
    return f'<table class="cells"><thead><tr><th></th>{head}</tr></thead><tbody>{lines}</tbody></table>'


def _weight(weight: float) -> str:
    """Three decimals: what is smaller does not matter to the sum.

    >>> _weight(0.23412), _weight(1.0), _weight(0.0003), _weight(0.0), _weight(-0.5)
    ('0.234', '1.000', '< 0.001', '0', '-0.500')
    """
    return "0" if weight == 0 else "< 0.001" if 0 < weight < 5e-4 else f"{weight:.3f}"


def _percent(weight: float) -> str:
    return f"{100 * min(max(weight, 0.0), 1.0):.1f}%"
