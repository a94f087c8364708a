"""Two networks of one build are no farther apart than rule 3 says: against 200 digits, with zero tolerance."""

from __future__ import annotations

import itertools
from dataclasses import replace

import flint
import numpy as np
import pytest
from flint import arb, arb_mat

from certiformer.kernel import Refused, arrays, twins
from certiformer.kernel.arrays import (
    Apply,
    ArrayProgram,
    Attend,
    Constant,
    Input,
    Linear,
    Norm,
    Pool,
    Rows,
    Scores,
    Stack,
    Sum,
    Weight,
    evaluate,
    point_stream,
)
from certiformer.kernel.balls import Box, working_precision
from certiformer.kernel.taylor import table

KINDS = ("relu", "gelu", "softmax", "linear", "relu attention", "norm", "deep")
DIGITS_200 = 680  # bits
BOX = Box((arb("0.25"), arb("-0.5"), arb(0), arb("0.125")), (arb(1), arb("0.5"), arb("0.75"), arb("0.25")))


@pytest.fixture(autouse=True)
def _precision():
    working_precision()


class Build:
    """A random program over two tokens of width two; numbers of the twin are moved by a relative `step`."""

    def __init__(self, seed: int, step: float):
        self.random, self.moves, self.step = np.random.default_rng(seed), np.random.default_rng(seed + 1), step
        self.program = ArrayProgram()
        self.add = self.program.add

    def numbers(self, *shape: int) -> np.ndarray:
        exact = self.random.normal(size=shape)
        return exact * (1 + self.step * self.moves.uniform(-1, 1, size=shape))

    def row(self, width: int) -> list[arb]:
        return [arb(float(x)) for x in self.numbers(width)]

    def linear(self, x: int, rows: int, columns: int) -> int:
        return self.add(Linear(x, Weight(matrix(self.numbers(rows, columns))), self.row(columns)))

    def attention(self, x: int, kind: str, width: int, allowed) -> int:
        queries, keys, values = (self.linear(x, width, width) for _ in range(3))
        scores = self.add(Scores(queries, keys, arb(float(self.numbers(1)[0]))))
        return self.add(Attend(kind, scores, values, allowed))


def matrix(values: np.ndarray) -> arb_mat:
    return arb_mat([[arb(float(x)) for x in row] for row in values])


def built(kind: str, seed: int, step: float) -> ArrayProgram:
    build = Build(seed, step)
    tokens = build.linear(build.add(Input(2, 2)), 2, 3)
    x = build.add(Stack((build.add(Constant(matrix(build.numbers(1, 3)))), tokens)))
    everyone = ((0, 1, 2),) * 3
    if kind in ("softmax", "linear", "relu attention"):
        x = build.attention(x, kind.split()[0], 3, ((0, 1, 2), (0, 1), ()))
    elif kind == "norm":
        x = build.add(Norm(x, arb(2.0**-7), build.row(3), build.row(3)))
    elif kind == "deep":
        x = build.add(Sum((x, build.attention(x, "softmax", 3, everyone))))
        hidden = build.add(Apply("gelu", build.linear(x, 3, 5)))
        x = build.add(Sum((x, build.linear(hidden, 5, 3))))
    else:
        x = build.linear(build.add(Apply(kind, build.linear(x, 3, 5))), 5, 3)
    pooled = build.add(Pool(build.add(Rows(x, (0, 2))), Weight(matrix(build.numbers(1, 2)))))
    build.linear(pooled, 3, 2)
    return build.program


def values(program: ArrayProgram, point: list[arb]) -> list[arb]:
    """The program at a point, at two hundred digits."""
    box = Box(tuple(point), (arb(0),) * len(point))
    result = evaluate(program, point_stream(table(4, 0), box, program.source))[-1]
    return [result.form(r, c).coef.get(0, arb(0)) for r in range(result.shape[0]) for c in range(result.shape[1])]


def points(seed: int):
    """Corners, the centre and random points of the box."""
    corners = itertools.product((-1, 1), repeat=4)
    inside = np.random.default_rng(seed).uniform(-1, 1, size=(20, 4))
    for choice in [*corners, (0, 0, 0, 0), *inside]:
        yield [c + r * float(e) for c, r, e in zip(BOX.centre, BOX.radius, choice, strict=True)]


def largest_difference(left: ArrayProgram, right: ArrayProgram, seed: int) -> list[arb]:
    flint.ctx.prec = DIGITS_200
    try:
        worst = [arb(0)] * 2
        for point in points(seed):
            gaps = [abs(a - b).lower() for a, b in zip(values(left, point), values(right, point), strict=True)]
            worst = [a if a > b else b for a, b in zip(worst, gaps, strict=True)]
        return worst
    finally:
        working_precision()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("step", [1e-15, 1e-9, 1e-4, 1e-2])
