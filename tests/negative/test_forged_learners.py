"""In-context learners whose folders were changed and sealed again: every class of change is refused, for every kind."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace

import numpy as np
import pytest

from certiformer.compiler.computation import computation_certificate
from certiformer.compiler.incontext import Request, context_learner, describe
from certiformer.compiler.incontext.compiled import ContextLearner
from certiformer.compiler.tensors import stored
from certiformer.errors import BadInput
from certiformer.kernel.certificate import Certificate
from certiformer.kernel.computation import decide_computation
from certiformer.kernel.files import CERTIFICATE, CONFIG, LEARNER, digest
from certiformer.kernel.meanings.learner import read_learner

KINDS = {
    "gd": {"learner": "gd"},
    "looped": {"learner": "gd", "looped": True},
    "sink": {"learner": "gd", "attention": "softmax-pair"},
    "mirror": {"learner": "gd", "attention": "softmax-mirror", "layers": 1},
    "ridge": {"learner": "ridge", "strength": "0.3"},
    "chebyshev": {"learner": "ridge", "strength": "0.3", "schedule": "chebyshev", "layers": 12},
    "relu": {"learner": "relu", "strength": "0.3"},
    "logistic": {"learner": "logistic", "error": 0.05},
    "lasso": {"learner": "lasso", "strength": "0.1"},
    "select": {"learner": "select", "strength": "0.1,1,4", "validation": 2},
}
SOFTMAX = ("sink", "mirror")


def made(kind: str, dtype: str = "float64") -> ContextLearner:
    flags = {"features": 2, "rows": 4, "layers": 2, "dtype": dtype, **KINDS[kind]}
    return context_learner(describe(Request(**flags)))


@pytest.fixture(scope="module", params=KINDS)
def honest(request) -> tuple[str, ContextLearner, Certificate]:
    compiled = made(request.param)
    certificate = computation_certificate(compiled.learner.rule, compiled.files())
    assert judged(compiled.files(), certificate) == "proved"
    return request.param, compiled, certificate


def judged(files: dict[str, bytes], certificate: Certificate) -> str:
    """The verdict on files whose seals were made anew."""
    seals = {name: digest(files[name]) for name in certificate.seals}
    return decide_computation({**files, CERTIFICATE: replace(certificate, seals=seals).to_bytes()}).outcome


def places(array: np.ndarray, rng: np.random.Generator) -> set[tuple[int, ...]]:
    """Every number of a small tensor; of a larger one all that are not zero, and some zeros."""
    if array.size <= 24:
        return set(np.ndindex(array.shape))
    some = [np.unravel_index(i, array.shape) for i in rng.integers(0, array.size, 6)]
    return {tuple(map(int, place)) for place in [*zip(*array.nonzero(), strict=True), *some]}


@pytest.mark.parametrize("size", [1e-9, 1e-3, 1.0])
def test_no_changed_weight_is_certified(honest, size):
    kind, compiled, certificate = honest
    rng, count = np.random.default_rng(4), 0
    for name, array in compiled.tensors.items():
        if kind in SOFTMAX and name.endswith("output"):
            continue  # those are held up to rounding, and the next test is about them
        for place in places(array, rng):
            changed = array.copy()
            changed[place] += size * (abs(changed[place]) or 1.0) * rng.choice([-1, 1])
            files = replace(compiled, tensors={**compiled.tensors, name: changed}).files()
            assert judged(files, certificate) == "refused", (name, place)
            count += 1
    assert count > 30


@pytest.mark.parametrize("kind", SOFTMAX)
def test_output_weights_of_softmax_are_held_to_what_the_certificate_states(kind):
    """They cannot be exact; a change that the stated bound does not cover is refused, in each head alone at any size."""
    compiled = made(kind)
    certificate = computation_certificate(compiled.learner.rule, compiled.files())
    name = next(name for name in compiled.tensors if name.endswith("output"))
    for factor in (1 + 1e-3, 1 - 1e-3, 1 + 1e-9, 0.0, -1.0):
        changed = compiled.tensors[name] * factor
        files = replace(compiled, tensors={**compiled.tensors, name: changed}).files()
        assert judged(files, certificate) == "refused"
    if len(compiled.tensors[name]) == 2:
        changed = compiled.tensors[name].copy()
        changed[1] = np.nextafter(changed[1], 0)
        assert judged(replace(compiled, tensors={**compiled.tensors, name: changed}).files(), certificate) == "refused"


def neighbours(value):
    """Other values that an entry of a description might have, of its own type and of others."""
    if type(value) is bool:
        return [not value, int(value), None]
    if type(value) is int:
        return [value + 1, value - 1, 0, -1, float(value), str(value), True, None, 10**30]
    if type(value) is float:
        near = [value * (1 + 1e-9), value * 0.5, value * 2.0, -value, value + 1.0]
        return [*near, int(value), str(value), None, math.nan, math.inf, -math.inf, 1e-320, 1e308]
    if type(value) is tuple:
        return [(), value[:-1], (*value, *value[-1:]), tuple(2 * v for v in value), [[*value]], None, 1.0]
    return ["gd", "ridge", "relu-lasso", "selection", "float32", "bfloat16", "softmax-pair", "linear", "", None, 1]


# How a description may change while it says less of the same weights: a smaller box, a narrower range of eigenvalues, a
# wider tolerance.
LESS = {"bound": -1, "label_bound": -1, "spectrum": -1, "high": -1, "low": 1, "tolerance": 1}


def says_less(learner: dict, name: str, other) -> bool:
    if name == "validation":  # the tokens say which rows are for validation, no weight does
        return type(other) is int and 0 < other < learner["rows"]
    if name == "looped":  # one step is the same, looped or not
        return type(other) is bool and len(learner["steps"]) == 1
    # A box that is larger by a part in 1e9 may have the same bound in the nine digits of a certificate.
    near = name in LESS and type(other) is float and abs(other - learner[name]) <= 2e-9 * learner[name]
    return near or (name in LESS and type(other) is float and (other - learner[name]) * LESS[name] > 0)


def test_no_changed_description_is_certified(honest):
    """Each entry alone, other types and impossible values among them: what says more than was proved is refused."""
    _, compiled, certificate = honest
    learner, refused = asdict(compiled.learner), 0
    for name, value in learner.items():
        for other in neighbours(value):
            if other != value or type(other) is not type(value):
                data = {"format": "certiformer-learner-1", **learner, name: other}
                text = json.dumps(data, sort_keys=True, separators=(",", ":")) + "\n"
                fine = judged({**compiled.files(), LEARNER: text.encode()}, certificate) == "refused"
                assert fine or says_less(learner, name, other), (name, other)
                refused += fine
    assert refused > 30


def test_descriptions_are_read_strictly(honest):
    _, compiled, certificate = honest
    text = compiled.learner.to_text()
    data = json.loads(text)
    key, *_ = data
    wrong = [
        json.dumps({**data, "comment": "x"}, sort_keys=True, separators=(",", ":")) + "\n",
        json.dumps({k: v for k, v in data.items() if k != "bound"}, sort_keys=True, separators=(",", ":")) + "\n",
        json.dumps(data) + "\n",
        text.strip(),
        text + " ",
        text.replace("{", f'{{"{key}":{json.dumps(data[key])},', 1),
        text.replace("certiformer-learner-1", "certiformer-learner-2"),
        text.replace('"features":2', '"features":2.0'),
        text.replace('"features":2', '"features":"2"'),
        "[]\n", "null\n", "\n", "{}\n", '{"learner":["gd"]}\n', "\ufeff" + text,
    ]  # fmt: skip
    for other in wrong:
        assert other != text
        with pytest.raises(BadInput):
            read_learner(other)
        assert judged({**compiled.files(), LEARNER: other.encode()}, certificate) == "refused"
    assert judged({**compiled.files(), LEARNER: text.encode("utf-16")}, certificate) == "refused"


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_no_other_type_is_certified(honest, dtype):
    """The weights, the configuration and the description say the type; one that differs from the others is refused."""
    _, compiled, certificate = honest
    tensors = {name: stored(array, dtype) for name, array in compiled.tensors.items()}
    other = replace(compiled, config=replace(compiled.config, dtype=dtype), tensors=tensors)
    learner = replace(compiled.learner, dtype=dtype)
    assert judged(other.files(), certificate) == "refused"
    assert judged(replace(compiled, tensors=tensors).files(), certificate) == "refused"
    assert judged(replace(compiled, learner=learner).files(), certificate) == "refused"
    # All of them together are another claim, whose rounding is larger than the certificate says.
    assert judged(replace(other, learner=learner).files(), certificate) == "refused"


def test_no_other_configuration_is_certified(honest):
    _, compiled, certificate = honest
    files, data = compiled.files(), compiled.config.to_json()
    changes = [
        ("loops",), ("registers",), ("input", "tokens"), ("input", "width"), ("readout", "token"), ("outputs",),
        *[("blocks", k, "attention", name) for k, b in enumerate(data["blocks"]) if b["attention"]
          for name in ("kind", "bias", "scale", "mask", "score_bias", "residual")],
        *[("blocks", k, "ffn", name) for k, b in enumerate(data["blocks"]) if b["ffn"] for name in ("kind", "residual")],
    ]  # fmt: skip
    others = {"kind": ("hard", "identity", "softmax", "linear", "relu", "gelu"), "bias": (True,), "mask": ("causal",),
              "scale": ("inverse-sqrt",), "score_bias": ("table", "toeplitz"), "residual": (False,)}  # fmt: skip
    for path in changes:
        holder = json.loads(json.dumps(data))
        part = holder
        for step in path[:-1]:
            part = part[step]
        value = part[path[-1]]
        for other in others.get(str(path[-1]), (value + 1, value - 1, 0) if type(value) is int else ()):
            if other != value:
                part[path[-1]] = other
                text = json.dumps(holder, sort_keys=True, indent=1) + "\n"
                assert judged({**files, CONFIG: text.encode()}, certificate) == "refused", (path, other)


def test_no_better_number_is_certified(honest):
    _, compiled, certificate = honest
    assert certificate.proof is not None
    for name, value in certificate.proof.parameters.items():
        better = value + 1 if type(value) is int else str(float(value) * (1.01 if name == "margin" else 0.99))
        better = better if type(value) is int else format(float(better), ".40f")
        proof = replace(certificate.proof, parameters={**certificate.proof.parameters, name: better})
        assert judged(compiled.files(), replace(certificate, proof=proof)) == "refused", name
    smaller = format(float(certificate.epsilon) * 0.99, ".40f")
    proof = replace(certificate.proof, bound=smaller)
    forged = replace(certificate, epsilon=smaller, upper=smaller, proof=proof)
    assert judged(compiled.files(), forged) == "refused"
