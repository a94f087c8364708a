"""Hard attention confuses contexts: exact equality for all kinds of weights, and what escapes the theorem."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certiformer.errors import BadInput
from certiformer.expressivity.hardmax_not_contextual import (
    TRIPLES,
    confuses_contexts,
    indistinguishable,
    on_line,
    three_heads,
    twins,
)
from certiformer.expressivity.rational_run import rational_outputs
from certiformer.model import (
    Attention,
    Block,
    Code,
    Config,
    FeedForward,
    Heads,
    Input,
    Readout,
    Transformer,
    tensor_specs,
)


def hard_layer(length, width, heads, bias, residual, seed, whole):
    """A layer with random weights; whole ones make exact ties likely."""
    attention = Attention((Heads(heads, 2, 2),), kind="hard", bias=bias, scale="unit", residual=residual)
    source = Input("continuous", length, width=width)
    config = Config(source, 3, 2, Readout("all"), blocks=(Block(attention, FeedForward(4)),))
    generator = np.random.default_rng(seed)
    tensors = {
        name: generator.integers(-2, 3, spec.shape).astype(float) if whole else generator.standard_normal(spec.shape)
        for name, spec in tensor_specs(config).items()
    }
    return Transformer(config, tensors)


@settings(max_examples=120, deadline=None, derandomize=True)
@given(
    st.integers(4, 7),
    st.integers(1, 3),
    st.integers(1, 4),
    st.booleans(),
    st.booleans(),
    st.integers(0, 10**6),
    st.booleans(),
)
def test_no_weights_tell_the_twins_apart(length, width, heads, bias, residual, seed, whole):
    model = hard_layer(length, width, heads, bias, residual, seed, whole)
    generator = np.random.default_rng(seed + 1)
    assert indistinguishable(
        model, generator.standard_normal(width).tolist(), generator.standard_normal(width).tolist()
    )
    assert indistinguishable(model)


@settings(max_examples=120, deadline=None, derandomize=True)
@given(st.integers(1, 2), st.booleans(), st.integers(0, 10**6), st.booleans())
def test_one_head_confuses_two_of_the_triples(width, bias, seed, whole):
    model = hard_layer(3, width, 1, bias, True, seed, whole)
    outputs = [rational_outputs(model, on_line(t, [1] * width, [1] * width))[t.index(2)] for t in TRIPLES]
    assert any(a == b for a, b in combinations(outputs, 2))


@pytest.mark.parametrize(("key", "pair"), [(1.0, (0, 1)), (-1.0, (0, 2)), (0.0, (0, 3))])
def test_each_kind_of_head_confuses_the_pair_the_proof_names(key, pair):
    model = three_heads(3)
    alone = {**model.tensors, "blocks.0.attention.groups.0.key": np.full((3, 4, 1), 0.0)}
    alone["blocks.0.attention.groups.0.key"][:, 0, 0] = key
    outputs = [rational_outputs(Transformer(model.config, alone), on_line(t, [0], [1]))[t.index(2)] for t in TRIPLES]
    assert {(i, j) for i, j in combinations(range(4), 2) if outputs[i] == outputs[j]} >= {pair}


@pytest.mark.parametrize("length", [1, 2, 3])
def test_three_heads_are_a_contextual_mapping_up_to_three_tokens(length):
    """Negative control: the theorem does not extend to n = 3."""
    model, seen = three_heads(length), {}
    for numbers in combinations([0, 1, 2, 4, 5, 7, Fraction(22, 3)], length):
        for token, output in zip(numbers, rational_outputs(model, [[Fraction(t)] for t in numbers]), strict=True):
            seen.setdefault(tuple(output), set()).add((token, numbers))
    assert all(len(contexts) == 1 for contexts in seen.values())


def test_other_sequences_are_told_apart():
    """Negative control: equality is special to the twins; a changed sum is seen by the mean, a changed end by its head."""
    model = three_heads(4)
    first = rational_outputs(model, on_line((0, 1, 4, 5), [0], [1]))[0]
    assert first == rational_outputs(model, on_line((0, 2, 3, 5), [0], [1]))[0]
    assert first != rational_outputs(model, on_line((0, 2, 4, 5), [0], [1]))[0]
    assert first != rational_outputs(model, on_line((0, 1, 3, 6), [0], [1]))[0]


def test_softmax_tells_the_twins_apart():
    model = three_heads(4)
    soft = replace(model.config.blocks[0].attention, kind="softmax")
    softened = Transformer(replace(model.config, blocks=(Block(soft),)), model.tensors)
    outputs = softened.evaluate(np.array(twins(4), float)).reshape(2, 4, 4)[:, 0]
    assert np.abs(outputs[0] - outputs[1]).max() > 0.039  # 4.659 and 4.619 at temperature 1


def test_twins_are_different_sets_without_repetition():
    for length in range(4, 12):
        first, second = twins(length)
        assert len(set(first)) == len(set(second)) == length and set(first) != set(second)
        assert (first[0], first[-1], sum(first)) == (second[0], second[-1], sum(second))


def test_what_the_theorem_does_not_speak_of_is_refused():
    model = three_heads(4)
    block = model.config.blocks[0]
    others = [
        (replace(model.config, loops=2), {}),
        (replace(model.config, code=Code("table")), {"code.table": np.zeros((4, 4))}),
        (replace(model.config, readout=Readout("mean")), {}),
        (replace(model.config, blocks=(Block(replace(block.attention, kind="softmax")),)), {}),
        (replace(model.config, blocks=(Block(replace(block.attention, mask="causal")),)), {}),
    ]
    assert confuses_contexts(model.config) and not confuses_contexts(three_heads(3).config)
    for config, more in others:
        assert not confuses_contexts(config)
        with pytest.raises(BadInput, match="one layer of hard attention"):
            indistinguishable(Transformer(config, {**model.tensors, **more}))
    with pytest.raises(BadInput, match="at least 4 tokens"):
        indistinguishable(three_heads(3))
    with pytest.raises(BadInput, match="is not 0"):
        indistinguishable(model, [1], [0])
