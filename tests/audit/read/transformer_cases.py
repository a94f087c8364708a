"""Tiny models of `transformers`, and where in the running model the parts of every layer begin and end."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

TOKENS, WIDTH, HEADS = 7, 24, 4
BASE = {
    "hidden_size": WIDTH,
    "num_hidden_layers": 2,
    "num_attention_heads": HEADS,
    "intermediate_size": 48,
    "vocab_size": 40,
}
GROUPED = BASE | {"num_key_value_heads": 2}


@dataclass
class Case:
    """A model: its classes, its sizes, and where in it the parts of layer {i} begin and end."""

    config: str
    model: str
    sizes: dict
    attention: tuple[str, str]
    hidden: tuple[str, str] | None
    norms: dict[str, str] = field(default_factory=dict)


def llama_like(name: str, sizes: dict, norms: dict[str, str] | None = None, **more) -> Case:
    at = "model.layers.{i}"
    found = {"attention": f"{at}.input_layernorm", "ffn": f"{at}.post_attention_layernorm"} if norms is None else norms
    return Case(
        f"{name}Config" if name != "Gemma3" else "Gemma3TextConfig",
        f"{name}ForCausalLM",
        sizes | more,
        (f"{at}.self_attn.q_proj", f"{at}.self_attn.o_proj"),
        (f"{at}.mlp.gate_proj", f"{at}.mlp.down_proj"),
        found,
    )


AROUND = {
    "attention": "model.layers.{i}.input_layernorm",
    "attention_post": "model.layers.{i}.post_attention_layernorm",
    "ffn": "model.layers.{i}.pre_feedforward_layernorm",
    "ffn_post": "model.layers.{i}.post_feedforward_layernorm",
}
BERT_LIKE = {"max_position_embeddings": 20}
H = "transformer.h.{i}"
FALCON = {"hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": HEADS, "vocab_size": 40}
SMALL = {"n_embd": WIDTH, "n_layer": 2, "n_head": HEADS, "vocab_size": 40, "n_positions": 16}


def bert_like(name: str, top: str) -> Case:
    at = f"{top}.encoder.layer.{{i}}"
    return Case(
        f"{name}Config",
        f"{name}ForMaskedLM",
        BASE | BERT_LIKE,
        (f"{at}.attention.self.query", f"{at}.attention.output.dense"),
        (f"{at}.intermediate.dense", f"{at}.output.dense"),
        {"attention": f"{at}.attention.output.LayerNorm", "ffn": f"{at}.output.LayerNorm"},
    )


CASES = {
    "gpt2": Case(
        "GPT2Config", "GPT2LMHeadModel", SMALL, (f"{H}.attn.c_attn", f"{H}.attn.c_proj"), (f"{H}.mlp.c_fc", f"{H}.mlp.c_proj"),
        {"attention": f"{H}.ln_1", "ffn": f"{H}.ln_2"},
    ),
    "gpt2-by-layer": Case(
        "GPT2Config", "GPT2LMHeadModel", SMALL | {"scale_attn_by_inverse_layer_idx": True},
        (f"{H}.attn.c_attn", f"{H}.attn.c_proj"), None,
    ),
    "bert": bert_like("Bert", "bert"),
    "roberta": bert_like("Roberta", "roberta"),
    "distilbert": Case(
        "DistilBertConfig", "DistilBertForMaskedLM",
        {"dim": WIDTH, "n_layers": 2, "n_heads": HEADS, "hidden_dim": 48, "vocab_size": 40, "max_position_embeddings": 16},
        ("distilbert.transformer.layer.{i}.attention.q_lin", "distilbert.transformer.layer.{i}.attention.out_lin"),
        ("distilbert.transformer.layer.{i}.ffn.lin1", "distilbert.transformer.layer.{i}.ffn.lin2"),
        {"attention": "distilbert.transformer.layer.{i}.sa_layer_norm"},
    ),
    "albert": Case(
        "AlbertConfig", "AlbertForMaskedLM", BASE | BERT_LIKE | {"embedding_size": 8, "num_hidden_layers": 7, "num_hidden_groups": 5},
        tuple("albert.encoder.albert_layer_groups.{i}.albert_layers.0.attention." + n for n in ("query", "dense")),
        tuple("albert.encoder.albert_layer_groups.{i}.albert_layers.0." + n for n in ("ffn", "ffn_output")),
        {"ffn": "albert.encoder.albert_layer_groups.{i}.albert_layers.0.full_layer_layer_norm"},
    ),
    "llama": llama_like("Llama", GROUPED),
    "mistral": llama_like("Mistral", GROUPED, sliding_window=3),
    "qwen2": llama_like("Qwen2", GROUPED),
    "qwen3": llama_like("Qwen3", GROUPED, head_dim=8),
    "gemma": llama_like("Gemma", GROUPED, head_dim=16),
    "gemma2": llama_like(
        "Gemma2", GROUPED, AROUND, head_dim=16, attn_logit_softcapping=0.7, query_pre_attn_scalar=5, sliding_window=3
    ),
    "gemma3": llama_like("Gemma3", GROUPED, AROUND, head_dim=16, query_pre_attn_scalar=5, sliding_window=3),
    "mixtral": replace(llama_like("Mixtral", GROUPED, num_local_experts=3, experts_implementation="eager"), hidden=None),
    "phi3": replace(
        llama_like("Phi3", GROUPED, pad_token_id=0),
        attention=("model.layers.{i}.self_attn.qkv_proj", "model.layers.{i}.self_attn.o_proj"),
        hidden=("model.layers.{i}.mlp.gate_up_proj", "model.layers.{i}.mlp.down_proj"),
    ),
    "neox": Case(
        "GPTNeoXConfig", "GPTNeoXForCausalLM", BASE,
        ("gpt_neox.layers.{i}.attention.query_key_value", "gpt_neox.layers.{i}.attention.dense"),
        ("gpt_neox.layers.{i}.mlp.dense_h_to_4h", "gpt_neox.layers.{i}.mlp.dense_4h_to_h"),
        {"attention": "gpt_neox.layers.{i}.input_layernorm", "ffn": "gpt_neox.layers.{i}.post_attention_layernorm"},
    ),
    "bloom": Case(
        "BloomConfig", "BloomForCausalLM", {"hidden_size": WIDTH, "n_layer": 2, "n_head": HEADS, "vocab_size": 40},
        (f"{H}.self_attention.query_key_value", f"{H}.self_attention.dense"), (f"{H}.mlp.dense_h_to_4h", f"{H}.mlp.dense_4h_to_h"),
        {"attention": f"{H}.input_layernorm", "ffn": f"{H}.post_attention_layernorm"},
    ),
    "falcon-new": Case(
        "FalconConfig", "FalconForCausalLM", FALCON | {"num_kv_heads": 2, "new_decoder_architecture": True, "multi_query": False},
        (f"{H}.self_attention.query_key_value", f"{H}.self_attention.dense"), (f"{H}.mlp.dense_h_to_4h", f"{H}.mlp.dense_4h_to_h"),
        {"attention": f"{H}.ln_attn", "ffn": f"{H}.ln_mlp"},
    ),
    "falcon-multi-query": Case(
        "FalconConfig", "FalconForCausalLM", FALCON | {"new_decoder_architecture": False, "multi_query": True},
        (f"{H}.self_attention.query_key_value", f"{H}.self_attention.dense"), None, {"attention": f"{H}.input_layernorm"},
    ),
    "falcon-old": Case(
        "FalconConfig", "FalconForCausalLM",
        FALCON | {"new_decoder_architecture": False, "multi_query": False, "parallel_attn": False, "bias": True},
        (f"{H}.self_attention.query_key_value", f"{H}.self_attention.dense"), None,
        {"attention": f"{H}.input_layernorm", "ffn": f"{H}.post_attention_layernorm"},
    ),
    "opt": Case(
        "OPTConfig", "OPTForCausalLM",
        {"hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": HEADS, "ffn_dim": 48, "vocab_size": 40,
         "max_position_embeddings": 16, "word_embed_proj_dim": WIDTH},
        ("model.decoder.layers.{i}.self_attn.q_proj", "model.decoder.layers.{i}.self_attn.out_proj"),
        ("model.decoder.layers.{i}.fc1", "model.decoder.layers.{i}.fc2"),
        {"attention": "model.decoder.layers.{i}.self_attn_layer_norm", "ffn": "model.decoder.layers.{i}.final_layer_norm"},
    ),
    "gptj": Case(
        "GPTJConfig", "GPTJForCausalLM", SMALL | {"rotary_dim": 4}, (f"{H}.attn.q_proj", f"{H}.attn.out_proj"),
        (f"{H}.mlp.fc_in", f"{H}.mlp.fc_out"), {"attention": f"{H}.ln_1"},
    ),
    "vit": Case(
        "ViTConfig", "ViTForImageClassification", BASE | {"image_size": 8, "patch_size": 4},
        ("vit.layers.{i}.attention.q_proj", "vit.layers.{i}.attention.o_proj"), ("vit.layers.{i}.mlp.fc1", "vit.layers.{i}.mlp.fc2"),
        {"attention": "vit.layers.{i}.layernorm_before", "ffn": "vit.layers.{i}.layernorm_after"},
    ),
}  # fmt: skip
