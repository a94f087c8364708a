"""What the study of in-context learning says about its rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from certiformer.errors import BadInput
from certiformer.rates.slopes import fit_slope, fitted_series
from certiformer.rates.study import Picture, Result, Series, Table
from certiformer.sweep.job import Row

Groups = dict[tuple[str, int, int], list[Row]]
ALIKE = 0.9  # the cosine from which on two layers count as alike
KINDS = ("context", "stacked", "looped", "skewed", "next-token")


def report(rows: Sequence[Row], options: Any, question: str, expected: int) -> Result:
    """Series, tables and sentences from the rows of all finished jobs."""
    groups: Groups = {}
    for row in sorted(rows, key=lambda r: (KINDS.index(r["kind"]), r["rows"], r["layers"], r["seed"])):
        groups.setdefault((row["kind"], row["rows"], row["layers"]), []).append(row)
    series = [*_context_series(groups, options.seed), *_depth_series(groups, options.rows, options.seed)]
    findings = [
        *_one_layer(groups),
        *_slopes(series),
        *_skewed(groups),
        *_depth(groups),
        *_resembled(groups),
        *_next(groups),
    ]
    limits = [
        "Linear attention only; features are Gaussian and tasks linear.",
        "The steps of the constructions are tuned on data like the training data; their form is not.",
        "Error against depth falls geometrically in theory, so its slopes on logarithmic axes have no exponent to meet.",
    ]
    lost = sum(row["diverged"] for row in rows)
    if lost:
        limits.append(f"{lost} restarts diverged and were left out.")
    if len(rows) < expected:
        limits.append(f"{expected - len(rows)} of {expected} runs are missing: their jobs have not finished.")
    pictures = [*_place_pictures(groups), *_alignment_pictures(groups)]
    return Result("incontext", question, vars(options), series, [_table(groups)], pictures, findings, limits)


def _column(group: list[Row], name: str) -> list[float]:
    return [row[name] for row in group]


def _lines(groups: Groups, kind: str) -> list[tuple[tuple[str, int, int], list[Row]]]:
    return [(key, group) for key, group in groups.items() if key[0] == kind]


def _replicates(lines: list[tuple[Any, list[Row]]], name: str) -> np.ndarray:
    """(seeds, points): seeds that every point has."""
    seeds = min(len(group) for _, group in lines)
    return np.array([_column(group, name)[:seeds] for _, group in lines]).T


def _context_series(groups: Groups, seed: int) -> list[Series]:
    lines = _lines(groups, "context")
    if not lines:
        return []
    x = [float(key[1]) for key, _ in lines]
    theory = {"asymptotic": -1.0, "asymptotic_l1": -0.5}
    trained = dict(theory)
    try:
        # On the very same contexts, so that their sampling error is in both.
        built = fit_slope(x, [group[0]["error_preconditioned"] for _, group in lines]).value
        trained |= {"constructed": built}
    except BadInput:
        pass  # too few lengths; the series says so itself
    label = "rows of the context"
    found = _replicates(lines, "error_mse"), _replicates(lines, "error_l1")
    result = [fitted_series("one layer, trained", label, x, *found, theory=trained, seed=seed)]
    for name, shown in (("gd", "one step of gradient descent"), ("ridge", "ridge regression, the oracle")):
        errors = [group[0][f"error_{name}"] for _, group in lines]
        # Only squared errors are kept of what is not trained; those of Gaussians have mean size sqrt(2 / pi).
        result.append(
            fitted_series(shown, label, x, errors, np.sqrt(2 / np.pi * np.array(errors)), theory=theory, seed=seed)
        )
    return result


def _depth_series(groups: Groups, rows: int, seed: int) -> list[Series]:
    result = []
    single = [
        (key, group) for key, group in groups.items() if key[0] in ("context", "stacked") and key[1:] == (rows, 1)
    ]
    for kind in ("stacked", "looped"):
        # One layer is the same either way.
        lines = single[:1] + [line for line in _lines(groups, kind) if line[0][2] > 1]
        if lines:
            x = [float(key[2]) for key, _ in lines]
            found = _replicates(lines, "error_mse"), _replicates(lines, "error_l1")
            result.append(fitted_series(f"{kind} layers, trained", "layers", x, *found, seed=seed))
    return result


def _spread(values: list[float]) -> str:
    return f"{np.mean(values):.4g} ({min(values):.4g} to {max(values):.4g})"


def _one_layer(groups: Groups) -> list[str]:
    lines = _lines(groups, "context")
    if not lines:
        return []
    ratios = [float(np.mean(_column(group, "error_mse")) / group[0]["theory_layer"]) for _, group in lines]
    distances = [d for _, group in lines for d in _column(group, "distance_best")]
    cosines = [row["alignment"][0] for _, group in lines for row in group]
    alike = sum(c >= ALIKE for c in cosines)
    return [
        f"One trained layer has {min(ratios):.3f} to {max(ratios):.3f} times the error of the best single layer in closed"
        f" form, over contexts of {lines[0][0][1]} to {lines[-1][0][1]} rows.",
        f"Its predictions differ from those of the constructed step by {np.sqrt(np.median(distances)):.2g} of their size"
        f" (median; at most {np.sqrt(max(distances)):.2g}), and {alike} of {len(cosines)} trained layers are the"
        f" constructed one up to a cosine of {ALIKE:g} (least {min(cosines):.3f}).",
    ]


def _slopes(series: list[Series]) -> list[str]:
    sentences = []
    for line in series:
        if line.slope_mse is None or line.slope_interval is None or not line.theory:
            continue
        low, high = line.slope_interval
        names = [name for name in line.theory if not name.endswith("_l1")]
        verdicts = [
            f"{name} {line.theory[name]:.2f} is {'excluded' if name in line.excluded else 'inside'}" for name in names
        ]
        sentences.append(
            f"{line.name}: the error falls like rows^{line.slope_mse:.2f} ({low:.2f} to {high:.2f}); {', '.join(verdicts)}."
        )
    return sentences


def _skewed(groups: Groups) -> list[str]:
    sentences = []
    for _, group in _lines(groups, "skewed"):
        errors, first = _column(group, "error_mse"), group[0]
        nearer = np.mean(_column(group, "distance_best")) < np.mean(_column(group, "distance_gd"))
        sentences.append(
            f"With variances {first['spread']:g} apart the trained layer errs by {_spread(errors)}, one plain step by"
            f" {first['error_gd']:.4g}, the preconditioned one by {first['error_preconditioned']:.4g}; its predictions are"
            f" nearer to the {'preconditioned' if nearer else 'plain'} step, its weights have a cosine of"
            f" {_spread([row['alignment'][0] for row in group])} with it."
        )
    return sentences


def _depth(groups: Groups) -> list[str]:
    sentences = []
    for kind in ("stacked", "looped"):
        for (_, _, layers), group in _lines(groups, kind):
            if layers == 1:
                continue
            errors, first = _column(group, "error_mse"), group[0]
            others = {
                "gradient descent": first["error_gd"],
                "GD++": first["error_gd++"],
                "the oracle": first["error_ridge"],
            }
            mean = float(np.mean(errors))
            beaten = [
                f"{'below' if mean < error else 'above'} {label} at {error:.4g}" for label, error in others.items()
            ]
            sentences.append(
                f"{layers} {kind} layers err by {_spread(errors)}: {', '.join(beaten)}; predictions are"
                f" {np.sqrt(np.mean(_column(group, 'distance_best'))):.2g} of their size from GD++ and"
                f" {np.sqrt(np.mean(_column(group, 'distance_gd'))):.2g} from gradient descent, sensitivities have a cosine"
                f" of {np.mean(_column(group, 'sensitivity')):.3f} with GD++, the layers one of"
                f" {', '.join(f'{c:.2f}' for c in np.mean(_column(group, 'alignment'), axis=0))}."
            )
    return sentences


ALGORITHMS = {"distance_gd": "gradient descent", "distance_best": "GD++", "distance_ridge": "ridge regression"}


def _resembled(groups: Groups) -> list[str]:
    """Which algorithm is nearest in its predictions, seed by seed, for every depth."""
    parts = []
    for kind in ("stacked", "looped"):
        for (_, _, layers), group in _lines(groups, kind):
            if layers == 1:
                continue
            nearest = [min(ALGORITHMS, key=lambda name, row=row: row[name]) for row in group]
            counts = [f"{ALGORITHMS[name]} in {nearest.count(name)}" for name in ALGORITHMS if name in nearest]
            shares = ", ".join(f"{np.sqrt(np.mean(_column(group, name))):.2g}" for name in ALGORITHMS)
            parts.append(f"{layers} {kind}: {' and '.join(counts)} of {len(group)} seeds ({shares})")
    if not parts:
        return []
    names = ", ".join(ALGORITHMS.values())
    return [f"Nearest algorithm by predictions (distances from {names}, in shares of their size): {'; '.join(parts)}."]


def _next(groups: Groups) -> list[str]:
    sentences = []
    for (_, _, layers), group in _lines(groups, "next-token"):
        errors, first = _column(group, "error_mse"), group[0]
        text = (
            f"By next-token loss {layers} layer{'s' if layers > 1 else ''} err by {_spread(errors)}, the constructed step"
            f" by {first['error_gd']:.4g}, least squares by {first['error_ridge']:.4g}; at the last place by"
            f" {np.mean([row['by_place'][-1] for row in group]):.4g}, {first['by_place_constructed'][-1]:.4g} and"
            f" {first['by_place_oracle'][-1]:.2g}; predictions are {np.sqrt(np.mean(_column(group, 'distance_gd'))):.2g} of"
            f" their size from the constructed ones"
        )
        cosines = [row["alignment"][0] for row in group if row["alignment"]]
        sentences.append(f"{text}{f', the layer has a cosine of {_spread(cosines)}' if cosines else ''}.")
    return sentences


def _table(groups: Groups) -> Table:
    headings = [
        "task",
        "rows",
        "layers",
        "trained",
        "gradient descent",
        "GD++ or preconditioned",
        "ridge",
        "least squares",
    ]
    headings += ["distance", "sensitivity", "alignment"]
    rows = []
    for (kind, count, layers), group in groups.items():
        first = group[0]
        best = first["error_gd++"] or first["error_preconditioned"]
        cosines = [row["alignment"] for row in group if row["alignment"]]
        aligned = ", ".join(f"{c:.3f}" for c in np.mean(cosines, axis=0)) if cosines else "-"
        errors = [first["error_gd"], best or "-", first["error_ridge"], first["error_least_squares"]]
        shown = [f"{e:.4g}" if isinstance(e, float) else e for e in errors]
        close = [
            float(np.sqrt(np.mean(_column(group, "distance_best")))),
            float(np.mean(_column(group, "sensitivity"))),
        ]
        rows.append(
            [kind, count, layers, _spread(_column(group, "error_mse")), *shown, *(f"{c:.3f}" for c in close), aligned]
        )
    return Table(
        "Mean squared errors; the distance from the nearest construction in shares of its size, and cosines with it",
        headings,
        rows,
    )


def _place_pictures(groups: Groups) -> list[Picture]:
    """Error at every place of a sequence: the context grows by one state a place."""
    lines: list[dict[str, Any]] = []
    for (_, _, layers), group in _lines(groups, "next-token"):
        first = group[0]
        x = list(range(1, len(first["by_place"])))  # at place 0 there is no pair to learn from
        trained = np.mean([row["by_place"] for row in group], axis=0)[1:].tolist()
        lines.append({"name": f"{layers} trained layer{'s' if layers > 1 else ''}", "x": x, "y": trained})
        if layers == 1:
            lines.append({"name": "constructed step", "x": x, "y": first["by_place_constructed"][1:]})
            # Beyond as many pairs as features only rounding is left, which has no place on a logarithmic axis.
            oracle = [(a, b) for a, b in zip(x, first["by_place_oracle"][1:], strict=True) if b > 1e-6]
            lines.append({"name": "least squares", "x": [a for a, _ in oracle], "y": [b for _, b in oracle]})
    if not lines:
        return []
    data = {"x_label": "pairs seen", "y_label": "MSE", "log_x": False, "log_y": True, "lines": lines}
    return [Picture("curves", "Next-token loss: error at every place", data)]


def _alignment_pictures(groups: Groups) -> list[Picture]:
    """How alike every trained layer is to the constructed one."""
    shown = [(key, group) for kind in ("stacked", "looped") for key, group in _lines(groups, kind)]
    if not shown:
        return []
    most = max(len(group[0]["alignment"]) for _, group in shown)
    values = [np.mean(_column(group, "alignment"), axis=0).tolist() for _, group in shown]
    data = {
        "rows": [f"{key[2]} {key[0]}" for key, _ in shown],
        "columns": [f"layer {k + 1}" for k in range(most)],
        "values": [row + [0.0] * (most - len(row)) for row in values],
    }
    return [Picture("heat", "Cosine between trained and constructed layers", data)]
