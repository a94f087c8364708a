"""`export`: the transformer of an artifact or a folder for another program."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from certiformer.api.folders import opened
from certiformer.artifact import Artifact
from certiformer.artifact.export import Exported, require_sealed
from certiformer.artifact.export import export as export_artifact
from certiformer.artifact.folder import read_folder
from certiformer.disk import recover, refuse_own_input
from certiformer.errors import BadInput
from certiformer.kernel.files import CERTIFICATE, HITS, MODEL

if TYPE_CHECKING:
    from certiformer.model import Transformer


def export(
    source: Artifact | Transformer | str | Path,
    to: Literal["onnx", "torch", "hf", "transformerlens", "gpt2", "llama", "phi3"],
    *,
    out: str | Path | None = None,
    force: bool = False,
) -> Exported:
    """Write a transformer for another program, with the claim and the SHA-256 of its weights beside it.

    **Arguments:**

    - `source`: an artifact, a run folder, a folder with `model.safetensors` and `config.json`, or a `Transformer`.
    - `to`: one ONNX file (needs `certiformer[onnx]`), a plain PyTorch module, Hugging Face files, or a stock architecture.
    - `out`: where to write (default: beside the folder, as `DIR.onnx`, `DIR-torch`, ...).
    - `force`: whether it may replace an earlier export.

    The result names the place (`out`), the `files`, and what they say about their origin (`notes`).

    >>> import certiformer
    >>> from tempfile import mkdtemp
    >>> reverse = certiformer.compile("reverse", length=4)
    >>> [path.name for path in certiformer.export(reverse, "hf", out=mkdtemp() + "/reverse").files if "model" in path.name]
    ['model.safetensors']
    """
    if not isinstance(source, str | Path):
        return export_artifact(source, to, out=out, force=force)
    folder = Path(source)
    recover(folder)
    if not folder.is_dir():
        raise BadInput(f"{source} is not a folder")
    if (folder / CERTIFICATE).is_file():
        certificate, files = read_folder(folder)
        require_sealed(certificate, files, folder)
        if certificate.subject == HITS:  # the claim is about users, not about what a transformer computes
            return _export_model(folder, to, out, force)
        return export_artifact(opened(certificate, files, folder), to, out=out, force=force)
    if not (folder / MODEL).is_file():
        raise BadInput(f"{folder} holds no {MODEL}; export needs a run folder or a model folder")
    return _export_model(folder, to, out, force)


def _export_model(folder: Path, to: str, out: str | Path | None, force: bool) -> Exported:
    from certiformer.export import default_place
    from certiformer.model import load as load_model

    place = default_place(folder, to) if out is None else Path(out)
    refuse_own_input(place, folder)
    return export_artifact(load_model(folder), to, out=place, force=force)
