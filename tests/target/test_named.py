"""Formulas in variables with names of their own."""

import pytest

from certiformer.errors import BadInput
from certiformer.target.named import parse_named
from certiformer.target.parse import parse_formula


def test_the_names_stand_for_the_variables_in_their_order():
    assert parse_named("exp(-3*(u-v)**2)", ("u", "v")) == parse_formula("exp(-3*(x1-x2)**2)", inputs=2)
    assert parse_named("v", ("u", "v")) == parse_formula("x2", inputs=2)
    assert parse_named("v", ("v", "u")) == parse_formula("x1", inputs=2)


@pytest.mark.parametrize("text", ["x1", "x", "x1_1", "u + x2"])
def test_the_usual_names_are_refused(text):
    with pytest.raises(BadInput, match="unknown variable .*; the variables are u, v"):
        parse_named(text, ("u", "v"))


@pytest.mark.parametrize(
    ("text", "words"), [("sinn(u)", "did you mean 'sin'"), ("w", "unknown name 'w'"), ("u +", "formula")]
)
def test_other_mistakes_are_those_of_a_formula(text, words):
    with pytest.raises(BadInput, match=words):
        parse_named(text, ("u", "v"))
