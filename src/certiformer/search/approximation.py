"""`Approximation`: the subject of a claim about a function on a box, or about the rows of a finite set.

The page about a claim on rows has no pictures: between the rows nothing is claimed, and a curve would suggest otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from certiformer._version import __version__
from certiformer.artifact import Artifact
from certiformer.errors import BadInput
from certiformer.kernel.certificate import Certificate, Theorem, rule_name
from certiformer.kernel.files import CONFIG, LEAVES, MODEL, TARGET
from certiformer.kernel.rules import LEAF
from certiformer.kernel.weights import read_model
from certiformer.report.numbers import json_number
from certiformer.report.wording import NOT_CLAIMED, NOT_CLAIMED_OF_ROWS, bracket_line, sizes_text
from certiformer.search.report_data import sizes
from certiformer.target import FiniteTarget, InductionMap, SequenceMap, SortMap, any_target_from_text, sentence_of
from certiformer.target.anything import place_of, programs_of

if TYPE_CHECKING:
    from certiformer.artifact import Artifact
    from certiformer.model import Transformer


def finite_report_data(run: Artifact, *, checked: bool) -> dict[str, Any]:
    """The data of the report; the schema is in `certiformer.report`."""
    certificate, target, proof = run.certificate, run.subject.target, run.certificate.proof
    note = proof.id if isinstance(proof, Theorem) else f"evaluated at {place_of(target)}"
    return {
        "source": target.source,
        "sentence": sentence_of(target, certificate.epsilon),
        "variables": target.inputs,
        "outputs": target.outputs,
        "domain": place_of(target),
        "where": "rows",
        "formulas": [],
        "epsilon": certificate.epsilon,
        "outcome": certificate.outcome.value,
        "level": certificate.level,
        "checked": checked,
        "recorded": run.recorded,
        "reason": certificate.reason,
        "notes": list(run.notes),
        "method": certificate.method,
        "lower": certificate.lower,
        "upper": certificate.upper,
        "apriori": certificate.apriori,
        "witness": None if certificate.witness is None else certificate.witness.to_json(),
        "sizes": None if run.model is None else sizes(run.model),
        "proof": None
        if proof is None
        else {"rule": rule_name(proof), "bound": proof.bound, "notes": [note], "children": []},
        "assumptions": list(certificate.assumptions),
        "pictures": [],
        "seconds": dict(certificate.seconds),
        "versions": dict(certificate.versions),
        "seals": dict(certificate.seals),
        "directory": None if run.directory is None else str(run.directory),
    }


SIZES = ("blocks", "heads", "units", "registers", "nonzero", "dense", "bytes")


@dataclass(frozen=True)
class Approximation:
    """A target and the files of the transformer that is to be near it.

    `target` is an `AnyTarget`: a function on a box, a teacher to be imitated, or a finite set of rows. `files` are those of
    the run folder; there are none when no transformer could be made.
    """

    target: Any
    files: Mapping[str, bytes] = field(default_factory=dict)

    @staticmethod
    def from_files(files: Mapping[str, bytes]) -> Approximation:
        """What the files of a run folder are about."""
        return Approximation(any_target_from_text(files[TARGET]), files)

    @cached_property
    def model(self) -> Transformer | None:
        """The transformer, in JAX."""
        from certiformer.model import from_bytes

        return from_bytes(self.files[CONFIG], self.files[MODEL]) if MODEL in self.files else None

    @property
    def leaves(self) -> bytes:
        """The bisections of the box, as they are stored."""
        return self.files.get(LEAVES, b"")

    @property
    def not_claimed(self) -> tuple[str, ...]:
        pairs = NOT_CLAIMED_OF_ROWS if isinstance(self.target, FiniteTarget) else NOT_CLAIMED
        return tuple(f"{name}: {text}" for name, text in pairs)

    def claim(self, certificate: Certificate) -> str:
        return sentence_of(self.target, certificate.epsilon)

    def answers(self, sequence: Any) -> list[Any]:
        """The outputs at one point; of a map on sequences the letters or whole numbers that they are proved to be near."""
        import numpy as np

        if self.model is None:
            raise BadInput("there is no transformer to run")
        outputs = self.model.evaluate(np.atleast_1d(np.asarray(sequence))[None])[0]
        if not isinstance(self.target, SequenceMap):
            return outputs.tolist()
        whole = np.rint(outputs).astype(int)
        if isinstance(self.target, SortMap | InductionMap):  # a unit vector for every letter, zeros where there is none
            rows = whole.reshape(self.target.tokens, -1)
            return [int(row.argmax()) if row.any() else None for row in rows]
        return whole.tolist()

    def facts(self, artifact: Artifact) -> dict[str, Any]:
        c, target = artifact.certificate, self.target
        sizes: dict[str, Any] = dict.fromkeys(SIZES)
        if MODEL in self.files:
            sizes = self._sizes()
        return {
            "epsilon": json_number(c.epsilon),
            "lower": None if c.lower is None else json_number(c.lower),
            "upper": None if c.upper is None else json_number(c.upper),
            "method": c.method,
            "apriori": None if c.apriori is None else json_number(c.apriori),
            "run_error": None if c.run_error is None else json_number(c.run_error),
            "source": target.source,
            "program": programs_of(target),
            "domain": place_of(target),
            **sizes,
            "leaves": self.leaves.count(LEAF),
        }

    def _sizes(self) -> dict[str, Any]:
        """How large the transformer is, read as the kernel reads it: without JAX, and within limits."""
        config, tensors = read_model(self.files[CONFIG], self.files[MODEL])
        weights = [tensor.data for name, tensor in tensors.items() if not name.endswith(".mask")]
        groups = [group for block in config["blocks"] if block["attention"] for group in block["attention"]["heads"]]
        return {
            "blocks": len(config["blocks"]) * config["loops"],
            "heads": sum(group["count"] for group in groups),
            "units": sum(block["ffn"]["width"] for block in config["blocks"] if block["ffn"]),
            "registers": config["registers"],
            "nonzero": sum(sum(1 for value in numbers if value) for numbers in weights),
            "dense": sum(map(len, weights)),
            "bytes": len(self.files[MODEL]),
        }

    def lines(self, facts: dict[str, Any], said: str) -> list[tuple[str, str]]:
        from certiformer.report.numbers import bound_text, size_text

        lower, upper = (None if facts[name] is None else str(facts[name]) for name in ("lower", "upper"))
        lines = [
            ("error", f"{said}{bracket_line(lower, upper)}"),
            ("size", f"{sizes_text(facts)}, {size_text(facts['bytes'])} (recorded method: {facts['method']})"),
        ]
        if facts["run_error"] is not None:
            more = bound_text(str(facts["run_error"]), up=True)
            lines.append(("runs", f"{said}a run in {facts['dtype']} adds at most {more}"))
        return lines

    def page(self, artifact: Artifact) -> str:
        from certiformer.report.page import write
        from certiformer.search.report_data import report_data

        collect = finite_report_data if isinstance(self.target, FiniteTarget) else report_data
        return write(collect(artifact, checked=artifact.level == 2 and not artifact.recorded))


def versions() -> dict[str, str]:
    """The versions that a certificate records."""
    from importlib.metadata import version

    names = ("jax", "jaxlib", "numpy", "python-flint")
    return {"certiformer": __version__, **{name: version(name) for name in names}}
