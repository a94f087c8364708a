"""A job: the name of a function and the JSON configuration it is called with."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

Row = dict[str, Any]
"""One line of a result: names to numbers, texts or flat lists of numbers; all rows of a function have the same names."""


@dataclass(frozen=True)
class Job:
    """`function` is "package.module:name", called with the configuration `config` (JSON) and giving a list of rows."""

    function: str
    config: dict[str, Any]

    @property
    def id(self) -> str:
        """The same for the same function and configuration, on every machine.

        >>> Job("math:prod", {"b": 1, "a": [2]}).id == Job("math:prod", {"a": [2], "b": 1}).id
        True
        """
        text = json.dumps([self.function, self.config], sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def run(self) -> list[Row]:
        """The rows of this job, computed here."""
        module, _, name = self.function.partition(":")
        function: Callable[[dict[str, Any]], list[Row]] = getattr(import_module(module), name)
        return function(self.config)
