"""`Computation`: what machines, automata, circuits and learners in the weights of a transformer have in common.

Each is the subject of an artifact: a description of what is computed, the configuration and the weights, and the theorem
that the claim rests on. Compiling needs NumPy alone; JAX is imported when a transformer runs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from certiformer.artifact import Artifact
from certiformer.errors import BadInput
from certiformer.kernel import Refused
from certiformer.kernel.certificate import AXIOMS, Certificate, Outcome, Theorem, axiom
from certiformer.kernel.files import CONFIG, MODEL, digest
from certiformer.model.config import Config
from certiformer.model.tensor_file import arrays_to_bytes

if TYPE_CHECKING:
    from certiformer.model.transformer import Transformer

ENGINES = "Other engines: a run counts when it keeps the rules of float semantics (docs); not every engine was tried."


class Computation(ABC):
    """A transformer that computes something; `tensors` are NumPy arrays in the stored type."""

    config: Config
    tensors: dict[str, np.ndarray]

    @property
    @abstractmethod
    def rule(self) -> str:
        """The theorem that the claim rests on."""

    @property
    @abstractmethod
    def description(self) -> str:
        """The text of the file that says what is computed."""

    @abstractmethod
    def answers(self, sequence: Any, **options: Any) -> list[Any]:
        """What the transformer says to one input."""

    @abstractmethod
    def sizes(self) -> dict[str, Any]:
        """The numbers of this kind, beside the sizes of the transformer."""

    @cached_property
    def model(self) -> Transformer:
        """The same as the one `Transformer`, in JAX."""
        from certiformer.model.transformer import Transformer

        return Transformer(self.config, self.tensors)

    @property
    def not_claimed(self) -> tuple[str, ...]:
        return (*axiom(self.rule, AXIOMS[self.rule]).NOT_CLAIMED, ENGINES)

    @cached_property
    def _files(self) -> dict[str, bytes]:
        described = self.description.encode("ascii")
        return {
            MODEL: arrays_to_bytes(dict(self.tensors)),
            CONFIG: self.config.to_bytes(),
            AXIOMS[self.rule]: described,
        }

    def files(self) -> dict[str, bytes]:
        """The files of the folder, all but the certificate."""
        return dict(self._files)

    def certified(self, name: str = "run") -> Artifact:
        """The artifact, with what the checker said about the claim."""
        files = self.files()
        return Artifact(self, computation_certificate(self.rule, files), files, name)

    def claim(self, certificate: Certificate) -> str:
        return axiom(self.rule, AXIOMS[self.rule]).sentence(self._files)

    def facts(self, artifact: Artifact) -> dict[str, Any]:
        config = self.config
        return {
            **self.sizes(),
            "width": config.width,
            "hidden": sum(block.ffn.width for block in config.blocks if block.ffn is not None),
            "blocks": len(config.blocks),
            "loops": config.loops,
            "tokens": config.tokens,
            "parameters": sum(int(tensor.size) for name, tensor in self.tensors.items() if not name.endswith(".mask")),
            "bound": artifact.certificate.upper,
        }

    def lines(self, facts: dict[str, Any], said: str) -> list[tuple[str, str]]:
        passes = f" applied {facts['loops']:,} times" if facts["loops"] > 1 else ""
        blocks = f"{facts['blocks']} block{'s' if facts['blocks'] > 1 else ''}{passes}"
        counts = [f"{facts[noun]:,} {noun}" for noun in ("states", "gates", "cells") if noun in facts]
        blocks = ", ".join([blocks, *counts])
        size = f"{blocks}, width {facts['width']:,}, {facts['hidden']:,} hidden units, {facts['dtype']}"
        return [("size", size)]

    def page(self, artifact: Artifact) -> str:
        return ""


def computation_certificate(rule: str, files: Mapping[str, bytes]) -> Certificate:
    """The certificate of the files: proved at level 2, or undecided with the checker's reason."""
    description, method = AXIOMS[rule], f"compile, {rule}"
    seals = {name: digest(files[name]) for name in (MODEL, CONFIG, description)}
    try:
        finding = axiom(rule, description).find(files)
    except (Refused, BadInput) as refusal:
        proof = Theorem("0", rule, {})
        return Certificate("0", Outcome.UNDECIDED, 0, seals, method=method, proof=proof, reason=str(refusal))
    proof = Theorem(finding.bound, rule, dict(finding.parameters))
    bound = finding.bound
    return Certificate(bound, Outcome.PROVED, 2, seals, method=method, upper=bound, proof=proof, reason=finding.reason)


def arrays_of(model: Transformer) -> dict[str, np.ndarray]:
    """The weights of a stored transformer as NumPy arrays."""
    return {name: np.asarray(tensor) for name, tensor in model.tensors.items()}
