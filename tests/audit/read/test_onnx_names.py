"""Matrices of ONNX graphs under the names of their modules: what is named, which way round, and what is left alone."""

from __future__ import annotations

import json

import numpy as np
import pytest

from audit.read import onnx_graphs
from audit.read import synthetic as one
from audit.read import synthetic_more as two
from audit.read.memory import in_memory
from audit.read.onnx_graphs import assert_same, assert_tensor_by_tensor, onnx, read, truth
from certiformer.audit.files import open_tensors
from certiformer.audit.read import onnx_uses, read_tensors
from certiformer.audit.read.onnx_names import named
from certiformer.errors import BadInput

LAYER = "encoder.layer.0.attention"
QUERY = f"{LAYER}.self.query"


FAMILIES = {
    "bert": lambda: one.bert(""),
    "bert with a head": lambda: one.bert(tail={"bert.pooler.dense.weight": (one.D, one.D), "bert.pooler.dense.bias": (one.D,)}),
    "distilbert": one.distilbert,
    "llama": one.llama,
    "phi3": one.phi3,
    "neox": one.neox,
    "bloom": one.bloom,
    "opt": two.opt,
    "vit": two.vit,
}  # fmt: skip


@pytest.mark.parametrize("scoped", [False, True], ids=["torch.jit", "torch.export"])
@pytest.mark.parametrize("name", FAMILIES)
def test_a_graph_is_read_like_the_file_it_was_exported_from(name, scoped, tmp_path):
    made = FAMILIES[name]()
    graph = onnx_graphs.of(made.tensors(), scoped)
    found = read(graph, tmp_path, made, **made.given)
    assert_same(found, truth(made))
    query = found[0].layers[0].attention[0].query.source
    assert query.tensor in graph.stored and query.tensor.startswith("val_" if scoped else "onnx::MatMul_")
    assert query.transposed and query.file == "model.onnx"
    assert "called after the modules" in found[0].notes[-1]


def test_the_config_stands_beside_the_file_or_the_heads_are_given(tmp_path):
    made = one.bert("")
    graph = onnx_graphs.of(made.tensors())
    checkpoint, _ = read(graph, tmp_path)
    assert checkpoint.family == "bert" and not checkpoint.layers[0].heads_known
    checkpoint, _ = read(graph, tmp_path, heads=one.H)
    assert checkpoint.layers[0].heads_known and checkpoint.layers[0].attention[0].query.shape == (one.H, one.E, one.D)


def test_the_config_of_a_repository_is_one_folder_up(tmp_path):
    made = one.bert("")
    graph = onnx_graphs.of(made.tensors())
    (tmp_path / "config.json").write_text(json.dumps(made.config))
    path = graph.save(tmp_path / "onnx")
    assert open_tensors(path).config == made.config
    assert open_tensors(path.parent).config is None  # outside the folder that was named
    assert open_tensors(graph.save(tmp_path / "weights")).config is None
    (tmp_path / "onnx" / "config.json").write_text('{"num_attention_heads": 2}')
    assert open_tensors(path).config == open_tensors(path.parent).config == {"num_attention_heads": 2}


def test_a_config_that_does_not_fit_is_an_error(tmp_path):
    made = one.bert("", config={"num_attention_heads": 5})
    with pytest.raises(BadInput, match="cannot be shared among 5"):
        read(onnx_graphs.of(made.tensors()), tmp_path, made)


@pytest.mark.parametrize(
    ("op", "attributes", "stored_turned"),
    [("MatMul", {}, True), ("Gemm", {"transB": 1}, False), ("Gemm", {"transB": 0}, True), ("Gemm", {}, True)],
)
@pytest.mark.parametrize("through", [(), ("Identity",), ("Transpose",), ("Transpose", "Cast", "Transpose")])
def test_the_node_decides_which_way_round_a_square_matrix_is(op, attributes, stored_turned, through, tmp_path):
    made = one.bert("")
    graph = onnx_graphs.of(made.tensors(), without=(f"{QUERY}.weight", f"{QUERY}.bias"))
    weight, bias = (made.tensors()[f"{QUERY}.{part}"] for part in ("weight", "bias"))
    odd = through.count("Transpose") % 2
    value = graph.store(weight.T if stored_turned != bool(odd) else weight)
    for step in through:
        told = {"Transpose": {"perm": [1, 0]}, "Cast": {"to": 11}}.get(step, {})
        value = graph.node(step, "anywhere", [value], **told)
    kept = graph.store(bias, f"{QUERY}.bias")
    if op == "Gemm":
        graph.node(op, QUERY, ["x", value, kept], **attributes)
    else:
        graph.node("Add", QUERY, [kept, graph.node(op, QUERY, ["x", value])])
    assert_same(read(graph, tmp_path, made), truth(made))


