"""Reading a stored transformer as squares by attention and bumps by the feed-forward part.

One block on one data token: attention writes one coordinate Q of the residual stream, every head being a sigmoid of one
variable, and leaves the others affine in x; then every hidden unit is relu(affine(x) + weight * Q(x)). The stream before
the feed-forward part is read with the recogniser of prototype attention, by putting an identity in place of the read-out.
"""

from __future__ import annotations

from dataclasses import dataclass

from flint import arb, arb_mat

from certiformer.kernel import Refused, taylor
from certiformer.kernel.balls import ONE, ZERO, BallDomain
from certiformer.kernel.layers import Head, Prototypes, as_prototypes
from certiformer.kernel.problem import Network
from certiformer.kernel.weights import Tensor

NOT_SQUARES = "the transformer is not squares by sigmoid heads and bumps by a ReLU part, as the theorem requires: "
FORM_ORDER = 3


@dataclass(frozen=True)
class SquaresNetwork:
    """T_o(x) = slope_o . x + constant_o + sum_k out[k, o] relu(unit_slope_k . x + unit_constant_k + unit_square_k Q(x)),
    Q(x) = square_constant + sum_i (square_slope_i x_i + sum of the heads of axis i)."""

    heads: list[list[Head]]  # by axis, as functions of that variable alone, with Q as the only output
    square_slope: list[arb]
    square_constant: arb
    unit_slope: arb_mat  # dimension x units
    unit_constant: list[arb]
    unit_square: list[arb]
    out: arb_mat  # units x outputs
    slope: arb_mat  # dimension x outputs
    constant: list[arb]


def read_squares(left: object) -> SquaresNetwork:
    """The parts of a stored network; raises `Refused` when it is not of this form."""
    if not isinstance(left, Network):
        raise Refused(NOT_SQUARES + "it has no feed-forward part")
    config = left.config
    blocks = config["blocks"]
    if len(blocks) != 1 or config["loops"] != 1 or config["input"]["tokens"] != 1 or blocks[0]["norm"]:
        raise Refused(NOT_SQUARES + "it is not one block without norm on one data token")
    ffn = blocks[0]["ffn"]
    if not ffn or ffn["kind"] != "relu" or not ffn["residual"] or config["readout"]["kind"] != "token":
        raise Refused(NOT_SQUARES + "its feed-forward part is not a residual ReLU layer read at the data token")
    stream = _before_ffn(left)
    if stream is None or any(len(head.offsets) != 2 for head in stream.heads):
        raise Refused(NOT_SQUARES + "its attention is not a sum of heads over one data token and one sink")
    place = _written(stream)
    heads: list[list[Head]] = [[] for _ in range(left.dimension)]
    for head in stream.heads:
        heads[_axis(head)].append(_along(head, _axis(head), place))
    slope, constant = arb_mat(stream.weight), arb_mat([stream.bias])
    up, down = left.tensors["blocks.0.ffn.up"].matrix(), left.tensors["blocks.0.ffn.down"].matrix()
    read = left.tensors["readout.weight"].matrix()
    if any(not read[place, o].is_zero() for o in range(read.ncols())):
        raise Refused(NOT_SQUARES + "its read-out sees the coordinate of the squares")
    units = up.ncols()
    unit_square = [up[place, k] for k in range(units)]
    # What is left of the stream without Q is affine: drop its coordinate from the products.
    square_slope, square_constant = [slope[i, place] for i in range(left.dimension)], constant[0, place]
    for i in range(left.dimension):
        slope[i, place] = ZERO
    constant[0, place] = ZERO
    shift = left.tensors["blocks.0.ffn.up_bias"].row()
    unit_constant = [a + b for a, b in zip((constant * up).entries(), shift, strict=True)]
    through = constant + arb_mat([left.tensors["blocks.0.ffn.down_bias"].row()])
    bias = left.tensors["readout.bias"].row()
    total = [a + b for a, b in zip((through * read).entries(), bias, strict=True)]
    return SquaresNetwork(
        heads, square_slope, square_constant, slope * up, unit_constant, unit_square, down * read, slope * read, total
    )


def _before_ffn(network: Network) -> Prototypes | None:
    """The residual stream of the data token between attention and feed-forward part, every coordinate an output."""
    width = network.config["width"]
    config = {**network.config, "blocks": [{**network.config["blocks"][0], "ffn": None}], "outputs": width}
    identity = Tensor((width, width), [float(i == j) for i in range(width) for j in range(width)])
    tensors = {**network.tensors, "readout.weight": identity, "readout.bias": Tensor((width,), [0.0] * width)}
    return as_prototypes(Network(config, tensors))


def _written(stream: Prototypes) -> int:
    """The one coordinate that the heads write."""
    places = {
        place for head in stream.heads for row in head.values for place, value in enumerate(row) if not value.is_zero()
    }
    if len(places) != 1:
        raise Refused(NOT_SQUARES + f"its heads write {len(places)} coordinates of the stream")
    return places.pop()


def _axis(head: Head) -> int:
    """The one variable that a head reads (the first when it reads none)."""
    axes = {i for row in head.slopes for i, value in enumerate(row) if not value.is_zero()}
    if len(axes) > 1:
        raise Refused(NOT_SQUARES + "a head reads several variables")
    return axes.pop() if axes else 0


def _along(head: Head, axis: int, place: int) -> Head:
    return Head([[row[axis]] for row in head.slopes], list(head.offsets), [[row[place]] for row in head.values])


def square_error(network: SquaresNetwork, domain: BallDomain, spacing: list[arb], levels: int) -> arb:
    """A ball that contains Q(x) - sum_i ((x_i - middle_i)/spacing_i)^2 for every x of the domain.

    The difference is a sum of functions of one variable; each is enclosed by a Taylor form on 2^levels pieces.
    """
    total = network.square_constant
    for axis, heads in enumerate(network.heads):
        part = Prototypes(1, 1, 1, heads, [[network.square_slope[axis]]], [ZERO], [ZERO])
        line = domain.axes((axis,))
        low, high = line.ends[0]
        tab = taylor.table(1, FORM_ORDER)
        pieces = []
        for k in range(1 << levels):
            box = line.box(((levels, k),))
            moved = taylor.add(taylor.variable(tab, box, 0), taylor.constant(tab, (low + high) / 2), -1)
            scaled = taylor.scale(moved, ONE / spacing[axis])
            pieces.append(
                taylor.bounds(taylor.add(part.forms(box, FORM_ORDER)[0], taylor.multiply(scaled, scaled), -1))
            )
        if not all(a.is_finite() and b.is_finite() for a, b in pieces):
            raise Refused("the squares written by attention could not be enclosed")
        total = total + min(a.lower() for a, _ in pieces).union(max(b.upper() for _, b in pieces))
    return total
