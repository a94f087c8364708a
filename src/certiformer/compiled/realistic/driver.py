"""From a compiled program to one with realistic weights: narrower code, rotation, LayerNorm, noise, in this order.

compress -> rotate -> layernorm -> noise -> stored dtype -> run on all inputs -> Realistic
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from certiformer.compiled.realistic.basis import BASIS, Basis
from certiformer.compiled.realistic.evidence import MOST, Evidence, Progress, measure
from certiformer.compiled.realistic.layernorm import pins_for, with_layer_norm
from certiformer.compiled.realistic.noise import LARGEST, largest_noise, with_noise
from certiformer.compiled.realistic.rotate import rotation
from certiformer.compiled.realistic.stream import Tensors, as_float64, as_stored, in_basis, is_conjugate
from certiformer.compiler.driver import Compiled
from certiformer.errors import BadInput
from certiformer.kernel.files import CIRCUIT, CONFIG, MODEL, PROGRAM
from certiformer.kernel.programs import rounded_text
from certiformer.kernel.situations.rasp.circuit import Circuit
from certiformer.model.config import Config
from certiformer.model.tensor_file import arrays_to_bytes
from certiformer.rasp.graph import Graph
from certiformer.rasp.graph_file import graph_from_text, graph_to_text
from certiformer.rasp.interpreter import read_tokens
from certiformer.rasp.value import Value

if TYPE_CHECKING:
    from certiformer.compiled.trace import Trace
    from certiformer.model.transformer import Transformer

SAME = "with real numbers it is the same function as the compiled transformer: all weights were compared exactly"
HARMLESS = (
    "for every input, norms and rounding were proved to move what is decoded by at most {} of half the decoding margin,"
    " the other half being left to the compiled transformer's own error"
)


@dataclass(frozen=True)
class Realistic:
    """A transformer with realistic weights, the program it computes, what its parts are for, and what is known of it.

    Coordinate c of `circuit` is direction c of `basis`; heads and hidden units have kept their numbers.
    """

    config: Config
    tensors: Tensors
    graph: Graph
    circuit: Circuit
    basis: Basis
    evidence: Evidence

    def files(self) -> dict[str, bytes]:
        """The files of the folder, without its certificate."""
        return {
            MODEL: arrays_to_bytes(self.tensors),
            CONFIG: self.config.to_bytes(),
            PROGRAM: graph_to_text(self.graph).encode("ascii"),
            CIRCUIT: self.circuit.to_text().encode("ascii"),
            BASIS: self.basis.to_bytes(),
        }

    def trace(self, tokens: Sequence[Value], *, everywhere: bool = False) -> Trace:
        """What every variable holds on an input, read along its direction, beside what the program says."""
        from certiformer.compiled.trace import trace
        from certiformer.model.transformer import Transformer

        xs = read_tokens(tokens, self.graph.vocab, self.graph.length)
        seen = Labelled(Transformer(self.config, self.tensors), self.basis)
        return trace(seen, graph_from_text(self.circuit.extended), self.circuit, xs, everywhere=everywhere)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Labelled:
    """A transformer whose states are given in the coordinates that `circuit.json` speaks of."""

    model: Transformer
    basis: Basis

    @property
    def config(self) -> Config:
        return self.model.config

    def states(self, ids: np.ndarray) -> list[np.ndarray]:
        """As `Transformer.states`, one column for each coordinate of the circuit."""
        return self.basis.coordinates(self.model.states(ids))


def apply(
    compiled: Compiled,
    compress: int | None = None,
    layernorm: bool = False,
    rotate: bool | str | np.ndarray = False,
    noise: float = 0.0,
    seed: int = 0,
    progress: Progress | None = None,
    *,
    most: int = MOST,
    seconds: float = 60.0,
) -> Realistic:
    """The program in realistic weights; refused, with the reason, when some input that was tried is answered wrongly.

    **Arguments:**

    - `compress`: the width of a learned code. `layernorm`: a norm before every sub-layer.
    - `rotate`: another basis of the stream; True or "exact" without any rounding, "random" any orthogonal one, or a
      matrix with one row for each coordinate.
    - `noise`: the standard deviation of what is added to every weight.
    - `most`: below how many inputs all are tried. `seconds`: for training.

    >>> from certiformer.compiler import compile_program
    >>> from certiformer.rasp.library import catalogue
    >>> hist = apply(compile_program(catalogue()["hist"].make(), ("a", "b"), 3), rotate=True)
    >>> hist.config.width, hist.evidence.exact, int((hist.tensors["registers"] == 0).sum())
    (4, True, 0)
    """

    def tried(config: Config, tensors: Tensors) -> Evidence:
        return measure(config, tensors, compiled.graph, compiled.circuit, seed=seed, most=most)

    own = compiled.config.width
    config, tensors, basis, proof = compiled.config, as_float64(compiled.tensors), Basis.identity(own), ""
    if compress is not None:
        from certiformer.compiled.realistic.compress import compressed

        config, tensors, basis = compressed(compiled, compress, seed, seconds, progress, tried)
    rotated = not isinstance(rotate, bool) or rotate
    if rotated:
        turn = rotation(config.width, "exact" if isinstance(rotate, bool) else rotate, seed)
        config, tensors = in_basis(config, tensors, turn)
        basis = basis.then(turn)
    if layernorm:
        # Directions that are not those of the program may make its vectors longer.
        longer = float(np.linalg.norm(basis.directions, 2)) if rotated or compress is not None else None
        pins = pins_for(compiled, config.width, longer)
        config, tensors, paired = with_layer_norm(config, tensors, pins)
        basis = basis.then(paired)
        proof = HARMLESS.format(rounded_text(pins.share, up=True)) if pins.share <= 1.0 else ""
    before = tensors
    if noise:
        tensors, proof = with_noise(tensors, noise, seed), ""
    tensors = as_stored(tensors, config.dtype)
    if not layernorm and is_conjugate(compiled.tensors, tensors, basis.directions):
        proof = SAME
    evidence = measure(config, tensors, compiled.graph, compiled.circuit, seed=seed, most=most, progress=progress)
    result = Realistic(config, tensors, compiled.graph, compiled.circuit, basis, replace(evidence, proof=proof))
    if not evidence.wrong:
        return result
    if not noise:
        raise BadInput(f"{config.dtype} cannot carry these weights: {evidence.sentence}")
    largest = noise_limit(replace(result, tensors=before), noise, seed, most=most)
    advice = f"{largest:.3g} is the largest that was found to do no harm" if largest else "no smaller size helps"
    raise BadInput(f"noise of {noise:g} is too strong: {evidence.sentence}; {advice}")


def noise_limit(model: Compiled | Realistic, at_most: float = LARGEST, seed: int = 0, *, most: int = MOST) -> float:
    """The largest noise up to `at_most` under which all that was tried is answered rightly, by bisection; 0: none."""

    def right(size: float) -> bool:
        weights = as_stored(with_noise(model.tensors, size, seed), model.config.dtype)
        return not measure(model.config, weights, model.graph, model.circuit, seed=seed, most=most).wrong

    return largest_noise(right, at_most)