def test_the_other_orientation_is_another_model(tmp_path, monkeypatch):
    """Every shape of the attention is square: a rule that forgets the transposition reads, and reads something else."""
    made = one.bert("")
    graph = onnx_graphs.of(made.tensors(), without=("intermediate.dense.weight", "output.dense.weight"))
    for name, array in made.tensors().items():
        if name.endswith(("intermediate.dense.weight", "output.dense.weight")):
            graph.store(array, name)
    rule = onnx_uses._use
    monkeypatch.setattr(
        onnx_uses, "_use", lambda *args: None if (use := rule(*args)) is None else use._replace(turned=False)
    )
    found = read(graph, tmp_path, made)
    mine, theirs = (each[0].layers[0].attention[0].query.read() for each in (found, truth(made)))
    assert mine.shape == theirs.shape and not np.array_equal(mine, theirs)
    with pytest.raises(AssertionError):
        assert_same(found, truth(made))


def test_matrices_that_kept_their_names_when_they_were_turned(tmp_path):
    made = one.bert("")
    graph = onnx_graphs.of(made.tensors())
    for node in graph.nodes:
        if node.op_type == "MatMul":
            name = f"{node.name.removeprefix('/').removesuffix('/MatMul').replace('/', '.')}.weight"
            graph.stored[name] = graph.stored.pop(node.input[1])
            node.input[1] = name
    found = read(graph, tmp_path, made)
    assert_same(found, truth(made))
    assert found[0].layers[0].attention[0].query.source.transposed


def test_gpt2_has_its_matrices_in_out_in_both(tmp_path):
    made = one.gpt2(turned=True)
    tensors = made.tensors()
    graph = onnx_graphs.of(
        tensors, without=("c_attn.weight", "c_proj.weight", "c_fc.weight", "c_attn.bias", "c_proj.bias", "c_fc.bias")
    )
    for name, array in tensors.items():
        if name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight")):
            module = name.removesuffix(".weight")
            bias = graph.store(tensors[f"{module}.bias"], f"{module}.bias")
            graph.node("Gemm", module, ["x", graph.store(array, name), bias], transB=0)
    assert_same(read(graph, tmp_path, made), truth(made))


@pytest.mark.parametrize("scoped", [False, True])
def test_a_matrix_that_two_modules_share_has_no_name(scoped, tmp_path):
    made = one.bert("")
    key = f"{LAYER}.self.key"
    graph = onnx_graphs.of(made.tensors(), scoped, without=(f"{QUERY}.weight", f"{key}.weight"))
    name = graph.linear(QUERY, made.tensors()[f"{QUERY}.weight"])
    graph.linear(key, made.tensors()[f"{QUERY}.weight"], name=name)
    assert name in named(open_tensors(graph.save(tmp_path))).nameless
    assert_tensor_by_tensor(read(graph, tmp_path, made), graph, "neither heads")


def test_a_matrix_of_no_sign_without_a_name_is_said(tmp_path):
    made = one.bert("")
    up, key = f"{LAYER}.self.value", f"{LAYER}.self.key"
    graph = onnx_graphs.of(made.tensors(), without=(f"{up}.weight", f"{key}.weight"))
    name = graph.linear(up, made.tensors()[f"{up}.weight"])
    graph.linear(key, made.tensors()[f"{key}.weight"], name=name)
    assert_tensor_by_tensor(read(graph, tmp_path, made), graph, f"has no tensor '{key}.weight'")


def test_two_matrices_of_one_module(tmp_path):
    made = one.bert("")
    weight = made.tensors()[f"{QUERY}.weight"]
    graph = onnx_graphs.of(made.tensors(), scoped=True)
    graph.linear(QUERY, weight + 1)
    assert_tensor_by_tensor(read(graph, tmp_path, made), graph, "neither heads")


def test_a_name_that_is_taken_is_not_given(tmp_path):
    made = one.bert("")
    graph = onnx_graphs.of(made.tensors())
    graph.store(made.tensors()[f"{QUERY}.weight"] + 1, f"{QUERY}.weight")
    checkpoint, coverage = read(graph, tmp_path, made)
    # The tensor with the name is read; the one that its node uses is a gap that the coverage names.
    assert np.array_equal(
        checkpoint.layers[0].attention[0].query.read().reshape(one.D, one.D), made.tensors()[f"{QUERY}.weight"] + 1
    )
    assert coverage.total - coverage.accounted == one.D**2 and coverage.missing[0][0].startswith("onnx::MatMul_")


