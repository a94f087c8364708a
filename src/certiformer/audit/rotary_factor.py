"""What a rotary code multiplies queries and keys by, besides turning them.

Codes that were stretched to longer inputs may also scale: YaRN (Peng et al. 2023, arXiv 2309.00071) and LongRoPE
(Ding et al. 2024, arXiv 2402.13753) multiply sines and cosines by one factor, so scores by its square. The config
says the factor, or how far the context was stretched, from which the published code takes a usual one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

UNSCALED = ("default", "linear", "dynamic", "llama3", "proportional")  # sines and cosines stay what they are
SCALED = ("yarn", "longrope", "su")  # su: an old name of longrope


def rotary_factor(config: dict[str, Any]) -> float | None:
    """1, or what the config of a stretched code says; None where it does not say.

    >>> rotary_factor({}), rotary_factor({"rope_scaling": {"type": "yarn", "attention_factor": 1.5}})
    (1.0, 1.5)
    """
    factors = [_factor(part, config) for part in _parts(config)]
    known = [factor for factor in factors if factor is not None]
    return max(known, default=1.0) if len(known) == len(factors) else None


def _parts(config: dict[str, Any]) -> Iterator[Any]:
    """What the config says about its codes; some have one for each kind of layer."""
    for said in (config.get("rope_scaling"), config.get("rope_parameters")):
        kinds = [part for part in said.values() if isinstance(part, dict)] if isinstance(said, dict) else []
        yield from kinds or ([said] if said else [])


def _factor(part: Any, config: dict[str, Any]) -> float | None:
    if not isinstance(part, dict):
        return None
    kind, said = part.get("rope_type") or part.get("type") or "default", part.get("attention_factor")
    if kind in UNSCALED:
        return 1.0
    if kind not in SCALED:
        return None
    if said is None:
        return _usual(kind, part, config)
    return _positive(said)


def _usual(kind: str, part: dict[str, Any], config: dict[str, Any]) -> float | None:
    """The factor that the published code takes where the config has none, by how far the context was stretched."""
    old = _positive(part.get("original_max_position_embeddings") or config.get("original_max_position_embeddings"))
    new, said = _positive(config.get("max_position_embeddings")), _positive(part.get("factor"))
    # Codes differ in which of the two they take; the larger one has the larger factor.
    ratios = [ratio for ratio in (said, new / old if new and old else None) if ratio is not None]
    if not ratios or part.get("mscale") or part.get("mscale_all_dim"):
        return None
    grown = max(ratios)
    if grown <= 1:
        return 1.0
    if kind == "yarn":
        return 0.1 * math.log(grown) + 1
    return math.sqrt(1 + math.log(grown) / math.log(old)) if old is not None and old > 1 else None


def _positive(value: Any) -> float | None:
    return float(value) if type(value) in (int, float) and 0 < value < 1e300 else None
