"""The remaining synthetic checkpoints: OPT, GPT-J, T5, vision, torch, recommenders."""

from __future__ import annotations

from audit.read.synthetic import D, E, F, H, P, Synthetic, Tensors, V, linear, merged, norm, plain


def opt() -> Synthetic:
    top, at = "model.decoder", "model.decoder.layers.0"
    maps = tuple(f"{at}.self_attn.{n}_proj" for n in ("q", "k", "v", "out"))
    shapes = merged(
        {f"{top}.embed_tokens.weight": (V, D), f"{top}.embed_positions.weight": (P + 2, D)},
        *(linear(name, D, D) for name in maps),
        linear(f"{at}.fc1", F, D),
        linear(f"{at}.fc2", D, F),
        norm(f"{at}.self_attn_layer_norm"),
        norm(f"{at}.final_layer_norm"),
        norm(f"{top}.final_layer_norm"),
    )
    return Synthetic("opt", {"num_attention_heads": H, "hidden_size": D}, shapes, plain(maps))  # type: ignore[arg-type]


def gptj() -> Synthetic:
    at = "transformer.h.0"
    maps = tuple(f"{at}.attn.{n}_proj" for n in ("q", "k", "v", "out"))
    shapes = merged(
        {"transformer.wte.weight": (V, D)},
        linear("lm_head", V, D),
        *(linear(name, D, D, False) for name in maps),
        linear(f"{at}.mlp.fc_in", F, D),
        linear(f"{at}.mlp.fc_out", D, F),
        norm(f"{at}.ln_1"),
        norm("transformer.ln_f"),
    )
    return Synthetic("gptj", {"n_head": H, "n_embd": D}, shapes, plain(maps))  # type: ignore[arg-type]


def t5(gated: bool) -> Synthetic:
    size, places, shapes = 5, [], {"shared.weight": (V, D)}
    for stack in ("encoder", "decoder"):
        at = f"{stack}.block.0.layer"
        kinds = ["SelfAttention", "EncDecAttention"][: 1 + (stack == "decoder")]
        for j, kind in enumerate(kinds):
            maps = tuple(f"{at}.{j}.{kind}.{n}" for n in "qkvo")
            places.append(maps)
            shapes |= merged(*(linear(n, H * size, D, False) for n in maps[:3]), linear(maps[3], D, H * size, False))
            shapes |= norm(f"{at}.{j}.layer_norm", False)
        last = len(kinds)
        names = ("wi_0", "wi_1") if gated else ("wi",)
        shapes |= merged(*(linear(f"{at}.{last}.DenseReluDense.{n}", F, D, False) for n in names))
        shapes |= linear(f"{at}.{last}.DenseReluDense.wo", D, F, False)
        shapes |= norm(f"{at}.{last}.layer_norm", False) | norm(f"{stack}.final_layer_norm", False)
        shapes[f"{at}.0.SelfAttention.relative_attention_bias.weight"] = (8, H)
    config = {"num_heads": H, "d_kv": size, "d_model": D, "num_layers": 1, "num_decoder_layers": 1}
    config["feed_forward_proj"] = "gated-gelu" if gated else "relu"
    return Synthetic("t5", config, shapes, plain(*places), (H, H, size))


def vit() -> Synthetic:
    at = "vit.encoder.layer.0"
    maps = tuple(f"{at}.attention.{n}" for n in ("attention.query", "attention.key", "attention.value", "output.dense"))
    shapes = merged(
        {"vit.embeddings.cls_token": (1, 1, D), "vit.embeddings.position_embeddings": (1, P, D)},
        {"vit.embeddings.patch_embeddings.projection.weight": (D, 3, 2, 2)},
        {"vit.embeddings.patch_embeddings.projection.bias": (D,)},
        *(linear(name, D, D) for name in maps),
        linear(f"{at}.intermediate.dense", F, D),
        linear(f"{at}.output.dense", D, F),
        *(norm(f"{at}.layernorm_{n}") for n in ("before", "after")),
        norm("vit.layernorm"),
        linear("classifier", 2, D),
    )
    return Synthetic("vit", {"num_attention_heads": H, "hidden_size": D}, shapes, plain(maps))  # type: ignore[arg-type]


def three_blocks(weight: str, output: str):
    def full(t: Tensors):
        rows = t[weight]
        return [(rows[:D], rows[D : 2 * D], rows[2 * D :], t[output])]

    return full


