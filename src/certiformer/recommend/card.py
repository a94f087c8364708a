"""The page about a recommender: blocks of text and tables, written as Markdown or as one HTML file with pictures."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from certiformer.disk import put_file, refuse_taken_file
from certiformer.errors import BadInput
from certiformer.kernel.check import check
from certiformer.kernel.files import HITS, MODEL, digest
from certiformer.kernel.meanings.hits import read_hits
from certiformer.recommend.evaluate import evaluate
from certiformer.recommend.folder import GUARANTEE, Recommender, read_json
from certiformer.report.recommend_pictures import hit_rates, stream_picture
from certiformer.report.style import CSS
from certiformer.theorem.bibliography import cite

TITLES = {
    "clopper-pearson": "The hit rate for new users",
    "conformal": "How long a list must be",
    "compression": "What few bits buy",
    "stream": "What held while time went on",
    "architecture": "What holds by architecture",
}
SOURCES = ("clopper1934", "vovk2005", "langford2005", "waudby2024", "yun2020", "kang2018")
NOT_SAID = (
    "Nothing is said about users who do not pass the filter, or who behave unlike those of the log.",
    "A hit is the next item in the log. That a list would have been liked, or sold more, is another question.",
    "Metrics of unsealed users are measurements; the model was tuned on their validation items.",
    "That nobody looked at the sealed users outside of this folder is believed, not checked.",
)


PROVED_BARS = {"clopper-pearson": "new users, proved", "compression": "8-bit head, proved", "stream": "stream, proved"}


class Text(NamedTuple):
    """A heading (level 1 to 3), a paragraph (level 0), or an item of a list (level -1)."""

    level: int
    words: str


class Grid(NamedTuple):
    """A table; the first column is text."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


class Picture(NamedTuple):
    """An SVG, which Markdown leaves out."""

    svg: str


Part = Text | Grid | Picture


def card(opened: Recommender) -> str:
    """The page as Markdown."""
    return as_markdown(parts(opened))


def write_card(opened: Recommender, out: Path, force: bool) -> str:
    """The page, written as Markdown or HTML by the ending of the name."""
    if out.suffix not in (".md", ".html"):
        raise BadInput(f"--out is a file.md or a file.html, not {out}")
    refuse_taken_file(out, force)
    found = parts(opened)
    page = as_markdown(found) if out.suffix == ".md" else as_html(found)
    put_file(out, page.encode("utf-8"), force)
    return page


def parts(opened: Recommender) -> list[Part]:
    """What the page says; nothing of it names a user or an item."""
    known = _known(opened)
    by_name = {one["id"]: one for one in known}
    measured = evaluate(opened)
    return [
        Text(1, "A recommender and what is guaranteed of it"),
        *_model(opened),
        Text(2, "Metrics"),
        *_metrics(measured, by_name),
        Text(2, "Guarantees"),
        *[part for one in known for part in _guarantee(one)],
        Text(2, "What is not said"),
        *[Text(-1, words) for words in NOT_SAID],
        Text(2, "Sources"),
        *[Text(-1, cite(key)) for key in SOURCES],
    ]


def _known(opened: Recommender) -> list[dict[str, Any]]:
    """The recorded guarantees, if they are of this model, and the bound of the hit rate is what `check` derives again."""
    known, again = read_json(opened.directory / GUARANTEE), f"run: certiformer recommend guarantee {opened.directory}"
    if known is None:
        raise BadInput(f"{opened.directory} has no guarantees yet; {again}")
    try:
        guarantees = known["guarantees"]
        right = [one["id"] for one in guarantees] == list(TITLES)
        same = known["model"] == digest((opened.directory / MODEL).read_bytes())
        bound = guarantees[0]["value"]
    except (LookupError, TypeError):
        right = same = bound = None
    if not right or not same:
        raise BadInput(f"{opened.directory / GUARANTEE} does not hold the guarantees of this model; {again}")
    if bound is not None:
        verdict = check(opened.directory)
        if not verdict.accepted or float(read_hits((opened.directory / HITS).read_bytes())["lower"]) != bound:
            raise BadInput(
                f"{opened.directory / GUARANTEE} states a hit rate that `check` does not derive again; {again}"
            )
    return guarantees


def _model(opened: Recommender) -> list[Part]:
    facts, config = opened.facts, opened.model.config
    data, split, recipe, training = facts["data"], facts["split"], facts["recipe"], facts["training"]
    block = config.blocks[0].attention
    heads = block.heads[0].count if block is not None else 0
    seen = "left out of" if opened.filtered else "kept in"
    loss = (
        recipe["loss"]
        if recipe["loss"] == "cross-entropy"
        else f"{recipe['loss']} with {recipe['negatives']} negatives"
    )
    tested = split["tested"]
    return [
        Text(
            0,
            f"A causal transformer reads the last {config.tokens} items of a user and scores all {config.outputs:,} items:"
            f" {len(config.blocks)} blocks of width {config.width} with {heads} heads, learned positions, norms after each"
            f" sub-layer, a read-out that is the table of items. It was trained for {training['epochs']} epochs with"
            f" {loss} and dropout {recipe['dropout']:g}.",
        ),
        Text(
            0,
            f"The data: {data['interactions']:,} interactions of {data['users']:,} users ({data['core']}-core), SHA-256"
            f" {data['sha256'][:16]}. Split: {split['kind']}; seen items are {seen} the ranking. Sealed users:"
            f" {tested['holdout']:,} for the hit rate, {tested['conformal']:,} for the lists, {tested['counted']:,} for the"
            " counted head.",
        ),
    ]


