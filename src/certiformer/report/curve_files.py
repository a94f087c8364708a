"""The files of a curve of size against proved error: CSV, LaTeX and, with matplotlib, SVG and PDF."""

from __future__ import annotations

import csv
import io
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from certiformer.report.numbers import bound_text
from certiformer.report.rates_figure_kinds import curves_figure
from certiformer.report.rates_figures import require_matplotlib, save
from certiformer.report.rates_tables import to_latex

HEADINGS = ("epsilon", "outcome", "error at least", "at most", "nonzero", "heads", "units", "method")
COLUMNS = ("epsilon", "outcome", "lower", "upper", "nonzero", "parameters", "heads", "units", "registers", "method")
MORE = ("seconds", "folder", "weights")  # measured, where it is, and the hash of its weights


def rows_of(data: Mapping[str, Any]) -> list[list[Any]]:
    """A row for each tolerance; bounds of the error are rounded outward.

    >>> point = {"epsilon": "0.1", "outcome": "certified", "lower": "0.01234567", "upper": "0.0234567", "nonzero": 12}
    >>> rows_of({"points": [{**point, "heads": 1, "units": 3, "method": "fit"}]})
    [['0.1', 'certified', '0.01234', '0.02346', 12, 1, 3, 'fit']]
    """
    return [
        [
            point["epsilon"],
            point["outcome"],
            None if point["lower"] is None else bound_text(point["lower"], up=False),
            None if point["upper"] is None else bound_text(point["upper"], up=True),
            *(point[name] for name in ("nonzero", "heads", "units", "method")),
        ]
        for point in data["points"]
    ]


def curve_files(data: Mapping[str, Any], *, pictures: bool) -> dict[str, bytes]:
    """The files by name. With `pictures`, also those that need matplotlib, or `MissingExtra`."""
    files = {"curve.csv": _csv(data).encode(), "curve.tex": _latex(data).encode()}
    if pictures:
        require_matplotlib()
        with tempfile.TemporaryDirectory() as folder:
            for name in save(lambda: curves_figure(_picture(data)), Path(folder) / "curve"):
                files[name] = (Path(folder) / name).read_bytes()
    return files


def _csv(data: Mapping[str, Any]) -> str:
    """Every number as it is known: bounds with all their digits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = (*COLUMNS, *MORE)
    writer.writerow(names)
    writer.writerows([[point[name] for name in names] for point in data["points"]])
    return text.getvalue()


def _latex(data: Mapping[str, Any]) -> str:
    caption = f"Size and proved error of transformers for {data['target']} on {data['on']}; bounds are rounded outward"
    table = {"caption": caption, "headings": list(HEADINGS), "rows": rows_of(data)}
    return to_latex({"study": "curve", "tables": [table]})


def _picture(data: Mapping[str, Any]) -> dict[str, Any]:
    """The proved ends of the error over the size, and the tolerance that was asked for."""
    sized = [point for point in data["points"] if point["nonzero"] is not None]
    lines = [("error at most (proved)", "upper"), ("error at least (proved)", "lower"), ("epsilon", "epsilon")]
    drawn = [
        {
            "name": name,
            "x": [point["nonzero"] for point in sized],
            "y": [None if point[key] is None else _float(point[key]) for point in sized],
        }
        for name, key in lines
    ]
    labels = {"x_label": "nonzero weights", "y_label": "largest error on the box", "log_x": True, "log_y": True}
    return {"title": f"{data['target']} on {data['on']}", "data": {**labels, "lines": drawn}}


def _float(text: str) -> float:
    """A number for a picture, from a decimal or a fraction."""
    above, _, below = text.partition("/")
    return float(above) / float(below or 1)
