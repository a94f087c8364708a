"""The bound on floating-point runs for random transformers of every combination of options.

Weights have random sizes, half of them are zero or powers of two in some tensors, and a few tensors are so small that products
underflow: the shortcuts of the analysis (exact products, absent terms, errors common to all keys) are all taken.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from certiformer.kernel.rounding.runs import run_error
from certiformer.model import Config, Transformer, tensor_specs
from certiformer.model.transformer import cast
from kernel.float_runs import TYPES, Machine, run
from kernel.networks import network_of
from kernel.test_runs import MACHINES, distance, domain_around
from model.cases import configs


def weights(config: Config, rng: np.random.Generator) -> dict[str, np.ndarray]:
    tensors = {}
    for name, spec in tensor_specs(config).items():
        if name.endswith("mask"):
            tensors[name] = rng.integers(0, 2, spec.shape)
            continue
        x = rng.normal(size=spec.shape) * 10.0 ** rng.uniform(-1.5, 1.7)
        if rng.random() < 0.5:
            x = x * (rng.random(spec.shape) < 0.5)
        if rng.random() < 0.3:
            x = np.sign(x) * 2.0 ** np.round(np.log2(np.abs(x) + 1e-3))
        tensors[name] = x * 2.0**-130 if rng.random() < 0.05 else x
    return tensors


def check(config: Config, dtype: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = cast(Transformer(config, weights(config, rng)), dtype)
    network = network_of(model)
    shape = (config.tokens, config.input.width or 1)
    middle = (rng.normal(size=network.dimension) * 10.0 ** rng.uniform(-1, 1)).astype(TYPES[dtype]).astype(float)
    found = run_error(network, domain_around(middle, 2.0 ** rng.uniform(-30, -4)), dtype, cells=2)
    if found.bound is None:
        return  # that there is a bound for ordinary models is tested elsewhere
    for options in MACHINES:
        with np.errstate(over="ignore", invalid="ignore"):  # rows of the last block that are not read may overflow
            outputs = run(model, middle.reshape(shape).tolist(), Machine(dtype, **options))
        assert np.all(np.isfinite(outputs))
        assert not distance(network, middle, outputs) > found.bound


continuous = configs.filter(lambda config: config.input.kind == "continuous")
dtypes = st.sampled_from(["float32", "bfloat16", "float64"])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(continuous, dtypes, st.integers(0, 2**32 - 1))
def test_no_random_transformer_leaves_the_bound(config, dtype, seed):
    check(config, dtype, seed)


@pytest.mark.slow
@settings(max_examples=1500, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(continuous, dtypes, st.integers(0, 2**32 - 1))
def test_many_random_transformers(config, dtype, seed):
    check(config, dtype, seed)
