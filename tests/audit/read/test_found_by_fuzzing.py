"""What mutants have shown, each as a case of its own: it crashed, warned, hung or was read as something it is not."""

from __future__ import annotations

import time
from itertools import product

import numpy as np
import pytest

from audit.read.drafts import BASES, Draft
from audit.read.properties import examine
from certiformer.audit import Audit, audit
from certiformer.audit.read.settings import Settings
from certiformer.errors import BadInput

UP = "encoder.layer.0.intermediate.dense.weight"


def audited(tmp_path, base: str, config: dict | None = None, drop: tuple[str, ...] = (), **tensors) -> Audit:
    """The audit of a base with other entries in its config and other tensors, which keeps all properties."""
    draft = BASES[base]()
    draft.tensors = {name: array for name, array in draft.tensors.items() if name not in drop} | tensors
    draft.config = {**(draft.config or {}), **(config or {})}
    assert examine(draft, tmp_path / "checked") == "audited"
    return audit(draft.write(tmp_path), **draft.given)


def refused(tmp_path, base: str, config: dict | None = None, **tensors) -> str:
    """The sentence that such a file is refused with."""
    draft = BASES[base]()
    draft.tensors |= tensors
    draft.config = {**(draft.config or {}), **(config or {})}
    assert examine(draft, tmp_path / "checked") == "refused"
    with pytest.raises(BadInput) as caught:
        audit(draft.write(tmp_path), **draft.given)
    return str(caught.value)


# Parametrised weights.


@pytest.mark.parametrize("base", ["weight-norm", "spectral-norm"])
def test_a_direction_of_zero_is_nan_as_in_torch_and_is_named_without_a_warning(base, tmp_path):
    v = next(name for name in BASES[base]().tensors if name.endswith((".original", ".original1")))
    found = audited(tmp_path, base, **{v: np.zeros((20, 12))})
    assert found.measurements.not_finite == (v,)


@pytest.mark.parametrize("size", [1e-200, 1e200])
@pytest.mark.parametrize("base", ["weight-norm", "spectral-norm"])
def test_squares_of_a_direction_neither_overflow_nor_vanish(base, size, tmp_path):
    """A weight norm of numbers near 1e200 was read as zeros: their squares are infinite."""
    draft = BASES[base]()
    v = next(name for name in draft.tensors if name.endswith((".original", ".original1")))
    plain, scaled = (audited(tmp_path, base, **{v: draft.tensors[v] * factor}) for factor in (1.0, size))
    a, b = (found.checkpoint.layers[0].ffn[0].up.read() for found in (plain, scaled))
    assert np.abs(a - b).max() < 1e-13 * np.abs(a).max()  # the size cancels, but for roundings


def test_estimates_of_singular_vectors_that_are_no_vectors(tmp_path):
    place = UP.removesuffix("weight")
    assert "do not fit" in refused(tmp_path, "spectral-norm-old", **{f"{place}weight_v": np.ones((1, 12))})
    assert "do not fit" in refused(
        tmp_path, "spectral-norm-old", **{f"{place}weight_orig": np.ones((0, 12)), f"{place}weight_u": np.ones(0)}
    )


def test_two_formulas_for_one_weight(tmp_path):
    """The second hid the first, which was then in no count."""
    place = UP.removesuffix("weight")
    again = {f"{place}parametrizations.weight.original1": np.ones((20, 12))}
    again |= {f"{place}parametrizations.weight.original0": np.ones((20, 1))}
    assert "both" in refused(tmp_path, "weight-norm-old", **again)


# Configs.


def test_a_whole_number_that_no_float_holds(tmp_path):
    assert "layer_norm_eps" in refused(tmp_path, "bert", {"layer_norm_eps": 10**400})
    assert Settings({"x": 10**300}).number("x") == 1e300


def test_a_long_value_is_not_quoted_in_full(tmp_path):
    for value in ("x" * 10**5, [1] * 10**5, 10**4000):
        assert len(refused(tmp_path, "bert", {"num_attention_heads": value})) < 300
        assert len(refused(tmp_path, "llama", {"model_type": value})) < 300


def test_numbers_of_our_own_configs_that_no_float_holds(tmp_path):
    blocks = BASES["own"]().config["blocks"]
    blocks[0]["norm"]["epsilon"] = 10**400
    for change in ({"blocks": blocks}, {"loops": 10**400}):
        assert "larger than any size" in refused(tmp_path, "own", change)


