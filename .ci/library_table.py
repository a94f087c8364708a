"""Write the table of library programs into docs/compile.md: compiled, certified, with their sizes.

    python .ci/library_table.py            # compile every program and rewrite the table
    python .ci/library_table.py --check    # write nothing; exit 1 when the table is stale

The table stands between two comment lines of the page. It is committed, so that the page can be read without running
anything.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable
from pathlib import Path

import certiformer
from certiformer.rasp.library import Entry, catalogue

PAGE = Path(__file__).resolve().parent.parent / "docs" / "compile.md"
BEGIN, END = "<!-- library table: begin -->", "<!-- library table: end -->"
LENGTH = 16
EXAMPLE_LENGTH, TRIES = 6, 10_000


def main(arguments: list[str]) -> int:
    page = PAGE.read_text(encoding="utf-8")
    wanted = with_table(page, table(catalogue().values()))
    if "--check" not in arguments:
        PAGE.write_text(wanted, encoding="utf-8")
        return 0
    if wanted != page:
        print(f"the table of {PAGE} is stale; run python .ci/library_table.py")
    return int(wanted != page)


def with_table(page: str, lines: list[str]) -> str:
    """The page with these lines between its two marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{PAGE} has no table: the lines {BEGIN} and {END} are missing")
    return "\n".join([before + BEGIN, "", *lines, "", END]) + after


def table(entries: Iterable[Entry]) -> list[str]:
    lines = [
        "| program | example | layers | heads | hidden units | width | parameters | dtype |",
        "|---|---|--:|--:|--:|--:|--:|---|",
    ]
    for entry in entries:
        compiled = certiformer.compile(entry.make(), entry.vocab, LENGTH, name=entry.name)
        bill = compiled.subject.bill
        sizes = (bill.layers, bill.heads, bill.units, bill.width, bill.parameters)
        dtype = compiled.subject.dtype if compiled.certified else "not proved"
        cells = [f"`{entry.name}`", example(entry), *(f"{size:,}" for size in sizes), dtype]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def example(entry: Entry) -> str:
    """An input that the program is meant for and that shows something: the first drawn whose answers are not all alike in
    being False, 0 or undefined."""
    draw, program = random.Random(entry.name), entry.make()
    for _ in range(TRIES):
        xs = [draw.choice(entry.vocab) for _ in range(EXAMPLE_LENGTH)]
        if entry.name == "addition":
            xs = [*(draw.randrange(10) for _ in range(3)), "+", *(draw.randrange(10) for _ in range(3))]
        if entry.fits(xs) and any(program(xs)):
            return f"`{spelled(xs)}` → `{spelled(program(xs))}`"
    raise SystemExit(f"no example was found for {entry.name}")


def spelled(values: list) -> str:
    texts = (f"{v:.3g}" if isinstance(v, float) else str(v) for v in values)
    return " ".join(texts).replace("|", "¦")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
