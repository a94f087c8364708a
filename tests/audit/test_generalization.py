"""Verdicts on generalization: values by hand, every parameter in the bits, and no bound that forgets the class."""

from __future__ import annotations

import math

import pytest

from audit.pre_norm_checkpoint import checkpoint
from certiformer.audit.form import Coverage
from certiformer.audit.generalization import generalization, stored_bits
from certiformer.audit.measure import measure
from certiformer.audit.verdict import VERDICTS, Given, Verdict

PLAIN = checkpoint()
PARAMETERS = sum(weight.count for weight in PLAIN.weights())
COVERAGE = Coverage(PARAMETERS, PARAMETERS)


def verdicts(given: Given) -> dict[str, Verdict]:
    return {each.id: each for each in generalization(PLAIN, measure(PLAIN), COVERAGE, given)}


def test_every_parameter_is_in_the_bits():
    assert stored_bits(PLAIN, COVERAGE) == 64 * PARAMETERS
    assert stored_bits(PLAIN, Coverage(PARAMETERS + 10, PARAMETERS)) == 64 * (PARAMETERS + 10)


def test_the_bound_by_bits():
    found = verdicts(Given(tokens=10**6, loss=0.1, delta=0.05))["bounds.compression"]
    bits = 64 * PARAMETERS
    nats = bits * math.log(2) + 2 * math.log(bits) + math.log(20)
    assert found.verdict == "holds" and math.isclose(found.value, 0.1 + math.sqrt(nats / 2e6), rel_tol=1e-12)
    assert verdicts(Given(tokens=100))["bounds.compression"].verdict == "vacuous"
    fewer = verdicts(Given(tokens=10**6, loss=0.1, bits=100))["bounds.compression"]
    assert fewer.value < found.value
    asked = verdicts(Given())["bounds.compression"]
    assert asked.verdict == "holds-if" and asked.details["bits"] == bits


def test_one_path_counts_the_class_too():
    """The last term alone would be a bound for a model that was chosen before the path."""
    found = verdicts(Given(tokens=10**9, rho=0.5))["bounds.mixing_path"]
    blocks = next(factor.value for factor in found.factors if factor.name == "blocks")
    assert found.verdict == "holds"
    assert found.value > 2 * math.sqrt(2 * 64 * PARAMETERS * math.log(2) / blocks)
    assert verdicts(Given(tokens=10**5, rho=0.9))["bounds.mixing_path"].verdict == "vacuous"


def test_all_theorems_have_a_verdict_and_stacks_a_reason():
    found = verdicts(Given(samples=100, tokens=100, rho=0.5))
    assert set(found) == {
        f"bounds.{name}"
        for name in (
            "compression", "normed_stack", "stack_by_count", "trauger_one_layer", "trauger_layers", "masked_token", "edelman_head",
            "low_rank_head", "mixing_path",
        )
    }  # fmt: skip
    assert all(each.verdict in VERDICTS for each in found.values())
    assert "residuals, which this model has" in found["bounds.masked_token"].sentence


@pytest.mark.parametrize("delta", [0.01, 0.1])
def test_more_confidence_costs_more(delta):
    usual = verdicts(Given(tokens=10**9, rho=0.5, delta=0.05))
    other = verdicts(Given(tokens=10**9, rho=0.5, delta=delta))
    for name in ("bounds.compression", "bounds.mixing_path"):
        assert (other[name].value > usual[name].value) == (delta < 0.05)
