"""The flags that all studies of sequences share: the sizes of the networks that are compared and how they are trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class SequenceOptions:
    """Defaults for minutes on two cores."""

    length: int = 16
    """tokens of a sequence (in training)"""
    width: int = 24
    """width n of the transformer, also of its keys and values"""
    hidden: int = 64
    """width of its feed-forward layers"""
    depth: int = 1
    """feed-forward layers on either side of the attention"""
    units: int = 128
    """units of the linear network"""
    gated_units: int = 32
    """units of the gated network"""
    steps: int = 3000
    """training steps of the transformer"""
    rate: float = 5e-3
    """largest learning rate of the transformer"""
    recurrent_steps: int = 2000
    """training steps of the recurrent networks"""
    linear_rate: float = 1e-3
    """largest learning rate of the linear network"""
    gated_rate: float = 1e-2
    """largest learning rate of the gated network"""
    batch: int = 32
    """sequences in a batch"""
    seeds: int = 3
    """independent runs"""
    seed: int = 0
    """number of the first run"""


PAPER: dict[str, Any] = {
    "length": 32,
    "width": 32,
    "hidden": 128,
    "depth": 3,
    "gated_units": 128,
    "steps": 12000,
    "rate": 2e-3,
}
"""The sizes of Jiang & Li (2023)."""
