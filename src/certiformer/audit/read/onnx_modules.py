"""Modules that a library calls otherwise in its code than in the files it writes.

A graph has the names of the code. `transformers` 5 renamed parts of some models and translates the names when it saves
or loads; the translation for those families is here."""

from __future__ import annotations

import re
from collections.abc import Iterable

VIT_LAYER = r"(^|\.)layers\.(\d{1,6})\."
# A name that shows which code it was, and what to write for the parts of names.
RENAMED: tuple[tuple[re.Pattern, tuple[tuple[re.Pattern, str], ...]], ...] = (
    (
        re.compile(r"(.*\.)?layers\.0\.layernorm_before\.weight"),
        tuple(
            (re.compile(VIT_LAYER + re.escape(code)), rf"\1encoder.layer.\2.{file}")
            for code, file in (
                ("attention.q_proj.", "attention.attention.query."),
                ("attention.k_proj.", "attention.attention.key."),
                ("attention.v_proj.", "attention.attention.value."),
                ("attention.o_proj.", "attention.output.dense."),
                ("mlp.fc1.", "intermediate.dense."),
                ("mlp.fc2.", "output.dense."),
                ("layernorm_before.", "layernorm_before."),
                ("layernorm_after.", "layernorm_after."),
            )
        ),
    ),
    (
        re.compile(r"(.*\.)?gpt_neox\.layers\.0\.attention\.query_key_value\.weight"),
        ((re.compile(r"^lm_head\."), "embed_out."),),
    ),
)


def written(names: Iterable[str]) -> dict[str, str]:
    """The names of the code that differ from those of files, and what files have instead.

    >>> written(["gpt_neox.layers.0.attention.query_key_value.weight", "lm_head.weight"])
    {'lm_head.weight': 'embed_out.weight'}
    """
    names = list(names)
    found: dict[str, str] = {}
    for sign, parts in RENAMED:
        if any(sign.fullmatch(name) for name in names):
            for name in names:
                for part, file in parts:
                    new = part.sub(file, name, count=1)
                    if new != name and name not in found:
                        found[name] = new
    # Where both are there, the names are not what they seem.
    return {} if set(found.values()) & set(names) else found
