"""Every library program against its oracle, exhaustively when short, at random when long; as program and as graph."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest

from certiformer import rasp
from certiformer.rasp.graph_run import GraphRunner
from certiformer.rasp.graph_to_simplified import graph_to_simplified
from certiformer.rasp.inputs import first_inputs
from certiformer.rasp.interpreter import Interpreter
from certiformer.rasp.library import Entry, catalogue, counting, ordering
from certiformer.rasp.library.catalogue import everywhere
from certiformer.rasp.program_to_graph import program_to_graph

ENTRIES = catalogue()
REQUIRED = ["reverse", "length", "sort", "sort_unique", "sort_freq", "hist", "frac_prevs", "shift", "pair_balance", "dyck1", "dyck2", "dyck3", "shuffle_dyck1", "shuffle_dyck2", "shuffle_dyck3", "copy", "count", "majority", "parity", "modular_sum", "prefix_modular_sum", "palindrome", "most_frequent", "first_occurrence", "last_occurrence", "induction", "associative_recall", "addition", "window_sum", "window_max", "sum", "mean", "min", "max", "count_after_delimiter", "mean_after_delimiter", "detect_pattern", "count_less_freq"]  # fmt: skip


def test_the_list_is_complete():
    assert [name for name in REQUIRED if name not in ENTRIES] == []


def long_inputs(entry: Entry, amount: int, rng: Random) -> list[list]:
    """Random inputs of 6 to 50 tokens that the program is meant for."""
    if entry.name == "addition":
        halves = [[[rng.choice((0, 4, 5, 9)) for _ in range(n)] for _ in (0, 1)] for n in range(3, 25)]
        return [[*a, "+", *b] for a, b in rng.sample(halves, amount)]
    if entry.name.startswith(("dyck", "shuffle")):
        return [balanced_input(rng, entry.vocab) for _ in range(amount)]
    if entry.name == "sort_unique":
        return [rng.sample(entry.vocab, rng.randint(6, 50)) for _ in range(amount)]
    return [rng.choices(entry.vocab, k=rng.randint(6, 50)) for _ in range(amount)]


def balanced_input(rng: Random, vocab: tuple) -> list:
    """Nested brackets, every second time with one token changed: random ones are almost never balanced."""
    pairs, text, stack = [pair for pair in ("()", "[]", "{}") if pair[0] in vocab], [], []
    while len(text) < 20 or stack:
        if len(text) < 20 and (not stack or rng.random() < 0.5):
            opening, closing = rng.choice(pairs)
            text.append(opening)
            stack.append(closing)
        else:
            text.append(stack.pop())
    if rng.random() < 0.5:
        text[rng.randrange(len(text))] = rng.choice(vocab)
    return text


def first_difference(entry: Entry, program: rasp.SOp, inputs: list[list]) -> list | None:
    interpreter = Interpreter(program)
    return next((xs for xs in inputs if entry.fits(xs) and interpreter.run(xs) != entry.oracle(xs)), None)


@pytest.mark.parametrize("name", ENTRIES)
def test_a_program_is_its_oracle(name):
    entry = ENTRIES[name]
    program = entry.make()
    short = [list(xs) for xs in first_inputs(entry.vocab, 6, 400)[0]]
    if name == "addition":
        short = [[a, "+", b] for a in range(10) for b in range(10)] + [
            [9, 9, "+", a, b] for a in range(3) for b in range(3)
        ]
    assert sum(entry.fits(xs) for xs in short) >= 60
    assert first_difference(entry, program, short) is None
    long = long_inputs(entry, 6, Random(name))
    assert all(entry.fits(xs) for xs in long)
    assert first_difference(entry, program, long) is None


@pytest.mark.parametrize("name", ENTRIES)
def test_its_simplified_graph_is_its_oracle(name):
    entry = ENTRIES[name]
    runner = GraphRunner(graph_to_simplified(program_to_graph(entry.make(), entry.vocab, 50)))
    inputs = [list(xs) for xs in first_inputs(entry.vocab, 3, 60)[0]] + long_inputs(entry, 2, Random(name))
    for xs in inputs:
        if entry.fits(xs):
            assert runner.run(xs) == entry.oracle(xs)


@pytest.mark.parametrize("name", ["reverse", "sort", "hist", "length", "shift", "dyck1", "frac_prevs", "induction"])
def test_a_graph_for_a_thousand_tokens_is_small(name):
    """No list or table grows with the square of the length; frac_prevs becomes a span."""
    entry = ENTRIES[name]
    graph = graph_to_simplified(program_to_graph(entry.make(), entry.vocab, 1_000))
    assert all(len(getattr(node.function, "entries", ())) <= 4_096 for node in graph.nodes)
    assert all(node.values is None or len(node.values.values or ()) <= 3_001 for node in graph.nodes)


def test_a_wrong_program_is_noticed():
    """Negative control: oracles that are off in one place differ from the programs."""
    off = {
        "reverse": lambda xs: xs,
        "sort_freq": lambda xs: sorted(xs, key=xs.count),
        "most_frequent": everywhere(lambda xs: max(reversed(xs), key=xs.count)),
        "frac_prevs": lambda xs: [Fraction(xs[:i].count("a"), i + 1) for i in range(len(xs))],
        "dyck2": ENTRIES["shuffle_dyck2"].oracle,
        "shuffle_dyck2": ENTRIES["dyck2"].oracle,
        "induction": ENTRIES["shift"].oracle,
    }
    for name, oracle in off.items():
        entry = Entry(name, ENTRIES[name].make, oracle, ENTRIES[name].vocab)
        short = [list(xs) for xs in first_inputs(entry.vocab, 5, 350)[0]]
        assert first_difference(entry, entry.make(), short) is not None, name


def test_functions_with_tracrs_arguments():
    assert ordering.make_sort(rasp.tokens, rasp.tokens, max_seq_len=5, min_key=1)([2, 4, 1, 2]) == [1, 2, 2, 4]
    assert ordering.make_sort_freq(max_seq_len=5)([2, 4, 2, 1]) == [2, 2, 4, 1]
    assert ordering.make_sort_unique(vals=rasp.tokens, keys=1 - rasp.indices)("abcd") == list("dcba")
    assert counting.make_nary_sequencemap(lambda x, y, z: x + y - z, rasp.tokens, rasp.tokens, rasp.indices)(
        [1, 2, 3]
    ) == [2, 3, 4]
    assert counting.make_count_less_freq(n=2)("aaabbc") == [3] * 6
