"""The smallest network of one component: grow the width until the goal is reached, then take units and weights away.

Growing: widths 0, 1, 2, 3, 4, 6, 8, 11, ...; each is trained from random starts and from the best narrower network with
random units added. Shrinking, by bisection: with G the Gram matrix of the hidden values and o the outer weights of a
least-squares fit, o_u^2 / (G^-1)_uu is how much the squared error grows when unit u goes and the others are refitted; the
units worth least are left out, another one in every start. Then single weights are set to zero, smallest effect first,
several counts at once.

The goal is a largest error on samples, never a bound. Decisions depend on the seed only; the clock just ends the search.
"""

from __future__ import annotations

import numpy as np

from certiformer.search.fit.architecture import Units, pack, present, room_for
from certiformer.search.fit.trainer import Trainer, Trial

WIDTHS = (0, 1, 2, 3, 4, 6, 8, 11, 16, 22, 32, 45, 64, 90, 128)
# A width whose error is beyond this many goals is followed by the next but one.
FAR = 12.0
# A width whose error is within this many goals may yet do.
CLOSE = 3.0
# Steepest starting slopes, in turn; the box is [-1, 1]^k.
STEEPNESS = (3.0, 8.0, 25.0)
# How often a smaller width is tried, from other starts, before it is given up; in one dimension tries are cheap.
ATTEMPTS, ATTEMPTS_ON_A_LINE = 2, 4
# Of the list of weights by effect, the numbers of weights that are zeroed at once.
ZEROED = (1, 2, 3, 5, 8, 12, 18, 27, 40, 60, 90, 135)


def smallest(trainer: Trainer) -> Trial | None:
    """The smallest network found that reaches the goal, or None; all that was tried is in `trainer.trials`."""
    generator = np.random.default_rng(trainer.seed)
    found, failed = _grow(trainer, generator)
    if found is None:
        return None
    found = _shrink(trainer, generator, found, failed)
    found = trainer.polished(_sparsify(trainer, found))
    trainer.trials[found.units] = found
    return found


def _grow(trainer: Trainer, generator: np.random.Generator) -> tuple[Trial | None, int]:
    """The first of the widths that reaches the goal, and the largest that cannot."""
    position, best, failed = 0, None, -1
    while position < len(WIDTHS) and (not trainer.late or best is None):
        width = WIDTHS[position]
        starts = _random_starts(trainer, generator, width)
        if best is not None:
            starts[-1] = _widened(best.network, starts[-1], width)
        best = trainer.train(starts)
        if best.error <= trainer.goal:
            return best, failed
        # A width that came close is tried again when shrinking, from better starts.
        failed = width if best.error > CLOSE * trainer.goal else width - 1
        position += 2 if best.error > FAR * trainer.goal and width >= 2 else 1
    return None, failed


def _shrink(trainer: Trainer, generator: np.random.Generator, found: Trial, failed: int) -> Trial:
    """Half of the way down to the last width that failed, again and again."""
    attempt, attempts = 0, ATTEMPTS if trainer.inputs > 1 else ATTEMPTS_ON_A_LINE
    while found.units - failed > 1 and not trainer.late:
        width = (found.units + failed) // 2
        starts = _random_starts(trainer, generator, width)
        # The first attempt starts mostly from the network at hand, the second mostly afresh.
        share = len(starts) - len(starts) // 3 if attempt == 0 else 1
        starts[:share] = _narrowed(trainer, found.network, width, share)
        trial = trainer.train(starts)
        if trial.error <= trainer.goal:
            found, attempt = trial, 0
        else:
            attempt += 1
        if attempt == attempts:
            failed, attempt = width, 0
    return found


def _narrowed(trainer: Trainer, network: Units, width: int, number: int) -> list[Units]:
    """Networks of that width from one that is wider, by taking units away that are worth little."""
    first = _without_one(trainer, network)[:number]
    narrow = []
    for units in first:
        while units.count > width:
            units = _without_one(trainer, units)[0]
        narrow.append(units)
    return (narrow * number)[:number]


