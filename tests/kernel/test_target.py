"""`target.json` as the kernel reads it: exact parts only, and a sentence that is made from them."""

from __future__ import annotations

import json

import pytest

from certiformer.errors import BadInput
from certiformer.kernel.balls import BallDomain, working_precision
from certiformer.kernel.claim import FunctionOnBox, read_target
from certiformer.kernel.files import canonical
from certiformer.kernel.programs import expression
from certiformer.target import Target, any_target_from_text, any_target_to_text, parse_domain, parse_formula


def raw(formula: str, on: str) -> bytes:
    domain = parse_domain(on)
    return any_target_to_text(Target(formula, parse_formula(formula, domain.dimension), domain)).encode()


def test_the_sentence_is_made_from_the_program_and_the_ends():
    target = read_target(raw("0.10*x1 + x2**2", "[0,2*pi]x[1/3,1]"))
    said = "At every real point (x1, x2) of [0, 2*pi] x [1/3, 1], the transformer's output differs from 0.1*x1 + x2**2"
    assert isinstance(target, FunctionOnBox) and target.sentence("0.5") == f"{said} by at most 0.5."


def test_the_text_of_the_user_changes_nothing():
    data = json.loads(raw("x1", "[0,1]"))
    lied = canonical(data | {"source": "sin(x1)"})
    assert read_target(lied) == read_target(raw("x1", "[0,1]"))
    assert "sin" not in read_target(lied).sentence("1")


def test_ends_come_back_as_the_same_numbers():
    domain = parse_domain("[0.10,2*pi]x[1/3,exp(1)+sqrt(2)]")
    target = Target("x1+x2", parse_formula("x1+x2"), domain)
    again = any_target_from_text(any_target_to_text(target))
    assert isinstance(again, Target) and again.domain.closed == domain.closed
    assert any_target_to_text(again) == any_target_to_text(target)


@pytest.mark.parametrize("on", [[1, 1], [2, 1]])
def test_an_empty_or_reversed_box_is_refused(on):
    working_precision()
    data = json.loads(raw("x1", "[0,1]")) | {"domain": [[str(end) for end in on]]}
    with pytest.raises(BadInput, match="empty, reversed or infinite"):
        BallDomain(read_target(canonical(data)).box)


def test_a_long_or_shared_expression_is_the_recorded_program():
    assert "from the recorded program by" in read_target(raw(" + ".join(["sin(x1*x1)"] * 60), "[0,1]")).sentence("1")
    doubled = "x1"
    for _ in range(7):
        doubled = f"sin({doubled})*({doubled})"
    program = parse_formula(doubled)
    assert expression(program, 400) is None and len(program.nodes) < 40


@pytest.mark.parametrize("change", [{"format": "certiformer-target-1"}, {"format": ["x"]}, {"norm": "l2"}, {"more": 1}])
def test_unknown_formats_and_keys_are_refused(change):
    with pytest.raises(BadInput):
        read_target(canonical(json.loads(raw("x1", "[0,1]")) | change))
