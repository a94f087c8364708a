"""No case of a compiled program is skipped: checked and excluded ones are all there are, and none that occurs is excluded."""

from __future__ import annotations

import random
from math import prod

import numpy as np
import pytest

from certiformer import rasp
from certiformer.compiler.driver import compile_program
from certiformer.errors import BadInput
from certiformer.kernel import Refused
from certiformer.kernel.situations.cells import Tally
from certiformer.kernel.situations.rasp import variables as enumeration
from certiformer.kernel.situations.rasp.circuit import Circuit
from certiformer.kernel.situations.rasp.variables import Variables
from certiformer.rasp.graph_file import graph_from_text
from certiformer.rasp.graph_run import GraphRunner
from certiformer.rasp.inputs import first_inputs
from certiformer.rasp.library import catalogue
from certiformer.rasp.operation import Affine, WithConstant
from certiformer.rasp.random_program import random_valid_program
from certiformer.rasp.selectors import Comparison
from kernel.compiled_programs import Built, built, built_from, key
from kernel.rasp_forgeries import flat, wrong_answers

LENGTH, INPUTS = 3, 400


class Watched:
    """Every enumeration of a proof: what was read, and the places that were checked."""

    def __init__(self, monkeypatch):
        self.seen: list[tuple[tuple[int, ...], set[tuple[int, ...]]]] = []
        self.tallies: list[Tally] = []
        own_cases, own_close = Variables.cases, Tally.close

        def cases(variables, read, nodes=()):
            checked: set[tuple[int, ...]] = set()
            self.seen.append((tuple(read), checked))
            for places, values in own_cases(variables, read, nodes):
                checked.add(places)
                yield places, values

        def close(tally, total, checked, excluded):
            self.tallies.append(Tally(total, checked, excluded))
            own_close(tally, total, checked, excluded)

        monkeypatch.setattr(Variables, "cases", cases)
        monkeypatch.setattr(Tally, "close", close)


def domains(graph) -> dict[int, list]:
    """Written again here: the values of every sequence, undefined last; of numbers too many to list, none."""
    found: dict[int, list] = {-1: list(graph.vocab), -2: list(range(graph.length))}
    for number, node in enumerate(graph.nodes):
        if node.values is not None and node.values.values is not None:
            found[number] = [*node.values.values, *([None] if node.values.undefined else [])]
    return found


def skipped(model: Built, watched: Watched) -> list[str]:
    """What occurs on some input, and was not among the checked cases of an enumeration."""
    graph = graph_from_text(Circuit.from_text(model.circuit).extended)
    known = domains(graph)
    places = {x: {key(value): p for p, value in enumerate(values)} for x, values in known.items()}
    enumerations = set()
    for read, checked in watched.seen:
        listed = [k for k, x in enumerate(read) if x in known]
        kept = frozenset(tuple(case[k] for k in listed) for case in checked)
        enumerations.add((tuple(read[k] for k in listed), kept))
    runner, problems = GraphRunner(graph), []
    for xs in first_inputs(graph.vocab, graph.length, INPUTS)[0]:
        values = dict(enumerate(runner.run_all(xs))) | {-1: list(xs), -2: list(range(len(xs)))}
        at = {x: [places[x][key(value)] for value in values[x]] for x in {x for read, _ in enumerations for x in read}}
        for read, kept in enumerations:
            cases = zip(*(at[x] for x in read), strict=True) if read else [()]
            problems += [f"nodes {read} on {xs}" for case in cases if case not in kept]
    return problems


def proved(model: Built, monkeypatch) -> Watched:
    with monkeypatch.context() as patch:
        watched = Watched(patch)
        report = model.prove()
    assert report.tally.total == report.tally.checked + sum(report.tally.excluded.values())
    return watched


NAMES = sorted(set(catalogue()) - {"addition"})


@pytest.mark.parametrize("name", NAMES)
def test_every_case_that_occurs_in_a_library_program_is_checked(name, monkeypatch):
    model = built(name, LENGTH, "float64")
    watched = proved(model, monkeypatch)
    assert watched.seen and not skipped(model, watched)


@pytest.mark.parametrize("seed", range(12))
def test_every_case_that_occurs_in_a_random_program_is_checked(seed, monkeypatch):
    program = random_valid_program(seed, list("ab"), LENGTH, 7)
    model = built_from(compile_program(program, list("ab"), LENGTH, dtype="float64"))
    watched = proved(model, monkeypatch)
    assert not skipped(model, watched)