def test_matrices_that_torch_export_stores_once_for_each_call(tmp_path):
    made = one.albert()
    at = "albert.encoder.albert_layer_groups.0.albert_layers.0"
    graph = onnx_graphs.of(made.tensors(), scoped=True)
    times = truth(made)[0].layers[0].repeats
    products = [node for node in graph.nodes if node.op_type == "MatMul" and at in node.metadata_props[0].value]
    copies = 0
    for node in products:
        for _ in range(times - 1):
            name = node.input[1]
            if node is products[0]:
                name, copies = graph.store(graph.stored[name]), copies + 1
            again = onnx.NodeProto.FromString(node.SerializeToString())
            again.input[1] = name
            graph.nodes.append(again)
    found = read(graph, tmp_path, made, **made.given)
    assert_same(found, truth(made))
    assert len(found[1].copies) == copies == times - 1 > 0


@pytest.mark.parametrize("more", [0, -1, 1])
def test_modules_that_are_called_again(more, tmp_path):
    """torch.jit puts _1, _2, ... behind the name of the module; the config says how often that is."""
    made = one.albert()
    at = "albert.encoder.albert_layer_groups.0.albert_layers.0"
    graph = onnx_graphs.of(made.tensors())
    times = truth(made)[0].layers[0].repeats
    for node in list(graph.nodes):
        if node.op_type == "MatMul" and node.name.startswith("/" + "/".join(onnx_graphs.steps(at))):
            for again in range(1, times + more):
                value = f"onnx::MatMul_{node.input[1][-3:]}_{again}"
                graph.nodes.append(
                    onnx.helper.make_node("Identity", [node.input[1]], [value], name=f"Identity_{value}")
                )
                name = node.name.removesuffix("/MatMul") + f"_{again}/MatMul"
                graph.nodes.append(onnx.helper.make_node("MatMul", ["x", value], [f"{name}_output_0"], name=name))
    found = read(graph, tmp_path, made, **made.given)
    if more == 0:
        assert_same(found, truth(made))
    else:
        assert_tensor_by_tensor(found, graph, f"{times + more} times, and the model that it looks like {times}")


def untrained(made: one.Synthetic) -> dict[str, np.ndarray]:
    """Zeros and ones where an untrained model has them."""
    return {
        name: np.full(array.shape, float(name.endswith("weight"))) if array.ndim == 1 else array
        for name, array in made.tensors().items()
    }


@pytest.mark.parametrize("scoped", [False, True])
def test_equal_vectors_are_stored_once_and_count_for_each_module(scoped, tmp_path):
    made = one.bert("")
    tensors = untrained(made)
    graph = onnx_graphs.of(tensors, scoped)
    first: dict[bytes, str] = {}
    stored = sum(array.size for array in graph.stored.values())
    for name, array in list(graph.stored.items()):
        original = first.setdefault(array.tobytes() + bytes(array.ndim), name)
        if original != name:
            del graph.stored[name]
            if scoped:
                for node in graph.nodes:
                    node.input[:] = [original if value == name else value for value in node.input]
            else:
                graph.nodes.insert(
                    0, onnx.helper.make_node("Identity", [original], [name], name=f"Identity_{len(first)}")
                )
    assert sum(array.size for array in graph.stored.values()) < stored
    found = read(graph, tmp_path, made)
    assert_same(found, read_tensors(in_memory(tensors, made.config)))
    made_of = {weight.source.made for weight in found[0].weights()}
    assert made_of == {"", "equal numbers, stored once"}


def test_a_shared_vector_whose_use_is_not_told_is_not_read(tmp_path):
    """Without the rule the second norm would be missing, and nobody would know."""
    made = one.bert("")
    second = "encoder.layer.1.output.LayerNorm"
    graph = onnx_graphs.of(made.tensors(), scoped=True, without=(f"{second}.weight", f"{second}.bias"))
    graph.node("Sub", second, ["x", "encoder.layer.0.output.LayerNorm.weight"])
    assert_tensor_by_tensor(read(graph, tmp_path, made), graph, "not all of them say what for")


