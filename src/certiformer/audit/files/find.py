"""What a path holds: a file of one of the formats, or a folder with weights and perhaps a config.

In a folder the index of shards wins, then `model.safetensors`, then a single file of any format; several files
without an index are a question, not a guess."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from certiformer.audit.files.refused import PICKLES, pickle_sentence
from certiformer.audit.files.safetensors_file import Places, check_index, read_headers, shards_of
from certiformer.audit.files.tensors import TensorFiles
from certiformer.errors import BadInput
from certiformer.kernel.files import parse_json
from certiformer.reading import read_regular

INDEX, SINGLE, CONFIG = "model.safetensors.index.json", "model.safetensors", "config.json"
LARGEST_CONFIG = 16 << 20
# Beside the weights of a model there may be those of an adapter, of another format, or a copy.
ASIDE = ("adapter_model.safetensors", "consolidated.safetensors", "training_args.bin", "optimizer.bin", "scheduler.bin")


def open_tensors(path: str | Path) -> TensorFiles:
    """The tensors that a path holds; raises `BadInput` with one sentence when there is nothing to audit."""
    place = Path(path)
    if place.is_dir():
        return _folder(place)
    if not place.exists():
        raise BadInput(f"{path} does not exist")
    if place.name.endswith(".index.json"):
        return _safetensors(place.parent, shards_of(place), place)
    return _file(place, place.parent, _config_above(place))


def _folder(folder: Path) -> TensorFiles:
    if (folder / INDEX).is_file():
        return _safetensors(folder, shards_of(folder / INDEX), folder / INDEX)
    if (folder / SINGLE).is_file():
        return _safetensors(folder, [folder / SINGLE], None)
    names = sorted(path.name for path in folder.iterdir() if path.is_file() and path.name not in ASIDE)
    known = [name for name in names if name.endswith((".safetensors", ".gguf", ".onnx"))]
    if len(known) == 1:
        return _file(folder / known[0], folder)
    if known:
        raise BadInput(
            f"{folder} has {len(known)} files of weights and no {INDEX}; name one of them: {', '.join(known[:3])}"
        )
    pickles = [name for name in names if name.endswith(PICKLES)]
    if pickles:
        raise BadInput(pickle_sentence(folder / pickles[0]))
    raise BadInput(f"{folder} holds no weights: no .safetensors, .gguf or .onnx file")


def _file(path: Path, folder: Path, above: Path | None = None) -> TensorFiles:
    ending = path.suffix.lower()
    if ending == ".safetensors":
        return _safetensors(folder, [path], None)
    if ending in (".gguf", ".onnx"):
        module = import_module(f"certiformer.audit.files.{ending[1:]}_file")
        files = module.open_file(path)
        if ending == ".gguf":  # has its config in itself
            return files
        config = read_config(folder)
        return replace(files, config=read_config(above) if config is None and above is not None else config)
    if ending in PICKLES:
        raise BadInput(pickle_sentence(path))
    raise BadInput(f"{path} is no .safetensors, .gguf or .onnx file")


def _config_above(path: Path) -> Path | None:
    """Where the config of a file in a folder called `onnx` stands in repositories of models: one folder up. Only a file
    that was named itself is followed there; of a folder that was named, nothing outside is read."""
    folder = path.absolute().parent
    return folder.parent if path.suffix.lower() == ".onnx" and folder.name == "onnx" else None


def _safetensors(folder: Path, paths: list[Path], index: Path | None) -> TensorFiles:
    infos, metadata, homes = read_headers(paths)
    if index is not None:
        check_index(index, infos)
    place = str(paths[0] if len(paths) == 1 else folder)
    places = {path: Places(path) for path in paths}
    return TensorFiles(
        "safetensors", place, infos, lambda name: places[homes[name]].tensor(name), read_config(folder), metadata
    )


def read_config(folder: Path) -> dict[str, Any] | None:
    """`config.json` of a folder, or None where there is none."""
    path = folder / CONFIG
    if not path.is_file():
        return None
    # Checkpoints are often links to a cache.
    data = parse_json(read_regular(path, LARGEST_CONFIG, links=True), CONFIG)
    if not isinstance(data, dict):
        raise BadInput(f"{path} is not a JSON object")
    return data
