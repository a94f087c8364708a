"""What a user asks for, made exact: target, box and epsilon."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from certiformer.errors import BadInput
from certiformer.target import Target, parse_domain, parse_epsilon, parse_formula

RULES = ("auto", "boxes", "theorem", "sum")


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

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise BadInput(f"--rule is one of {', '.join(RULES)}, not {self.rule!r}")
        if self.level not in (1, 2):
            raise BadInput(f"--level is 1 or 2, not {self.level!r}")
        if not (self.boxes >= 1 and self.seconds > 0 and self.quality > 0):
            raise BadInput("--boxes, --seconds and --quality must be positive")
        if self.order is not None and not 1 <= self.order <= 10:
            raise BadInput(f"--order is between 1 and 10, not {self.order}")


def read_target(target: str | Callable[..., Any], on: str) -> Target:
    """The target of a formula, of `file.py:name`, or of a JAX callable, on the box `on`."""
    if callable(target):
        from certiformer.target.trace import trace

        domain = parse_domain(on)
        name = getattr(target, "__name__", "callable")
        return Target(name, trace(target, domain.dimension), domain)
    if not isinstance(target, str):
        raise BadInput(f"a target is a formula, 'file.py:name' or a callable, not {type(target).__name__}")
    domain = parse_domain(on)
    if ".py:" in target:
        from certiformer.target.load import load_callable
        from certiformer.target.trace import trace

        return Target(target, trace(load_callable(target), domain.dimension), domain)
    return Target(target, parse_formula(target, domain.dimension), domain)


def read_epsilon(eps: str | float | Fraction) -> tuple[str, Fraction]:
    """Epsilon as the text that is stored and its exact value; a float means its shortest decimal."""
    text = repr(eps) if isinstance(eps, float) else str(eps)
    return text, parse_epsilon(text)
