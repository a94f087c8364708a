"""Gemma 1 to 3: Llama's names; embeddings are multiplied by sqrt(d), and the gain of a norm is 1 + its weight.

No shape shows the one in the gains. Gemma 2 and 3 have norms around their parts, which tells them from Llama; without a
config Gemma 1 looks like a Llama with a tied head, and neither is read. Gemma 2 caps scores, and both have a scale
of the scores of their own, `query_pre_attn_scalar` ** -0.5; Gemma 3 norms queries and keys."""

from __future__ import annotations

import math

from certiformer.audit.form import Checkpoint
from certiformer.audit.read.decoder import SEPARATE, Kin, read_decoder
from certiformer.audit.read.family import Family
from certiformer.audit.read.llama import INNER
from certiformer.audit.read.llama import is_mine as has_gates
from certiformer.audit.read.names import Names
from certiformer.audit.read.settings import Settings
from certiformer.errors import BadInput

KNOWN = ("gemma", "gemma2", "gemma3", "gemma3_text")
AROUND = "layers.0.pre_feedforward_layernorm.weight"
# No Gemma has biases, and one with norms of queries has norms around its parts.
NEVER = ("layers.0.self_attn.q_proj.bias", "layers.0.self_attn.q_norm.weight")


def is_mine(names: Names, settings: Settings) -> bool:
    """By the config, else by what is there; raises where neither decides."""
    if not has_gates(names, settings):
        return False
    said = settings.get("model_type")
    if said is not None:
        return said in KNOWN
    if names.has(AROUND):
        return True
    if names.root.has("lm_head.weight") or any(names.has(name) for name in NEVER):
        return False
    raise BadInput(
        f"the tensors of {names.files.place} may be those of a Llama or of a Gemma, whose gains mean different things, and"
        " no config says which; say it with --model-type"
    )


def read(names: Names, settings: Settings) -> Checkpoint:
    """The checkpoint below the prefix of `names`."""
    around = names.has(AROUND)
    number = (3 if names.has("layers.0.self_attn.q_norm.weight") else 2) if around else 1
    width = names.length("layers.0.input_layernorm.weight")
    scalar = settings.positive("query_pre_attn_scalar")
    kin = Kin(
        "gemma" if number == 1 else f"gemma{number}",
        tied=True,
        # In GGUF the one is already added.
        offset=0.0 if names.files.kind == "gguf" else 1.0,
        embedding_scale=math.sqrt(width),
        scale=None if scalar is None else scalar**-0.5,
        cap=settings.positive("attn_logit_softcapping"),
        around=around,
        full_every={1: 0, 2: 2, 3: 6}[number],
    )
    return read_decoder(names, settings, kin)


GEMMA = Family("gemma", SEPARATE, read, INNER, is_mine)
