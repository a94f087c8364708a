"""`circuit.html`: what a compiled transformer computes where, as one self-contained page.

`write_circuit(data)` renders plain data; nothing here runs a model. The entries (texts unless said otherwise):

| entry | what it holds |
|---|---|
| `name`, `word`, `sentence` | the program, `certified` or what else became of the claim, the claim |
| `facts` | pairs: name and number of what the transformer is made of |
| `width` | an integer, the number of coordinates |
| `sublayers` | their names, the embedding first |
| `cells` | a list of `{"id": int, "name", "coordinate": int, "life", "values", "line", "example": [texts]}` |
| `steps` | a list of `{"sublayer": int, "kind", "text", "reads": {role: [cell ids]}, "writes", "clears": [cell ids]}` |
| `example` | `{"tokens": [texts], "outputs": [texts]}` |
| `patterns` | a picture of the kind `attention`, see the package |
| `program` | the typed graph, one line a node |
| `directory` | the folder, or None |

The kinds of steps are `embedding`, `head`, `table` and `clear`; the roles `query`, `key` and `value`.
"""

from __future__ import annotations

import shlex
from html import escape
from typing import Any

from certiformer.report.attention import attention
from certiformer.report.circuit_wires import CSS as WIRES_CSS
from certiformer.report.circuit_wires import wires
from certiformer.report.live import live_part, policy
from certiformer.report.style import CSS
from certiformer.report.wording import RECORDED


def write_circuit(data: dict[str, Any]) -> str:
    """The HTML of the page."""
    title = f"{data['name']}, compiled"
    sections = [
        f'<h1 class="mono">{escape(title)}</h1>',
        _claim(data),
        _section("An example", _example(data["example"])),
        _section("The circuit", f'<p>{_HOW_TO_READ}</p><figure class="circuit">{wires(data)}</figure>'),
        _section("Where the heads look", _patterns(data["patterns"])),
        _section("The variables", _variables(data)),
        _section("The program", _program(data["program"])),
        _section("Check it yourself", _check_it(data["directory"])),
    ]
    body = "\n".join(sections)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy()}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{CSS}{WIRES_CSS}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n"
        f"{live_part('circuit', {'patterns': data['patterns'], 'cells': data['cells']})}</body>\n</html>\n"
    )


_HOW_TO_READ = (
    "Every vertical wire is one coordinate of the residual stream; time runs down. Each row is one head, or one group of"
    " hidden units: it reads the marked wires and writes the boxed one."
)


def _section(title: str, content: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{content}</section>" if content else ""


def _claim(data: dict[str, Any]) -> str:
    word, sentence = data["word"], data["sentence"]
    tone = "good" if word == "certified" else "weak"
    if word == "proved, as recorded":
        sentence = f"{RECORDED} The claim is: {sentence[0].lower()}{sentence[1:]}"
    elif word != "certified":
        sentence = f"Not proved. The claim was: {sentence[0].lower()}{sentence[1:]}"
    items = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in data["facts"])
    return (
        f'<div class="claim {tone}"><span class="badge">{escape(data["word"])}</span>'
        f'<p class="sentence">{escape(sentence)}</p></div><section><h2>The transformer</h2>'
        f'<dl class="facts">{items}</dl></section>'
    )


def _example(example: dict[str, Any]) -> str:
    places = "".join(f"<th>{place}</th>" for place in range(len(example["tokens"])))
    rows = "".join(
        f"<tr><th>{name}</th>{''.join(f'<td>{escape(text)}</td>' for text in example[key])}</tr>"
        for name, key in (("in", "tokens"), ("out", "outputs"))
    )
    head = f"<thead><tr><th></th>{places}</tr></thead>"
    return f'<div class="scroll"><table class="answer">{head}<tbody>{rows}</tbody></table></div>'


def _patterns(picture: dict[str, Any]) -> str:
    return (
        f'<div class="patterns">{attention(picture)}</div>'
        if picture["heads"]
        else "<p>There is no head: every position answers by itself.</p>"
    )


def _variables(data: dict[str, Any]) -> str:
    head = "".join(
        f"<th>{name}</th>" for name in ("coordinate", "variable", "lives", "values", "source", "in the example")
    )
    rows = ""
    for cell in sorted(data["cells"], key=lambda cell: cell["coordinate"]):
        texts = (str(cell["coordinate"]), cell["name"], cell["life"], cell["values"], cell["line"])
        shown = " ".join(cell["example"])
        rows += f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in texts)}<td class='mono'>{escape(shown)}</td></tr>"
    return f'<div class="scroll"><table class="variables"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _program(text: str) -> str:
    return f"<details><summary>The typed graph</summary><pre>{escape(text)}</pre></details>" if text else ""


def _check_it(directory: str | None) -> str:
    folder = escape(shlex.quote(directory or "DIR"))
    return (
        "<p>This page is a drawing of its folder, not evidence. The checker verifies every statement of it from"
        f" the weights:</p><pre>certiformer check {folder}</pre>"
    )
