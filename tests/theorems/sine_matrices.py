"""Deterministic matrices for the bounds: entries sin(s t^2) / sqrt(largest side), t = 1, 2, ... row by row."""

from __future__ import annotations

import numpy as np


def matrix(rows: int, columns: int, s: float) -> np.ndarray:
    t = np.arange(1.0, rows * columns + 1).reshape(rows, columns)
    return np.sin(s * t * t) / np.sqrt(max(rows, columns))


def spectral(a: np.ndarray) -> float:
    return float(np.linalg.norm(a, 2))


def l11(a: np.ndarray) -> float:
    return float(np.abs(a).sum())


SCORES, VALUE, OUTPUT = matrix(8, 8, 0.7), matrix(8, 8, 1.3), matrix(8, 8, 2.1)
READOUT = np.sin(0.9 * np.arange(1.0, 9.0) ** 2) / np.sqrt(8)