def test_checked_and_excluded_cases_are_the_product_of_the_domains(monkeypatch):
    counted = 0
    for name in ("reverse", "sort", "sum", "dyck1", "induction", "sort_freq"):
        model = built(name, LENGTH, "float64")
        known = domains(graph_from_text(Circuit.from_text(model.circuit).extended))
        watched = proved(model, monkeypatch)
        sizes = {prod(len(known[x]) for x in read) for read, _ in watched.seen}
        assert sizes <= {tally.total for tally in watched.tallies}
        for tally in watched.tallies:
            assert tally.total == tally.checked + sum(tally.excluded.values()) and all(tally.excluded)
            counted += tally.total
    assert counted > 1_000


@pytest.mark.parametrize("name", ["reverse", "sort", "hist", "sum"])
def test_an_enumeration_that_drops_a_case_is_refused(name, monkeypatch):
    """The negative control of the count."""
    own = Variables._judged

    def without_the_last(self, base, sizes):
        every = list(own(self, base, sizes))
        return iter(every[:-1] if len(every) > 1 else every)

    model = built(name, LENGTH, "float64")
    monkeypatch.setattr(Variables, "_judged", without_the_last)
    with pytest.raises(Refused, match="which must be all"):
        model.prove()


def test_a_false_reason_is_seen_by_the_runs(monkeypatch):
    """The negative control of the oracle: an equation that does not hold excludes cases that occur."""
    model = built("reverse", LENGTH, "float64")
    own = Variables._equations

    def too_many(self, base):
        last = [(enumeration.NOT_ITS_INPUT, lambda places: places[0] == 0)] if base else []
        return [*own(self, base), *last]

    with monkeypatch.context() as patch:
        patch.setattr(Variables, "_equations", too_many)
        watched = Watched(patch)
        model.prove()
    assert skipped(model, watched)


# --- numbers too many to list -------------------------------------------------------------------------------------------

VOCAB, POSITIONS = 160, 140


def over_the_list(threshold: float, weight: float = 2.0**-20) -> Built:
    """tokens >= 5, read out beside 140 tokens + index, which has 22,400 values."""

    def program(builder):
        return builder.add("map", (builder.add("tokens"),), WithConstant(">=", 5))

    def derived(builder):
        return builder.add("map", (0, builder.add("indices")), Affine((POSITIONS, 1), 0))

    ids, codes = range(VOCAB), range(POSITIONS)
    cells = {
        0: (ids, [0] * POSITIONS),
        2: ([0] * VOCAB, codes),
        3: ([POSITIONS * k for k in ids], codes),
    }
    readout = np.array([[0, 1], [0, weight], [0, weight]])
    return flat(list(ids), POSITIONS, program, derived, cells, readout, [0, -threshold])


def test_values_between_the_ends_of_an_interval_are_checked():
    right, wrong = over_the_list(4.5), over_the_list(80)
    assert not wrong_answers(right, 1) and wrong_answers(wrong, 1) > 70
    right.prove()
    with pytest.raises(Refused, match="does not name"):
        wrong.prove()


def test_positions_too_many_to_list_are_refused():
    """Rows of the code table between the first two are never looked at by the ends of an interval."""
    length = 20_001

    def program(builder):
        tokens = builder.add("tokens")
        builder.add("indices")
        return builder.add("map", (tokens,), WithConstant("==", 1))

    codes = [0, length - 1, *([10**6] * (length - 2))]
    model = flat(
        [0, 1], length, program, None, {0: ([0, 1], [0] * length), 1: ([0, 0], codes)},
        np.array([[0, 1], [0, 2.0**-20]]), [0.5, 0],
    )  # fmt: skip
    with pytest.raises(Refused, match="too many values to list"):
        model.prove()


