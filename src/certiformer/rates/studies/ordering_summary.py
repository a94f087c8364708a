"""What the rows of the study `ordering` say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from certiformer.rates.sequence_rows import FEWEST_SEEDS, errors, missing, select, shown, winner
from certiformer.rates.slopes import fitted_series
from certiformer.rates.study import Result, Series, Table
from certiformer.sweep.job import Row

NAMES = {"transformer": "the transformer", "linear": "the linear RNN", "gated": "the gated RNN"}
ADAPTED = ("nothing free", "attention free", "first layer free", "all free", "temporal reordered")
CONTENT = ("content", "content relabelled", "content reordered")
BUILT = ("original", "swapped", "moved", "random model relabelled")
EXACT = 1e-12  # float64 sums of at most 33 terms below 2: 33 roundings of 2e-16, and the logarithms' (1e-15 relative)


def summary(rows: Sequence[Row], options: Any) -> Result:
    """Errors against the number of inputs that changed places, the floor, and what has to change in a transformer."""
    trained, adapted, built = (select(rows, part=part) for part in ("trained", "adapted", "built"))
    wanted = options.seeds * (len(NAMES) * len(options.counts) + len(ADAPTED) + len(CONTENT) + 1 + len(BUILT))
    return Result(
        "ordering",
        "What does another order of the inputs cost a transformer and a recurrent network, and what must change?",
        asdict(options),
        _series(trained, options),
        [_trained_table(trained, options), _adapted_table(adapted), _built_table(built)],
        [],
        [*_trained_findings(trained, options), *_adapted_findings(adapted), *_built_findings(built)],
        [
            *missing(wanted, len(rows)),
            "One fixed exchange of blocks for every k; other permutations were not measured.",
            "The floor is for independent inputs; where inputs are correlated a causal network can guess better.",
        ],
    )


def _floor(rows: Sequence[Row], count: int, name: str = "causal_floor") -> float | None:
    found = errors(rows, name, count=count)
    return found[0] if found else None


def _trained_findings(rows: Sequence[Row], options: Any) -> list[str]:
    found = []
    for count in sorted({0, max(options.counts)} & set(options.counts)):
        pairs = [("transformer", "linear"), ("transformer", "gated")]
        parts = [
            winner(rows, (NAMES[a], NAMES[b]), {"network": a, "count": count}, {"network": b, "count": count})
            for a, b in pairs
        ]
        place = "In the original order" if count == 0 else f"With {count} inputs at either end exchanged"
        found.append(f"{place}: {'; '.join(parts)}.")
    if not rows:
        return found
    ratios = [
        row["mse"] / row["causal_floor"] for row in rows if row["network"] != "transformer" and row["causal_floor"] > 0
    ]
    if ratios:
        # The error on 4,096 fresh sequences scatters about its mean by 1 % at most.
        below = "and none is below it" if min(ratios) > 0.97 else "so the floor is broken, which must be a fault"
        found.append(
            "Least error of any causal network (Proposition 6.1 with its constant): recurrent networks reach between"
            f" {min(ratios):.3g} and {max(ratios):.3g} times it, {below}."
        )
        beaten = [row for row in rows if row["network"] == "transformer" and row["mse"] < row["causal_floor"]]
        tried = [row for row in rows if row["network"] == "transformer" and row["causal_floor"] > 0]
        if tried:
            best = max((row["causal_floor"] / row["mse"] for row in beaten), default=float("nan"))
            found.append(
                f"The transformer, which is not causal, is below that floor in {len(beaten)} of {len(tried)} runs"
                + (f", by up to {best:.3g} times." if beaten else ".")
            )
    return found


def _adapted_findings(rows: Sequence[Row]) -> list[str]:
    if len(errors(rows, variant="first layer free")) < FEWEST_SEEDS:
        return ["Adapting a trained transformer: fewer than three seeds, nothing is claimed."]
    names, sides = (
        ("the first layer", "the attention"),
        ({"variant": "first layer free"}, {"variant": "attention free"}),
    )
    duel = winner(rows, names, *sides)
    before, first, attention, everything = (float(np.median(errors(rows, variant=v))) for v in _columns())
    found = [
        "The transformer trained on the original order, then on the other one (variance 1): with nothing free"
        f" {before:.3g}, only the attention {attention:.3g}, only the first pointwise layer {first:.3g}, everything"
        f" {everything:.3g}. The first layer alone brings the error down {before / first:.3g} times"
        f"; of the two parts alone, {duel}."
    ]
    original, relabelled, reordered = (errors(rows, variant=variant) for variant in CONTENT)
    if min(map(len, (original, relabelled, reordered))) >= FEWEST_SEEDS:
        worse = min(reordered) > max(*original, *relabelled)
        verdict = (
            f"the last is worse in every seed, {np.median(reordered) / np.median(original):.2g} times in the median:"
            " where queries read values the unchanged error of Proposition 6.2 is not seen"
            if worse
            else "the ranges overlap, so these data do not show that it matters whether queries read values"
        )
        found.append(
            f"When queries read values (variance 1), the original order is learned to {shown(original)}, inputs and outputs"
            f" exchanged together {shown(relabelled)}, inputs alone {shown(reordered)}: {verdict}."
        )
    return found


def _columns() -> tuple[str, ...]:
    return "nothing free", "first layer free", "attention free", "all free"


def _built_findings(rows: Sequence[Row]) -> list[str]:
    if not rows:
        return ["The exact weights have not been built yet."]
    worst = max(row["worst"] for row in rows)
    touched = sorted({name for row in rows for name in row["changed"].split(", ") if name})
    exact = "exact up to rounding" if worst <= EXACT else "NOT exact"
    return [
        f"Built weights for the other order are {exact} (largest error {worst:.1e}); of the tensors of the original only"
        f" {', '.join(touched) or 'none'} changed."
    ]


def _series(rows: Sequence[Row], options: Any) -> list[Series]:
    counts = [count for count in options.counts if count > 0]
    series = []
    for network in NAMES:
        columns = [select(rows, network=network, count=count) for count in counts]
        if counts and all(columns) and len({len(column) for column in columns}) == 1:
            mse, l1 = (np.transpose([[row[name] for row in column] for column in columns]) for name in ("mse", "l1"))
            series.append(fitted_series(network, "inputs exchanged at either end", counts, mse, l1))
    floors = [[_floor(rows, count, name) for count in counts] for name in ("causal_floor", "causal_floor_l1")]
    if counts and all(value is not None for value in floors[0]):
        note = "the least error of any causal network, computed"
        mse, l1 = (np.asarray([values], np.float64) for values in floors)
        series.append(fitted_series("best causal", "inputs exchanged at either end", counts, mse, l1, note=note))
    return series


def _trained_table(rows: Sequence[Row], options: Any) -> Table:
    lines = []
    for count in options.counts:
        floors = [_floor(rows, count, name) for name in ("causal_floor", "invariant_floor")]
        measured = [shown(errors(rows, network=network, count=count)) for network in NAMES]
        lines.append([count, *measured, *("" if floor is None else f"{floor:.4e}" for floor in floors)])
    headings = ["exchanged", "transformer", "linear RNN", "gated RNN", "best causal (exact)", "best linear RNN (exact)"]
    return Table("Mean squared error: median (smallest to largest) over the seeds", headings, lines)


def _adapted_table(rows: Sequence[Row]) -> Table:
    lines = [[variant, shown(errors(rows, variant=variant))] for variant in ("temporal", *ADAPTED, *CONTENT)]
    return Table("A transformer taught another order (targets of variance 1)", ["what was trained", "error"], lines)


def _built_table(rows: Sequence[Row]) -> Table:
    lines = []
    for variant in BUILT:
        found = select(rows, variant=variant)
        if found:
            lines.append([variant, f"{max(row['worst'] for row in found):.1e}", found[0]["changed"] or "nothing"])
    return Table(
        "Built weights: largest error, and the tensors that differ", ["order", "largest error", "changed"], lines
    )
