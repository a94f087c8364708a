"""The terms of a target that are ridge functions already, and the rest.

>>> from certiformer.target import formula, parse_formula
>>> exact, rest = separated(parse_formula("[sin(3*x1) + 2*(x1*x2 - abs(x1 - x2)), x1]"))
>>> formula(exact), formula(rest)
(['-2*abs(x1 - x2) + sin(3*x1)', 'x1'], ['2*(x1*x2)', '0'])
"""

from __future__ import annotations

from fractions import Fraction

from certiformer.kernel.programs import extract
from certiformer.target import Builder, Program, fold, ridge_split
from certiformer.target.split import opened


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
