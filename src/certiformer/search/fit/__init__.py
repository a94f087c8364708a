"""`fit`: one-block transformers trained for the largest error, as few units and weights as the epsilon allows.

    target -> components (exact reading) -> trained networks of growing and shrinking width -> one block around them

Nothing here proves anything. `sampled_error` is the largest error that was found at many points; whether a model is good
enough everywhere is for `verify` and the checker to say.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import jax
import numpy as np

from certiformer.construct.method import Shape, Size, Task
from certiformer.errors import BadInput
from certiformer.model import Transformer
from certiformer.search.fit.architecture import Activation, pack, room_for
from certiformer.search.fit.assemble import cheapest, peak_points, transformer
from certiformer.search.fit.components import KINKS, PERHAPS_KINKS, Parts, components, rows_of, whole
from certiformer.search.fit.samples import Sample, dense_points
from certiformer.search.fit.shrink import smallest
from certiformer.search.fit.train import errors_at
from certiformer.search.fit.trainer import Trainer, Trial

Objective = Literal["parameters", "heads", "time"]
# The sampled error must stay below this share of epsilon: room for peaks between samples and for the proof.
SHARE = 0.97
# With at most this many units a component there is no point in trying the other activation.
FEW_UNITS = 2


@dataclass(frozen=True)
class FitResult:
    """A trained transformer, with the largest error that was found at samples (never a bound).

    `history` is every (component, units, error) that was tried, errors in units of the target; `reached` says whether the
    sampled error is at most `SHARE` of epsilon.
    """

    model: Transformer
    sampled_error: float
    units: int
    size: Size
    activation: Activation
    seconds: float
    history: tuple[tuple[int, int, float], ...]
    reached: bool


def fit(
    task: Task,
    seconds: float = 30.0,
    objective: Objective = "parameters",
    progress: Callable[[str], None] | None = None,
) -> list[FitResult]:
    """Transformers for the task, best first: those that reached epsilon on samples, smallest first, then the others.

    The same task and seed give the same networks as long as the time suffices: the clock only ends the search.

    **Arguments:**

    - `seconds`: time for all of it; the first call in a process also compiles.
    - `objective`: what makes a model small: nonzero weights, heads, or operations of a forward pass.
    - `progress`: is told every width that was tried.
    """
    if objective not in ("parameters", "heads", "time"):
        raise BadInput(f"--objective is one of parameters, heads, time, not {objective!r}")
    started = time.monotonic()
    parts = components(task.target)
    shape = _with_layout(task.shape)
    results = []
    kinds = _activations(parts)
    for position, activation in enumerate(kinds):
        if results and results[0].reached and results[0].units <= FEW_UNITS * max(1, len(parts.components)):
            break
        now = time.monotonic()
        # The first kind may take most of the time; what it leaves is for the next.
        share = (0.65 if len(kinds) > 1 else 1.0) if position == 0 else 1.0
        deadline = now + share * max(0.0, started + seconds - now)
        results.append(_fit_with(task, shape, parts, activation, deadline, progress))
    return sorted(results, key=lambda r: (not r.reached, *_cost(r, objective)))


def _activations(parts: Parts) -> tuple[Activation, ...]:
    """ReLU bends, GELU is smooth."""
    if parts.reads(KINKS):
        return ("relu", "gelu")
    return ("gelu", "relu") if parts.reads(PERHAPS_KINKS) else ("gelu",)


def _fit_with(
    task: Task,
    shape: Shape,
    parts: Parts,
    activation: Activation,
    deadline: float,
    progress: Callable[[str], None] | None,
) -> FitResult:
    began = time.monotonic()
    budget, outputs = SHARE * float(task.epsilon), task.target.outputs
    trainers: dict[tuple, Trainer] = {}
    numbers = [sum(c.output == output for c in parts.components) for output in range(outputs)]
    history: list[tuple[int, int, float]] = []
    own: list[Trainer] = []
    distinct = len({(c.key, numbers[c.output]) for c in parts.components})
    for position, component in enumerate(parts.components):
        key = (component.key, numbers[component.output])
        if key not in trainers:
            now = time.monotonic()
            until = now + max(0.0, deadline - now) / (distinct - len(trainers))
            goal = budget / numbers[component.output] / component.scale
            sample = Sample.of(component.values_of(), component.inputs, task.seed)
            trainer = Trainer(sample, component.inputs, activation, goal, task.seed, until, progress=progress)
            if numbers[component.output] > 1 and component.inputs == 1:
                trainer.enough = 0.0  # what one component leaves unused, another may use
            smallest(trainer)
            trainers[key] = trainer
            history += [(position, units, error * component.scale) for units, error in trainer.history]
        own.append(trainers[key])
    chosen = _sharpened(own, _choose(parts, own, outputs, budget))
    model = transformer(shape, parts, outputs, [t.network for t in chosen], activation)
    error = _sampled_error(task, parts, own, chosen, model)
    # The sum of the components' errors is within the budget up to rounding of the parts.
    reached = bool(error <= budget * (1 + 1e-9))
    size = Size.of(model)
    return FitResult(model, error, size.units, size, activation, time.monotonic() - began, tuple(history), reached)


def _choose(parts: Parts, trainers: list[Trainer], outputs: int, budget: float) -> list[Trial]:
    """The trial of every component: the cheapest that fit together, or the most accurate ones."""
    chosen: dict[int, Trial] = {}
    for output in range(outputs):
        places = [i for i, c in enumerate(parts.components) if c.output == output]
        choices = [sorted(trainers[i].trials.values(), key=lambda t: t.error) for i in places]
        found = cheapest([parts.components[i] for i in places], choices, budget)
        chosen |= dict(zip(places, found or [trials[0] for trials in choices], strict=True))
    return [chosen[i] for i in range(len(parts.components))]


def _sharpened(trainers: list[Trainer], chosen: list[Trial]) -> list[Trial]:
    """Every chosen network with the smallest error that its size was seen to reach; components that share one share it."""
    better: dict[tuple[int, int], Trial] = {}
    for trainer, trial in zip(trainers, chosen, strict=True):
        key = (id(trainer), trial.units)
        if key not in better:
            better[key] = trainer.sharpened(trial)
    return [better[id(trainer), trial.units] for trainer, trial in zip(trainers, chosen, strict=True)]


def _sampled_error(task: Task, parts: Parts, trainers: list[Trainer], chosen: list[Trial], model: Transformer) -> float:
    """The largest error of the finished model at random points and at the peaks of the components."""
    peaks = []
    with jax.enable_x64(True):
        for trainer, trial in zip(trainers, chosen, strict=True):
            vector = pack(trial.network, room_for(trial.units))
            _, places = trainer.sample.worst(trainer.activation, vector)
            peaks.append((places, np.asarray(
                errors_at(trainer.activation, vector, places, trainer.sample.values_of(places))
            )))  # fmt: skip
        inner = dense_points(len(parts.low), task.seed)
        inner = (parts.low + parts.high) / 2 + inner * (parts.high - parts.low) / 2
        points = np.concatenate([inner, peak_points(parts, peaks)])
        wanted = rows_of(whole(task.target))(points)
    error = float(np.abs(model.evaluate(points) - wanted).max())
    return error if np.isfinite(error) else np.inf


def _with_layout(shape: Shape) -> Shape:
    return shape if shape.layout is not None else replace(shape, layout="token" if shape.inputs == 1 else "sequence")


def _cost(result: FitResult, objective: Objective) -> tuple[float, ...]:
    if not result.reached:
        return (result.sampled_error,)
    if objective == "heads":
        return (result.size.heads, result.size.nonzero)
    if objective == "time":
        cost = result.model.cost()
        return (cost.flops, result.size.nonzero)
    return (result.size.nonzero, result.size.dense)
