"""`program.json`: what is written is read back, and nothing else is read; no Python of the user is needed."""

from __future__ import annotations

import json
import subprocess
import sys
from random import Random

import pytest

from certiformer import rasp
from certiformer.errors import BadInput
from certiformer.rasp import (
    Aggregate,
    Comparison,
    ConstantSelector,
    ConstantSOp,
    Map,
    Select,
    SelectorWidth,
    indices,
    tokens,
)
from certiformer.rasp.bill import bill
from certiformer.rasp.graph_file import graph_from_text, graph_to_text
from certiformer.rasp.graph_run import run_graph
from certiformer.rasp.graph_to_simplified import graph_to_simplified
from certiformer.rasp.library import catalogue
from certiformer.rasp.program_to_graph import program_to_graph
from certiformer.rasp.random_program import random_valid_program

ENTRIES = catalogue()


def graphs():
    for entry in ENTRIES.values():
        yield program_to_graph(entry.make(), entry.vocab, 6)
    for seed in range(30):
        yield program_to_graph(random_valid_program(seed, ("a", "b", "c"), 3), ("a", "b", "c"), 3)
    written = SelectorWidth(ConstantSelector([[True, False], [True, True]], False)) + ConstantSOp([1, 2], False)
    yield program_to_graph(written, {"a"}, 3)
    yield program_to_graph(ENTRIES["pair_balance"].make(), ("(", ")"), 400)  # spans


def test_every_graph_survives_its_file():
    for graph in graphs():
        for form in (graph, graph_to_simplified(graph)):
            text = graph_to_text(form)
            back = graph_from_text(text)
            assert back == form and graph_to_text(back) == text and graph_from_text(text.encode()) == form
            assert [node.values for node in back.nodes] == [node.values for node in form.nodes]


def test_the_file_runs_without_the_program():
    entry = ENTRIES["addition"]
    graph = graph_from_text(graph_to_text(graph_to_simplified(program_to_graph(entry.make(), entry.vocab, 9))))
    xs = [9, 9, 5, "+", 0, 0, 7]
    assert run_graph(graph, xs) == entry.oracle(xs) == [0, 0, 2, 1, None, None, None]


SAMPLE = Aggregate(
    Select(indices, indices, lambda k, q: k == q - 1),
    Map(lambda t: {"a": 5, "b": None}[t], tokens) * 2 + Aggregate(Select(tokens, tokens, Comparison.EQ), indices),
    default=-1,
)


def text_of_sample() -> str:
    return graph_to_text(program_to_graph(SAMPLE, {"a", "b"}, 3))


def spoiled(change) -> str:
    data = json.loads(text_of_sample())
    change(data)
    return json.dumps(data, sort_keys=True, separators=(",", ":")) + "\n"


def node(data: dict, kind: str, key: str | None = None) -> dict:
    return next(n for n in data["nodes"] if n["kind"] == kind and (key is None or key in n))


