"""The whole audit of every family: complete, sound JSON, a page, and the verdicts that its architecture decides."""

from __future__ import annotations

import json

import pytest

from audit.read.contract import write
from audit.read.test_contract import MADE
from certiformer.audit import Given, audit
from certiformer.audit.result import IDS
from certiformer.report.audit_page import write_audit

INSIDE = (
    "llama",
    "mistral",
    "qwen2",
    "qwen3",
    "gemma",
    "gemma2",
    "gemma3",
    "mixtral",
    "phi3",
    "neox",
    "bloom",
    "gptj",
    "t5",
)


@pytest.mark.parametrize("name", MADE)
def test_a_family_is_audited_to_the_end(name, tmp_path):
    made = MADE[name]()
    folder = write(tmp_path, made.tensors(), made.config)
    given = Given(tokens=10**6, samples=1000, length=16, loss=0.5, rho=0.5, radius=3.0)
    found = audit(folder, given, **made.given)
    assert found.complete and {each.id for each in found.verdicts} == set(IDS)
    data = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert "<h2>What theorems say</h2>" in write_audit(data)
    relative = next(each for each in found.verdicts if each.id == "expressivity.relative_bias_not_universal")
    if name in INSIDE:
        assert relative.verdict == "holds" and relative.value == 15 / 32
