"""`certiformer compile incontext`: a learning algorithm becomes a transformer that runs it on the rows of its context."""

from __future__ import annotations

import time
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from certiformer.cli.options import Flag, OptionalFolder
from certiformer.cli.terminal import Terminal

SUMMARY = "Turn a learning algorithm into a transformer that is proved to run it on the rows of its context."
EXAMPLES = """
  certiformer compile incontext gd --features 3 --rows 50 --layers 20        # 20 steps of gradient descent
  certiformer compile incontext gd --features 3 --layers 20 --looped         # the same, one block 20 times
  certiformer compile incontext gd --features 2 --attention softmax-pair     # with plain softmax attention
  certiformer compile incontext ridge --features 5 --strength 0.1            # ridge regression
  certiformer compile incontext ridge --features 5 --strength 0.01 --spectrum 0.01 1 --schedule chebyshev
  certiformer compile incontext logistic --features 3 --strength 0.1         # probabilities of 0 and 1
  certiformer compile incontext lasso --features 4 --strength 0.05           # sparse weights
  certiformer compile incontext select --features 4 --strength 0.01,0.1,1    # the best of several strengths

Losses are means over the rows that are given, so --strength s is alpha = rows * s in scikit-learn's Ridge.
exit codes: 0 certified, 2 a mistake in the flags, 3 compiled but not proved
"""


@dataclass(kw_only=True)
class Options:
    """The flags of `compile incontext`."""

    learner: Positional[Literal["gd", "ridge", "relu", "logistic", "lasso", "select"]]
    """the algorithm"""
    features: Annotated[int, arg(metavar="D")]
    """how many features a row has"""
    rows: Annotated[int, arg(metavar="N")] = 100
    """how many rows a context may have; it may have fewer"""
    layers: Annotated[int | None, arg(metavar="L", help_behavior_hint="")] = None
    """how many steps (default: 1 for gd, for the others as many as they need)"""
    step: Annotated[float | None, arg(metavar="ETA", help_behavior_hint="")] = None
    """the step size (default: 1 / the largest eigenvalue in the box)"""
    schedule: Annotated[Literal["constant", "chebyshev", "whitening"] | None, arg(help_behavior_hint="")] = None
    """the steps: all equal, Chebyshev's, or with whitening of the features (default of ridge)"""
    spectrum: Annotated[tuple[float, float] | None, arg(metavar="LOW HIGH", help_behavior_hint="")] = None
    """the eigenvalues of mean x x^T, for gd and ridge with the strength added (default: all that the box allows)"""
    strength: Annotated[str | None, arg(metavar="S[,S..]", help_behavior_hint="")] = None
    """the strength of the penalty; several for select"""
    attention: Annotated[
        Literal["linear", "softmax-pair", "softmax-mirror"] | None, arg(help_behavior_hint="(default: linear)")
    ] = None
    """the kind of attention of gd and ridge"""
    looped: Flag = False
    """one block, applied once for every step"""
    bound: Annotated[float, arg(metavar="B")] = 1.0
    """the claim is for features between -B and B"""
    label_bound: Annotated[float, arg(metavar="B")] = 1.0
    """the claim is for answers between -B and B"""
    error: Annotated[float | None, arg(metavar="E", help_behavior_hint="")] = None
    """logistic: how well the slope of the loss is matched"""
    margin: Annotated[float | None, arg(metavar="G", help_behavior_hint="")] = None
    """select: strengths whose validation losses differ by less are mixed"""
    validation: Annotated[int | None, arg(metavar="V", help_behavior_hint="")] = None
    """select: how many rows are kept for validation"""
    tolerance: Annotated[float | None, arg(metavar="T", help_behavior_hint="(default: what can be proved)")] = None
    """how far a run may be from the algorithm"""
    out: OptionalFolder = None
    """the folder to write (default: runs/LEARNER)"""
    dtype: Literal["float64", "float32", "bfloat16"] = "float64"
    """the type of the weights and of the runs that the proof speaks of"""
    force: Flag = False
    """replace an earlier folder"""
    json: Flag = False
    """print one JSON object"""
    quiet: Flag = False
    """no notes"""


def run(options: Options, terminal: Terminal) -> int:
    """Compile, certify, write and report; returns the exit code."""
    from certiformer.api.compiling import compile_incontext
    from certiformer.cli.compile import report

    began = time.monotonic()
    flags = {flag.name: getattr(options, flag.name) for flag in fields(options) if flag.name not in ("json", "quiet")}
    out = Path(options.out) if options.out is not None else Path("runs") / options.learner
    compiled = compile_incontext(**{**flags, "out": out})
    query = ",".join(["0.5"] * min(options.features, 3)) + (",..." if options.features > 3 else "")
    return report(compiled, began, f"--context data.csv --query {query}", terminal)
