"""The ONNX file against the model itself, run by onnxruntime."""

from __future__ import annotations

import dataclasses
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certiformer.errors import BadInput, MissingExtra
from certiformer.export import graph, to_onnx
from certiformer.model import Readout, Transformer, load
from export.cases import AGREEMENT, CASES, TIES, by_definition, case, expected, points_of, ties
from model.cases import configs

onnx = pytest.importorskip("onnx", reason='the library onnx is not installed: pip install "certiformer[onnx]"')
runtime = pytest.importorskip("onnxruntime", reason='onnxruntime is not installed: pip install "certiformer[onnx]"')


def session(file: bytes):
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4  # wrong shapes are fed on purpose
    return runtime.InferenceSession(file, options, providers=["CPUExecutionProvider"])


def outputs_of(model: Transformer, points: np.ndarray) -> np.ndarray:
    return session(to_onnx(model)).run(None, {"points": points})[0]


@pytest.mark.parametrize("name", CASES)
def test_every_option_computes_the_same(name):
    model, wanted = case(name), expected(name)
    outputs = outputs_of(model, points_of(model.config))
    assert outputs.dtype == np.float64 and outputs.shape == wanted.shape
    assert np.abs(outputs - wanted).max() <= AGREEMENT


@given(configs, st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_any_combination_computes_what_the_definition_says(config, seed):
    model, points = Transformer.random(config, seed), points_of(config, 2, seed)
    wanted = by_definition(model, points)
    assert np.abs(outputs_of(model, points) - wanted).max() <= AGREEMENT * (1 + np.abs(wanted).max())


def test_a_build_computes_the_same(sines):
    model = load(sines)
    points = np.random.default_rng(0).uniform(0, 2 * np.pi, (10_000, 2))
    # Scores up to 1e3 with a rounding of 1e-13 enter an exponential: weights are right to 1e-12.
    assert np.abs(outputs_of(model, points) - model.evaluate(points)).max() <= AGREEMENT


def test_a_changed_weight_is_noticed():
    """The negative control of the agreement: one weight rounded to float32."""
    model = case("plain")
    weight = np.array(model.tensors["embed.weight"])
    weight[0, 0] = np.float32(weight[0, 0])
    changed = Transformer(model.config, {**model.tensors, "embed.weight": weight})
    assert np.abs(outputs_of(changed, points_of(model.config)) - expected("plain")).max() > AGREEMENT


def test_ties_are_averaged():
    outputs = outputs_of(ties(), np.array([[x] for x in TIES]))
    assert outputs[:, 0].tolist() == list(TIES.values())


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_narrow_weights_run_in_float32(dtype):
    wide = case("one block with registers")
    model = Transformer(dataclasses.replace(wide.config, dtype=dtype), wide.tensors)
    points = points_of(model.config, 50).astype(np.float32)
    outputs = outputs_of(model, points)
    assert outputs.dtype == np.float32
    # A few hundred roundings of 6e-8 in numbers of size one; the weights themselves are off by 4e-3 in bfloat16.
    assert np.abs(outputs - by_definition(model, points)).max() <= 1e-5


def test_any_batch_even_an_empty_one():
    model = case("linear, looped")
    run = session(to_onnx(model))
    points = points_of(model.config, 7)
    for count in (0, 1, 7):
        assert run.run(None, {"points": points[:count]})[0].shape == (count, model.output_size)


def test_shorter_ids_and_wrong_ones():
    model = case("ids")
    run = session(to_onnx(model))
    for length in (1, 3):
        ids = points_of(model.config, 20)[:, :length]
        assert np.abs(run.run(None, {"points": ids})[0] - by_definition(model, ids)).max() <= AGREEMENT
    for wrong in ([[0, 7, 0]], [[-1, 0, 0]], [[0] * 5]):
        with pytest.raises(BadInput):
            model.evaluate(np.array(wrong))
        with pytest.raises(Exception, match="ONNXRuntimeError"):
            run.run(None, {"points": np.array(wrong)})


def test_too_few_or_too_many_ids_are_refused_without_a_code():
    base = case("ids, one block without a code")
    model = Transformer(dataclasses.replace(base.config, readout=Readout("token", 1)), base.tensors)
    run = session(to_onnx(model))
    assert run.run(None, {"points": np.zeros((2, 2), np.int64)})[0].shape == (2, 2)
    for length in (1, 4):
        with pytest.raises(Exception, match="ONNXRuntimeError"):
            run.run(None, {"points": np.zeros((2, length), np.int64)})


@pytest.mark.parametrize("shape", [(4, 5), (4, 7), (6,), (4, 3, 2)])
def test_a_wrong_shape_is_an_error_of_the_runtime(shape):
    run = session(to_onnx(case("plain")))
    with pytest.raises(Exception, match=r"Got invalid dimensions|Invalid rank"):
        run.run(None, {"points": np.zeros(shape)})


def test_a_wrong_type_is_an_error_of_the_runtime():
    run = session(to_onnx(case("plain")))
    with pytest.raises(Exception, match="Unexpected input data type"):
        run.run(None, {"points": np.zeros((1, 6), np.float32)})


def test_the_file_says_what_it_is():
    notes = {"claim": "It is so.", "model_sha256": "ab"}
    file = to_onnx(case("linear, looped"), notes)
    assert file == to_onnx(case("linear, looped"), dict(reversed(notes.items())))
    proto = onnx.load_from_string(file)
    assert onnx.checker.check_model(proto, full_check=True) is None  # it raises otherwise
    assert {entry.key: entry.value for entry in proto.metadata_props} == notes
    assert (proto.producer_name, proto.graph.doc_string) == ("certiformer", "It is so.")
    assert [(o.domain, o.version) for o in proto.opset_import] == [("", 18)]
    used = {name for node in proto.graph.node for name in node.input}
    assert {tensor.name for tensor in proto.graph.initializer} <= used
    # The weights of a loop are stored once, all as float64.
    queries = [t for t in proto.graph.initializer if t.name == "blocks.0.attention.groups.0.query"]
    assert [t.data_type for t in queries] == [onnx.TensorProto.DOUBLE]
    assert all(t.data_type != onnx.TensorProto.FLOAT for t in proto.graph.initializer)


def test_too_large_is_one_sentence(monkeypatch):
    monkeypatch.setattr(graph, "LARGEST_FILE", 1000)
    with pytest.raises(BadInput, match="an ONNX file holds less than 2 GiB"):
        to_onnx(case("plain"))


def test_without_the_library_one_sentence_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtra, match=r'pip install "certiformer\[onnx\]"'):
        to_onnx(case("plain"))
