"""`--method temperatures`: prototypes on a grid, read by k heads at k temperatures (construction A3, order 2k).

The theorem, its proof and its constants live in `axioms.temperatures`. Here the Taylor coefficients of the target
are enclosed once, the cheapest (k, order, sharpness, margin, cells) whose a-priori bound stays below epsilon is chosen,
and the ideal weights are rounded to float64. The registers are those of `voronoi` (centre, offset, value); head i divides
its query by i and multiplies its output by (-1)^(i-1) C(k, i), so k heads cost k times the projections, not k times the
registers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
from jaxtyping import Float

from certiformer.axioms import temperatures as rule
from certiformer.axioms.derivatives import TaylorBounds
from certiformer.axioms.temperature_moments import output_weights
from certiformer.axioms.temperatures import Temperatures
from certiformer.construct.method import Construction, Layout, Size, Task
from certiformer.construct.prototype_attention import prototype_transformer
from certiformer.construct.temperature_search import cheapest
from certiformer.kernel import Refused
from certiformer.kernel.balls import BallDomain, working_precision
from certiformer.kernel.certificate import Theorem as TheoremNode
from certiformer.kernel.programs import decimal_text
from certiformer.model import Attention, Block, Config, Heads, Input, Readout, Transformer, tensor_specs
from certiformer.target import Target

LAYOUTS: tuple[Layout, ...] = ("token",)  # the query must carry the whole input
PARTS = 600  # sub-boxes on which derivatives are enclosed, over all axes together
# The highest order of derivatives that is enclosed, by dimension: 11 Taylor terms of one variable, 45 of two, 84 of three.
HIGHEST_ORDER = {1: 10, 2: 8, 3: 6}
# The a-priori bound is kept below epsilon by this factor: room for the distance of stored to ideal weights.
ROOM = Fraction(999, 1000)


@dataclass(frozen=True)
class Plan:
    """Heads, order and grid that the theorem proves good enough."""

    target: Target
    chosen: Temperatures
    bound: float
    partition: tuple[int, ...]
    theorem: str = "temperatures"

    def size(self) -> Size:
        """Exact but for values and centres that happen to be zero, which are counted."""
        inputs, outputs = self.target.domain.dimension, len(self.target.program.outputs)
        count, heads = self.chosen.grid.size, self.chosen.heads
        specs = tensor_specs(configuration(count, inputs, outputs, heads))
        dense = sum(math.prod(spec.shape) for spec in specs.values())
        return Size(_nonzero(count, inputs, outputs, heads), dense, heads, 0, count)

    def realise(self) -> Construction:
        """The weights, with the theorem node that proves them."""
        domain, chosen = BallDomain(self.target.domain), self.chosen
        ideal = rule.ideal_values(self.target.program, chosen, domain)
        values = np.array([[float(v.mid()) for v in row] for row in ideal])
        parameters = {**chosen.parameters(), "partition": list(self.partition)}
        # Targets that are (almost) constant have a-priori bound zero, but their values are rounded.
        room = Fraction(float(np.abs(values).max())) / 2**40 + Fraction(1, 10**300)
        bound = decimal_text(Fraction(self.bound) / ROOM + room, up=True)
        return Construction(transformer(chosen, domain, values), TheoremNode(bound, self.theorem, parameters))


def plan(task: Task) -> Plan:
    """The fewest nonzero weights that the theorem proves within epsilon; `Refused` with the reason when there are none.

    >>> from certiformer.target import Target, parse_domain, parse_formula
    >>> target = Target("cos(2*x1)", parse_formula("cos(2*x1)"), parse_domain("[0, 1]"))
    >>> planned = plan(Task.of(target, Fraction(1, 100_000)))
    >>> planned.chosen.heads, planned.chosen.grid.size
    (3, 26)
    """
    working_precision()
    target, domain = task.target, BallDomain(task.target.domain)
    dimension = domain.dimension
    highest = HIGHEST_ORDER.get(dimension, 4)
    if rule.monomials(dimension, highest) > rule.MAX_MONOMIALS:
        raise Refused(f"{dimension} inputs are too many for a grid of prototypes")
    parts = (max(1, int(PARTS ** (1 / dimension) + 1e-9)),) * dimension
    derivatives = TaylorBounds(target.program, domain, parts, highest)
    if not derivatives.smooth:
        raise Refused(f"the target is not known to be smooth on {derivatives.where}: {derivatives.why}")
    outputs = len(target.program.outputs)
    chosen, rounding = cheapest(
        np.array([[float(bound) for bound in line] for line in derivatives.largest]),
        np.array([float((high - low).mid()) for low, high in domain.ends]),
        highest,
        float(task.epsilon * ROOM),
        lambda registers, heads: _nonzero(registers, dimension, outputs, heads),
    )
    bound = float(max(rule.apriori(chosen, domain, derivatives))) + rounding
    return Plan(target, chosen, bound, parts)


def _nonzero(registers: int, inputs: int, outputs: int, heads: int) -> int:
    """Registers hold centre, offset and values; a head has 3 inputs + 3 entries in query and key, 2 per output beyond."""
    return registers * (inputs + 1 + outputs) + inputs + 1 + heads * (3 * inputs + 3 + 2 * outputs) + outputs


def transformer(
    chosen: Temperatures, domain: BallDomain, values: Float[np.ndarray, "registers outputs"]
) -> Transformer:
    """The k-headed transformer over the grid, built from the one-headed one by scaling queries and outputs."""
    grid, heads = chosen.grid, chosen.heads
    middle = np.array([float(((low + high) / 2).mid()) for low, high in domain.ends])
    half = np.array([float(((high - low) / 2).upper()) for low, high in domain.ends])
    spacing = np.array([float(delta.mid()) for delta in grid.spacing(domain)])
    lines = []
    for (low, high), centres in zip(domain.ends, grid.axes(domain), strict=True):
        lines.append([float((c - (low + high) / 2).mid()) for c in centres])
    steepness = 2 * float(grid.sharpness) / spacing**2
    single = prototype_transformer(np.array(list(product(*lines))), values, middle, half, steepness)
    tensors, name, inputs = dict(single.tensors), "blocks.0.attention.groups.0", domain.dimension
    query, key = np.asarray(tensors[f"{name}.query"]), np.asarray(tensors[f"{name}.key"]).copy()
    # Head i divides all scores by i, also the data token's own: k times as low, it is low enough for every head.
    key[0, inputs, inputs] *= heads
    tensors[f"{name}.query"] = np.concatenate([query / i for i in range(1, heads + 1)])
    tensors[f"{name}.key"] = np.repeat(key, heads, axis=0)
    tensors[f"{name}.value"] = np.repeat(np.asarray(tensors[f"{name}.value"]), heads, axis=0)
    write = np.asarray(tensors[f"{name}.output"])
    tensors[f"{name}.output"] = np.concatenate([write * alpha for alpha in output_weights(heads)])
    return Transformer(configuration(grid.size, inputs, values.shape[1], heads), tensors)


def configuration(registers: int, inputs: int, outputs: int, heads: int) -> Config:
    """The layout of `prototype_attention`, with several heads."""
    return Config(
        Input("continuous", tokens=1, width=inputs),
        width=2 * inputs + 2 + 2 * outputs,
        outputs=outputs,
        readout=Readout("token", token=0),
        blocks=(Block(attention=Attention((Heads(heads, inputs + 1, outputs),))),),
        registers=registers,
    )
