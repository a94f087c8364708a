"""*Rates*: measured slopes with intervals of a stored study, and the singular values of a kernel that one types."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from certiformer.errors import BadInput
from certiformer.explore.requests import choice, read_entries, text, whole
from certiformer.explore.rooms.events import Emit
from certiformer.report.live import numbers

RESULT = "result.json"
LARGEST_RESULT = 30_000_000
SHOWN = 48
KERNELS = ("exp(-3*(u-v)**2)", "exp(-abs(u-v))", "1/(1+(u-v)**2)", "cos(6*u*v)", "min(u,v)")


def read(request: dict[str, Any]) -> dict[str, Any]:
    """What may be asked."""
    return read_entries(request, what=choice("kernel", "study"), kernel=text(400), nodes=whole(8, 256))


def run(request: dict[str, Any], folder: str | None, emit: Emit) -> dict[str, Any]:
    """The singular values of the kernel with their decay, or the study that was named when the server began."""
    return _kernel(request) if request["what"] == "kernel" else _study(folder)


def _kernel(request: dict[str, Any]) -> dict[str, Any]:
    import numpy as np

    from certiformer.rates.kernels import formula_kernel, on_nodes, quadrature
    from certiformer.rates.pod import pod_of_kernel

    kernel = formula_kernel(request["kernel"])
    pod = pod_of_kernel(kernel, nodes=request["nodes"])
    squares = np.asarray(pod.values, float) ** 2
    tails = np.sqrt(np.cumsum(squares[::-1])[::-1])  # what a model of rank m leaves, in the root mean square
    nodes, _ = quadrature(48)
    decay = pod.decay
    return {
        "values": numbers(pod.values[:SHOWN], 8),
        "tails": numbers(np.append(tails[1:], 0.0)[:SHOWN], 8),
        "resolved": pod.resolved,
        "measured": pod.measured,
        "note": pod.note,
        "decay": None if decay is None else {name: _plain(value) for name, value in vars(decay).items()},
        "exponent": pod.exponent,
        "grid": numbers(on_nodes(kernel, nodes), 4),
        "nodes": numbers(nodes, 5),
    }


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]
    return value if isinstance(value, int | float | str | bool | None) else str(value)


def _study(folder: str | None) -> dict[str, Any]:
    import json

    path = Path(folder or "") / RESULT
    if folder is None or not path.is_file():
        raise BadInput("name the folder of a study when you start: certiformer explore runs/rates-jackson")
    if path.stat().st_size > LARGEST_RESULT:
        raise BadInput(f"{RESULT} is larger than this room reads")
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        raise BadInput(f"{RESULT} is not the result of a study") from None
    if type(data) is not dict or not str(data.get("schema", "")).startswith("certiformer-rates-"):
        raise BadInput(f"{RESULT} is not the result of a study")
    return {
        "study": {name: data.get(name) for name in ("study", "question", "series", "findings", "limits", "options")}
    }