@pytest.mark.parametrize("seed", range(4))
def test_forged_transformers_with_derived_nodes_are_refused(seed):
    """Whatever answers wrongly, by exact evaluation of all short inputs, is refused; some that are right are proved."""
    rng = random.Random(seed)
    accepted = forged = 0
    for _ in range(25):
        length, size = rng.choice([(3, 4), (4, 3), (2, 6)])
        limit, factor = rng.randrange(1, size), rng.choice([1, 2, length, 30_000])

        def program(builder, limit=limit):
            return builder.add("map", (builder.add("tokens"),), WithConstant(">=", limit))

        def derived(builder, factor=factor):
            i = builder.add("indices")
            both = builder.add("map", (0, i), Affine((factor, 1), 0))
            return builder.add("map", (both,), WithConstant(">", factor))

        ids, codes = range(size), range(length)
        cells = {0: (ids, [0] * length), 2: ([0] * size, codes), 3: ([factor * k for k in ids], codes)}
        small = [rng.choice([0, 0, 2.0**-10, -(2.0**-10), 0.25]) / factor for _ in range(2)]
        readout = np.array([[0, 1], [0, small[0]], [0, small[1]]])
        shift = rng.choice([0.5, 0.5, 0.5, 0.25, 1.5, -0.5])
        model = flat(list(ids), length, program, derived, cells, readout, [0, -limit + shift])
        wrong = wrong_answers(model, 2 if length < 4 else 1)
        try:
            model.prove()
            accepted += 1
            assert not wrong
        except Refused:
            forged += bool(wrong)
    assert accepted >= 2 and forged >= 2


# --- inputs on which the program has no value ---------------------------------------------------------------------------


def dead(length: int, written: int) -> Built:
    """tokens == 1, read out beside a list for inputs of `written` tokens that the output does not need."""

    def program(builder):
        output = builder.add("map", (builder.add("tokens"),), WithConstant("==", 1))
        numbers = builder.add("written", (), None, (True, *range(written)))
        builder.add("map", (numbers,), WithConstant("+", 1))
        return output

    codes = [i + 1 if i < written else 10**4 for i in range(length)]
    cells = {0: ([0, 1], [0] * length), 3: ([0, 0], codes)}
    return flat([0, 1], length, program, None, cells, np.array([[0, 1], [0, 2.0**-10]]), [0.5, 0])


def test_a_list_that_the_output_does_not_need_excludes_no_length():
    model = dead(4, 2)
    assert wrong_answers_of_dead(model) > 0
    with pytest.raises(Refused, match="does not need, may have no value"):
        model.prove()
    with pytest.raises(Refused, match="does not need, may have no value"):
        dead(3, 3).prove()


def wrong_answers_of_dead(model: Built) -> int:
    """The program without its dead list, which has a value on every input."""

    def alone(builder):
        return builder.add("map", (builder.add("tokens"),), WithConstant("==", 1))

    whole = flat([0, 1], 4, alone, None, {0: ([0, 1], [0] * 4)}, np.array([[0, 1]]), [0.5, 0])
    return wrong_answers(Built(model.config, model.arrays, whole.program, whole.circuit), 4)


def test_a_mean_of_symbols_that_the_output_does_not_need_is_refused():
    def program(builder):
        tokens = builder.add("tokens")
        output = builder.add("map", (tokens,), WithConstant("==", "a"))
        every = builder.add("select", (tokens, tokens), Comparison.TRUE)
        builder.add("aggregate", (every, tokens))
        return output

    model = flat(["a", "b"], 2, program, None, {1: ([1, 0], [0, 0])}, np.array([[0, 1]]), [0.5, 0])
    with pytest.raises(Refused, match="does not need, may have no value"):
        model.prove()


def test_the_sentence_says_the_one_length_that_a_written_list_has():
    compiled = compile_program(rasp.ConstantSOp([3, 1, 2]) + 1, list("ab"), 3)
    assert "For every input of exactly 3 tokens " in built_from(compiled).prove().sentence
    assert "For every input of 1 to 3 tokens " in built("reverse", 3, "float64").prove().sentence


def test_a_list_for_another_length_than_the_claim_is_refused():
    def program(builder):
        return builder.add("map", (builder.add("written", (), None, (True, 0, 1)),), WithConstant("==", 1))

    for length in (1, 3):
        codes = [min(i, 1) for i in range(length)]
        model = flat([0, 1], length, program, None, {0: ([0, 0], codes)}, np.array([[0, 1]]), [0.5, 0])
        with pytest.raises((Refused, BadInput), match="is written for inputs of 2 tokens"):
            model.prove()


def test_names_out_of_a_file_cannot_move_the_cursor():
    model = over_the_list(80)
    name = "ok)\n\x1b[32mcertified\x1b[0m" + "x" * 500

    def rename(data):
        data["nodes"][1]["name"] = name

    with pytest.raises(Refused) as problem:
        model.with_program(rename).prove()
    assert str(problem.value).isprintable() and len(str(problem.value)) < 300
