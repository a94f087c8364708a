"""Programs written to be difficult: every kind of selector, undefined values, edges of length and vocabulary, causality."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import certiformer
from certiformer import rasp
from certiformer.compiler.driver import compile_graph, compile_program
from certiformer.errors import BadInput
from certiformer.kernel.situations.rasp.circuit import Circuit
from certiformer.rasp import Aggregate, Comparison, Map, Select, SelectorWidth, SequenceMap, evaluate, indices, tokens
from certiformer.rasp.graph_to_simplified import graph_to_simplified
from certiformer.rasp.library import catalogue
from certiformer.rasp.program_to_graph import program_to_graph
from certiformer.rasp.value import identity
from compiler.numpy_run import all_ids, decoded, run

EQ, LT, LEQ, GT, NEQ = Comparison.EQ, Comparison.LT, Comparison.LEQ, Comparison.GT, Comparison.NEQ


def same(key, query=None):
    return Select(key, key if query is None else query, EQ)


def agrees(program, vocab, length: int, causal: bool = False, dtype: str = "float32", limit: int = 200):
    """Compiles and compares on all inputs; returns what was compiled."""
    compiled = compile_program(program, vocab, length, causal=causal, dtype=dtype)
    for n in range(1, length + 1):
        ids = all_ids(len(compiled.graph.vocab), n, limit)
        outputs = decoded(compiled, run(compiled, ids))
        for row, got in zip(ids.tolist(), outputs, strict=True):
            xs = [compiled.graph.vocab[i] for i in row]
            assert [(type(x), x) for x in got] == [(type(x), x) for x in evaluate(program, xs)], xs
    return compiled


@pytest.mark.parametrize("collecting", [True, False])
def test_garbage_collection_is_afterwards_as_it_was(collecting: bool) -> None:
    (gc.enable if collecting else gc.disable)()
    try:
        compile_program(tokens == "a", {"a", "b"}, 3)
        assert gc.isenabled() == collecting
        with pytest.raises(BadInput):  # an average of symbols
            compile_program(Aggregate(Select(indices, indices, Comparison.TRUE), tokens), {"a", "b"}, 3)
        assert gc.isenabled() == collecting
    finally:
        gc.enable()


before = Select(indices, indices, LT)
after = Select(indices, indices, GT)
is_a = tokens == "a"
maybe = Map(lambda x: None if x == "b" else {"a": 1, "c": 4}[x], tokens)
number = Map(lambda x: {"a": 1, "b": 2, "c": 4}[x], tokens)

SELECTORS = {
    "or of different keys": same(tokens) | Select(indices, indices, lambda k, q: k == q + 1),
    "not of an and": ~(same(tokens) & before),
    "before or equal": before | same(tokens),
    "all but the own position": Select(indices, indices, NEQ),
    "undefined keys": Select(maybe, number, LEQ),
    "not of undefined": ~Select(maybe, number, LEQ),
    "numbers of occurrences": same(SelectorWidth(same(tokens) & before)),
    "counts compared": Select(SelectorWidth(same(tokens)), SelectorWidth(same(tokens)), LT) & after,
    "a pattern": rasp.ConstantSelector([[True, False], [True, True]], check_length=False),
    "nothing": Select(tokens, tokens, Comparison.FALSE),
    "everything": Select(maybe, maybe, Comparison.TRUE),
}


@pytest.mark.parametrize("name", SELECTORS)
def test_widths_of_any_selector(name: str) -> None:
    agrees(SelectorWidth(SELECTORS[name]), ["a", "b", "c"], 4)


@pytest.mark.parametrize("name", SELECTORS)
@pytest.mark.parametrize("default", [None, 0, "none"])
def test_means_through_any_selector(name: str, default) -> None:
    agrees(Aggregate(SELECTORS[name], number, default=default), ["a", "b", "c"], 4, dtype="float64")


@pytest.mark.parametrize("name", ["before or equal", "undefined keys", "all but the own position", "counts compared"])
def test_undefined_values_among_the_selected_stay_undefined(name: str) -> None:
    agrees(Aggregate(SELECTORS[name], maybe, default=7), ["a", "b", "c"], 4, dtype="float64")


@pytest.mark.parametrize(
    "program",
    [
        Aggregate(same(tokens) & before, rasp.Full("x"), default="none"),
        SequenceMap(lambda x, y: x * y - 3, number, SelectorWidth(same(tokens))),
        number - SelectorWidth(same(tokens)) * 2 - maybe,
        1 / (SelectorWidth(before & same(tokens)) - 1),
        Map(lambda x: (x, "t"), SelectorWidth(same(tokens))),
        Aggregate(before, number, default=0) * SelectorWidth(before),
        Aggregate(Select(indices, indices, LEQ), is_a),
        Aggregate(same(indices, rasp.length - 1 - indices), maybe, default=3) + 1,
        rasp.ConstantSOp([1, "b", None], check_length=False),
        rasp.Full(3),
        rasp.Full(None),
    ],
    ids=lambda program: program.name,
)
def test_programs_agree(program) -> None:
    agrees(program, ["a", "b", "c"], 4, dtype="float64")


def test_a_mean_of_one_beside_true() -> None:
    """A mean of 0 and 2 is the number 1, which equals True; what tells them apart is refused, the output itself, too."""
    mixed = Map(lambda x: {"a": True, "b": 0, "c": 2}[x], tokens)
    mean = Aggregate(Select(indices, indices, LEQ), mixed)
    compiled = compile_program(mean + 0, ["a", "b", "c"], 4, dtype="float64")
    ids = all_ids(3, 4)
    for row, got in zip(ids.tolist(), decoded(compiled, run(compiled, ids)), strict=True):
        assert list(map(identity, got)) == list(map(identity, evaluate(mean + 0, ["abc"[i] for i in row])))
    with pytest.raises(BadInput, match="may be True or the mean 1 of others"):
        compile_program(mean, ["a", "b", "c"], 4, dtype="float64")
    with pytest.raises(BadInput, match="tells True from 1"):
        compile_program(Map(lambda x: x is True, mean), ["a", "b", "c"], 4)


def test_numbers_that_are_too_many_to_list() -> None:
    vocab = [0, 3, 1_000]
    mean = Aggregate(Select(indices, indices, LEQ), tokens)
    twice = Aggregate(Select(indices, indices, GT), mean + tokens, default=0)
    compiled = compile_program(mean > 2, vocab, 60, dtype="float64")
    ids = np.concatenate([all_ids(3, 60, 20), np.zeros((1, 60), int)])
    for row, got in zip(ids.tolist(), decoded(compiled, run(compiled, ids)), strict=True):
        assert got == evaluate(mean > 2, [vocab[i] for i in row])
    compiled = compile_program(twice, vocab, 30, dtype="float64")
    assert compiled.circuit.output.feature is None
    ids = all_ids(3, 30, 20)
    for row, got in zip(ids.tolist(), decoded(compiled, run(compiled, ids)), strict=True):
        # float64 sums of numbers up to 1,000: 1e-9 is far above their error and far below the gap of two means.
        assert got == pytest.approx([float(x) for x in evaluate(twice, [vocab[i] for i in row])], abs=1e-9)


@pytest.mark.parametrize("name", ["hist", "reverse", "sort", "dyck1", "frac_prevs", "shift", "length"])
def test_length_one_and_one_symbol(name: str) -> None:
    entry = catalogue()[name]
    agrees(entry.make(), entry.vocab[:1], 4)
    agrees(entry.make(), entry.vocab, 1)
    agrees(entry.make(), entry.vocab[:1], 1)


def test_ten_thousand_nodes() -> None:
    program = tokens
    for step in range(10_000):
        program = Map(lambda x, s=step: (x + s) % 3, program) if step % 50 == 0 else program + 1
    compiled = agrees(program, [0, 1, 2], 3)
    assert compiled.parameters < 1_000  # functions of the token alone are embedded
    chain = tokens
    for _ in range(150):
        chain = SelectorWidth(Select(chain, chain, EQ)) + chain * 0
    assert agrees(chain, [0, 1], 3, limit=8, dtype="float64").config.width < 40  # coordinates are used again


def test_a_causal_model_has_causal_blocks_only() -> None:
    for name in ("frac_prevs", "shift", "induction", "is_first", "prefix_modular_sum", "window_max", "detect_pattern"):
        entry = catalogue()[name]
        compiled = agrees(entry.make(), entry.vocab, 5, causal=True, limit=60)
        assert all(block.attention is None or block.attention.mask == "causal" for block in compiled.config.blocks)
    strictly = Aggregate(before & same(tokens), indices, default=-1)
    agrees(strictly, ["a", "b"], 5, causal=True)


def test_what_looks_right_is_refused_for_a_causal_model() -> None:
    for name in ("reverse", "length", "hist"):
        with pytest.raises(BadInput, match="sees|right|later|causal"):
            compile_program(catalogue()[name].make(), catalogue()[name].vocab, 4, causal=True)
    graph = graph_to_simplified(program_to_graph(rasp.length + 1, {"a"}, 4))
    with pytest.raises(BadInput, match="a causal model cannot know"):
        compile_graph(graph, causal=True)


def test_sentences_name_the_expression() -> None:
    mean = Aggregate(Select(indices, indices, LEQ), tokens).named("average")
    with pytest.raises(BadInput, match="average|squared"):
        compile_program((mean * mean).named("squared"), [0, 3, 1_000], 60)
    with pytest.raises(BadInput, match="dtype"):
        compile_program(tokens, ["a"], 2, dtype="float16")


def test_the_circuit_can_be_read_back() -> None:
    for name in ("sort", "addition", "dyck2"):
        entry = catalogue()[name]
        circuit = compile_program(entry.make(), entry.vocab, 5).circuit
        assert Circuit.from_text(circuit.to_text()) == circuit


def test_no_coordinate_is_shared_by_two_cells_at_once() -> None:
    circuit = compile_program(catalogue()["dyck2"].make(), catalogue()["dyck2"].vocab, 6).circuit
    order = {"embedding": 0, "attention": 1, "ffn": 2}
    spans: dict[int, list[tuple]] = {}
    for cell in circuit.cells:
        start = (cell.written[0], order[cell.written[1]])
        end = (cell.cleared[0], order[cell.cleared[1]]) if cell.cleared else (10**9, 0)
        assert start < end
        spans.setdefault(cell.coordinate, []).append((start, end))
    assert any(len(taken) > 1 for taken in spans.values())  # coordinates are used again
    for taken in spans.values():
        ordered = sorted(taken)
        assert all(left[1] < right[0] for left, right in zip(ordered, ordered[1:], strict=False))


def test_a_default_that_is_never_read_may_be_a_word_beside_numbers_too_many_to_list() -> None:
    so_far = Select(indices, indices, Comparison.LEQ)
    program = rasp.numerical(Aggregate(so_far, tokens * 1_000 + indices, default="none"))
    compiled = certiformer.compile(program, vocab=range(200), length=120)
    assert compiled.certified and compiled.run([3, 4]) == [3_000, 3_500.5]
