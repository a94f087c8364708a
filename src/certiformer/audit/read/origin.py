"""What a tensor that families see is made of, where that is not simply a tensor of the file.

Two things stand between the file and a family: parametrised weights, which are rebuilt, and the names of GGUF, which
are translated. Both leave an origin, so that a weight still says which stored tensor it comes from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Origin:
    """The stored tensor that a presented one stands for, the formula, how many further parameters the formula uses,
    the stored tensors that it uses and that are no parameters, and whether it is presented transposed."""

    tensor: str
    made: str = ""
    further: int = 0
    buffers: tuple[str, ...] = ()
    transposed: bool = False


def after(first: dict[str, Origin], second: dict[str, Origin]) -> dict[str, Origin]:
    """The origins when `second` presented what `first` had presented."""
    joined = dict(first)
    for name, origin in second.items():
        before = joined.pop(origin.tensor, Origin(origin.tensor))
        joined[name] = Origin(
            before.tensor,
            "; ".join(part for part in (before.made, origin.made) if part),
            before.further + origin.further,
            (*before.buffers, *origin.buffers),
            before.transposed != origin.transposed,
        )
    return joined
