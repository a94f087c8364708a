"""What the rows of the study of pruning say, in sentences, a table and a picture."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from certiformer.rates.over_seeds import in_words
from certiformer.rates.size_summary import factor, median
from certiformer.rates.study import Picture, Table
from certiformer.sweep.job import Row

METHODS = ("magnitude", "rank")
X_LABEL = "kept share"
TOLERATED = 2.0  # times the error before pruning


def kept_sentence(name: str, rows: Sequence[Row]) -> list[str]:
    """The smallest share with at most `TOLERATED` times the error of the whole model, seed by seed."""
    shares = []
    for seed in sorted({row["seed"] for row in rows}):
        own = {row["x"]: row["test_mse"] for row in rows if row["seed"] == seed}
        if 1.0 in own:
            enough = [x for x in own if all(e <= TOLERATED * own[1.0] for y, e in own.items() if y >= x)]
            shares.append(min(enough))
    if not shares:
        return []
    return [
        f"{name}: the error stays within {TOLERATED:g} times that of the whole model down to a kept share of"
        f" {in_words(shares)} over {len(shares)} seeds."
    ]


def half_sentence(part: str, rows: Sequence[Row]) -> list[str]:
    """Rank against magnitude where both keep half of a part."""
    half = {m: [r for r in rows if (r["part"], r["method"], r["x"]) == (part, m, 0.5)] for m in METHODS}
    found = factor(half["rank"], half["magnitude"])
    if found is None:
        return []
    return [f"{part}, half kept: the error by rank over that by magnitude is {found} ({found.verdict})."]


def certificate_sentence(rows: Sequence[Row]) -> list[str]:
    """Whether the certificate lies above every measured change, and how far."""
    checked = [row for row in rows if row["bound"] is not None]
    if not checked:
        return []
    points, above = sum(row["points"] for row in checked), sum(row["above_bound"] for row in checked)
    if above:
        return [f"The certificate of the scores is exceeded at {above} of {points} points: it or its code is wrong."]
    tight = [row["tightness"] for row in checked if row["tightness"] is not None and 0 < row["x"] < 1]
    text = f"The certificate of the scores lies above the measured change at all {points} points and tokens"
    return [text + (f"; the mean change is {np.median(tight):.3g} of the mean bound (median)." if tight else ".")]


def spectrum_sentence(rows: Sequence[Row], rank: int) -> list[str]:
    """How much of the scores the leading singular values hold, as many as the target has."""
    shares = []
    for seed in sorted({row["seed"] for row in rows}):
        values = next((np.array(r["singular_values"]) for r in rows if r["seed"] == seed and r["part"] == "QK"), None)
        if values is not None:
            shares.append(float((values[:rank] ** 2).sum() / (values**2).sum()))
    if not shares:
        return []
    return [
        f"The first {rank} singular values of the trained W_Q W_K^T, as many as the target's kernel has, hold"
        f" {in_words(shares)} of the sum of squares over {len(shares)} seeds."
    ]


def spectrum_pictures(rows: Sequence[Row]) -> list[Picture]:
    """The singular values of every part of the first model."""
    first = min((row["seed"] for row in rows), default=None)
    found = {row["part"]: row["singular_values"] for row in rows if row["seed"] == first}
    if not found:
        return []
    return [
        Picture(
            "spectrum", f"Singular values by part, seed {first}", {"names": list(found), "values": list(found.values())}
        )
    ]


def pruning_table(rows: Sequence[Row]) -> Table:
    """Errors and changes by part, method and kept share."""
    headings = [
        "part",
        "method",
        X_LABEL,
        "test MSE",
        "test L1",
        "largest change",
        "largest bound",
        "points above bound",
    ]
    lines = []
    for part, method, x in dict.fromkeys((row["part"], row["method"], row["x"]) for row in rows):
        mine = [row for row in rows if (row["part"], row["method"], row["x"]) == (part, method, x)]
        proved = [row for row in mine if row["bound"] is not None]
        lines.append(
            [part, method, f"{x:g}", f"{median(mine, 'test_mse'):.3g}", f"{median(mine, 'test_l1'):.3g}"]
            + [f"{median(mine, 'change'):.3g}", f"{median(proved, 'bound'):.3g}" if proved else ""]
            + [sum(row["above_bound"] for row in mine) if proved else ""]
        )
    return Table("One pruned layer; medians over seeds", headings, lines)
