"""From a model and the name of a format to files on disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from certiformer.disk import put_file
from certiformer.errors import BadInput
from certiformer.export.folder import put_export
from certiformer.export.gpt2_folder import gpt2_files
from certiformer.export.hf_folder import hf_files
from certiformer.export.labels import TOKENS_FILE, Labels
from certiformer.export.onnx_file import to_onnx
from certiformer.export.rms_folder import llama_files, phi3_files
from certiformer.export.torch_folder import torch_files
from certiformer.export.transformerlens_folder import transformerlens_files
from certiformer.model import Transformer

ONNX_SUFFIX = ".onnx"
FOLDERS: dict[str, Callable[[Transformer, Mapping[str, str]], dict[str, bytes]]] = {
    "torch": torch_files,
    "hf": hf_files,
}
STOCK: dict[str, Callable[[Transformer, Mapping[str, str], Labels | None], dict[str, bytes]]] = {
    "transformerlens": transformerlens_files,
    "gpt2": gpt2_files,
    "llama": llama_files,
    "phi3": phi3_files,
}
KINDS = ("onnx", *FOLDERS, *STOCK)


def default_place(source: Path, kind: str) -> Path:
    """Beside the folder that is exported, so that a run folder keeps its own files only.

    >>> str(default_place(Path("runs/sines"), "onnx")), str(default_place(Path("runs/sines"), "hf"))
    ('runs/sines.onnx', 'runs/sines-hf')
    """
    known = source if source.name not in ("", "..") else source.resolve()
    return known.with_name(known.name + (ONNX_SUFFIX if kind == "onnx" else f"-{kind}"))


def write(
    model: Transformer,
    kind: str,
    out: Path,
    notes: Mapping[str, str],
    force: bool = False,
    labels: Labels | None = None,
) -> list[Path]:
    """Write the export of this kind to `out` and return the paths of its files.

    **Arguments:**

    - `labels`: what ids and outputs stand for (`folder_labels`): `tokens.json` of the folders, `tokens` in the metadata
      of an ONNX file. The stock formats write numbers without it.
    """
    if kind not in KINDS:
        raise BadInput(f"there is no export to {kind!r}; choose {', '.join(KINDS)}")
    if kind == "onnx":
        if out.suffix != ONNX_SUFFIX:
            raise BadInput(f"an ONNX export is one file whose name ends in {ONNX_SUFFIX}, not {out}")
        out.parent.mkdir(parents=True, exist_ok=True)
        known = {} if labels is None else {"tokens": labels.own_tokens_file().decode("utf-8")}
        put_file(out, to_onnx(model, {**notes, **known}), force)
        return [out]
    if kind in FOLDERS:
        known = {} if labels is None else {TOKENS_FILE: labels.own_tokens_file()}
        files = FOLDERS[kind](model, notes) | known
    else:
        files = STOCK[kind](model, notes, labels)
    put_export(out, files, force)
    return [out / name for name in sorted(files)]
