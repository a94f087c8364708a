"""The result of a made-up study with everything that can go wrong in a picture: zeros, gaps, one point, names in HTML."""

from __future__ import annotations

import math
from typing import Any

NASTY = '<script>alert("x")</script> & $a_1$ %d \\end{table}'


def series(name: str, exponent: float = -1.0, **changes: Any) -> dict[str, Any]:
    """Errors on an exact power law, with a slope that the interval of the founding note's exponent does not hold."""
    xs = [1.0, 2.0, 4.0, 8.0, 16.0]
    made = {
        "name": name,
        "x": xs,
        "x_label": "m_h",
        "error_mse": [0.1 * x**exponent for x in xs],
        "error_l1": [0.3 * x ** (exponent / 2) for x in xs],
        "slope_mse": exponent,
        "slope_interval": [exponent - 0.1, exponent + 0.1],
        "slope_l1": exponent / 2,
        "slope_l1_interval": [exponent / 2 - 0.1, exponent / 2 + 0.1],
        "theory": {
            "founding_note": -3.0,
            "paper": exponent,
            "corrected_mse": exponent,
            "corrected_l1": exponent / 2,
        },
        "excluded": ["founding_note"],
        "window": [2.0, 16.0],
        "note": "",
    }
    return {**made, **changes}


def bare(name: str, xs: list[float], mse: list[float | None], **changes: Any) -> dict[str, Any]:
    """A series without slopes or theory."""
    none = {"slope_mse": None, "slope_interval": None, "slope_l1": None, "slope_l1_interval": None}
    return series(name, **{**none, "x": xs, "error_mse": mse, "error_l1": mse, "theory": {}, "excluded": [], **changes})


def example(**changes: Any) -> dict[str, Any]:
    """The whole result; small, with every kind of picture."""
    pictures = [
        {
            "kind": "spectrum",
            "title": "sigma",
            "data": {"names": ["a", NASTY], "values": [[1.0, 0.5, 0.0], [1.0, None]]},
        },
        {
            "kind": "graph",
            "title": "masses",
            "data": {
                "points": [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]],
                "weights": [[0.5, 0.25, 0.25], [0.0, 1.0, 0.0], [0.1, 0.7, 0.2]],
                "wanted": [[0.5, 0.3, 0.2], [0.0, 1.0, 0.0], [0.1, 0.6, 0.3]],
            },
        },
        {
            "kind": "heat",
            "title": "heat",
            "data": {"rows": ["r", NASTY], "columns": [1, 2], "values": [[1.0, None], [2.0, 3.0]]},
        },
        {
            "kind": "curves",
            "title": "curves",
            "data": {
                "x_label": "step",
                "y_label": "loss",
                "log_x": False,
                "log_y": True,
                "lines": [{"name": "long", "x": list(range(500)), "y": [math.exp(-k / 99) for k in range(500)]}],
            },
        },
    ]
    made = {
        "study": "example",
        "question": "Does it fall?",
        "options": {"mh": [1, 2, 4], "rank": [2.0, math.inf], "name": NASTY},
        "series": [
            series("straight"),
            series("steep", -2.0, x_label="m_h"),
            bare(NASTY, [1.0, 2.0, 3.0], [0.5, 0.0, None], note="a slope needs 3 points"),
            bare("one point", [4.0], [0.125]),
            bare("nothing", [], []),
        ],
        "tables": [{"caption": "A & B", "headings": ["name", "error"], "rows": [[NASTY, 0.5], ["b", None]]}],
        "pictures": pictures,
        "findings": ["The slope is −1.00.", NASTY],
        "limits": ["One seed."],
        "jobs": {"total": 3, "done": 2, "missing": ["cafe"], "failed": []},
    }
    return {**made, **changes}
