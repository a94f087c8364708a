"""What every reading must satisfy, whichever family it is of: the parts of a layer fit each other.

The shapes of maps are compared when they are taken; what is left are the norms, whose width no map says."""

from __future__ import annotations

from collections.abc import Iterator

from certiformer.audit.form import Checkpoint, Norm
from certiformer.errors import BadInput


def check_norms(checkpoint: Checkpoint) -> None:
    """Raises where a norm inside the layers, or the last one, is not as wide as what it norms."""
    for norm, width in _norms(checkpoint):
        if norm is not None and norm.gain is not None and norm.gain.shape != (width,):
            raise BadInput(
                f"the tensor {norm.gain.source.tensor!r} has the shape {norm.gain.shape}, but it norms {width} numbers"
            )


def _norms(checkpoint: Checkpoint) -> Iterator[tuple[Norm | None, int]]:
    yield checkpoint.final_norm, checkpoint.width
    for layer in checkpoint.layers:
        for norm in layer.norms.values():
            yield norm, checkpoint.width
        for attention in layer.attention:
            yield attention.query_norm, attention.query.shape[1]
            yield attention.key_norm, attention.key.shape[1]
