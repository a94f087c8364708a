"""`--method shifted-grids`: soft bins by sigmoid heads, one AND unit per cell, K shifted grids (construction E).

The theorem and its proof live in `axioms.shifted_grids`, the lattice in `axioms.shifted_lattice`. It works
for every Lipschitz target, kinks included, and for sequences: heads with a constant query look at one token each, so every
row gets the soft bins of all coordinates. It is large (K (N + 1)^D units); what it offers is a theorem.

The residual stream is  x | flag | position | bins | out.  Data tokens carry x, flag = 1 and, if there are several, their
one-hot position; the bins start at 1 for every first bin and 0 elsewhere; the sink is a register of zeros. The head of
threshold t of axis (token, c) has query 1 and key gamma (x_c - t) on its token, -64 or less on other tokens, 0 on the sink;
value 1 on data tokens; it moves one unit of mass from the bin below t to the bin above. The unit of a cell adds its bins,
minus (D - 1); with a row per output token it also subtracts 1 at the rows that it does not answer for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
from flint import arb, fmpq

from certiformer.axioms import shifted_grids as rule
from certiformer.axioms.jets import DerivativeBounds
from certiformer.axioms.shifted_lattice import ShiftedLattice
from certiformer.construct.method import Construction, Layout, Shape, Size, Task
from certiformer.kernel import Refused
from certiformer.kernel.balls import BallDomain, ConstantAlgebra, working_precision
from certiformer.kernel.certificate import Theorem as TheoremNode
from certiformer.kernel.programs import decimal_text
from certiformer.model import (
    Attention,
    Block,
    Code,
    Config,
    FeedForward,
    Heads,
    Input,
    Readout,
    Transformer,
    tensor_specs,
)
from certiformer.target import Target, fold

LAYOUTS: tuple[Layout, ...] = ("sequence", "token")
MAX_NONZERO, MAX_DENSE = 200_000, 8_000_000
PARTS = 2_000  # sub-boxes on which the gradient is enclosed, over all axes together
SAMPLES = 1_000  # points of the grid that finds the range of the target
ROOM = Fraction(999, 1000)  # room for the distance of stored to ideal weights
SHARPNESS = [Fraction(n) for n in (3, 4, 5, 6, 7, 8, 10, 12, 16)]
MOST_SHIFTS = 512
OTHER_TOKENS_NATS = 64.0  # how far other tokens stay below the sink: weight e^-64 = 1.6e-28


@dataclass(frozen=True)
class Plan:
    """A lattice that the theorem proves good enough."""

    target: Target
    shape: Shape
    lattice: ShiftedLattice
    bound: float
    partition: tuple[int, ...]
    levels: tuple[float, ...]  # the number m of the theorem for every output
    theorem: str = "shifted_grids"

    def size(self) -> Size:
        """Exact but for values that happen to be zero, which are counted."""
        specs = tensor_specs(configuration(self.shape, self.lattice))
        dense = sum(math.prod(spec.shape) for spec in specs.values())
        units = self.lattice.unit_count() * _blocks(self.shape)
        return Size(_nonzero(self.shape, self.lattice), dense, len(self.lattice.heads()), units, 1)

    def realise(self) -> Construction:
        """The weights, with the theorem node that proves them."""
        model = transformer(self.target, self.shape, self.lattice, self.levels)
        parameters = {**self.lattice.parameters(), "partition": list(self.partition)}
        size = max(map(abs, self.levels)) + self.bound
        room = Fraction(size) / 2**30 + Fraction(1, 10**300)  # constant targets: bound zero, values rounded
        bound = decimal_text(Fraction(self.bound) / ROOM + room, up=True)
        return Construction(model, TheoremNode(bound, self.theorem, parameters))


def plan(task: Task) -> Plan:
    """The fewest nonzero weights that the theorem proves within epsilon; `Refused` with the reason when there are none.

    >>> from certiformer.target import Target, parse_domain, parse_formula
    >>> target = Target("abs(x1 - x2)", parse_formula("abs(x1 - x2)"), parse_domain("[0, 1]^2"))
    >>> planned = plan(Task.of(target, Fraction(1, 4)))
    >>> planned.lattice.cells, planned.lattice.shifts
    ((4, 4), 7)
    """
    working_precision()
    domain, shape = BallDomain(task.target.domain), _arranged(task.shape)
    dimension = domain.dimension
    parts = (max(1, int(PARTS ** (1 / dimension) + 1e-9)),) * dimension
    derivatives = DerivativeBounds(task.target.program, domain, parts, order=1)
    if derivatives.smooth < 1:
        raise Refused(f"the target is not known to be Lipschitz on {derivatives.where}: {derivatives.why}")
    lengths = np.array([float((high - low).upper()) for low, high in domain.ends])
    gradient = np.array([[float(g) for g in line] for line in derivatives.gradient])
    levels, spans = _ranges(task.target, domain, gradient, lengths)
    best, fewest = None, MAX_NONZERO + 1
    for sharpness, shifts in product(SHARPNESS, range(1, MOST_SHIFTS + 1)):
        cells = _fewest_cells(gradient * lengths, spans, float(task.epsilon * ROOM), shifts, float(sharpness))
        # Every cell has at least D input weights and a bias: a quick bound before anything is counted exactly.
        if cells is None or shifts * math.prod(cells) * (dimension + 1) >= fewest:
            continue
        lattice = ShiftedLattice(cells, shifts, sharpness)
        size = _nonzero(shape, lattice)
        if size < fewest and _dense(shape, lattice) <= MAX_DENSE:
            best, fewest = lattice, size
    if best is None:
        raise Refused(f"shifted grids need more than {MAX_NONZERO:,} weights at this epsilon")
    kappa, beta = (float(c) for c in rule.constants(best))
    bound = _bound(gradient * lengths, spans, best.cells, kappa, beta)
    return Plan(task.target, shape, best, bound, parts, tuple(levels.tolist()))


def _arranged(shape: Shape) -> Shape:
    """The shape with its layout; one token carries everything where no sequence was asked for."""
    if shape.layout is not None:
        return shape
    return Shape(
        shape.tokens, shape.width, shape.out_tokens, shape.out_width, "token" if shape.inputs == 1 else "sequence"
    )


def _blocks(shape: Shape) -> int:
    """How many rows answer, each with units of its own."""
    return shape.tokens if shape.per_position else 1


def _tokens(shape: Shape) -> tuple[int, int]:
    return (1, shape.inputs) if shape.layout == "token" else (shape.tokens, shape.width)


def _ranges(
    target: Target, domain: BallDomain, gradient: np.ndarray, lengths: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The middle m of every output's range and an upper bound of |f - m|, from a grid and the Lipschitz constants."""
    count = max(2, int(SAMPLES ** (1 / domain.dimension) + 1e-9))
    axes = [[low + (high - low) * arb(fmpq(2 * k + 1, 2 * count)) for k in range(count)] for low, high in domain.ends]
    found = np.array(
        [[float(v.mid()) for v in fold(target.program, list(p), ConstantAlgebra())] for p in product(*axes)]
    )
    low, high = found.min(0), found.max(0)
    slack = (gradient @ lengths) / (2 * count)
    return (low + high) / 2, (high - low) / 2 + slack


