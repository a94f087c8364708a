"""Write the documentation page of every theorem from its docstring and record.

    python .ci/theorem_pages.py            # write docs/theorems/*.md, remove pages of theorems that are gone
    python .ci/theorem_pages.py --check    # write nothing; exit 1 and name the pages that are stale

The pages are committed, so that the documentation can be read and built without running anything.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from certiformer.theorem import Entry, all_theorems, cite
from certiformer.theorem.registry import INTRODUCTION, title_of

PAGES = Path(__file__).resolve().parent.parent / "docs" / "theorems"
MEANING = {
    "stated": "the statement is recorded, nothing runs yet",
    "implemented": "there is code, but neither a checker rule nor a test of its own",
    "tested": "tests of its own compare it with examples; no certificate rests on it",
    "checked": "the checker has a rule for it: each use in a certificate is verified, and its constants are recomputed",
}


def main(arguments: list[str]) -> int:
    wanted = pages(all_theorems())
    stale = stale_pages(wanted, PAGES)
    if "--check" not in arguments:
        PAGES.mkdir(parents=True, exist_ok=True)
        for name in stale:
            path = PAGES / name
            path.write_text(wanted[name], encoding="utf-8") if name in wanted else path.unlink()
        return 0
    for name in stale:
        print(f"{PAGES / name} is stale; run python .ci/theorem_pages.py")
    return 1 if stale else 0


def pages(entries: list[Entry]) -> dict[str, str]:
    """File name -> text of the index and of every theorem's page."""
    return {"index.md": index_page(entries)} | {f"{entry.record.id}.md": theorem_page(entry) for entry in entries}


def stale_pages(wanted: dict[str, str], folder: Path) -> list[str]:
    """The names of the pages that are missing, differ, or should not be there."""
    present = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.md")}
    return sorted(name for name in wanted.keys() | present.keys() if wanted.get(name) != present.get(name))


def index_page(entries: list[Entry]) -> str:
    lines = [
        "# Theorems",
        "",
        "Each theorem is one module; its docstring is its statement. `certiformer theorem` prints the same list.",
        "",
        "| theorem | says | used by | kind | status |",
        "|---|---|---|---|---|",
    ]
    for entry in sorted(entries, key=lambda e: (e.record.verb, e.record.id)):
        r = entry.record
        lines.append(f"| [`{r.id}`]({r.id}.md) | {cell(r.title)} | `{r.verb}` | {r.kind} | {entry.status} |")
    lines += ["", "The status is computed from the source, never typed:", ""]
    lines += [f"- *{status}*: {meaning};" for status, meaning in MEANING.items()]
    lines[-1] = lines[-1][:-1] + "."
    return "\n".join(lines) + "\n"


def theorem_page(entry: Entry) -> str:
    record = entry.record
    source = f"src/{entry.module.replace('.', '/')}.py"
    title, first_line = record.title.rstrip("."), title_of(entry.docstring)
    lines = [
        f"# {escaped(title)}",
        "",
        f"`{record.id}`, {record.kind}, used by `certiformer {record.verb}`, {entry.status}. Code: `{source}`.",
        "",
    ]
    if first_line != title:
        lines += [f"{escaped(first_line)}.", ""]
    for name, text in entry.sections.items():
        if name != INTRODUCTION:
            lines += [f"## {name}", ""]
        lines += [as_markdown(as_list(text) if name == "Assumptions" else text), ""]
        if name == "Source":
            lines += [f"- {escaped(cite(key))}" for key in record.citations] + [""]
    if record.uses:
        lines += ["## Uses", ""] + [f"- [`{used}`]({used}.md)" for used in record.uses] + [""]
    return "\n".join(lines).rstrip("\n") + "\n"


def as_list(text: str) -> str:
    """The assumptions as list items, whether or not the docstring gave them bullets."""
    return re.sub(r"^(?=[`*]*[a-z][a-z0-9-]*\b\W+(checked|trusted)\b)", "- ", text, flags=re.MULTILINE)


def as_markdown(text: str) -> str:
    """Docstring text as Markdown: examples become fenced blocks, and no `<` opens a tag by accident."""
    lines, in_example = [], False
    for line in text.splitlines():
        if line.lstrip().startswith(">>>") and not in_example:
            in_example = True
            lines += ["", "```pycon"]
        elif in_example and not line.strip():
            in_example = False
            lines.append("```")
        lines.append(line if in_example or line.startswith("    ") else escaped(line))
    return "\n".join([*lines, "```"] if in_example else lines).strip("\n")


def escaped(line: str) -> str:
    """The line with every `<` outside of backticks that could open a tag written as an entity."""
    parts = line.split("`")
    parts[::2] = [re.sub(r"<(?=[A-Za-z/!?])", "&lt;", part) for part in parts[::2]]
    return "`".join(parts)


def cell(text: str) -> str:
    return escaped(text).replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
