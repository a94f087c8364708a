"""From a compiled program to one with realistic weights: narrower code, rotation, LayerNorm, noise, in this order.

compress -> rotate -> layernorm -> noise -> stored dtype -> run on all inputs -> Realistic

*Noise* falls on every weight, zeros and biases included. It is sigma times one fixed draw of independent standard
normal numbers, in units of the weights themselves (the smallest weight of a compiled program that matters is about 1).
`largest_noise` finds by bisection the largest sigma on that ray at which all inputs were answered rightly. Nothing
says that a smaller one is never worse, so each size that is named was tried by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from certiformer.compiler.driver import Compiled
from certiformer.compiler.realistic.basis import BASIS, Basis, rotation
from certiformer.compiler.realistic.evidence import MOST, Evidence, Progress, measure
from certiformer.compiler.realistic.layernorm import pins_for, with_layer_norm
from certiformer.compiler.realistic.stream import Tensors, as_float64, as_stored, in_basis, is_conjugate
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
    from certiformer.compiler.programs.trace import Trace
    from certiformer.model.transformer import Transformer


SMALLEST, LARGEST, FACTOR = 2.0**-40, 2.0**4, 4.0
STEPS = 6  # of bisection in the logarithm: the last interval is a factor 4^(1/64) = 1.022 wide


def with_noise(tensors: Mapping[str, np.ndarray], size: float, seed: int) -> Tensors:
    """The weights plus `size` times a Gaussian draw that depends on the seed alone."""
    if not (np.isfinite(size) and size >= 0):
        raise BadInput(f"the noise is a number from 0 on, not {size}")
    generator = np.random.default_rng(seed)
    numbers = as_float64(tensors)
    return {name: numbers[name] + size * generator.normal(size=numbers[name].shape) for name in sorted(numbers)}


def largest_noise(right: Callable[[float], bool], at_most: float = LARGEST) -> float:
    """The largest size at which `right` was found to hold, up to `at_most`; 0 when there is none.

    >>> round(largest_noise(lambda size: size < 0.01), 4)
    0.0099
    """
    size = at_most
    while not right(size):
        size /= FACTOR
        if size < SMALLEST:
            return 0.0
    if size == at_most:
        return size
    low, high = size, size * FACTOR
    for _ in range(STEPS):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if right(middle) else (low, middle)
    return low


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
        from certiformer.compiler.programs.trace import trace
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
        from certiformer.compiler.realistic.compress import compressed

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
