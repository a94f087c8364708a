"""The page of an audit: one self-contained file with spectra, heat maps, factors of bounds, coverage and verdicts.

`write_audit(data)` renders the JSON data of an audit (`certiformer audit --json`); nothing here opens a checkpoint, and
the page asks for nothing outside itself."""

from __future__ import annotations

from html import escape
from typing import Any

from certiformer.report.audit_pictures import CSS as PICTURES_CSS
from certiformer.report.audit_pictures import heat_maps, spectra, waterfall
from certiformer.report.live import live_part, policy
from certiformer.report.numbers import short
from certiformer.report.style import CSS

_ORDER = ("holds", "false", "vacuous", "holds-if", "open", "does-not-apply")
_QK, _VO = "|W_Q^T W_K| / √e", "|W_O W_V|"
_FACTS = (
    ("parameters", "parameters"),
    ("layers", "layers"),
    ("largest QK/√e", "qk_spectral"),
    ("largest OV", "vo_spectral"),
    ("score bound", "score_bound"),
    ("median α", "alpha"),
    ("like random", "random_heads"),
    ("warnings", "warnings"),
)


def write_audit(data: dict[str, Any]) -> str:
    """The HTML of the page."""
    title = f"audit of {data['path']}"
    layers = data["layers"]
    falls = "".join(waterfall(each, data["given"]["loss"] or 0.0) for each in data["theorems"] if each["factors"])
    sections = [
        f'<h1 class="mono">{escape(title)}</h1>',
        _claim(data),
        _section("The model", _facts(data)),
        _section("What theorems say", _theorems(data["theorems"])),
        _section("What makes a bound large", f'<div class="figures">{falls}</div>' if falls else ""),
        _section("Queries and keys, head by head", heat_maps(layers, "qk", _QK)),
        _section("Values and outputs, head by head", heat_maps(layers, "vo", _VO)),
        _section("Spectra of the scores", spectra(layers, "qk", "W_Q^T W_K")),
        _section("Spectra of the values", spectra(layers, "vo", "W_O W_V")),
        _section("Common mistakes", _diagnostics(data["diagnostics"])),
        _section("Where every weight is from", _provenance(data["provenance"])),
        f'<p class="quiet">{_BOUNDARY}</p>',
    ]
    body = "\n".join(sections)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy()}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{CSS}{PICTURES_CSS}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n"
        f"{live_part('audit', _live(data))}</body>\n</html>\n"
    )


def _live(data: dict[str, Any]) -> dict[str, Any]:
    """What the script draws anew: theorems as a table that sorts, factors, and the norms of every head."""
    layers = [
        {"heads": [{name: head[name] for name in ("qk_spectral", "vo_spectral")} for head in layer["heads"]]}
        for layer in data["layers"]
    ]
    return {"theorems": data["theorems"], "layers": layers}


_BOUNDARY = (
    "Norms and spectra are those of the stored weights, raw: without gains and biases unless a line says so. They prove"
    " nothing about behaviour beyond the theorems above."
)


def _section(title: str, content: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{content}</section>" if content else ""


def _claim(data: dict[str, Any]) -> str:
    coverage, bad = data["coverage"], data["not_finite"]
    whole = not coverage["missing"] and not bad
    badge = "complete" if whole else "incomplete"
    sentences = "".join(f'<p class="sentence">{escape(sentence)}</p>' for sentence in data["summary"])
    lines = [f"Not accounted for: {each['tensor']} {tuple(each['shape'])}" for each in coverage["missing"]]
    lines += [f"NaN or infinite entries: {name}" for name in bad]
    lines += [f"Tied copy, counted once: {name}" for name in coverage["copies"]]
    lines += [f"Buffer, no parameters: {name}" for name in coverage["buffers"][:6]]
    items = "".join(f"<li>{escape(line)}</li>" for line in (*lines, *data["notes"]))
    return (
        f'<div class="claim {"good" if whole else "bad"}"><span class="badge">{badge}</span>'
        f'{sentences}<ul class="plain quiet">{items}</ul></div>'
    )


def _facts(data: dict[str, Any]) -> str:
    shape = data["architecture"]
    facts = [("family", data["family"]), ("width", f"{shape['width']:,}"), ("norms", shape["norm_place"] or "none")]
    facts += [("positions", shape["positions"] or "not known")]
    facts += [("made for", f"{shape['context']:,} tokens")] if shape["context"] else []
    for name, key in _FACTS:
        value = data["figures"][key]
        if value is not None:
            facts.append((name, _count(value) if key == "parameters" else short(value)))
    items = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(str(value))}</dd></div>" for name, value in facts)
    return f'<dl class="facts">{items}</dl>'


def _count(value: float) -> str:
    """A number of parameters in millions or billions.

    >>> _count(22_713_216.0), _count(512.0), _count(6.74e9)
    ('22.7 M', '512', '6.74 B')
    """
    for size, word in ((1e9, " B"), (1e6, " M")):
        if value >= size:
            return f"{value / size:.3g}{word}"
    return f"{value:,.0f}"


def _theorems(theorems: list[dict[str, Any]]) -> str:
    """What says something; what does not apply is folded."""
    silent = [each for each in theorems if each["verdict"] == _ORDER[-1]]
    table = _theorem_table([each for each in theorems if each["verdict"] != _ORDER[-1]])
    if not silent:
        return table
    return f"{table}<details><summary>{len(silent)} theorems do not apply</summary>{_theorem_table(silent)}</details>"


def _theorem_table(theorems: list[dict[str, Any]]) -> str:
    rows = ""
    for each in sorted(theorems, key=lambda each: _ORDER.index(each["verdict"])):
        needs = f"<small>Needs {escape('; '.join(each['needs']))}.</small>" if each["needs"] else ""
        value = "" if each["value"] is None else escape(short(each["value"]))
        rows += (
            f'<tr><td class="mono">{_name(each["id"])}</td>'
            f'<td><span class="verdict {each["verdict"]}">{each["verdict"].replace("-", " ")}</span></td>'
            f"<td>{value}</td><td>{escape(each['sentence'])}{needs}</td></tr>"
        )
    head = "".join(f"<th>{name}</th>" for name in ("theorem", "verdict", "value", "what it says"))
    return f'<table class="theorems"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'


def _name(theorem: str) -> str:
    """The last part of the id, which may be broken behind its underscores only."""
    return escape(theorem.rpartition(".")[2]).replace("_", "_<wbr>")


def _diagnostics(found: list[dict[str, Any]]) -> str:
    items = ""
    for each in found:
        tone = "vacuous" if each["level"] == "warning" else ""
        items += (
            f'<li><span class="verdict {tone}">{escape(each["id"])}</span> <b>{escape(each["name"])}.</b>'
            f" {escape(each['sentence'])}</li>"
        )
    return f'<ul class="plain">{items}</ul>'


def _provenance(weights: list[dict[str, Any]]) -> str:
    rows = ""
    for each in weights:
        how = ", ".join(filter(None, (each["part"], "transposed" if each["transposed"] else "", each["made"])))
        cells = (each["weight"], str(tuple(each["shape"])), each["tensor"], each["file"], each["stored"], how)
        rows += f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
    head = "".join(f"<th>{name}</th>" for name in ("weight", "shape", "tensor", "file", "stored", "how"))
    table = f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
    return f"<details><summary>{len(weights):,} weights</summary>{table}</details>"
