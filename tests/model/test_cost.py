"""The cost model against the matrix products that JAX is really asked for, and against a naive count."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from certiformer.errors import BadInput
from certiformer.model import Attention, Block, Config, FeedForward, Heads, Input, Readout
from certiformer.model.cost import cost
from model.cases import OPTIONS, inputs_of, model_of


def counted_operations(jaxpr) -> int:
    """Two operations per multiply-add of every dot_general, loops counted as often as they run."""
    total = 0
    for equation in jaxpr.eqns:
        if equation.primitive.name == "dot_general":
            ((contracted, _), _) = equation.params["dimension_numbers"]
            left = equation.invars[0].aval.shape
            total += 2 * equation.outvars[0].aval.size * int(np.prod([left[axis] for axis in contracted]))
        for inner in equation.params.values():
            if hasattr(inner, "jaxpr"):  # the body of a loop or of a nested jit
                total += counted_operations(inner.jaxpr) * equation.params.get("length", 1)
    return total


@pytest.mark.parametrize("option", OPTIONS)
def test_operations_are_those_of_the_forward_pass(option):
    model = model_of(**OPTIONS[option])
    jaxpr = jax.make_jaxpr(model.__call__)(inputs_of(model.config))
    assert model.cost().flops == counted_operations(jaxpr.jaxpr)


def test_operations_of_another_length():
    long = model_of(input=Input("ids", 9, vocabulary=3))
    short = model_of(input=Input("ids", 4, vocabulary=3))
    assert long.cost(4) == short.cost()


def test_attention_and_ffn_by_a_naive_count():
    """Multiply-adds counted one by one in the loops of the definition."""
    n, d, k, v, w, heads = 4, 5, 3, 2, 7, 2
    attention = ffn = 0
    for _ in range(heads):
        attention += sum(1 for _token in range(n) for _out in range(k + k + v) for _in in range(d))
        attention += sum(1 for _query in range(n) for _key in range(n) for _size in range(k + v))
        attention += sum(1 for _query in range(n) for _size in range(v) for _out in range(d))
    ffn += sum(1 for _token in range(n) for _out in range(w) for _in in range(d))
    ffn += sum(1 for _token in range(n) for _out in range(d) for _in in range(w))
    model = model_of(
        input=Input("continuous", n, width=2), blocks=(Block(Attention((Heads(heads, k, v),)), FeedForward(w)),)
    )
    assert (model.cost().attention_flops, model.cost().ffn_flops) == (2 * attention, 2 * ffn)


def test_bytes_of_weights_and_arrays():
    """Stored tensors plus the arrays of one pass, from their shapes."""
    for dtype, item in (("float64", 8), ("float32", 4), ("bfloat16", 2)):
        model = model_of(dtype=dtype)  # 3 tokens, width 5, heads 2 x (3, 2) and 1 x (1, 4), 4 hidden units
        weights = {n: t.size for n, t in model.tensors.items()}
        attention = sum(size for name, size in weights.items() if ".attention." in name)
        attention += 2 * (3 * (3 + 3 + 2) + 9 + 3 * 2) + 1 * (3 * (1 + 1 + 4) + 9 + 3 * 4) + 3 * 5
        ffn = sum(size for name, size in weights.items() if ".ffn." in name) + 3 * 4 + 3 * 5
        assert (model.cost().attention_bytes, model.cost().ffn_bytes) == (item * attention, item * ffn)


def crossover_by_search(config, longest=3000):
    """The last length at which attention is not dearer, plus one."""
    last = 0
    for n in range(1, longest):
        at = cost(config, n)
        if at.attention_flops <= at.ffn_flops:
            last = n
    return last + 1 if last < longest - 1 else None


@pytest.mark.parametrize(
    ("readout", "registers"),
    [*((readout, r) for readout in (Readout("all"), Readout("token", 0)) for r in (0, 3)), (Readout("register", 2), 3)],
)
@pytest.mark.parametrize("ffn_width", [1, 8, 60, 200])
@pytest.mark.parametrize("heads", [Heads(1, 1, 1), Heads(2, 3, 2)])
def test_crossover_is_where_attention_becomes_dearer(readout, registers, ffn_width, heads):
    block = Block(Attention((heads,)), FeedForward(ffn_width))
    config = Config(Input("ids", 5, vocabulary=3), 6, 1, readout, (block,), registers)
    assert cost(config).crossover == crossover_by_search(config)


def test_crossover_without_attention_or_without_ffn():
    assert model_of(**OPTIONS["ffn only, gelu"]).cost().crossover is None
    assert model_of(**OPTIONS["causal"]).cost().crossover == 1
    assert model_of(blocks=()).cost().crossover is None


def test_the_textbook_case():
    """GPT-2 small: projections 8 n d^2, scores 4 n^2 d, FFN 16 n d^2; hence attention wins from n = 2 d + 1 on."""
    d = 768
    block = Block(Attention((Heads(12, 64, 64),)), FeedForward(4 * d))
    config = Config(Input("ids", 1024, vocabulary=50257), d, 1, Readout("all"), 12 * (block,))
    n = 1024
    assert cost(config).attention_flops == 12 * (8 * n * d * d + 4 * n * n * d)
    assert cost(config).ffn_flops == 12 * 16 * n * d * d
    assert cost(config).crossover == 2 * d + 1


@pytest.mark.parametrize("length", [0, -1, 2.5, True])
def test_senseless_lengths_are_refused(length):
    with pytest.raises(BadInput, match="integer of at least 1"):
        model_of().cost(length)
