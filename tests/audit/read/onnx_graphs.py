"""Graphs in the style of the two exporters of torch, from tensors as files have them.

`scripted` is the style of torch.jit: nodes are called after modules, matrices are turned and nameless. `exported` is that
of torch.export: nodes are called after operations, with the modules in a list of scopes beside them. Every node reads the
input of the graph; the readers look at what nodes use, not at what they compute."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from audit.read.memory import in_memory
from audit.read.synthetic import Synthetic
from certiformer.audit.form import Checkpoint, Coverage
from certiformer.audit.read import read_checkpoint, read_tensors

onnx = pytest.importorskip("onnx", reason='the library onnx is not installed: pip install "certiformer[onnx]"')
TABLES = ("embeddings", "embed_tokens", "embed_in", "embed_positions", "wte", "wpe")
SCOPES = "pkg.torch.onnx.name_scopes"


class Graph:
    """A graph that grows by modules; `turned` says how the matrix of a product is stored, `named` which keep their names."""

    def __init__(self, scoped: bool = False) -> None:
        self.scoped = scoped
        self.nodes: list[onnx.NodeProto] = []
        self.stored: dict[str, np.ndarray] = {}
        self.count = 300

    def node(self, op: str, module: str, inputs: list[str], suffix: str = "", **attributes) -> str:
        """A node of a module (dotted); the name of what it computes."""
        self.count += 1
        path = "".join(f"/{step}" for step in steps(module))
        output = f"value_{self.count}" if self.scoped else f"{path}/{op}{suffix}_output_0_{self.count}"
        name = f"node_{op}_{self.count}" if self.scoped else f"{path}/{op}{suffix}"
        node = onnx.helper.make_node(op, inputs, [output], name=name, **attributes)
        if self.scoped:
            parts = module.split(".")
            scopes = ["", *(".".join(parts[: i + 1]) for i in range(len(parts))), f"{op.lower()}_{self.count}"]
            node.metadata_props.add(key=SCOPES, value=str(scopes))
        self.nodes.append(node)
        return output

    def store(self, array: np.ndarray, name: str | None = None) -> str:
        """A stored tensor, under a name that the exporter makes up where it has none."""
        self.count += 1
        name = name or (f"val_{self.count}" if self.scoped else f"onnx::MatMul_{self.count}")
        self.stored[name] = np.ascontiguousarray(array)
        return name

    def linear(self, module: str, weight: np.ndarray, bias: str | None = None, name: str | None = None) -> str:
        """x W^T + b, with W turned and nameless; `name` where it is stored already. The name of the matrix."""
        name = name or self.store(weight.T)
        output = self.node("MatMul", module, ["x", name])
        if bias is not None:
            self.node("Add", module, [output, bias] if self.scoped else [bias, output])
        return name

    def model(self) -> onnx.ModelProto:
        inputs = [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.DOUBLE, ["n", "d"])]
        initial = [onnx.numpy_helper.from_array(array, name) for name, array in self.stored.items()]
        return onnx.helper.make_model(onnx.helper.make_graph(self.nodes, "main", inputs, [], initial))

    def save(self, folder: Path, change: Callable[[onnx.ModelProto], None] | None = None) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        model = self.model()
        if change is not None:
            change(model)
        path = folder / "model.onnx"
        path.write_bytes(model.SerializeToString())
        return path


def steps(module: str) -> list[str]:
    """The steps of a path: a number belongs to the list before it, as in `layer.0`."""
    found: list[str] = []
    for part in module.split("."):
        if part.isdigit() and found:
            found[-1] += f".{part}"
        else:
            found.append(part)
    return found


def of(tensors: dict[str, np.ndarray], scoped: bool = False, without: tuple[str, ...] = ()) -> Graph:
    """The tensors of a file as an exporter stores them. `without` are ends of names that the caller adds himself."""
    graph = Graph(scoped)
    kept = {name: array for name, array in tensors.items() if not name.endswith(without or ("\0",))}
    for name, array in kept.items():
        module, _, part = name.rpartition(".")
        if part == "weight" and array.ndim == 2 and module.endswith(TABLES):
            graph.node("Gather", module, [graph.store(array, name), "ids"])
        elif part == "weight" and array.ndim == 2:
            bias = f"{module}.bias"
            if bias in kept:
                graph.store(kept[bias], bias)
            graph.linear(module, array, bias if bias in kept else None)
        elif part == "weight" and f"{module}.bias" in kept:
            names = [graph.store(kept[each], each) for each in (name, f"{module}.bias")]
            graph.node("LayerNormalization", module, ["x", *names])
        elif part == "weight":
            graph.node("Mul", module, [graph.store(array, name), "x"], suffix="_1")
        elif name not in graph.stored and f"{module}.weight" not in kept:
            graph.store(array, name)
    return graph


def truth(made: Synthetic) -> tuple[Checkpoint, Coverage]:
    """What is read from the file."""
    return read_tensors(in_memory(made.tensors(), made.config), **made.given)


def read(graph, folder, made: Synthetic | None = None, change=None, **given):
    """What is read from the graph, with the config beside it."""
    path = graph.save(folder, change)
    if made is not None:
        (folder / "config.json").write_text(json.dumps(made.config))
    return read_checkpoint(path, **given)


def assert_same(found, wanted):
    """The same numbers in the same places, and as many parameters."""
    (checkpoint, coverage), (other, whole) = found, wanted
    assert checkpoint.family == other.family
    pairs = list(zip(checkpoint.weights(), other.weights(), strict=True))
    assert all(np.array_equal(mine.read(), theirs.read()) for mine, theirs in pairs)
    assert coverage.accounted == coverage.total == whole.total and not coverage.missing
    assert [layer.repeats for layer in checkpoint.layers] == [layer.repeats for layer in other.layers]


def assert_tensor_by_tensor(found, graph, said: str = ""):
    """No heads and no layers, every stored number counted once, and the reason in a note."""
    checkpoint, coverage = found
    assert checkpoint.family == "onnx" and checkpoint.layers == ()
    assert coverage.accounted == coverage.total == sum(array.size for array in graph.stored.values())
    assert any(said in note for note in checkpoint.notes)
