"""`--method ridge-temperatures`: sums of ridge functions, k heads a direction, all reading one list of registers.

The theorem and its proof live in `axioms.ridge_temperatures`. One grid serves all ridges, so it is planned like a
function of one variable on [0, 1]: the Taylor bounds of all ridges, scaled to their ranges, add up.

The residual stream is  x | flag | centre | offset | values | out.  Register j carries its centre c_j = k + 1/2 - N/2,
-c_j^2/2 (both exact) and its values; ridges with equal values share a column. Head (ridge, i) queries with
(2b/i)((p . x - middle)/delta, 1) and keys (c, offset): the score is -(b/i)((p . x - middle)/delta - c)^2 up to a term
common to all registers.
The linear part of the target goes through the residual stream to the read-out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from certiformer.axioms import ridge_temperatures as rule
from certiformer.axioms.sigmoid_knots import Ridge, ridge_sum
from certiformer.axioms.temperature_moments import output_weights
from certiformer.axioms.temperatures import Temperatures
from certiformer.construct.method import Construction, Layout, Size, Task
from certiformer.construct.temperature_search import cheapest
from certiformer.kernel import Refused
from certiformer.kernel.balls import BallDomain, working_precision
from certiformer.kernel.certificate import Theorem as TheoremNode
from certiformer.kernel.programs import decimal_text
from certiformer.model import Attention, Block, Config, Heads, Input, Readout, Transformer, tensor_specs
from certiformer.target import Target

LAYOUTS: tuple[Layout, ...] = ("token",)  # the query must carry the whole input
HIGHEST_ORDER = 10
PARTS = 400  # pieces of each range on which derivatives are enclosed
ROOM = Fraction(999, 1000)  # room for the distance of stored to ideal weights
SELF_WEIGHT_NATS = 64.0  # how far the data token's own score stays below the best register's, for every head
MOST_RIDGES = 400


@dataclass(frozen=True)
class Plan:
    """One grid for all ridges of a target, good enough by the theorem."""

    target: Target
    linear: list[tuple[Fraction, ...]]
    ridges: list[Ridge]
    chosen: Temperatures
    bound: float
    theorem: str = "ridge_temperatures"

    @cached_property
    def model(self) -> Transformer:
        return transformer(self.linear, self.ridges, self.chosen, BallDomain(self.target.domain))

    def size(self) -> Size:
        """The size of the transformer itself, which is quickly built."""
        return Size.of(self.model)

    def realise(self) -> Construction:
        """The weights, with the theorem node that proves them."""
        values = np.abs(np.asarray(self.model.tensors["registers"]))[:, self.target.domain.dimension + 3 :]
        room = Fraction(float(values.max(initial=0.0))) / 2**40 + Fraction(1, 10**300)
        bound = decimal_text(Fraction(self.bound) / ROOM + room, up=True)
        return Construction(
            self.model, TheoremNode(bound, self.theorem, {**self.chosen.parameters(), "partition": [PARTS]})
        )


def plan(task: Task) -> Plan:
    """The fewest nonzero weights that the theorem proves within epsilon; `Refused` with the reason when there are none.

    >>> from certiformer.target import Target, parse_domain, parse_formula
    >>> formula = "sin(x1) + sin(x2)"
    >>> target = Target(formula, parse_formula(formula), parse_domain("[0, 2*pi]^2"))
    >>> planned = plan(Task.of(target, Fraction(1, 100)))
    >>> planned.size().registers, planned.size().heads, planned.size().nonzero
    (21, 4, 97)
    """
    working_precision()
    domain = BallDomain(task.target.domain)
    linear, ridges = ridge_sum(task.target.program)
    if not 1 <= len(ridges) <= MOST_RIDGES:
        raise Refused(f"the target has {len(ridges)} ridges, not 1 to {MOST_RIDGES}")
    derivatives = rule.profile_bounds(ridges, domain, PARTS, HIGHEST_ORDER)
    for found in (d for line in derivatives for d in line if d is not None):
        if not found.smooth:
            raise Refused(f"a ridge of the target is not known to be smooth on {found.where}: {found.why}")
    taylor = np.zeros((len(linear), HIGHEST_ORDER + 1))
    for ridge, line in zip(ridges, derivatives, strict=True):
        low, high = ridge.ends(domain)
        scale = float((high - low).mid()) ** np.arange(HIGHEST_ORDER + 1)
        for o, found in enumerate(line):
            if found is not None:
                taylor[o] += np.array([float(bound) for bound in found.largest[0]]) * scale
    terms = [(sum(map(bool, r.direction)), sum(p is not None for p in r.profiles)) for r in ridges]

    def cost(registers: int, heads: int) -> int:
        """Registers: centre, offset, values. A head: its direction, two flags, three keys, values in and out."""
        return registers * (2 + sum(own for _, own in terms)) + heads * sum(n + 5 + 2 * own for n, own in terms)

    chosen, rounding = cheapest(taylor, np.ones(1), HIGHEST_ORDER, float(task.epsilon * ROOM), cost)
    bound = float(max(rule.apriori(chosen, ridges, domain, derivatives))) + rounding
    return Plan(task.target, linear, ridges, chosen, bound)


def transformer(
    linear: list[tuple[Fraction, ...]], ridges: list[Ridge], chosen: Temperatures, domain: BallDomain
) -> Transformer:
    """The weights of the module docstring, rounded to float64."""
    inputs, outputs, grid = domain.dimension, len(linear), chosen.grid
    columns, places = _columns(ridges, chosen, domain)
    flag, centre, offset, values = inputs, inputs + 1, inputs + 2, inputs + 3
    out = values + len(columns)
    config = Config(
        Input("continuous", tokens=1, width=inputs),
        width=out + outputs,
        outputs=outputs,
        readout=Readout("token", token=0),
        blocks=(Block(attention=Attention((Heads(chosen.heads * len(ridges), 2, outputs),), scale="unit")),),
        registers=grid.size,
    )
    tensors = {name: np.zeros(spec.shape) for name, spec in tensor_specs(config).items()}
    tensors["embed.weight"][:, :inputs] = np.eye(inputs)
    tensors["embed.bias"][flag] = 1.0
    (cells,) = grid.cells
    places_in_cells = np.arange(-grid.margin, cells + grid.margin) + 0.5 - cells / 2
    tensors["registers"][:, centre], tensors["registers"][:, offset] = places_in_cells, -0.5 * places_in_cells**2
    for position, column in enumerate(columns):
        tensors["registers"][:, values + position] = column

    name, sharpness = "blocks.0.attention.groups.0", float(grid.sharpness)
    query, key, value, output = (tensors[f"{name}.{part}"] for part in ("query", "key", "value", "output"))
    key[:, centre, 0], key[:, offset, 1] = 1.0, 1.0
    # The register nearest the middle scores at least -2b/i (N/4 + 1/8) on the whole range.
    key[:, flag, 1] = -math.ceil(cells / 4 + 1 / 8 + SELF_WEIGHT_NATS * chosen.heads / (2 * sharpness))
    for r, ridge in enumerate(ridges):
        low, high = ridge.ends(domain)
        steep = 2 * grid.sharpness.numerator * cells / ((high - low) * grid.sharpness.denominator)
        for i, alpha in enumerate(output_weights(chosen.heads), start=1):
            h = r * chosen.heads + i - 1
            query[h, :inputs, 0] = [float((steep * c / i).mid()) for c in ridge.direction]
            query[h, flag] = float((-steep * (low + high) / (2 * i)).mid()), 2 * sharpness / i
            for o in range(outputs):
                if (r, o) in places:
                    value[h, values + places[r, o], o] = 1.0
                    output[h, o, out + o] = alpha
    tensors["readout.weight"][out:] = np.eye(outputs)
    tensors["readout.weight"][:inputs] = np.array([[float(c) for c in line] for line in linear]).T
    return Transformer(config, tensors)


def _columns(
    ridges: list[Ridge], chosen: Temperatures, domain: BallDomain
) -> tuple[list[np.ndarray], dict[tuple[int, int], int]]:
    """The different columns of values, and which one each (ridge, output) reads."""
    columns: list[np.ndarray] = []
    places: dict[tuple[int, int], int] = {}
    for r, ridge in enumerate(ridges):
        rows = np.array([[float(v.mid()) for v in row] for row in rule.ideal_values(chosen, ridge, domain)])
        for o, profile in enumerate(ridge.profiles):
            if profile is None:
                continue
            known = [k for k, column in enumerate(columns) if np.array_equal(column, rows[:, o])]
            places[r, o] = known[0] if known else len(columns)
            if not known:
                columns.append(rows[:, o])
    return columns, places
