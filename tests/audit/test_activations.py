"""The Lipschitz constants of activations that the audit uses, proved in balls: no point has a larger slope.

On [-12, 12] intervals are bisected until the enclosure of the derivative is below the constant; beyond, a formula that falls.
"""

from __future__ import annotations

import math

import pytest
from flint import arb

from certiformer.audit.stack_norms_of import ACTIVATIONS

EDGE = 12
CUBE = arb("0.044715")
ROOT = (2 / arb.pi()).sqrt()


def logistic(x: arb) -> arb:
    return 1 / (1 + (-x).exp())


def gelu(x: arb) -> arb:
    return (1 + (x / arb(2).sqrt()).erf()) / 2 + x * (-x * x / 2).exp() / (2 * arb.pi()).sqrt()


def gelu_tanh(x: arb) -> arb:
    inner = ROOT * (x + CUBE * x**3)
    return (1 + inner.tanh()) / 2 + x * ROOT * (1 + 3 * CUBE * x**2) / (2 * inner.cosh() ** 2)


def silu(x: arb) -> arb:
    return logistic(x) * (1 + x * logistic(-x))


def gelu_sigmoid(x: arb) -> arb:
    return silu(arb("1.702") * x)  # x s(a x) has the derivative s(a x) + a x s'(a x): that of silu at a x


# For |x| >= EDGE: |derivative| <= 1 + this, by |x| phi(x), 2 |x| c (1 + 3 b x^2) e^(-2 c |x|) and |x| e^-|x|, which fall there.
BEYOND = {
    "gelu": EDGE * (-(arb(EDGE) ** 2) / 2).exp(),
    "gelu-tanh": 2 * EDGE * ROOT * (1 + 3 * CUBE * EDGE**2) * (-2 * ROOT * EDGE).exp(),
    "silu": EDGE * (-arb(EDGE)).exp(),
    "gelu-sigmoid": EDGE * (-arb(EDGE)).exp() * 2,
}
SLOPES = {"gelu": gelu, "gelu-tanh": gelu_tanh, "silu": silu, "gelu-sigmoid": gelu_sigmoid}


def pieces_above(slope, constant: float, limit: int = 20_000) -> int:
    """How many intervals could not be brought below the constant within the limit; 0 is a proof."""
    todo, done = [(-float(EDGE), float(EDGE))], 0
    while todo and done < limit:
        low, high = todo.pop()
        done += 1
        middle = (low + high) / 2
        if not abs(slope(arb(middle, (high - low) / 2))) <= constant:
            todo += [(low, middle), (middle, high)]
    return len(todo)


@pytest.mark.parametrize("name", SLOPES)
def test_no_slope_is_larger(name):
    constant = ACTIVATIONS[name]
    assert pieces_above(SLOPES[name], constant) == 0
    assert 1 + BEYOND[name] < constant
    # The control: 2e-4 less is not a bound, so the constant is not only generous.
    assert pieces_above(SLOPES[name], constant - 2e-4, limit=4000) > 0
    steps = [SLOPES[name](arb(k) / 1000) for k in range(3000)]
    assert any(step > constant - 2e-4 for step in steps)


def test_relu_and_tanh_have_slope_one():
    """relu' is 0 or 1, tanh' = 1 - tanh^2; 1 is reached, so no smaller constant would do."""
    assert ACTIVATIONS["relu"] == ACTIVATIONS["tanh"] == 1.0
    assert 1 - arb(0).tanh() ** 2 == 1
    assert all(1 - arb(k / 16).tanh() ** 2 < 1 for k in range(1, 100))


def test_every_constant_is_proved_here():
    assert set(ACTIVATIONS) == {*SLOPES, "relu", "tanh"}
    assert all(math.isfinite(constant) for constant in ACTIVATIONS.values())
