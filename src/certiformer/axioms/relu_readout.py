"""One output of a block behind its attention: residual, ReLU units and read-out, evaluated in balls.

Rules about all sequences over an alphabet enclose the stream after a head, for every count that can occur, and ask what one
output makes of it. Only the units that reach that output are visited, and only the coordinates that they read matter, so
that a coordinate of which nothing is known does no harm where nothing looks at it.
"""

from __future__ import annotations

from collections.abc import Mapping

from flint import arb, arb_mat

from certiformer.kernel import Refused
from certiformer.kernel.balls import ZERO
from certiformer.kernel.problem import Bundle, PointNetwork

_FFN = "blocks.0.ffn"


class ReluReadout:
    """Output number `output` of a transformer with one block, as a function of the stream after its head."""

    def __init__(self, network: PointNetwork, output: int):
        read = network.tensors["readout.weight"].matrix()
        width = read.nrows()
        column = arb_mat(width, 1, [read[i, output] for i in range(width)])
        self.direct = [(i, column[i, 0]) for i in range(width) if not column[i, 0].is_zero()]
        self.constant = network.tensors["readout.bias"].row()[output]
        self.bundles: list[Bundle] = []
        self.single: list[tuple[int, arb, arb, arb]] = []  # coordinate, slope, shift, outgoing weight
        if network.config["blocks"][0]["ffn"] is not None:
            self._read_units(network, column)
        places = [i for i, _ in self.direct] + [place for place, _, _, _ in self.single]
        self.used = sorted({*places, *(i for bundle in self.bundles for i, _ in bundle.direction)})
        self._known: dict[tuple, arb] = {}

    def _read_units(self, network: PointNetwork, column: arb_mat) -> None:
        up, width = network.tensors[f"{_FFN}.up"], column.nrows()
        weights = network.tensors[f"{_FFN}.down"].matrix() * column
        shifts = network.tensors[f"{_FFN}.up_bias"].row()
        self.constant = self.constant + (arb_mat(1, width, network.tensors[f"{_FFN}.down_bias"].row()) * column)[0, 0]
        units = up.shape[1]
        groups: dict[tuple[float, ...], list[int]] = {}
        for i in range(units):
            if not weights[i, 0].is_zero():
                groups.setdefault(tuple(up.data[c * units + i] for c in range(width)), []).append(i)
        for direction, own in groups.items():
            places = [c for c, slope in enumerate(direction) if slope]
            if len(own) == 1 and len(places) == 1:
                (i,), (place,) = own, places
                self.single.append((place, arb(direction[place]), shifts[i], weights[i, 0]))
            else:
                self.bundles.append(Bundle(direction, [(-shifts[i], [weights[i, 0]]) for i in own]))

    def at(self, stream: Mapping[int, arb]) -> arb:
        """The output at a stream of balls, of which the coordinates in `used` are enough."""
        key = tuple((stream[i].mid().man_exp(), stream[i].rad().man_exp()) for i in self.used if stream[i].is_finite())
        if len(key) < len(self.used):
            raise Refused("the stream behind the head could not be enclosed")
        if key not in self._known:
            total = [self.constant + sum((stream[i] * w for i, w in self.direct), ZERO)]
            for bundle in self.bundles:
                bundle.add(stream, total)
            for place, slope, shift, weight in self.single:
                total[0] = total[0] + weight * (slope * stream[place] + shift).nonnegative_part()
            self._known[key] = total[0]
        return self._known[key]


def hull_of(values: list[arb]) -> arb:
    """A ball that contains all the given ones; the number itself when they are one and the same exact number."""
    result = values[0]
    for value in values[1:]:
        if not (value.is_exact() and result.is_exact() and value == result):
            result = result.union(value)
    return result
