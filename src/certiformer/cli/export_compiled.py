"""The part of `certiformer export` that speaks of compiled programs: their claim, their tokens, and the types of formats.

Llama and Phi-3 compute norms in float32: a float64 program is exported to them when the checker proves it in float32 as
well. GPT-2's norms cost a part of the room between two outputs: the checker must leave at least half of it to them.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from certiformer.errors import BadInput

if TYPE_CHECKING:
    from certiformer.export import Labels
    from certiformer.kernel.situations.rasp.prove import ProgramReport
    from certiformer.model import Transformer

SCOPE = (
    "The claim is about the compiled transformer whose SHA-256 is model_sha256, under the assumptions of its certificate"
    " on floating-point arithmetic (certiformer check says more)."
)
FLOAT32_NORMS = ("llama", "phi3")


def program_claim(folder: Path) -> str:
    """The claim of a proved program, in one sentence."""
    from certiformer.compiled.program import load_compiled

    return load_compiled(folder).sentence()


def prepared(
    folder: Path, model: Transformer, kind: str, notes: dict[str, str]
) -> tuple[Transformer, Labels | None, dict[str, str]]:
    """The model in a type that the format can carry, what its ids stand for, and the notes about what is then proved."""
    from certiformer.export import folder_labels

    labels = folder_labels(folder)
    proved = "claim" in notes
    if kind in FLOAT32_NORMS and model.config.dtype == "float64":
        report = _report(
            folder, "float32", f"{kind} computes its norms in float32, and in float32 the program is not proved"
        )
        model = _as_float32(model)
        notes = {**notes, "claim": report.sentence} if proved else notes
    if kind == "gpt2" and proved:
        found = _report(folder, None, "the program is not proved").real
        room, labels = found.decoding, labels and replace(labels, gap=found.gap)
        if not room.share >= 0.5:
            raise BadInput(
                f"the norms of GPT-2 need half of the room between two outputs, and the program leaves {room.left:.2g} of"
                f" {room.room:.2g}; export it to llama or phi3"
            )
    return model, labels, notes


def _report(folder: Path, dtype: str | None, refusal: str) -> ProgramReport:
    from certiformer.kernel.files import CIRCUIT, CONFIG, MODEL, PROGRAM, read_bytes
    from certiformer.kernel.refusal import Refused
    from certiformer.kernel.situations.rasp.prove import prove_program
    from certiformer.kernel.weights import read_model

    try:
        config, tensors = read_model(read_bytes(folder / CONFIG), read_bytes(folder / MODEL))
        return prove_program(config, tensors, read_bytes(folder / PROGRAM), read_bytes(folder / CIRCUIT), dtype)
    except Refused as problem:
        raise BadInput(f"{refusal}: {problem}") from None


def _as_float32(model: Transformer) -> Transformer:
    from certiformer.model import Transformer

    return Transformer(replace(model.config, dtype="float32"), model.tensors)
