"""`certiformer rates pod`: the singular values of a kernel rho(u, v), how fast they fall, and C_1."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import Positional, arg

from certiformer.cli.options import Flag
from certiformer.cli.terminal import Terminal
from certiformer.errors import BadInput

if TYPE_CHECKING:
    from certiformer.rates.pod import Pod

SUMMARY = "Decompose a kernel rho(u, v) on [0,1]^2: singular values, their decay exponent alpha, and C_1."
EXAMPLES = """
  certiformer rates pod "exp(-3*(u-v)**2)" --ranks 8                # a smooth kernel: faster than any power
  certiformer rates pod "min(u,v)"                                  # a kernel with a kink: alpha near 2
  certiformer rates pod "1+2*sin(2*pi*u)*sin(2*pi*(u+v))" --centred # without what the softmax cannot see
  certiformer rates pod kernel.npy --json                           # a matrix of samples rho(u_i, v_j)

exit codes: 0 done, 2 a mistake in the formula, the file or the flags
"""

Number = Annotated[float | None, arg(metavar="X", help_behavior_hint="")]
Text = Annotated[str | None, arg(metavar="A:B", help_behavior_hint="")]


@dataclass(kw_only=True)
class Options:
    """The flags of `rates pod`."""

    kernel: Annotated[Positional[str], arg(metavar="RHO(u,v)|FILE.npy")]
    """a formula in u and v, or a file with a matrix of samples"""
    ranks: Annotated[int, arg(metavar="N")] = 16
    """how many singular values are printed"""
    centred: Flag = False
    """subtract the mean over v first, which the softmax does not see"""
    nodes: Annotated[int, arg(metavar="N")] = 128
    """nodes of the quadrature; twice as many are used, and compared with these"""
    rule: Literal["gauss", "midpoint"] = "gauss"
    """Gauss-Legendre, or the midpoint rule, which suits periodic kernels"""
    window: Text = None
    """the singular values alpha is fitted on, from 1 (default: from the second to the last that is resolved)"""
    alpha: Number = None
    """the exponent C_1 is computed for (default: the fitted one)"""
    json: Flag = False
    """print one JSON object"""
    quiet: Flag = False
    """no notes"""


def run(options: Options, terminal: Terminal) -> int:
    """Decompose and report; returns the exit code."""
    from certiformer.rates.kernels import formula_kernel
    from certiformer.rates.pod import pod_of_kernel, pod_of_matrix

    if options.ranks < 1:
        raise BadInput(f"--ranks is 1 or more, not {options.ranks}")
    window = None if options.window is None else _window(options.window)
    if options.kernel.endswith(".npy"):
        found = pod_of_matrix(_matrix(Path(options.kernel)), options.centred, window, options.alpha)
    else:
        kernel = formula_kernel(options.kernel)
        found = pod_of_kernel(kernel, options.nodes, options.rule, options.centred, window, options.alpha)
    if terminal.json:
        terminal.emit(facts(options.kernel, found, options.ranks))
    else:
        _print(found, options.ranks, terminal)
    return 0


def facts(kernel: str, found: Pod, ranks: int) -> dict[str, Any]:
    """The object of `--json`; what is not known is null, with the reason in `note`."""
    decay = found.decay
    return {
        "kernel": kernel,
        "singular_values": [float(value) for value in found.values[:ranks]],
        "resolved": found.resolved,
        "error": found.error,
        "alpha": None if decay is None else decay.alpha,
        "alpha_interval": None if decay is None else list(decay.interval),
        "window": None if decay is None else list(decay.window),
        "straightness": None if decay is None else decay.straightness,
        "c1": found.c1,
        "c1_alpha": found.exponent,
        "centred": found.centred,
        "measured": found.measured,
        "note": found.note,
    }


def _print(found: Pod, ranks: int, terminal: Terminal) -> None:
    which = "centred in v" if found.centred else "not centred"
    values = ", ".join(f"{value:.6g}" for value in found.values[:ranks])
    terminal.fact("sigma", values, "strong")
    if found.error is None:
        terminal.fact("measured", f"{found.measured}; {which}")
    else:
        terminal.fact("measured", f"{found.measured}, correct to about {found.error:.1e} by doubling; {which}")
    if found.decay is not None:
        low, high = found.decay.interval
        first, last = found.decay.window
        terminal.fact(
            "alpha",
            f"{found.decay.alpha:.4g} [{low:.4g}, {high:.4g}] on k = {first} to {last}"
            f" (R^2 = {found.decay.straightness:.4f})",
        )
    if found.c1 is not None:
        terminal.fact("C_1", f"{found.c1:.6g} = max k^alpha sigma_k for alpha = {found.exponent:.4g}")
    if found.note:
        terminal.fact("note", found.note, "weak")


_COUNT = re.compile("[0-9]{1,9}")


def _window(text: str) -> tuple[int, int]:
    first, colon, last = text.partition(":")
    if not colon or not all(_COUNT.fullmatch(end.strip()) for end in (first, last)):
        raise BadInput(f"--window is two whole numbers such as 2:16, not {text!r}")
    return int(first), int(last)


def _matrix(path: Path) -> Any:
    import numpy as np

    try:
        return np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as problem:
        raise BadInput(f"{path} is no NumPy array ({problem})") from None
