"""What the architecture allows: each verdict on a model where it holds and on one where it fails, with the reason."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from audit.checkpoints import write_bert, write_llama
from certiformer.audit import Given, audit
from certiformer.audit.architecture import mask_of, self_attentions
from certiformer.audit.expressivity_checks import IDS, expressivity
from certiformer.audit.form import Checkpoint, Coverage
from certiformer.audit.limits import few_bits, left_over
from certiformer.audit.measure import measure
from certiformer.audit.read import read_checkpoint
from certiformer.model import Attention, Block, Config, Heads, Input, Readout, Transformer, save


@pytest.fixture(scope="module")
def bert(tmp_path_factory) -> Checkpoint:
    return read_checkpoint(write_bert(tmp_path_factory.mktemp("bert")))[0]


def verdicts(checkpoint: Checkpoint, **given) -> dict:
    found = {each.id: each for each in expressivity(checkpoint, measure(checkpoint), Coverage(0, 0), Given(**given))}
    assert tuple(found) == IDS
    return found


def changed(checkpoint: Checkpoint, positions: str | None, *, plain: bool = False, **attention) -> Checkpoint:
    """The same weights read as those of another architecture; `plain` is without norms and with ReLU units."""
    layers = []
    for layer in checkpoint.layers:
        own = replace(layer, attention=tuple(replace(each, **attention) for each in layer.attention))
        if plain:
            own = replace(own, ffn=tuple(replace(each, activation="relu") for each in own.ffn), norms={})
        layers.append(own)
    embeddings = {k: v for k, v in checkpoint.embeddings.items() if k != "position" or positions == "learned"}
    place = None if plain else checkpoint.norm_place
    return replace(checkpoint, positions=positions, layers=tuple(layers), embeddings=embeddings, norm_place=place)


def test_learned_codes_show_the_order_and_break_equality(bert):
    found = verdicts(bert)
    assert found["expressivity.permutation_equivariance"].verdict == "does-not-apply"
    assert found["expressivity.relative_bias_not_universal"].verdict == "does-not-apply"
    assert "table of codes differ" in found["expressivity.permutation_equivariance"].sentence


def test_a_table_of_equal_codes_hides_the_order(bert):
    """The numbers are looked at, not the name of the scheme."""
    weight = bert.embeddings["position"]
    flat = replace(weight, load=lambda: np.ones(weight.shape))
    same = replace(bert, embeddings={**bert.embeddings, "position": flat})
    assert verdicts(same)["expressivity.permutation_equivariance"].verdict == "holds"


def test_without_positions_the_order_is_invisible_unless_a_mask_shows_it(bert):
    blind = verdicts(changed(bert, "none"))
    assert blind["expressivity.permutation_equivariance"].verdict == "holds"
    causal = verdicts(changed(bert, "none", causal=True))
    assert causal["expressivity.permutation_equivariance"].verdict == "does-not-apply"
    assert "causal mask" in causal["expressivity.permutation_equivariance"].sentence


@pytest.mark.parametrize("scheme", ["rope", "alibi", "relative", "none"])
@pytest.mark.parametrize("window", [None, 3])
def test_inside_the_softmax_equal_tokens_stay_equal(bert, scheme, window):
    found = verdicts(changed(bert, scheme, causal=True, window=window), length=50)
    relative = found["expressivity.relative_bias_not_universal"]
    assert (relative.verdict, relative.value) == ("holds", float(Fraction(49, 100)))


def test_weights_that_need_not_sum_to_one_are_not_covered(bert):
    found = verdicts(changed(bert, "rope", softmax=False))["expressivity.relative_bias_not_universal"]
    assert found.verdict == "does-not-apply" and "need not sum to one" in found.sentence


def test_unknown_positions_are_asked_for(bert):
    found = verdicts(changed(bert, None))
    assert found["expressivity.permutation_equivariance"].verdict == "holds-if"
    assert found["expressivity.permutation_equivariance"].needs


def test_universality_of_sparse_attention_names_every_failing_hypothesis(bert):
    sentence = verdicts(changed(bert, "rope", causal=True))["expressivity.sparse_attention"].sentence
    for reason in ("never hears", "trainable codes", "norms", "ReLU"):
        assert reason in sentence
    plain = changed(bert, "learned", plain=True)
    assert verdicts(plain)["expressivity.sparse_attention"].verdict == "holds"
    assert verdicts(plain)["axioms.korovkin_ridges"].verdict == "holds"
    assert verdicts(plain)["expressivity.softmax_contextual"].verdict == "holds"
    window = verdicts(changed(bert, "learned", plain=True, window=2))["expressivity.sparse_attention"]
    assert window.verdict == "holds" and "after 11 layers" in window.sentence  # 12 tokens, neighbours only
    alone = verdicts(changed(bert, "learned", plain=True, window=1))["expressivity.sparse_attention"]
    assert alone.verdict == "does-not-apply" and "never hears" in alone.sentence


def test_the_window_of_a_mask_counts_the_token_itself(bert):
    attention = replace(self_attentions(bert)[0], causal=True, window=2)
    assert mask_of(attention, 4).sum() == 7


@pytest.mark.parametrize(("score", "tokens"), [(0.1, 2), (1.0, 100), (7.5, 512), (20.0, 9)])
def test_the_least_weight_off_the_best_token_is_attained_and_never_missed(score, tokens):
    left = left_over(score, tokens)[0]
    scores = np.full(tokens, -score)
    scores[0] = score
    weights = np.exp(scores - score)
    attained = 1 - 1 / weights.sum()
    # The float comparison rounds; a bound from below may not exceed it by more than that.
    assert left <= attained + 1e-15 and math.isclose(left, attained, rel_tol=1e-9, abs_tol=1e-15)
    rng = np.random.default_rng(0)
    for _ in range(200):
        drawn = rng.uniform(-score, score, tokens)
        shares = np.exp(drawn - drawn.max())
        assert 1 - shares.max() / shares.sum() >= left - 1e-15


def test_sharpness_is_vacuous_where_float32_cannot_tell(bert):
    sharp = verdicts(bert)["expressivity.softmax_temperature_limit"]
    assert sharp.verdict == "vacuous" and sharp.value < sharp.trivial
    small = replace(
        bert,
        layers=tuple(replace(x, attention=tuple(replace(a, scale=1e-3) for a in x.attention)) for x in bert.layers),
    )
    soft = verdicts(small)["expressivity.softmax_temperature_limit"]
    assert soft.verdict == "holds" and soft.value > 0.5


def test_few_bits_cannot_do_everything(bert):
    found = few_bits(bert, Coverage(0, 0))
    stored = sum(weight.count for weight in bert.weights()) * 32
    cells = round(1 / (2 * found.value))
    assert (cells - 1) ** bert.width <= stored < cells**bert.width
    assert (
        few_bits(replace(bert, width=1), Coverage(0, 0)).value < 1e-5
    )  # one coordinate: many cells, found without walking to them
    # What is not accounted for may be weights, too: more bits, a weaker statement.
    assert few_bits(bert, Coverage(10**9, 0)).value < found.value


def test_rotary_positions_of_a_real_layout(tmp_path):
    found = {each.id: each for each in audit(write_llama(tmp_path)).verdicts}
    assert found["expressivity.relative_bias_not_universal"].value == float(Fraction(63, 128))
    assert "rotary positions" in found["expressivity.permutation_equivariance"].sentence


def test_a_token_that_is_always_there_breaks_equality(bert):
    """The share of a class token or register can depend on the position: the theorem does not hold, and is not claimed."""
    biased = changed(bert, "relative")
    weight = replace(bert.embeddings["token_type"], shape=(1, 1, 16))
    for name in ("class_token", "registers"):
        with_token = replace(biased, embeddings={**biased.embeddings, name: weight})
        found = verdicts(with_token)["expressivity.relative_bias_not_universal"]
        assert found.verdict == "does-not-apply" and "registers" in found.sentence


def test_our_own_models_tell_of_their_score_biases(tmp_path):
    """Without codes but with a table of score biases the order is visible, and there is no bound of the scores."""
    for bias, verdict in (("none", "holds"), ("toeplitz", "does-not-apply")):
        layer = Block(Attention((Heads(2, 4, 4),), score_bias=bias))
        config = Config(Input("continuous", 5, width=1), 8, 1, Readout("all"), blocks=(layer,))
        save(Transformer.random(config, seed=0), tmp_path / bias)
        found = audit(tmp_path / bias)
        by_id = {each.id: each for each in found.verdicts}
        assert by_id["expressivity.permutation_equivariance"].verdict == verdict
        assert by_id["expressivity.relative_bias_not_universal"].verdict == "holds"