def _metrics(measured: dict[str, Any], by_name: dict[str, Any]) -> list[Part]:
    rows = []
    for name, figures in {"transformer": measured["metrics"], **measured["baselines"]}.items():
        cells = []
        for key in ("HR@10", "NDCG@10"):
            error = measured["standard_errors"][key] if name == "transformer" else None
            cells.append(f"{figures[key]:.4f}" + ("" if error is None else f" ± {2 * error:.4f}"))
        rows.append([name, *cells, f"{figures['MRR@10']:.4f}", f"{figures['coverage@10']:.3f}"])
    bars = [(name, float(row["HR@10"]), False) for name, row in measured["baselines"].items()]
    bars.append(("transformer", float(measured["metrics"]["HR@10"]), False))
    for name, words in PROVED_BARS.items():
        if by_name[name]["value"] is not None:
            bars.append((words, by_name[name]["value"], True))
    return [
        Text(
            0,
            f"Measured on the test items of {measured['users']:,} unsealed users, each ranked among all"
            f" {measured['items']:,} items; ± is two standard errors over users.",
        ),
        Grid(["", "HR@10", "NDCG@10", "MRR@10", "coverage@10"], rows),
        Picture(hit_rates("HR@10", bars)),
        Grid(
            ["history", "users", "HR@10", "NDCG@10"],
            [
                [r["history"], f"{r['users']:,}", f"{r['HR@10']:.4f}", f"{r['NDCG@10']:.4f}"]
                for r in measured["segments"]
            ],
        ),
    ]


def _guarantee(one: dict[str, Any]) -> list[Part]:
    word = "no number" if one["value"] is None else "vacuous" if one["vacuous"] else "proved"
    found: list[Part] = [
        Text(3, f"{TITLES[one['id']]} ({word})"),
        Text(0, one["sentence"]),
        Text(0, f"Assumed: {one['assumption']}"),
    ]
    details = one["details"]
    if one["id"] == "conformal" and details.get("segments"):
        rows = [
            [row["history"], f"{row['users']:,}", _number(row["mean_k"], ",.0f"), _number(row["coverage"], ".3f")]
            for row in details["segments"]
        ]
        found.append(Grid(["history", "users", "mean K", "covered"], rows))
    if one["id"] == "stream" and details.get("picture"):
        found.append(Picture(stream_picture("The stream", details["picture"])))
    if one["id"] == "architecture":
        found.append(Grid(["theorem", "says"], [[v["id"], v["verdict"]] for v in details["verdicts"]]))
    return found


def _number(value: float | None, form: str) -> str:
    return "unknown" if value is None else format(value, form)


def as_markdown(found: Sequence[Part]) -> str:
    """Markdown without pictures.

    >>> as_markdown([Text(2, "Two"), Text(0, "Words."), Grid(["a", "b"], [["x", "1"]])])
    '## Two\\n\\nWords.\\n\\n| a | b |\\n|---|--:|\\n| x | 1 |\\n'
    """
    blocks: list[str] = []
    for place, part in enumerate(found):
        if isinstance(part, Grid):
            rule = "|---|" + "--:|" * (len(part.headings) - 1)
            lines = [f"| {' | '.join(row)} |" for row in part.rows]
            blocks.append("\n".join([f"| {' | '.join(part.headings)} |", rule, *lines]))
        elif isinstance(part, Text):
            before = found[place - 1] if place else None
            if part.level == -1 and isinstance(before, Text) and before.level == -1:
                blocks[-1] += f"\n- {part.words}"
            else:
                blocks.append({-1: "- ", 0: ""}.get(part.level, "#" * part.level + " ") + part.words)
    return "\n\n".join(blocks) + "\n"


def as_html(found: Sequence[Part]) -> str:
    """One HTML file that needs no other one."""
    body = "".join(map(_html, found))
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><style>{CSS}</style>'
    title = next((part.words for part in found if isinstance(part, Text) and part.level == 1), "Recommender")
    page = f"<head>{head}<title>{escape(title)}</title></head><body><main>{body}</main></body>"
    return f'<!doctype html><html lang="en">{page}</html>\n'


def _html(part: Part) -> str:
    if isinstance(part, Picture):
        return f"<figure>{part.svg}</figure>"
    if isinstance(part, Grid):
        head = "".join(f"<th>{escape(cell)}</th>" for cell in part.headings)
        rows = [
            "<tr>" + "".join(f"<td{' class=number' if n else ''}>{escape(c)}</td>" for n, c in enumerate(row)) + "</tr>"
            for row in part.rows
        ]
        return f'<div class="scroll"><table><tr>{head}</tr>{"".join(rows)}</table></div>'
    if part.level == -1:
        return f'<ul class="plain"><li>{escape(part.words)}</li></ul>'
    tag = f"h{part.level}" if part.level else "p"
    return f"<{tag}>{escape(part.words)}</{tag}>"
