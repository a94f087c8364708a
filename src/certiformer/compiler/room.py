"""Whether a transformer has room: its weights are counted from the configuration, before any of them is made."""

from __future__ import annotations

from math import prod

from certiformer.errors import BadInput
from certiformer.model.config import Config
from certiformer.model.layout import tensor_specs

# A weight takes up to 100 bytes while it is made, written and read back by the checker; together they stay below 1 GiB.
MAX_WEIGHTS = 2**30 // 100


def require_room(config: Config, advice: str) -> Config:
    """The configuration, unless its weights are too many; `advice` says what makes them fewer.

    >>> from certiformer.model.config import Input, Readout
    >>> config = Config(Input("continuous", tokens=1, width=10**5), 10**5, 1, Readout("mean"))
    >>> require_room(config, "take fewer features")
    Traceback (most recent call last):
    ...
    certiformer.errors.BadInput: the transformer would have 10,000,200,001 weights, but at most 10,737,418 are made, for \
which 1 GiB of memory is enough; take fewer features
    """
    weights = sum(prod(spec.shape) for spec in tensor_specs(config).values())
    if weights > MAX_WEIGHTS:
        raise BadInput(
            f"the transformer would have {weights:,} weights, but at most {MAX_WEIGHTS:,} are made, for which 1 GiB of"
            f" memory is enough; {advice}"
        )
    return config
