"""Realistic weights on request: the same program in weights that look like those of a trained model.

A compiled transformer gives every variable a coordinate of its own, has no norm, and most of its weights are zero.
Here it is given an orthogonal or a learned narrower residual code, LayerNorm, and noise, and still comes with its
ground truth: `circuit.json` stays as it is, and `basis.json` says which *direction* of the stream each of its
coordinates has become. Every result is run on all inputs when there are few enough; what was only sampled is never
called exact.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from certiformer.compiler.realistic.basis import BASIS as BASIS
    from certiformer.compiler.realistic.basis import Basis as Basis
    from certiformer.compiler.realistic.driver import Realistic as Realistic
    from certiformer.compiler.realistic.driver import apply as apply
    from certiformer.compiler.realistic.driver import noise_limit as noise_limit
    from certiformer.compiler.realistic.evidence import Evidence as Evidence

_HOMES = {
    "apply": "driver",
    "Realistic": "driver",
    "Basis": "basis",
    "BASIS": "basis",
    "Evidence": "evidence",
    "noise_limit": "driver",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'certiformer.compiler.realistic' has no attribute {name!r}")
    return getattr(import_module(f"certiformer.compiler.realistic.{_HOMES[name]}"), name)
