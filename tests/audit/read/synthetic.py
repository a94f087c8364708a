"""Tiny checkpoints of every family, written by hand from what its library writes: names, shapes, a config.

No two stored numbers are equal, so that a test can see which of them a reader took. Beside the tensors stands, for every
attention, the full maps (out, in) with heads one after the other, cut out by a rule that is written here a second
time and shares no code with the readers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

D, H, G, E, F, V, P = 12, 4, 2, 3, 20, 11, 9  # width, heads, key-value heads, head size, hidden units, words, positions
Tensors = dict[str, np.ndarray]
Full = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]  # query, key, value, output


@dataclass
class Synthetic:
    """One checkpoint: `shapes` of its tensors, `full(tensors)` its attentions in order, and what a reader must find."""

    family: str
    config: dict
    shapes: dict[str, tuple[int, ...]]
    full: Callable[[Tensors], list[Full]]
    heads: tuple[int, int, int] = (H, H, E)
    offset: tuple[str, ...] = ()  # ends of the names of gains to which the reader adds one
    given: dict = field(default_factory=dict)

    def tensors(self) -> Tensors:
        total = sum(int(np.prod(shape)) for shape in self.shapes.values())
        order = np.random.default_rng(0).permutation(total)
        numbers, found, start = (order + 1.0) / total - 0.5, {}, 0
        for name, shape in self.shapes.items():
            size = int(np.prod(shape))
            found[name] = numbers[start : start + size].reshape(shape)
            start += size
        return found


def linear(name: str, out: int, inner: int, bias: bool = True) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (out, inner)} | ({f"{name}.bias": (out,)} if bias else {})


def norm(name: str, bias: bool = True, width: int = D) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (width,)} | ({f"{name}.bias": (width,)} if bias else {})


def merged(*parts: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    return {name: shape for part in parts for name, shape in part.items()}


def plain(*places: tuple[str, str, str, str | None]) -> Callable[[Tensors], list[Full]]:
    """Separate maps, as they are stored."""

    def full(t: Tensors) -> list[Full]:
        get = lambda name: None if name is None else t[f"{name}.weight"]  # noqa: E731
        return [(get(q), get(k), get(v), get(o)) for q, k, v, o in places]  # type: ignore[misc]

    return full


def bert(
    prefix: str = "bert.", tail: dict | None = None, config: dict | None = None, family: str = "bert"
) -> Synthetic:
    shapes = norm(f"{prefix}embeddings.LayerNorm")
    for name, rows in (("word", V), ("position", P), ("token_type", 2)):
        shapes[f"{prefix}embeddings.{name}_embeddings.weight"] = (rows, D)
    places = []
    for i in range(2):
        at = f"{prefix}encoder.layer.{i}"
        maps = tuple(f"{at}.attention.{n}" for n in ("self.query", "self.key", "self.value", "output.dense"))
        places.append(maps)
        shapes |= merged(
            *(linear(name, D, D) for name in maps),
            norm(f"{at}.attention.output.LayerNorm"),
            linear(f"{at}.intermediate.dense", F, D),
            linear(f"{at}.output.dense", D, F),
            norm(f"{at}.output.LayerNorm"),
        )
    said = {
        "num_attention_heads": H,
        "hidden_size": D,
        "num_hidden_layers": 2,
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-12,
    }
    return Synthetic(family, said | (config or {}), shapes | (tail or {}), plain(*places))


def bert_mlm() -> Synthetic:
    tail = merged(
        {"cls.predictions.bias": (V,)},
        linear("cls.predictions.transform.dense", D, D),
        {"cls.predictions.transform.LayerNorm.gamma": (D,), "cls.predictions.transform.LayerNorm.beta": (D,)},
        linear("cls.seq_relationship", 2, D),
        linear("bert.pooler.dense", D, D),
    )
    return bert(tail=tail)


def roberta() -> Synthetic:
    tail = merged({"lm_head.bias": (V,)}, linear("lm_head.dense", D, D), norm("lm_head.layer_norm"))
    more = {"model_type": "roberta", "pad_token_id": 1, "max_position_embeddings": P}
    return bert("roberta.", tail, more, "roberta")


def distilbert() -> Synthetic:
    at = "distilbert.transformer.layer.0"
    maps = tuple(f"{at}.attention.{n}_lin" for n in ("q", "k", "v", "out"))
    shapes = merged(
        {f"distilbert.embeddings.{n}_embeddings.weight": (r, D) for n, r in (("word", V), ("position", P))},
        norm("distilbert.embeddings.LayerNorm"),
        *(linear(name, D, D) for name in maps),
        linear(f"{at}.ffn.lin1", F, D),
        linear(f"{at}.ffn.lin2", D, F),
        norm(f"{at}.sa_layer_norm"),
        norm(f"{at}.output_layer_norm"),
        norm("vocab_layer_norm"),
        linear("vocab_transform", D, D),
        {"vocab_projector.bias": (V,)},
    )
    return Synthetic("distilbert", {"n_heads": H, "dim": D, "n_layers": 1, "activation": "gelu"}, shapes, plain(maps))


def albert() -> Synthetic:
    at = "albert.encoder.albert_layer_groups.0.albert_layers.0"
    maps = tuple(f"{at}.attention.{n}" for n in ("query", "key", "value", "dense"))
    narrow = 5
    rows = (("word", V), ("position", P), ("token_type", 2))
    shapes = merged(
        {f"albert.embeddings.{n}_embeddings.weight": (r, narrow) for n, r in rows},
        norm("albert.embeddings.LayerNorm", width=narrow),
        linear("albert.encoder.embedding_hidden_mapping_in", D, narrow),
        *(linear(name, D, D) for name in maps),
        norm(f"{at}.attention.LayerNorm"),
        linear(f"{at}.ffn", F, D),
        linear(f"{at}.ffn_output", D, F),
        norm(f"{at}.full_layer_layer_norm"),
        {"predictions.bias": (V,)},
        linear("predictions.dense", narrow, D),
        norm("predictions.LayerNorm", width=narrow),
    )
    config = {"num_attention_heads": H, "hidden_size": D, "num_hidden_layers": 12, "num_hidden_groups": 1}
    return Synthetic("albert", config, shapes, plain(maps))


def gpt2(turned: bool) -> Synthetic:
    def matrix(name: str, out: int, inner: int, bias: bool = True) -> dict[str, tuple[int, ...]]:
        shape = (inner, out) if turned else (out, inner)
        return {f"{name}.weight": shape} | ({f"{name}.bias": (out,)} if bias else {})

    at = "transformer.h.0"
    shapes = merged(
        {"transformer.wte.weight": (V, D), "transformer.wpe.weight": (P, D)},
        matrix(f"{at}.attn.c_attn", 3 * D, D),
        matrix(f"{at}.attn.c_proj", D, D),
        matrix(f"{at}.mlp.c_fc", F, D),
        matrix(f"{at}.mlp.c_proj", D, F),
        norm(f"{at}.ln_1"),
        norm(f"{at}.ln_2"),
        norm("transformer.ln_f"),
    )

    def full(t: Tensors) -> list[Full]:
        fused, out = (t[f"{at}.attn.{name}.weight"] for name in ("c_attn", "c_proj"))
        fused, out = (fused.T, out.T) if turned else (fused, out)
        return [(fused[:D], fused[D : 2 * D], fused[2 * D :], out)]

    return Synthetic("gpt2" if turned else "nanogpt", {"n_head": H, "n_embd": D, "n_layer": 1}, shapes, full)


def llama(
    kind: str = "llama", bias: bool = False, inner_norms: bool = False, around: bool = False, experts: int = 0
) -> Synthetic:
    size = 5 if inner_norms else E  # the heads together need not be as wide as the tokens
    at, gemma = "model.layers.0", kind.startswith("gemma")
    maps = tuple(f"{at}.self_attn.{n}_proj" for n in "qkvo")
    names = ["input_layernorm", "post_attention_layernorm"]
    names += ["pre_feedforward_layernorm", "post_feedforward_layernorm"] if around else []
    shapes = merged(
        {"model.embed_tokens.weight": (V, D)},
        {} if gemma else {"lm_head.weight": (V, D)},
        linear(maps[0], H * size, D, bias),
        linear(maps[1], G * size, D, bias),
        linear(maps[2], G * size, D, bias),
        linear(maps[3], D, H * size, False),
        *(norm(f"{at}.{name}", False) for name in names),
        norm("model.norm", False),
        *(norm(f"{at}.self_attn.{n}_norm", False, size) for n in ("qk" if inner_norms else "")),
    )
    if experts:
        sparse = f"{at}.block_sparse_moe"
        shapes |= linear(f"{sparse}.gate", experts, D, False)
        for k in range(experts):
            one = f"{sparse}.experts.{k}"
            shapes |= merged(
                linear(f"{one}.w1", F, D, False), linear(f"{one}.w2", D, F, False), linear(f"{one}.w3", F, D, False)
            )
    else:
        shapes |= merged(
            *(linear(f"{at}.mlp.{n}_proj", F, D, False) for n in ("gate", "up")),
            linear(f"{at}.mlp.down_proj", D, F, False),
        )
    config = {
        "model_type": kind,
        "num_attention_heads": H,
        "num_key_value_heads": G,
        "head_dim": size,
        "hidden_size": D,
        "num_hidden_layers": 1,
        "rms_norm_eps": 1e-6,
    }
    ends = ("norm.weight",) if gemma else ()
    return Synthetic(kind, config, shapes, plain(maps), (H, G, size), ends)  # type: ignore[arg-type]


def phi3() -> Synthetic:
    at, rows = "model.layers.0", (H + 2 * G) * E
    shapes = merged(
        {"model.embed_tokens.weight": (V, D), "lm_head.weight": (V, D), f"{at}.self_attn.qkv_proj.weight": (rows, D)},
        linear(f"{at}.self_attn.o_proj", D, H * E, False),
        linear(f"{at}.mlp.gate_up_proj", 2 * F, D, False),
        linear(f"{at}.mlp.down_proj", D, F, False),
        *(norm(f"{at}.{name}", False) for name in ("input_layernorm", "post_attention_layernorm")),
        norm("model.norm", False),
    )

    def full(t: Tensors) -> list[Full]:
        fused = t[f"{at}.self_attn.qkv_proj.weight"]
        return [(fused[: H * E], fused[H * E : (H + G) * E], fused[(H + G) * E :], t[f"{at}.self_attn.o_proj.weight"])]

    config = {"model_type": "phi3", "num_attention_heads": H, "num_key_value_heads": G, "hidden_size": D}
    return Synthetic("phi3", config, shapes, full, (H, G, E))


def interleaved(t: Tensors, place: str, output: str) -> list[Full]:
    """Head by head: query, key, value, written as a loop."""
    fused, found = t[f"{place}.weight"], ([], [], [])
    for head in range(H):
        for which in range(3):
            start = (3 * head + which) * E
            found[which].append(fused[start : start + E])
    q, k, v = (np.concatenate(rows) for rows in found)
    return [(q, k, v, t[f"{output}.weight"])]


def neox() -> Synthetic:
    at = "gpt_neox.layers.0"
    shapes = merged(
        {"gpt_neox.embed_in.weight": (V, D), "embed_out.weight": (V, D)},
        linear(f"{at}.attention.query_key_value", 3 * D, D),
        linear(f"{at}.attention.dense", D, D),
        linear(f"{at}.mlp.dense_h_to_4h", F, D),
        linear(f"{at}.mlp.dense_4h_to_h", D, F),
        norm(f"{at}.input_layernorm"),
        norm(f"{at}.post_attention_layernorm"),
        norm("gpt_neox.final_layer_norm"),
    )
    full = lambda t: interleaved(t, f"{at}.attention.query_key_value", f"{at}.attention.dense")  # noqa: E731
    return Synthetic("gpt_neox", {"num_attention_heads": H, "hidden_size": D}, shapes, full)


def bloom() -> Synthetic:
    at = "transformer.h.0"
    shapes = merged(
        {"transformer.word_embeddings.weight": (V, D)},
        norm("transformer.word_embeddings_layernorm"),
        linear(f"{at}.self_attention.query_key_value", 3 * D, D),
        linear(f"{at}.self_attention.dense", D, D),
        linear(f"{at}.mlp.dense_h_to_4h", F, D),
        linear(f"{at}.mlp.dense_4h_to_h", D, F),
        norm(f"{at}.input_layernorm"),
        norm(f"{at}.post_attention_layernorm"),
        norm("transformer.ln_f"),
    )
    full = lambda t: interleaved(t, f"{at}.self_attention.query_key_value", f"{at}.self_attention.dense")  # noqa: E731
    return Synthetic("bloom", {"n_head": H, "hidden_size": D, "n_layer": 1}, shapes, full)


def falcon(new: bool) -> Synthetic:
    at, groups = "transformer.h.0", G if new else 1
    place = f"{at}.self_attention.query_key_value"
    names = ("ln_attn", "ln_mlp") if new else ("input_layernorm",)
    shapes = merged(
        {"transformer.word_embeddings.weight": (V, D), f"{place}.weight": ((H + 2 * groups) * E, D)},
        linear(f"{at}.self_attention.dense", D, D, False),
        linear(f"{at}.mlp.dense_h_to_4h", F, D, False),
        linear(f"{at}.mlp.dense_4h_to_h", D, F, False),
        *(norm(f"{at}.{name}") for name in names),
        norm("transformer.ln_f"),
    )

    def full(t: Tensors) -> list[Full]:
        pieces = np.split(t[f"{place}.weight"], H + 2 * groups)  # one of size E each
        # q q k v, q q k v; or q q q q k v
        order = ((0, 1, 4, 5), (2, 6), (3, 7)) if new else ((0, 1, 2, 3), (4,), (5,))
        q, k, v = (np.concatenate([pieces[i] for i in chosen]) for chosen in order)
        return [(q, k, v, t[f"{at}.self_attention.dense.weight"])]

    config = {
        "model_type": "falcon",
        "num_attention_heads": H,
        "num_kv_heads": groups,
        "hidden_size": D,
        "new_decoder_architecture": new,
        "multi_query": not new,
    }
    return Synthetic("falcon", config, shapes, full, (H, groups, E))
