"""`certiformer prove`: bound the error of a transformer that the user brings."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

from tyro.conf import Positional, arg

from certiformer.cli.options import Flag
from certiformer.cli.search_options import SHARED, SearchOptions
from certiformer.cli.terminal import Terminal

SUMMARY = "Prove or refute that your own transformer stays within a tolerance of a function, at every point of a box."
EXAMPLES = """
  certiformer prove my-model "sin(x1)+sin(x2)" --on "[0,2*pi]^2" --eps 0.2               # the main job
  certiformer prove my-model surface.py:height --on "[0,1]^2" --eps 0.05 --seconds 60    # with a budget
  certiformer prove my-model "x1*x2" --on "[0,1]^2" --eps 0.1 --json --quiet             # for a script
  certiformer prove net.safetensors "x1*x2" --on "[0,1]^2" --eps 0.1 --heads 2 --activation relu --norm-first false \\
    --read mean                                                                           # an encoder of PyTorch
  certiformer prove my-model "x1*x2" --on "[0,1]^2" --eps 0.1 --dry-run                  # a guess of the effort

my-model is a folder with model.safetensors and config.json; it is copied into the run folder, never changed.
net.safetensors holds the state dict of nn.TransformerEncoderLayers and linear maps around them (docs: From PyTorch)
exit codes: 0 certified, 1 refuted, 2 bad input or invalid, 3 undecided or level 1 only
"""


@dataclass(kw_only=True)
class Options(SearchOptions):
    """The flags of `prove`."""

    model: Annotated[Positional[str], arg(metavar="DIR|FILE.safetensors")]
    """the folder of the transformer, or the state dict of an encoder of PyTorch"""
    target: Annotated[Positional[str], arg(metavar="FORMULA|FILE.py:NAME")]
    """a formula in x1, ..., xD, or a function written in jax.numpy"""
    heads: Annotated[int | None, arg(metavar="N", help_behavior_hint="")] = None
    """the heads of each layer; this and what follows is for a state dict, which has the weights only"""
    activation: Annotated[Literal["relu", "gelu"] | None, arg(metavar="{relu,gelu}", help_behavior_hint="")] = None
    """the activation of each layer"""
    norm_first: Annotated[Literal["true", "false"] | None, arg(metavar="{true,false}", help_behavior_hint="")] = None
    """whether norms stand before the parts"""
    norm_epsilon: Annotated[float | None, arg(metavar="X", help_behavior_hint="(default: 1e-5)")] = None
    """the epsilon of the norms"""
    read: Annotated[
        Literal["all", "mean", "sum", "first", "last"] | None,
        arg(metavar="{all,mean,sum,first,last}", help_behavior_hint=""),
    ] = None
    """of which tokens the output is taken"""
    causal: Flag = False
    """a token sees no later ones"""

    def reading(self) -> dict[str, Any]:
        """How a state dict is read."""
        answers = {"true": True, "false": False, None: None}
        names = ("heads", "activation", "norm_epsilon", "read")
        said = {name: getattr(self, name) for name in names}
        return {**said, "norm_first": answers[self.norm_first], "causal": self.causal or None}


def run(options: Options, terminal: Terminal) -> int:
    """Search, check and report; returns the exit code."""
    from certiformer.api.building import prove
    from certiformer.cli.outcome import carry_out

    if options.dry_run:
        return _dry_run(options, terminal)
    arguments = {**{name: getattr(options, name) for name in SHARED}, **options.reading()}
    return carry_out(partial(prove, options.model, options.target, **arguments, keep=True), terminal)


def _dry_run(options: Options, terminal: Terminal) -> int:
    from certiformer import search
    from certiformer.report.numbers import size_text

    estimate = search.dry_run_prove(options.model, options.target, **options.claim_arguments(), **options.reading())
    if terminal.json:
        terminal.emit({"outcome": "estimate", **estimate})
        return 0
    terminal.fact("size", f"{estimate['parameters']:,} weights, {size_text(estimate['bytes'])}")
    if estimate["estimated_boxes"] is None:
        terminal.fact("effort", "unknown: the boxes of the pilot did not close; epsilon may be near or below the error")
    else:
        work = f"about {estimate['estimated_boxes']:,} boxes at {estimate['boxes_per_second']:,} a second"
        terminal.fact("effort", f"{work}, about {estimate['estimated_seconds']:g} s with the check (a rough guess)")
    terminal.fact("written", "nothing: this was a dry run")
    return 0
