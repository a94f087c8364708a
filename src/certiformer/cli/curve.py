"""`certiformer curve`: size against proved error for one's own function, as a picture and as tables."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from tyro.conf import Positional, arg

from certiformer.api.building import Method
from certiformer.cli.options import Flag, OptionalFile, OptionalFolder
from certiformer.cli.terminal import Terminal

if TYPE_CHECKING:
    from certiformer.curves import Curve

SUMMARY = "Build a function for several tolerances, and draw how the proved error falls with the size."
EXAMPLES = """
  certiformer curve "sin(3*x1)" --on "[0,2]" --eps 0.1,0.03,0.01 --out runs/curve          # picture, CSV, LaTeX
  certiformer curve "x1*x2" --on "[0,1]^2" --eps 0.1,0.05,0.02 --method ridge              # one construction
  certiformer curve surface.py:height --on "[0,1]^2" --eps 0.2,0.1 --json --quiet          # for a script

The same command goes on where it was interrupted; what is there is checked again, not built again.
exit codes: 0 every point certified; 2 bad input; 3 some point is not; 130 interrupted, what is done is kept
"""
UNFINISHED = 3


@dataclass(kw_only=True)
class Options:
    """The flags of `curve`."""

    target: Annotated[Positional[str], arg(metavar="FORMULA|FILE.py:NAME")]
    """a formula in x1, ..., xD, or a function written in jax.numpy"""
    on: Annotated[str, arg(metavar="BOX", help_behavior_hint="(required)")]
    """the box, for instance "[0,2*pi]^2" """
    eps: Annotated[str, arg(metavar="E,E,...", help_behavior_hint="(required)")]
    """the tolerances, exact numbers: 0.1,0.03,0.01"""
    method: Annotated[Method, arg(metavar="NAME")] = "auto"
    """how the weights are made, as for build"""
    objective: Literal["parameters", "heads", "time"] = "parameters"
    """what auto keeps small"""
    fit_seconds: Annotated[float, arg(metavar="S")] = 30.0
    """how long fit trains for each tolerance"""
    boxes: Annotated[int, arg(metavar="N", help_behavior_hint="(default: 2,000,000)")] = 2_000_000
    """give up the search of a tolerance after N boxes"""
    seconds: Annotated[float, arg(metavar="S", help_behavior_hint="(default: 600)")] = 600.0
    """give up a tolerance after S seconds of search and check"""
    quality: Annotated[float, arg(metavar="Q")] = 0.1
    """how close the proved upper end should come to the lower end: 0.1 is within ten per cent"""
    seed: Annotated[int, arg(metavar="N")] = 0
    """the seed of every random choice"""
    dtype: Annotated[
        Literal["float64", "float32", "bfloat16"] | None,
        arg(metavar="{float64,float32,bfloat16}", help_behavior_hint="(default: float64, no claim about runs)"),
    ] = None
    """store the weights in this type, and bound the rounding of runs in it as well"""
    out: OptionalFolder = None
    """the folder of the curve (default: runs/curve-<name>)"""
    force: Flag = False
    """build again what the folder holds"""
    config: OptionalFile = None
    """read flags from a TOML file; flags given here win"""
    json: Flag = False
    """print one JSON object"""
    quiet: Flag = False
    """no progress"""


ARGUMENTS = ("on", "eps", "method", "objective", "fit_seconds", "boxes", "seconds", "quality", "seed", "dtype", "force")


def run(options: Options, terminal: Terminal) -> int:
    """Build every point, draw, report; returns the exit code."""
    from certiformer.artifact.folder import slug
    from certiformer.cli.progress import progress_for
    from certiformer.cli.signals import interrupted_code
    from certiformer.curves import DATA, curve

    out = Path(options.out if options.out is not None else f"runs/curve-{slug(options.target)}")
    arguments = {name: getattr(options, name) for name in ARGUMENTS}
    try:
        with progress_for(terminal) as progress:
            drawn = curve(options.target, out=out, progress=progress, **arguments)
    except KeyboardInterrupt as interrupt:
        kept = f"what is done is drawn in {out}" if (out / DATA).exists() else "no point was finished"
        sentence = f"interrupted; {kept}, and the same command goes on: {terminal.command}"
        return terminal.error(sentence, interrupted_code(interrupt))
    if terminal.json:
        terminal.emit({**drawn.to_json(), "directory": str(out), "notes": list(drawn.notes)})
    else:
        _describe(drawn, out, terminal)
    return 0 if drawn.certified else UNFINISHED


def _describe(drawn: Curve, out: Path, terminal: Terminal) -> None:
    from certiformer.cli.rates_tables import say_table
    from certiformer.curves import FILES
    from certiformer.report.curve_files import HEADINGS, rows_of

    terminal.fact("curve", f"{drawn.target} on {drawn.on}: what is proved of the largest error, by size")
    say_table(HEADINGS, rows_of(drawn.to_json()), terminal)
    done = sum(point.certified for point in drawn.points)
    tone = "good" if drawn.certified else "weak"
    terminal.fact(
        "certified", f"{done} of {len(drawn.points)} points, each by the folder eps-... beside the picture", tone
    )
    terminal.fact("wrote", f"{out}: {', '.join(name for name in FILES if (out / name).exists())}")
    for note in drawn.notes:
        terminal.note(f"note: {note}")
