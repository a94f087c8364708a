"""`audit`: what theorems say about a trained checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from certiformer.errors import BadInput

if TYPE_CHECKING:
    from certiformer.audit.measure import Progress
    from certiformer.audit.result import Audit


def audit(
    path: str | Path,
    *,
    samples: float | None = None,
    tokens: float | None = None,
    length: int | None = None,
    loss: float | None = None,
    largest_loss: float = 1.0,
    delta: float = 0.05,
    bits: float | None = None,
    rho: float | None = None,
    radius: float | None = None,
    heads: int | None = None,
    key_value_heads: int | None = None,
    head_size: int | None = None,
    repeats: int | None = None,
    model_type: str | None = None,
    prefix: str | None = None,
    norm_first: bool | None = None,
    causal: bool | None = None,
    set: Mapping[str, Any] | None = None,  # noqa: A002  # the name of the flag
    progress: Progress | None = None,
) -> Audit:
    """Read a trained checkpoint, account for every parameter, and say theorem by theorem what holds for it.

    **Arguments:**

    - `path`: a folder, a .safetensors, .gguf or .onnx file, or the index of shards.
    - `samples`: how many independent sequences it was trained on.
    - `tokens`: how many tokens it was trained on, or the length of one path.
    - `length`: how many tokens an input has (default: the longest it was made for).
    - `loss`: the mean loss on the sample.
    - `largest_loss`: losses are between 0 and this.
    - `delta`: the probability with which a bound may fail.
    - `bits`: the size of a compressed file of the model.
    - `rho`: the mixing rate of one path.
    - `radius`: how long a token can be where no norm bounds it; for a run of ours, also how far inputs may be from the
      centre.
    - `heads`, `key_value_heads`, `head_size`, `repeats`, `model_type`, `prefix`, `norm_first`, `causal`: what a config
      says, where there is none: the number of heads and of key-value heads, the size of one, how often shared layers are
      applied, the family, what the names of one of several models begin with, where norms stand, whether a token sees
      later ones.
    - `set`: any other entries that a config leaves out, by name.
    - `progress`: called with what is done, all there is, and the name of a tensor.

    The result has `coverage`, `measurements`, `verdicts` and `to_json()`.

    >>> import certiformer
    >>> from tempfile import mkdtemp
    >>> folder = certiformer.build("sin(x1)", on=(0, 1), eps=0.1, method="ridge", out=mkdtemp() + "/sine").directory
    >>> certiformer.audit(folder, radius=0.5).complete
    True
    """
    from certiformer.audit.result import audit as audit_checkpoint
    from certiformer.audit.verdict import Given

    counts = {"samples": samples, "tokens": tokens, "bits": bits, "length": length}
    whole = {name: _whole(name, value) for name, value in counts.items()}
    for name, value in (("largest_loss", largest_loss), ("radius", radius)):
        if value is not None and not 0 < value < float("inf"):
            raise BadInput(f"--{name.replace('_', '-')} is a positive number, not {value}")
    if not 0 < delta < 1:
        raise BadInput(f"--delta is between 0 and 1, not {delta}")
    if loss is not None and not 0 <= loss <= largest_loss:
        raise BadInput(f"--loss is between 0 and the largest loss {largest_loss:g}, not {loss}")
    if rho is not None and not 0 < rho < 1:
        raise BadInput(f"--rho is between 0 and 1, not {rho}")
    given = Given(**whole, loss=loss, largest_loss=largest_loss, delta=delta, radius=radius, rho=rho)
    config: dict[str, Any] = {"heads": heads, "key_value_heads": key_value_heads, "head_size": head_size}
    config |= {"repeats": repeats, "model_type": model_type, "prefix": prefix}
    config |= {"norm_first": norm_first, "causal": causal, **(set or {})}
    known = {name: value for name, value in config.items() if value is not None}
    return audit_checkpoint(path, given, progress=progress, **known)


def _whole(name: str, value: float | None) -> int | None:
    """A count, which may be written as 1e9."""
    if value is None:
        return None
    if not 1 <= value < 2.0**63 or value != int(value):
        raise BadInput(f"--{name} is a positive whole number, not {value:g}")
    return int(value)
