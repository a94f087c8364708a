"""A transformer as the target of a claim: distillation.

The claim is then |T - F| <= epsilon on a box, F being another transformer (usually deeper). `target.json` carries F's
configuration and its weights (the bytes of a safetensors file, in base64), so that a run folder stays complete and one seal
covers them. What the bytes mean is for the reader of models to decide; here they are only kept exactly.
Standard library only.
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from typing import Any

from certiformer.errors import BadInput
from certiformer.target.domain import Domain
from certiformer.target.sentence import epsilon_text

FORMAT, NORM = "certiformer-teacher-1", "max"
MAX_BYTES = 200_000_000
_KEYS = {"format", "source", "domain", "norm", "config", "tensors"}


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

    def sentence(self, epsilon: str) -> str:
        """The claim in one sentence."""
        what = "output differs" if self.outputs == 1 else f"{self.outputs} outputs each differ"
        most = epsilon_text(epsilon)
        return (
            f"At every point of {self.domain.exactly}, the transformer's {what} from the teacher's by at most {most}."
        )

    def to_text(self) -> str:
        """The canonical content of `target.json`."""
        data = {
            "format": FORMAT,
            "source": self.source,
            "domain": [list(pair) for pair in self.domain.bounds],
            "norm": NORM,
            "config": self.config.decode("utf-8"),
            "tensors": base64.b64encode(self.tensors).decode("ascii"),
        }
        return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True) + "\n"


def teacher_from_text(text: str | bytes) -> Teacher | None:
    """The teacher of a `target.json`, or None when the file is of another format.

    >>> config = b'{"input":{"kind":"continuous","tokens":1,"width":2},"outputs":1,"readout":{"kind":"mean"}}'
    >>> teacher = Teacher("demo", config, b"weights", Domain((("0", "1"), ("0", "1"))))
    >>> teacher_from_text(teacher.to_text()) == teacher
    True
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise BadInput("target.json is not valid JSON") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        return None
    if set(data) != _KEYS or data["norm"] != NORM or len(text) > MAX_BYTES:
        raise BadInput(f"target.json does not have exactly the entries of {FORMAT}")
    if any(type(data[name]) is not str for name in ("source", "config", "tensors")) or not _is_box(data["domain"]):
        raise BadInput("target.json has an entry of the wrong type")
    try:
        tensors = base64.b64decode(data["tensors"], validate=True)
    except (binascii.Error, ValueError):
        raise BadInput("the teacher's weights in target.json are not valid base64") from None
    domain = Domain(tuple((low, high) for low, high in data["domain"]))
    teacher = Teacher(data["source"], data["config"].encode("utf-8"), tensors, domain)
    teacher.domain.check()
    # Only the canonical bytes: no repeated key, no second spelling.
    if teacher.to_text().encode() != (text.encode() if isinstance(text, str) else text):
        raise BadInput("target.json is not in its canonical form")
    return teacher


def _is_box(data: Any) -> bool:
    pairs = data if isinstance(data, list) else []
    return bool(pairs) and all(
        isinstance(pair, list) and len(pair) == 2 and all(type(end) is str and len(end) < 1000 for end in pair)
        for pair in pairs
    )
