"""Which tensors of a graph hold no parameters: numbers of the code, and names that mean nothing.

A graph holds every number that the code of the model wrote down: an epsilon, the two of a square, the sentinel of a mask,
rotary angles, the slopes of ALiBi. Exporters from torch write parameters as initializers and such numbers as Constants
or as single numbers; runtimes that rewrite a graph make initializers of Constants and keep their names."""

from __future__ import annotations

import re

from certiformer.audit.files.onnx_nodes import GraphFiles
from certiformer.audit.read.onnx_uses import CONVOLUTIONS, NORMS, Uses
from certiformer.errors import BadInput

VALUE = r"/[\w./]*Constant(_\d+)?_output_\d+"  # of a Constant, with the path of its module
OF_CONSTANT = re.compile(VALUE, re.ASCII)
# Names that exporters make up: torch.jit, torch.export, older torch.
NAMELESS = re.compile(rf"onnx::\w+_\d+|val_\d+|\d+|{VALUE}", re.ASCII)
ANGLES = "rotary_emb"  # the module that computes rotary angles; it has no parameters
# Operations that hold packed numbers, of which only the runtime knows what they stand for.
QUANTISED = (
    "DequantizeLinear",
    "MatMulInteger",
    "QLinearMatMul",
    "ConvInteger",
    "MatMulNBits",
    "MatMulBnb4",
    "GatherBlockQuantized",
)


def constants(files: GraphFiles, uses: Uses) -> set[str]:
    """Single numbers without a name of their own, and Constants that no node uses as a weight."""
    values = {value for node in files.nodes if node.op == "Constant" for value in node.outputs}
    found = set()
    for name, info in files.infos.items():
        of, places = uses.of(name), uses.places.get(name, set())
        if not info.is_weight or any(use and use.kind == "product" for use in of):
            continue
        constant = name in values or OF_CONSTANT.fullmatch(name)
        if info.count == 1:
            free = constant or NAMELESS.fullmatch(name) or (not info.shape and "." not in name)
        else:
            angles = all(use and use.module.endswith(ANGLES) for use in of)
            held = not angles and any(_holds(len(info.shape), *place) for place in places)
            free = constant and places and not held
        if free:
            found.add(name)
    return found


def _holds(axes: int, op: str, place: int) -> bool:
    """Whether a tensor with so many axes at this place of an operation may be a weight."""
    if op in ("MatMul", "Gemm"):
        return axes <= 2
    if op in ("Add", "Mul"):
        return axes == 1
    return op in (*NORMS, *CONVOLUTIONS) or (op == "Gather" and place == 0)


def check_not_quantised(files: GraphFiles) -> None:
    """Raises where weights are packed in whole numbers: they would count as buffers, and be nowhere."""
    for node in files.nodes:
        for name in node.inputs if node.op in QUANTISED else ():
            if name in files.infos and not files.infos[name].is_weight and files.infos[name].count > 1:
                raise BadInput(f"{files.place} is quantised: {name!r} is packed; audit the weights it was made from")