SPOILED = {
    "format": lambda d: d.update(format="certiformer-program-2"),
    "another key": lambda d: d.update(more=1),
    "no length": lambda d: d.pop("length"),
    "length of another type": lambda d: d.update(length="3"),
    "a shorter length": lambda d: d.update(length=2),
    "a longer length": lambda d: d.update(length=4),
    "a token more": lambda d: d["vocab"].append("c"),
    "tokens in another order": lambda d: d["vocab"].reverse(),
    "the output a selector": lambda d: d.update(
        output=next(i for i, n in enumerate(d["nodes"]) if n["kind"] == "select")
    ),
    "the output beyond the end": lambda d: d.update(output=99),
    "the output true": lambda d: d.update(output=True),
    "no nodes": lambda d: d.update(nodes=[]),
    "an unknown kind": lambda d: node(d, "map").update(kind="exec"),
    "a kind that cannot be hashed": lambda d: node(d, "map").update(kind=[]),
    "an input that comes later": lambda d: node(d, "map").update(inputs=[50]),
    "a negative input": lambda d: node(d, "map").update(inputs=[-1]),
    "too few inputs": lambda d: node(d, "select").update(inputs=[0]),
    "a selector as a value": lambda d: node(d, "aggregate").update(inputs=node(d, "aggregate")["inputs"][::-1]),
    "a value more": lambda d: node(d, "map", "table")["values"]["list"].append(6),
    "a value changed": lambda d: node(d, "map", "operation")["values"]["list"].__setitem__(0, 11),
    "undefined denied": lambda d: node(d, "map", "table")["values"].update(undefined=False),
    "an entry out of range": lambda d: node(d, "map", "table")["table"]["entries"].__setitem__(0, 7),
    "an entry too many": lambda d: node(d, "map", "table")["table"]["entries"].append(0),
    "an entry that is a truth value": lambda d: node(d, "map", "table")["table"]["entries"].__setitem__(0, False),
    "another shape": lambda d: node(d, "map", "table")["table"].update(shape=[1]),
    "an unknown operation": lambda d: node(d, "map", "operation").update(operation={"binary": "**"}),
    "an operation of two on one": lambda d: node(d, "map", "operation").update(operation={"binary": "+"}),
    "an unknown comparison": lambda d: node(d, "select", "comparison").update(comparison="is"),
    "a relation with a row less": lambda d: node(d, "select", "relation")["relation"].pop(),
    "a relation of other letters": lambda d: node(d, "select", "relation").update(relation=["xxx"] * 3),
    "a default that is no value": lambda d: node(d, "aggregate").update(constant=[1]),
    "a node twice": lambda d: d["nodes"].insert(1, d["nodes"][0]),
    "a name that is a number": lambda d: node(d, "map").update(name=3),
    "numerical by a number": lambda d: node(d, "map").update(numerical=1),
    "not a list": lambda d: d.update(nodes={"0": 1}),
}


@pytest.mark.parametrize("fault", SPOILED)
def test_a_spoiled_file_is_refused(fault):
    assert graph_to_text(graph_from_text(text_of_sample())) == text_of_sample()
    text = spoiled(SPOILED[fault])
    assert text != text_of_sample()
    with pytest.raises(BadInput, match="^[^\n]+$"):
        graph_from_text(text)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", "null", "{", "NaN", '{"format":"certiformer-program-1"}', "[" * 100_000, b"\xff"],
    ids=lambda t: repr(t[:10]),
)
def test_what_is_no_file_at_all_is_refused(text):
    with pytest.raises(BadInput):
        graph_from_text(text)


def test_other_spellings_of_the_same_data_are_refused():
    text = text_of_sample()
    for other in (
        text.strip(),
        text.replace(",", ", "),
        text.replace('"length":3', '"length":3,"length":3'),
        text.replace('"length":3', '"length":3.0'),
    ):
        assert other != text
        with pytest.raises(BadInput):
            graph_from_text(other)


def test_random_bytes_changed_are_refused_or_mean_themselves():
    """A change of one character is refused, or gives a graph that writes exactly this text: a table with another entry."""
    rng, text, refused = Random(3), text_of_sample(), 0
    for _ in range(150):
        place = rng.randrange(len(text))
        other = text[:place] + rng.choice('0123456789abc"{}[]:,-') + text[place + 1 :]
        try:
            assert graph_to_text(graph_from_text(other)) == other
        except BadInput:
            refused += other != text
    assert refused > 100


def test_a_value_outside_the_vocabulary_or_the_length_is_refused_at_run_time():
    graph = program_to_graph(tokens, {"a"}, 2)
    for xs in ("ab", "aaa"):
        with pytest.raises(BadInput, match=r"not in the vocabulary|stated length"):
            run_graph(graph, xs)


def test_the_bill_counts_layers_and_blames_the_widest():
    entry = ENTRIES["reverse"]
    whole = program_to_graph(entry.make(), entry.vocab, 20)
    small = graph_to_simplified(whole)
    assert bill(small).width <= bill(whole).width and bill(small).layers == 2 and bill(small).widest.name == "opposite"
    hist = bill(program_to_graph(ENTRIES["hist"].make(), entry.vocab, 20))
    assert hist.layers == 1 and "1 layers" in str(hist)


def test_the_language_needs_no_other_library():
    code = "import sys; import certiformer.rasp.validate, certiformer.rasp.graph_file, certiformer.rasp.library, certiformer.rasp.bill, certiformer.rasp.random_program; print(sorted({'numpy', 'jax', 'flint', 'scipy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr
    assert rasp.__doc__ and "Standard library only" in rasp.__doc__