def test_the_bound_holds_at_every_point(kind, step):
    for seed in range(3):
        left, right = built(kind, seed, 0.0), built(kind, seed, step)
        _, gap = twins.twins(left, right, BOX)
        for bound, seen in zip(gap.entries(), largest_difference(left, right, seed), strict=True):
            assert seen <= bound
            assert bound < 1e8 * step  # proportional to the move: no remainder of a form is left in it


@pytest.mark.parametrize("kind", KINDS)
def test_equal_programs_do_not_differ(kind):
    program = built(kind, 1, 0.0)
    _, gap = twins.twins(program, program, BOX)
    assert all(entry.is_zero() for entry in gap.entries())


def changed(program: ArrayProgram, position: int, **fields) -> ArrayProgram:
    other = ArrayProgram()
    other.nodes = [*program.nodes]
    other.nodes[position] = replace(program.nodes[position], **fields)
    return other


def position_of(program: ArrayProgram, kind: type) -> int:
    return next(i for i, node in enumerate(program.nodes) if isinstance(node, kind))


def test_programs_of_another_build_are_refused():
    relu, attention, norm = built("relu", 0, 0.0), built("softmax", 0, 0.0), built("norm", 0, 0.0)
    others = [
        (relu, attention),
        (relu, changed(relu, position_of(relu, Apply), name="gelu")),
        (relu, changed(relu, position_of(relu, Rows), chosen=(2, 0))),
        (relu, changed(relu, position_of(relu, Linear), weight=Weight(arb_mat(2, 2)))),
        (attention, changed(attention, position_of(attention, Attend), allowed=((0, 1, 2),) * 3)),
        (attention, changed(attention, position_of(attention, Attend), kind="linear")),
        (attention, changed(attention, position_of(attention, Attend), scores=2)),
        (norm, changed(norm, position_of(norm, Norm), epsilon=arb(1))),
    ]
    for left, right in others:
        with pytest.raises(Refused, match="not built alike"):
            twins.twins(left, right, BOX)


def test_what_cannot_be_bounded_is_refused():
    flat = built("norm", 0, 0.0)
    place = position_of(flat, Norm)
    zero = [changed(p, place, epsilon=arb(0)) for p in (flat, built("norm", 0, 1e-3))]
    wide = Box(BOX.centre, tuple(r * 10 for r in BOX.radius))
    with pytest.raises(Refused, match="variance"):
        twins.twins(*zero, wide)
    hard = [
        changed(p, position_of(p, Attend), kind="hard") for p in (built("softmax", 0, 0.0), built("softmax", 0, 1e-9))
    ]
    with pytest.raises(Refused, match="jumps"):
        twins.twins(*hard, BOX)
    _, gap = twins.twins(hard[0], hard[0], BOX)
    assert all(entry.is_zero() for entry in gap.entries())


FAULTS = {
    "relu": lambda monkeypatch: monkeypatch.setitem(twins.LIPSCHITZ, "relu", arb(0)),
    "softmax": lambda monkeypatch: monkeypatch.setattr(twins, "shares_moved", lambda distance: distance * 1e-6),
    "norm": lambda monkeypatch: monkeypatch.setattr(twins, "_normed", lambda t, p, row, gaps: [arb(0)] * len(gaps)),
    "linear": lambda monkeypatch: monkeypatch.setattr(
        twins, "_mixed", lambda node, row, keys, forms, gaps: [arb(0)] * forms[node.values].shape[1]
    ),
    "deep": lambda monkeypatch: monkeypatch.setattr(arrays.Weight, "size", property(lambda self: self.matrix * 0)),
}


@pytest.mark.parametrize("kind", FAULTS)
def test_a_planted_fault_is_seen(kind, monkeypatch):
    pairs = []
    place = 4 if kind == "softmax" else 1  # only the queries, or the first map: all of the difference is carried
    for seed in range(6):
        left, moved = built(kind, seed, 0.0), built(kind, seed, 1e-4).nodes[place]
        pairs.append((left, changed(left, place, weight=moved.weight, bias=moved.bias)))
    truths = [largest_difference(*pair, 0) for pair in pairs]
    FAULTS[kind](monkeypatch)
    assert any(
        low > bound
        for pair, seen in zip(pairs, truths, strict=True)
        for low, bound in zip(seen, twins.twins(*pair, BOX)[1].entries(), strict=True)
    )
