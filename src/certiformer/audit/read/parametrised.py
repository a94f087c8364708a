"""Weights that a file holds as the parameters of a formula: rebuilt, with the formula in their provenance.

Weight norm: w = g v / |v|, the length taken over the axes that g does not have; torch writes `parametrizations.X.original0`
(g) and `original1` (v), or `X_g` and `X_v` in older files. Spectral norm: w = v / (a . V b) with the stored estimates a, b
of the leading singular vectors, V the matrix of v with its first axis in front; torch writes `parametrizations.X.original`
with `X.0._u` and `X.0._v`, or `X_orig`, `X_u` and `X_v`. In evaluation torch uses the stored estimates as they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from certiformer.audit.files import TensorFiles, TensorInfo
from certiformer.audit.read.origin import Origin
from certiformer.errors import BadInput

Read = Callable[[str], np.ndarray]


def rebuilt(files: TensorFiles) -> tuple[TensorFiles, dict[str, Origin]]:
    """The tensors with parametrised ones in their effective form under their plain names, and what those are made of."""
    made: dict[str, tuple[Callable[[], np.ndarray], Origin]] = {}
    hidden: set[str] = set()
    for name in files.infos:
        found = _weight_norm(files, name) or _spectral_norm(files, name)
        if found is not None:
            plain, uses, read, origin = found
            if plain in files.infos or plain in made:
                other = plain if plain in files.infos else made[plain][1].tensor
                raise BadInput(f"{files.place} has {other!r} and also {name!r}, which would both be {plain!r}")
            made[plain] = read, origin
            hidden |= {name, *uses}
        elif ".parametrizations." in f".{name}" and not _is_part(files, name):
            raise BadInput(f"the tensor {name!r} belongs to a parametrisation that is not known here")
    if not made:
        return files, {}
    infos: dict[str, TensorInfo] = {name: info for name, info in files.infos.items() if name not in hidden}
    infos |= {plain: files.infos[origin.tensor] for plain, (_, origin) in made.items()}

    def reader(name: str) -> np.ndarray:
        return made[name][0]() if name in made else files.reader(name)

    return replace(files, infos=infos, reader=reader), {plain: origin for plain, (_, origin) in made.items()}


def _weight_norm(files: TensorFiles, name: str):
    """(plain name, the other tensors, how to make it, origin) where `name` is the v of a weight norm."""
    if name.endswith(".original1"):
        stem, length = name.removesuffix(".original1"), name.removesuffix("1") + "0"
        plain = _plain(stem)
    elif name.endswith("_v") and name.removesuffix("_v") + "_g" in files.infos:
        plain, length = name.removesuffix("_v"), name.removesuffix("_v") + "_g"
    else:
        return None
    if length not in files.infos:
        raise BadInput(f"{files.place} has {name!r}, but not {length!r}, without which it says nothing")
    shape, lengths = files.infos[name].shape, files.infos[length].shape
    if lengths and (len(lengths) != len(shape) or any(a not in (1, b) for a, b in zip(lengths, shape, strict=True))):
        raise BadInput(f"the tensor {length!r} has the shape {lengths}, which does not fit {name!r} with {shape}")
    axes = tuple(i for i in range(len(shape)) if not lengths or lengths[i] == 1)

    def read() -> np.ndarray:
        direction = np.asarray(files.read(name), np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):  # 0 / 0 is NaN in torch, too, and is named
            # Of the size of one, so that squares neither overflow nor vanish; g v / |v| does not change by it.
            direction = direction / np.max(np.abs(direction), axis=axes, keepdims=True, initial=0.0)
            return direction * (files.read(length) / np.sqrt(np.sum(direction**2, axis=axes, keepdims=True)))

    return plain, (length,), read, Origin(name, f"g v / |v|, g = {length}", files.infos[length].count)


def _spectral_norm(files: TensorFiles, name: str):
    """The same where `name` is the v of a spectral norm."""
    if name.endswith(".original") and ".parametrizations." in f".{name}":
        stem = name.removesuffix(".original")
        plain, left, right = _plain(stem), f"{stem}.0._u", f"{stem}.0._v"
    elif name.endswith("_orig"):
        plain = name.removesuffix("_orig")
        left, right = f"{plain}_u", f"{plain}_v"
    else:
        return None
    if left not in files.infos or right not in files.infos:
        return None
    shape = files.infos[name].shape
    sides = files.infos[left].shape, files.infos[right].shape
    if 0 in (shape or (0,)) or sides != (shape[:1], (files.infos[name].count // shape[0],)):
        raise BadInput(f"{left!r} and {right!r} do not fit {name!r}, whose shape is {shape}")

    def read() -> np.ndarray:
        weight, u, v = (np.asarray(files.read(each), np.float64) for each in (name, left, right))
        with np.errstate(divide="ignore", invalid="ignore"):
            weight = weight / np.max(np.abs(weight), initial=0.0)  # of the size of one, as above
            return weight / (u @ weight.reshape(len(weight), -1) @ v)

    return plain, (left, right), read, Origin(name, "v / (a . V b)", 0, (left, right))


def _plain(stem: str) -> str:
    """`layer.parametrizations.weight` stands for `layer.weight`."""
    before, _, after = stem.rpartition("parametrizations.")
    return before + after


def _is_part(files: TensorFiles, name: str) -> bool:
    """Whether another tensor of the formula says which one it is."""
    stem = name.removesuffix(".original0").removesuffix(".0._u").removesuffix(".0._v")
    return stem != name and (f"{stem}.original1" in files.infos or f"{stem}.original" in files.infos)
