"""Float64 boxes contain the real cells they stand for, with no tolerance."""

import numpy as np
import pytest
from flint import arb

from certiformer.kernel.balls import BallDomain, working_precision
from certiformer.kernel.rules import MAX_DEPTH
from certiformer.target import parse_domain
from certiformer.verify import FloatDomain
from certiformer.verify import bounder as domain_module

TEXTS = ["[0, 2*pi]", "[-1/3, 1e-9]", "[1e6, 1e6+1/7]", "[-exp(1), sqrt(2)]", "[0.1, 0.3]"]


def outside(text: str, pad: float) -> int:
    """How many of many random cells stick out of their float64 box."""
    working_precision()
    exact = BallDomain(parse_domain(text))
    rough = FloatDomain(exact)
    random = np.random.default_rng(0)
    count = 0
    for depth in [0, 1, 2, 5, 11, 23, 40]:
        index = int(random.integers(0, 2**depth))
        for k in {0, index, 2**depth - 1}:
            centre, radius = rough.boxes(np.array([[depth]]), np.array([[k]]))
            box = exact.box(((depth, k),))
            low = arb(float(centre[0, 0])) - arb(float(radius[0, 0]))
            high = arb(float(centre[0, 0])) + arb(float(radius[0, 0]))
            count += not (low <= box.low(0) and box.high(0) <= high)
    return count


@pytest.mark.parametrize("text", TEXTS)
def test_boxes_contain_their_cells(text):
    assert outside(text, domain_module.PAD) == 0


def test_without_the_pad_some_cell_sticks_out(monkeypatch):
    monkeypatch.setattr(domain_module, "PAD", 0.0)
    assert sum(outside(text, 0.0) for text in TEXTS) > 0


@pytest.mark.parametrize("text", TEXTS)
def test_inner_box_is_inside_the_real_domain(text):
    working_precision()
    exact = BallDomain(parse_domain(text))
    rough = FloatDomain(exact)
    assert exact.contains([arb(float(rough.inner_low[0]))])
    assert exact.contains([arb(float(rough.inner_high[0]))])


def test_depth_limit_is_representable():
    assert MAX_DEPTH < 62
