"""One head per region: the built mechanism has the error of the theorem, and the telescoped repair keeps its bound."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

from certiformer.errors import BadInput
from certiformer.expressivity.one_head_per_region import (
    one_head_per_region,
    printed_error,
    telescoped_bound,
    templates,
)

REGIONS = [2, 4, 16, 64]


def ball(number):
    fraction = Fraction(number)
    return arb(fmpq(fraction.numerator, fraction.denominator))


def exact_output(model, x):
    """The real-number output of the stored model at x, in balls: the sink has score and value 0, the data token not."""
    head = "blocks.0.attention.groups.0"
    keys, outputs = model.tensors[f"{head}.key"][:, :, 0], model.tensors[f"{head}.output"][:, 0, 2]
    total = arb(0)
    for (slope, offset, _), value in zip(keys.tolist(), outputs.tolist(), strict=True):
        total += ball(value) / (1 + (-(ball(slope) * ball(x) + ball(offset))).exp())
    return total


def tent(x):
    return ball(1 - abs(2 * Fraction(x) - 1))


def grid(regions):
    """The ends, the faces and points in between."""
    return [Fraction(k, 6 * regions) for k in range(6 * regions + 1)]


def test_the_templates_are_exact_and_sum_to_half_their_number():
    for regions in [*REGIONS, 1024]:
        expected = [1 - abs(2 * Fraction(2 * i + 1, 2 * regions) - 1) for i in range(regions)]
        assert [Fraction(y) for y in templates(regions).tolist()] == expected
        assert sum(expected) == Fraction(regions, 2)


@pytest.mark.parametrize("regions", REGIONS)
@pytest.mark.parametrize("sharpness", [1, 8, 64])
def test_the_printed_values_are_wrong_by_half_the_number_of_regions(regions, sharpness):
    model = one_head_per_region(regions, sharpness)
    with ctx.workprec(200):  # e^-64 has to be seen
        errors = [abs(exact_output(model, x) - tent(x)) for x in grid(regions)]
        lower, upper = printed_error(regions, sharpness)
        # The lower bound is that at x = 1, the upper one holds everywhere: zero tolerance, in balls.
        assert errors[-1] > lower
        assert all(error < upper for error in errors)
        assert regions == 2 or errors[-1] > 1  # worse than the output 0


@pytest.mark.parametrize("regions", REGIONS)
@pytest.mark.parametrize("sharpness", [1, 8, 1024])
def test_telescoped_values_keep_their_bound(regions, sharpness):
    model = one_head_per_region(regions, sharpness, telescoped=True)
    errors = [abs(exact_output(model, x) - tent(x)) for x in grid(regions)]
    assert all(error < telescoped_bound(regions, sharpness) for error in errors)


def test_the_telescoped_bound_is_tight_for_sharp_heads():
    """The summand 1/M cannot be smaller: it is attained at x = 1, up to e^-sharpness."""
    model = one_head_per_region(16, 1024, telescoped=True)
    error = abs(exact_output(model, 1) - tent(1))
    assert error.overlaps(ball(Fraction(1, 16)))  # the balls have a radius of about 1e-15
    assert telescoped_bound(16, 1024) < error * ball(1.01)


def test_the_telescoped_bound_needs_the_blend():
    """Negative control: 1/M alone is violated by soft heads, so the term of the sharpness is not decoration."""
    model = one_head_per_region(16, 1, telescoped=True)
    assert max((abs(exact_output(model, x) - tent(x)) for x in grid(16)), key=float) > ball(Fraction(1, 16))


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.integers(1, 5), st.data())
def test_no_choice_of_hyperplanes_helps(power, data):
    """Part (a): any affine scores that wake every head up on its own region, half-lines to either side."""
    regions = 2**power
    values = templates(regions)
    ends = [0.0, 0.0]
    weakest = 1.0
    for i, value in enumerate(values):
        slope = data.draw(st.floats(-200, 200))
        faces = slope * np.array([i / regions, (i + 1) / regions])
        offset = data.draw(st.floats(-5, 5)) - faces.min()
        weights = 1 / (1 + np.exp(-(slope * np.array([0.0, 1.0]) + offset)))
        weakest = min(weakest, float(1 / (1 + np.exp(-(faces.min() + offset)))))
        ends = [end + value * weight for end, weight in zip(ends, weights.tolist(), strict=True)]
    # Sums of at most 32 float64 terms.
    assert max(ends) >= weakest * regions / 4 - 1e-12


@pytest.mark.parametrize("telescoped", [False, True])
def test_the_model_computes_what_the_balls_say(telescoped):
    model = one_head_per_region(16, 8, telescoped)
    points = [float(x) for x in grid(16)]
    expected = [float(exact_output(model, x)) for x in points]
    # Sixteen heads with values up to 1, in float64.
    np.testing.assert_allclose(model.evaluate(np.array(points)[:, None])[:, 0], expected, atol=1e-13, rtol=0)


def test_without_a_sink_no_head_is_dormant():
    model = one_head_per_region(8, 64, sink=False)
    assert set(model.evaluate(np.linspace(0, 1, 33)[:, None])[:, 0].tolist()) == {4.0}


def test_the_feed_forward_network_is_the_identity():
    model = one_head_per_region(4, 8)
    (block,) = model.config.blocks
    assert block.ffn is not None and block.ffn.kind == "identity" and not block.ffn.residual
    np.testing.assert_array_equal(model.tensors["blocks.0.ffn.up"] @ model.tensors["blocks.0.ffn.down"], np.eye(3))


@pytest.mark.parametrize(
    ("regions", "sharpness", "message"),
    [
        (3, 8, "power of two"),
        (1, 8, "power of two"),
        (4.0, 8, "power of two"),
        (4, 0, "sharpness"),
        (4, 0.5, "sharpness"),
    ],
)
def test_what_would_need_rounding_is_refused(regions, sharpness, message):
    for function in (one_head_per_region, printed_error, telescoped_bound):
        with pytest.raises(BadInput, match=message):
            function(regions, sharpness)
