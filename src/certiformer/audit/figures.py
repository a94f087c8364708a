"""The few numbers that sum a checkpoint up, by name: what two checkpoints are compared by and conditions are about."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from certiformer.errors import BadInput

if TYPE_CHECKING:
    from certiformer.audit.result import Audit

NAMES = {
    "spectral_norm": "largest spectral norm of a map: hidden units, tables, heads of the model",
    "qk_spectral": "largest |W_Q^T W_K| / sqrt(head size) of a head, raw",
    "vo_spectral": "largest |W_O W_V| of a head, raw",
    "score_bound": "largest bound of the scores behind the norms",
    "lipschitz": "largest Lipschitz constant of an attention, token by token (bounds.pairwise_attention_lipschitz)",
    "alpha": "median decay exponent of the singular values of W_Q^T W_K",
    "smallest_alpha": "smallest of these exponents",
    "stable_rank": "median stable rank of W_Q^T W_K",
    "random_heads": "share of products of heads whose spectral norm is within 25 % of that of random ones",
    "coverage": "share of the parameters that are accounted for",
    "parameters": "stored parameters",
    "layers": "layers, shared ones as often as they are applied",
    "not_finite": "tensors with NaN or infinite entries",
    "holds": "theorems that hold",
    "vacuous": "theorems that are vacuous",
    "warnings": "diagnostics that are warnings",
}
_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}
_CONDITION = re.compile(r"\s*([a-z_]+)\s*(>=|<=|==|!=|>|<)\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*")


@dataclass(frozen=True)
class Condition:
    """A comparison of one figure with a number, as `--fail-if` takes it."""

    text: str
    name: str
    sign: str
    number: float

    def is_met(self, figures: dict[str, float | None]) -> bool:
        """Whether the figures meet it; `BadInput` where the figure is not known for this checkpoint."""
        value = figures[self.name]
        if value is None:
            raise BadInput(
                f"the condition {self.text!r} cannot be decided: {self.name} is not known for this checkpoint"
            )
        return _OPERATORS[self.sign](value, self.number)


def parse_condition(text: str) -> Condition:
    """A condition from its text: a name, a sign and a number.

    >>> parse_condition("spectral_norm > 10")
    Condition(text='spectral_norm > 10', name='spectral_norm', sign='>', number=10.0)
    """
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise BadInput(f"a condition is a name, one of {' '.join(_OPERATORS)}, and a number, not {text!r}")
    name, sign, number = match.groups()
    if name not in NAMES:
        raise BadInput(f"there is no figure {name!r} to set a condition on; there are {', '.join(NAMES)}")
    return Condition(text.strip(), name, sign, float(number))


def figures(audit: Audit) -> dict[str, float | None]:
    """Every figure of `NAMES`; None where it is not known."""
    found = audit.measurements
    heads = [head for layer in found.layers for head in layer.heads]
    products = [part for head in heads for part in (head.qk, head.vo) if part is not None]
    matrices = [m for layer in found.layers for m in layer.matrices.values()] + list(found.matrices.values())
    alphas = [head.qk.decay.alpha for head in heads if head.qk.decay is not None]
    constants = [each.value for each in audit.verdicts if each.id == "bounds.pairwise_attention_lipschitz"]
    random = [0.8 <= p.spectral / p.gaussian_spectral <= 1.25 for p in products if p.gaussian_spectral > 0]
    total = audit.coverage.total
    values: dict[str, float | None] = {
        "spectral_norm": _largest(each.norms.spectral for each in matrices),
        "qk_spectral": _largest(head.qk.spectral for head in heads),
        "vo_spectral": _largest(head.vo.spectral for head in heads if head.vo is not None),
        "score_bound": _largest(head.score_bound for head in heads if head.score_bound is not None),
        "lipschitz": _largest(each for each in constants if each is not None),
        "alpha": median(alphas) if alphas else None,
        "smallest_alpha": min(alphas, default=None),
        "stable_rank": median(head.qk.ranks.stable for head in heads) if heads else None,
        "random_heads": sum(random) / len(random) if random else None,
        "coverage": audit.coverage.accounted / total if total else None,
        "parameters": float(total),
        "layers": float(sum(layer.repeats for layer in audit.checkpoint.layers)),
        "not_finite": float(len(found.not_finite)),
        **{name: float(sum(each.verdict == name for each in audit.verdicts)) for name in ("holds", "vacuous")},
        "warnings": float(sum(each.level == "warning" for each in audit.diagnostics)),
    }
    return {name: values[name] for name in NAMES}


def _largest(values: Iterable[float]) -> float | None:
    """The largest; None where there is none, or where one is not a number."""
    known = list(values)
    return None if not known or any(math.isnan(each) for each in known) else max(known)
