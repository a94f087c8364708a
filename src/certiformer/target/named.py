"""Formulas whose variables have names of their own, such as the u and v of a kernel.

A module beside the parser, so that what the checker trusts does not grow.
"""

from __future__ import annotations

import re

from certiformer.kernel.programs import Program
from certiformer.target.parse import Parser
from certiformer.target.tokens import Token, quoted


def parse_named(text: str, names: tuple[str, ...]) -> Program:
    """The program of a formula in the variables `names`, in this order.

    >>> parse_named("u - v", ("u", "v")).nodes
    (('var', 0), ('var', 1), ('sub', 0, 1))
    >>> parse_named("u - x2", ("u", "v"))
    Traceback (most recent call last):
    certiformer.errors.BadInput: unknown variable 'x2' at column 5 of the formula; the variables are u, v
    """
    parser = _Named(text, "the formula", None)
    parser.names = names
    outputs = parser.outputs()
    parser.expect_end()
    return parser.build.program(len(names), outputs)


class _Named(Parser):
    names: tuple[str, ...] = ()

    def name(self, token: Token) -> int:
        if token.text in self.names:
            return self.build.var(self.names.index(token.text))
        if re.fullmatch(r"x[0-9_]*", token.text):
            raise self.error(
                f"unknown variable {quoted(token.text)}", token, f"the variables are {', '.join(self.names)}"
            )
        return super().name(token)
