"""Branch and bound with bounders whose truth is known."""

import numpy as np
import pytest

from certiformer.kernel.balls import BallDomain, working_precision
from certiformer.target import parse_domain
from certiformer.verify import Budget, FloatDomain, search

working_precision()
UNIT = FloatDomain(BallDomain(parse_domain("[0, 1]^2")))
LOTS = Budget(10**6, 60.0)


class Slope:
    """The exact bound of |x1 + 2 x2| plus an overestimation proportional to the width."""

    batch = 16
    start_depth = (0, 0)

    def __call__(self, centre, radius):
        self.seen = getattr(self, "seen", 0) + len(centre)
        return np.abs(centre @ [1, 2]) + radius @ [1, 2] + 3 * radius.sum(1), radius * [4, 5]


class Spike(Slope):
    """Reports nothing but not-a-number on every box that contains one hidden point."""

    def __call__(self, centre, radius):
        bound, scores = super().__call__(centre, radius)
        hidden = (np.abs(centre - [0.123456789, 0.987654321]) <= radius).all(1)
        return np.where(hidden, np.nan, bound), scores


def test_closes_and_the_upper_end_is_between_truth_and_threshold():
    run = search(Slope(), UNIT, 3.2, LOTS)
    assert run.closed
    assert 3.0 <= run.tree.upper() <= 3.2


def test_never_closes_below_the_truth():
    run = search(Slope(), UNIT, 2.99, Budget(5000, 60.0))
    assert not run.closed
    assert "boxes" in run.stopped
    assert run.tree.upper() > 2.99


def test_not_a_number_is_never_closed():
    run = search(Spike(), UNIT, 100.0, Budget(3000, 60.0))
    assert not run.closed


def test_time_budget_stops():
    assert "seconds" in search(Slope(), UNIT, 2.0, Budget(10**9, 0.05)).stopped


def test_resuming_gives_the_same_tree_as_one_go(tmp_path):
    whole = search(Slope(), UNIT, 3.1, LOTS)
    part = search(Slope(), UNIT, 3.1, Budget(40, 60.0), checkpoint=(tmp_path / "c", "s"))
    assert not part.closed
    from certiformer.verify import SplitTree

    tree = SplitTree.restore(tmp_path / "c", "s", 2)
    rest = search(Slope(), UNIT, 3.1, LOTS, tree=tree)
    assert rest.closed
    assert rest.tree.to_bytes() == whole.tree.to_bytes()


def test_the_caller_can_stop():
    run = search(Slope(), UNIT, 3.01, LOTS, progress=lambda boxes, still_open, tree: boxes > 30)
    assert run.stopped == "stopped by the caller"


@pytest.mark.parametrize("depth", [(0, 0), (3, 1)])
def test_start_depth_is_respected(depth):
    bounder = Slope()
    bounder.start_depth = depth
    run = search(bounder, UNIT, 1e9, LOTS)
    assert run.boxes == 2 ** sum(depth)
