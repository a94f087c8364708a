"""Run folders and uploads, by names that the server draws; what is old makes room, and all of it goes with the server."""

from __future__ import annotations

import io
import re
import secrets
import shutil
import zipfile
from pathlib import Path

from certiformer.errors import BadInput
from certiformer.explore.limits import KEPT_RUNS, KEPT_UPLOADS, UPLOAD_FILES

# What an upload may hold. A page only chooses one of these, by its name or by its numbers.
NAMES = ("config.json", "model.safetensors", "model.safetensors.index.json", "model.gguf", "model.onnx", "model.npz")
SHARD = re.compile(r"model-(\d{5})-of-(\d{5})\.safetensors")


class Storage:
    """The folders under one folder of the server's own."""

    def __init__(self, home: Path):
        self.home = home
        self.runs: dict[str, Path] = {}
        self.uploads: dict[str, Path] = {}

    def new_run(self) -> tuple[str, Path]:
        """A name and where its run will be; the worker makes the folder."""
        return self._new(self.runs, KEPT_RUNS)

    def new_upload(self) -> str:
        """The name of an empty folder for what is dropped on the page."""
        name, folder = self._new(self.uploads, KEPT_UPLOADS)
        folder.mkdir()
        return name

    def run(self, name: str) -> Path:
        """The folder of a run."""
        if name not in self.runs or not self.runs[name].is_dir():
            raise BadInput("this run is not kept any more; start it again")
        return self.runs[name]

    def upload(self, name: str) -> Path:
        """The folder of an upload."""
        if name not in self.uploads:
            raise BadInput("this upload is not kept any more; drop the files again")
        return self.uploads[name]

    def upload_file(self, name: str, wanted: str) -> Path:
        """Where a file of an upload goes."""
        folder = self.upload(name)
        if sum(1 for _ in folder.iterdir()) >= UPLOAD_FILES:
            raise BadInput(f"a checkpoint of at most {UPLOAD_FILES} files can be dropped here")
        return folder / allowed_name(wanted)

    def _new(self, kept: dict[str, Path], most: int) -> tuple[str, Path]:
        while len(kept) >= most:
            shutil.rmtree(kept.pop(next(iter(kept))), ignore_errors=True)
        name = secrets.token_hex(16)
        kept[name] = self.home / name
        return name, kept[name]


def allowed_name(wanted: str) -> str:
    """Our own spelling of the name of a checkpoint's file.

    >>> allowed_name("model.gguf"), allowed_name("model-00001-of-00002.safetensors")
    ('model.gguf', 'model-00001-of-00002.safetensors')
    >>> allowed_name("../model.gguf")
    Traceback (most recent call last):
    certiformer.errors.BadInput: a checkpoint's files are config.json, model.safetensors, ... and its numbered parts
    """
    shard = SHARD.fullmatch(wanted)
    if shard is not None:
        return f"model-{int(shard[1]):05d}-of-{int(shard[2]):05d}.safetensors"
    for name in NAMES:
        if wanted == name:
            return name
    raise BadInput(f"a checkpoint's files are {', '.join(NAMES[:2])}, ... and its numbered parts")


def zipped(folder: Path) -> bytes:
    """The files of a run folder as a ZIP archive."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.iterdir()):
            if path.is_file():
                archive.write(path, f"certiformer-run/{path.name}")
    return buffer.getvalue()
