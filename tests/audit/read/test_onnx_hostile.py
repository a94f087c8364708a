"""Graphs that lie: names, scopes, cycles and mutations. A clear error or a reading, never a crash, never much memory."""

from __future__ import annotations

import random
import time
import tracemalloc

import pytest

from audit.files.test_fuzz import MOST_MEMORY, mutated
from audit.read import onnx_graphs
from audit.read import synthetic as one
from audit.read.onnx_graphs import assert_tensor_by_tensor, onnx, read
from certiformer.audit.read import read_checkpoint
from certiformer.errors import BadInput

LAYER = "encoder.layer.0.attention"
QUERY = f"{LAYER}.self.query"


@pytest.mark.parametrize(
    "name",
    ["", "/", "//", "/../..", "/../../MatMul", "/MatMul", "/a//b/MatMul", "/" + "a" * 10**5 + "/MatMul", "/a" * 10**5,
     "/a b/MatMul", "/a\n/MatMul", "a/MatMul", "/encoder/layer.0/attention/self/query/Add", "/é/MatMul", "/./MatMul",
     "/a../MatMul", "/.a/MatMul"],
    ids=lambda name: name[:30],
)  # fmt: skip
def test_hostile_names(name, tmp_path):
    def change(model):
        for node in model.graph.node:
            if node.op_type == "MatMul":
                node.name = name

    graph = onnx_graphs.of(one.bert("").tensors())
    begin = time.perf_counter()
    assert_tensor_by_tensor(read(graph, tmp_path, change=change), graph)
    assert time.perf_counter() - begin < 5  # seconds; a name of 10^5 characters must not be walked step by step


def test_hostile_scopes(tmp_path):
    for scopes in (
        "",
        "[",
        "''",
        "['']",
        "['', '..', 'x']",
        "['" + "a" * 10**5 + "', 'x']",
        "[" * 10**5,
        "'a'" * 10**5,
    ):

        def change(model, scopes=scopes):
            for node in model.graph.node:
                node.metadata_props[0].value = scopes

        graph = onnx_graphs.of(one.bert("").tensors(), scoped=True)
        assert_tensor_by_tensor(read(graph, tmp_path, change=change), graph)


def test_names_that_are_no_text(tmp_path):
    path = onnx_graphs.of(one.bert("").tensors()).save(tmp_path)
    raw = path.read_bytes()
    for name in (
        b"onnx::MatMul_311",
        b"encoder.layer.0.output.LayerNorm.bias",
        b"/encoder/layer.0/output/dense/MatMul",
    ):
        assert name in raw
        path.write_bytes(raw.replace(name, b"\xff" * len(name)))
        with pytest.raises(BadInput, match="a name that is no text"):
            read_checkpoint(path)


def test_cycles_and_long_chains(tmp_path):
    made = one.bert("")
    graph = onnx_graphs.of(made.tensors(), without=(f"{QUERY}.weight",))
    for op, steps in (("Identity", 2), ("Transpose", 3), ("Cast", 10**4)):
        told = {"Transpose": {"perm": [1, 0]}, "Cast": {"to": 11}}.get(op, {})
        for i in range(steps):
            graph.nodes.append(onnx.helper.make_node(op, [f"{op}{i}"], [f"{op}{(i + 1) % steps}"], **told))
        graph.node("MatMul", QUERY, ["x", f"{op}0"])
    # A value that two nodes make, and one that a node and the file make.
    for value in ("twice", "twice", f"{LAYER}.self.key.bias"):
        graph.nodes.append(onnx.helper.make_node("Identity", ["onnx::MatMul_301"], [value]))
    graph.node("MatMul", QUERY, ["x", "twice"])
    assert_tensor_by_tensor(read(graph, tmp_path), graph)


def test_a_node_without_inputs_and_outputs(tmp_path):
    made = one.bert("")
    graph = onnx_graphs.of(made.tensors())
    for op in ("MatMul", "Gemm", "Add", "Mul", "Gather", "LayerNormalization", "Identity", "Transpose", "Constant"):
        for inputs, outputs in (([], []), ([f"{QUERY}.bias"], []), ([], ["y"]), ([""], [""])):
            graph.nodes.append(onnx.helper.make_node(op, inputs, outputs, name=f"/a/{op}"))
    checkpoint, coverage = read(graph, tmp_path, made)
    assert coverage.accounted == coverage.total and checkpoint.family == "onnx"  # a bias has uses nobody can explain


def rewired(raw: bytes, rng: random.Random) -> bytes:
    """A graph in which one to four nodes have got something from another node: its name, operation, inputs or outputs."""
    model = onnx.ModelProto.FromString(raw)
    nodes = model.graph.node
    for _ in range(rng.randint(1, 4)):
        node, other = rng.choice(nodes), rng.choice(nodes)
        match rng.randrange(5):
            case 0:
                node.name = other.name
            case 1:
                node.op_type = other.op_type
            case 2:
                node.input[:] = other.input
            case 3:
                node.output[:] = other.input
            case _:
                nodes.append(node)
    return model.SerializeToString()


@pytest.mark.parametrize("scoped", [False, True])
def test_mutated_graphs(scoped, tmp_path):
    raw = onnx_graphs.of(one.bert("").tensors(), scoped).save(tmp_path).read_bytes()
    path, rng, seen = tmp_path / "model.onnx", random.Random(3), []
    tracemalloc.start()
    try:
        for number in range(120):
            path.write_bytes(rewired(raw, rng) if number % 2 else mutated(raw, rng))
            try:
                checkpoint, coverage = read_checkpoint(path, heads=one.H)
                for weight in checkpoint.weights():
                    assert weight.read().shape == weight.shape
                assert coverage.accounted <= coverage.total
                seen.append(checkpoint.family)
            except BadInput as problem:
                assert "\n" not in str(problem)
                seen.append("refused")
        assert tracemalloc.get_traced_memory()[1] < MOST_MEMORY
    finally:
        tracemalloc.stop()
    assert {"refused", "onnx", "bert"} <= set(seen)
