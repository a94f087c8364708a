"""The tables of a study in Markdown and in LaTeX (with booktabs), and the values of its series as CSV.

In LaTeX special characters print as themselves, and the symbols of our sentences have their commands.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from typing import Any

from certiformer.report.rates_data import cell_text, exclusions, slope_text, theory_name

_GREEK = {
    "α": "alpha",
    "β": "beta",
    "γ": "gamma",
    "δ": "delta",
    "ε": "varepsilon",
    "θ": "theta",
    "λ": "lambda",
    "μ": "mu",
    "π": "pi",
    "ρ": "rho",
    "σ": "sigma",
    "τ": "tau",
    "φ": "varphi",
    "ψ": "psi",
    "ω": "omega",
}
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "−": "$-$",
    "–": "--",
    "×": r"$\times$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "→": r"$\to$",
    "√": r"$\surd$",
    "²": r"\textsuperscript{2}",
    "…": r"\dots{}",
    "·": r"$\cdot$",
    "±": r"$\pm$",
    "∞": r"$\infty$",
    **{letter: f"$\\{name}$" for letter, name in _GREEK.items()},
}


def latex(text: str) -> str:
    """One line of LaTeX that prints the text.

    >>> latex("50% of x_1 & α")
    '50\\\\% of x\\\\_1 \\\\& $\\\\alpha$'
    """
    return "".join(_SPECIAL.get(letter, letter) for letter in " ".join(str(text).split()))


_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>|])")
PARAGRAPH = 40  # letters from which on a cell is broken into lines
SLOPES = "Slopes of the errors on logarithmic axes, with intervals"


def all_tables(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The table of slopes, if there are series, then the tables of the study."""
    slopes = [slope_table(data["series"])] if data.get("series") else []
    return [*slopes, *(data.get("tables") or ())]


def slope_table(series: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One line for each series: slopes, theory, and what the interval says about it."""
    rows = []
    for each in series:
        theory = {theory_name(name): value for name, value in (each.get("theory") or {}).items()}
        named = ", ".join(f"{name} {cell_text(value, 3)}" for name, value in theory.items())
        verdict = exclusions(each) or str(each.get("note") or "")
        rows.append([each["name"], slope_text(each, "mse"), slope_text(each, "l1"), named, verdict])
    return {"caption": SLOPES, "headings": ["series", "slope of MSE", "slope of L1", "theory", "verdict"], "rows": rows}


def to_markdown(data: Mapping[str, Any]) -> str:
    """What was asked, what came out, and every table.

    >>> print(to_markdown({"study": "s", "question": "why?", "tables": [
    ...     {"caption": "A|B", "headings": ["n", "error"], "rows": [[2, 0.5], ["<b>", None]]}]}))
    # s
    <BLANKLINE>
    why?
    <BLANKLINE>
    ## A\\|B
    <BLANKLINE>
    | n | error |
    |---|---|
    | 2 | 0.5 |
    | \\<b\\> | – |
    <BLANKLINE>
    """
    lines = [f"# {_markdown(data['study'])}", "", _markdown(data["question"]), ""]
    for title, key in (("What came out", "findings"), ("What was not measured", "limits")):
        if data.get(key):
            lines += [f"## {title}", "", *(f"- {_markdown(text)}" for text in data[key]), ""]
    for table in all_tables(data):
        lines += [
            f"## {_markdown(table['caption'])}",
            "",
            _row(table["headings"]),
            "|---" * len(table["headings"]) + "|",
        ]
        lines += [*(_row(row) for row in table["rows"]), ""]
    return "\n".join(lines)


def _row(cells: Sequence[Any]) -> str:
    return f"| {' | '.join(_markdown(cell_text(cell)) for cell in cells)} |"


def _markdown(text: str) -> str:
    return _MARKDOWN.sub(r"\\\1", " ".join(str(text).split()))


def to_latex(data: Mapping[str, Any]) -> str:
    """Every table as a `table` environment; needs `\\usepackage{booktabs}`.

    >>> print(to_latex({"study": "s", "tables": [{"caption": "50%", "headings": ["m_h"], "rows": [[0.25]]}]}))
    % the study s; needs \\usepackage{booktabs}
    \\begin{table}
      \\caption{50\\%}
      \\label{tab:s-1}
      \\begin{tabular}{l}
        \\toprule
        m\\_h \\\\
        \\midrule
        0.25 \\\\
        \\bottomrule
      \\end{tabular}
    \\end{table}
    <BLANKLINE>
    """
    label = re.sub(r"[^a-z0-9]+", "-", str(data["study"]).lower())
    lines = [f"% the study {label}; needs \\usepackage{{booktabs}}"]
    for place, table in enumerate(all_tables(data), 1):
        columns = "".join(_column(table, column) for column in range(len(table["headings"]))) or "l"
        lines += ["\\begin{table}", f"  \\caption{{{latex(table['caption'])}}}", f"  \\label{{tab:{label}-{place}}}"]
        lines += [f"  \\begin{{tabular}}{{{columns}}}", "    \\toprule", _tex_row(table["headings"]), "    \\midrule"]
        lines += [_tex_row(row) for row in table["rows"]]
        lines += ["    \\bottomrule", "  \\end{tabular}", "\\end{table}", ""]
    return "\n".join(lines)


def _column(table: Mapping[str, Any], column: int) -> str:
    """How a column is set: texts to the left, long ones as paragraphs, numbers to the right."""
    cells = [row[column] for row in table["rows"] if column < len(row)]
    if any(len(cell_text(cell)) > PARAGRAPH for cell in cells):
        return r"p{.3\linewidth}"
    return "l" if column == 0 or any(isinstance(cell, str) for cell in cells) else "r"


def _tex_row(cells: Sequence[Any]) -> str:
    return f"    {' & '.join(latex(cell_text(cell)) for cell in cells)} \\\\"


def series_csv(data: Mapping[str, Any]) -> str:
    """Every measured point, one line each."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["study", "series", "x_label", "x", "error_mse", "error_l1"])
    for each in data.get("series") or ():
        for x, mse, l1 in zip(each["x"], each["error_mse"], each["error_l1"], strict=False):
            writer.writerow([data["study"], each["name"], each["x_label"], x, mse, l1])
    return text.getvalue()
