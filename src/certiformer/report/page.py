"""The page itself: claim first, then the pictures, the proof, what is not claimed, and the small print."""

from __future__ import annotations

import shlex
from fractions import Fraction
from html import escape
from typing import Any

from certiformer.kernel.claim import LONGEST_FORMULA
from certiformer.report.attention import attention
from certiformer.report.curves import curves, steps
from certiformer.report.live import live_part, policy, shortened
from certiformer.report.maps import colour_map
from certiformer.report.numbers import bound_text
from certiformer.report.sizes import candidate_table, size_facts, size_plot
from certiformer.report.style import CSS
from certiformer.report.wording import NOT_CLAIMED, NOT_CLAIMED_OF_ROWS, RECORDED, RULES, meaning, verdict
from certiformer.target import parse_epsilon
from certiformer.target.anything import epsilon_text


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


_DRAW = {"curves": curves, "steps": steps, "map": colour_map, "attention": attention, "sizes": size_plot}
_ABOUT_THE_TRANSFORMER = ("sizes", "attention")
_TONES = {"certified": "good", "refuted": "bad", "invalid": "bad"}


def write(data: dict[str, Any]) -> str:
    """The HTML of `report.html`; the package's docstring describes `data`."""
    title = f"{_subject(data)} on {data['domain']}"
    body = "\n".join(
        [
            f'<h1 class="mono">{escape(title)}</h1>',
            _claim(data),
            _section("The transformer", _transformer(data)),
            _section("Pictures", _pictures(data["pictures"], proved=data["outcome"] == "proved")),
            _section(
                "The recorded proof" if data.get("recorded") else "The proof",
                proof_tree(data["proof"]) + _assumptions(data["assumptions"]),
            ),
            _section("What is not claimed", _not_claimed(data)),
            _section("Check it yourself", _check_it(data)),
            _section("Small print", _small_print(data)),
        ]
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy()}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{CSS}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n"
        f"{live_part('build', _live(data))}</body>\n</html>\n"
    )


def _live(data: dict[str, Any]) -> dict[str, Any]:
    """What the script draws anew: pictures with values under the pointer, boxes, the proof, the candidates."""
    copied = {name: data.get(name) for name in ("epsilon", "lower", "upper", "outcome", "proof", "candidates", "boxes")}
    shown = [shortened(p) for p in data["pictures"] if p["kind"] != "sizes"]
    return {
        **copied,
        "pictures": shown,
        "epsilon": float(parse_epsilon(data["epsilon"])),
        "recorded": bool(data.get("recorded")),
    }


def _subject(data: dict[str, Any]) -> str:
    """What the page is about: the text that the user wrote, or what a folder is really about, whatever text it carries."""
    if not data.get("recorded"):
        return data["source"]
    text = ", ".join(data["formulas"])
    return text if 0 < len(text) <= LONGEST_FORMULA else "A recorded claim"


