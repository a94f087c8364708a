"""The language: a program written for Tracr's module runs, expressions never change, and nothing recurses."""

from __future__ import annotations

import pytest

from certiformer import rasp
from certiformer.errors import BadInput
from certiformer.rasp.expression import describe, in_evaluation_order, path_to


def test_the_names_that_programs_use_are_there():
    names = [
        "tokens",
        "indices",
        "length",
        "Select",
        "Aggregate",
        "SelectorWidth",
        "Map",
        "SequenceMap",
        "LinearSequenceMap",
        "Full",
        "ConstantSOp",
        "ConstantSelector",
        "SelectorAnd",
        "SelectorOr",
        "SelectorNot",
        "Comparison",
        "numerical",
        "categorical",
        "annotate",
        "SOp",
        "Selector",
        "RASPExpr",
        "Value",
        "Encoding",
        "get_encoding",
        "is_numerical",
        "is_categorical",
        "selector_and",
        "selector_or",
        "selector_not",
        "sop_not",
        "evaluate",
        "TokensType",
        "IndicesType",
        "LengthType",
        "Predicate",
    ]
    assert set(names) <= set(rasp.__all__)
    assert [name for name in names if not hasattr(rasp, name)] == []
    assert {c.name for c in rasp.Comparison} == {"EQ", "NEQ", "LT", "LEQ", "GT", "GEQ", "TRUE", "FALSE"}


# --- programs as users write them for Tracr, names, keywords and all ------------------------------------------------


def fraction_of(sop, token):
    hits = rasp.numerical(sop == token).named("hits")
    earlier = rasp.Select(keys=rasp.indices, queries=rasp.indices, predicate=rasp.Comparison.LEQ)
    return rasp.numerical(rasp.Aggregate(earlier, hits, default=0)).named("fraction")


def test_keywords_annotations_and_defaults():
    program = fraction_of(rasp.tokens, "l")
    assert program("hello") == [0.0, 0.0, 1 / 3, 1 / 2, 2 / 5]
    assert program.name == "fraction" and rasp.is_numerical(program)
    assert rasp.LinearSequenceMap(fst=program, snd=program, fst_fac=1, snd_fac=-1)("hello") == [0] * 5
    assert rasp.Map(f=lambda x: x, inner=rasp.tokens, simplify=False)("ab") == ["a", "b"]
    assert rasp.SequenceMap(f=lambda x, y: x + y, fst=rasp.tokens, snd=rasp.tokens)([1, 2]) == [2, 4]
    assert rasp.Aggregate(
        selector=rasp.Select(rasp.tokens, rasp.tokens, lambda k, q: k == "z"), sop=rasp.tokens, default="n"
    )("ab") == ["n", "n"]
    assert rasp.annotate(program, note=3).annotations["note"] == 3
    assert program.annotated(note=4).annotations["note"] == 4


def test_a_mirror_with_a_selector_on_computed_positions():
    everyone = rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.TRUE).named("everyone")
    size = rasp.SelectorWidth(everyone).named("size")
    opposite = (size - rasp.indices).named("opposite")
    mirror = rasp.Select(rasp.indices, opposite - 1, rasp.Comparison.EQ)
    assert rasp.Aggregate(mirror, rasp.tokens)("Hello") == list("olleH")


def test_tuples_carry_several_values():
    pair = rasp.SequenceMap(lambda x, y: (x, y), rasp.tokens, rasp.indices)
    triple = rasp.SequenceMap(lambda xy, z: (*xy, z), pair, rasp.length)
    assert rasp.Map(lambda t: t[0] * t[1] / t[2], triple)([1, 2, 3]) == [0, 2 / 3, 2]


def test_the_selectors_on_pairs_of_values():
    table = {rasp.Comparison.LT: [[0, 0], [1, 0]], rasp.Comparison.LEQ: [[1, 0], [1, 1]], rasp.Comparison.GT: [[0, 1], [0, 0]],
             rasp.Comparison.GEQ: [[1, 1], [0, 1]], rasp.Comparison.EQ: [[1, 0], [0, 1]], rasp.Comparison.NEQ: [[0, 1], [1, 0]],
             rasp.Comparison.TRUE: [[1, 1], [1, 1]], rasp.Comparison.FALSE: [[0, 0], [0, 0]]}  # fmt: skip
    for comparison, pattern in table.items():
        assert rasp.Select(rasp.tokens, rasp.tokens, comparison)([0, 1]) == pattern
    same, earlier = (
        rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ),
        rasp.Select(rasp.indices, rasp.indices, rasp.Comparison.LT),
    )
    assert (same & earlier)("aa") == rasp.selector_and(same, earlier, simplify=True)("aa") == [[0, 0], [1, 0]]
    assert (same | earlier)("ab") == rasp.selector_or(same, earlier)("ab") == [[1, 0], [1, 1]]
    assert (~same)("ab") == rasp.selector_not(same)("ab") == rasp.SelectorNot(same)("ab") == [[0, 1], [1, 0]]
    assert rasp.ConstantSelector([[True, True], [False, False]])([1, 2]) == [[True, True], [False, False]]


