"""Numbers back to values: nothing that is written may be read as another value."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import certiformer
from certiformer import BadInput
from certiformer.compiler.programs.decode import Decoder
from certiformer.kernel.situations.rasp.circuit import Circuit, Output
from certiformer.rasp import Aggregate, Comparison, Full, Map, Select, indices, length, tokens
from certiformer.rasp.graph import Span, ValueSet
from certiformer.rasp.graph_builder import GraphBuilder
from certiformer.rasp.value import Ratio

LARGE = Select(indices, indices, Comparison.LEQ) & Select(tokens, Full(3), Comparison.GT)
MEAN = Aggregate(LARGE, tokens).named("mean of the large ones so far")  # too many values to list, or undefined


@pytest.fixture(scope="module")
def compiled():
    artifact = certiformer.compile(MEAN, vocab=set(range(60)), length=40)
    assert artifact.certified
    return artifact.subject


def test_undefined_beside_numbers_too_many_to_list_is_undefined(compiled):
    values = compiled.graph.nodes[compiled.graph.output].values
    assert values.values is None and values.undefined
    xs = [1, 2, 50, 7, 3, 59]
    assert compiled.run_exactly(xs) == [None, None, 50, Fraction(57, 2), Fraction(57, 2), Fraction(116, 3)]
    assert compiled.run(xs) == MEAN(xs)


def test_values_next_to_the_number_of_undefined_keep_their_value(compiled):
    decoder = Decoder(compiled.graph, compiled.circuit)
    code = float(compiled.circuit.output.undefined)
    assert decoder.decode(np.array([[code], [code - 0.49], [code + 0.49]])) == [None] * 3
    assert decoder.decode(np.array([[59.0], [58.9999]])) == [59, 59]


def test_without_a_bound_of_the_denominators_nothing_is_guessed(compiled):
    number = compiled.graph.output
    unbounded = ValueSet(None, False, Span(Fraction(0), Fraction(59), None))
    nodes = [*compiled.graph.nodes[:number], replace(compiled.graph.nodes[number], values=unbounded)]
    decoder = Decoder(replace(compiled.graph, nodes=(*nodes, *compiled.graph.nodes[number + 1 :])), compiled.circuit)
    with pytest.raises(BadInput, match="cannot be read"):
        decoder.decode(np.array([[0.5]]))
    with pytest.raises(BadInput, match="stands for no value"):
        decoder.decode(np.array([[np.nan]]))


def exact_answers(features: list[int | Fraction], numbers: list[float]) -> list:
    """Written again here: the nearest feature, compared as exact numbers; the smaller of two that are equally near."""
    return [min(features, key=lambda f: (abs(Fraction(x) - f), f)) for x in numbers]


def decoder_of(features: list[int | Fraction]) -> Decoder:
    builder = GraphBuilder(features, 1)
    graph = builder.finish(builder.add("tokens"))
    return Decoder(graph, Circuit("", False, (), (), (), (), Output("number", (), None, None)))


CLOSE = [
    [2**53 + 2, 2**53 + 4, 2**53 + 6],
    [Ratio(1, 3), Ratio(1, 3) + Ratio(1, 2**60), Ratio(1, 3) + Ratio(1, 2**51)],
    [-(10**17), -(10**17) + 16, 10**17, 10**17 + 48],
    [0, 1, 10**400],
]


@pytest.mark.parametrize("features", CLOSE)
def test_the_nearest_of_features_is_found_where_floats_cannot_tell_their_middles(features):
    middles = [(Fraction(a) + Fraction(b)) / 2 for a, b in zip(features, features[1:], strict=False)]
    near = [float(x) for x in (*features, *middles) if abs(x) < 10**300]
    numbers = [x for n in near for x in (np.nextafter(n, -np.inf), n, np.nextafter(n, np.inf))]
    assert decoder_of(features).decode(np.array(numbers)[:, None]) == exact_answers(features, numbers)


def test_rounded_middles_would_be_noticed():
    """The negative control: middles computed in floats name another feature."""
    features, numbers = CLOSE[0], [float(x) for x in CLOSE[0]]
    middles = (np.array(numbers[1:]) + np.array(numbers[:-1])) / 2
    assert [features[k] for k in np.searchsorted(middles, numbers)] != exact_answers(features, numbers)


NOWHERE = Map(lambda n: 1 // (n - n), length)  # has a value on no input


@pytest.mark.parametrize("default", [None, 0])
@pytest.mark.parametrize("union", [False, True])
def test_what_reads_a_value_that_never_is_compiles(union, default):
    selector = Select(tokens, indices, Comparison.LT) if union else Select(tokens, length, Comparison.LT)
    if union:
        selector |= Select(indices, indices, Comparison.GT)
    program = Aggregate(selector, NOWHERE, default=default)
    artifact = certiformer.compile(program, vocab=[1, 2], length=2)
    assert artifact.certified != union  # the sums behind a selector made by or are not proved where there is no value
    for xs in ([1], [2], [1, 2], [2, 2]):
        assert artifact.run(xs) == program(xs)