def _section(title: str, content: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{content}</section>" if content else ""


def _claim(data: dict[str, Any]) -> str:
    word = verdict(data["outcome"], data["level"], data["checked"])
    formulas = data["formulas"]
    sentence = data["sentence"]
    if data["outcome"] in ("refuted", "invalid", "undecided"):
        sentence = f"The claim was: {sentence[0].lower()}{sentence[1:]}"
    parts = [f'<span class="badge">{escape(word)}</span>', f'<p class="sentence">{escape(sentence)}</p>']
    if data.get("recorded"):
        parts.append(f"<p>{escape(RECORDED)}</p>")
    parts.append(f'<p class="quiet">{escape(meaning(data["outcome"], data["level"], data["checked"]))}</p>')
    if data["reason"] and data["outcome"] != "proved":
        reason = data["reason"]
        parts.append(f"<p>{escape(reason[0].upper() + reason[1:])}.</p>")
    if data["outcome"] != "invalid":
        parts.append(_bracket(data))
    parts += [f'<p class="quiet">{escape(note)}</p>' for note in data.get("notes", ())]
    if sum(map(len, formulas)) > LONGEST_FORMULA:
        program = "\n\n".join(formulas)
        parts.append(f"<details><summary>The recorded program</summary><pre>{escape(program)}</pre></details>")
    return f'<div class="claim {_TONES.get(word, "weak")}">{"".join(parts)}</div>'


def _bracket(data: dict[str, Any]) -> str:
    """The proved bracket of the largest error on a scale that starts at zero."""
    lower, upper, epsilon = data["lower"], data["upper"], parse_epsilon(data["epsilon"])
    low, high = Fraction(lower or 0), Fraction(upper) if upper is not None else None
    where = data.get("where", "box")
    whole = Fraction(11, 10) * max(epsilon, low, high or 0)
    left, right = float(low / whole), float(high / whole) if high is not None else 1.0
    recorded = "Recorded, not checked: " if data.get("recorded") else ""
    text = (
        f"The largest error over the {where} lies between {bound_text(lower or '0', up=False)}"
        f" and {bound_text(upper, up=True)}."
        if upper is not None
        else f"The largest error over the {where} is at least {bound_text(lower or '0', up=False)};"
        " no upper bound was proved."
    )
    place = 100 * float(epsilon / whole)
    tolerance = (
        f'<div class="mark" style="left:{place:.2f}%"><span>ε = {escape(epsilon_text(data["epsilon"]))}</span></div>'
    )
    return (
        f'<div class="bracket"><div class="track"></div><div class="known" style="left:{100 * left:.2f}%;'
        f'width:{100 * max(right - left, 0):.2f}%"></div>{tolerance}<span class="end">0</span></div><p>{recorded}{text}</p>'
    )


def _transformer(data: dict[str, Any]) -> str:
    """Its numbers, the candidates it was chosen from, its size against the tolerance, and where its heads look."""
    about = [picture for picture in data["pictures"] if picture["kind"] in _ABOUT_THE_TRANSFORMER]
    return size_facts(data["sizes"]) + candidate_table(data.get("candidates")) + _figures(about)


def _pictures(pictures: list[dict[str, Any]], proved: bool) -> str:
    shown = [picture for picture in pictures if picture["kind"] not in _ABOUT_THE_TRANSFORMER]
    if not shown:
        return ""
    rest = "; the claim rests on the proof below, which covers every point between them." if proved else "."
    return f'<p class="quiet">Samples in float64, to look at{rest}</p>{_figures(shown)}'


def _figures(pictures: list[dict[str, Any]]) -> str:
    drawn = []
    for picture in pictures:
        html = _DRAW[picture["kind"]](picture)
        drawn.append(html if picture["kind"] == "map" else html.replace("<figure>", '<figure class="broad">', 1))
    return f'<div class="figures">{"".join(drawn)}</div>' if drawn else ""


def _assumptions(assumptions: list[str]) -> str:
    if not assumptions:
        return ""
    items = "".join(f"<li>{escape(text)}</li>" for text in assumptions)
    return f'<h3>What it trusts</h3><ul class="plain">{items}</ul>'


def _not_claimed(data: dict[str, Any]) -> str:
    pairs = NOT_CLAIMED_OF_ROWS if data.get("where") == "rows" else NOT_CLAIMED
    items = "".join(f"<li><b>{escape(subject)}</b>: {escape(text)}</li>" for subject, text in pairs)
    return f'<ul class="plain">{items}</ul>'


def _check_it(data: dict[str, Any]) -> str:
    folder = shlex.quote(data["directory"] or "DIR")
    return (
        "<p>This page is a picture of its folder, not evidence. The checker reads the files and recomputes"
        f" everything:</p><pre>certiformer check {escape(folder)}</pre>"
    )


def _small_print(data: dict[str, Any]) -> str:
    rows = [
        ("text of the target, as written", data["source"]),
        (data.get("where", "box"), data["domain"]),
        ("tolerance", epsilon_text(data["epsilon"])),
        ("method", data["method"]),
    ]
    rows += [(name, data[name] or "") for name in ("lower", "upper")]
    rows.append(("bound before searching", data["apriori"] or ""))
    if data["witness"]:
        point = ", ".join(data["witness"]["point"])
        rows.append(("largest error found at", f"({point}), output {data['witness']['output'] + 1}"))
    rows += [(f"seconds, {name}", f"{value:.2f}") for name, value in data["seconds"].items()]
    rows += [(name, version) for name, version in sorted(data["versions"].items())]
    rows += [(f"sha256 of {name}", seal) for name, seal in sorted(data["seals"].items())]
    cells = "".join(
        f'<tr><th>{escape(name)}</th><td class="mono">{escape(text)}</td></tr>' for name, text in rows if text
    )
    return f"<details><summary>Exact numbers, versions and hashes</summary><table>{cells}</table></details>"
