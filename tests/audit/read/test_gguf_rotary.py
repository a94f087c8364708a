"""The rotary code of GGUF files: what the runtime multiplies sines and cosines by, and entries that are not understood."""

from __future__ import annotations

import math

import pytest

from audit.read.test_gguf_names import CASES, converted
from certiformer.audit import Given
from certiformer.audit.measure import measure
from certiformer.audit.pairwise_lipschitz import pairwise
from certiformer.audit.read import read_tensors
from certiformer.audit.read.gguf_names import ARCHITECTURES
from certiformer.audit.read.gguf_rotary import ROTARY, rope_scaling
from certiformer.audit.rotary_factor import rotary_factor


def factor(**said: object) -> float | None:
    metadata = {f"llama.rope.scaling.{name}": value for name, value in said.items()}
    return rotary_factor({"rope_scaling": rope_scaling("llama", metadata)})


def test_what_turns_and_does_not_scale():
    for kind in ("none", "linear", "longrope"):
        assert factor(type=kind) == factor(type=kind, factor=8.0) == 1.0
    assert factor() == factor(factor=8.0) == 1.0


def test_what_scales():
    assert factor(attn_factor=1.19) == factor(type="longrope", attn_factor=1.19) == 1.19
    assert factor(type="yarn") == 1.0
    assert factor(type="yarn", factor=4.0) == 1 + 0.1 * math.log(4)
    assert factor(type="yarn", factor=4, attn_factor=0.5) == 0.5 * (1 + 0.1 * math.log(4))


@pytest.mark.parametrize("key", ["yarn_log_multiplier", "yarn_ext_factor", "yarn_attn_factor"])
def test_entries_that_change_the_rule_leave_it_unknown(key):
    assert factor(type="yarn", factor=4.0, **{key: 0.1}) is None


@pytest.mark.parametrize("nonsense", [-1.0, 0, "x", [1.0], True, math.nan, math.inf])
def test_nonsense_is_not_known(nonsense):
    assert factor(attn_factor=nonsense) is None
    assert factor(type="yarn", factor=nonsense) is None
    assert factor(type=nonsense) is None
    assert factor(type="yarn", factor=0.5) is None  # a context that was made shorter


def test_every_rotary_architecture_is_read():
    assert set(ROTARY) <= set(ARCHITECTURES)


def test_the_factor_enters_the_constant_twice():
    make, words = CASES["llama"]
    values = []
    for said in ({}, {"llama.rope.scaling.attn_factor": 1.5}, {"llama.rope.scaling.type": "other"}):
        files = converted("llama", make(), words)
        files.metadata.update(said)
        checkpoint = read_tensors(files)[0]
        assert checkpoint.positions == "rope"
        found = pairwise(checkpoint, measure(checkpoint), Given(length=8, radius=2.0))
        values.append((found.verdict, found.value))
    assert [verdict for verdict, _ in values] == ["holds", "holds", "does-not-apply"]
    # Scores 1.5^2 times as large: the constant grows, by no more than that.
    assert values[0][1] < values[1][1] <= 1.5**2 * values[0][1] * (1 + 1e-9)
