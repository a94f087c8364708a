"""Attention with fixed weights brings every number of the sequence to every token, exactly.

Statement
    Let n tokens x_1, ..., x_n of width d carry one-hot codes e_1, ..., e_n, beside m - n tokens with value and key
    zero. Take n heads with key size 1, constant query lambda, key <e_h, code> and value x. Then head h gives, at every
    token that asks, the same mixture a x_h + c (x_1 + ... + x_n) with

        a = (e^lambda - 1) / (e^lambda + m - 1),   c = 1 / (e^lambda + m - 1).

    A = a I + c 11^T is invertible for every lambda > 0 with A^{-1} = (I - c/(a + n c) 11^T) / a, so output weights
    A^{-1} write x_1, ..., x_n themselves. For lambda = log(n + 1): a = n/(n + m), A^{-1} = (I - 11^T/2n) (n + m)/n, and
    no output weight exceeds 2. Hence every affine map of the whole sequence is one attention layer with a linear
    read-out.

Source
    The mixture of vaswani2017's attention at constant scores; the lemma and its inverse are derived here.

Differs from the source in
    Attention is usually sharpened towards a one-hot choice of token, which is never exact. Here the softmax stays soft (the
    condition number of A is at most 2) and the mixture is undone by the output weights.

Proof
    The score of token j at head h is lambda [j = h], whatever x is. Its exponentials are e^lambda once and 1 at the
    other m - 1 keys, which gives a + c for token h and c for the others; the extra tokens have value zero. Sherman and
    Morrison: (a I + c 11^T)(I - k 11^T)/a = I + (c - a k - n c k) 11^T / a = I for k = c/(a + n c). With
    e^lambda = n + 1 the eigenvalues of A are a (n - 1 times) and a + n c = 2a. The stream after this attention is
    affine in x, and so is a read-out of it. An affine difference T - f on a box is largest at a corner:
    |value at the centre| + sum_i |slope_i| radius_i. QED.

Assumptions
    none: the certificate encloses the difference by one first-order form on the whole box, whatever the transformer is.

Certified
    sup |T - f| <= bound for the exact stored weights (rule *boxes*, one leaf): lambda and A^{-1} are rounded to float64,
    and the difference is enclosed, not estimated. For an affine T the form is exact, so the bound is the largest error at a
    corner, up to the radii of the balls.

Not certified
    Anything outside the box; the rounding of a floating-point run.

Example
    >>> from certiformer.construct.gather_block import inverse_mixing
    >>> inverse_mixing(2, 2)
    (Fraction(3, 2), Fraction(-1, 2))
    >>> diagonal, other = inverse_mixing(3, 4)  # one special token beside three
    >>> a, c = Fraction(3, 7), Fraction(1, 7)
    >>> (a + c) * diagonal + 2 * c * other, (a + c) * other + c * diagonal + c * other
    (Fraction(1, 1), Fraction(0, 1))

Tests
    tests/theorems/test_exact_gather.py
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from certiformer.construct.affine_target import affine_outputs
from certiformer.construct.gather_block import gather_transformer
from certiformer.construct.method import Construction, Layout, Size, Task
from certiformer.kernel import Refused
from certiformer.kernel.balls import BallDomain, working_precision
from certiformer.kernel.certificate import Boxes
from certiformer.kernel.layers import as_prototypes
from certiformer.kernel.problem import Network, Problem, ProgramFunction, error_upper
from certiformer.kernel.programs import decimal_text
from certiformer.kernel.rules import LEAF, root
from certiformer.kernel.weights import read_model
from certiformer.model import Transformer
from certiformer.model.store import tensors_to_bytes

THEOREM = {
    "id": "construct.exact_gather",
    "title": "Attention with fixed weights brings every number of the sequence to every token, exactly.",
    "kind": "exact",
    "sources": ("vaswani2017",),
    "verb": "build",
    "assumptions": (),
    "uses": (),
}

LAYOUTS: tuple[Layout, ...] = ("sequence", "token", "output-token")


@dataclass(frozen=True)
class Plan:
    """An affine map whose few weights are already there, with its proved bound."""

    theorem: str
    bound: float
    model: Transformer
    proof: Boxes

    def size(self) -> Size:
        return Size.of(self.model)

    def realise(self) -> Construction:
        return Construction(self.model, self.proof, leaves=bytes([LEAF]))


def plan(task: Task) -> Plan:
    """The transformer of an affine target; `Refused` when the target is not affine or float64 cannot carry epsilon.

    >>> from certiformer.construct.method import Shape
    >>> from certiformer.target import Target, parse_domain, parse_formula
    >>> target = Target("", parse_formula("[x1 - x2, x1 + 3*x2]"), parse_domain("[0, 1]^2"))
    >>> chosen = plan(Task(target, Fraction(1, 10**9), Shape(2, 1, 2, 1, "sequence")))
    >>> chosen.theorem, chosen.bound < 1e-15
    ('position_gating', True)
    >>> chosen.realise().model.evaluate([[1.0, 0.5]]).round(12)
    array([[0.5, 2.5]])
    """
    working_precision()
    maps = affine_outputs(task.target.program)
    linear = np.array([[float(s.mid()) for s in f.slope] for f in maps]).T
    constant = np.array([float(f.constant.mid()) for f in maps])
    ends = np.array([[float(end.mid()) for end in pair] for pair in BallDomain(task.target.domain).ends])
    inputs, outputs = linear.shape
    none = np.zeros((0, inputs)), np.zeros(0), np.zeros((0, outputs))
    model = gather_transformer(task.shape, ends[:, 0], ends[:, 1], linear, constant, *none)
    theorem = "exact_gather" if model.config.blocks[0].ffn is None else "position_gating"
    network = Network(*read_model(model.config.to_bytes(), tensors_to_bytes(model)))
    problem = Problem(
        as_prototypes(network) or network, ProgramFunction(task.target.program), BallDomain(task.target.domain)
    )
    proved = error_upper(problem, problem.domain.box(root(inputs)), 1)[0]
    # An exact map has the bound zero, which a claim cannot state.
    bound = max(Fraction(float(proved)) * (1 + Fraction(1, 2**40)), Fraction(1, 10**300))
    if bound > task.epsilon:
        raise Refused(f"rounding the weights to float64 alone costs {float(bound):.3g}, more than epsilon")
    return Plan(theorem, float(bound), model, Boxes(decimal_text(bound, up=True), 1, 0, 1))
