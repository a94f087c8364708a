"""`Run`: what `build`, `prove` and `load` return: the transformer, the certificate, and what became of the claim."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import ArrayLike, Float, Num

from certiformer._version import __version__
from certiformer.disk import recover
from certiformer.errors import BadInput
from certiformer.kernel.certificate import Certificate, Outcome, rules_used
from certiformer.kernel.files import CERTIFICATE, CONFIG, LEAVES, MODEL, TARGET, read_bytes
from certiformer.kernel.numbers import json_number
from certiformer.model import Transformer, from_bytes
from certiformer.target import Target, Teacher, any_target_from_text, formula
from certiformer.target.anything import epsilon_text, place_of


@dataclass(frozen=True)
class Run:
    """A transformer, the target it was made for, and the certificate of the claim about the two.

    `directory` is None for a run that was kept in memory only; `model` is None when none could be made, which the
    outcome and its reason explain. `target` is an `AnyTarget`: a function on a box, or a finite set of rows. `notes`
    are sentences about how the transformer was made that the folder does not keep. `recorded` says that the certificate
    was read from a folder, whose claims are repeated here and not checked.
    """

    model: Transformer | None
    target: Any
    certificate: Certificate
    leaves: bytes
    directory: Path | None = None
    candidates: list[dict[str, Any]] = field(default_factory=list)
    notes: tuple[str, ...] = ()
    recorded: bool = False

    @property
    def outcome(self) -> Outcome:
        return self.certificate.outcome

    @property
    def level(self) -> int:
        """2 when the checker accepted, 1 for a float64 search alone, 0 when nothing is proved."""
        return self.certificate.level

    @property
    def certified(self) -> bool:
        """Whether the claim is proved and the checker accepted the proof here; of a folder only `check` can say that."""
        return self.outcome is Outcome.PROVED and self.level == 2 and not self.recorded

    @property
    def upper(self) -> float | None:
        """The upper end of the bracket of sup |T - f|, proved, or recorded in the folder that was read."""
        return None if self.certificate.upper is None else float(self.certificate.upper)

    @property
    def lower(self) -> float | None:
        """The lower end of the bracket, proved or recorded."""
        return None if self.certificate.lower is None else float(self.certificate.lower)

    def evaluate(self, points: Num[ArrayLike, "points inputs"]) -> Float[np.ndarray, "points outputs"]:
        """The transformer's outputs at rows (x1, ..., xD)."""
        if self.model is None:
            raise BadInput(f"there is no transformer to evaluate: {self.certificate.reason}")
        return self.model.evaluate(points)

    def sentence(self) -> str:
        """The claim, or what became of it, in one sentence."""
        epsilon = epsilon_text(self.certificate.epsilon)
        if isinstance(self.target, Target):
            text = ", ".join(formula(self.target.program))
            text = text if len(text) <= 120 else f"{text[:117]}..."
            claim = f"|T - f| <= {epsilon} for f = {text} at every point of {self.target.domain.exactly}"
        elif isinstance(self.target, Teacher):
            where = self.target.domain.exactly
            claim = f"|T - F| <= {epsilon} for the teacher F = {self.target.source} at every point of {where}"
        else:
            claim = f"|T - y| <= {epsilon} at every one of the {place_of(self.target)} of {self.target.source}"
        if self.outcome is Outcome.PROVED and self.level == 2:
            return f"{self.outcome.word(self.level, checked=not self.recorded)}: {claim}"
        if self.outcome is Outcome.PROVED:
            return f"proved (numerical, level 1 only): {claim}"
        return f"{self.outcome.value}: {claim} ({self.certificate.reason})"

    def summary(self) -> dict[str, Any]:
        """The facts of the run as JSON data."""
        c = self.certificate
        sizes: dict[str, int | None] = dict.fromkeys(("nonzero", "dense", "heads", "units", "registers"))
        if self.model is not None:
            config = self.model.config
            heads = [g.count for b in config.blocks if b.attention is not None for g in b.attention.heads]
            sizes = {"nonzero": self.model.nonzero_count(), "dense": self.model.parameter_count()}
            units = sum(b.ffn.width for b in config.blocks if b.ffn is not None)
            sizes |= {"heads": sum(heads), "units": units, "registers": config.registers}
        return {
            "outcome": c.outcome.value,
            "level": c.level,
            "epsilon": json_number(c.epsilon),
            "lower": None if c.lower is None else json_number(c.lower),
            "upper": None if c.upper is None else json_number(c.upper),
            "method": c.method,
            "rules": [] if c.proof is None else rules_used(c.proof),
            "apriori": None if c.apriori is None else json_number(c.apriori),
            "dtype": None if self.model is None else self.model.config.dtype,
            "run_error": None if c.run_error is None else json_number(c.run_error),
            **sizes,
            "leaves": self.leaves.count(255),
            "seconds": round(sum(c.seconds.values()), 3),
            "reason": c.reason,
            "notes": list(self.notes),
            "directory": None if self.directory is None else str(self.directory),
        }

    def __repr__(self) -> str:
        c = self.certificate
        bracket = f"error in [{c.lower or 0}, {c.upper or 'unknown'}]"
        size = "no model" if self.model is None else f"{self.model.nonzero_count()} nonzero weights"
        return f"Run({self.sentence()}; {bracket}; {size})"

    def _repr_html_(self) -> str:
        facts = self.summary()
        rows = "".join(f"<tr><th>{key}</th><td>{html.escape(str(value))}</td></tr>" for key, value in facts.items())
        return f"<p>{html.escape(self.sentence())}</p><table>{rows}</table>"


def load_run(directory: str | Path) -> Run:
    """Open the folder of a `build` or `prove`. Reads only: `check` verifies what it says."""
    folder = Path(directory)
    recover(folder)
    if not folder.is_dir():
        raise BadInput(f"{directory} is not a folder")
    certificate = Certificate.from_bytes(read_bytes(folder / CERTIFICATE))
    model = from_bytes(read_bytes(folder / CONFIG), read_bytes(folder / MODEL), folder)
    target = any_target_from_text(read_bytes(folder / TARGET))
    return Run(model, target, certificate, read_bytes(folder / LEAVES), folder, recorded=True)


def versions() -> dict[str, str]:
    """The versions that a certificate records."""
    from importlib.metadata import version

    names = ("jax", "jaxlib", "numpy", "python-flint")
    return {"certiformer": __version__, **{name: version(name) for name in names}}
