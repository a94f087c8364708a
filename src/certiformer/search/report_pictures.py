"""The pictures of `report.html`: the error over the box, and where the proof had to cut often.

The transformer and the target are sampled in float64 and the split trees are read back; nothing here is evidence.
Beyond two variables the pictures are slices through the point of largest known error.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from certiformer.artifact import Artifact
from certiformer.kernel.balls import BallDomain, working_precision
from certiformer.kernel.certificate import Boxes, Node, Outputs, Split, Triangle
from certiformer.kernel.programs import decimal_text
from certiformer.kernel.rules import LEAF, subtree_ends
from certiformer.model import Transformer
from certiformer.search.request import teacher_model
from certiformer.target import Domain, Program, Target, Teacher, parse_epsilon
from certiformer.target.floating import as_jax
from certiformer.verify import FloatDomain

CURVE_POINTS = 4097
MAP_SIDES = (40, 160)  # the fewest and the most samples a side of a map
MAP_WORK = 4e7  # samples times registers that a picture may cost: about a second
DEPTH_SIDE = 256
MAX_OUTPUTS = 3
MAX_SLICES = 3
MOST_BOXES = 40_000  # of one drawing

Plane = tuple[int, ...]  # one or two variables that a picture shows
Axis = dict[str, Any]


def float_ends(domain: Domain) -> list[tuple[float, float]]:
    """The ends of every axis as the nearest doubles, for pictures only."""
    working_precision()
    box = FloatDomain(BallDomain(domain))
    return list(zip(box.low.tolist(), box.high.tolist(), strict=True))


def axes_of(domain: Domain) -> list[Axis]:
    """The axes of a box, with their ends for drawing and as they were written."""
    return [
        {"label": f"x{i + 1}", "low": low, "high": high, "low_text": low_text, "high_text": high_text}
        for i, ((low, high), (low_text, high_text)) in enumerate(zip(float_ends(domain), domain.bounds, strict=True))
    ]


def error_pictures(run: Artifact, model: Transformer) -> Iterator[dict[str, Any]]:
    axes, through = axes_of(run.subject.target.domain), anchor(run)
    sample = _sampler(run.subject.target, model)
    dimension, shown = len(axes), min(run.subject.target.outputs, MAX_OUTPUTS)
    if dimension == 1:
        points = np.linspace(axes[0]["low"], axes[0]["high"], CURVE_POINTS)[:, None]
        ours, wanted = sample(points)
        for output in range(shown):
            yield _curves(run, axes[0], points[:, 0], ours[:, output], wanted[:, output], output)
        return
    planes = list(combinations(range(dimension), 2))[:MAX_SLICES]
    side = _side(model.config.registers + model.config.tokens, len(planes))
    for plane in planes:
        points = _grid(axes, through, plane, side)
        ours, wanted = sample(points)
        for output in range(shown if len(planes) == 1 else 1):
            name, place = _name(run.subject.target, output), _slice(plane, axes, through)
            pair = ours[:, output].reshape(side, side), wanted[:, output].reshape(side, side)
            if len(planes) == 1:
                yield _value_map(axes, plane, pair[0], f"{name}The transformer T")
            title = f"{name}The error |T − f|{place}"
            yield _error_map(axes, plane, np.abs(pair[0] - pair[1]), title, run)


def _sampler(target: Target | Teacher, model: Transformer) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    def sample(points: Float[np.ndarray, "points inputs"]) -> tuple[np.ndarray, np.ndarray]:
        with jax.enable_x64(True):
            if isinstance(target, Teacher):
                return model.evaluate(points), teacher_model(target).evaluate(points)
            return model.evaluate(points), np.asarray(jax.jit(as_jax(target.program))(points))

    return sample


def _curves(
    run: Artifact, x: Axis, points: np.ndarray, ours: np.ndarray, wanted: np.ndarray, output: int
) -> dict[str, Any]:
    return {
        "kind": "curves",
        "title": f"{_name(run.subject.target, output)}The transformer T against the target f",
        "caption": f"{len(points):,} samples; the dashed lines are the tolerance that the claim speaks of.",
        "x": x,
        "points": points.tolist(),
        "target": _listed(wanted),
        "model": _listed(ours),
        "error": _listed(ours - wanted),
        "epsilon": float(parse_epsilon(run.certificate.epsilon)),
    }


def _value_map(axes: list[Axis], plane: Plane, values: np.ndarray, title: str) -> dict[str, Any]:
    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    caption = "The value of the transformer. A picture of the target would look the same: the error is in the next one."
    return _map(axes, plane, values, title, caption, low, high, "T", "value")


def _error_map(axes: list[Axis], plane: Plane, values: np.ndarray, title: str, run: Artifact) -> dict[str, Any]:
    largest = float(np.max(values[np.isfinite(values)], initial=0.0))
    upper = run.certificate.upper
    end = decimal_text(Fraction(upper or run.certificate.epsilon), up=True, digits=4)
    what = "proved upper end" if upper else "tolerance"
    place = f"the scale ends at {end}, the {what}" if largest <= float(end) else f"the {what} is {end}"
    caption = f"The largest of {values.size:,} samples is {largest:.4g}; {place}."
    return _map(axes, plane, values, title, caption, 0.0, max(float(end), largest), "|T − f|", "error")


def _map(
    axes: list[Axis],
    plane: Plane,
    values: np.ndarray,
    title: str,
    caption: str,
    low: float,
    high: float,
    unit: str,
    palette: str,
) -> dict[str, Any]:
    rows = [_listed(row) for row in values]
    x, y = (axes[i] for i in plane)
    entries = {"kind": "map", "title": title, "caption": caption, "x": x, "y": y, "values": rows}
    return {**entries, "low": low, "high": high, "unit": unit, "palette": palette}


def _grid(axes: list[Axis], anchor: np.ndarray, plane: Plane, side: int) -> Float[np.ndarray, "points inputs"]:
    """The centres of the pixels of a slice, rows from the low end of its second variable."""
    shares = (np.arange(side) + 0.5) / side
    first, second = (axes[i]["low"] + (axes[i]["high"] - axes[i]["low"]) * shares for i in plane)
    points = np.tile(anchor, (side * side, 1))
    points[:, plane[0]] = np.tile(first, side)
    points[:, plane[1]] = np.repeat(second, side)
    return points


def _side(tokens: int, pictures: int) -> int:
    few, many = MAP_SIDES
    return int(min(many, max(few, math.sqrt(MAP_WORK / (tokens * pictures)))))


def anchor(run: Artifact) -> Float[np.ndarray, " inputs"]:
    """The point that slices go through: that of the largest known error, or the middle."""
    if run.certificate.witness is not None:
        return np.array([float(Fraction(text)) for text in run.certificate.witness.point])
    return middle(run.subject.target.domain)


def middle(domain: Domain) -> Float[np.ndarray, " inputs"]:
    """The middle of the box."""
    return np.array([(low + high) / 2 for low, high in float_ends(domain)])


def _name(target: Target, output: int) -> str:
    return f"Output {output + 1}: " if target.outputs > 1 else ""


def _slice(plane: Plane, axes: list[Axis], anchor: np.ndarray) -> str:
    if len(axes) <= 2:
        return ""
    fixed = ", ".join(f"{a['label']} = {anchor[i]:.3g}" for i, a in enumerate(axes) if i not in plane)
    return f" at {fixed}"


def _listed(values: np.ndarray) -> list[float | None]:
    """Numbers for the page; what is not finite has no colour and no height."""
    return [float(v) if math.isfinite(v) else None for v in values]


# --- where the proof was hard -----------------------------------------------------------------------------------------


class Part(NamedTuple):
    """A box proof with the axes of its part of the problem and the point that slices go through."""

    node: Boxes
    axes: list[Axis]
    at: list[float]


def parts(node: Node | None, program: Program | None, axes: list[Axis], at: list[float]) -> Iterator[Part]:
    """Every box proof of a tree; a split has its own variables or directions in each part."""
    if isinstance(node, Boxes):
        yield Part(node, axes, at)
    elif isinstance(node, Triangle):
        yield from parts(node.children[0], Program.from_json(node.through), axes, at)
        yield from parts(node.children[1], program, axes, at)
    elif program is None:
        return  # a teacher is not written as a sum of anything
    elif isinstance(node, Outputs):
        for output, child in enumerate(node.children):
            yield from parts(child, program.select(output), axes, at)
    elif isinstance(node, Split):
        for child, part in zip(node.children, node.parts, strict=False):
            directions = [tuple(direction) for direction in part["directions"]]
            places = [float(sum(n * x for n, x in zip(direction, at, strict=True))) for direction in directions]
            own = [axes[d.index(1)] if sum(map(abs, d)) == 1 else ridge_axis(d, axes) for d in directions]
            yield from parts(child, Program.from_json(part["target"]), own, places)


def ridge_axis(direction: tuple[int, ...], axes: list[Axis]) -> Axis:
    """The axis of s = direction . x.

    >>> square = [{"label": f"x{i}", "low": 0.0, "high": 1.0, "low_text": "0", "high_text": "1"} for i in (1, 2)]
    >>> ridge_axis((1, -2), square)
    {'label': 'x1 − 2 x2', 'low': -2.0, 'high': 1.0, 'low_text': '-2', 'high_text': '1'}
    """
    low = sum(min(n * a["low"], n * a["high"]) for n, a in zip(direction, axes, strict=True))
    high = sum(max(n * a["low"], n * a["high"]) for n, a in zip(direction, axes, strict=True))
    terms = [(n, a["label"]) for n, a in zip(direction, axes, strict=True) if n]
    text = " ".join(f"{'−' if n < 0 else '+'} {'' if abs(n) == 1 else f'{abs(n)} '}{label}" for n, label in terms)
    return {
        "label": text.removeprefix("+ "),
        "low": low,
        "high": high,
        "low_text": f"{low:.4g}",
        "high_text": f"{high:.4g}",
    }


def depth_pictures(run: Artifact) -> Iterator[dict[str, Any]]:
    program = run.subject.target.program if isinstance(run.subject.target, Target) else None
    found = list(parts(run.certificate.proof, program, axes_of(run.subject.target.domain), anchor(run).tolist()))
    for node, own, at in found[:MAX_SLICES]:
        tree = run.subject.leaves[node.offset : node.offset + node.length]
        count, (least, most) = tree.count(LEAF), leaf_depths(tree)
        if least == most:
            continue  # cut evenly: the proof tree says so, and the picture would be one colour
        title = "Where the proof was hard" if len(found) == 1 else f"Where the proof was hard: {_names(own)}"
        caption = f"How often the box was cut, of {count:,} leaves in all: the more cuts, the closer the call."
        if len(own) == 1:
            values = depths(tree, ((np.arange(4 * DEPTH_SIDE) + 0.5) / (4 * DEPTH_SIDE))[:, None]).tolist()
            yield {"kind": "steps", "title": title, "caption": caption, "x": own[0], "values": values}
            continue
        fixed = np.array([(x - a["low"]) / (a["high"] - a["low"]) for x, a in zip(at, own, strict=True)])
        unit = [{**axis, "low": 0.0, "high": 1.0} for axis in own]
        values = depths(tree, _grid(unit, fixed, (0, 1), DEPTH_SIDE)).reshape(DEPTH_SIDE, DEPTH_SIDE)
        title += _slice((0, 1), own, np.array(at))
        yield _map(own, (0, 1), values, title, caption, float(least), float(most), "cuts", "depth")


def boxes_of(proof: Node | None, leaves: bytes, program: Program | None, domain: Domain) -> list[dict[str, Any]]:
    """The covers by boxes of a proof, part by part: their axes and their split trees (preorder bytes in base 64)."""
    drawn = []
    for part in parts(proof, program, axes_of(domain), middle(domain).tolist()):
        tree = leaves[part.node.offset : part.node.offset + part.node.length]
        count = tree.count(LEAF)
        if len(part.axes) <= 2 and count <= MOST_BOXES:
            packed = base64.b64encode(tree).decode("ascii")
            drawn.append({"axes": part.axes, "tree": packed, "leaves": count, "bound": part.node.bound})
    return drawn


def _names(axes: list[Axis]) -> str:
    return ", ".join(axis["label"] for axis in axes)


def leaf_depths(tree: bytes) -> tuple[int, int]:
    """The smallest and the largest number of cuts above a leaf.

    >>> leaf_depths(bytes([0, 255, 0, 255, 255]))
    (1, 2)
    """
    open_halves, depths_seen = [0], set()  # the depths of subtrees that are still to come
    for byte in tree:
        depth = open_halves.pop()
        if byte == LEAF:
            depths_seen.add(depth)
        else:
            open_halves += [depth + 1, depth + 1]
    return min(depths_seen), max(depths_seen)


def depths(tree: bytes, shares: Float[np.ndarray, "points inputs"]) -> np.ndarray:
    """How many cuts lie above the leaf at each point, given as shares of the box from 0 to 1.

    >>> depths(bytes([0, 255, 0, 255, 255]), np.array([[0.2], [0.6], [0.9]])).tolist()
    [1, 2, 2]
    """
    axes = np.frombuffer(tree, np.uint8)
    ends = np.array(subtree_ends(tree, shares.shape[1]))
    place, depth, rest = np.zeros(len(shares), int), np.zeros(len(shares), int), shares.copy()
    active = np.flatnonzero(axes[place] != LEAF)
    while active.size:
        axis = axes[place[active]]
        doubled = 2 * rest[active, axis]
        upper = doubled >= 1
        rest[active, axis] = doubled - upper
        place[active] = np.where(upper, ends[place[active] + 1], place[active] + 1)
        depth[active] += 1
        active = active[axes[place[active]] != LEAF]
    return depth