def test_nameless_biases(tmp_path):
    made = one.bert("")
    tensors = made.tensors()
    graph = onnx_graphs.of(tensors, without=(f"{QUERY}.bias",))
    product = next(node.output[0] for node in graph.nodes if node.name.endswith("layer.0/attention/self/query/MatMul"))
    bias = graph.store(tensors[f"{QUERY}.bias"], "onnx::Add_77")
    graph.node("Add", QUERY, [bias, product])
    assert_same(read(graph, tmp_path, made), truth(made))
    graph.nodes[-1].input[1] = "x"  # no product of this module: the name of the node alone proves nothing
    checkpoint, coverage = read(graph, tmp_path, made)
    assert checkpoint.layers[0].attention[0].query_bias is None
    assert coverage.missing == (("onnx::Add_77", (one.D,)),)


def test_a_model_inside_another_module(tmp_path):
    """Nodes then have a longer path than the tensors that kept their names."""
    made = one.bert("")

    def wrapped(model):
        for node in model.graph.node:
            node.name = f"/wrapper{node.name}"

    assert_same(read(onnx_graphs.of(made.tensors()), tmp_path, made, wrapped), truth(made))


def test_fused_maps_of_torch(tmp_path):
    made = two.torch_encoder()
    tensors = made.tensors()
    ends = ("in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias")
    graph = onnx_graphs.of(tensors, without=ends)
    for name, array in tensors.items():
        module = name.removesuffix(".in_proj_weight")
        if module != name:
            graph.linear(module, array, graph.store(tensors[f"{module}.in_proj_bias"], f"{module}.in_proj_bias"))
            kept = [
                graph.store(tensors[f"{module}.out_proj.{part}"], f"{module}.out_proj.{part}")
                for part in ("weight", "bias")
            ]
            graph.node("Gemm", module, ["x", *kept], transB=1)
    assert_same(read(graph, tmp_path, made, **made.given), truth(made))


def test_a_table_that_is_called_after_the_head_it_is_tied_to(tmp_path):
    made = one.bert(tail={"cls.predictions.bias": (one.V,)})
    tensors, words = made.tensors(), "bert.embeddings.word_embeddings"
    graph = onnx_graphs.of(tensors, scoped=True, without=(f"{words}.weight", "cls.predictions.bias"))
    head = "cls.predictions.decoder"
    graph.node("Gather", words, [graph.store(tensors[f"{words}.weight"], f"{head}.weight"), "ids"])
    graph.linear(head, tensors[f"{words}.weight"], graph.store(tensors["cls.predictions.bias"], f"{head}.bias"))
    found = read(graph, tmp_path, made)
    assert_same(found, truth(made))
    assert found[0].head_tied and len(found[1].copies) == 1


def test_modules_that_the_code_calls_otherwise_than_the_file(tmp_path):
    made = two.vit()
    code = {
        "attention.attention.query": "attention.q_proj", "attention.attention.key": "attention.k_proj",
        "attention.attention.value": "attention.v_proj", "attention.output.dense": "attention.o_proj",
        "intermediate.dense": "mlp.fc1", "output.dense": "mlp.fc2", "encoder.layer": "layers",
    }  # fmt: skip
    tensors = {}
    for name, array in made.tensors().items():
        new = name
        for file, other in code.items():
            new = new.replace(file, other)
        tensors[new] = array
    assert_same(read(onnx_graphs.of(tensors), tmp_path, made), truth(made))
    # A head that is called so in both is no ViT's business.
    neox = one.neox()
    tensors = {name.replace("embed_out", "lm_head"): array for name, array in neox.tensors().items()}
    assert_same(read(onnx_graphs.of(tensors), tmp_path, neox), truth(neox))


def test_bodies_of_loops_and_branches(tmp_path):
    made = one.bert("")
    graph = onnx_graphs.of(made.tensors())

    def inside(op):
        def change(model):
            body = onnx.helper.make_graph(list(model.graph.node), "body", [], [])
            other = onnx.GraphProto.FromString(body.SerializeToString())
            del model.graph.node[:]
            names = ("then_branch", "else_branch") if op == "If" else ("body",)
            bodies = dict(zip(names, (body, other), strict=False))
            model.graph.node.append(onnx.helper.make_node(op, ["x"], ["y"], **bodies))

        return change

    # Of two branches one runs: the matrix is used once. How often a loop runs, nobody says.
    checkpoint, coverage = read(graph, tmp_path, made, inside("If"))
    assert checkpoint.family == "bert" and coverage.accounted == coverage.total
    assert_tensor_by_tensor(read(graph, tmp_path, made, inside("Loop")), graph, "neither heads")
