"""The audit as a whole: what JSON promises, what NaN does, and a real checkpoint where it is at hand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from audit.checkpoints import HEADS, WIDTH, bert_tensors, write_bert, write_llama
from certiformer.audit import Given, audit
from certiformer.audit.record import SCHEMA
from certiformer.audit.result import IDS
from certiformer.audit.verdict import VERDICTS
from certiformer.errors import BadInput


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return write_bert(tmp_path_factory.mktemp("bert"))


@pytest.fixture(scope="module")
def data(folder) -> dict:
    return json.loads(json.dumps(audit(folder).to_json(), allow_nan=False))


def test_the_promised_entries_are_there(data):
    assert data["schema"] == SCHEMA == "certiformer-audit-1"
    stored = sum(tensor.size for tensor in bert_tensors().values())
    assert (data["coverage"]["accounted"], data["coverage"]["total"], data["coverage"]["missing"]) == (
        stored,
        stored,
        [],
    )
    assert [len(layer["heads"]) for layer in data["layers"]] == [HEADS, HEADS]
    assert [layer["repeats"] for layer in data["layers"]] == [1, 1]
    assert [each["id"] for each in data["theorems"]] == list(IDS)
    assert all(each["verdict"] in VERDICTS and each["sentence"] for each in data["theorems"])
    assert all({"value", "trivial"} <= set(each) for each in data["theorems"])


def test_spectral_norms_are_those_of_the_plain_products(data):
    """Formed d x d and decomposed, without any core; heads are contiguous rows and columns."""
    tensors, size = bert_tensors(), WIDTH // HEADS
    for number, layer in enumerate(data["layers"]):
        place = f"encoder.layer.{number}.attention"
        query, key, value = (tensors[f"{place}.self.{name}.weight"].astype(float) for name in ("query", "key", "value"))
        output = tensors[f"{place}.output.dense.weight"].astype(float)
        for head, found in enumerate(layer["heads"]):
            rows = slice(head * size, (head + 1) * size)
            qk = np.linalg.norm(query[rows].T @ key[rows], 2) / np.sqrt(size)
            assert found["qk_spectral"] == pytest.approx(qk, rel=1e-12)
            assert found["vo_spectral"] == pytest.approx(np.linalg.norm(output[:, rows] @ value[rows], 2), rel=1e-12)
            assert [each["k"] for each in found["qk"]["values"]] == [1, 2, 3, 4]
            assert set(found["qk"]["controls"]) == {"gaussian", "shuffled"}


def test_every_stored_tensor_has_its_provenance(data):
    assert {each["tensor"] for each in data["provenance"]} == set(bert_tensors())
    query = next(each for each in data["provenance"] if each["weight"] == "layers.0.attention.0.query")
    assert query["tensor"] == "encoder.layer.0.attention.self.query.weight" and query["shape"] == [4, 4, 16]


@pytest.mark.parametrize(
    "tensor",
    [
        "encoder.layer.1.attention.self.query.weight",
        "encoder.layer.0.output.LayerNorm.weight",
        "encoder.layer.0.attention.self.key.bias",
        "embeddings.word_embeddings.weight",
    ],
)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_named_and_proves_nothing(tmp_path, tensor, value):
    tensors = bert_tensors()
    tensors[tensor].flat[0] = value
    found = audit(write_bert(tmp_path, tensors), Given(tokens=10**15, samples=10**15))
    assert not found.complete and tensor in found.measurements.not_finite
    assert {each.verdict for each in found.verdicts} == {"does-not-apply"}
    assert tuple(each.id for each in found.verdicts) == IDS
    assert json.dumps(found.to_json(), allow_nan=False)


def test_zero_matrices_and_unknown_heads_are_no_crash(tmp_path):
    zeros = {name: np.zeros_like(tensor) for name, tensor in bert_tensors().items()}
    found = audit(write_bert(tmp_path / "zero", zeros))
    assert found.complete and json.dumps(found.to_json(), allow_nan=False)
    one = audit(write_bert(tmp_path / "one", config={}))
    assert [len(layer.heads) for layer in one.measurements.layers] == [1, 1]
    four = audit(write_bert(tmp_path / "four", config={}), heads=HEADS)
    assert [len(layer.heads) for layer in four.measurements.layers] == [HEADS, HEADS]


def test_weights_whose_products_overflow_are_refused_in_a_sentence(tmp_path):
    tensors = {name: (tensor.astype(np.float64) * 1e200) for name, tensor in bert_tensors().items()}
    with np.errstate(all="ignore"), pytest.raises(BadInput, match="so large that their products are not finite"):
        audit(write_bert(tmp_path, tensors))


def test_a_tensor_nobody_knows_is_a_gap(tmp_path):
    found = audit(write_bert(tmp_path, {**bert_tensors(), "mystery.weight": np.ones((3, 2), np.float32)}))
    assert not found.complete and found.coverage.missing == (("mystery.weight", (3, 2)),)
    assert found.coverage.total - found.coverage.accounted == 6


def test_an_audit_loads_no_jax(folder):
    program = (
        "import sys; from certiformer.audit import audit; audit(sys.argv[1]).to_json();"
        "print(sorted({'jax', 'jaxlib', 'equinox', 'scipy', 'torch'} & set(sys.modules)), 'numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(folder)], capture_output=True, text=True, check=False)
    assert done.stdout == "[] True\n", done.stderr


# Reference values of all-MiniLM-L6-v2, computed apart from this code: for each layer the largest and the median
# |W_Q^T W_K| / sqrt e, the largest and the sum of |W_O W_V|, and the spectral norms of the hidden units.
MINILM = """
5.972 0.953 1.583 13.78 11.18 8.00
1.429 0.691 2.903 21.04 11.27 4.97
1.702 0.734 2.944 24.50 11.65 7.42
0.943 0.717 3.733 31.12 9.39 5.91
3.295 0.613 3.636 26.46 8.65 6.98
0.820 0.591 2.262 19.76 7.44 9.42
"""


@pytest.mark.slow
def test_the_figures_of_minilm():
    path = os.environ.get("CERTIFORMER_MINILM")
    if not path or not Path(path).exists():
        pytest.skip("CERTIFORMER_MINILM names no folder with all-MiniLM-L6-v2")
    found = audit(path)
    assert found.complete and found.coverage.total == 22_713_216
    shown = []
    for layer in found.measurements.layers:
        qk, vo = [head.qk.spectral for head in layer.heads], [head.vo.spectral for head in layer.heads]
        hidden = [layer.matrices[name].norms.spectral for name in ("up", "down")]
        three = f"{max(qk):.3f} {np.median(qk):.3f} {max(vo):.3f}"
        shown.append(f"{three} {sum(vo):.2f} {hidden[0]:.2f} {hidden[1]:.2f}")
    assert shown == MINILM.split("\n")[1:-1]
    assert f"{found.measurements.matrices['word'].norms.spectral:.3f}" == "28.721"


def test_a_llama_is_audited_with_shared_keys(tmp_path):
    found = audit(write_llama(tmp_path, layers=2))
    assert found.complete and [len(layer.heads) for layer in found.measurements.layers] == [4, 4]
