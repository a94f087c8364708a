"""What the tests of theorems about all sequences share: problems, changed weights, and the two ways to decide them."""

from __future__ import annotations

from itertools import product

import numpy as np

from certiformer.kernel.balls import working_precision
from certiformer.kernel.problem import FiniteProblem, PointNetwork
from certiformer.kernel.weights import read_model
from certiformer.model import Config, Transformer
from certiformer.model.store import tensors_to_bytes
from certiformer.target import SequenceMap

Network = tuple[Config, dict[str, np.ndarray]]


def problem_of(network: Network, target: SequenceMap) -> FiniteProblem:
    working_precision()
    model = Transformer(*network)
    return FiniteProblem(PointNetwork(*read_model(model.config.to_bytes(), tensors_to_bytes(model))), target)


def changed(network: Network, name: str, index: tuple[int, ...], by: float) -> Network:
    config, tensors = network
    tensor = np.array(tensors[name])
    tensor[index] += by
    return config, {**tensors, name: tensor}


def all_places(network: Network) -> list[tuple[str, tuple[int, ...]]]:
    """Every single stored weight."""
    return [(name, index) for name, tensor in network[1].items() for index in np.ndindex(np.asarray(tensor).shape)]


def float_error(network: Network, target: SequenceMap) -> float:
    """The largest error over all sequences of a float64 run: quick where many weights are tried in one configuration."""
    letters = list(product(range(target.alphabet), repeat=target.tokens))
    wanted = np.array([target.answer(list(row)) for row in letters])
    return float(np.max(np.abs(Transformer(*network).evaluate(np.array(letters)) - wanted)))
