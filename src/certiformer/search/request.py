"""What a user asks for, made exact: target, box and epsilon."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from os.path import isdir
from pathlib import Path
from typing import Any, cast, get_args

import numpy as np

from certiformer.construct.method import Layout, Shape
from certiformer.construct.program_values import as_numpy
from certiformer.errors import BadInput
from certiformer.kernel.balls import BallDomain
from certiformer.kernel.programs import DECIMAL
from certiformer.model import Transformer, from_bytes, load
from certiformer.model.store import tensors_to_bytes
from certiformer.target import Domain, Target, Teacher, parse_domain, parse_epsilon, parse_formula

DTYPES = ("float64", "float32", "bfloat16")
LARGEST, GENERIC = 1e300, 8  # of the numbers of a request; how many points its target is tried at
RULES = ("auto", "boxes", "theorem", "sum", "ridges")


@dataclass(frozen=True)
class Options:
    """How hard to search and how strictly to check; the same for `build` and `prove`."""

    rule: str = "auto"
    level: int = 2
    boxes: int = 2_000_000
    seconds: float = 600.0
    quality: float = 0.1
    order: int | None = None
    seed: int = 0
    workers: int | None = None
    dtype: str | None = None  # round the weights to this type and bound the error of runs in it

    def __post_init__(self) -> None:
        if self.dtype not in (None, *DTYPES):
            raise BadInput(f"--dtype is one of {', '.join(DTYPES)}, not {self.dtype!r}")
        if self.rule not in RULES:
            raise BadInput(f"--rule is one of {', '.join(RULES)}, not {self.rule!r}")
        if self.level not in (1, 2):
            raise BadInput(f"--level is 1 or 2, not {self.level!r}")
        if not (self.boxes >= 1 and self.seconds > 0 and self.quality > 0):
            raise BadInput("--boxes, --seconds and --quality must be positive")
        if self.seed < 0:
            raise BadInput(f"--seed is a whole number from 0 up, not {self.seed}")
        if self.order is not None and not 1 <= self.order <= 10:
            raise BadInput(f"--order is between 1 and 10, not {self.order}")


def read_target(target: str | Callable[..., Any], on: str, tokens: int | None = None) -> Target:
    """The target of a formula, of `file.py:name`, or of a JAX callable, on the box `on`. `read_any` knows folders too.

    With `tokens`, a formula may name its variables by token and coordinate (`x2_1`).
    """
    if callable(target):
        from certiformer.target.trace import trace

        domain = parse_domain(on)
        name = getattr(target, "__name__", "callable")
        return _in_floats(Target(name, trace(target, domain.dimension), domain))
    if not isinstance(target, str):
        raise BadInput(f"a target is a formula, 'file.py:name' or a callable, not {type(target).__name__}")
    domain = parse_domain(on)
    if ".py:" in target:
        from certiformer.target.load import load_callable
        from certiformer.target.trace import trace

        return _in_floats(Target(target, trace(load_callable(target), domain.dimension), domain))
    if tokens is not None:
        _check_tokens(tokens, domain.dimension)
    return read_formula(target, domain, tokens)


def read_formula(text: str, domain: Domain, tokens: int | None = None) -> Target:
    """The target of a formula alone: the text is parsed, and never taken for the name of a file.

    >>> read_formula("x1*x1", parse_domain("[0, 1]")).outputs
    1
    """
    return _in_floats(Target(text, parse_formula(text, domain.dimension, tokens), domain))


def _in_floats(target: Target) -> Target:
    """The target, unless its constants or its values inside the box are beyond what a search in float64 can work with.

    The points are generic: a pole that one of them meets by chance has no digits in common with the fractions below.
    """
    ends = BallDomain(target.domain).ends
    low, high = (np.array([float(end.mid()) for end in side]) for side in zip(*ends, strict=True))
    fractions = np.modf(np.outer(np.arange(1, GENERIC + 1), np.sqrt(np.arange(len(ends)) + 2.5)))[0]
    try:
        values = np.abs(as_numpy(target.program)(low + (high - low) * fractions))
    except OverflowError:
        raise BadInput(f"a constant of the target is beyond {LARGEST:g}") from None
    if (values > LARGEST).any():  # NaN, where it has no value, is for the proof to say
        raise BadInput(f"the target has values beyond {LARGEST:g} in the box; divide it by something")
    return target


def read_any(target: Any, on: str, tokens: int | None = None) -> Target | Teacher:
    """Like `read_target`; a `Transformer`, or the folder of one, is a teacher to be imitated. A `Target` has been read."""
    if isinstance(target, Target):
        return target
    if isinstance(target, Transformer):
        return Teacher("a transformer", target.config.to_bytes(), tensors_to_bytes(target), parse_domain(on))
    if isinstance(target, str | Path) and isdir(target):
        return replace(read_any(load(target), on), source=Path(target).name or str(target))
    return read_target(str(target) if isinstance(target, Path) else target, on, tokens)


def teacher_model(teacher: Teacher) -> Transformer:
    """The transformer that is imitated."""
    return from_bytes(teacher.config, teacher.tensors)


def read_epsilon(eps: str | float | Fraction) -> tuple[str, Fraction]:
    """Epsilon as the text that is stored and its exact value; a float means its shortest decimal.

    Stored is the text of the user where it is a decimal or a fraction, else the fraction that an expression stands for.

    >>> read_epsilon("1e-3"), read_epsilon("2*1e-7")
    (('1e-3', Fraction(1, 1000)), ('1/5000000', Fraction(1, 5000000)))
    """
    text = repr(float(eps)) if isinstance(eps, float) else str(eps).strip()
    value = parse_epsilon(text)
    if value > LARGEST:
        raise BadInput(f"epsilon is at most {LARGEST:g}")
    return (text if DECIMAL.fullmatch(text) else str(value)), value


def read_shape(
    target: Target | Teacher, tokens: int | None, out_tokens: int | None, out_width: int | None, layout: str | None
) -> Shape:
    """How inputs and outputs are arranged in tokens; what is not given follows, and a contradiction is `BadInput`.

    Without `tokens` every number is a token of its own. With it, an output of as many rows as there are tokens is read as
    one row for each.

    >>> target = read_target("[x1*x2, x1-x2]", "[0,1]^2")
    >>> read_shape(target, None, None, None, None)
    Shape(tokens=2, width=1, out_tokens=1, out_width=2, layout=None)
    >>> read_shape(target, 2, None, None, "sequence").per_position
    True
    """
    dimension, outputs = target.domain.dimension, target.outputs
    if isinstance(target, Teacher) and tokens is None:
        tokens = target.tokens
    if tokens is not None:
        _check_tokens(tokens, dimension)
    for name, value in (("--out-tokens", out_tokens), ("--out-width", out_width)):
        if value is not None and not (_is_positive(value) and outputs % value == 0):
            raise BadInput(f"{name} must divide the number of outputs, which is {outputs}; it is {value!r}")
    if layout is not None and layout not in get_args(Layout):
        raise BadInput(f"--layout is one of {', '.join(get_args(Layout))}, not {layout!r}")
    if out_tokens is None:
        per_token = out_width is None and tokens is not None and outputs % tokens == 0
        out_tokens = tokens if per_token and tokens is not None else outputs // (out_width or outputs)
    if out_width is not None and out_tokens * out_width != outputs:
        raise BadInput(
            f"--out-tokens {out_tokens} times --out-width {out_width} is not the number of outputs, {outputs}"
        )
    n = dimension if tokens is None else tokens
    return Shape(n, dimension // n, out_tokens, outputs // out_tokens, cast(Layout | None, layout))


def _check_tokens(tokens: int, dimension: int) -> None:
    if not (_is_positive(tokens) and dimension % tokens == 0):
        raise BadInput(f"--tokens must divide the number of inputs, which is {dimension}; it is {tokens!r}")


def _is_positive(value: object) -> bool:
    return type(value) is int and value > 0
