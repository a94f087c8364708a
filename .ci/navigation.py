"""Compare the navigation in mkdocs.yml with the pages in docs/; the strict build does not.

    python .ci/navigation.py [FOLDER]      # FOLDER holds mkdocs.yml and docs/; default: this checkout

Every entry must name a page that exists, and every page must be in the navigation, except the generated pages of single
theorems, which their index links.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ENTRY = re.compile(r"^\s*-\s+(?:[^:#]+:\s+)?([\w/.-]+\.md)\s*$")


def main(arguments: list[str]) -> int:
    faults = navigation_faults(Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent)
    for fault in faults:
        print(fault)
    return 1 if faults else 0


def navigation_faults(folder: Path) -> list[str]:
    lines = (folder / "mkdocs.yml").read_text(encoding="utf-8").splitlines()
    start = lines.index("nav:") + 1
    listed = []
    for line in lines[start:]:
        if line and not line[0].isspace():
            break
        if entry := ENTRY.match(line):
            listed.append(entry.group(1))
    docs = folder / "docs"
    pages = {path.relative_to(docs).as_posix() for path in docs.rglob("*.md")}
    single_theorems = {page for page in pages if page.startswith("theorems/") and page != "theorems/index.md"}
    unlisted = sorted(pages - single_theorems - set(listed))
    twice = sorted({page for page in listed if listed.count(page) > 1})
    return [
        *(f"mkdocs.yml lists {page}, which does not exist" for page in listed if page not in pages),
        *(f"docs/{page} is not in the navigation of mkdocs.yml" for page in unlisted),
        *(f"mkdocs.yml lists {page} twice" for page in twice),
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
