"""How a request is read: tokens, rows and layouts, and one sentence for every contradiction."""

from __future__ import annotations

import pytest

from certiformer.construct.method import Shape
from certiformer.errors import BadInput
from certiformer.search.request import read_shape, read_target
from certiformer.target import formula


def shape_of(outputs: int, inputs: int, tokens=None, out_tokens=None, out_width=None, layout=None) -> Shape:
    target = read_target("[" + ", ".join(["x1"] * outputs) + "]", f"[0,1]^{inputs}")
    return read_shape(target, tokens, out_tokens, out_width, layout)


@pytest.mark.parametrize(
    ("request_", "wanted"),
    [
        ({"outputs": 1, "inputs": 1}, (1, 1, 1, 1)),
        ({"outputs": 1, "inputs": 3}, (3, 1, 1, 1)),
        ({"outputs": 3, "inputs": 3}, (3, 1, 1, 3)),  # without --tokens all outputs are one row
        ({"outputs": 2, "inputs": 2, "tokens": 2}, (2, 1, 2, 1)),  # with it, one row a token
        ({"outputs": 4, "inputs": 4, "tokens": 2}, (2, 2, 2, 2)),
        ({"outputs": 1, "inputs": 4, "tokens": 2}, (2, 2, 1, 1)),
        ({"outputs": 3, "inputs": 4, "tokens": 1}, (1, 4, 1, 3)),
        ({"outputs": 6, "inputs": 4, "tokens": 2, "out_tokens": 3}, (2, 2, 3, 2)),
        ({"outputs": 6, "inputs": 4, "tokens": 2, "out_width": 2}, (2, 2, 3, 2)),
        ({"outputs": 6, "inputs": 4, "out_width": 1}, (4, 1, 6, 1)),
        ({"outputs": 6, "inputs": 4, "out_tokens": 2, "out_width": 3}, (4, 1, 2, 3)),
    ],
)
def test_what_is_not_given_follows(request_, wanted):
    assert shape_of(**request_) == Shape(*wanted)
    assert shape_of(**request_, layout="output-token") == Shape(*wanted, "output-token")


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        ({"outputs": 1, "inputs": 3, "tokens": 2}, "--tokens must divide the number of inputs, which is 3; it is 2"),
        ({"outputs": 1, "inputs": 3, "tokens": 0}, "--tokens must divide"),
        ({"outputs": 1, "inputs": 3, "tokens": -3}, "--tokens must divide"),
        ({"outputs": 1, "inputs": 3, "tokens": True}, "--tokens must divide"),
        ({"outputs": 1, "inputs": 3, "tokens": 6}, "--tokens must divide"),
        ({"outputs": 3, "inputs": 3, "out_tokens": 2}, "--out-tokens must divide the number of outputs, which is 3"),
        ({"outputs": 3, "inputs": 3, "out_width": 2}, "--out-width must divide the number of outputs, which is 3"),
        ({"outputs": 3, "inputs": 3, "out_width": 0}, "--out-width must divide"),
        (
            {"outputs": 6, "inputs": 3, "out_tokens": 2, "out_width": 2},
            "--out-tokens 2 times --out-width 2 is not the number of outputs, 6",
        ),
        (
            {"outputs": 1, "inputs": 1, "layout": "tokens"},
            "--layout is one of token, sequence, output-token, not 'tokens'",
        ),
    ],
)
def test_a_contradiction_is_one_sentence(request_, reason):
    with pytest.raises(BadInput, match=reason) as caught:
        shape_of(**request_)
    assert "\n" not in str(caught.value)


def test_a_target_may_name_tokens_and_coordinates():
    target = read_target("x2_1 * x1_2", "[0,1]^4", tokens=2)
    assert formula(target.program) == ["x3*x2"] and target.source == "x2_1 * x1_2"
    with pytest.raises(BadInput, match="--tokens must divide"):
        read_target("x1", "[0,1]^4", tokens=3)
    with pytest.raises(BadInput, match="needs? the number of tokens"):
        read_target("x2_1", "[0,1]^4")
