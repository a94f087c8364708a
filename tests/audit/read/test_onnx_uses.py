"""What a node proves about the tensor it uses, one rule at a time: each with a graph that proves it and one that does not."""

from __future__ import annotations

import numpy as np
import pytest

from audit.read.onnx_graphs import Graph, onnx
from certiformer.audit.files import open_tensors
from certiformer.audit.read.onnx_modules import written
from certiformer.audit.read.onnx_names import named

SQUARE = np.arange(9.0).reshape(3, 3)


def given(graph: Graph, tmp_path) -> dict[str, str]:
    """The names that tensors got, with the stored ones."""
    return {new: origin.tensor for new, origin in named(open_tensors(graph.save(tmp_path))).origins.items()}


def identity(graph: Graph, value: str, output: str) -> None:
    graph.nodes.append(onnx.helper.make_node("Identity", [value], [output]))


@pytest.mark.parametrize(
    ("told", "proved"),
    [({}, True), ({"transB": 1}, True), ({"transA": 1}, False), ({"alpha": 2.0}, False), ({"beta": 0.5}, False)],
)
def test_a_gemm_that_changes_more_than_the_orientation(told, proved, tmp_path):
    graph = Graph()
    name = graph.store(SQUARE)
    graph.node("Gemm", "a.b", ["x", name], **told)
    assert given(graph, tmp_path) == ({"a.b.weight": name} if proved else {})


@pytest.mark.parametrize(("told", "proved"), [({"perm": [1, 0]}, True), ({}, True), ({"perm": [0, 1]}, False)])
def test_a_transposition_that_is_none(told, proved, tmp_path):
    graph = Graph()
    name = graph.store(SQUARE)
    graph.node("MatMul", "a.b", ["x", graph.node("Transpose", "a.b", [name], **told)])
    assert given(graph, tmp_path) == ({"a.b.weight": name} if proved else {})


def test_the_tensor_has_to_be_the_right_factor_of_something_computed(tmp_path):
    for inputs in (["W", "x"], ["W", "W"], ["V", "W"], ["W"]):
        graph = Graph()
        names = {"W": graph.store(SQUARE), "V": graph.store(SQUARE + 1), "x": "x"}
        graph.node("MatMul", "a.b", [names[each] for each in inputs])
        assert given(graph, tmp_path) == {}


def test_a_bias_is_added_to_a_product_of_its_module(tmp_path):
    for module, proved in (("a.b", True), ("a.c", False)):
        graph = Graph()
        weight, bias = graph.store(SQUARE), graph.store(np.ones(3))
        graph.node("Add", "a.b", [graph.node("MatMul", module, ["x", weight]), bias])
        assert given(graph, tmp_path) == {f"{module}.weight": weight} | ({"a.b.bias": bias} if proved else {})


def test_a_value_that_two_nodes_make_is_neither(tmp_path):
    for values in (["y"], ["y", "y"]):
        graph = Graph()
        names = [graph.store(SQUARE + k) for k in range(len(values))]
        for name, value in zip(names, values, strict=True):
            identity(graph, name, value)
        graph.node("MatMul", "a.b", ["x", "y"])
        assert given(graph, tmp_path) == ({"a.b.weight": names[0]} if len(values) == 1 else {})


def test_a_value_that_a_node_and_the_file_make_is_neither(tmp_path):
    graph = Graph()
    name, other = graph.store(SQUARE), graph.store(SQUARE + 1)
    identity(graph, other, name)
    graph.node("MatMul", "a.b", ["x", name])
    assert given(graph, tmp_path) == {}


def test_a_further_use_of_the_matrix(tmp_path):
    for op, module in (("Relu", "a.b"), ("Relu", "c"), ("Gather", "a.table")):
        graph = Graph()
        name = graph.store(SQUARE)
        graph.node("MatMul", "a.b", ["x", name])
        graph.node(op, module, [name, "ids"])
        assert given(graph, tmp_path) == {} and named(open_tensors(tmp_path)).nameless == [name]


