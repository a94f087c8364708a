"""An audit as JSON data, with a schema that has a version.

`certiformer-audit-1` promises at least `coverage.accounted`, `coverage.total`, `coverage.missing`,
`layers[i].heads[j].qk_spectral` (the spectral norm of W_Q^T W_K, raw, divided by the root of the head size),
`.vo_spectral`, `layers[i].repeats`, and `theorems[k]` with `id`, `verdict`, `value`, `trivial`, `sentence`. Entries may be
added without a new version; none is renamed or changes its meaning."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, fields, is_dataclass
from typing import TYPE_CHECKING, Any

from certiformer.audit.architecture import length_of
from certiformer.audit.figures import figure_values, summary
from certiformer.audit.form import Attention, Checkpoint, FeedForward, Layer, Norm, Weight
from certiformer.audit.head_figures import HeadFigures, ProductFigures
from certiformer.audit.limits import left_over
from certiformer.audit.matrix_figures import MatrixFigures
from certiformer.audit.measure import LayerFigures

if TYPE_CHECKING:
    from certiformer.audit.result import Audit

SCHEMA = "certiformer-audit-1"
SPECTRUM = 64  # singular values of a head that are written: all of small heads, else the first and evenly spread others


def record(audit: Audit) -> dict[str, Any]:
    """The whole audit as JSON data."""
    checkpoint, found = audit.checkpoint, audit.measurements
    data = {
        "schema": SCHEMA,
        "path": audit.path,
        "family": checkpoint.family,
        "architecture": {
            "width": checkpoint.width,
            "positions": checkpoint.positions,
            "norm_place": checkpoint.norm_place,
            "context": checkpoint.context,
            "vocabulary": checkpoint.vocabulary,
            "head_tied": checkpoint.head_tied,
        },
        "given": asdict(audit.given),
        "coverage": {
            "accounted": audit.coverage.accounted,
            "total": audit.coverage.total,
            "missing": [{"tensor": name, "shape": list(shape)} for name, shape in audit.coverage.missing],
            "buffers": list(audit.coverage.buffers),
            "copies": list(audit.coverage.copies),
        },
        "summary": summary(audit),
        "figures": figure_values(audit),
        "layers": [
            _layer(*both, length_of(checkpoint, audit.given.length))
            for both in zip(checkpoint.layers, found.layers, strict=True)
        ],
        "tables": {name: _matrix(each) for name, each in found.matrices.items()},
        "theorems": [asdict(verdict) for verdict in audit.verdicts],
        "diagnostics": [asdict(diagnostic) for diagnostic in audit.diagnostics],
        "not_finite": list(found.not_finite),
        "notes": [*checkpoint.notes, *found.notes],
        "provenance": list(provenance(checkpoint)),
    }
    return plain(data)


def plain(value: Any) -> Any:
    """JSON data without NaN and infinities, which become null."""
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value


def provenance(checkpoint: Checkpoint) -> Iterator[dict[str, Any]]:
    """Every weight: what it is, and which part of which tensor of which file."""
    for role, weight in _roles(checkpoint, ""):
        yield {"weight": role, "shape": list(weight.shape), "stored": weight.stored, **asdict(weight.source)}


def _roles(held: Any, role: str) -> Iterator[tuple[str, Weight]]:
    if isinstance(held, Weight):
        yield role, held
    elif isinstance(held, (Checkpoint, Layer, Attention, FeedForward, Norm)) and is_dataclass(held):
        for place in fields(held):
            if place.name != "config":
                yield from _roles(getattr(held, place.name), f"{role}.{place.name}" if role else place.name)
    elif isinstance(held, dict):
        for name, each in held.items():
            yield from _roles(each, f"{role}.{name}")
    elif isinstance(held, tuple):
        for number, each in enumerate(held):
            yield from _roles(each, f"{role}.{number}")


def _layer(layer: Layer, found: LayerFigures, tokens: int | None) -> dict[str, Any]:
    return {
        "name": layer.name,
        "repeats": layer.repeats,
        "radius": found.radius,
        "heads_known": layer.heads_known,
        "scales": [attention.scale for attention in layer.attention],
        "heads": [_head(head, tokens) for head in found.heads],
        "matrices": {name: _matrix(each) for name, each in found.matrices.items()},
    }


def _head(head: HeadFigures, tokens: int | None) -> dict[str, Any]:
    bound, sharp = head.score_bound, None
    if bound is not None and math.isfinite(bound) and tokens is not None and tokens > 1:
        # How sharp it can be: the least weight off the best of so many tokens.
        sharp = {"tokens": tokens, "least": left_over(bound, tokens)[0]}
    return {
        "qk_spectral": head.qk.spectral,
        "vo_spectral": None if head.vo is None else head.vo.spectral,
        "score_bound": bound,
        "off_best": sharp,
        "qk": _product(head.qk),
        "vo": None if head.vo is None else _product(head.vo),
    }


def _product(product: ProductFigures) -> dict[str, Any]:
    data = {
        name: each for name, each in asdict(product).items() if name not in ("gaussian_spectral", "shuffled_spectral")
    }
    places = shown(len(product.values))
    data["values"] = [{"k": k, "sigma": product.values[k - 1]} for k in places]
    return {**data, "controls": {"gaussian": product.gaussian_spectral, "shuffled": product.shuffled_spectral}}


def _matrix(matrix: MatrixFigures) -> dict[str, Any]:
    data = {
        name: each for name, each in asdict(matrix).items() if name not in ("gaussian_spectral", "shuffled_spectral")
    }
    return {**data, "controls": {"gaussian": matrix.gaussian_spectral, "shuffled": matrix.shuffled_spectral}}


def shown(count: int) -> list[int]:
    """Which singular values are written, counted from 1: all up to `SPECTRUM`, else so many, evenly in the logarithm.

    >>> shown(3), len(shown(4096)) <= SPECTRUM, shown(4096)[-1]
    ([1, 2, 3], True, 4096)
    """
    if count <= SPECTRUM:
        return list(range(1, count + 1))
    return sorted({round(count ** (step / (SPECTRUM - 1))) for step in range(SPECTRUM)})
