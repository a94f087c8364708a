"""The constants for every family against Jacobians of its attention, turned and biased as its positions turn and bias it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from audit.checkpoints import write_bert, write_llama
from audit.read.contract import write
from audit.read.test_contract import MADE
from certiformer.audit import Given
from certiformer.audit.form import Attention, Checkpoint, Norm
from certiformer.audit.lipschitz import lipschitz
from certiformer.audit.measure import Measurements, measure
from certiformer.audit.pairwise_lipschitz import pairwise
from certiformer.audit.read import read_checkpoint
from certiformer.audit.rotary_factor import rotary_factor
from certiformer.audit.score_slopes import Tokens, largest, token_sets

TOKENS, RADIUS, SCALES = 5, 3.0, (1.0, 30.0)
GIVEN = Given(length=TOKENS, radius=RADIUS)
FAMILIES = [
    "llama",
    "qwen2",
    "qwen3",
    "gemma2",
    "gemma3",
    "neox",
    "bloom",
    "t5",
    "bert",
    "gsasrec",
]


def read(name: str, folder) -> tuple[Checkpoint, Measurements]:
    made = MADE[name]()
    checkpoint = read_checkpoint(write(folder, made.tensors(), made.config), **made.given)[0]
    return checkpoint, measure(checkpoint)


def normed(norm: Norm | None, z):
    if norm is None:
        return z
    z = z - z.mean(-1, keepdims=True) if norm.kind == "layer" else z
    return z / jnp.sqrt((z**2).mean(-1, keepdims=True) + norm.epsilon) * norm.gain.read()


def attend(attention: Attention, scale: float, x, seen, angles, bias):
    """All heads with any angles and any biases of the scores; `seen` are the tokens of keys and values."""
    maps = {name: jnp.asarray(getattr(attention, name).read()) for name in ("query", "key", "value")}
    share = len(maps["query"]) // len(maps["key"])
    sides = []
    for name, tokens, norm in (("query", x, attention.query_norm), ("key", seen, attention.key_norm)):
        added = getattr(attention, f"{name}_bias")
        z = jnp.einsum("hed,td->hte", maps[name], tokens) + (0.0 if added is None else added.read()[:, None])
        sides.append(turned(normed(norm, z), angles))
    scores = scale * jnp.einsum("hte,hse->hts", sides[0], jnp.repeat(sides[1], share, 0))
    if attention.cap is not None:
        scores = attention.cap * jnp.tanh(scores / attention.cap)
    scores = scores + bias
    if attention.causal:
        scores = jnp.where(jnp.tri(len(x), dtype=bool), scores, -jnp.inf)
    values = jnp.repeat(jnp.einsum("hed,td->hte", maps["value"], seen), share, 0)
    mixed = jax.nn.softmax(scores, axis=-1) @ values
    if attention.output is None:
        return mixed.swapaxes(0, 1).reshape(len(x), -1)
    return jnp.einsum("hde,hte->td", attention.output.read(), mixed)


def turned(z, angles):
    """(heads, tokens, size) turned by position, in planes of coordinates half the size apart."""
    turns, m = jnp.arange(z.shape[1])[:, None] * angles, len(angles)
    first, second, rest = z[..., :m], z[..., m : 2 * m], z[..., 2 * m :]
    cosine, sine = jnp.cos(turns), jnp.sin(turns)
    return jnp.concatenate([first * cosine - second * sine, first * sine + second * cosine, rest], -1)


def drawn(tokens: Tokens, width: int, rng: np.random.Generator) -> np.ndarray:
    """Tokens at the ends of their set."""
    z = rng.normal(size=(TOKENS, width))
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    if not tokens.norms:
        return z * tokens.radius
    norm = tokens.norms[0]
    gain, shift = (0.0 if each is None else each.read() for each in (norm.gain, norm.shift))
    return z * math.sqrt(width) * gain + shift


def stretched(attention: Attention, scale: float, sets, angles: int, bias: float, rng) -> tuple[float, float]:
    """Lower bounds of the constants of sequences and of tokens, from Jacobians at some points."""
    points = [
        (drawn(sets[0], attention.query.shape[2], rng), drawn(sets[1], attention.key.shape[2], rng)) for _ in range(12)
    ]
    x, seen = (jnp.array(each) for each in zip(*points, strict=True))
    theta, biases = rng.uniform(0, math.pi, size=(12, angles)), bias * rng.normal(size=(12, 1, TOKENS, TOKENS))

    def jacobian(x, seen, theta, biases):
        both = jax.jacfwd(lambda x, y: attend(attention, scale, x, y, theta, biases), (0, 1))(x, seen)
        # Of one sequence where queries and keys are of one.
        return jnp.concatenate(both, 2) if attention.cross else both[0] + both[1]

    found = np.asarray(jax.jit(jax.vmap(jacobian))(x, x if not attention.cross else seen, theta, biases))
    sequence = np.linalg.norm(found.reshape(12, -1, found.shape[3] * found.shape[4]), 2, axis=(1, 2)).max()
    # All tokens move by at most one, in the directions that push one output along y.
    y = rng.normal(size=(12, 1, found.shape[2]))
    y = np.broadcast_to(y / np.linalg.norm(y, axis=2, keepdims=True), found.shape[:3])
    for _ in range(10):
        move = np.einsum("ntajb,nta->ntjb", found, y)
        move /= np.maximum(np.linalg.norm(move, axis=3, keepdims=True), 1e-300)
        far = np.einsum("ntajb,ntjb->nta", found, move)
        y = far / np.maximum(np.linalg.norm(far, axis=2, keepdims=True), 1e-300)
    return float(sequence), float(np.linalg.norm(far, axis=2).max())


def rescaled(checkpoint: Checkpoint, factor: float) -> Checkpoint:
    """The same model with sharper attention."""
    layers = tuple(
        replace(layer, attention=tuple(replace(a, scale=(a.scale or 1.0) * factor) for a in layer.attention))
        for layer in checkpoint.layers
    )
    return replace(checkpoint, layers=layers)


def with_epsilon(checkpoint: Checkpoint, epsilon: float) -> Checkpoint:
    """Norms of queries and keys that are not so steep near zero."""

    def softer(a: Attention) -> Attention:
        norms = {name: getattr(a, name) for name in ("query_norm", "key_norm")}
        return replace(a, **{name: replace(norm, epsilon=epsilon) for name, norm in norms.items() if norm is not None})

    layers = tuple(replace(layer, attention=tuple(map(softer, layer.attention))) for layer in checkpoint.layers)
    return replace(checkpoint, layers=layers)


def ratios(checkpoint: Checkpoint, figures: Measurements) -> Iterator[tuple[float, float]]:
    found = pairwise(checkpoint, figures, GIVEN)
    assert found.verdict == "holds", found.sentence
    numbers = iter(zip(found.details["of_sequences"], found.details["layers"], strict=True))
    rng = np.random.default_rng(0)
    for place, layer in enumerate(checkpoint.layers):
        for attention in layer.attention:
            sets = token_sets(checkpoint, place, attention, RADIUS)
            angles = attention.query.shape[1] // 2 if checkpoint.positions in ("rope", None) else 0
            bias = 1.0 if checkpoint.positions in ("alibi", "relative") else 0.0
            sequence, token = stretched(attention, attention.scale, sets, angles, bias, rng)
            constants = next(numbers)
            yield sequence / constants[0], token / constants[1]


@pytest.mark.parametrize("name", FAMILIES)
def test_no_attention_of_any_family_is_steeper(name, tmp_path):
    checkpoint, figures = read(name, tmp_path)
    found = [each for scale in SCALES for each in ratios(rescaled(checkpoint, scale), figures)]
    if name in ("qwen3", "gemma3"):
        # The epsilon of 1e-6 makes the constant thousands of times too large at tokens that are not near zero.
        found += ratios(with_epsilon(checkpoint, 1.0), figures)
    assert np.isfinite(found).all() and (np.array(found) <= 1).all()
    assert max(map(max, found)) > 0.03


def test_the_product_of_both_maps_is_not_enough_for_rotary_scores(tmp_path):
    """Negative control: queries and keys in different coordinates have no score but through a rotation."""
    checkpoint = read_checkpoint(write_llama(tmp_path))[0]
    attention = checkpoint.layers[0].attention[0]
    query, key = attention.query.read().copy(), attention.key.read().copy()
    query[:, 1:], key[:, 0], key[:, 1], key[:, 3] = 0.0, 0.0, 0.0, 0.0
    query, key = 5 * query, 5 * key
    apart = replace(
        attention,
        query=replace(attention.query, load=lambda: query),
        key=replace(attention.key, load=lambda: key),
    )
    checkpoint = replace(checkpoint, layers=(replace(checkpoint.layers[0], attention=(apart,)),))
    figures = measure(checkpoint)
    assert max(head.qk.spectral for head in figures.layers[0].heads) == 0
    by_product = next(lipschitz(replace(checkpoint, positions="none"), figures, GIVEN)).value
    token = pairwise(checkpoint, figures, GIVEN).value
    sets = token_sets(checkpoint, 0, apart, None)
    _, seen = stretched(apart, apart.scale, sets, 2, 0.0, np.random.default_rng(0))
    assert by_product < seen <= token


def test_a_key_bias_counts_where_scores_are_turned(tmp_path):
    checkpoint, figures = read("qwen2", tmp_path)
    attention = checkpoint.layers[0].attention[0]
    without = replace(
        checkpoint, layers=(replace(checkpoint.layers[0], attention=(replace(attention, key_bias=None),)),)
    )
    assert pairwise(without, figures, GIVEN).value < pairwise(checkpoint, figures, GIVEN).value


def test_it_is_below_the_constant_for_one_matrix(tmp_path):
    checkpoint, figures = read("gpt2", tmp_path)
    dot, pairs, _ = lipschitz(checkpoint, figures, GIVEN)
    assert pairs.value < dot.value
    assert all(a < b for a, b in zip(pairs.details["of_sequences"], dot.details["of_sequences"], strict=True))


def test_a_window_makes_the_constant_of_sequences_smaller(tmp_path):
    checkpoint = read_checkpoint(write_llama(tmp_path))[0]
    figures, given = measure(checkpoint), Given(length=64)
    attention = replace(checkpoint.layers[0].attention[0], window=4)
    near = replace(checkpoint, layers=(replace(checkpoint.layers[0], attention=(attention,)),))
    far, close = (pairwise(each, figures, given).details["of_sequences"][0] for each in (checkpoint, near))
    assert (
        close < far < 4 * close + 1e-9
        and pairwise(near, figures, given).value == pairwise(checkpoint, figures, given).value
    )


def changed(checkpoint: Checkpoint, **names) -> Checkpoint:
    layer = checkpoint.layers[0]
    return replace(checkpoint, layers=(replace(layer, attention=(replace(layer.attention[0], **names),)),))


def test_what_fails_is_named(tmp_path):
    checkpoint, figures = read("qwen3", tmp_path)
    norm = checkpoint.layers[0].attention[0].query_norm
    stretch = {"rope_scaling": {"type": "yarn", "mscale": 0.7, "mscale_all_dim": 0.7, "factor": 4.0}}
    for other, reason in (
        (changed(checkpoint, query_norm=replace(norm, epsilon=None)), "epsilon is in no file"),
        (changed(checkpoint, softmax=False), "not softmax"),
        (changed(checkpoint, scale=None), "scale is in no file"),
        (replace(checkpoint, config={**checkpoint.config, **stretch}), "scaled by a factor"),
        (replace(checkpoint, positions="relative"), "multiplied with the queries"),
    ):
        found = pairwise(other, figures, GIVEN)
        assert found.verdict == "does-not-apply" and reason in found.sentence and found.value is None


def test_without_a_config_the_rotary_code_is_taken_on_trust(tmp_path):
    checkpoint, figures = read("llama", tmp_path)
    said, silent = (pairwise(replace(checkpoint, config=c), figures, GIVEN) for c in ({"hidden_size": 24}, {}))
    assert said.verdict == "holds" and silent.verdict == "holds-if" and "does not scale" in silent.needs[0]
    assert said.value == silent.value


def test_without_a_norm_a_radius_is_asked_for(tmp_path):
    checkpoint, figures = read("llama", tmp_path)
    bare = replace(checkpoint, norm_place=None)
    found = pairwise(bare, figures, Given())
    assert found.verdict == "holds-if" and found.needs[0].startswith("--radius") and found.value is None
    assert pairwise(bare, figures, Given(radius=2.0)).verdict == "holds"


def test_numbers_that_overflow_prove_nothing(tmp_path):
    checkpoint, figures = read("llama", tmp_path)
    found = pairwise(rescaled(checkpoint, 1e308), figures, GIVEN)
    assert found.verdict == "does-not-apply" and "no constant is finite" in found.sentence and found.value is None


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
def test_the_largest_singular_value_is_not_rounded_down(size):
    rng = np.random.default_rng(0)
    for shape in ((3, 4, 50), (2, 50, 4), (1, 1, 1)):
        a = rng.normal(size=shape)
        a[0, :, 0] *= 1e5
        found, true = largest(a * size), np.linalg.norm(a, 2, axis=(1, 2)) * size
        assert (true <= found).all() and (found <= true * (1 + 1e-8)).all()
    assert largest(np.zeros((2, 3, 4))).tolist() == [0.0, 0.0]


def test_the_error_bar_of_a_product_bounds_its_factors(tmp_path):
    """The folded norms are used with an error that is derived from this."""
    checkpoint, figures = read("gpt2", tmp_path)
    attention = checkpoint.layers[0].attention[0]
    for output, value, head in zip(
        attention.output.read(), attention.value.read(), figures.layers[0].heads, strict=True
    ):
        factors = np.linalg.norm(output) * np.linalg.norm(value)
        assert head.vo.spectral_error >= 16 * checkpoint.width * 2.0**-53 * factors * (1 - 1e-12)


@pytest.mark.parametrize(
    ("config", "factor"),
    [
        ({}, 1.0),
        ({"rope_scaling": None}, 1.0),
        ({"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, 1.0),
        ({"rope_parameters": {"rope_type": "default", "rope_theta": 1e4}}, 1.0),
        ({"rope_scaling": {"type": "yarn", "factor": 4.0}}, 0.1 * math.log(4) + 1),
        ({"rope_scaling": {"type": "longrope"}, "max_position_embeddings": 1 << 17, "original_max_position_embeddings": 1 << 12},
         math.sqrt(1 + 5 / 12)),
        ({"rope_parameters": {"full": {"rope_type": "yarn", "factor": 2.0}, "near": {"rope_type": "default"}}}, 0.1 * math.log(2) + 1),
        ({"rope_scaling": {"type": "mystery"}}, None),
        ({"rope_scaling": {"type": "yarn", "attention_factor": float("nan")}}, None),
        ({"rope_scaling": {"type": "yarn", "factor": -4.0}}, None),
        ({"rope_scaling": {"type": ["yarn"], "factor": 4.0}}, None),
        ({"rope_scaling": "yarn"}, None),
    ],
)  # fmt: skip
def test_what_a_stretched_rotary_code_multiplies_by(config, factor):
    assert rotary_factor(config) == (factor if factor is None else pytest.approx(factor))


def test_the_factors_are_those_of_the_published_code():
    utils = pytest.importorskip("transformers.modeling_rope_utils")
    transformers = pytest.importorskip("transformers")
    sizes = SimpleNamespace(hidden_size=32, num_attention_heads=4, max_position_embeddings=4096)
    for kind, said in (
        ("yarn", {"factor": 4.0, "original_max_position_embeddings": 1024}),
        ("longrope", {"long_factor": [1.0] * 4, "short_factor": [1.0] * 4, "original_max_position_embeddings": 1024}),
    ):
        said = {"rope_type": kind, "rope_theta": 1e4, **said}
        config = transformers.LlamaConfig(**vars(sizes), rope_parameters=said)
        published = utils.ROPE_INIT_FUNCTIONS[kind](config, "cpu")[1]
        found = rotary_factor({"rope_parameters": said, "max_position_embeddings": 4096})
        assert found == pytest.approx(published)


def test_progress_is_made_where_maps_are_read_again(tmp_path):
    """The layers of a rotary model are counted once more; the figures of other heads are enough, and nothing is read."""
    counts = []
    for folder in (write_llama(tmp_path / "llama", layers=3), write_bert(tmp_path / "bert")):
        checkpoint, said = read_checkpoint(folder)[0], []
        pairwise(checkpoint, measure(checkpoint), GIVEN, lambda *state, said=said: said.append(state[:2]))
        counts.append(said)
    assert counts == [[(1, 3), (2, 3), (3, 3)], []]