def _random_starts(trainer: Trainer, generator: np.random.Generator, width: int) -> list[Units]:
    """Units with random directions that bend somewhere in the box, and small random outer weights."""
    starts = []
    for start in range(trainer.starts_for(width)):
        directions = generator.standard_normal((width, trainer.inputs))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        steepness = np.exp(generator.uniform(0, np.log(STEEPNESS[start % len(STEEPNESS)]), (width, 1)))
        weights = steepness * directions
        bends = generator.uniform(-1, 1, (width, trainer.inputs))
        if start % len(STEEPNESS) == 1 and trainer.activation == "relu":
            # Through one corner: a target with a cone there is a sum of such units.
            bends[:] = np.sign(bends[:1]) if start // len(STEEPNESS) else -1.0
        outer = 0.1 * generator.standard_normal(width)
        starts.append(Units(weights, -(weights * bends).sum(1), outer, np.zeros(trainer.inputs), 0.0))
    return starts


def _widened(network: Units, start: Units, width: int) -> Units:
    """The network with the first units of `start` added."""
    extra = start.keep(np.arange(width - network.count))
    return Units(
        np.concatenate([network.weights, extra.weights]),
        np.concatenate([network.bias, extra.bias]),
        np.concatenate([network.coefficients, 0.0 * extra.coefficients]),
        network.linear,
        network.constant,
    )


def _without_one(trainer: Trainer, network: Units) -> list[Units]:
    """The network without one unit, the others refitted by least squares, for every unit, the least worthy first."""
    points, values = trainer.counted_points()
    hidden = network.hidden(points, trainer.activation)
    features = np.concatenate([hidden, points, np.ones((len(points), 1))], axis=1)
    gram = features.T @ features / len(points)
    inverse = np.linalg.inv(gram + 1e-12 * np.eye(len(gram)))
    outer = inverse @ (features.T @ values / len(points))
    growth = outer[: network.count] ** 2 / np.diag(inverse)[: network.count]
    result = []
    for unit in np.argsort(growth, kind="stable"):
        refitted = outer - outer[unit] * inverse[:, unit] / inverse[unit, unit]
        kept = np.delete(np.arange(network.count), unit)
        ends = network.count, network.count + trainer.inputs
        result.append(
            Units(
                network.weights[kept],
                network.bias[kept],
                refitted[kept],
                refitted[ends[0] : ends[1]],
                float(refitted[-1]),
            )
        )
    return result


def _sparsify(trainer: Trainer, found: Trial) -> Trial:
    """Zero weights and slopes while the goal is still reached."""
    inputs, count, room = trainer.inputs, found.units, room_for(found.units)
    while not trainer.late and count > 0:
        vector = pack(found.network, room)
        free = present(inputs, count, room) * (vector != 0)
        effect = np.full(len(vector), np.inf)
        if inputs > 1:
            sizes = np.abs(found.network.weights * found.network.coefficients[:, None])
            # A unit keeps at least one weight.
            sizes[(found.network.weights != 0).sum(1) == 1] = np.inf
            sizes[np.arange(count), np.abs(found.network.weights).argmax(1)] = np.inf
            effect[: count * inputs] = sizes.ravel()
        effect[-1 - inputs : -1] = np.abs(found.network.linear)
        effect[vector == 0] = np.inf
        order = np.argsort(effect, kind="stable")[: int(np.isfinite(effect).sum())]
        numbers = [n for n in ZEROED if n <= len(order)][: trainer.starts_for(count)]
        if not numbers:
            break
        vectors, masks = [], []
        for number in numbers:
            mask = free.copy()
            mask[order[:number]] = 0.0
            masks.append(mask)
            vectors.append(vector * np.where(mask > 0, 1.0, np.where(free > 0, 0.0, 1.0)))
        trial = trainer.thin(vectors, masks, count)
        if trial is None:
            break
        found = trial
    return found
