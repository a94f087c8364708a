"""From fitted components to one transformer: which width for which component, shared units, the block around them."""

from __future__ import annotations

from itertools import product

import numpy as np
from jaxtyping import Float

from certiformer.construct.gather_block import gather_transformer
from certiformer.construct.method import Shape
from certiformer.model import Transformer
from certiformer.search.fit.architecture import Activation, Units
from certiformer.search.fit.components import Component, Parts
from certiformer.search.fit.trainer import Trial

# A combination of widths is looked for among this many at most; beyond, every component keeps its own share.
MOST_COMBINATIONS = 200_000
SNAP_DIGITS = 10


def cheapest(components: list[Component], choices: list[list[Trial]], budget: float) -> list[Trial] | None:
    """One trial for every component of one output, with errors that add up to at most the budget and the fewest weights."""
    number = np.prod([float(len(c)) for c in choices])
    if number > MOST_COMBINATIONS:
        share = budget / len(choices)
        choices = [
            [min((t for t in trials if t.error * c.scale <= share), key=lambda t: t.network.nonzero, default=trials[0])]
            for c, trials in zip(components, choices, strict=True)
        ]
    best, cost = None, np.inf
    for combination in product(*choices):
        error = sum(c.scale * t.error for c, t in zip(components, combination, strict=True))
        weights = sum(t.network.nonzero for t in combination)
        if error <= budget and weights < cost:
            best, cost = list(combination), weights
    return best


def transformer(shape: Shape, parts: Parts, outputs: int, networks: list[Units], activation: Activation) -> Transformer:
    """The block that computes all components.

    act(z) = act(-z) + z for relu and gelu, so a unit can be turned at the price of a slope. With all units turned the same
    way, outputs may share some; as they are, a slope may be missing. The smaller of the two is taken.
    """
    own = [in_inputs(c, n, activation) for c, n in zip(parts.components, networks, strict=True)]
    models = [_block(shape, parts, outputs, units, activation) for units in (own, [_turned(u) for u in own])]
    return min(models, key=lambda model: model.nonzero_count())


def _turned(units: Units) -> Units:
    """The same function with the first nonzero weight of every unit positive."""
    first = units.weights[np.arange(units.count), (units.weights != 0).argmax(1)] if units.count else np.zeros(0)
    sign = np.where(first < 0, -1.0, 1.0)
    moved = np.where(first < 0, units.coefficients, 0.0)
    return Units(
        sign[:, None] * units.weights,
        sign * units.bias,
        units.coefficients,
        _snapped(units.linear + moved @ units.weights),
        float(_snapped(np.array(units.constant + moved @ units.bias))),
    )


def _block(shape: Shape, parts: Parts, outputs: int, networks: list[Units], activation: Activation) -> Transformer:
    inputs = len(parts.low)
    linear, constant = parts.linear.copy(), np.zeros(outputs)
    places: dict[tuple[bytes, float], int] = {}
    rows: list[tuple[np.ndarray, float, np.ndarray]] = []
    for component, own in zip(parts.components, networks, strict=True):
        linear[:, component.output] += own.linear
        constant[component.output] += own.constant
        for w, b, o in zip(own.weights, own.bias, own.coefficients, strict=True):
            key = (w.tobytes(), float(b))
            if key not in places:
                places[key] = len(rows)
                rows.append((w, float(b), np.zeros(outputs)))
            rows[places[key]][2][component.output] += o
    return gather_transformer(
        shape,
        parts.low,
        parts.high,
        linear,
        constant,
        np.array([w for w, _, _ in rows]).reshape(-1, inputs),
        np.array([b for _, b, _ in rows], dtype=float),
        np.array([o for _, _, o in rows]).reshape(-1, outputs),
        activation,
    )


def in_inputs(component: Component, network: Units, activation: Activation) -> Units:
    """The component's network in the inputs x.

    relu(t z) = t relu(z) for t > 0: the largest inner weight of a unit becomes 1. Numbers that are decimals of ten digits
    up to rounding are taken to be those, so that |x1 - x2| is met exactly.
    """
    own = component.in_inputs(network)
    if activation != "relu":
        return own
    sizes = np.abs(own.weights).max(1, initial=0.0)
    sizes = np.where(sizes > 0, sizes, 1.0)
    return Units(
        _snapped(own.weights / sizes[:, None]),
        _snapped(own.bias / sizes),
        _snapped(own.coefficients * sizes),
        _snapped(own.linear),
        float(_snapped(np.array(own.constant))),
    )


def _snapped(values: np.ndarray) -> np.ndarray:
    rounded = np.round(values, SNAP_DIGITS)
    return np.where(np.abs(rounded - values) <= 1e-12 * (1 + np.abs(values)), rounded, values)


def peak_points(
    parts: Parts, peaks: list[tuple[Float[np.ndarray, "peaks k"], Float[np.ndarray, " peaks"]]]
) -> Float[np.ndarray, "points inputs"]:
    """Points of the box at which the components have their peaks (positions in [-1, 1]^k, signed errors).

    The peaks of one component with the other inputs in the middle; and, since components of disjoint inputs peak together,
    the highest and the lowest peaks of all components of one output at once.
    """
    middle = (parts.low + parts.high) / 2
    found = []
    combined: dict[tuple[int, int], np.ndarray] = {}
    for component, (places, errors) in zip(parts.components, peaks, strict=True):
        for place in places:
            found.append(_placed(component, place, middle, parts))
        for sign in (1, -1):
            key = (component.output, sign)
            if len(places):
                combined[key] = _placed(component, places[np.argmax(sign * errors)], combined.get(key, middle), parts)
    return np.array([*found, *combined.values()]).reshape(-1, len(middle))


def _placed(component: Component, place: np.ndarray, others: np.ndarray, parts: Parts) -> np.ndarray:
    """A point of the box whose component has this place; inputs that the component does not read stay at `others`."""
    point = others.copy()
    for direction, share in zip(component.directions, (place + 1) / 2, strict=True):
        length = parts.high - parts.low
        point = np.where(direction > 0, parts.low + share * length, point)
        point = np.where(direction < 0, parts.high - share * length, point)
    return point
