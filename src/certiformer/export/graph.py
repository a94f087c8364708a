"""An ONNX graph in the making: constants, nodes, and the finished file.

Values are named by strings, as in ONNX itself. Asking twice for the same node or constant gives the same value, so the
unrolled passes of a loop share their weights, masks and positions, and nobody has to remember what was already computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from certiformer._version import __version__
from certiformer.errors import BadInput
from certiformer.export.folder import required

OPSET, IR_VERSION = 18, 8  # of December 2022: every runtime since onnxruntime 1.14 reads them
LARGEST_FILE = 2**31 - 2**20  # a protobuf message holds less than 2 GiB; a MiB is for the nodes

# Stored type of the model -> type of the computation. bfloat16 is computed in float32, which holds its numbers exactly,
# because hardly any runtime multiplies bfloat16 matrices on a CPU.
COMPUTED_AS: dict[str, type[np.floating]] = {
    "float64": np.float64,
    "float32": np.float32,
    "bfloat16": np.float32,
}


class Graph:
    """Nodes and constants, in the order of the computation."""

    def __init__(self, dtype: str):
        self._onnx: Any = required("onnx", 'pip install "certiformer[onnx]"')
        self._nodes: dict[tuple[Any, ...], Any] = {}
        self._constants: dict[str, np.ndarray] = {}
        self.float = COMPUTED_AS[dtype]
        self.scope = ""
        """What the next nodes belong to; the first part of their names."""

    def tensor(self, name: str, array: Any) -> str:
        """A weight in the type of the computation. One name is one array."""
        return self._constant(name, np.asarray(array).astype(self.float))

    def number(self, value: float) -> str:
        """A scalar in the type of the computation."""
        return self._constant(f"number/{value!r}", np.asarray(value, self.float))

    def integers(self, *values: int) -> str:
        """A vector of indices, axes or sizes."""
        return self._constant(f"integers/{','.join(map(str, values))}", np.array(values, np.int64))

    def positions(self, length: int) -> str:
        """The vector 0, 1, ..., length - 1."""
        return self._constant(f"positions/{length}", np.arange(length, dtype=np.int64))

    def allowed(self, name: str, mask: np.ndarray) -> str:
        """A mask as truth values."""
        return self._constant(name, mask != 0)

    def apply(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """The one output of a node."""
        key = (operator, inputs, tuple(sorted((k, str(v)) for k, v in attributes.items())))
        if key not in self._nodes:
            name = f"{self.scope}/{operator.lower()}_{len(self._nodes)}"
            self._nodes[key] = self._onnx.helper.make_node(operator, list(inputs), [name], name=name, **attributes)
        return self._nodes[key].output[0]

    def cast(self, value: str, to: type) -> str:
        return self.apply("Cast", value, to=self._code(to))

    def reduce(self, operator: str, value: str, axis: int) -> str:
        """A sum, mean or maximum along one axis, which stays with size 1."""
        return self.apply(operator, value, self.integers(axis), keepdims=1)

    def piece(self, value: str, start: int, stop: int | None, axis: int) -> str:
        """The part from `start` to before `stop` (None: to the end) along an axis."""
        end = np.iinfo(np.int64).max if stop is None else stop
        return self.apply("Slice", value, self.integers(start), self.integers(int(end)), self.integers(axis))

    def to_bytes(
        self,
        points: tuple[type, Sequence[int | str]],
        outputs: tuple[str, Sequence[int | str]],
        notes: Mapping[str, str],
    ) -> bytes:
        """The file, after ONNX's own checker has accepted it.

        **Arguments:**

        - `points`: the type and shape of the input of that name; a size that is text may be anything.
        - `outputs`: the value that is the output, and its shape.
        - `notes`: what the file says about itself, as `metadata_props`.
        """
        nodes, constants = self._needed(outputs[0])
        size = sum(array.nbytes for array in constants.values())
        if size > LARGEST_FILE:
            raise BadInput(
                f"an ONNX file holds less than 2 GiB and this transformer has {size:,} bytes; use --to torch"
            )
        helper = self._onnx.helper
        self.scope = ""
        end = helper.make_node("Identity", [outputs[0]], ["outputs"], name="/outputs")
        graph = helper.make_graph(
            [*nodes, end],
            "certiformer",
            [helper.make_tensor_value_info("points", self._code(points[0]), list(points[1]))],
            [helper.make_tensor_value_info("outputs", self._code(self.float), list(outputs[1]))],
            [self._onnx.numpy_helper.from_array(array, name) for name, array in constants.items()],
            doc_string=notes.get("claim", ""),
        )
        opsets = [helper.make_opsetid("", OPSET)]
        names = {"producer_name": "certiformer", "producer_version": __version__}
        file = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, **names)
        helper.set_model_props(file, dict(sorted(notes.items())))
        raise_if_invalid = self._onnx.checker.check_model
        raise_if_invalid(file, full_check=True)
        return file.SerializeToString(deterministic=True)

    def _needed(self, output: str) -> tuple[list[Any], dict[str, np.ndarray]]:
        """The nodes and constants that the output depends on, in their order; nobody asked for the others."""
        names, nodes = {output}, []
        for node in reversed(self._nodes.values()):
            if node.output[0] in names:
                nodes.append(node)
                names.update(node.input)
        return nodes[::-1], {name: array for name, array in self._constants.items() if name in names}

    def _constant(self, name: str, array: np.ndarray) -> str:
        known = self._constants.setdefault(name, array)
        if known is not array and not np.array_equal(known, array, equal_nan=False):
            raise ValueError(f"two different constants are called {name}")
        return name

    def _code(self, kind: type) -> int:
        return self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(kind))
