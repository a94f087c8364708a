"""Layers of linear attention with one register for each feature compute ridge regression, to a proved accuracy.

Statement
    Take the tokens of `in_context_gradient` and d registers (strength e_i | e_i | 0). Let A = mean x x^T + strength
    have its eigenvalues between a and b, |x| <= bound, |y| <= label_bound. If the stored weights pass the checks, the
    prediction differs from that of ridge regression, w = A^-1 mean(y x), by at most

        C sqrt(d) bound label_bound / sqrt(a)   +   rounding,

    where C bounds the product of |1 - eta_k t_k| over a <= t <= b. For the steps of Chebyshev C = 2 rho^L / (1 +
    rho^(2 L)), rho = (sqrt b - sqrt a) / (sqrt b + sqrt a), up to rounding of the steps. With whitening the layers
    change features too, x <- x - beta_k A_k x, and eigenvalues by t <- t (1 - beta_k t)^2; then C falls twice
    exponentially. If the registers hold strength + delta, the layers compute the regression of that strength, with
    eigenvalues between a - |delta| and b + |delta|, and the prediction moves by at most |delta| sqrt(d) bound
    label_bound / (a sqrt(a - |delta|)) more.

Source
    Own derivation: registers as rows, Chebyshev's steps (classical; order after Lebedev and Finogenov 1971,
    lebedev1971), whitening by the cubic map. GD++ of von Oswald et al. 2023 (oswald2023) is the whitening with
    trained constants.

Differs from the source in
    The weight of a register stands in its key, so no square root is rounded. beta = 1 / (a + sqrt(a b) + b) makes
    both ends of the range meet, f(a) = f(b): the ratio b / a falls by a factor that starts at 27 / 4 and then squares
    its distance from 1. With 64 layers and b / a = 100 Chebyshev guarantees 5.3e-6 and no fixed schedule of plain
    steps can do better, while 7 layers with whitening reach 1e-16.

Proof
    Registers are rows of weight `strength` with answer 0: gradient descent on all of them is descent on the loss mean
    (y - w . x)^2 / 2 + strength |w|^2 / 2, that is w <- w + eta A (w* - w). Whitened features are M x with a
    polynomial M of A, as keys and features are multiplied by the same matrix; a step changes w by eta M^2 A (w* - w),
    and M^2 A has the eigenvalues t_k. So w* - w is prod (1 - eta_k t_k)(A) w*. With |w*|_A^2 = w* . mean(y x) <=
    label_bound |w*|_A follows |w*| <= label_bound / sqrt(a). For A' = A + delta, w'* - w* = -delta A^-1 w'*, where |w'*|
    <= label_bound / sqrt(a - |delta|) and |A^-1| <= 1 / a. Products and runs are
    bounded in `axioms.in_context_gradient`.

    *Chebyshev.* Let c = (a + b) / 2, h = (b - a) / 2, 1 / eta_k = c + h cos((2 k - 1) pi / (2 L)) in any order. Then
    prod (1 - eta_k t) = T_L((c - t) / h) / T_L(c / h), at most 1 / T_L(c / h) = 2 rho^L / (1 + rho^(2 L)) on [a, b]. If
    stored steps are eta_k (1 + d_k), |d_k| <= D, the product becomes the sum over all sets S of prod_(k not in S) (1 -
    eta_k t) prod_(k in S) (-d_k eta_k t). The zeros of T_L that are left out give a divided difference of T_L of order
    s = |S|, at most max |T_L^(s)| / s! <= L^(2 s), so each term is at most (D (b / h) L^2)^s / T_L(c / h), and the
    product at most (1 + D (b / h) L^2)^L / T_L(c / h). QED.

Assumptions
    weights (**checked**): every stored number is the one that the learner has, output weights of softmax up to rounding,
    and one strength in all registers, whose distance from that of the claim is part of the bound.
    spectrum (**checked**): C is found in balls for all eigenvalues in [a, b]; `run` names a context outside.
    run (**trusted**): arithmetic is as described in `kernel.rounding`; the context is given in numbers of the type.

Certified
    The statement for all contexts of 1 to N rows whose eigenvalues are in [a, b]; where a <= strength and b >=
    strength + d bound^2 these are all contexts of the box.

Not certified: Contexts with other eigenvalues; that the strength is a good one.

Example
    >>> from certiformer.axioms.in_context_ridge import chebyshev_bound
    >>> cosines = (0.9238795325112867, 0.3826834323650898, -0.3826834323650898, -0.9238795325112867)
    >>> steps = [1 / (0.505 + 0.495 * c) for c in cosines]
    >>> bound = chebyshev_bound(steps, 0.01, 1.0)
    >>> bool(0.73 < bound < 0.75)
    True

Tests: tests/theorems/test_in_context_ridge.py
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from flint import arb, fmpq

from certiformer.axioms.in_context_gradient import eigenvalues, require_weights, run_bound, spectrum
from certiformer.kernel import Refused
from certiformer.kernel.balls import ZERO, ball, decimal, largest, smaller, working_precision
from certiformer.kernel.computation import Files, Finding
from certiformer.kernel.files import CONFIG, LEARNER, MODEL
from certiformer.kernel.meanings.learner import (
    larger_reading,
    most,
    read_learner,
    require_tolerance,
    smaller_reading,
    written,
)
from certiformer.kernel.meanings.least_squares import LeastSquares
from certiformer.kernel.weights import Tensor, read_model

THEOREM = {
    "id": "axioms.in_context_ridge",
    "title": "Layers of linear attention compute ridge regression on the rows of the context, to a proved accuracy.",
    "kind": "upper bound",
    "sources": ("classical", "lebedev1971", "oswald2023"),
    "verb": "compile",
    "assumptions": (
        ("weights", "every stored number is the one that the learner has", "checked"),
        ("spectrum", "the eigenvalues of the context lie in the stated range", "checked"),
        ("run", "a run rounds as kernel.rounding describes, on numbers of the stored type", "trusted"),
    ),
    "uses": ("axioms.in_context_gradient",),
}

NOT_CLAIMED = (
    "That the strength is a good one, or the model linear: the prediction is that of ridge regression.",
    "Contexts outside the box or the range of eigenvalues: `run` says so when it meets one.",
)


def sentence(files: Files) -> str:
    """The claim in one plain sentence."""
    return _learner(files).sentence


def find(files: Files) -> Finding:
    """Why the claim holds, with the proved distance; raises `Refused` or `BadInput`."""
    working_precision()
    learner = _learner(files)
    config, tensors = read_model(files[CONFIG], files[MODEL])
    held = _held_strength(tensors)
    deviation = require_weights(replace(learner, strength=held), config, tensors)
    left, distance, run = ridge_bounds(learner, deviation, held)
    error = (distance + run).upper()
    margin = require_tolerance(learner.tolerance, error)
    parts = {name: decimal(value, up=True) for name, value in (("left", left), ("distance", distance), ("run", run))}
    reason = (
        f"the stored weights are those of the algorithm; after {learner.layers} steps at most {most(left)} of the weights"
        f" is left to learn, {most(distance)} in the prediction, and a run in {learner.dtype} adds at most {most(run)}"
    )
    return Finding(reason, {"margin": decimal(margin, up=False), **parts}, decimal(error, up=True))


def ridge_bounds(learner: LeastSquares, deviation: arb = ZERO, held: float | None = None) -> tuple[arb, arb, arb]:
    """What is left to learn, the distance from ridge regression that this makes, and the bound of a run.

    `held` is the strength that the registers hold; that of the description where it is not given.
    """
    working_precision()
    stored = replace(learner, strength=learner.strength if held is None else held)
    shift = abs(Fraction(stored.strength) - written(learner.strength))
    left, (least, _) = contraction(stored, shift), eigenvalues(stored, shift)
    reach = arb(learner.features).sqrt() * ball(larger_reading(learner.bound))
    weights = ball(larger_reading(learner.label_bound)) / ball(least).sqrt()  # |w'*|
    distance = ((left + ball(shift) / ball(smaller_reading(learner.low))) * reach * weights).upper()
    return left, distance, run_bound(stored, deviation, shift)


def contraction(learner: LeastSquares, shift: Fraction = Fraction(0)) -> arb:
    """C of the statement."""
    working_precision()
    low, high = eigenvalues(learner, shift)
    left = spectrum(learner.steps, learner.whiten, low, high).left
    closed = None if any(learner.whiten) else chebyshev_bound(learner.steps, low, high)
    return (left if closed is None else smaller(left, closed)).upper()


def chebyshev_bound(steps: Sequence[float], lowest: Fraction | float, highest: Fraction | float) -> arb | None:
    """The bound of the proof, or None where the steps are not those of Chebyshev."""
    low, high = ball(Fraction(lowest)), ball(Fraction(highest))
    count, middle, half = len(steps), (low + high) / 2, (high - low) / 2
    nodes = [1 / (middle + half * (arb.pi() * fmpq(2 * k + 1, 2 * count)).cos()) for k in range(count)]
    worst = largest([abs(arb(s) / t - 1).upper() for s, t in zip(sorted(steps), nodes, strict=True)])
    if not worst < arb("1e-2"):
        return None
    rho = (high.sqrt() - low.sqrt()) / (high.sqrt() + low.sqrt())
    power = (rho.log() * count).exp()
    excess = ((worst * high / half * count * count).log1p() * count).exp()
    return (2 * power / (1 + power * power) * excess).upper()


def _held_strength(tensors: Mapping[str, Tensor]) -> float:
    """The strength in the first register; that all have it is checked with all other weights."""
    registers = tensors.get("registers")
    if registers is None or not registers.data or not registers.data[0] > 0:
        raise Refused("the transformer has no registers that hold a strength")
    return registers.data[0]


def _learner(files: Files) -> LeastSquares:
    learner = read_learner(files[LEARNER])
    if not isinstance(learner, LeastSquares) or learner.learner != "ridge":
        raise Refused("the description is not that of ridge regression")
    return learner
