"""Which family a checkpoint belongs to, and reading it.

Parametrised weights are rebuilt, GGUF names translated and ONNX names completed first; then every family looks for its
sign, whatever stands before it. Two models in one file are a question, not a guess."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from certiformer.audit.files import TensorFiles, open_tensors
from certiformer.audit.form import Checkpoint, Coverage
from certiformer.audit.read import onnx_graph, own
from certiformer.audit.read.albert import ALBERT
from certiformer.audit.read.bert import BERT
from certiformer.audit.read.bloom import BLOOM
from certiformer.audit.read.consistent import check_parts
from certiformer.audit.read.distilbert import DISTILBERT
from certiformer.audit.read.falcon import FALCON
from certiformer.audit.read.gemma import GEMMA
from certiformer.audit.read.gguf_names import translated
from certiformer.audit.read.gpt2 import GPT2
from certiformer.audit.read.gptj import GPTJ
from certiformer.audit.read.gsasrec import GSASREC
from certiformer.audit.read.llama import LLAMA
from certiformer.audit.read.mixtral import MIXTRAL
from certiformer.audit.read.names import Names, names_of
from certiformer.audit.read.neox import NEOX
from certiformer.audit.read.opt import OPT
from certiformer.audit.read.origin import after
from certiformer.audit.read.parametrised import rebuilt
from certiformer.audit.read.phi3 import PHI3
from certiformer.audit.read.recbole import RECBOLE
from certiformer.audit.read.sasrec import SASREC
from certiformer.audit.read.settings import Settings
from certiformer.audit.read.t5 import T5
from certiformer.audit.read.timm_vit import TIMM_VIT
from certiformer.audit.read.torch_encoder import TORCH_ENCODER
from certiformer.audit.read.vit import VIT
from certiformer.errors import BadInput

# Asked in this order; those that share names with others look closer themselves.
FAMILIES = (
    BERT,
    DISTILBERT,
    ALBERT,
    GPT2,
    GEMMA,
    LLAMA,
    MIXTRAL,
    PHI3,
    NEOX,
    BLOOM,
    FALCON,
    OPT,
    GPTJ,
    T5,
    VIT,
    TIMM_VIT,
    TORCH_ENCODER,
    SASREC,
    RECBOLE,
    GSASREC,
)
# Ends of names under which quantised files keep packed numbers and what unpacks them.
PACKED = (".qweight", ".qzeros", ".absmax", ".quant_map", ".weight_scale", ".weight_scale_inv", "_blocks", ".SCB")


def read_checkpoint(path: str | Path, **given: Any) -> tuple[Checkpoint, Coverage]:
    """The checkpoint that a path holds, and how much of it is accounted for.

    `given` is what the user says besides the config and wins over it: `heads`, `key_value_heads`, `head_size`, `repeats`
    of shared layers, `model_type`, `norm_first`, `causal`, and `prefix`, which picks one of several models in a file.
    """
    return read_tensors(open_tensors(path), **given)


def read_tensors(files: TensorFiles, prefix: str | None = None, **given: Any) -> tuple[Checkpoint, Coverage]:
    """The same from tensors that are open."""
    packed = next((name for name in files.infos if name.endswith(PACKED)), None)
    if packed is not None:
        raise BadInput(f"{files.place} is quantised: {packed!r} is packed; audit the weights it was made from")
    files, origins = rebuilt(files)
    if files.kind == "gguf":
        files, renamed = translated(files)
        origins = after(origins, renamed)
    settings = Settings(files.config, given)
    if files.kind == "onnx":
        found = onnx_graph.read(files, origins, settings, lambda names: _of_family(names, settings, prefix))
        if found is not None:
            return found
        raise _of_no_family(files)
    names = names_of(files, origins=origins)
    if own.is_own(settings):
        checkpoint = own.read(names, settings)
        check_parts(checkpoint)
        return checkpoint, names.coverage()
    checkpoint = _of_family(names, settings, prefix)
    if checkpoint is None:
        raise _of_no_family(files)
    return checkpoint, names.coverage()


def _of_family(names: Names, settings: Settings, prefix: str | None) -> Checkpoint | None:
    """The checkpoint as the family that it belongs to reads it."""
    for family in FAMILIES:
        views = [family.view(names, each) for each in family.prefixes(names) if prefix in (None, each)]
        mine = [view for view in views if family.is_mine(view, settings)]
        if len(mine) > 1:
            shown = " and ".join(repr(view.prefix) for view in mine[:3])
            raise BadInput(f"{names.files.place} holds several models, below {shown}; pick one with --prefix")
        if mine:
            checkpoint = family.read(mine[0], settings)
            check_parts(checkpoint)
            return checkpoint
    return None


def _of_no_family(files: TensorFiles) -> BadInput:
    shown = ", ".join(map(repr, sorted(files.infos)[:3]))
    known = ", ".join(family.name for family in FAMILIES)
    return BadInput(
        f"{files.place} is of no family known here: it has {shown}, ...; the families are {known}, certiformer"
    )
