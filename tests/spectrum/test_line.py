"""Lines: the interval against resampling as it is defined, and a line that is not straight."""

from __future__ import annotations

import numpy as np
import pytest

from certiformer.spectrum.decay import RESAMPLES, fit_line


@pytest.mark.parametrize("points", [4, 31, 200])
def test_the_interval_is_that_of_the_resampled_residuals(points):
    """Fitting a line to every resample is slow and gives the same slopes."""
    rng = np.random.default_rng(points)
    x = np.log(np.arange(2.0, points + 2.0))
    y = 1.0 - 0.7 * x + 0.1 * rng.normal(size=points)
    slope, intercept = np.polyfit(x, y, 1)
    widened = (y - intercept - slope * x) * np.sqrt(points / (points - 2))
    drawn = np.random.default_rng(0).integers(points, size=(RESAMPLES, points))
    slopes = [np.polyfit(x, intercept + slope * x + widened[each], 1)[0] for each in drawn]
    found = fit_line(x, y)
    assert (found.slope, found.intercept) == pytest.approx((slope, intercept), rel=1e-9)
    assert found.interval == pytest.approx(np.quantile(slopes, [0.025, 0.975]), rel=1e-9)
    # Negative control: other draws give another interval.
    assert fit_line(x, y, seed=1).interval != pytest.approx(found.interval, rel=1e-6)


def test_a_parabola_is_not_straight():
    x = np.arange(9.0)
    assert fit_line(x, (x - 4.0) ** 2).straightness == pytest.approx(0.0, abs=1e-12)
