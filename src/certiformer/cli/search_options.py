"""The flags that `build` and `prove` share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from tyro.conf import arg

from certiformer.cli.options import Flag, OptionalFile, OptionalFolder

# The flags that are arguments of `certiformer.build` and `certiformer.prove`; the others are for a terminal.
SHARED = ("on", "eps", "rule", "level", "boxes", "seconds", "quality", "order", "dtype", "seed", "out", "force")


@dataclass(kw_only=True)
class SearchOptions:
    """How hard to search, how strictly to check, and where to put the result."""

    on: Annotated[str | None, arg(metavar="BOX", help_behavior_hint="(required for a function)")] = None
    """the box, for instance "[0,2*pi]^2" or "[0,1]x[-1,2]" """
    eps: Annotated[str | None, arg(metavar="E", help_behavior_hint="(required for a function)")] = None
    """the tolerance, an exact number: 0.1, 1e-3, 1/100"""
    rule: Literal["auto", "boxes", "theorem", "sum", "ridges"] = "auto"
    """the kind of proof; auto tries the cheap ones first"""
    level: Literal[1, 2] = 2
    """2 ends with the checker, 1 stops after the float64 search"""
    boxes: Annotated[int, arg(metavar="N", help_behavior_hint="(default: 2,000,000)")] = 2_000_000
    """give up the search after N boxes"""
    seconds: Annotated[float, arg(metavar="S", help_behavior_hint="(default: 600)")] = 600.0
    """give up search and check after S seconds together"""
    quality: Annotated[float, arg(metavar="Q")] = 0.1
    """how close the proved upper end should come to the lower end: 0.1 is within ten per cent"""
    order: Annotated[int | None, arg(metavar="K", help_behavior_hint="(default: chosen)")] = None
    """the order of the Taylor forms of a proof by boxes"""
    dtype: Annotated[
        Literal["float64", "float32", "bfloat16"] | None,
        arg(metavar="{float64,float32,bfloat16}", help_behavior_hint="(default: float64, no claim about runs)"),
    ] = None
    """store the weights in this type, and bound the rounding of runs in it as well"""
    seed: Annotated[int, arg(metavar="N")] = 0
    """the seed of every random choice"""
    dry_run: Flag = False
    """print the size and an estimate of the time, write nothing"""
    out: OptionalFolder = None
    """the run folder (default: runs/<name>, then -2, ...)"""
    force: Flag = False
    """replace a finished run in --out"""
    config: OptionalFile = None
    """read flags from a TOML file; flags given here win"""
    json: Flag = False
    """print one JSON object"""
    quiet: Flag = False
    """no progress"""

    def claim_arguments(self) -> dict[str, Any]:
        """The box and the tolerance, which a claim about a function needs."""
        from certiformer.api.building import claim_of

        return dict(zip(("on", "eps"), claim_of(self.on, self.eps), strict=True))
