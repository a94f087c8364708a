"""Norms, ranks, products and decay exponents: against their definitions, exact cases and ball arithmetic."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from flint import acb_mat, arb_mat, ctx

from certiformer.errors import BadInput
from certiformer.spectrum import (
    decay_exponent,
    decay_exponents,
    lanczos,
    largest_eigenvalue,
    norms,
    one_pass,
    product_values,
    products,
    ranks,
    ranks_of_each,
    singular_values,
    sums,
    value_error,
)
from theorems.sine_matrices import OUTPUT, SCORES, VALUE, matrix


@pytest.mark.parametrize(
    ("w", "wanted"),
    [
        (SCORES, (1.053830, 1.964111, 5.508891, 5.516211, 13.753358, 2.065609, 2.220175)),
        (VALUE, (1.171060, 2.183909, 6.140728, 6.140019, 15.961412, 2.717646, 2.298694)),
        (OUTPUT, (1.027004, 1.947372, 5.473852, 5.476284, 13.963771, 2.066688, 2.090878)),
    ],
)
def test_reference_norms(w, wanted):
    n = norms(w)
    found = (
        n.spectral, n.frobenius, n.l21_columns, n.l21_rows, n.l11, n.largest_column_l1, n.largest_row_l1,
    )  # fmt: skip
    assert tuple(round(x, 6) for x in found) == wanted


def test_the_orientation_is_what_the_names_say():
    w = np.array([[3.0, 4.0, 0.0], [0.0, 0.0, 12.0]])
    n, t = norms(w), norms(w.T)
    assert (n.l21_rows, n.l21_columns) == (17.0, 19.0) == (t.l21_columns, t.l21_rows)
    assert (n.largest_row_l1, n.largest_column_l1) == (12.0, 12.0) and n.largest_row_l2 == 12.0
    assert t.largest_row_l2 == 12.0 and t.largest_column_l1 == 12.0
    assert n.l11 == t.l11 == 19.0


def exact_largest_value(w):
    """sqrt of the largest eigenvalue of W^T W in balls."""
    ctx.prec = 200
    gram = arb_mat(w.T.tolist()) * arb_mat(w.tolist())
    eigenvalues = [z.real for z in acb_mat(gram).eig(multiple=True)]
    return max(eigenvalues, key=lambda x: float(x.mid())).sqrt()


@pytest.mark.parametrize("shape", [(6, 6), (5, 9), (60, 3)])
def test_the_error_bar_holds(shape):
    """Against balls, for both routes (60 x 3 goes through the Gram matrix)."""
    for s in (0.3, 1.1, 2.7):
        w = matrix(*shape, s)
        n, exact = norms(w), exact_largest_value(w)
        assert abs(exact - n.spectral) <= n.spectral_error
        assert n.spectral_error < 1e-11 * n.spectral


def test_both_routes_agree_at_the_large_end():
    w = matrix(400, 20, 0.7)
    direct = np.linalg.svd(w, compute_uv=False)
    bar = value_error(float(np.linalg.norm(w)), float(direct[0]), (400, 20))
    assert abs(singular_values(w)[0] - direct[0]) <= bar
    assert np.allclose(singular_values(w.T), direct, rtol=1e-10)


def test_extreme_weights():
    assert norms(np.full((3, 3), 1e300)).spectral == pytest.approx(3e300, rel=1e-12)
    assert norms(np.full((2, 2), 5e-324)).frobenius > 0
    zero = norms(np.zeros((4, 2)))
    assert zero.spectral == zero.l11 == zero.spectral_error == 0
    assert math.isnan(norms(np.array([[np.nan, 1.0]])).spectral) and math.isnan(norms(np.array([[np.inf]])).l11)
    assert norms(np.array([[-2.0]])).spectral == 2
    assert norms(np.zeros((0, 3))).spectral == 0


def test_ranks():
    """A product of rank 3 has rank 3; a peer reports 200."""
    rng = np.random.default_rng(0)
    w = rng.normal(size=(200, 3)) @ rng.normal(size=(3, 200))
    found = ranks(singular_values(w), 200)
    assert found.numerical == 3
    assert (
        1 <= found.stable <= 3 and 1 <= found.participation <= found.effective <= 3 + 1e-9
    )  # the noise counts a little
    assert ranks(np.ones(5), 5).effective == pytest.approx(5)
    assert ranks(np.zeros(3), 3).numerical == 0
    assert ranks(np.array([1.0, 1e-3]), 2, tolerance=1e-2).numerical == 1
    assert math.isnan(ranks(np.array([np.nan]), 1).stable)


def test_products_through_their_cores():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(3, 40, 5)), rng.normal(size=(3, 40, 5))
    found = product_values(a, b)
    assert found.shape == (3, 5)
    for h in range(3):
        assert np.allclose(found[h], np.linalg.svd(a[h] @ b[h].T, compute_uv=False)[:5], rtol=1e-12)
    wide = product_values(rng.normal(size=(2, 3)), rng.normal(size=(4, 3)))
    assert wide.shape == (2,)


def test_small_values_of_a_product_keep_their_digits():
    """sigma = 1 and 1e-12: a Gram matrix of either would lose the second."""
    q = np.linalg.qr(np.random.default_rng(2).normal(size=(30, 2)))[0]
    assert product_values(q * [1.0, 1e-6], q * [1.0, 1e-6]) == pytest.approx([1.0, 1e-12], rel=1e-9)


def test_the_exponent_and_its_interval():
    k = np.arange(1.0, 101.0)
    assert decay_exponent(k**-0.55).alpha == pytest.approx(0.55, abs=1e-12)
    assert decay_exponent(3 * k**-2.0, window=(5, 50)).constant == pytest.approx(3)
    rng, hits = np.random.default_rng(0), 0
    for seed in range(200):
        noisy = k**-1.0 * np.exp(0.2 * rng.normal(size=100))
        low, high = decay_exponent(noisy, seed=seed).interval
        hits += low <= 1 <= high
    assert 180 <= hits <= 199  # 95 % of 200, within four standard deviations


def test_rounding_never_enters_the_window():
    values = np.concatenate([np.arange(1.0, 9.0) ** -1, np.full(50, 1e-16)])
    assert decay_exponent(values).window == (2, 8)
    with pytest.raises(BadInput, match="needs 4 singular values above 1e-13 of the largest, the window has 2"):
        decay_exponent(np.array([1.0, 0.5, 0.3]))
    with pytest.raises(BadInput, match="not from 3 to 2"):
        decay_exponent(values, window=(3, 2))


@pytest.mark.parametrize("shape", [(7, 3), (3, 7), (1, 1), (5, 1), (0, 3), (4, 4)])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_sums_in_parts_are_those_of_the_whole(shape, kind, monkeypatch):
    """In whole numbers, where every order of adding gives the same, and a part is one row or two."""
    w = np.random.default_rng(0).integers(-9, 9, shape).astype(kind)
    for part in (1, 2 * max(1, min(shape)), 1 << 20):
        monkeypatch.setattr(one_pass, "PART", part)
        for gram in (True, False):
            found, exact = sums(w, gram), w.astype(np.float64)
            assert found.largest == np.abs(exact).max(initial=0)
            assert np.array_equal(found.row_sizes, np.abs(exact).sum(1))
            assert np.array_equal(found.column_sizes, np.abs(exact).sum(0))
            assert np.array_equal(found.row_squares, (exact**2).sum(1))
            assert np.array_equal(found.column_squares, (exact**2).sum(0))
            wanted = exact.T @ exact if shape[0] >= shape[1] else exact @ exact.T
            assert np.array_equal(found.gram, wanted if gram else np.zeros((0, 0)))


def test_float32_is_added_in_float64():
    """2^24 + 1 is not a number of float32: adding there would lose the ones."""
    w = np.array([[2.0**24], [1.0], [1.0]], np.float32)
    assert sums(w).column_sizes.tolist() == [2.0**24 + 2] and norms(w).l11 == 2.0**24 + 2
    assert norms(np.full((2, 2), 3e38, np.float32)).frobenius == pytest.approx(6e38, rel=1e-6)


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [(0, 0), (8, 2)])
def test_entries_that_are_not_finite_show(odd, place):
    w = np.ones((9, 3), np.float32)
    w[place] = odd
    assert not math.isfinite(sums(w).largest) and math.isnan(norms(w).spectral)


def test_the_largest_eigenvalue_is_that_of_the_decomposition():
    rng = np.random.default_rng(0)
    for side in (1, 2, 5, 60, 200):
        w = rng.normal(size=(2 * side, side))
        exact = np.linalg.eigvalsh(w.T @ w)[-1]
        assert largest_eigenvalue(w.T @ w, 1e-9) == pytest.approx(exact, rel=1e-9)
        # float32 keeps seven digits, of which the steps and the product cost one.
        assert largest_eigenvalue((w.T @ w).astype(np.float32), 1e-4) == pytest.approx(exact, rel=1e-4)
    assert largest_eigenvalue(np.zeros((4, 4)), 1e-4) == 0.0
    # All eigenvalues but one are equal: a start in the others alone would miss it, a random one does not.
    assert largest_eigenvalue(np.diag([1.0] * 50 + [1.001]), 1e-12) == pytest.approx(1.001, rel=1e-9)


def test_what_does_not_converge_is_decomposed(monkeypatch):
    monkeypatch.setattr(lanczos, "STEPS", 2)
    w = np.random.default_rng(0).normal(size=(90, 80))
    assert largest_eigenvalue(w.T @ w, 1e-12) == pytest.approx(np.linalg.eigvalsh(w.T @ w)[-1], rel=1e-12)


@pytest.mark.parametrize("smallest", [0.5, 1e-9])
def test_what_is_known_of_products(smallest):
    """Of well conditioned heads by Cholesky factors, of others by QR factors."""
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(3, 40, 5)), rng.normal(size=(3, 30, 5))
    left[1, :, 4] *= smallest
    found, whole = products(left, right), left @ right.swapaxes(1, 2)
    exact = np.linalg.svd(whole, compute_uv=False)[:, :5]
    # All digits of each value by QR; by Cholesky all but those of 40 u (k^2 + k^2), and k is below 20.
    assert np.allclose(found.values, exact, rtol=1e-11)
    assert (np.abs(found.values[:, 0] - exact[:, 0]) <= found.errors).all()
    assert (found.errors < 1e-10 * exact[:, 0]).all()
    assert np.allclose(found.row_lengths, np.linalg.norm(whole, axis=2), rtol=1e-12)
    assert np.allclose(found.column_lengths, np.linalg.norm(whole, axis=1), rtol=1e-12)
    assert np.allclose(found.left_norms, np.linalg.norm(left, 2, axis=(1, 2)), rtol=1e-12)
    assert np.allclose(found.right_norms, np.linalg.norm(right, 2, axis=(1, 2)), rtol=1e-12)


def test_a_head_in_bad_condition_shows_that_the_other_route_is_needed(monkeypatch):
    """Negative control: forced through the Gram matrix, the smallest value has lost its digits."""
    q = np.linalg.qr(np.random.default_rng(2).normal(size=(30, 2)))[0]
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    heads = (q * [1.0, 1e-7] @ turn)[None]  # the product is q diag(1, 1e-14) q^T
    assert products(heads, heads).values[0] == pytest.approx([1.0, 1e-14], rel=1e-6, abs=0)
    monkeypatch.setattr(sys.modules["certiformer.spectrum.products"], "SAFE", 0.0)
    assert products(heads, heads).values[0, 1] != pytest.approx(1e-14, rel=1e-6, abs=0)


def test_products_of_zeros_and_of_wide_heads():
    zero = products(np.zeros((1, 4, 2)), np.ones((1, 4, 2)))
    assert zero.values.tolist() == [[0.0, 0.0]] and zero.errors.tolist() == [0.0] and zero.left_norms.tolist() == [0.0]
    left, right = np.random.default_rng(0).normal(size=(2, 1, 3, 6))  # rank 3: no Cholesky factor of the Gram matrix
    exact = np.linalg.svd(left[0] @ right[0].T, compute_uv=False)
    assert products(left, right).values[0] == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("size", [1e-300, 1e-170, 1e170])
def test_products_whose_squares_overflow_or_vanish(size):
    """The same figures as of factors near one, times the sizes; the product of the two sizes is finite here."""
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(3, 40, 5)), rng.normal(size=(3, 30, 5))
    other = 1e-100 if size > 1 else 1e100
    left[1] = 0.0
    plain, found = products(left, right), products(left * size, right * other)
    assert np.allclose(found.values / (size * other), plain.values, rtol=1e-11, atol=0)
    assert np.allclose(found.left_norms / size, plain.left_norms, rtol=1e-12, atol=0)
    assert np.allclose(found.right_norms / other, plain.right_norms, rtol=1e-12, atol=0)
    assert (found.errors[[0, 2]] > 0).all() and found.errors[1] == 0.0 and (found.values[1] == 0.0).all()


def test_products_that_are_not_finite_are_refused():
    huge = np.full((1, 4, 2), 1e200)
    for left, right in ((huge, huge), (np.full((1, 4, 2), np.nan), huge), (np.full((1, 4, 2), np.inf), huge)):
        with pytest.raises(np.linalg.LinAlgError), np.errstate(all="ignore"):
            products(left, right)


def test_ranks_and_decays_of_several_matrices_are_those_of_each():
    """Also beside rows that have none: zeros, a value that is not finite, too few values above rounding."""
    rng = np.random.default_rng(0)
    rows = np.sort(rng.exponential(size=(6, 9)), axis=1)[:, ::-1].copy()
    rows[1] = 0.0
    rows[2, 0] = np.inf
    rows[3, 0] = np.nan
    rows[4, 3:] = 0.0
    found = ranks_of_each(rows, 9)
    for row, each in zip(rows, found, strict=True):
        assert repr(each) == repr(ranks(row, 9))  # NaN equals nothing, itself included
    assert found[1] == ranks(np.zeros(9), 9) and found[1].stable == 0.0
    assert np.isnan([found[2].stable, found[3].effective]).all() and found[4].numerical == 3
    decays = decay_exponents(rows)
    assert [each is None for each in decays] == [False, True, True, True, True, False]
    for place in (0, 5):
        alone, together = decay_exponent(rows[place]), decays[place]
        assert together.window == alone.window and together.interval == pytest.approx(alone.interval, rel=1e-12)
        assert (together.alpha, together.constant) == pytest.approx((alone.alpha, alone.constant), rel=1e-12)
