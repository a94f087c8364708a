"""The transformer as a plain `torch.nn.Module`, and the folder that carries it.

The folder holds `module.py` (the class, which needs torch and safetensors only), and the very `model.safetensors` and
`config.json` of the transformer: its hash stays the one that a certificate names. Writing it needs no torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module, resources
from typing import Any

from certiformer.export.folder import README_FILE, claim_lines, required
from certiformer.model import Transformer
from certiformer.model.store import CONFIG_FILE, TENSORS_FILE, tensors_to_bytes

MODULE_FILE = "module.py"
REMEDY = "pip install torch"


def to_torch(model: Transformer) -> Any:
    """A `torch.nn.Module` that computes what the model computes: (batch, D) to (batch, outputs), ids likewise.

    **Raises:** `MissingExtra` without torch.
    """
    required("torch", REMEDY)
    tensors = required("safetensors.torch", REMEDY).load(tensors_to_bytes(model))
    return import_module("certiformer.export.torch_module").Transformer(model.config.to_json(), tensors)


def torch_files(model: Transformer, notes: Mapping[str, str]) -> dict[str, bytes]:
    """The files of the folder, by name."""
    module = resources.files("certiformer.export").joinpath("torch_module.py").read_bytes()
    ids = model.config.input.kind == "ids"
    call = [
        "outputs = model(ids)             # int64 (batch, tokens) -> (batch, tokens * numbers at a token)"
        if ids
        else "outputs = model(points)          # (batch, D) -> (batch, outputs)"
    ]
    if ids:
        call.append("# tokens.json, where there is one, says what ids and outputs stand for")
    lines = [
        "# A transformer as a plain PyTorch module",
        "",
        "```python",
        "from module import load          # in this folder; needs torch and safetensors",
        "",
        'model = load(".")                # a torch.nn.Module',
        *call,
        "```",
        "",
        *claim_lines(notes),
    ]
    return {
        MODULE_FILE: module,
        TENSORS_FILE: tensors_to_bytes(model),
        CONFIG_FILE: model.config.to_bytes(),
        README_FILE: "\n".join(lines).encode("utf-8"),
    }
