"""Two checkpoints side by side: figures, layers, and the theorems whose verdict changed."""

from __future__ import annotations

from typing import Any

from certiformer.audit.figures import figure_values
from certiformer.audit.record import plain
from certiformer.audit.result import Audit


def comparison(first: Audit, second: Audit) -> dict[str, Any]:
    """What differs, as JSON data; pairs are (first, second)."""
    ours, theirs = figure_values(first), figure_values(second)
    pairs = zip(first.measurements.layers, second.measurements.layers, strict=False)
    other = {verdict.id: verdict for verdict in second.verdicts}
    return plain(
        {
            "path": second.path,
            "figures": {name: [ours[name], theirs[name]] for name in ours},
            "layers": [
                {
                    "name": a.name,
                    "qk_spectral": [_largest(each, "qk") for each in (a, b)],
                    "vo_spectral": [_largest(each, "vo") for each in (a, b)],
                }
                for a, b in pairs
            ],
            "theorems": [
                {
                    "id": each.id,
                    "verdict": [each.verdict, other[each.id].verdict],
                    "value": [each.value, other[each.id].value],
                }
                for each in first.verdicts
                if each.id in other and (each.verdict, each.value) != (other[each.id].verdict, other[each.id].value)
            ],
        }
    )


def _largest(layer: Any, part: str) -> float | None:
    found = [getattr(head, part) for head in layer.heads]
    return max((each.spectral for each in found if each is not None), default=None)
