"""How much a run in floating point may add to the proved error: the bound for a model that was just built or given.

The computation is the kernel's own (`kernel.rounding.runs`); here it gets a few seconds, and the bound that it reached
is what the certificate states. The checker bisects the box in the same order and so reaches it again.
"""

from __future__ import annotations

from dataclasses import dataclass

from certiformer.kernel.balls import BallDomain, decimal, working_precision
from certiformer.kernel.problem import Network
from certiformer.kernel.rounding.runs import run_error as bounded
from certiformer.kernel.weights import read_model
from certiformer.model import Transformer
from certiformer.model.store import tensors_to_bytes
from certiformer.target import Target, Teacher

SECONDS = 5.0

# What a run has to be like, in the words of the certificate.
ASSUMPTIONS = (
    "a run in {dtype} rounds every operation to nearest in {dtype} or a wider format, adds in any order, may fuse"
    " multiplications with additions and may flush subnormal numbers",
    "division, square root, exponential and error function of the run keep the errors stated under float semantics;"
    " softmax subtracts the largest score, and each score has one value",
)


@dataclass(frozen=True)
class RunError:
    """`bound` is decimal text of a proved bound of |T_run - T_real| over the box, None with the `reason` if there is
    none.
    """

    bound: str | None
    reason: str
    assumptions: tuple[str, ...]
    cells: int


def run_error(
    model: Transformer,
    target: Target | Teacher,
    dtype: str | None = None,
    *,
    round_input: bool = False,
    seconds: float = SECONDS,
) -> RunError:
    """A bound of |T_run - T_real| over the box of `target` for runs in `dtype` (default: the stored dtype).

    Without `round_input` it holds at points whose coordinates are numbers of `dtype`; with it, at every point of the
    box whose coordinates are rounded to `dtype` first.

    >>> from certiformer.model import Config, Input, Readout
    >>> from certiformer.target import Target, parse_domain, parse_formula
    >>> config = Config(Input("continuous", 1, width=1), width=1, outputs=1, readout=Readout("sum"), dtype="float32")
    >>> weights = {"embed.weight": [[0.1]], "embed.bias": [0], "readout.weight": [[1]], "readout.bias": [0]}
    >>> target = Target("0.1*x1", parse_formula("0.1*x1", 1), parse_domain("[0, 1]"))
    >>> f"{float(run_error(Transformer(config, weights), target).bound):.2e}"  # one product: 2^-24 times 0.1
    '5.96e-09'
    """
    working_precision()
    network = Network(*read_model(model.config.to_bytes(), tensors_to_bytes(model)))
    dtype = dtype or model.config.dtype
    found = bounded(network, BallDomain(target.domain), dtype, round_input=round_input, seconds=seconds)
    text = None if found.bound is None else decimal(found.bound, up=True)
    return RunError(text, found.reason, tuple(line.format(dtype=dtype) for line in ASSUMPTIONS), found.cells)
