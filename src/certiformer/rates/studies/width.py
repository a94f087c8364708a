"""Error against the width of the feed-forward layer: trained (on its sample and on a fresh one) and constructed.

What theory says, and where. The profiles are smooth functions of one variable and the layer has ReLU units, so with u units
piecewise linear interpolation reaches a largest error of order u^-2, hence mean squared error u^-4 and mean absolute error
u^-2 (de Boor 1973; for `sines` after the attention has gathered both numbers, for `graph` in the features of the scores,
on which the outputs depend Lipschitz continuously). No piecewise linear function of u pieces does better in order for a
profile with curvature. Barron (1993) bounds the mean squared error by u^-1 for one hidden layer in any dimension: an upper
bound, which a steeper slope does not contradict.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from certiformer.errors import BadInput
from certiformer.rates import size_summary
from certiformer.rates.size_rows import run_members, seed_chunks, size_jobs
from certiformer.rates.size_summary import TARGETS, chosen, factor, series_of
from certiformer.rates.slopes import fit_slope
from certiformer.rates.study import Result, Series, Study
from certiformer.sweep.job import Job, Row

QUESTION = "How does the error fall with the width m_FF of the feed-forward layer, trained and constructed?"
X_LABEL = "hidden units m_FF"
THEORY = {
    "barron_mse_upper_bound": -1.0,
    "piecewise_linear_mse": -4.0,
    "piecewise_linear_l1": -2.0,
}


@dataclass(frozen=True)
class Options:
    """What is trained and built."""

    widths: tuple[int, ...] = (4, 8, 16, 32, 64)
    """Hidden units of the feed-forward layer."""
    seeds: int = 5
    """Trained models of every width."""
    steps: int = 6000
    """Steps of Adam."""
    samples: int = 2048
    """Points of the training sample."""
    batch: int = 32
    """Points of one step."""
    rate: float = 0.01
    """The first learning rate; it falls to zero along a cosine."""
    rank: int = 2
    """Rank of the kernel of the target of Jiang and Li's form."""
    seed: int = 0
    """The first seed."""


def member(target: str, width: int, seed: int) -> dict[str, Any]:
    """One model: for `sines` the shape of the ridge construction, for `graph` one head of key size 4."""
    sizes = {"heads": 2, "key": 1, "value": 1, "width": 4} if target == "sines" else {"heads": 1, "key": 4, "value": 2}
    return {"group": "", "x": width, "seed": seed, "units": width, "depth": 1, "layout": "paper", **sizes}


def jobs(options: Options) -> list[Job]:
    parts = []
    for target in TARGETS:
        for chunk in seed_chunks(options):
            parts.append(("trained", target, [member(target, w, s) for w in options.widths for s in chunk]))
        parts.append(("built", target, [member(target, w, options.seed) for w in options.widths]))
    return size_jobs(__name__, options, parts)


def run(config: dict[str, Any]) -> list[Row]:
    """The rows of one job."""
    return run_members(config)


def summary(rows: Sequence[Row], options: Options) -> Result:
    """Slopes with intervals over seeds, training against test error, trained against constructed."""
    series: list[Series] = []
    findings: list[str] = []
    for target, words in TARGETS.items():
        trained, built = (chosen(rows, target=target, kind=kind) for kind in ("trained", "built"))
        for sample in ("test", "train"):
            name = f"{target}, trained, {'fresh points' if sample == 'test' else 'training sample'}"
            series += series_of(trained, name, f"{X_LABEL} ({target})", sample=sample, theory=THEORY, seed=options.seed)
        series += series_of(built, f"{target}, constructed", f"{X_LABEL} ({target})", theory=THEORY, seed=options.seed)
        findings += _slopes(words, [each for each in series if each.name.startswith(target)])
        findings += _pieces(words, target, built, options.seed)
        findings += _compared(words, trained, built)
    findings += size_summary.bound_sentence(rows)
    limits = size_summary.limits_of(rows, jobs(options))
    limits.append("Errors of trained models include what Adam did not reach; they are no lower bounds for the width.")
    limits.append("The target of Jiang and Li's form has cosines in its kernel, one head and 8 tokens.")
    table = size_summary.size_table(rows, "Errors by width; medians over seeds", X_LABEL)
    return Result("width", QUESTION, vars(options), series, [table], [], findings, limits)


def _slopes(words: str, series: Sequence[Series]) -> list[str]:
    found = []
    for each in series:
        if each.slope_mse is None or each.slope_interval is None:
            continue
        low, high = each.slope_interval
        kind = each.name.partition(", ")[2]
        text = (
            f"On {words} ({kind}) the mean squared error goes like m_FF^{each.slope_mse:.2f} [{low:.2f}, {high:.2f}]: "
        )
        if low <= THEORY["piecewise_linear_mse"] <= high:
            text += "in agreement with the -4 of piecewise linear functions."
        elif low > THEORY["piecewise_linear_mse"]:
            text += "slower than the -4 that the width allows"
            text += ", yet faster than Barron's -1." if high < -1 else "." if low <= -1 else " and than Barron's -1."
            text += " Whether it falls at all these seeds leave open." if high >= 0 else ""
        else:
            text += "faster than -4, so these widths are not yet where the exponent of theory holds."
        (x1, x2), (e1, e2) = each.x[-2:], each.error_mse[-2:]
        if min(e1, e2) > 0:
            text += f" From m_FF = {x1:g} to {x2:g} alone the slope is {math.log(e2 / e1) / math.log(x2 / x1):.2f}."
        found.append(text)
    return found


def _pieces(words: str, target: str, built: Sequence[Row], seed: int) -> list[str]:
    """The slope of the construction against pieces: u units make u + 1 of them, u + 2 where two sines share the units."""
    x = [row["x"] + (2 if target == "sines" else 1) for row in built]
    try:
        slope = fit_slope(x, [row["test_mse"] for row in built], seed=seed)
    except BadInput:
        return []
    low, high = slope.interval
    agrees = "which agrees with -4" if low <= -4 <= high else "which leaves out -4"
    text = f"On {words} (constructed) the slope against the number of linear pieces is {slope.value:.2f}"
    return [f"{text} [{low:.2f}, {high:.2f}], {agrees}."]


def _compared(words: str, trained: Sequence[Row], built: Sequence[Row]) -> list[str]:
    found = []
    if trained:
        widest = max(row["x"] for row in trained)
        last = [row for row in trained if row["x"] == widest]
        gap = factor(last, [{**r, "test_mse": r["train_mse"]} for r in last])
        if gap is not None:
            text = f"On {words} at m_FF = {widest:g} the error on fresh points is {gap} times the training error"
            found.append(f"{text} ({gap.verdict}).")
    ahead = []
    sizes = sorted({row["x"] for row in built} & {row["x"] for row in trained})
    for x in sizes:
        mine = size_summary.median([row for row in trained if row["x"] == x], "test_mse")
        theirs = [row["test_mse"] for row in built if row["x"] == x][0]
        if mine < theirs:
            ahead.append(f"{x:g}")
    if sizes:
        where = f"at m_FF = {', '.join(ahead)}" if ahead else "at no width"
        found.append(
            f"On {words} the median of the trained models beats the constructed one of the same size {where}"
            f" (of {', '.join(f'{x:g}' for x in sizes)})."
        )
    return found


STUDY = Study(
    name="width",
    question=QUESTION,
    options=Options,
    full={"widths": (4, 8, 16, 32, 64, 128, 256), "seeds": 20, "steps": 40_000, "samples": 16_384},
    jobs=jobs,
    summary=summary,
)