def test_operators():
    t = rasp.tokens
    xs = [1, 2, 5]
    cases = {
        "add": (t + 1, [2, 3, 6]), "radd": (1 + t, [2, 3, 6]), "sub": (t - 1, [0, 1, 4]), "rsub": (1 - t, [0, -1, -4]),
        "mul": (t * 2, [2, 4, 10]), "rmul": (2 * t, [2, 4, 10]), "div": (t / 2, [0.5, 1, 2.5]), "rdiv": (10 / t, [10, 5, 2]),
        "floor": (t // 2, [0, 1, 2]), "rfloor": (5 // t, [5, 2, 1]), "mod": (t % 2, [1, 0, 1]), "rmod": (7 % t, [0, 1, 2]),
        "neg": (-t, [-1, -2, -5]), "not": (~(t > 1), [True, False, False]), "lt": (t < 2, [1, 0, 0]), "le": (t <= 2, [1, 1, 0]),
        "eq": (t == 2, [0, 1, 0]), "ne": (t != 2, [1, 0, 1]), "gt": (t > 1, [0, 1, 1]), "ge": (t >= 2, [0, 1, 1]),
        "and": ((t > 1) & (t < 5), [0, 1, 0]), "or": ((t > 2) | (t < 2), [1, 0, 1]), "rand": (True & (t > 1), [0, 1, 1]),
        "ror": (False | (t > 1), [0, 1, 1]), "two": (t - rasp.indices, [1, 1, 3]), "both": (t == rasp.indices, [0, 0, 0]),
        "product": (t * t, [1, 4, 25]), "sop_not": (rasp.sop_not(t > 1), [1, 0, 0]),
    }  # fmt: skip
    assert {name: expr(xs) for name, (expr, _) in cases.items()} == {
        name: wanted for name, (_, wanted) in cases.items()
    }


def test_division_by_operators_is_exact():
    thirds = (rasp.tokens / 3) * 3
    assert rasp.evaluate(thirds, [1, 2]) == [1, 2] and type(rasp.evaluate(thirds, [1])[0]) is int
    assert (rasp.tokens / 49 * 49)([1]) == [1] and 1 / 49 * 49 != 1


# --- expressions do not change ----------------------------------------------------------------------------------------


def test_expressions_are_immutable_and_hashable():
    expr = rasp.tokens + 1
    for change in (
        lambda: setattr(expr, "inner", rasp.indices),
        lambda: setattr(expr, "new", 1),
        lambda: delattr(expr, "f"),
    ):
        with pytest.raises(BadInput, match="do not change"):
            change()
    with pytest.raises(TypeError):
        expr.annotations["name"] = "x"
    named = expr.named("plus")
    assert expr.name == "map" and named.name == "plus" and named.inner is expr.inner
    assert len({expr, named, expr}) == 2 and {expr: 1}[expr] == 1
    assert (
        named.unique_id != expr.unique_id and named.copy().name == "plus" and named.label == f"plus_{named.unique_id}"
    )
    assert rasp.tokens.label == "tokens"


def test_truth_values_of_expressions_are_refused():
    for mistake in (lambda: bool(rasp.tokens == 1), lambda: (rasp.tokens > 0) and rasp.tokens, lambda: not rasp.tokens):
        with pytest.raises(BadInput, match=r"write & \| ~"):
            mistake()


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: rasp.Map(3, rasp.tokens), "must be a function"),
        (lambda: rasp.Map(rasp.tokens, rasp.tokens), "must be a function of values, not a TokensType"),
        (lambda: rasp.Map(len, "abc"), "inner of Map must be a sequence, not a str"),
        (lambda: rasp.SequenceMap(max, rasp.tokens, 3), "snd of SequenceMap must be a sequence"),
        (lambda: rasp.Aggregate(rasp.tokens, rasp.tokens), "selector of Aggregate must be a selector"),
        (lambda: rasp.SelectorWidth(rasp.indices), "selector of SelectorWidth"),
        (lambda: rasp.Select(1, rasp.indices, rasp.Comparison.EQ), "keys of Select"),
        (lambda: rasp.Select(rasp.tokens, rasp.tokens, None), "predicate of Select"),
        (lambda: rasp.tokens & rasp.Select(rasp.tokens, rasp.tokens, max), "two sequences or two selectors"),
        (lambda: rasp.Select(rasp.tokens, rasp.tokens, max) | rasp.tokens, "must be a selector"),
        (lambda: rasp.tokens + [1], r"a list is not a value"),
        (lambda: rasp.Full(float("nan")), "nan is not a value"),
        (lambda: rasp.ConstantSelector([[True], [False]]), "as many columns as rows"),
    ],
)
def test_a_wrong_part_is_one_sentence(build, sentence):
    with pytest.raises(BadInput, match=sentence):
        build()


# --- depth ------------------------------------------------------------------------------------------------------------


def deep(size: int = 10_000) -> rasp.SOp:
    program = rasp.tokens
    for _ in range(size // 2):
        program = (program + 1) % 3
    return program


def test_ten_thousand_nodes_are_evaluated_described_and_freed():
    program = deep()
    assert len(in_evaluation_order(program)) == 10_001
    assert program([0, 1, 2]) == [(x + 5_000) % 3 for x in (0, 1, 2)]
    path = path_to(program, rasp.tokens)
    assert path.startswith("map.inner") and "..." in path and len(path) < 250
    del program


def test_expressions_are_named_by_place():
    inner = (rasp.tokens + 1).named("next")
    program = rasp.Aggregate(rasp.Select(inner, rasp.indices, rasp.Comparison.EQ), rasp.tokens).named("answer")
    assert describe(program, inner) == "next (at answer.selector.keys)"
    assert describe(program, program) == "answer"
