"""Dyadic blocks by FFT: Parseval, known exponents, truncation slopes, and the estimator on the same blocks."""

import numpy as np
import pytest

from certiformer.errors import BadInput
from certiformer.rates.slopes import fit_slope
from certiformer.rates.smooth_targets import (
    axis_sum,
    basis,
    filled_sample,
    grid_sample,
    kept_frequencies,
    least_squares_errors,
)
from certiformer.rates.spectral_smoothness import axis_blocks, block_norms, harmonic, smoothness, truncation_errors

ROUNDING = 1e-9  # exponents come from logarithms of norms that an FFT in float64 gives to 1e-13 of the largest


def test_every_frequency_is_in_one_block_and_the_norms_add_up_to_the_function():
    blocks = axis_blocks(16)
    assert blocks.tolist() == [0, 1, 2, 2, 3, 3, 3, 3, 4, 3, 3, 3, 3, 2, 2, 1]
    values = np.random.default_rng(0).standard_normal((16, 32))
    # Parseval in float64: a few hundred roundings of 1e-16.
    assert abs((block_norms(values) ** 2).sum() - (values**2).mean()) < 1e-13


def test_a_single_wave_fills_a_single_block():
    x = np.arange(32) / 32
    values = np.sqrt(2) * np.sin(2 * np.pi * 5 * x)[:, None] * np.sqrt(2) * np.cos(2 * np.pi * 2 * x)[None]
    norms = block_norms(values)
    assert abs(norms[3, 2] - 1) < 1e-12
    norms[3, 2] = 0
    assert norms.max() < 1e-12


@pytest.mark.parametrize("a", [(1.0, 1.0), (1.0, 2.0), (0.5, 1.5)])
def test_the_exponents_of_a_sum_over_axes_are_found(a):
    found = smoothness(grid_sample(a, 6, 256))
    assert np.allclose(found.a, a, atol=ROUNDING, rtol=0)
    assert found.kind == "both"
    assert abs(found.anisotropic - harmonic(a)) < ROUNDING
    assert abs(found.mixed - min(a)) < ROUNDING


def test_the_blocks_of_a_known_kink_are_found():
    # |sin(pi x)| has Fourier coefficients -2/pi / (4 l^2 - 1), so a block of 2^(s-1) frequencies has norm ~ 2^(-1.5 s).
    values = np.abs(np.sin(np.pi * np.arange(4096) / 4096))
    norms = block_norms(values)
    exact = []
    for s in range(1, 11):
        frequencies = np.arange(2 ** (s - 1), 2**s)
        exact.append(np.sqrt(2 * np.sum((2 / np.pi / (4.0 * frequencies**2 - 1)) ** 2)))
    # A coefficient at l < 64 is aliased from l - 4096 and l + 4096: (64 / 4032)^2 + (64 / 4160)^2 = 4.9e-4 of it at most.
    assert np.abs(norms[1:7] / exact[:6] - 1).max() < 4.9e-4
    # In the last block that is fitted, l < 1024, aliases add up to (1024 / 3072)^2 + (1024 / 5120)^2 = 15 percent: 0.02 in a
    # slope over ten blocks.
    assert abs(smoothness(values).a[0] + fit_slope(2.0 ** np.arange(1, 11), exact).value) < 0.02
    # A block that starts at l has a sum, not an integral: 0.8 / l of its norm. From l = 128 on a slope feels 0.005 of it.
    fine = block_norms(np.abs(np.sin(np.pi * np.arange(2**16) / 2**16)))
    assert abs(fit_slope(2.0 ** np.arange(8, 13), fine[8:13]).value + 1.5) < 0.01


@pytest.mark.parametrize("kind", ["mixed", "anisotropic"])
def test_filled_blocks_tell_mixed_from_anisotropic(kind):
    found = smoothness(filled_sample((1.0, 2.0), kind, 128, seed=3))
    assert found.kind == kind
    misfits = {"mixed": found.misfit_mixed, "anisotropic": found.misfit_anisotropic}
    right = misfits.pop(kind)
    (wrong,) = misfits.values()
    assert right is not None and wrong is not None
    assert right < 1e-20 < 1 < wrong
    assert abs(found.dagger - (1.0 if kind == "mixed" else 2 / 3)) < ROUNDING


def test_truncation_falls_with_a_dagger_and_not_with_another_exponent():
    values = grid_sample((1.0, 2.0), 8, 1024)
    levels = 2.0 * np.arange(2, 5) + 1e-9
    counts, mse, _ = truncation_errors(values, (1.0, 2.0), levels, "anisotropic")
    # The counts are (2^(2k+1) - 1)(2^(k+1) - 1), not 2^(3k+2), and the function ends at j = 8.
    assert counts.tolist() == [217, 1905, 15841]
    assert abs(fit_slope(counts, mse).value / 2 + 2 / 3) < 0.05
    # Planted fault: blocks kept by the wrong exponents cost more terms for the same error.
    counts, mse, _ = truncation_errors(values, (2.0, 1.0), levels, "anisotropic")
    assert abs(fit_slope(counts, mse).value / 2 + 2 / 3) > 0.2


def test_truncation_errors_are_the_energy_left_out():
    a, values = (1.0, 2.0), grid_sample((1.0, 2.0), 5, 128)
    _, mse, _ = truncation_errors(values, a, [3.0], "mixed")
    # Kept: gamma(s) < 3, so j + 1 < 3 on axis 1 and 2 (j + 1) < 3 on axis 2.
    left = sum(4.0**-j for j in range(2, 6)) + sum(16.0**-j for j in range(1, 6))
    assert abs(mse[0] - left) < 1e-12


def test_samples_that_cannot_be_analysed_are_refused():
    with pytest.raises(BadInput, match="power of two"):
        block_norms(np.zeros(12))
    with pytest.raises(BadInput, match="not finite"):
        block_norms(np.full(16, np.nan))
    with pytest.raises(BadInput, match="axis 1 cannot be fitted"):
        smoothness(np.ones(64))
    with pytest.raises(BadInput, match="mixed or anisotropic"):
        truncation_errors(np.zeros(16), [1.0], [2.0], "smooth")


def test_the_basis_is_orthonormal_and_counted_as_the_blocks_say():
    axis = np.arange(16) / 16
    points = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    frequencies = kept_frequencies((1.0, 2.0), 3.5, "anisotropic")
    assert len(frequencies) == 15 * 3  # |l_1| < 8, |l_2| < 2
    columns = basis(frequencies, points)
    assert np.abs(columns.T @ columns / len(points) - np.eye(45)).max() < 1e-12
    counted, _, _ = truncation_errors(np.zeros((64, 64)), (1.0, 2.0), [3.5], "anisotropic")
    assert counted[0] == 45


def test_least_squares_is_exact_without_noise_and_limited_by_it_with():
    generator = np.random.default_rng(1)
    a, test = (1.0, 2.0), generator.random((200, 2))
    x = generator.random((400, 2))
    y = axis_sum(x, a, 1)
    target = (test, axis_sum(test, a, 1))
    mse, _, terms = least_squares_errors(x, y, target, a, "mixed", [2.0, 5.0])
    assert mse < 1e-20
    assert terms == len(kept_frequencies(a, 5.0, "mixed"))
    noisy, _, terms = least_squares_errors(x, y + generator.standard_normal(400), target, a, "mixed", [5.0])
    # sigma^2 G / n within a factor of two.
    assert 0.5 < noisy / (terms / 400) < 2
    with pytest.raises(BadInput, match="too few"):
        least_squares_errors(x[:8], y[:8], target, a, "mixed", [5.0])
