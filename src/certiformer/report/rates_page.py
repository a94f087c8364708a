"""The page of a study: one self-contained file with what was asked, what came out, and pictures that answer the pointer.

`write_rates(data)` renders the plain data of `rates_data`. The page asks for nothing outside itself; its one script is
named by its hash in the page's policy, so that no other can run.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from certiformer._version import __version__
from certiformer.report.rates_assets import CSS as RATES_CSS
from certiformer.report.rates_assets import SCRIPT
from certiformer.report.rates_figures import by_axis
from certiformer.report.rates_html import slopes, table
from certiformer.report.rates_lines import rates_chart
from certiformer.report.rates_pictures import picture
from certiformer.report.style import CSS

_HASH = base64.b64encode(hashlib.sha256(SCRIPT.encode("utf-8")).digest()).decode("ascii")
_POLICY = f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{_HASH}'"
FEW = 4  # so many sentences may stand before the first picture
_NOT_SAID = "Errors are measured on samples, not proved; a slope speaks of the window it was fitted on."


def write_rates(data: Mapping[str, Any]) -> str:
    """The HTML of `report.html`."""
    title = f"the study {data['study']}"
    series = data.get("series") or []
    charts = "".join(rates_chart(group) for group in by_axis(series))
    pictures = "".join(picture(each) for each in data.get("pictures") or ())
    body = "\n".join(
        [
            f'<h1 class="mono">{escape(title)}</h1>',
            _claim(data),
            _section("Rates", f'<div class="figures">{charts}</div>' if charts else ""),
            _section("What was found", _findings(data) if _many(data) else ""),
            _section("Slopes and theories", slopes(series)),
            _section("Pictures", f'<div class="figures">{pictures}</div>' if pictures else ""),
            _section("Tables", _tables(data.get("tables") or ())),
            _section("What was not measured", _list([*(data.get("limits") or ()), _NOT_SAID])),
            _section("How it was run", _run(data)),
        ]
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{CSS}{RATES_CSS}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n"
        f"<script>{SCRIPT}</script>\n</body>\n</html>\n"
    )


def _section(title: str, content: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{content}</section>" if content else ""


def _list(sentences: Sequence[str]) -> str:
    return f'<ul class="plain">{"".join(f"<li>{escape(text)}</li>" for text in sentences)}</ul>'


def _claim(data: Mapping[str, Any]) -> str:
    jobs = data.get("jobs") or {"done": 0, "total": 0}
    whole = jobs["done"] == jobs["total"]
    word = "measured" if whole else f"incomplete: {jobs['done']} of {jobs['total']} jobs"
    return (
        f'<div class="claim {"good" if whole else "weak"}"><span class="badge">{escape(word)}</span>'
        f'<p class="sentence">{escape(data["question"])}</p>{"" if _many(data) else _findings(data)}</div>'
    )


def _many(data: Mapping[str, Any]) -> bool:
    return len(data.get("findings") or ()) > FEW


def _findings(data: Mapping[str, Any]) -> str:
    findings = "".join(f"<li>{escape(text)}</li>" for text in data.get("findings") or ())
    return f'<ul class="findings">{findings}</ul>' if findings else "<p>Nothing was found out yet.</p>"


def _tables(tables: Sequence[Mapping[str, Any]]) -> str:
    return "".join(
        f'<h3 class="spaced">{escape(each["caption"])}</h3>{table(each["headings"], each["rows"])}' for each in tables
    )


def _run(data: Mapping[str, Any]) -> str:
    """The options, and the jobs that did not end."""
    rows = [[name, value if isinstance(value, str) else json.dumps(value)] for name, value in data["options"].items()]
    jobs = data.get("jobs") or {}
    faults = [f"failed: {each['id']}: {each['reason']}" for each in jobs.get("failed", ())]
    faults += [f"missing: {each}" for each in jobs.get("missing", ())]
    note = f"<p>certiformer {__version__}. This page is a picture of <code>result.json</code> beside it.</p>"
    return table(["option", "value"], rows) + (_list(faults) if faults else "") + note
