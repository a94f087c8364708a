"""Study `mixing`: a transformer against a linear recurrent network and a gated one, on temporal targets.

Tables 2 and 3 of Jiang & Li (2023, arXiv 2305.18475). The target is H_t = sum_s e^(-s) x(t - s); then the inputs come
in another order, or through a random filter theta of length 5 (uniform on [0, 1], causal; also with signs and norm 1);
then the kernel itself is random, uniform on [0, 1]. The linear network is trained twice, shortly and patiently (longer,
at a larger rate), because what it reaches on the random kernel is a matter of training alone. Every seed has its own
weights, filter and kernel, the same for all networks.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from certiformer.rates.sequence_models import train_on_matrices
from certiformer.rates.sequence_options import PAPER, SequenceOptions
from certiformer.rates.sequence_targets import (
    Matrix,
    causal_floor,
    causal_matrix,
    constant_error,
    filter_matrix,
    invariant_floor,
    moved,
    reordered,
    swapped,
    variance,
)
from certiformer.rates.studies.mixing_summary import TARGETS, summary
from certiformer.rates.study import Study
from certiformer.sweep.job import Job, Row

NETWORKS = ("transformer", "linear", "patient", "gated")


@dataclass(frozen=True)
class Options(SequenceOptions):
    count: int = 5
    """inputs at either end that change places"""
    filter: int = 5
    """length of the random filter"""
    steps: int = 5000
    """training steps of the transformer"""
    patient_steps: int = 4000
    """training steps of the linear network when it is trained patiently"""
    patient_rate: float = 3e-3
    """largest learning rate of the linear network then"""


FULL = {**PAPER, "count": 10, "steps": 20000, "recurrent_steps": 8000, "patient_steps": 12000}


def targets(config: dict[str, Any]) -> dict[str, Matrix]:
    """The matrices of one seed, by name."""
    length, generator = config["length"], np.random.default_rng([config["seed"], 2305])
    order = swapped(length, config["count"])
    decay = causal_matrix(np.exp(-np.arange(length)))
    positive = generator.uniform(size=config["filter"])
    signed = generator.uniform(-1, 1, size=config["filter"])
    random = causal_matrix(generator.uniform(size=length))
    matrices = (
        decay,
        reordered(decay, order),
        reordered(decay, moved(length, config["count"])),
        decay @ filter_matrix(positive, length),
        decay @ filter_matrix(signed / np.abs(signed).sum(), length),
        random,
        reordered(random, order),
        decay @ filter_matrix(positive, length).T,  # looks ahead, as the filter is printed
    )
    return dict(zip((*TARGETS, "mixed ahead"), matrices, strict=True))


def run(config: dict[str, Any]) -> list[Row]:
    """One network, one seed, all targets; the row of the filter that looks ahead has floors and no network."""
    matrices = targets(config)
    ahead = matrices.pop("mixed ahead")
    found, losses, diverged = train_on_matrices(config, list(matrices.values()))
    rows = [
        _row(config, name, matrix, float(errors[0]), float(errors[1]), curve.tolist(), bool(lost))
        for (name, matrix), errors, curve, lost in zip(matrices.items(), found, losses, diverged, strict=True)
    ]
    return [*rows, _row({**config, "network": "none"}, "mixed ahead", ahead, float("nan"), float("nan"), [], False)]


def _row(
    config: dict[str, Any], name: str, matrix: Matrix, mse: float, l1: float, losses: list[float], lost: bool
) -> Row:
    return {
        "network": config["network"],
        "target": name,
        "seed": config["seed"],
        "mse": mse,
        "l1": l1,
        "losses": losses,
        "diverged": lost,
        "causal_floor": causal_floor(matrix),
        "invariant_floor": invariant_floor(matrix),
        "variance": variance(matrix),
        "constant_error": constant_error(matrix),
    }


def jobs(options: Options) -> list[Job]:
    """One job for each network and seed; `patient` is the linear network trained longer."""
    function = f"{__name__}:run"
    return [
        Job(function, {**asdict(options), "network": network, "seed": options.seed + number})
        for number in range(options.seeds)
        for network in NETWORKS
    ]


STUDY = Study(
    "mixing",
    "Where does a transformer lose against a recurrent network on temporal targets, and where does it win?",
    Options,
    FULL,
    jobs,
    summary,
)
