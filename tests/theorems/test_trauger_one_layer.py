"""One attention layer: reference values, what it depends on and what not, and the softmax constant behind it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from certiformer.bounds.chaining import Cover, linear_cover
from certiformer.bounds.numbers import above
from certiformer.bounds.trauger_one_layer import PRINTED, SHARP, Head, as_printed, complexity, several_heads, trivial
from theorems.sine_matrices import OUTPUT, READOUT, SCORES, VALUE, l11

# In the layout (out, in) the matrices of the reference are transposed: rows there are columns here.
HEAD = Head(
    8, l11(SCORES), float(np.abs(VALUE).sum(0).max()), float(np.abs(OUTPUT).sum(0).max()), float(np.abs(READOUT).sum())
)


def test_reference_norms():
    assert [round(x, 6) for x in (HEAD.l11, HEAD.value_rows, HEAD.output_rows, HEAD.readout)] == [
        13.753358, 2.717646, 2.066688, 1.932822,
    ]  # fmt: skip
    assert round(above(trivial(HEAD)), 6) == 10.855744


@pytest.mark.parametrize(
    ("sequences", "theorem", "corollary", "printed", "sharp"),
    [
        (10**4, 10.056482, 8.777151, None, None),
        (10**6, 2.521385, 1.949503, None, None),
        (10**8, 0.403712, 0.302129, 4.516792, 2.653511),
        (10**10, 0.055529, 0.040931, 0.716765, 0.397894),
    ],
)
def test_reference_values(sequences, theorem, corollary, printed, sharp):
    """The reference has no summand for the whole number of Maurey's terms; without it the values agree."""
    assert round(as_printed(HEAD, sequences), 6) == theorem
    assert round(as_printed(HEAD, sequences, corollary=True), 6) == corollary
    real = Cover(linear_cover(1, HEAD.l11, 8, 8).inverse_square)
    for constant, wanted in ((PRINTED, printed), (SHARP, sharp)):
        value = above(complexity(HEAD, sequences, constant, real))
        assert round(value, 6) == wanted if wanted is not None else value == above(trivial(HEAD))
        assert above(complexity(HEAD, sequences, constant)) >= value  # what we print has the summand


def test_it_grows_with_every_norm_and_falls_with_the_sample():
    base = above(complexity(HEAD, 10**10))
    for name in ("l11", "value_rows", "output_rows", "readout", "inputs", "lipschitz"):
        assert above(complexity(replace(HEAD, **{name: 1.1 * getattr(HEAD, name)}), 10**10)) > base
    values = [above(complexity(HEAD, m)) for m in (10**8, 10**9, 10**10, 10**11)]
    assert values == sorted(values, reverse=True)
    # About 1 / sqrt m, up to the logarithm: ten times the sample gains between 2 and sqrt 10.
    assert all(2 < a / b <= 10**0.5 for a, b in zip(values, values[1:], strict=False))


def test_a_negative_logarithm_gives_the_trivial_bound():
    assert as_printed(HEAD, 2) == as_printed(HEAD, 2, corollary=True) == above(trivial(HEAD))


def test_the_softmax_constant_is_one():
    """|softmax(a) - softmax(b)|_1 <= |a - b|_inf on random and on the worst pairs; 1 is nearly reached."""
    rng = np.random.default_rng(0)
    a, h = rng.normal(size=(20_000, 5)) * 3, rng.choice([-1.0, 1.0], size=(20_000, 5)) * 1e-3
    a[:2000] = np.array([0.0, 0.0, -30, -30, -30])
    h[:2000] = np.array([1, -1, 1, 1, 1]) * 1e-3

    def softmax(x):
        e = np.exp(x - x.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    ratio = np.abs(softmax(a + h) - softmax(a)).sum(1) / 1e-3
    assert 0.9999 < ratio.max() <= 1 + 1e-9  # differences of 1e-3 lose seven digits


def test_several_heads_cost_the_sum_of_their_bounds():
    """H equal heads cost H, where the route through covers of all maps costs H^1.5 (`bounds.masked_token`)."""
    small = replace(HEAD, l11=1.0, readout=0.5)
    one, other = (above(complexity(head, 10**10)) for head in (HEAD, small))
    assert np.isclose(above(several_heads((HEAD, small), 10**10)), one + other, rtol=1e-12) and one != other
    assert np.isclose(above(several_heads((HEAD,) * 4, 10**10)), 4 * one, rtol=1e-12)
