"""A transformer as the target of a claim: distillation.

The claim is then |T - F| <= epsilon on a box, F being another transformer (usually deeper). `target.json` carries F's
configuration and its weights (the bytes of a safetensors file, in base64), so that a run folder stays complete and one seal
covers them. What the bytes mean is for the reader of models to decide; here they are only kept exactly.
Standard library only.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from certiformer.errors import BadInput
from certiformer.target.domain import Domain


@dataclass(frozen=True)
class Teacher:
    """A stored transformer and the box on which it is to be imitated."""

    source: str
    config: bytes
    tensors: bytes
    domain: Domain

    def __post_init__(self) -> None:
        if self.domain.dimension != self.inputs:
            axes = self.domain.dimension
            raise BadInput(f"the box has {axes} axes but the teacher reads {self.inputs} numbers")

    @property
    def inputs(self) -> int:
        entry = self._entries["input"]
        return entry["tokens"] * entry["width"]

    @property
    def tokens(self) -> int:
        return self._entries["input"]["tokens"]

    @property
    def outputs(self) -> int:
        entries = self._entries
        return entries["outputs"] * (entries["input"]["tokens"] if entries["readout"]["kind"] == "all" else 1)

    @property
    def _entries(self) -> dict[str, Any]:
        try:
            data = json.loads(self.config)
            sizes = (data["input"]["tokens"], data["input"]["width"], data["outputs"])
            if any(type(n) is not int or n < 1 for n in sizes) or type(data["readout"]["kind"]) is not str:
                raise TypeError
        except (ValueError, KeyError, TypeError, RecursionError):
            raise BadInput("the teacher's configuration is not that of a transformer with continuous inputs") from None
        return data
