"""Absolute position codes: what is added to data token t before the first block.

The values are computed in float64 from the configuration alone, so nothing needs storing except the `table` kind.
The real-number meaning of a model uses the exact sines and cosines; the rounding here belongs to the run.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from certiformer.model.config import Code, Config

Rows = Float[np.ndarray, "tokens width"]


def _one_hot(code: Code, rows: Rows) -> None:
    tokens = np.arange(rows.shape[0])
    rows[tokens, _offset(code) + tokens] = 1.0


def _sinusoidal(code: Code, rows: Rows) -> None:
    width = code.width or 0
    coordinate = np.arange(width)
    angle = np.arange(rows.shape[0])[:, None] / 10000.0 ** (2 * (coordinate // 2) / width)
    offset = _offset(code)
    rows[:, offset : offset + width] = np.where(coordinate % 2 == 0, np.sin(angle), np.cos(angle))


def _circle(code: Code, rows: Rows) -> None:
    angle = 2.0 * np.pi * np.arange(rows.shape[0]) / (code.period or 1)
    rows[:, _offset(code)] = np.cos(angle)
    rows[:, _offset(code) + 1] = np.sin(angle)


def _offset(code: Code) -> int:
    return code.offset or 0


# `none` adds nothing; the rows of `table` are a tensor of the model.
_CODES: dict[str, Callable[[Code, Rows], None]] = {
    "one-hot": _one_hot,
    "sinusoidal": _sinusoidal,
    "circle": _circle,
}


def code_rows(config: Config) -> Rows | None:
    """The computed code of every data token, or None when the configuration computes none.

    >>> from certiformer.model import Code, Config, Input, Readout
    >>> code_rows(Config(Input("ids", 2, vocabulary=5), 3, 1, Readout("mean"), code=Code("one-hot", offset=1)))
    array([[0., 1., 0.],
           [0., 0., 1.]])
    """
    if config.code.kind not in _CODES:
        return None
    rows = np.zeros((config.tokens, config.width))
    _CODES[config.code.kind](config.code, rows)
    return rows
