"""The definition of what a compiled program means, against the interpreter, the runner of graphs, and plain Python."""

from __future__ import annotations

import json
import operator
from fractions import Fraction
from itertools import product
from random import Random

import pytest

from certiformer.errors import BadInput
from certiformer.kernel.meanings import rasp as meaning
from certiformer.kernel.meanings.rasp import NoValue, identity, read_program
from certiformer.rasp import Comparison, Map, evaluate, tokens
from certiformer.rasp.graph_builder import GraphBuilder
from certiformer.rasp.graph_file import graph_to_text
from certiformer.rasp.graph_run import GraphRunner
from certiformer.rasp.graph_to_simplified import graph_to_simplified
from certiformer.rasp.inputs import first_inputs
from certiformer.rasp.library import catalogue
from certiformer.rasp.program_to_graph import program_to_graph
from certiformer.rasp.random_program import random_valid_program
from certiformer.rasp.validate import validate
from certiformer.rasp.value import Ratio
from rasp.test_graph_file import SPOILED, spoiled, text_of_sample
from rasp.twin_programs import twin_program

VOCAB, TWINS = ("a", "b"), ("p", "q", "r")


def plain(value):
    """A value of the interpreter, whose fractions are of a type of their own."""
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    return Fraction(value) if isinstance(value, Ratio) else value


def differences(program, vocab, length, inputs=200) -> tuple[int, list]:
    """How many values were compared, and those of nodes that the meaning gives otherwise than interpreter or graph."""
    compared, wrong = 0, []
    for simplify in (lambda graph: graph, graph_to_simplified):
        graph = simplify(program_to_graph(program, vocab, length))
        stored, runner = read_program(graph_to_text(graph)), GraphRunner(graph)
        for word in first_inputs(graph.vocab, length, inputs)[0]:
            rows = stored.evaluate(word, *range(len(graph.nodes)))
            right = dict(enumerate(runner.run_all(word)))
            assert [identity(plain(x)) for x in right[graph.output]] == [
                identity(plain(x)) for x in evaluate(program, list(word))
            ]
            for number, row in rows.items():
                compared += len(row)
                if graph.nodes[number].is_selector:
                    wrong += [] if row == right[number] else [(word, number)]
                elif list(map(identity, row)) != [identity(plain(x)) for x in right[number]]:
                    wrong.append((word, number, row, right[number]))
    return compared, wrong


@pytest.mark.parametrize("seed", range(40))
def test_random_programs_mean_what_the_interpreter_says(seed):
    compared, wrong = differences(random_valid_program(seed, VOCAB, 4), VOCAB, 4)
    assert compared and not wrong


@pytest.mark.parametrize("block", range(10))
def test_programs_over_equal_values_that_differ(block):
    """True and 1, 0 and False, 0.5 and 1/2, -0.0, tuples of them: on all inputs of up to three tokens."""
    total = 0
    for seed in range(30 * block, 30 * block + 30):
        program = twin_program(seed, 2 + seed % 4)
        if not validate(program, TWINS, 3):
            compared, wrong = differences(program, TWINS, 3)
            assert not wrong, seed
            total += compared
    assert total > 2_000


@pytest.mark.parametrize("name", sorted(catalogue()))
def test_library_programs_mean_what_their_oracles_say(name):
    entry = catalogue()[name]
    graph = graph_to_simplified(program_to_graph(entry.make(), entry.vocab, 5))
    stored = read_program(graph_to_text(graph))
    for word in first_inputs(graph.vocab, 5, 150)[0]:
        assert list(map(identity, stored.evaluate(word)[stored.output])) == [
            identity(plain(x)) for x in evaluate(entry.make(), list(word))
        ]


def test_a_meaning_that_takes_true_for_1_would_be_seen(monkeypatch):
    """The negative control: equality instead of identity, in what is selected together."""
    monkeypatch.setattr(meaning, "identity", lambda value: ("", value))
    seen = 0
    for seed in range(60):
        program = twin_program(seed, 2 + seed % 4)
        if not validate(program, TWINS, 3):
            try:
                seen += bool(differences(program, TWINS, 3)[1])
            except BadInput:  # a list has 1 and True, which look like one value twice
                seen += 1
    assert seen > 5


NUMBERS = (True, False, 0, 1, 2, -3, 0.5, 0.1, Fraction(1, 2), Fraction(1, 3), 1 / 3, 10**40, 1e300)
TEXTS = ("", "a", "ab", ("a", 1), ("a", True), (), (Fraction(1, 3),), (1 / 3,), (0.5, 2))


def outcome(f, *arguments):
    try:
        return ("value", identity(plain(f(*arguments))))
    except (TypeError, BadInput, NoValue):
        return ("none",)


