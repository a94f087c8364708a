"""A compiled program whose weights look like those of a trained model, as the folder of a program of its own.

The certificate of the plain weights does not speak of these: it is replaced by one that claims nothing and says what a run
on every input, or on a sample, has shown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from certiformer.artifact import Artifact
from certiformer.compiler.driver import Compiled
from certiformer.compiler.programs.certify import unchecked
from certiformer.compiler.programs.program import TokenProgram
from certiformer.errors import BadInput
from certiformer.kernel.files import BASIS, CONFIG, MODEL
from certiformer.model.tensor_file import arrays_to_bytes

Progress = Callable[[str, float, float | None, str], None]


@dataclass(frozen=True)
class Looks:
    """How the weights are to look: a learned narrower code, LayerNorm, another basis, noise."""

    compress: int | None = None
    layernorm: bool = False
    rotate: bool = False
    superpose: float = 0.0
    seed: int = 0

    @property
    def plain(self) -> bool:
        """Whether nothing is asked for."""
        return not (self.compress is not None or self.layernorm or self.rotate or self.superpose)


def with_realistic_weights(plain: Artifact, raw: Compiled, looks: Looks, progress: Progress | None = None) -> Artifact:
    """The program in other weights; refused when an input that was tried is answered wrongly."""
    from certiformer.compiler.realistic import apply

    if looks.compress is not None and looks.compress < 1:
        raise BadInput(f"--compress is the width of the stream, a positive number, not {looks.compress}")
    if not 0 <= looks.superpose < float("inf"):
        raise BadInput(f"--superpose is the size of the noise, a number from 0 on, not {looks.superpose}")
    made = apply(raw, looks.compress, looks.layernorm, looks.rotate, looks.superpose, looks.seed, progress)
    files = {**plain.files, MODEL: arrays_to_bytes(made.tensors), CONFIG: made.config.to_bytes()}
    files[BASIS] = made.basis.to_bytes()
    reason = f"not certified as stored: {made.evidence.sentence}"
    if plain.certified:
        reason += "; the plain weights of the same program were certified"
    certificate = unchecked(files, dict(plain.certificate.seconds), reason)
    program = TokenProgram(files, plain.subject.graph, plain.subject.circuit)
    return Artifact(program, certificate, files, plain.name, notes=plain.notes)
