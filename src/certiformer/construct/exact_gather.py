"""`--method gather`: an affine target, one map of the sequence or a different one at each position, up to rounding.

The theorems are `axioms.exact_gather` and, where positions differ so much that units are needed,
`axioms.position_gating`. Their rules compute the distance of the stored weights to the target, so the plan asks
them.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from certiformer.axioms.affine import affine_outputs
from certiformer.construct.gather_block import gather_transformer
from certiformer.construct.method import Construction, Layout, Size, Task
from certiformer.kernel.affine_softmax import as_prototypes
from certiformer.kernel.axioms import axiom
from certiformer.kernel.balls import BallDomain, working_precision
from certiformer.kernel.network import Network
from certiformer.kernel.numbers import decimal_text
from certiformer.kernel.problem import Problem, ProgramFunction
from certiformer.kernel.refusal import Refused
from certiformer.kernel.steps import Theorem
from certiformer.kernel.weights import read_model
from certiformer.model import Transformer
from certiformer.model.store import tensors_to_bytes

LAYOUTS: tuple[Layout, ...] = ("sequence", "token", "output-token")


@dataclass(frozen=True)
class Plan:
    """An affine map whose few weights are already there, with its proved bound."""

    theorem: str
    bound: float
    model: Transformer
    proof: Theorem

    def size(self) -> Size:
        return Size.of(self.model)

    def realise(self) -> Construction:
        return Construction(self.model, self.proof)


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
    proved = axiom(theorem, "functions on a box").check(Theorem("0", theorem, {}), problem)
    # An exact map has the bound zero, which a claim cannot state.
    bound = max(Fraction(float(proved)) * (1 + Fraction(1, 2**40)), Fraction(1, 10**300))
    if bound > task.epsilon:
        raise Refused(f"rounding the weights to float64 alone costs {float(bound):.3g}, more than epsilon")
    return Plan(theorem, float(bound), model, Theorem(decimal_text(bound, up=True), theorem, {}))
