"""The study of heads on rows whose factors are known."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from certiformer.errors import BadInput
from certiformer.rates.several_keys import keys_parts, keys_program, keys_rows, keys_task
from certiformer.rates.studies.heads import EACH, STUDY, TOTAL, Options, jobs, summary
from rates.size_examples import noisy, row, sentence

OPTIONS = Options(heads=(1, 2, 4), more_heads=(), total=4, seeds=5)


def made():
    rows = []
    for place, heads in enumerate(OPTIONS.heads):
        for seed in range(OPTIONS.seeds):
            own = noisy(1e-3, seed, 0, 1.0)  # a large spread between seeds, which pairing takes out
            rows.append(row("graph", "trained", heads, seed, noisy(own * heads**2, seed, place + 1), group=TOTAL))
            rows.append(row("graph", "trained", heads, seed, noisy(own, seed, place + 5), group=EACH))
        rows.append(row("graph", "built", heads, 0, 1e-4 * heads, group=TOTAL, bound=1.0))
        rows.append(row("graph", "split", heads, 0, 1e-9, group=TOTAL))
        rows.append(row("sines", "built", heads, 0, math.nan if heads == 1 else 0.1, group=EACH))
    return rows


def test_factors_against_one_head():
    result = summary(made(), OPTIONS)
    total = sentence(result.findings, "Jiang", TOTAL, "trained:")
    assert "4 heads 1" in total and total.count("(larger)") == 2  # 4 heads: 16 times up to noise of 5 %
    each = sentence(result.findings, "Jiang", EACH, "trained:")
    assert each.count("(not distinguishable)") == 2
    assert result.findings and "0 of 5 trained are better" in sentence(result.findings, TOTAL, "split among heads")
    built = sentence(result.findings, "Jiang", TOTAL, "constructed")
    assert "1 heads 0.0001" in built and "4 heads 0.0004" in built
    assert any("nothing to offer with 1 heads" in text for text in result.limits)
    assert any("models are missing" in text for text in result.limits)


def test_two_seeds_support_nothing():
    result = summary([r for r in made() if r["seed"] < 2], OPTIONS)
    assert "larger" not in sentence(result.findings, "Jiang", TOTAL, "trained:")


def test_options():
    with pytest.raises(BadInput, match="divided"):
        jobs(Options(heads=(1, 3), total=8))
    Options(**STUDY.full)
    keys = [m["heads"] * m["key"] for j in jobs(OPTIONS) for m in j.config.get("members", ()) if m["group"] == TOTAL]
    assert set(keys) == {4}
    assert summary([], OPTIONS).findings == []


def test_several_keys_are_what_the_program_says():
    asked, program = keys_task(4, 2), keys_program(4, 2)
    for inputs in product(range(4), repeat=5):
        *table, place = inputs
        wanted = (table[place] >= 2) + 2 * (table[(place + 2) % 4] >= 2)
        assert asked.answer(np.array([inputs])).tolist() == [wanted]
        if inputs[0] == inputs[1] == 3:
            assert program(list(inputs))[-1] == wanted
    with pytest.raises(BadInput, match="multiple of 3"):
        keys_task(8, 3)


def keys_made(wrong):
    facts = {"target": "keys", "kind": "trained", "keys": 2, "norm": "none", "key": 1, "diverged": False}
    return [
        {**facts, "heads": h, "seed": s, "wrong": share + 0.001 * s} for h, share in wrong.items() for s in range(3)
    ]


def test_several_keys_name_the_best_number_of_heads_and_only_what_intervals_support():
    found = summary(keys_made({1: 0.5, 2: 0.1, 4: 0.1005}), OPTIONS).findings
    assert "with 2 heads" in sentence(found, "2 places") and "better than 1, intervals apart" in sentence(
        found, "2 places"
    )
    assert "no other number is clearly worse" in " ".join(summary(keys_made({1: 0.1, 2: 0.1}), OPTIONS).findings)
    assert any("models of several keys are missing" in text for text in summary(made(), OPTIONS).limits)


def test_several_keys_at_a_tiny_size():
    options = Options(heads=(2,), total=2, keys=(2,), table=4, seeds=3, steps=10)
    parts = keys_parts(options)
    assert [(part["kind"], part.get("norm")) for part in parts] == [
        ("built", None),
        ("trained", "none"),
        ("trained", "pre"),
    ]
    (built,), trained = keys_rows(parts[0]), keys_rows(parts[1])
    assert (built["certified"], built["wrong"], built["heads"]) == (True, 0.0, 2)
    assert [row["seed"] for row in trained] == [0, 1, 2] and all(0 <= row["wrong"] <= 1 for row in trained)
