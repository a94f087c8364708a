"""From an artifact, or the folder of a model, to the files of another program, with the claim written beside them.

Llama and Phi-3 compute norms in float32: a float64 program is exported to them when the kernel proves it in float32 as
well. GPT-2's norms cost a part of the room between two outputs: the proof must leave at least half of it to them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from certiformer._version import __version__
from certiformer.artifact.artifact import Artifact
from certiformer.artifact.folder import KINDS
from certiformer.disk import refuse_own_input
from certiformer.errors import BadInput
from certiformer.kernel.certificate import Certificate, Outcome
from certiformer.kernel.files import CIRCUIT, CONFIG, MODEL, PROGRAM, digest
from certiformer.report.wording import verdict

if TYPE_CHECKING:
    from certiformer.export import Labels
    from certiformer.kernel.situations.rasp.prove import ProgramReport
    from certiformer.model import Transformer

SCOPE_OF_PROGRAMS = (
    "The claim is about the compiled transformer whose SHA-256 is model_sha256, under the assumptions of its certificate"
    " on floating-point arithmetic (certiformer check says more)."
)
FLOAT32_NORMS = ("llama", "phi3")


@dataclass(frozen=True)
class Exported:
    """Where an export went, its files, and what they say about their origin."""

    out: Path
    files: list[Path]
    notes: dict[str, str]


def export(source: Artifact | Transformer, to: str, *, out: str | Path | None = None, force: bool = False) -> Exported:
    """Write the transformer for another program, with the hash of its weights and, if it is proved, the claim.

    **Arguments:**

    - `source`: an artifact, or a transformer that no claim goes along with.
    - `to`: the format, one of `certiformer.export.KINDS`.
    - `out`: where to write (default: beside the folder of the artifact).
    - `force`: whether it may replace an earlier export.
    """
    from certiformer.export import default_place, write
    from certiformer.model.store import tensors_to_bytes

    labels: Labels | None = None
    if isinstance(source, Artifact):
        origin, notes = source.directory, origin_notes(source)
        model = source.subject.model
        if model is None:
            raise BadInput(f"there is no transformer to export: {source.certificate.reason}")
        if PROGRAM in source.files:
            model, labels, notes = _program(source, model, to, notes)
    else:
        origin, model = None, source
        notes = {"certiformer_version": __version__, "model_sha256": digest(tensors_to_bytes(model))}
    if out is None and origin is None:
        raise BadInput("an export of what has no folder yet needs a place: say where to write, or save it first")
    place = Path(out) if out is not None else default_place(Path(str(origin)), to)
    refuse_own_input(place, origin)
    return Exported(place, write(model, to, place, notes, force, labels), notes)


def require_sealed(certificate: Certificate, files: Mapping[str, bytes], directory: Path | None) -> None:
    """Refuse files that the certificate beside them is not about."""
    for name in KINDS[certificate.subject].sealed:
        if certificate.seals.get(name) != digest(files[name]):
            raise BadInput(f"the certificate in {directory} is about another {name}; certiformer check says more")


def origin_notes(artifact: Artifact) -> dict[str, str]:
    """What an export says about its origin: the hash of the weights and, for a proved claim, the claim."""
    from certiformer.export.folder import SCOPE

    certificate, files = artifact.certificate, artifact.files
    require_sealed(certificate, files, artifact.directory)
    notes = {"certiformer_version": __version__, "model_sha256": digest(files[MODEL])}
    notes["recorded"] = verdict(certificate.outcome.value, certificate.level, checked=False)
    if certificate.outcome is not Outcome.PROVED:
        return notes
    scope = SCOPE_OF_PROGRAMS if certificate.subject == PROGRAM else SCOPE
    return {**notes, "claim": artifact.claim, "claim_scope": scope}


def _program(
    artifact: Artifact, model: Transformer, to: str, notes: dict[str, str]
) -> tuple[Transformer, Labels | None, dict[str, str]]:
    """The model in a type that the format can carry, what its ids stand for, and the notes about what is then proved."""
    from certiformer.export.labels import program_labels
    from certiformer.kernel.situations.rasp.circuit import Circuit
    from certiformer.model import Transformer
    from certiformer.rasp.graph_file import graph_from_text

    files = artifact.files
    labels = program_labels(graph_from_text(files[PROGRAM]), Circuit.from_text(files[CIRCUIT]))
    proved = "claim" in notes
    if to in FLOAT32_NORMS and model.config.dtype == "float64":
        report = _report(
            files, "float32", f"{to} computes its norms in float32, and in float32 the program is not proved"
        )
        model = Transformer(replace(model.config, dtype="float32"), model.tensors)
        notes = {**notes, "claim": report.sentence} if proved else notes
    if to == "gpt2" and proved:
        real = _report(files, None, "the program is not proved").real
        room, labels = real.decoding, replace(labels, gap=real.gap)
        if not room.share >= 0.5:
            raise BadInput(
                f"the norms of GPT-2 need half of the room between two outputs, and the program leaves {room.left:.2g} of"
                f" {room.room:.2g}; export it to llama or phi3"
            )
    return model, labels, notes


def _report(files: Mapping[str, bytes], dtype: str | None, refusal: str) -> ProgramReport:
    from certiformer.kernel import Refused
    from certiformer.kernel.situations.rasp.prove import prove_program
    from certiformer.kernel.weights import read_model

    try:
        config, tensors = read_model(files[CONFIG], files[MODEL])
        return prove_program(config, tensors, files[PROGRAM], files[CIRCUIT], dtype)
    except Refused as problem:
        raise BadInput(f"{refusal}: {problem}") from None