def _bound(slopes: np.ndarray, spans: np.ndarray, cells: tuple[int, ...], kappa: float, beta: float) -> float:
    """The theorem in floats; `slopes[o, i]` bounds how much output o changes along axis i: L_i delta_i = slopes/cells."""
    steps = slopes @ (1 / np.array(cells))
    return float((kappa * steps + beta * (spans + steps / 2)).max())


def _fewest_cells(
    slopes: np.ndarray, spans: np.ndarray, epsilon: float, shifts: int, sharpness: float
) -> tuple[int, ...] | None:
    """The fewest cells that the theorem allows with these shifts; None when there are too few shifts, or too many cells."""
    dimension = slopes.shape[1]
    kappa = 0.25 + math.log(2) / (shifts * sharpness) + (shifts % 2) / (4 * shifts**2)
    leak = 2 / (1 + math.exp(min(700.0, (2 * shifts - 1) * sharpness))) + 4 * (dimension - 1) / (
        1 + math.exp(sharpness)
    )
    beta = dimension // 2 / shifts + leak if dimension > 1 else 0.0
    allowed = (epsilon - beta * spans.max()) / (kappa + beta / 2)
    if allowed <= 0:
        return None
    # Equal shares on every axis, then one cell less wherever there is room.
    cells = [max(1, math.ceil(min(dimension * s / allowed, 1e6))) for s in slopes.max(0)]
    if shifts * math.prod(cells) > MAX_NONZERO or _bound(slopes, spans, tuple(cells), kappa, beta) > epsilon:
        return None
    for axis in sorted(range(dimension), key=lambda i: -cells[i]):
        while cells[axis] > 1:
            fewer = (*cells[:axis], cells[axis] - 1, *cells[axis + 1 :])
            if _bound(slopes, spans, fewer, kappa, beta) > epsilon:
                break
            cells[axis] -= 1
    if shifts == 1 and max(cells) == 1:
        cells[0] = 2  # one cell alone has no thresholds, hence no heads
    return tuple(cells)


def _bins(lattice: ShiftedLattice) -> dict[tuple[int, int], int]:
    """The first coordinate, within the bins, of every (axis, shift); and the total under (-1, -1)."""
    starts, total = {}, 0
    for axis in range(len(lattice.cells)):
        for shift in range(lattice.shifts):
            starts[axis, shift] = total
            total += len(lattice.thresholds(axis, shift)) + 1
    starts[-1, -1] = total
    return starts


