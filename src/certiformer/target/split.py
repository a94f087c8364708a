"""Splitting one output into a sum of terms in disjoint variables: f(x) = g1(x1) + g2(x2, x3) + ...

A step *split* of a certificate is written from it. The split is purely syntactic and exact: the output is opened
at its outermost additions, subtractions, negations and products or quotients with a rational constant; terms that share
a variable are put together again; terms without a variable go to the first group.
Standard library only.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from certiformer.kernel.programs import NAMED_CONSTANTS, Program, arguments, extract, fits, fold, rational
from certiformer.target.build import Builder

Term = tuple[Fraction, int]  # a coefficient and the number of a node


def additive_split(program: Program, output: int = 0) -> list[tuple[tuple[int, ...], Program]] | None:
    """The groups of variables of one output and the program of each, or None if there are fewer than two groups.

    The programs read only the variables of their group, renumbered from 0 in increasing order, and
    their values add up to the output at every point. Groups are ordered by their first variable; a variable that the
    output does not read is in no group.

    >>> from certiformer.target.parse import parse_formula
    >>> from certiformer.target.show import formula
    >>> for variables, part in additive_split(parse_formula("sin(x1) + x2*x3 - (3 - cos(x2))/2")):
    ...     print(variables, part.inputs, formula(part))
    (0,) 1 ['sin(x1) - 1.5']
    (1, 2) 2 ['x1*x2 + 0.5*cos(x1)']
    >>> additive_split(parse_formula("x1*x2")) is None
    True
    """
    single = program.select(output)
    terms = _terms(single)
    read = _variables_read(single)
    groups = _connected([read[node] for _, node in terms])
    if len(groups) < 2 or not all(fits(coefficient) for coefficient, _ in terms):
        return None
    first = groups[0]
    parts = []
    for group in groups:
        own = [(c, node) for c, node in terms if read[node] & group or (group is first and not read[node])]
        parts.append((tuple(sorted(group)), _sum(single, own, sorted(group))))
    return parts


def _terms(program: Program) -> list[Term]:
    """The output as a sum of coefficients times nodes.

    Nodes are opened from the last to the first, after all their uses, so each is opened once, however often shared.
    """
    coefficients = {program.outputs[0]: Fraction(1)}
    terms: list[Term] = []
    for position in range(program.outputs[0], -1, -1):
        coefficient = coefficients.get(position)
        if coefficient is None:
            continue
        parts = opened(program, position)
        for factor, node in parts:
            coefficients[node] = coefficients.get(node, Fraction(0)) + coefficient * factor
        if not parts:
            terms.append((coefficient, position))
    return terms[::-1]


def opened(program: Program, position: int) -> list[Term]:
    """One node as a sum of multiples of its arguments, or nothing if it is not one."""
    name, *args = program.nodes[position]
    if name in ("add", "sub"):
        return [(Fraction(1), args[0]), (Fraction(1 if name == "add" else -1), args[1])]
    if name == "neg":
        return [(Fraction(-1), args[0])]
    if name == "mul" and (factor := _rational(program, args[0])) is not None:
        return [(factor, args[1])]
    if name == "mul" and (factor := _rational(program, args[1])) is not None:
        return [(factor, args[0])]
    if name == "div" and (divisor := _rational(program, args[1])):
        return [(1 / divisor, args[0])]
    return []


def _rational(program: Program, position: int) -> Fraction | None:
    name, text, *_ = program.nodes[position]
    return rational(text) if name == "const" and text not in NAMED_CONSTANTS else None


def _variables_read(program: Program) -> list[frozenset[int]]:
    read: list[frozenset[int]] = []
    for node in program.nodes:
        own = frozenset([node[1]]) if node[0] == "var" else frozenset()
        read.append(own.union(*(read[a] for a in arguments(node))))
    return read


def _connected(sets: Sequence[frozenset[int]]) -> list[frozenset[int]]:
    """The unions of the sets that share an element, directly or through others, ordered by their smallest element."""
    groups: list[frozenset[int]] = []
    for variables in sets:
        if variables:
            touching = [g for g in groups if g & variables]
            groups = [g for g in groups if not g & variables] + [variables.union(*touching)]
    return sorted(groups, key=min)


def _sum(program: Program, terms: list[Term], variables: list[int]) -> Program:
    """The program of the given terms, in the given variables alone."""
    build = Builder()
    inputs = [build.var(variables.index(i)) if i in variables else None for i in range(program.inputs)]
    nodes, outputs = extract(program.nodes, [node for _, node in terms])
    values = fold(Program(program.inputs, nodes, outputs), inputs, build)
    total = build.rational(0)
    for (coefficient, _), value in zip(terms, values, strict=True):
        weighted = build.mul(build.rational(abs(coefficient)), value)
        total = build.sub(total, weighted) if coefficient < 0 else build.add(total, weighted)
    return build.program(len(variables), [total])
