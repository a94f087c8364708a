"""Lipschitz constants against the attention itself, biases included, and where they do not apply."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from audit.checkpoints import write_bert, write_llama
from certiformer.audit import Given
from certiformer.audit.form import Attention, Checkpoint
from certiformer.audit.lipschitz import layer_constants, lipschitz
from certiformer.audit.measure import measure
from certiformer.audit.read import read_checkpoint


@pytest.fixture(scope="module")
def bert(tmp_path_factory) -> Checkpoint:
    return read_checkpoint(write_bert(tmp_path_factory.mktemp("bert")))[0]


def held(attention: Attention) -> dict[str, np.ndarray]:
    """The numbers of the stored maps."""
    names = ("query", "key", "value", "output", "query_bias", "key_bias", "value_bias")
    return {name: getattr(attention, name).read() for name in names}


def run(maps: dict[str, np.ndarray], scale: float, x: np.ndarray) -> np.ndarray:
    """The attention of the stored maps on tokens (n, d), written out plainly."""
    total = np.zeros_like(x)
    for h in range(len(maps["query"])):
        q, k, v = (x @ maps[name][h].T + maps[f"{name}_bias"][h] for name in ("query", "key", "value"))
        scores = scale * q @ k.T
        weights = np.exp(scores - scores.max(1, keepdims=True))
        total += (weights / weights.sum(1, keepdims=True)) @ v @ maps["output"][h].T
    return total


def test_no_movement_of_the_tokens_is_stretched_more(bert):
    figures = measure(bert)
    rng = np.random.default_rng(0)
    for layer, found in zip(bert.layers, figures.layers, strict=True):
        radius, maps, scale = 3.0, held(layer.attention[0]), layer.attention[0].scale
        token, sequence = layer_constants(layer, found, radius, 5)
        values_alone = sum(head.vo.spectral for head in found.heads)
        stretched = 0.0
        for _ in range(100):
            x = rng.normal(size=(5, 16))
            x *= radius * rng.uniform(0, 1, (5, 1)) / np.linalg.norm(x, axis=1, keepdims=True)
            step = 1e-5 * rng.normal(size=x.shape)
            y = x + step
            y *= np.minimum(1, radius / np.linalg.norm(y, axis=1, keepdims=True))
            moved, gone = run(maps, scale, y) - run(maps, scale, x), y - x
            ratio = np.linalg.norm(moved, axis=1).max() / np.linalg.norm(gone, axis=1).max()
            assert ratio <= token
            assert np.linalg.norm(moved) <= sequence * np.linalg.norm(gone)
            stretched = max(stretched, ratio)
        assert stretched > 0.02 * values_alone  # the comparison is not one of zeros


def test_the_values_alone_are_no_constant(bert):
    """Negative control: without the term of the scores the number is exceeded when two keys compete."""
    attention = bert.layers[0].attention[0]
    sharp = replace(attention, scale=20.0)
    layer = replace(bert.layers[0], attention=(sharp,))
    found = measure(replace(bert, layers=(layer,))).layers[0]
    values_alone = sum(head.vo.spectral for head in found.heads)
    rng, maps = np.random.default_rng(1), held(attention)
    stretched = 0.0
    for _ in range(300):
        x = rng.normal(size=(2, 16))
        x *= 3.0 / np.linalg.norm(x, axis=1, keepdims=True)
        step = 1e-6 * rng.normal(size=x.shape)
        moved = run(maps, 20.0, x + step) - run(maps, 20.0, x)
        stretched = max(stretched, np.linalg.norm(moved, axis=1).max() / np.linalg.norm(step, axis=1).max())
    assert values_alone < stretched <= layer_constants(layer, found, 3.1, None)[0]


def test_the_bias_of_the_queries_counts_and_that_of_the_keys_does_not(bert):
    with_bias = layer_constants(bert.layers[0], measure(bert).layers[0], 3.0, None)[0]

    def without(**names) -> float:
        layer = replace(bert.layers[0], attention=(replace(bert.layers[0].attention[0], **names),))
        found = measure(replace(bert, layers=(layer,))).layers[0]
        return layer_constants(layer, found, 3.0, None)[0]

    assert without(query_bias=None) < with_bias
    assert without(key_bias=None) == with_bias


def test_the_verdict_is_the_largest_layer(bert):
    dot, pairs, distance = lipschitz(bert, measure(bert), Given())
    assert pairs.id == "bounds.pairwise_attention_lipschitz" and pairs.verdict == "holds"
    assert dot.verdict == "holds" and dot.value == max(factor.value for factor in dot.factors)
    assert len(dot.factors) == 2 and distance.verdict == "does-not-apply"


def test_without_a_norm_a_radius_is_asked_for(bert):
    bare = replace(bert, norm_place=None)
    assert next(lipschitz(bare, measure(bare), Given())).needs
    assert next(lipschitz(bare, measure(bare), Given(radius=2.0))).verdict == "holds"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"cap": 5.0}, "capped"),
        ({"softmax": False}, "not softmax"),
        ({"output": None}, "no output"),
        ({"scale": None}, "scale"),
    ],
)
def test_what_the_theorem_does_not_cover_is_said(bert, change, reason):
    layers = tuple(
        replace(layer, attention=tuple(replace(a, **change) for a in layer.attention)) for layer in bert.layers
    )
    other = replace(bert, layers=layers)
    found = next(lipschitz(other, measure(other), Given()))
    assert found.verdict == "does-not-apply" and reason in found.sentence


def test_rotary_scores_are_not_one_matrix(tmp_path):
    llama = read_checkpoint(write_llama(tmp_path))[0]
    found = next(lipschitz(llama, measure(llama), Given()))
    assert found.verdict == "does-not-apply" and "rotary" in found.sentence


def test_gains_of_zero_are_no_crash(bert):
    norms = {
        name: replace(norm, gain=replace(norm.gain, load=lambda n=norm: np.zeros(n.gain.shape)), shift=None)
        for name, norm in bert.norms.items()
    }
    zero = replace(bert, norms=norms)
    assert next(lipschitz(zero, measure(zero), Given())).verdict == "holds"
