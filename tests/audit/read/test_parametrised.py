"""Weight norm and spectral norm are rebuilt by their formulas; what belongs to no formula is refused."""

from __future__ import annotations

import numpy as np
import pytest

from audit.read import synthetic as one
from audit.read.memory import in_memory
from certiformer.audit.read import read_tensors
from certiformer.errors import BadInput

PLACE = "encoder.layer.0.intermediate.dense"
RNG = np.random.default_rng(3)
V = RNG.standard_normal((one.F, one.D))


def with_parts(parts: dict[str, np.ndarray]):
    made = one.bert("")
    tensors = {name: array for name, array in made.tensors().items() if name != f"{PLACE}.weight"}
    checkpoint, coverage = read_tensors(in_memory(tensors | parts, made.config))
    return checkpoint.layers[0].ffn[0].up, coverage, sum(array.size for array in tensors.values())


@pytest.mark.parametrize(
    ("v", "g"), [("weight_v", "weight_g"), ("parametrizations.weight.original1", "parametrizations.weight.original0")]
)
@pytest.mark.parametrize("lengths", [(one.F, 1), (1, one.D), ()])
def test_weight_norm(v, g, lengths):
    """Row by row, column by column, or as a whole: the shape of g says over which axes v is normed."""
    length = RNG.uniform(1, 2, lengths)
    up, coverage, rest = with_parts({f"{PLACE}.{v}": V, f"{PLACE}.{g}": length})
    norms = {(one.F, 1): np.linalg.norm(V, axis=1, keepdims=True), (1, one.D): np.linalg.norm(V, axis=0, keepdims=True)}
    wanted = length * V / norms.get(lengths, np.linalg.norm(V))
    # Two roundings of a norm and of a quotient, on numbers below ten.
    assert np.abs(up.read() - wanted).max() < 1e-14
    assert up.source.tensor == f"{PLACE}.{v}" and f"{PLACE}.{g}" in up.source.made
    assert coverage.accounted == coverage.total == rest + V.size + length.size and not coverage.buffers


@pytest.mark.parametrize(
    ("v", "left", "right"),
    [
        ("weight_orig", "weight_u", "weight_v"),
        *[tuple(f"parametrizations.weight.{n}" for n in ("original", "0._u", "0._v"))],
    ],
)
def test_spectral_norm(v, left, right):
    a, b = RNG.standard_normal(one.F), RNG.standard_normal(one.D)
    up, coverage, rest = with_parts({f"{PLACE}.{v}": V, f"{PLACE}.{left}": a, f"{PLACE}.{right}": b})
    assert np.abs(up.read() - V / (a @ V @ b)).max() < 1e-13
    assert coverage.accounted == coverage.total == rest + V.size
    assert coverage.buffers == tuple(sorted((f"{PLACE}.{left}", f"{PLACE}.{right}")))


@pytest.mark.parametrize(
    "parts",
    [
        {"parametrizations.weight.original1": V},
        {"parametrizations.weight.original": V, "parametrizations.weight.0.base": V},
        {"weight_v": V, "weight_g": np.ones((one.D, 1))},
        {"weight_v": V, "weight_g": np.ones((one.F, 1)), "weight": V},
        {"weight_orig": V, "weight_u": np.ones(one.D), "weight_v": np.ones(one.D)},
        {"weight_orig": np.array(1.0), "weight_u": np.array(1.0), "weight_v": np.array(1.0)},
    ],
)
def test_what_fits_no_formula_is_refused(parts):
    with pytest.raises(BadInput):
        with_parts({f"{PLACE}.{name}": array for name, array in parts.items()})
