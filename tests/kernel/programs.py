"""Random programs of the target language, with every operation in them."""

from __future__ import annotations

import random
from fractions import Fraction

from certiformer.errors import BadInput
from certiformer.target import Builder, Program

UNARY = ("neg", "sqrt", "exp", "log", "sin", "cos", "tan", "tanh", "atan", "erf", "abs")
BINARY = ("add", "sub", "mul", "div", "min", "max")


def random_program(rng: random.Random, inputs: int, operations: int) -> Program:
    """A program of about `operations` random operations; the later ones read the earlier ones."""
    build = Builder()
    variables = [build.var(i) for i in range(inputs)]
    nodes = [build.constant("pi"), build.rational(Fraction(rng.randrange(-8, 9), 4)), *variables]

    def operand() -> int:
        """A variable, or an earlier node: recent ones are preferred, so that expressions become deep."""
        return (
            rng.choice(variables) if rng.random() < 0.3 else nodes[-1 - min(int(rng.expovariate(0.5)), len(nodes) - 1)]
        )

    while len(nodes) < inputs + 2 + operations:
        a, b, x, y = (operand() for _ in range(4))
        kind = rng.random()
        try:
            if kind < 0.4:
                nodes.append(getattr(build, rng.choice(UNARY))(a))
            elif kind < 0.8:
                nodes.append(getattr(build, rng.choice(BINARY))(a, b))
            elif kind < 0.9:
                nodes.append(build.pow(a, rng.randrange(2, 5)))
            else:
                nodes.append(build.where(rng.choice(("lt", "le")), a, b, x, y))
        except BadInput:  # a constant that is singular or too long: try another operation
            continue
    return build.program(inputs, [nodes[-1], nodes[-2]])
