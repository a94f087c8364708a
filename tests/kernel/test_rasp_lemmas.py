"""Listed lemmas conclude only what is true, from premises that are checked; proposed values contain all that occur."""

from __future__ import annotations

import json
from itertools import product
from random import Random

import pytest

from certiformer.compiler.draft_to_circuit import lemmas_of
from certiformer.kernel import Refused
from certiformer.kernel.meanings.rasp import SELECTORS, NoValue, Program, identity, read_program
from certiformer.kernel.situations.rasp import lemmas
from certiformer.kernel.situations.rasp.closure import Span, proved_facts
from certiformer.kernel.situations.rasp.lemmas import Facts
from certiformer.rasp import Aggregate, Comparison, Map, Select, SelectorWidth, indices, tokens
from certiformer.rasp.graph_builder import GraphBuilder
from certiformer.rasp.graph_file import graph_to_text
from certiformer.rasp.graph_to_simplified import graph_to_simplified
from certiformer.rasp.library import catalogue
from certiformer.rasp.program_to_graph import program_to_graph
from certiformer.rasp.random_program import random_valid_program
from certiformer.rasp.validate import validate
from kernel.compiled_programs import built, canonical
from rasp.twin_programs import twin_program

VOCAB, LENGTH = ("a", "b", "c"), 3


def stored(program, vocab=VOCAB, length=LENGTH) -> Program:
    return read_program(graph_to_text(graph_to_simplified(program_to_graph(program, vocab, length))))


def words(program: Program, most: int = 250):
    every = [word for n in range(1, program.length + 1) for word in product(program.vocab, repeat=n)]
    return every if len(every) <= most else Random(1).sample(every, most)


def holds(fact, rows: dict[int, list]) -> bool:
    """A fact on one word, straight from its definition."""
    name, one, *more = fact
    row, n = rows[one], len(rows[one])
    match name:
        case "constant":
            return len(set(map(identity, row))) == 1
        case "distinct":
            return None not in row and not any(row[i] == row[j] for i in range(n) for j in range(i))
        case "order":
            return sorted(map(sum, row)) in (list(range(n)), list(range(1, n + 1)))
        case "reflexive":
            return all(row[i][i] for i in range(n))
        case "single":
            return all(sum(chosen) <= 1 for chosen in row)
        case "few":
            return all(sum(chosen) <= more[0] for chosen in row)
    values = [[v for v, here in zip(rows[more[0]], chosen, strict=True) if here] for chosen in row]
    return all(len(set(map(identity, selected))) <= 1 for selected in values)


def evaluated(program: Program) -> list[dict[int, list]]:
    found = []
    for word in words(program):
        try:
            found.append(program.evaluate(word, *range(len(program.nodes))))
        except NoValue:
            continue
    return found


def whatever_is_accepted(program: Program) -> set:
    """Every lemma on every node, and on every other node to look at: all facts that can be concluded at all."""
    facts, count = Facts(program), len(program.nodes)
    for _ in range(3):  # facts that follow from facts
        for name in lemmas.LEMMAS:
            numbers = {"part": 2, "occurrence": 2, "few": 2, "same": 3}.get(name, 1)
            for step in product(range(count), repeat=numbers) if count**numbers < 20_000 else ():
                try:
                    facts.conclude((name, *step))
                except Refused:
                    continue
    return facts._known


def false_facts(program: Program) -> list:
    rows = evaluated(program)
    return [fact for fact in whatever_is_accepted(program) if not all(holds(fact, row) for row in rows)]


@pytest.mark.parametrize("name", sorted(set(catalogue()) - {"addition", "dyck2", "dyck3", "shuffle_dyck3"}))
def test_no_false_fact_is_accepted_in_a_library_program(name):
    entry = catalogue()[name]
    assert false_facts(stored(entry.make(), entry.vocab)) == []


@pytest.mark.parametrize("block", range(8))
def test_no_false_fact_is_accepted_in_programs_over_equal_values_that_differ(block):
    """True and 1, 0.5 and 1/2: what is selected by == need not be the same value."""
    seen = 0
    for seed in range(12 * block, 12 * block + 12):
        for program in (twin_program(seed, 2 + seed % 4), random_valid_program(seed, VOCAB, LENGTH)):
            if not validate(program, VOCAB, LENGTH):
                made = stored(program)
                assert false_facts(made) == [], seed
                seen += len(whatever_is_accepted(made))
    assert seen > 50


def test_equal_keys_that_are_not_the_same_determine_nothing(monkeypatch):
    """Case A2, and the negative control: a lemma that takes equal for the same concludes a false fact."""
    twins = Map(lambda t: {"a": True, "b": 1, "c": 0}[t], tokens)
    program = stored(Aggregate(Select(twins, twins, Comparison.EQ), twins))
    selector, value = program.nodes[program.output].inputs
    with pytest.raises(Refused, match="does not apply"):
        Facts(program).conclude(("same", selector, value, value))
    monkeypatch.setattr(lemmas, "_no_equal_values", lambda node: True)
    assert false_facts(program)