@pytest.mark.parametrize("symbol", sorted(meaning.SYMBOLS))
def test_operations_are_those_of_the_language(symbol):
    """Every pair of values of every type, against the operations of the language; strings have + only."""
    from certiformer.rasp.meaning import apply
    from certiformer.rasp.operation import Binary, WithConstant

    def ratio(x):
        return tuple(map(ratio, x)) if isinstance(x, tuple) else Ratio(x) if isinstance(x, Fraction) else x

    agreed = 0
    for x, y in product((*NUMBERS, *TEXTS), repeat=2):
        words = not (meaning.is_number(x) and meaning.is_number(y))
        if words and symbol in ("*", "%"):
            continue  # Python repeats and formats strings
        own = [meaning.Operator(symbol), lambda a, b: meaning.Operator(symbol, 1, b)(a)]
        theirs = [Binary(symbol), lambda a, b: WithConstant(symbol, b)(a)]
        for f, g in zip(own, theirs, strict=True):
            left = outcome(lambda a, b, f=f: meaning.applied(f, (a, b)), x, y)
            right = outcome(lambda a, b, g=g: apply(g, (ratio(a), ratio(b))), x, y)
            assert left == right, (x, y)
            agreed += left != ("none",)
    assert agreed > 100
    assert outcome(lambda x: meaning.applied(meaning.Operator("/"), (x, 0)), 1) == ("value", identity(None))


def test_comparisons_of_tuples_are_those_of_python():
    pairs = [(1, 2), (1,), (), (1, 2, 0), (2,), (0, 9), (True, 2), (1, (3, 4)), (1, (3,))]
    for x, y in product(pairs, repeat=2):
        try:
            expected = [operator.lt(x, y), operator.le(x, y), operator.eq(x, y)]
        except TypeError:
            with pytest.raises(NoValue):
                meaning.before(x, y)
            continue
        assert [meaning.COMPARISONS[symbol](x, y) for symbol in ("<", "<=", "==")] == expected


def test_words_without_a_value_have_none():
    builder = GraphBuilder(VOCAB, 3)
    token = builder.add("tokens")
    mixed = builder.add("aggregate", (builder.add("select", (token, token), Comparison.TRUE), token))
    listed = builder.add("written", constant=(True, 1, 2))
    stored = read_program(graph_to_text(builder.finish(listed)))
    assert stored.evaluate("aa", mixed, listed) == {0: ["a", "a"], 1: [[True] * 2] * 2, 2: ["a", "a"], 3: [1, 2]}
    for node, word in ((mixed, "ab"), (listed, "a"), (listed, "abb")):
        with pytest.raises(NoValue):
            stored.evaluate(word, node)
    for word in ("", "abab", "ax"):
        with pytest.raises(BadInput):
            stored.evaluate(word)


def test_only_what_is_needed_is_evaluated():
    graph = program_to_graph(Map(lambda t: t + t, tokens), VOCAB, 2)
    stored = read_program(graph_to_text(graph))
    assert stored.evaluate("ab", 0) == {0: ["a", "b"]} and stored.evaluate("ab")[stored.output] == ["aa", "bb"]


# --- the file -----------------------------------------------------------------------------------------------------------

# Not spelling, but other programs, or proposals of values that whoever relies on them finds wrong.
OTHERS = {"a token more", "tokens in another order", "a shorter length", "a longer length", "a value changed"}
OTHERS |= {"a value more", "undefined denied", "a node twice"}


@pytest.mark.parametrize("fault", sorted(set(SPOILED) - OTHERS))
def test_a_spoiled_file_is_refused(fault):
    assert len(read_program(text_of_sample().encode()).nodes) == len(read_program(text_of_sample()).nodes)
    with pytest.raises(BadInput, match="^[^\n]+$"):
        read_program(spoiled(SPOILED[fault]))


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", "null", "{", "NaN", '{"format":"certiformer-program-1"}', "[" * 100_000, b"\xff"],
    ids=lambda t: repr(t[:10]),
)
def test_what_is_no_file_at_all_is_refused(text):
    with pytest.raises(BadInput):
        read_program(text)


@pytest.mark.parametrize(
    "value",
    [1.0, 0.5, [], {}, {"ratio": "2/4"}, {"ratio": "3/1"}, {"ratio": "1/0"}, {"ratio": " 1/3"}, {"float": "inf"}]
    + [{"float": "0x1.0p+0"}, {"float": "0.5"}, {"float": "0x1p-1"}, {"tuple": [None]}, {"tuple": 1}, {"ratio": 1}]
    + [2**4097, "x" * 1001, {"tuple": [0] * 1001}, {"ratio": "1/3", "float": "0x1.8p-1"}],
)
def test_a_value_has_one_spelling(value):
    data = json.loads(text_of_sample())
    next(node for node in data["nodes"] if node["kind"] == "aggregate")["constant"] = value
    with pytest.raises(BadInput):
        read_program(json.dumps(data, sort_keys=True, separators=(",", ":")) + "\n")


def test_random_bytes_changed_never_end_in_another_error():
    rng, text, refused = Random(3), text_of_sample(), 0
    for _ in range(400):
        place = rng.randrange(len(text))
        try:
            read_program(text[:place] + rng.choice('0123456789abc"{}[]:,-') + text[place + 1 :])
        except BadInput:
            refused += 1
    assert refused > 250


def test_the_lists_of_all_nodes_together_are_limited():
    """A range of integers is two numbers in the file and a million in memory, for every node that has one."""

    def program(nodes: int) -> str:
        values = {"integers": [0, 999_990], "undefined": False}
        node = {"kind": "indices", "name": "", "numerical": False, "values": values}
        data = {"format": meaning.FORMAT, "length": 2, "nodes": [node] * nodes, "output": 0, "vocab": ["a"]}
        return json.dumps(data, sort_keys=True, separators=(",", ":")) + "\n"

    assert len(read_program(program(1)).nodes) == 1
    with pytest.raises(BadInput, match="too many integers"):
        read_program(program(3))