@pytest.mark.parametrize(
    ("base", "key"),
    [("bert", "hidden_act"), ("t5", "feed_forward_proj"), ("t5", "dense_act_fn"), ("opt", "activation_function")],
)
def test_an_activation_is_a_word(base, key, tmp_path):
    """It stood in a sentence as it was, with its line breaks."""
    for value in ("\n", "gated-\n", "x" * 65, ["gelu"], {"a": 1}, 7):
        assert key in refused(tmp_path, base, {key: value})
    found = audited(tmp_path, base, {key: "serpentine"})
    assert found.checkpoint.layers[0].ffn[0].activation == "serpentine"


def test_a_shared_layer_is_counted_at_once(tmp_path):
    """Counting one by one took as long as the config liked."""
    start = time.process_time()
    found = audited(tmp_path, "albert", {"num_hidden_layers": 2**39})
    assert found.checkpoint.layers[0].repeats == 2**39 and time.process_time() - start < 5


def test_how_often_each_of_several_shared_layers_is_applied(tmp_path):
    draft = BASES["albert"]()
    extra = {
        name.replace("groups.0.", "groups.1."): array for name, array in draft.tensors.items() if "groups.0." in name
    }
    extra |= {name.replace("groups.1.", "groups.2."): array for name, array in extra.items()}
    for depth in (1, 2, 3, 4, 7, 12):
        found = audited(tmp_path, "albert", {"num_hidden_groups": 3, "num_hidden_layers": depth}, **extra)
        wanted = [sum(j * 3 // depth == i for j in range(depth)) for i in range(3)]
        assert [layer.repeats for layer in found.checkpoint.layers] == wanted


# Tables, heads and norms that do not fit.


@pytest.mark.parametrize(
    ("base", "name"),
    [
        ("opt", "model.decoder.embed_tokens.weight"),
        ("bloom", "transformer.word_embeddings.weight"),
        ("sasrec", "item_emb.weight"),
        ("recbole-sasrec", "item_embedding.weight"),
        ("distilbert", "distilbert.embeddings.word_embeddings.weight"),
    ],
)
def test_no_head_is_tied_to_a_table_that_is_not_there(base, name, tmp_path):
    """The table of positions was taken for the outputs."""
    assert not audited(tmp_path, base, drop=(name,)).checkpoint.head_tied
    assert audited(tmp_path, base).checkpoint.head_tied


@pytest.mark.parametrize(
    ("base", "name", "shape"),
    [
        ("bert", "bert.embeddings.LayerNorm.weight", (7,)),
        ("bert", "bert.embeddings.position_embeddings.weight", (9, 7)),
        ("bert", "bert.embeddings.word_embeddings.weight", (11, 1)),
        ("recbole-bert4rec", "output_ln.weight", (5,)),
        ("distilbert", "vocab_layer_norm.weight", (13,)),
        ("albert", "albert.embeddings.LayerNorm.weight", (12,)),
        ("albert", "albert.encoder.embedding_hidden_mapping_in.weight", (5, 12)),
        ("albert", "albert.encoder.embedding_hidden_mapping_in.weight", (60,)),
        ("llama", "lm_head.weight", (11, 12, 1)),
        ("gptj", "lm_head.weight", (11, 24)),
        ("gptj", "lm_head.bias", (11, 1)),
        ("vit", "vit.embeddings.cls_token", (1, 1, 11)),
        ("timm", "pos_embed", (1, 9, 24)),
        ("timm", "cls_token", (1, 500, 12)),
        ("timm", "reg_token", (1, 4, 11)),
        ("timm", "reg_token", (4, 12)),
        ("gsasrec", "output_embedding.weight", (132,)),
        ("sasrec", "pos_emb.weight", (1, 1)),
        ("bert", "bert.encoder.layer.0.intermediate.dense.bias", (4, 5)),
        ("mixtral", "model.layers.0.block_sparse_moe.gate.weight", (0, 12)),
        ("torch-encoder", "embedding.weight", (0, 12)),
        ("mixtral", "model.layers.0.block_sparse_moe.gate.weight", (4, 12)),
        ("t5", "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight", (8, 3)),
        ("own", "blocks.0.ffn.up", (6,)),
        ("own", "embed.weight", (9, 7)),
        ("own", "readout.bias", (2, 1)),
    ],
)
def test_a_part_that_does_not_fit_is_named(base, name, shape, tmp_path):
    # The shift of a norm is as long as its gain: what does not fit is both of them.
    shift = {name.replace("weight", "bias"): np.full(shape, 0.5)} if len(shape) == 1 and name.endswith("weight") else {}
    assert repr(name) in refused(tmp_path, base, **{name: np.full(shape, 0.5)}, **shift)


@pytest.mark.parametrize("kind", ["int64", "int8", "bool"])
def test_maps_of_whole_numbers_are_not_taken_for_weights(kind, tmp_path):
    """Quantised maps keep their scales elsewhere."""
    name = "bert.encoder.layer.0.attention.self.key.weight"
    assert "whole numbers" in refused(tmp_path, "bert", **{name: np.ones((12, 12), kind)})


@pytest.mark.parametrize(
    ("base", "name"),
    [
        ("bert", "bert.embeddings.position_embeddings.weight"),
        ("albert", "albert.embeddings.position_embeddings.weight"),
        ("distilbert", "distilbert.embeddings.position_embeddings.weight"),
        ("opt", "model.decoder.embed_positions.weight"),
        ("vit", "vit.embeddings.position_embeddings"),
        ("gpt2", "transformer.wpe.weight"),
    ],
)
def test_positions_whose_table_is_not_there_are_not_known(base, name, tmp_path):
    assert audited(tmp_path, base).checkpoint.positions == "learned"
    assert audited(tmp_path, base, drop=(name,)).checkpoint.positions is None


def test_more_registers_than_their_masks_fit_into_memory(tmp_path):
    """A file of 200 kB asked for a mask of 3 GB."""
    assert "registers" in refused(tmp_path, "timm", reg_token=np.zeros((1, 20_000, 12), np.float16))
    assert audited(tmp_path, "timm", reg_token=np.ones((1, 4, 12))).coverage.missing == ()


def test_narrow_tables_with_a_map_to_the_tokens_are_read(tmp_path):
    """As in the smallest but one OPT: words are narrow, positions are not."""
    words, maps = np.ones((11, 5)), {"project_in": (12, 5), "project_out": (5, 12)}
    parts = {f"model.decoder.{name}.weight": np.ones(shape) for name, shape in maps.items()}
    found = audited(tmp_path, "opt", **{"model.decoder.embed_tokens.weight": words}, **parts)
    assert not found.coverage.missing and found.checkpoint.vocabulary == 11


def test_attention_of_torch_to_tokens_of_another_width(tmp_path):
    """Its keys cannot come from the tokens that the norm before it gives."""
    place = "encoder.layers.0.self_attn"
    parts = {
        f"{place}.{letter}_proj_weight": np.ones((12, wide)) for letter, wide in zip("qkv", (12, 10, 14), strict=True)
    }
    found = audited(tmp_path, "torch-encoder", drop=(f"{place}.in_proj_weight",), **parts)
    assert found.checkpoint.layers[0].attention[0].cross
    draft = BASES["torch-encoder"]()
    draft.tensors.pop(f"{place}.in_proj_weight")
    draft.tensors |= parts | {f"{place}.q_proj_weight": np.ones((12, 10))}
    assert examine(draft, tmp_path) == "refused"


def test_a_tensor_with_no_name_but_weight_is_no_norm_of_falcon(tmp_path):
    norms = tuple(f"transformer.h.0.ln_{part}.{end}" for part, end in product(("attn", "mlp"), ("weight", "bias")))
    found = audited(tmp_path, "falcon-new", drop=norms, **{"transformer..weight": np.ones(12)})
    assert not found.checkpoint.layers[0].norms and found.coverage.missing == (("transformer..weight", (12,)),)


# What is not of the readers.


def test_a_score_bound_that_no_exponent_can_be_printed_for(tmp_path):
    draft = BASES["opt"]()
    draft.tensors["model.decoder.layers.0.self_attn_layer_norm.weight"] = np.full(12, 1e30)
    assert audit(draft.write(tmp_path)).verdicts


@pytest.mark.parametrize(
    ("family", "name", "size"),
    [("opt", "model.decoder.layers.0.self_attn_layer_norm.weight", 1e153), ("timm", "head.weight", 1e300)],
)
def test_bounds_that_overflow_are_a_sentence(family, name, size, tmp_path):
    draft = BASES[family]()
    draft.tensors[name] = np.full(draft.tensors[name].shape, size)
    with pytest.raises(BadInput, match="so large that their products are not finite"):
        audit(draft.write(tmp_path), **draft.given)


def test_a_constant_that_overflows_is_none(tmp_path):
    draft = BASES["bert"]()
    name = "bert.encoder.layer.0.attention.self.query.bias"
    draft.tensors[name] = np.full(12, 1e300)
    found = next(each for each in audit(draft.write(tmp_path)).verdicts if each.id == "bounds.attention_lipschitz")
    assert found.verdict != "holds" or np.isfinite(found.value)


def test_names_of_an_unknown_family_with_a_line_break(tmp_path):
    with pytest.raises(BadInput) as caught:
        audit(Draft({"a\nb": np.ones((2, 2))}).write(tmp_path))
    assert "\n" not in str(caught.value)