PLANTED = {
    "distinct": ("_apart", lambda node, axis: True),
    "one": ("_accepted", lambda node: 1),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_lemma_without_its_premise_would_be_seen(name, monkeypatch):
    monkeypatch.setattr(lemmas, *PLANTED[name])
    found = []
    for seed in range(40):
        program = random_valid_program(seed, VOCAB, LENGTH)
        found += false_facts(stored(program))
    assert found


def test_steps_need_the_facts_that_they_start_from():
    """The rank theorem for sort: without any one of its steps, something is missing."""
    key = tokens
    smaller = Select(key, key, Comparison.LT) | (
        Select(key, key, Comparison.EQ) & Select(indices, indices, Comparison.LT)
    )
    rank = SelectorWidth(smaller)
    program = stored(Aggregate(Select(rank, indices, Comparison.EQ), tokens))
    steps = lemmas_of(program)
    assert proved_facts(program, steps).holds("same", *program.nodes[program.output].inputs)
    needed = [step for step in steps if step[0] in ("distinct", "order", "rank", "one", "same")]
    for step in needed:
        with pytest.raises(Refused):
            facts = proved_facts(program, [other for other in steps if other != step])
            if not facts.holds("same", *program.nodes[program.output].inputs):
                raise Refused("missing")


@pytest.mark.parametrize(
    "step", [("guess", 0), ("same", 0), ("same", 0, 1, 99), ("constant", -1), ("constant",), ("part", 1, 1)]
)
def test_malformed_steps_are_refused(step):
    program = stored(catalogue()["sort"].make(), catalogue()["sort"].vocab)
    with pytest.raises(Refused):
        proved_facts(program, [step])


def test_a_circuit_without_its_lemmas_is_refused():
    refused = []
    for name in ("reverse", "sort", "shift", "induction", "sort_unique", "hist"):
        model = built(name, 4)
        model.prove()
        try:
            model.with_circuit(lambda data: data.update(lemmas=[])).prove()
        except Refused:
            refused.append(name)
    assert refused == ["sort", "induction", "sort_unique", "hist"]


# --- proposed values -----------------------------------------------------------------------------------------------------


def without_one(data: dict, rng: Random, program: Program, rows: list) -> tuple[int, object] | None:
    """Drop a value that occurs, or the statement that undefined does, from a node that is no table and reads none."""
    numbers = [n for n, node in enumerate(program.nodes) if node.kind not in SELECTORS]
    number = rng.choice(numbers)
    values, taken = data["nodes"][number]["values"], [x for row in rows for x in row[number]]
    if rng.random() < 0.3 and None in taken:
        values["undefined"] = False
        return number, None
    value = rng.choice([x for x in taken if x is not None] or [None])
    listed = program.nodes[number].values.listed
    if value is None or listed is None:
        return None
    values.pop("integers", None)
    kept = [place for place, x in enumerate(listed) if identity(x) != identity(value)]
    from certiformer.rasp.value import to_json

    if any(type(listed[place]).__name__ == "Fraction" for place in kept):
        return None
    values["list"] = [to_json(listed[place]) for place in kept]
    return number, value


def test_a_value_that_occurs_and_is_not_proposed_is_refused():
    rng, refused = Random(5), 0
    for seed in range(60):
        made = random_valid_program(seed, VOCAB, LENGTH)
        text = graph_to_text(graph_to_simplified(program_to_graph(made, VOCAB, LENGTH)))
        program = read_program(text)
        steps, rows = lemmas_of(program), evaluated(program)
        proved_facts(program, steps)
        for _ in range(6):
            data = json.loads(text)
            if without_one(data, rng, program, rows) is not None:
                with pytest.raises((Refused, ValueError)):
                    proved_facts(read_program(canonical(data)), steps)
                refused += 1
    assert refused > 150


@pytest.mark.parametrize("seed", range(40))
def test_all_that_occurs_is_proposed(seed):
    for program in (random_valid_program(seed, VOCAB, LENGTH), twin_program(seed, 4)):
        if validate(program, VOCAB, LENGTH):
            continue
        made = stored(program)
        proved_facts(made, lemmas_of(made))
        for row in evaluated(made):
            for number, node in enumerate(made.nodes):
                if node.kind not in SELECTORS and node.values.listed is not None:
                    known = {*node.values.places, *([identity(None)] if node.values.undefined else [])}
                    assert {*map(identity, row[number])} <= known


def test_numbers_too_many_to_list_have_bounds_that_are_checked():
    builder = GraphBuilder([True, 2, 70_001], 200)
    token, position = builder.add("tokens"), builder.add("indices")
    earlier = builder.add("select", (position, position), Comparison.LEQ)
    mean = builder.add("aggregate", (earlier, token), constant=0)
    text = graph_to_text(builder.finish(mean))
    program = read_program(text)
    steps = lemmas_of(program)
    proved_facts(program, steps)
    span = json.loads(text)["nodes"][mean]["values"]
    assert span["span"] == ["0", "70001"] or span["span"] == ["1", "70001"]
    for field, value in (
        ("span", ["2", "70001"]),
        ("span", ["0", "70000"]),
        ("largest_denominator", 199),
        ("step", "2"),
        ("truths", [False]),
        ("undefined", 0),
        ("span", ["0"]),
        ("span", ["0", "x"]),
        ("largest_denominator", "9"),
        ("more", 1),
    ):
        data = json.loads(text)
        data["nodes"][mean]["values"][field] = value
        with pytest.raises((Refused, ValueError)):
            proved_facts(read_program(canonical(data)), steps)


def test_spans_know_what_they_contain():
    from fractions import Fraction

    span = Span(Fraction(0), Fraction(2), 3, truths=(True,))
    assert all(x in span for x in (0, True, Fraction(1, 3), Fraction(3, 2), 2))
    assert not any(x in span for x in (1, False, Fraction(1, 4), 3, -1, 0.5, "a"))
    wide = Span(Fraction(-1), Fraction(2), 12, Fraction(1, 2), (False, True), True)
    assert wide.covers(span) and not span.covers(wide) and span.covers(span)
    assert not Span(Fraction(0), Fraction(2), 3).covers(span)  # 1 where the other has True
    assert span.gap == Fraction(1, 6)
