"""Numbers of a graph that are no parameters, those that may be some, and numbers that are packed."""

from __future__ import annotations

import numpy as np
import pytest

from audit.read import onnx_graphs
from audit.read import synthetic as one
from audit.read.onnx_graphs import assert_same, assert_tensor_by_tensor, onnx, read, truth
from certiformer.errors import BadInput

QUERY = "encoder.layer.0.attention.self.query"


def constant(graph, name: str, array: np.ndarray) -> str:
    value = onnx.numpy_helper.from_array(array, "")
    graph.nodes.append(onnx.helper.make_node("Constant", [], [f"{name}_output_0"], name=name, value=value))
    return f"{name}_output_0"


def test_numbers_of_the_graph_are_no_parameters(tmp_path):
    made = one.llama()
    graph = onnx_graphs.of(made.tensors())
    graph.node("Pow", "model.norm", ["x", constant(graph, "/model/norm/Constant", np.array(2.0))])
    graph.node("Mul", "model.rotary_emb", [constant(graph, "/model/rotary_emb/Constant_1", np.ones(3)), "x"])
    graph.node("Cos", "model.rotary_emb", [constant(graph, "/model/rotary_emb/Constant_2", np.ones((1, 7, 6)))])
    graph.node("Mul", "model", [constant(graph, "/model/Constant_3", np.ones((4, 1))), "x"], suffix="_1")  # slopes
    graph.node("Mul", "model", [graph.store(np.array(0.5), "val_12"), "x"], suffix="_2")
    # A runtime that rewrites the graph makes initializers of Constants.
    graph.node("Cos", "model.rotary_emb", [graph.store(np.ones(3), "/model/rotary_emb/Constant_9_output_0")])
    found = read(graph, tmp_path, made, **made.given)
    assert_same(found, truth(made))
    assert len(found[1].buffers) == 6


def test_what_may_be_a_parameter_stays_one(tmp_path):
    made = one.llama()
    graph = onnx_graphs.of(made.tensors())
    gain = constant(graph, "/model/Constant", np.ones(one.D))  # a gain, or a number of the code: a gap that is named
    graph.node("Mul", "model", [gain, "x"], suffix="_7")
    graph.node("Add", "model", ["x", graph.store(np.ones((1, 7, one.D)), "embedding_1")])
    _, coverage = read(graph, tmp_path, made, **made.given)
    assert {name for name, _ in coverage.missing} == {gain, "embedding_1"}


def test_a_constant_that_no_node_uses_and_a_single_bias_stay_parameters(tmp_path):
    made = one.llama()
    graph = onnx_graphs.of(made.tensors())
    unused = constant(graph, "/model/Constant", np.ones((2, 3)))
    bias = graph.store(np.ones(1), "val_7")
    for module in ("one", "two"):  # shared, so it has no name; but it is added to products
        graph.node("Add", module, [graph.node("MatMul", module, ["x", "weights"]), bias])
    _, coverage = read(graph, tmp_path, made, **made.given)
    assert {name for name, _ in coverage.missing} == {unused, bias}


def test_gains_that_the_exporter_computed_are_not_taken_for_weights(tmp_path):
    """Gemma multiplies by 1 + w; exporters store that sum, and the family would add another one."""
    made = one.llama()
    tensors = made.tensors()
    graph = onnx_graphs.of(tensors, without=("layernorm.weight", "norm.weight"))
    for name, array in tensors.items():
        if name.endswith("norm.weight"):
            graph.node("Mul", name.removesuffix(".weight"), ["x", graph.store(array + 1)], suffix="_1")
    made.config["model_type"] = "gemma"
    assert_tensor_by_tensor(read(graph, tmp_path, made, **made.given), graph, "neither heads")


def test_packed_numbers_are_refused(tmp_path):
    graph = onnx_graphs.of(one.bert("").tensors(), without=(f"{QUERY}.weight",))
    packed = graph.store(np.ones((one.D, one.D), np.int8), "onnx::MatMul_301_quantized")
    graph.node("MatMulInteger", QUERY, ["x", packed])
    with pytest.raises(BadInput, match="is quantised: 'onnx::MatMul_301_quantized' is packed"):
        read(graph, tmp_path)