@pytest.mark.parametrize("scoped", [False, True])
def test_two_matrices_of_one_module_have_no_name_unless_they_are_equal(scoped, tmp_path):
    for other, equal in ((SQUARE, True), (SQUARE.T, False), (np.ones((3, 2)), False)):
        graph = Graph(scoped)
        names = [graph.store(SQUARE), graph.store(other)]
        for name in names:
            graph.node("MatMul", "a.b", ["x", name])
        found = named(open_tensors(graph.save(tmp_path)))
        assert found.nameless == ([] if equal else names)
        assert found.copies == ({names[1]} if equal else set())
        assert found.calls[names[0]] == (2 if equal else 1)


def test_a_number_behind_a_module_is_a_call_for_one_exporter_only(tmp_path):
    """torch.jit calls the second call of `a.b` `a.b_1`; for torch.export that is another module."""
    for scoped in (False, True):
        graph = Graph(scoped)
        name = graph.store(SQUARE)
        for module in ("a.b", "a.b_1"):
            graph.node("MatMul", module, ["x", name])
        assert given(graph, tmp_path) == ({} if scoped else {"a.b.weight": name})
        vector = graph.store(np.ones(3), "a.norm.weight")
        for module in ("a.norm", "a.norm_1"):
            graph.node("LayerNormalization", module, ["x", vector])
        assert given(graph, tmp_path).get("a.norm_1.weight") == (vector if scoped else None)


def test_a_shared_bias_does_not_name_the_matrix_beside_it(tmp_path):
    """The vector of the module `b` serves `a.b` as well; the matrix of `a.b` is its own."""
    for shared in (False, True):
        graph = Graph(scoped=True)
        bias = graph.store(np.ones(3), "b.bias")
        name = graph.linear("a.b", SQUARE, bias)
        if shared:
            other = graph.linear("b", SQUARE + 1, bias)
            assert given(graph, tmp_path) == {"a.b.weight": name, "b.weight": other, "a.b.bias": bias}
        else:  # the only one: the nodes of a module around the model have a longer path
            assert given(graph, tmp_path) == {"b.weight": name}


def test_a_name_that_only_an_identity_gives(tmp_path):
    for used in (True, False):
        graph = Graph()
        stored = graph.store(np.ones(3), "a.norm.weight")
        identity(graph, stored, "c.norm.weight")
        graph.node("LayerNormalization", "a.norm", ["x", stored])
        if used:  # else it is an output of the graph, and no parameter
            graph.node("LayerNormalization", "c.norm", ["x", "c.norm.weight"])
        assert given(graph, tmp_path) == ({"c.norm.weight": stored} if used else {})


def test_a_name_that_an_identity_gives_to_a_turned_matrix_is_none(tmp_path):
    graph = Graph()
    turned = graph.node("Transpose", "a.b", [graph.store(SQUARE, "a.b.weight")], perm=[1, 0])
    identity(graph, turned, "c.d.weight")
    graph.node("MatMul", "c.d", ["x", "c.d.weight"])
    assert "c.d.weight" not in given(graph, tmp_path)


def test_a_shared_vector_whose_further_name_is_taken(tmp_path):
    for taken in (False, True):
        graph = Graph(scoped=True)
        vector = graph.store(np.ones(3), "a.weight")
        for module in ("a", "b"):
            graph.node("LayerNormalization", module, ["x", vector])
        if taken:
            graph.store(np.zeros(3), "b.weight")
        assert bool(named(open_tensors(graph.save(tmp_path))).unclear) == taken


def test_a_shared_vector_that_belongs_to_none_of_its_users(tmp_path):
    graph = Graph(scoped=True)
    vector = graph.store(np.ones(3), "token")
    for module in ("a", "b"):
        graph.node("LayerNormalization", module, ["x", vector])
    found = named(open_tensors(graph.save(tmp_path)))
    assert "'token' is used in 2 places" in found.unclear and found.origins == {}


def test_names_of_the_code_that_stand_beside_those_of_files():
    sign = "gpt_neox.layers.0.attention.query_key_value.weight"
    assert written([sign, "lm_head.weight"]) == {"lm_head.weight": "embed_out.weight"}
    assert written([sign, "lm_head.weight", "embed_out.weight"]) == {} == written(["lm_head.weight"])
