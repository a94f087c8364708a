"""Reading one output as a sum of ridge functions: f(x) = linear . x + g1(p1 . x) + g2(p2 . x) + ...

Like `split`, this is purely syntactic and exact; a step *split* of a certificate is written from it. The output is
opened at its outermost sums. A term is a ridge when everything in it reaches the variables through rational affine
expressions of one direction: `sin(x1 + 2*x2)**2` has the direction (1, 2), and so has every function of one variable its
axis. A maximum or minimum of two affine expressions is opened by max(a, b) = b + max(a - b, 0).

Directions are primitive integer vectors whose first nonzero entry is positive, so that equal directions are equal.
Standard library only.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm

from certiformer.kernel.programs import NAMED_CONSTANTS, Program, apply, arguments, fits, rational
from certiformer.target.build import Builder
from certiformer.target.split import opened

Direction = tuple[int, ...]
Affine = tuple[tuple[Fraction, ...], Fraction]  # coefficients and constant


@dataclass(frozen=True)
class RidgeSum:
    """f(x) = linear . x + sum of profile(direction . x); each profile is a program of one variable."""

    linear: tuple[Fraction, ...]
    ridges: tuple[tuple[Direction, Program], ...]


def ridge_split(program: Program, output: int = 0) -> RidgeSum | None:
    """One output as a sum of ridge functions, or None if it is not written as one.

    Directions are pairwise different; constants belong to the first ridge (a constant function is a ridge along x1).

    >>> from certiformer.target.parse import parse_formula
    >>> from certiformer.target.show import formula
    >>> found = ridge_split(parse_formula("sin(x1 + 2*x2) - max(x1, 3*x2)/2 + 4*x1"))
    >>> [str(c) for c in found.linear], [(direction, formula(g)[0]) for direction, g in found.ridges]
    (['4', '-3/2'], [((1, -3), '-0.5*max(x1, 0)'), ((1, 2), 'sin(x1)')])
    >>> ridge_split(parse_formula("x1*x2")) is None
    True
    """
    reader = _Reader(program.select(output))
    return reader.read()


class _Reader:
    """The affine expressions and the directions of every node of a program with one output."""

    def __init__(self, program: Program):
        self.program = program
        self.affine: list[Affine | None] = []
        self.directions: list[frozenset[Direction]] = []
        for node in program.nodes:
            affine = self._affine(node)
            self.affine.append(affine)
            if affine is not None:
                self.directions.append(frozenset([_direction(affine[0])]) if any(affine[0]) else frozenset())
            else:
                self.directions.append(frozenset().union(*(self.directions[a] for a in arguments(node))))

    def read(self) -> RidgeSum | None:
        coefficients: dict[int, Fraction] = {self.program.outputs[0]: Fraction(1)}
        build = Builder()
        linear = [Fraction(0)] * self.program.inputs
        profiles: dict[Direction, int] = {}
        constants: list[int] = []

        def put(direction: Direction, value: int) -> None:
            profiles[direction] = build.add(profiles[direction], value) if direction in profiles else value

        # From the last node to the first, so that a shared node is opened once, with its total coefficient.
        for position in range(self.program.outputs[0], -1, -1):
            factor = coefficients.get(position)
            if factor is None:
                continue
            affine, directions = self.affine[position], self.directions[position]
            if affine is not None:
                linear = [a + factor * b for a, b in zip(linear, affine[0], strict=True)]
                constants.append(build.rational(factor * affine[1]))
            elif len(directions) <= 1:
                value = build.mul(build.rational(factor), self._profile(build, position, directions))
                if directions:
                    put(next(iter(directions)), value)
                else:
                    constants.append(value)
            elif parts := opened(self.program, position):
                for share, node in parts:
                    coefficients[node] = coefficients.get(node, Fraction(0)) + factor * share
            else:
                bend = self._bend(build, position)
                if bend is None:
                    return None
                direction, value, rest = bend
                put(direction, build.mul(build.rational(factor), value))
                coefficients[rest] = coefficients.get(rest, Fraction(0)) + factor
        constant = build.rational(0)
        for value in constants:
            constant = build.add(constant, value)
        if build.value(constant) != 0:
            first = min(profiles, default=_axis(self.program.inputs))
            put(first, constant)
        if not all(fits(c) for c in linear):
            return None
        ridges = tuple((direction, build.program(1, [value])) for direction, value in sorted(profiles.items()))
        return RidgeSum(tuple(linear), ridges)

    def _affine(self, node: tuple) -> Affine | None:
        """The rational affine expression of a node, if it is one."""
        name, *args = node
        zero = (Fraction(0),) * self.program.inputs
        if name == "var":
            return tuple(Fraction(int(i == args[0])) for i in range(self.program.inputs)), Fraction(0)
        if name == "const":
            return None if args[0] in NAMED_CONSTANTS else (zero, rational(args[0]))
        if name not in ("neg", "add", "sub", "mul", "div"):
            return None
        values = [self.affine[a] for a in args]
        if any(value is None for value in values):
            return None
        a, b = values[0], values[-1]
        if name == "neg":
            return _scaled(a, Fraction(-1))
        if name in ("add", "sub"):
            other = b if name == "add" else _scaled(b, Fraction(-1))
            return tuple(x + y for x, y in zip(a[0], other[0], strict=True)), a[1] + other[1]
        if name == "mul":
            if not any(a[0]):
                return _scaled(b, a[1])
            return _scaled(a, b[1]) if not any(b[0]) else None
        return _scaled(a, 1 / b[1]) if not any(b[0]) and b[1] else None

    def _profile(self, build: Builder, position: int, directions: frozenset[Direction]) -> int:
        """The node as an expression of the one variable s = direction . x."""
        values: dict[int, int] = {}
        stack = [position]
        while stack:
            node = stack[-1]
            affine = self.affine[node]
            if node in values:
                stack.pop()
            elif affine is not None:
                values[node] = self._along(build, affine, directions)
            elif waiting := [a for a in arguments(self.program.nodes[node]) if a not in values]:
                stack.extend(waiting)
            else:
                values[node] = apply(build, self.program.nodes[node], values)
        return values[position]

    def _along(self, build: Builder, affine: Affine, directions: frozenset[Direction]) -> int:
        """alpha s + beta for an affine expression of the direction."""
        coefficients, constant = affine
        if not any(coefficients):
            return build.rational(constant)
        direction = next(iter(directions))
        axis = next(i for i, c in enumerate(direction) if c)
        return build.add(
            build.mul(build.rational(coefficients[axis] / direction[axis]), build.var(0)), build.rational(constant)
        )

    def _bend(self, build: Builder, position: int) -> tuple[Direction, int, int] | None:
        """max(a, b) = b + max(a - b, 0), min(a, b) = b - max(b - a, 0), for affine a and b: direction, bend and b."""
        name, *args = self.program.nodes[position]
        if name not in ("max", "min"):
            return None
        a, b = (self.affine[i] for i in args)
        if a is None or b is None:
            return None
        sign = Fraction(1 if name == "max" else -1)
        gap = tuple(sign * (x - y) for x, y in zip(a[0], b[0], strict=True))
        if not any(gap):
            return None
        direction = _direction(gap)
        inner = self._along(build, (gap, sign * (a[1] - b[1])), frozenset([direction]))
        bend = build.max(inner, build.rational(0))
        return direction, bend if name == "max" else build.neg(bend), args[1]


def _scaled(affine: Affine, factor: Fraction) -> Affine:
    return tuple(factor * c for c in affine[0]), factor * affine[1]


def _axis(inputs: int) -> Direction:
    return (1,) + (0,) * (inputs - 1)


def _direction(coefficients: tuple[Fraction, ...]) -> Direction:
    """The primitive integer vector along the coefficients, with a positive first nonzero entry."""
    common = lcm(*(c.denominator for c in coefficients))
    whole = [int(c * common) for c in coefficients]
    divisor = gcd(*whole)
    sign = 1 if next(c for c in whole if c) > 0 else -1
    return tuple(sign * c // divisor for c in whole)
