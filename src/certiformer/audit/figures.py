"""The few numbers that sum a checkpoint up, by name, and three sentences: what conditions and comparisons are about.

A figure of heads is known only where files or the user say how many heads there are: maps that were read as one head for
want of a number would pass a condition on heads without saying anything about them.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
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
OF_HEADS = (
    "qk_spectral", "vo_spectral", "score_bound", "lipschitz", "alpha", "smallest_alpha", "stable_rank", "random_heads",
)  # fmt: skip
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
class Figure:
    """A number, None where it is not known, and the map or the head that has it where it is the largest or smallest."""

    value: float | None
    where: str = ""


@dataclass(frozen=True)
class Condition:
    """A comparison of one figure with a number, as `--fail-if` takes it."""

    text: str
    name: str
    sign: str
    number: float

    def is_met(self, figure: Figure) -> bool:
        """Whether the figure of this name meets it; `BadInput` where it is not known for the checkpoint."""
        if figure.value is None:
            heads = "; where no file says how many heads there are, say it (--heads)" if self.name in OF_HEADS else ""
            raise BadInput(
                f"the condition {self.text!r} cannot be decided: {self.name} is not known for this checkpoint{heads}"
            )
        return _OPERATORS[self.sign](figure.value, self.number)

    def sentence(self, figure: Figure) -> str:
        """What is said where it is met: value and place.

        >>> parse_condition("qk_spectral > 5").sentence(Figure(7.25, "layer 2, head 5"))
        "qk_spectral is 7.25 in layer 2, head 5: the condition 'qk_spectral > 5' is met"
        """
        where = f" in {figure.where}" if figure.where else ""
        return f"{self.name} is {figure.value:.6g}{where}: the condition {self.text!r} is met"


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


def figures(audit: Audit) -> dict[str, Figure]:
    """Every figure of `NAMES`, in their order."""
    found, total = audit.measurements, audit.coverage.total
    heads = [
        (head, f"layer {number}, head {place}")
        for number, layer in enumerate(found.layers)
        for place, head in enumerate(layer.heads)
    ]
    products = [part for head, _ in heads for part in (head.qk, head.vo) if part is not None]
    matrices = [
        (matrix.norms.spectral, f"layer {number}, {name}")
        for number, layer in enumerate(found.layers)
        for name, matrix in layer.matrices.items()
    ]
    matrices += [(matrix.norms.spectral, name) for name, matrix in found.matrices.items()]
    alphas = [(head.qk.decay.alpha, where) for head, where in heads if head.qk.decay is not None]
    constants = [verdict.value for verdict in audit.verdicts if verdict.id == "bounds.pairwise_attention_lipschitz"]
    random = [0.8 <= p.spectral / p.gaussian_spectral <= 1.25 for p in products if p.gaussian_spectral > 0]
    values = {
        "spectral_norm": _extreme(matrices),
        "qk_spectral": _extreme([(head.qk.spectral, where) for head, where in heads]),
        "vo_spectral": _extreme([(head.vo.spectral, where) for head, where in heads if head.vo is not None]),
        "score_bound": _extreme([(head.score_bound, where) for head, where in heads if head.score_bound is not None]),
        "lipschitz": _extreme([(constant, "") for constant in constants if constant is not None]),
        "alpha": Figure(median(alpha for alpha, _ in alphas) if alphas else None),
        "smallest_alpha": _extreme(alphas, min),
        "stable_rank": Figure(median(head.qk.ranks.stable for head, _ in heads) if heads else None),
        "random_heads": Figure(sum(random) / len(random) if random else None),
        "coverage": Figure(audit.coverage.accounted / total if total else None),
        "parameters": Figure(float(total)),
        "layers": Figure(float(sum(layer.repeats for layer in audit.checkpoint.layers))),
        "not_finite": Figure(float(len(found.not_finite)), ", ".join(found.not_finite[:1])),
        "holds": Figure(float(_count(audit, "holds"))),
        "vacuous": Figure(float(_count(audit, "vacuous"))),
        "warnings": Figure(float(sum(each.level == "warning" for each in audit.diagnostics))),
    }
    unknown = set() if heads_known(audit) else set(OF_HEADS)
    return {name: Figure(None) if name in unknown else values[name] for name in NAMES}


def figure_values(audit: Audit) -> dict[str, float | None]:
    """The figures as plain numbers."""
    return {name: figure.value for name, figure in figures(audit).items()}


def heads_known(audit: Audit) -> bool:
    """Whether the number of heads of every layer is known."""
    return all(layer.heads_known for layer in audit.checkpoint.layers)


def summary(audit: Audit) -> list[str]:
    """The audit in three sentences: what was read, what holds, what stands out."""
    coverage, checkpoint = audit.coverage, audit.checkpoint
    depth = sum(layer.repeats for layer in checkpoint.layers)
    left = coverage.total - coverage.accounted
    read = (
        f"{left:,} of {coverage.total:,} parameters are not accounted for, and no figure speaks of them."
        if left
        else f"Each of the {coverage.total:,} parameters of {depth} layer{'s' * (depth != 1)} is accounted for."
    )
    if audit.measurements.not_finite:
        read = f"Some entries are not finite, so that no theorem is asked. {read}"
    groups = {
        "hold": "holds", "hold but say nothing new here (vacuous)": "vacuous", "need what no file says": "holds-if",
        "are false here": "false", "are open": "open", "do not apply": "does-not-apply",
    }  # fmt: skip
    rare = ("false", "open")  # said only where there are any
    counted = {text: _count(audit, verdict) for text, verdict in groups.items()}
    counts = [f"{count} {text}" for text, count in counted.items() if count or groups[text] not in rare]
    theorems = f"Of {len(audit.verdicts)} theorems {', '.join(counts)}."
    return [read, theorems, _what_stands_out(audit)]


def _what_stands_out(audit: Audit) -> str:
    if not heads_known(audit):
        return "No file says how many heads there are: maps are measured as one head, and no condition on heads is decided."
    warnings = [each.id for each in audit.diagnostics if each.level == "warning"]
    said = f"Warnings: {', '.join(warnings)}." if warnings else "No diagnostic is a warning."
    scores = figures(audit)["qk_spectral"]
    if scores.value is None:
        return said
    return f"The largest score map of a head has the norm {scores.value:.4g} ({scores.where}). {said}"


def _count(audit: Audit, verdict: str) -> int:
    return sum(each.verdict == verdict for each in audit.verdicts)


def _extreme(values: list[tuple[float, str]], pick: Callable[..., tuple[float, str]] = max) -> Figure:
    """The largest (or, with `min`, the smallest) with its place; not known where one is not a number."""
    if not values or any(math.isnan(value) for value, _ in values):
        return Figure(None)
    return Figure(*pick(values, key=lambda pair: pair[0]))
