"""The tensors of a construction, which the axioms list by their nonzero entries."""

from __future__ import annotations

import numpy as np

from certiformer.compiler.room import require_room
from certiformer.kernel.construction import Construction
from certiformer.kernel.weights import expected_shapes
from certiformer.model.config import Config


def dense(made: Construction, advice: str) -> tuple[Config, dict[str, np.ndarray]]:
    """Configuration and tensors; `advice` says what makes a transformer smaller that has no room."""
    return require_room(Config.from_json(made.config), advice), arrays(made)


def arrays(made: Construction) -> dict[str, np.ndarray]:
    """The tensors."""
    tensors = {name: np.zeros(shape) for name, shape in expected_shapes(made.config).items()}
    for name, entries in made.entries.items():
        for index, weight in entries.items():
            tensors[name][index] = weight
    return tensors
