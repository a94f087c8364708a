"""The terms of a target that are ridge functions already, and the rest; the ridges of all outputs together.

>>> from certiformer.target import formula, parse_formula
>>> exact, rest = separated(parse_formula("[sin(3*x1) + 2*(x1*x2 - abs(x1 - x2)), x1]"))
>>> formula(exact), formula(rest)
(['-2*abs(x1 - x2) + sin(3*x1)', 'x1'], ['2*(x1*x2)', '0'])
"""

from __future__ import annotations

from fractions import Fraction

from certiformer.axioms.ridge_temperatures import Ridge
from certiformer.kernel.programs import extract
from certiformer.kernel.refusal import Refused
from certiformer.target import Builder, Program, fold, ridge_split
from certiformer.target.split import opened


def ridge_sum(program: Program) -> tuple[list[tuple[Fraction, ...]], list[Ridge]]:
    """The linear part of every output, and the ridges of all of them, by direction.

    >>> linear, ridges = ridge_sum(parse_formula("sin(x1) + exp(x1 - 2*x2) + 3*x2"))
    >>> [str(c) for c in linear[0]], [ridge.direction for ridge in ridges]
    (['0', '3'], [(1, -2), (1, 0)])
    """
    linear, profiles = [], []
    for output in range(len(program.outputs)):
        split = ridge_split(program, output)
        if split is None:
            raise Refused("the target is not written as a sum of ridge functions")
        linear.append(split.linear)
        profiles.append(dict(split.ridges))
    directions = sorted({direction for own in profiles for direction in own})
    return linear, [Ridge(direction, tuple(own.get(direction) for own in profiles)) for direction in directions]


def separated(program: Program) -> tuple[Program, Program]:
    """Two programs whose outputs add up to those of the given one; the outputs of the first are sums of ridges."""
    build = Builder()
    numbers = fold(
        Program(program.inputs, program.nodes, tuple(range(len(program.nodes)))),
        [build.var(i) for i in range(program.inputs)],
        build,
    )
    exact, rest = [], []
    for output in program.outputs:
        sides = {True: build.rational(0), False: build.rational(0)}
        for coefficient, node in _terms(program, output):
            nodes, outputs = extract(program.nodes, [node])
            is_ridge = ridge_split(Program(program.inputs, nodes, outputs)) is not None
            term = build.mul(build.rational(coefficient), numbers[node])
            sides[is_ridge] = build.add(sides[is_ridge], term)
        exact.append(sides[True])
        rest.append(sides[False])
    return build.program(program.inputs, exact), build.program(program.inputs, rest)


def _terms(program: Program, output: int) -> list[tuple[Fraction, int]]:
    """The output as a sum of coefficients times nodes that are not sums; each node is opened once, after all its uses."""
    coefficients, terms = {output: Fraction(1)}, []
    for position in range(output, -1, -1):
        factor = coefficients.get(position)
        if factor is None:
            continue
        parts = opened(program, position)
        for share, node in parts:
            coefficients[node] = coefficients.get(node, Fraction(0)) + factor * share
        if not parts:
            terms.append((factor, position))
    return terms
