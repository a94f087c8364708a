"""What can go wrong with a checkpoint: changes of names, shapes, types, numbers, configs and metadata.

A mutation changes a draft in place and draws what it needs from a seeded generator, so that a mutant is a base and a list
of (mutation, seed), which a failing test prints."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from audit.read.drafts import BASES, Draft

Mutation = Callable[[Draft, random.Random], None]
TYPES = ("float16", "bfloat16", "float64", "float32", "int64", "int8", "bool")
MOST = 1 << 20  # numbers of a tensor that was made longer
# No value of a config is safe from being one of these.
JUNK: tuple[Any, ...] = (
    None, True, False, 0, 1, 2, 3, 5, 6, 7, 12, 13, 24, -1, -12, 0.0, -0.0, 1.5, 12.0, -1e-5, 1e-320, 1e308, float("nan"),
    float("inf"), 10**9, 10**12, 2**40 - 1, 2**63, 10**18, 10**400, "", "x", "12", "gelu", "\n", "\ud800", "é" * 9, [], [1], [[]],
    {}, {"a": {"b": [1]}}, {"type": "linear", "factor": -1}, ["sliding_attention"], ["sliding_attention", None, 7],
)  # fmt: skip
MODEL_TYPES = ("llama", "gemma", "gemma2", "gemma3_text", "mistral", "qwen2", "qwen3", "mixtral", "bert", "roberta", "gpt2",
    "phi3", "falcon", "granite", "cohere", "t5", "bloom", "opt", "mamba")  # fmt: skip
KEYS = (
    "num_attention_heads", "num_key_value_heads", "head_dim", "hidden_size", "num_hidden_layers", "intermediate_size",
    "model_type", "n_head", "n_embd", "n_layer", "n_inner", "heads", "key_value_heads", "head_size", "repeats", "d_kv", "d_model",
    "num_heads", "num_layers", "num_decoder_layers", "num_hidden_groups", "num_local_experts", "num_blocks", "hidden_units",
    "embedding_dim", "depth", "layer_norm_eps", "layer_norm_epsilon", "rms_norm_eps", "sliding_window", "sliding_window_pattern",
    "use_sliding_window", "layer_types", "rope_theta", "rope_scaling", "partial_rotary_factor", "alibi", "multi_query",
    "new_decoder_architecture", "parallel_attn", "num_kv_heads", "use_parallel_residual", "tie_word_embeddings", "hidden_act",
    "hidden_activation", "activation_function", "activation", "act_layer", "dense_act_fn", "feed_forward_proj", "is_decoder",
    "max_position_embeddings", "n_positions", "n_ctx", "block_size", "seq_length", "pad_token_id", "vocab_size", "format",
    "position_embedding_type", "query_pre_attn_scalar", "attn_logit_softcapping", "scale_attn_weights",
    "scale_attn_by_inverse_layer_idx", "apply_residual_connection_post_layernorm", "do_layer_norm_before", "norm_first", "causal",
    "sinusoidal_pos_embds", "text_config",
)  # fmt: skip
ENDS = (
    "weight", "bias", "weight_g", "weight_v", "weight_orig", "weight_u", "parametrizations.weight.original0",
    "parametrizations.weight.original1", "parametrizations.weight.original", "parametrizations.weight.0._u", "inv_freq",
    "qweight", "gamma", "position_ids", "lora_A.weight",
)  # fmt: skip


def _pick(draft: Draft, rng: random.Random) -> str:
    return rng.choice(sorted(draft.tensors)) if draft.tensors else _put(draft, "nothing.weight", np.ones((2, 2)))


def _put(draft: Draft, name: str, array: np.ndarray) -> str:
    draft.tensors[name] = array
    return name


def rename(draft: Draft, rng: random.Random) -> None:
    old = _pick(draft, rng)
    stem, _, end = old.rpartition(".")
    other = _pick(draft, rng)
    new = rng.choice(
        [
            f"{stem}.{rng.choice(ENDS)}", f"x.{old}", old.upper(), old + "\n", "", ".", old.replace(".0.", ".1."), f".{end}",
            old.replace(".0.", ".00."), old.replace("query", "key"), old.replace("q_proj", "k_proj"), other, f"{old}.{end}", "é",
            old.partition(".")[2], old.replace(".", "/"), re.sub(r"\d+", "7", old),
        ]
    )  # fmt: skip
    draft.tensors[new] = draft.tensors.pop(old)


def drop(draft: Draft, rng: random.Random) -> None:
    draft.tensors.pop(_pick(draft, rng))


def drop_many(draft: Draft, rng: random.Random) -> None:
    share = rng.choice([0.1, 0.5, 1.0])
    draft.tensors = {name: array for name, array in draft.tensors.items() if rng.random() >= share}


def duplicate(draft: Draft, rng: random.Random) -> None:
    """A copy under a free name, or in the place of another tensor."""
    name = _pick(draft, rng)
    place = rng.choice(
        [f"{name}.copy", f"copy.{name}", _pick(draft, rng), "lm_head.weight", "decoder.embed_tokens.weight"]
    )
    draft.tensors[place] = draft.tensors[name].copy()


def exchange(draft: Draft, rng: random.Random) -> None:
    a, b = _pick(draft, rng), _pick(draft, rng)
    draft.tensors[a], draft.tensors[b] = draft.tensors[b], draft.tensors[a]


def reorder(draft: Draft, rng: random.Random) -> None:
    names = list(draft.tensors)
    rng.shuffle(names)
    draft.tensors = {name: draft.tensors[name] for name in names}


def extra(draft: Draft, rng: random.Random) -> None:
    """A tensor that nobody knows."""
    shape = rng.choice([(3,), (3, 2), (), (0, 4), (2, 3, 4), (1, 1, 5, 5)])
    draft.tensors[rng.choice(["unheard.of", "adapter.weight", "x.y.z.bias", "ema"])] = np.full(shape, 0.25)


def wrap(draft: Draft, rng: random.Random) -> None:
    prefix = rng.choice(["module.", "_orig_mod.", "a.b.c.", "encoder.", "decoder.", "model.", "0."])
    draft.tensors = {prefix + name: array for name, array in draft.tensors.items()}
    draft.prefix = prefix + draft.prefix


def second_model(draft: Draft, rng: random.Random) -> None:
    """The same once more below a prefix, or another family beside it."""
    if rng.random() < 0.5:
        prefix = rng.choice(["teacher.", "model.", "encoder.", "b."])
        draft.tensors |= {prefix + name: array.copy() for name, array in draft.tensors.items()}
    else:
        draft.tensors |= BASES[rng.choice(sorted(BASES))]().tensors


def more_layers(draft: Draft, rng: random.Random) -> None:
    """Layer 0 once more under another number, which leaves a gap or not, wholly or in part."""
    number, share = rng.choice(["1", "2", "3", "01", "-1", "999999", "10000000", "x"]), rng.choice([1.0, 0.5])
    copies = {
        re.sub(r"\.0\.", f".{number}.", name, count=1): array for name, array in draft.tensors.items() if ".0." in name
    }
    draft.tensors |= {name: array.copy() for name, array in copies.items() if rng.random() < share}
    for key in ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_blocks", "depth"):
        if isinstance(draft.config, dict) and draft.config.get(key) == 1 and rng.random() < 0.7:
            draft.config[key] = 2


def reshape(draft: Draft, rng: random.Random) -> None:
    """Another shape, filled with the old numbers over and over."""
    name = _pick(draft, rng)
    array = draft.tensors[name]
    old = array.shape
    side = rng.randrange(max(1, len(old)))
    by = lambda change: tuple(change(s) if i == side else s for i, s in enumerate(old))  # noqa: E731
    shape = rng.choice(
        [
            by(lambda s: 0), (1, 1), (1,), old[::-1], (*old, 1), (1, *old), (), (array.size,), by(lambda s: s // 2), (0,), (0, 0),
            by(lambda s: s + 1), by(lambda s: 2 * s), by(lambda s: 3 * s), (*old, 2), by(lambda s: 1), by(lambda s: 500 * s), (1,) * 9,
            (array.size, 1), (1, array.size), (7, 7), (12, 12), (12,), (36, 12), (12, 36), old[:-1], by(lambda s: max(1, s - 1)),
        ]
    )  # fmt: skip
    size = int(np.prod(shape, dtype=np.int64))
    if size <= MOST:
        draft.tensors[name] = np.resize(array, shape) if array.size and size else np.zeros(shape, array.dtype)


def narrow(draft: Draft, rng: random.Random) -> None:
    """One side of one length becomes another everywhere: another width, fewer heads, fewer hidden units."""
    old = rng.choice([side for array in draft.tensors.values() for side in array.shape] or [1])
    new = rng.choice([0, 1, 2, old // 2, old + 1, 2 * old])
    for name, array in draft.tensors.items():
        shape = tuple(new if side == old else side for side in array.shape)
        if 0 < np.prod(shape, dtype=np.int64) <= MOST or not array.size:
            draft.tensors[name] = np.resize(array, shape)


def retype(draft: Draft, rng: random.Random) -> None:
    name = _pick(draft, rng)
    draft.tensors[name] = _cast(draft.tensors[name], rng.choice(TYPES))


def retype_all(draft: Draft, rng: random.Random) -> None:
    kind = rng.choice(TYPES)
    draft.tensors = {name: _cast(array, kind) for name, array in draft.tensors.items()}


def _cast(array: np.ndarray, kind: str) -> np.ndarray:
    with np.errstate(all="ignore"):
        return array.astype(np.float64).astype(kind)


def numbers(draft: Draft, rng: random.Random) -> None:
    """One entry, one tensor or all of them with numbers that arithmetic does not like."""
    value = rng.choice(
        [0.0, np.nan, np.inf, -np.inf, 65504.0, 65520.0, 1e300, -1e300, 1e155, 1e200, 1e-320, 1e-200, 3.4e38, 1.0]
    )
    name = _pick(draft, rng)
    how = rng.randrange(5)
    for each in [name] if how < 3 else list(draft.tensors):
        array = np.array(draft.tensors[each])
        if array.dtype.name in ("int64", "int8", "bool"):
            continue
        with np.errstate(all="ignore"):
            if how == 0 and array.size:
                array.flat[rng.randrange(array.size)] = value
            elif how in (1, 3):
                array = np.full(array.shape, value, np.float64).astype(array.dtype)
            elif np.isfinite(value):
                array = (array.astype(np.float64) * value).astype(array.dtype)
        draft.tensors[each] = array


def entry(draft: Draft, rng: random.Random) -> None:
    """One entry of the config, or of the metadata of a GGUF file."""
    if draft.kind == "gguf":
        key = rng.choice(sorted(draft.metadata))
        draft.metadata[key] = rng.choice((*JUNK, *MODEL_TYPES))
        if rng.random() < 0.1:
            draft.metadata.pop(key)
        return
    if not isinstance(draft.config, dict):
        draft.config = {}
    key = rng.choice(KEYS) if not draft.config or rng.random() < 0.4 else rng.choice(sorted(draft.config))
    draft.config[key] = rng.choice(MODEL_TYPES if key == "model_type" and rng.random() < 0.7 else JUNK)
    if rng.random() < 0.15:
        draft.config.pop(key)


def deep_entry(draft: Draft, rng: random.Random) -> None:
    """One entry somewhere inside a nested config."""
    place: Any = draft.config if draft.kind != "gguf" else draft.metadata
    for _ in range(6):
        keys = sorted(place) if isinstance(place, dict) else range(len(place)) if isinstance(place, list) else ()
        if not keys:
            return
        key = rng.choice(keys)
        if not isinstance(place[key], (dict, list)) or not place[key]:
            place[key] = rng.choice(JUNK)
            return
        place = place[key]


def no_config(draft: Draft, rng: random.Random) -> None:
    draft.config = rng.choice([None, {}, [], 7, "x", {"text_config": draft.config}, {"text_config": [1]}])


def said_besides(draft: Draft, rng: random.Random) -> None:
    """What the user says, as the command line lets it through."""
    whole = (1, 2, 3, 4, 12, 10**9, 2**39, 0, -1, 10**18)
    key, values = rng.choice(
        [
            ("heads", whole), ("key_value_heads", whole), ("head_size", whole), ("repeats", whole), ("model_type", MODEL_TYPES),
            ("norm_first", (True, False)), ("causal", (True, False)), ("prefix", ("", "model.", "bert.", "nowhere.", "b.")),
        ]
    )  # fmt: skip
    draft.given[key] = rng.choice(values)


def parametrise(draft: Draft, rng: random.Random) -> None:
    """A map as the parameters of a norm, wholly or in part, or stray parts of one."""
    matrices = [name for name, array in draft.tensors.items() if array.ndim == 2 and name.endswith("weight")]
    if not matrices:
        return
    name = rng.choice(sorted(matrices))
    array, stem = _cast(draft.tensors.pop(name), "float32"), name.removesuffix("weight")
    lengths = np.ones(rng.choice([(array.shape[0], 1), (1, array.shape[1]), (), (1, 1), (3, 1), array.shape, (0, 1)]))
    left, right = np.ones(array.shape[0]), np.ones(rng.choice([array.shape[1], 1, array.shape[0]]))
    if rng.random() < 0.3:
        array, left = np.zeros_like(array), left * 0
    forms = [
        {"weight_v": array, "weight_g": lengths},
        {"parametrizations.weight.original1": array, "parametrizations.weight.original0": lengths},
        {"weight_orig": array, "weight_u": left, "weight_v": right},
        {
            "parametrizations.weight.original": array,
            "parametrizations.weight.0._u": left,
            "parametrizations.weight.0._v": right,
        },
        {"weight_orig": array, "weight_mask": np.ones_like(array)},
        {"parametrizations.weight.original": array},
    ]
    parts = {stem + end: part for end, part in rng.choice(forms).items()}
    if rng.random() < 0.3:
        parts.pop(rng.choice(sorted(parts)))
    draft.tensors |= parts


MUTATIONS: dict[str, Mutation] = {
    each.__name__: each
    for each in (
        rename, drop, drop_many, duplicate, exchange, reorder, extra, wrap, second_model, more_layers, reshape, narrow, retype,
        retype_all, numbers, entry, deep_entry, no_config, said_besides, parametrise,
    )
}  # fmt: skip
# Likelier: what leaves most of a checkpoint as it is gets further into an audit.
LIKELY = (
    *MUTATIONS,
    "reshape",
    "reshape",
    "reshape",
    "numbers",
    "numbers",
    "entry",
    "entry",
    "entry",
    "retype",
    "retype_all",
)


def mutant(base: str, steps: tuple[tuple[str, int], ...]) -> Draft:
    """The draft after its mutations."""
    draft = BASES[base]()
    for name, seed in steps:
        MUTATIONS[name](draft, random.Random(seed))
    return draft