def _nonzero(shape: Shape, lattice: ShiftedLattice) -> int:
    """A head: query, key (slope, threshold, position), value, two bins. A unit: its bins, bias, gate, values."""
    (tokens, width), blocks = _tokens(shape), _blocks(shape)
    dimension, shifts = len(lattice.cells), lattice.shifts
    outputs = shape.outputs // blocks
    heads = sum(len(lattice.thresholds(axis, q)) for axis in range(dimension) for q in range(shifts))
    units = lattice.unit_count() * blocks
    per_unit = dimension + 1 + outputs + (1 if blocks > 1 else 0)
    read = outputs + (blocks * outputs if blocks > 1 else outputs)
    return heads * (6 + (tokens > 1)) + units * per_unit + width + 1 + dimension * shifts + read


def _dense(shape: Shape, lattice: ShiftedLattice) -> int:
    """About the number of all weights, without listing them."""
    dimension, shifts = len(lattice.cells), lattice.shifts
    bins = shifts * sum(n + 1 for n in lattice.cells)
    return (bins + 2 * dimension + 2) * (4 * bins + 2 * lattice.unit_count() * _blocks(shape))


def configuration(shape: Shape, lattice: ShiftedLattice) -> Config:
    """The block of the module docstring."""
    (tokens, width), blocks = _tokens(shape), _blocks(shape)
    outputs = shape.outputs // blocks
    position = width + 1
    bins = position + (tokens if tokens > 1 else 0)
    return Config(
        Input("continuous", tokens=tokens, width=width),
        width=bins + _bins(lattice)[-1, -1] + outputs,
        outputs=outputs,
        readout=Readout("all") if blocks > 1 else Readout("token", token=0),
        blocks=(
            Block(
                attention=Attention((Heads(len(lattice.heads()), 1, 1),)),
                ffn=FeedForward(lattice.unit_count() * blocks),
            ),
        ),
        registers=1,
        code=Code("one-hot", offset=position) if tokens > 1 else Code(),
    )


def transformer(target: Target, shape: Shape, lattice: ShiftedLattice, levels: tuple[float, ...]) -> Transformer:
    """The weights of the module docstring, rounded to float64."""
    domain, config = BallDomain(target.domain), configuration(shape, lattice)
    (tokens, width), blocks = _tokens(shape), _blocks(shape)
    outputs, starts = config.outputs, _bins(lattice)
    flag, position = width, width + 1
    bins = position + (tokens if tokens > 1 else 0)
    out = bins + starts[-1, -1]
    tensors = {name: np.zeros(spec.shape) for name, spec in tensor_specs(config).items()}
    tensors["embed.weight"][np.arange(width), np.arange(width)] = 1.0
    tensors["embed.bias"][flag] = 1.0
    for (axis, _), start in starts.items():
        if axis >= 0:
            tensors["embed.bias"][bins + start] = 1.0

    name = "blocks.0.attention.groups.0"
    query, key, value, output = (tensors[f"{name}.{part}"] for part in ("query", "key", "value", "output"))
    query[:, flag], value[:, flag] = 1.0, 1.0
    order: dict[tuple[int, int], int] = {}
    for h, (axis, shift, number) in enumerate(lattice.heads()):
        token, coordinate = divmod(axis, width)
        steep, at = lattice.steepness(domain, axis), lattice.position(domain, axis, number)
        key[h, coordinate] = float(steep.mid())
        key[h, flag] = float((-steep * at).mid())
        if tokens > 1:
            others = max(float(domain.ends[t * width + coordinate][1].upper()) for t in range(tokens))
            reach = math.ceil(max(0.0, float(steep) * (others - float(at))) + OTHER_TOKENS_NATS)
            key[h, flag] = float((-steep * at - reach).mid())
            key[h, position + token] = reach
        j = order.get((axis, shift), 0)
        order[axis, shift] = j + 1
        below = bins + starts[axis, shift] + j
        output[h, 0, below], output[h, 0, below + 1] = -1.0, 1.0

    up, up_bias, down = (tensors[f"blocks.0.ffn.{part}"] for part in ("up", "up_bias", "down"))
    wanted = np.array([[float(v.mid()) for v in line] for line in rule.values(target.program, lattice, domain)])
    weights = (wanted - np.array(levels)) / lattice.shifts
    dimension, count = len(lattice.cells), lattice.unit_count()
    for block in range(blocks):
        for m, unit in enumerate(lattice.units(), start=block * count):
            for axis, j in enumerate(unit.bins):
                up[bins + starts[axis, unit.shift] + j, m] = 1.0
            up_bias[m] = 1.0 - dimension
            if blocks > 1:
                up_bias[m] -= 1.0
                up[position + block, m] = 1.0
            down[m, out:] = weights[m - block * count, block * outputs : (block + 1) * outputs]
    tensors["readout.weight"][out + np.arange(outputs), np.arange(outputs)] = 1.0
    if blocks > 1:
        tensors["readout.weight"][position : position + blocks] = np.array(levels).reshape(blocks, outputs)
    else:
        tensors["readout.bias"][:] = levels
    return Transformer(config, tensors)
