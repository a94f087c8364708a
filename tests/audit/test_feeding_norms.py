"""Which norm bounds the tokens that attention reads: shared layers, score biases, and the tokens themselves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from audit.checkpoints import WIDTH, bert_tensors, write_bert
from certiformer.audit.feeding_norms import feeding_norms, norm_radius
from certiformer.audit.form import Checkpoint, Norm
from certiformer.audit.measure import measure
from certiformer.audit.read import read_checkpoint


@pytest.fixture
def bert(tmp_path) -> Checkpoint:
    return read_checkpoint(write_bert(tmp_path))[0]


def widened(norm: Norm, factor: float) -> Norm:
    assert norm.gain is not None
    gain = norm.gain
    return replace(norm, gain=replace(gain, load=lambda: factor * gain.read()))


def test_a_layer_that_is_applied_once_reads_the_norm_before_it(bert):
    assert feeding_norms(bert, 0, "attention") == (bert.norms["embeddings"],)
    assert feeding_norms(bert, 1, "attention") == (bert.layers[0].norms["ffn"],)
    assert feeding_norms(bert, 1, "ffn") == (bert.layers[1].norms["attention"],)


def test_a_layer_that_is_applied_twice_reads_its_own_norm_too(bert):
    """A layer whose own norm lets more through than the embeddings: the radius is that of the second application."""
    own = {**bert.layers[0].norms, "ffn": widened(bert.layers[0].norms["ffn"], 10.0)}
    once = replace(bert, layers=(replace(bert.layers[0], norms=own),))
    twice = replace(bert, layers=(replace(bert.layers[0], norms=own, repeats=2),))
    narrow, wide = measure(once).layers[0], measure(twice).layers[0]
    assert narrow.radius == norm_radius(bert.norms["embeddings"], WIDTH)
    assert wide.radius == norm_radius(own["ffn"], WIDTH) > 5 * narrow.radius
    assert wide.heads[0].score_bound > 25 * narrow.heads[0].score_bound
    assert narrow.heads[0].qk.folded_spectral is not None and wide.heads[0].qk.folded_spectral is None
    assert wide.heads[0].qk.spectral == narrow.heads[0].qk.spectral


def test_no_tokens_of_a_run_leave_the_radius(bert):
    """Two applications of one layer, written out; random inputs, and the norm of what attention reads the second time."""
    layer = replace(bert.layers[0], repeats=2)
    found = measure(replace(bert, layers=(layer,))).layers[0]
    norm, rng = layer.norms["ffn"], np.random.default_rng(0)
    x = rng.normal(size=(200, WIDTH)) * rng.exponential(5, (200, 1))
    centred = x - x.mean(1, keepdims=True)
    behind = centred / np.sqrt(centred.var(1, keepdims=True) + norm.epsilon) * norm.gain.read() + norm.shift.read()
    assert np.linalg.norm(behind, axis=1).max() <= found.radius


def test_without_a_norm_on_the_embeddings_shared_layers_have_no_radius(bert):
    """As in ALBERT, where the first application reads tokens that no norm has seen."""
    bare = replace(bert, norms={}, layers=(replace(bert.layers[0], repeats=3),))
    assert measure(bare).layers[0].radius is None and measure(bare).layers[0].heads[0].score_bound is None


@pytest.mark.parametrize("scheme", ["relative", "alibi"])
def test_score_biases_leave_no_score_bound(bert, scheme):
    assert all(head.score_bound is not None for layer in measure(bert).layers for head in layer.heads)
    biased = replace(bert, positions=scheme)
    assert all(head.score_bound is None for layer in measure(biased).layers for head in layer.heads)


def test_gains_that_are_not_finite_are_named_and_not_used(tmp_path):
    tensors = bert_tensors()
    tensors["embeddings.LayerNorm.weight"][0] = np.inf
    found = measure(read_checkpoint(write_bert(tmp_path, tensors))[0])
    assert found.not_finite == ("embeddings.LayerNorm.weight",) and found.layers[0].radius is None
