"""What every export needs: its place on the disk, the words about the claim, tensors with notes, optional libraries.

A folder is written complete or not at all, and never over something that is not an export.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import safetensors.numpy

from certiformer.disk import Workplace, names_in, put_folder
from certiformer.errors import BadInput, MissingExtra


def required(module: str, remedy: str) -> ModuleType:
    """The module, or `MissingExtra` with the command that installs it.

    >>> required("no_such_library", "pip install no-such-library")
    Traceback (most recent call last):
    ...
    certiformer.errors.MissingExtra: this needs the library no_such_library, which is not installed: pip install \
no-such-library
    """
    try:
        return import_module(module)
    except ImportError:
        library = module.partition(".")[0]
        raise MissingExtra(f"this needs the library {library}, which is not installed: {remedy}") from None


def tensors_with_notes(arrays: Mapping[str, np.ndarray], notes: Mapping[str, str]) -> bytes:
    """The content of the file; readers of the Hugging Face libraries insist on the entry `format`.

    >>> tensors_with_notes({"a": np.zeros(1, np.float32)}, {"claim": "so"})[8:40]
    b'{"__metadata__":{"format":"pt","'
    """
    data = safetensors.numpy.save(dict(arrays))
    start = 8 + int.from_bytes(data[:8], "little")
    about = {"format": "pt", **dict(sorted(notes.items()))}
    header = json.dumps({"__metadata__": about, **json.loads(data[8:start])}, separators=(",", ":")).encode("ascii")
    header += b" " * (-len(header) % 8)
    return b"".join([len(header).to_bytes(8, "little"), header, data[start:]])


SCOPE = (
    "The claim is about the real-number function of the stored weights. Running them in floating-point numbers, in any"
    " program, adds a rounding error that it does not include."
)


def claim_lines(notes: Mapping[str, str]) -> list[str]:
    """The Markdown lines about the claim and the origin of the weights; they end in a newline.

    >>> print("\\n".join(claim_lines({"model_sha256": "0f"})))
    ## What is claimed
    <BLANKLINE>
    Nothing: no proof came with these weights.
    <BLANKLINE>
    - model_sha256: 0f
    <BLANKLINE>
    """
    claim = notes.get("claim")
    lines = (
        [f"> {claim}", "", notes.get("claim_scope", SCOPE)] if claim else ["Nothing: no proof came with these weights."]
    )
    facts = [f"- {name}: {text}" for name, text in sorted(notes.items()) if name not in ("claim", "claim_scope")]
    return ["## What is claimed", "", *lines, "", *facts, ""]


README_FILE = "README.md"
CACHES = ("__pycache__",)  # of who has imported the module of an export


def put_export(folder: Path, files: Mapping[str, bytes], force: bool) -> None:
    """Write a folder of files whole or not at all; an earlier export goes only with `force`."""
    with Workplace(folder):
        check_export_place(folder, files, force)
        put_folder(folder, files, CACHES)


def check_export_place(folder: Path, names: Mapping[str, object], force: bool) -> None:
    """Refuse a place that is taken by something else than an earlier export of the same kind."""
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"{folder} is a file; this export is a folder")
    present = names_in(folder)
    # Every export has a README; the folder of a model, which must never be lost here, has the other names only.
    foreign = present - {*names, *CACHES} or (present and README_FILE not in present)
    if foreign:
        raise BadInput(f"{folder} is not empty and not an earlier export of this kind; choose another --out")
    if present and not force:
        raise BadInput(f"{folder} already exists; add --force to replace it or choose another --out")