def timm() -> Synthetic:
    at = "blocks.0"
    shapes = merged(
        {
            "cls_token": (1, 1, D),
            "pos_embed": (1, P, D),
            "patch_embed.proj.weight": (D, 3, 2, 2),
            "patch_embed.proj.bias": (D,),
        },
        linear(f"{at}.attn.qkv", 3 * D, D),
        linear(f"{at}.attn.proj", D, D),
        linear(f"{at}.mlp.fc1", F, D),
        linear(f"{at}.mlp.fc2", D, F),
        *(norm(name) for name in (f"{at}.norm1", f"{at}.norm2", "norm")),
        linear("head", 2, D),
    )
    full = three_blocks(f"{at}.attn.qkv.weight", f"{at}.attn.proj.weight")
    return Synthetic("timm-vit", {}, shapes, full, given={"heads": H})


def torch_encoder() -> Synthetic:
    at = "encoder.layers.0"
    shapes = merged(
        {f"{at}.self_attn.in_proj_weight": (3 * D, D), f"{at}.self_attn.in_proj_bias": (3 * D,)},
        linear(f"{at}.self_attn.out_proj", D, D),
        linear(f"{at}.linear1", F, D),
        linear(f"{at}.linear2", D, F),
        norm(f"{at}.norm1"),
        norm(f"{at}.norm2"),
        norm("encoder.norm"),
        {"embedding.weight": (V, D)},
        linear("head", 3, D),
    )
    full = three_blocks(f"{at}.self_attn.in_proj_weight", f"{at}.self_attn.out_proj.weight")
    return Synthetic("torch-encoder", {}, shapes, full, given={"heads": H, "norm_first": True})


def sasrec() -> Synthetic:
    shapes = merged(
        {"item_emb.weight": (V, D), "pos_emb.weight": (P + 1, D)},
        {"attention_layers.0.in_proj_weight": (3 * D, D), "attention_layers.0.in_proj_bias": (3 * D,)},
        linear("attention_layers.0.out_proj", D, D),
        {f"forward_layers.0.conv{n}.weight": (D, D, 1) for n in (1, 2)},
        {f"forward_layers.0.conv{n}.bias": (D,) for n in (1, 2)},
        *(norm(name) for name in ("attention_layernorms.0", "forward_layernorms.0", "last_layernorm")),
    )
    full = three_blocks("attention_layers.0.in_proj_weight", "attention_layers.0.out_proj.weight")
    return Synthetic("sasrec", {}, shapes, full, given={"heads": H})


def recbole(both_ways: bool) -> Synthetic:
    at = "trm_encoder.layer.0"
    maps = tuple(f"{at}.multi_head_attention.{n}" for n in ("query", "key", "value", "dense"))
    shapes = merged(
        {"item_embedding.weight": (V, D), "position_embedding.weight": (P, D)},
        *(linear(name, D, D) for name in maps),
        linear(f"{at}.feed_forward.dense_1", F, D),
        linear(f"{at}.feed_forward.dense_2", D, F),
        *(norm(name) for name in (f"{at}.multi_head_attention.LayerNorm", f"{at}.feed_forward.LayerNorm", "LayerNorm")),
    )
    if both_ways:
        shapes |= merged(linear("output_ffn", D, D), norm("output_ln"), {"output_bias": (V - 1,)})
    name = "recbole-bert4rec" if both_ways else "recbole-sasrec"
    return Synthetic(name, {"n_heads": H, "hidden_size": D, "n_layers": 1}, shapes, plain(maps))  # type: ignore[arg-type]


def gsasrec() -> Synthetic:
    at = "transformer_blocks.0"
    maps = tuple(f"{at}.multihead_attention.{n}_proj" for n in ("query", "key", "val"))
    shapes = merged(
        {"item_embedding.weight": (V, D), "position_embedding.weight": (P, D), "output_embedding.weight": (V, D)},
        *(linear(name, D, D) for name in maps),
        linear(f"{at}.dense1", D, D),
        linear(f"{at}.dense2", D, D),
        *(norm(name) for name in (f"{at}.first_norm", f"{at}.second_norm", "seq_norm")),
    )
    return Synthetic("gsasrec", {"num_heads": H, "embedding_dim": D, "num_blocks": 1}, shapes, plain((*maps, None)))  # type: ignore[arg-type]


assert D == H * E
