"""Write the page of the Python API, docs/reference.md, from the docstrings of the public functions and classes.

    python .ci/reference.py            # write the page
    python .ci/reference.py --check    # write nothing; exit 1 when the page is stale

The page is committed, so that it can be read without running anything.
"""

from __future__ import annotations

import inspect
import re
import sys
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any

import certiformer

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference.md"
GROUPS = {
    "Make and prove": ("build", "prove", "curve", "from_torch", "size"),
    "Compile": ("compile", "compile_machine", "compile_automaton", "compile_circuit", "compile_incontext", "run"),
    "Look and check": ("load", "check", "show", "export", "audit", "explore"),
    "Measure and learn": ("rates", "theorem", "train"),
    "What they return": ("Artifact", "Curve", "Certificate", "Outcome", "Verdict", "Transformer"),
    "Recommend": ("recommend_fit", "recommend_top", "recommend_evaluate", "recommend_guarantee", "recommend_card"),
    "Errors": ("BadInput",),
}
HOMES = {
    "audit": "api.auditing",
    "export": "api.exporting",
    "rates": "api.studies",
    "theorem": "api.studies",
    "train": "train",
}
NOT_SHOWN = {"__version__", "rasp"}  # a text, and a language with a page of its own


def main(arguments: list[str]) -> int:
    wanted = page()
    if "--check" not in arguments:
        PAGE.write_text(wanted, encoding="utf-8")
        return 0
    if not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != wanted:
        print(f"{PAGE} is stale; run python .ci/reference.py")
        return 1
    return 0


def page() -> str:
    """The whole page; a public name that is in no group stands under `Others`, so that none is forgotten."""
    public = [name for name in certiformer.__all__ if name not in NOT_SHOWN]
    groups = {title: [name for name in names if name in public] for title, names in GROUPS.items()}
    groups["Others"] = [name for name in public if not any(name in names for names in groups.values())]
    lines = [
        "# Python",
        "",
        "Everything that `import certiformer` offers. The functions are the verbs of the command line, with the same names",
        "and defaults; `certiformer.rasp` is [the language](rasp.md) of programs.",
    ]
    for title, names in groups.items():
        if names:
            lines += ["", f"## {title}"]
        for name in names:
            lines += ["", f"### {name}", "", *entry(name, public_object(name))]
    return "\n".join(lines) + "\n"


def public_object(name: str) -> Any:
    """The object behind a public name; of a package that can be called, the function."""
    home = HOMES.get(name)
    if home is None:
        return getattr(certiformer, name)
    return getattr(import_module(f"certiformer.{home}"), name)


def entry(name: str, thing: Any) -> list[str]:
    if inspect.isclass(thing) and issubclass(thing, Enum):
        lines = [f"One of {', '.join(f'`{member.value}`' for member in thing)}.", "", inspect.getdoc(thing) or ""]
    else:
        lines = [*signature(name, thing), "", *prose(inspect.getdoc(thing) or "")]
    if not inspect.isclass(thing):
        return lines
    for member, value in vars(thing).items():
        function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        if member.startswith("_") or not callable(function) or inspect.isclass(function):
            continue
        shown = [f"`{member}`"] if isinstance(value, property) else signature(member, inspect.unwrap(function))
        lines += ["", f"#### {name}.{member}", "", *shown, "", *prose(inspect.getdoc(function) or "")]
    return lines


def signature(name: str, thing: Any) -> list[str]:
    """The call as code, an argument a line where it is long."""
    try:
        parameters = list(inspect.signature(thing).parameters.values())
    except ValueError:
        return []
    shown, bare = [], False
    for parameter in parameters:
        if parameter.name in ("self", "cls"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not bare:
            shown, bare = [*shown, "*"], True
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        bare = bare or stars == "*"
        default = "" if parameter.default is parameter.empty else f"={default_text(parameter.default)}"
        shown.append(f"{stars}{parameter.name}{default}")
    one = f"{name}({', '.join(shown)})"
    many = f"{name}(\n" + "".join(f"    {part},\n" for part in shown) + ")"
    return ["```text", one if len(one) <= 100 else many, "```"]


def default_text(value: Any) -> str:
    text = repr(value)
    return "..." if re.search(r" at 0x|<factory>", text) else text


def prose(docstring: str) -> list[str]:
    """The docstring as Markdown, its doctests as code that is only read (the tests run it where it stands)."""
    lines: list[str] = []
    inside = False
    for line in docstring.splitlines():
        if line.startswith(">>>") and not inside:
            inside = True
            lines += ([""] if lines and lines[-1] else []) + ["```pycon"]
        elif inside and not line.strip():
            inside = False
            lines.append("```")
        lines.append(line.rstrip())
    return [*lines, "```"] if inside else lines


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
