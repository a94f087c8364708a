"""Weights of an ONNX graph under the names of their modules, so that the family of the model reads them.

Exporters keep the names of biases, norms and tables, but store the matrix of a Linear turned to (in, out) under a name
such as `onnx::MatMul_301` or `val_12`. The node that uses it says which module that is. Rules, so that nothing is
guessed: a nameless tensor gets the name of a module only where every node that uses it is a product of that module,
and where that module has no other; a matrix that two modules share stays nameless. Vectors that are equal (the zeros
and ones of an untrained model) are stored once by exporters, but are parameters of each module, and are presented so.
Numbers of the graph that are no parameters (an epsilon, angles, slopes) are set aside, as buffers are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from hashlib import blake2b

import numpy as np

from certiformer.audit.files import TensorFiles, TensorInfo
from certiformer.audit.files.onnx_nodes import GraphFiles
from certiformer.audit.read.onnx_constants import NAMELESS, check_not_quantised, constants
from certiformer.audit.read.onnx_modules import written
from certiformer.audit.read.onnx_uses import Use, Uses, uses_of
from certiformer.audit.read.origin import Origin

AGAIN = re.compile(r"_\d+$")  # behind the name of a module that is called again
SHARED = "equal numbers, stored once"
# Modules of GPT-2, whose files have (in, out) too; the family knows.
IN_OUT = (".c_attn.weight", ".c_proj.weight", ".c_fc.weight", ".q_attn.weight")
CONSTANT = "constant"  # in place of a type: such a tensor is listed and is no weight
# torch.export keeps the last name of a parameter that has several; files have the other.
TIED = {
    "cls.predictions.decoder.bias": "cls.predictions.bias",
    "predictions.decoder.bias": "predictions.bias",
    "lm_head.decoder.bias": "lm_head.bias",
}


@dataclass
class Named:
    """The tensors as families know them, and what they stand for. `copies` are stored tensors that repeat another one;
    `nameless` are factors of products that got no name; `calls` says how often a stored matrix is used.
    `unclear` is a sentence where names could mislead, so that no family may read them."""

    files: TensorFiles
    origins: dict[str, Origin] = field(default_factory=dict)
    copies: set[str] = field(default_factory=set)
    nameless: list[str] = field(default_factory=list)
    calls: dict[str, int] = field(default_factory=dict)
    unclear: str = ""


@dataclass
class _Names:
    """While names are given: the stored tensor of every name, whether it is turned, and how that came about."""

    files: GraphFiles
    stored: dict[str, tuple[str, bool, str]]

    def give(self, new: str, name: str, turned: bool = False) -> None:
        """The name of a stored tensor, instead of the one it has."""
        self.stored.pop(name, None)
        self.stored[new] = name, turned, ""

    def present(self, aside: set[str]) -> tuple[TensorFiles, dict[str, Origin]]:
        places = self.stored
        infos: dict[str, TensorInfo] = {}
        for new, (name, turned, _) in places.items():
            info = self.files.infos[name]
            info = replace(info, shape=info.shape[::-1]) if turned else info
            infos[new] = replace(info, stored=CONSTANT) if new in aside else info

        def read(new: str) -> np.ndarray:
            name, turned, _ = places[new]
            return self.files.reader(name).T if turned else self.files.reader(name)

        origins = {
            new: Origin(name, made, transposed=turned)
            for new, (name, turned, made) in places.items()
            if new != name or turned or made
        }
        return replace(self.files, infos=infos, reader=read), origins


def named(files: TensorFiles) -> Named:
    """The tensors of a graph under the names of their modules."""
    if not isinstance(files, GraphFiles):
        return Named(files)
    check_not_quantised(files)
    uses = uses_of(files)
    names = _Names(files, {name: (name, False, "") for name in files.infos})
    found = Named(files)
    for name, stored in uses.same.items():
        if uses.of(name):
            names.stored[name] = stored, False, SHARED
    _tables(names, uses)
    _products(names, uses, found)
    _vectors(names, uses, found)
    for old, new in (TIED | written(names.stored)).items():
        if old in names.stored and new not in names.stored:
            names.stored[new] = names.stored.pop(old)
    for name in files.infos:
        bodies = Counter(use.body for use in uses.of(name) if use is not None and use.kind == "product")
        if len(files.infos[name].shape) == 2 and bodies:
            found.calls[name] = found.calls.get(name, 0) + max(bodies.values())  # only one of two branches runs
        multiplied = {op for op, _ in uses.places.get(name, ())} & {"MatMul", "Gemm"}
        if name in names.stored and multiplied and NAMELESS.fullmatch(name) and name not in found.copies:
            found.nameless.append(name)
    found.files, found.origins = names.present(constants(files, uses))
    return found


def _tables(names: _Names, uses: Uses) -> None:
    """A table that torch.export calls after the head it is tied to is called after the module that looks things up."""
    for name in list(names.files.infos):
        modules = {use.module for use in uses.of(name) if use is not None and use.kind == "table" and use.scoped}
        if len(modules) == 1 and not NAMELESS.fullmatch(name):
            new = f"{modules.pop()}.weight"
            if new not in names.stored and not f".{new}".endswith(f".{name}") and not f".{name}".endswith(f".{new}"):
                names.give(new, name)


def _products(names: _Names, uses: Uses, found: Named) -> None:
    """Names for the nameless matrices and biases of modules."""
    wanted: dict[str, list[tuple[str, bool]]] = {}
    for name, info in names.files.infos.items():
        of = uses.of(name)
        products = [use for use in of if use is not None and use.kind == "product"]
        if not info.is_weight or not products:
            continue
        modules = _modules(products)
        if len(products) < len(of) or len(modules) > 1 or len({(use.part, use.turned) for use in products}) > 1:
            continue
        if not NAMELESS.fullmatch(name):
            # Not every exporter takes the name away when it turns a matrix.
            if products[0].turned and name.endswith(".weight") and not name.endswith(IN_OUT):
                names.stored[name] = name, True, ""
            continue
        new = f"{modules.pop()}.{products[0].part}"
        beside = {each for use in products for each in uses.added.get(use.output, ())}
        wanted.setdefault(_aligned(new, beside, uses), []).append((name, products[0].turned))
    for new, claims in wanted.items():
        (name, turned), *others = claims
        if new in names.stored or not all(_equal(names.files, claims[0], other) for other in others):
            continue
        names.give(new, name, turned)
        for copy, _ in others:  # torch.export may store a matrix once for each call of its module
            found.copies.add(copy)
            found.calls[name] = found.calls.get(name, 0) + len(uses.of(copy))


def _modules(uses: Iterable[Use]) -> set[str]:
    """The modules of several uses, those that are called again once."""
    kept: set[str] = set()
    for module, scoped in sorted({(use.module, use.scoped) for use in uses}, key=lambda each: len(each[0])):
        start = AGAIN.sub("", module)
        if scoped or start == module or start not in kept:
            kept.add(module)
    return kept


def _aligned(new: str, beside: set[str], uses: Uses) -> str:
    """The name of a weight, with what its bias is called taken into account: exporters may wrap a model in another one,
    whose nodes then have a longer path than its tensors, and the fused maps of torch have names of their own."""
    bias = next(iter(beside)) if len(beside) == 1 else ""
    stem, _, leaf = bias.rpartition(".")
    module, _, part = new.rpartition(".")
    if part != "weight" or not stem or len(_modules(use for use in uses.of(bias) if use is not None)) > 1:
        return new
    if stem == module and leaf == "in_proj_bias":
        return f"{stem}.in_proj_weight"
    related = f".{module}".endswith(f".{stem}") or f".{stem}".endswith(f".{module}")
    return f"{stem}.weight" if leaf == "bias" and related else new


def _equal(files: TensorFiles, one: tuple[str, bool], other: tuple[str, bool]) -> bool:
    """Whether two tensors are the same numbers, used the same way round; one at a time is in memory."""
    if one[1] != other[1] or files.infos[one[0]] != files.infos[other[0]]:
        return False
    first, second = (blake2b(np.ascontiguousarray(files.reader(name)).data).digest() for name, _ in (one, other))
    return first == second


def _vectors(names: _Names, uses: Uses, found: Named) -> None:
    """A vector that modules share is presented to each of them, under the names that they would have for it."""
    for name, (stored, _, _) in list(names.stored.items()):
        info, of = names.files.infos[stored], uses.of(name)
        known = [use for use in of if use is not None]
        if len(info.shape) != 1 or info.count < 2 or not info.is_weight or not known or NAMELESS.fullmatch(name):
            continue
        modules = _modules(known)
        if len(modules) == 1 and len(known) == len(of):
            continue
        wanted = {f"{use.module}.{use.part}" for use in known if use.module in modules}
        if len(known) < len(of) or name not in wanted or any(each in names.stored for each in wanted - {name}):
            found.unclear = f"{name!r} is used in {len(of)} places, and not all of them say what for"
            continue
        for new in sorted(wanted - {name}):
            names.stored[new] = stored, False, SHARED
