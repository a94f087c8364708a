"""What every expression has: children, a name, annotations. Expressions never change, and are compared by identity.

A program is an expression together with everything below it. Children exist before their parent, and nothing can be
replaced afterwards, so a program has no cycles. Nothing here recurses: a chain of 10,000 expressions is ordinary.
"""

from __future__ import annotations

import copy
import enum
import itertools
import os
import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

from certiformer.errors import BadInput

ExpressionT = TypeVar("ExpressionT", bound="RASPExpr")

_numbers = itertools.count(1)
_HERE = os.path.dirname(os.path.abspath(__file__))


class RASPExpr:
    """An expression of the language: a sequence of values (`SOp`) or a pattern of attention (`Selector`)."""

    default_name = "expression"
    fields: tuple[str, ...] = ()  # attributes that hold children, in the order of the constructor

    def __init__(self, **attributes: Any) -> None:
        for name, value in attributes.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "annotations", MappingProxyType({}))
        object.__setattr__(self, "unique_id", next(_numbers))
        object.__setattr__(self, "place", _written_at())

    annotations: Mapping[str, Any]
    unique_id: int
    place: str

    def __setattr__(self, name: str, value: Any) -> None:
        raise BadInput(f"expressions do not change; write annotate(expression, {name}=...) for a changed copy")

    def __delattr__(self, name: str) -> None:
        raise BadInput("expressions do not change")

    def __call__(self, xs: Sequence[Any]) -> list[Any]:
        """The value of the expression on an input, by the reference interpreter; fractions as the nearest floats."""
        from certiformer.rasp.interpreter import evaluate_plain

        return evaluate_plain(self, xs)

    def __repr__(self) -> str:
        return f"<{self.name}>"

    @property
    def children(self) -> Sequence[RASPExpr]:
        """The expressions that this one reads."""
        return [getattr(self, name) for name in self.fields]

    @property
    def name(self) -> str:
        """The name given by `named`, or a word for the kind of expression."""
        return self.annotations.get("name", self.default_name)

    @property
    def label(self) -> str:
        """The name with a number that no other expression has."""
        return f"{self.name}_{self.unique_id}"

    def copy(self: ExpressionT) -> ExpressionT:
        """The same expression as a new object."""
        return annotate(self)

    def named(self: ExpressionT, name: str) -> ExpressionT:
        """A copy with a name."""
        return annotate(self, name=name)

    def annotated(self: ExpressionT, **annotations: Any) -> ExpressionT:
        """A copy with further annotations."""
        return annotate(self, **annotations)


def _written_at() -> str:
    """The line that makes an expression, as `file.py:12`: the innermost one outside of the language itself.

    The library is a user of the language; it lives one folder below. What the language makes itself (`tokens`) has no line.
    """
    frame = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith("<frozen"):
            return ""
        if os.path.dirname(code.co_filename) != _HERE:
            return f"{os.path.basename(code.co_filename)}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def annotate(expr: ExpressionT, **annotations: Any) -> ExpressionT:
    """A copy of `expr` with these annotations added or replaced; children are shared."""
    new = copy.copy(expr)
    object.__setattr__(new, "annotations", MappingProxyType({**expr.annotations, **annotations}))
    object.__setattr__(new, "unique_id", next(_numbers))
    return new


class Encoding(enum.Enum):
    """How a compiler should carry a value: as one of finitely many symbols, or as a number."""

    CATEGORICAL = "categorical"
    NUMERICAL = "numerical"


def numerical(sop: ExpressionT) -> ExpressionT:
    """A copy that asks to be carried as a number."""
    return annotate(sop, encoding=Encoding.NUMERICAL)


def categorical(sop: ExpressionT) -> ExpressionT:
    """A copy that asks to be carried as a symbol."""
    return annotate(sop, encoding=Encoding.CATEGORICAL)


def get_encoding(sop: RASPExpr) -> Encoding:
    """The encoding asked for; categorical when nothing was asked."""
    return sop.annotations.get("encoding", Encoding.CATEGORICAL)


def is_numerical(sop: RASPExpr) -> bool:
    """Whether the expression asks to be carried as a number."""
    return get_encoding(sop) == Encoding.NUMERICAL


def is_categorical(sop: RASPExpr) -> bool:
    """Whether the expression does not ask to be carried as a number."""
    return get_encoding(sop) == Encoding.CATEGORICAL


def require(kind: type[RASPExpr], given: Any, place: str) -> Any:
    """`given`, when it is an expression of the kind that belongs in `place`."""
    if not isinstance(given, kind):
        word = {"SOp": "sequence", "Selector": "selector"}[kind.__name__]
        raise BadInput(f"{place} must be a {word}, not a {type(given).__name__}")
    return given


def require_function(f: Any, place: str) -> Any:
    """`f`, when it is a function and not by mistake an expression (which can be called, too)."""
    if not callable(f) or isinstance(f, RASPExpr):
        raise BadInput(f"{place} must be a function of values, not a {type(f).__name__}")
    return f


def in_evaluation_order(root: RASPExpr) -> list[RASPExpr]:
    """Every expression below `root`, once, children first; without recursion.

    >>> from certiformer.rasp import tokens
    >>> in_evaluation_order((tokens + 1).named("next"))
    [<tokens>, <next>]
    """
    order: list[RASPExpr] = []
    seen: set[int] = set()
    stack: list[tuple[RASPExpr, bool]] = [(root, False)]
    while stack:
        expr, children_done = stack.pop()
        if children_done:
            order.append(expr)
        elif id(expr) not in seen:
            seen.add(id(expr))
            stack.append((expr, True))
            stack.extend((child, False) for child in reversed(expr.children))
    return order


def path_to(root: RASPExpr, target: RASPExpr) -> str:
    """How to reach an expression from the whole program, by the shortest way: `reverse.selector.queries`."""
    paths = {id(root): root.name}
    level: list[RASPExpr] = [root]
    while level and id(target) not in paths:
        below: list[RASPExpr] = []
        for expr in level:
            for name, child in zip(expr.fields, expr.children, strict=True):
                if id(child) not in paths:
                    # A chain of thousands keeps its two ends; the middle tells nobody anything.
                    path = f"{paths[id(expr)]}.{name}"
                    paths[id(child)] = path if len(path) < 200 else f"{path[:90]}...{path[-90:]}".replace("....", "...")
                    below.append(child)
        level = below
    return paths.get(id(target), target.name)


def describe(root: RASPExpr, target: RASPExpr) -> str:
    """An expression for a message: its name, and its place in the program when that says more."""
    path = path_to(root, target)
    return target.name if path == target.name else f"{target.name} (at {path})"
