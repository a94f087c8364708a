"""What the rooms answer, against the library itself, in this process."""

from __future__ import annotations

import base64
from fractions import Fraction

import numpy as np
import pytest

from certiformer import BadInput
from certiformer.explore.rooms import ROOMS, approximate, attend, audit, machine, program, rates, trust

LOOK = {"tokens": [1, 2, 3, 4, 5, 6], "sharpness": 4.0, "attention": "soft", "positions": "on"}


def silent(event, **facts):
    """Nobody listens."""


def look(**change):
    return attend.run(attend.read({**LOOK, **change}), None, silent)


@pytest.mark.parametrize("name", ["reversal", "codes"])
@pytest.mark.parametrize("sharpness", [0.5, 4.0, 40.0])
def test_the_proved_leak_is_never_below_the_measured_one(name, sharpness):
    answer = look(program=name, sharpness=sharpness)
    assert answer["kind"] == "upper"
    assert answer["measured"] <= Fraction(answer["proved"]) + Fraction(1, 10**12)  # the rounding of a float64 run
    loose = look(program=name, sharpness=sharpness / 4)
    assert Fraction(loose["proved"]) > Fraction(answer["proved"])  # the bound does follow the sharpness


def test_the_leak_of_reversal_is_attained():
    worst = look(program="reversal", tokens=[1, 1, 1, -1])
    assert float(worst["proved"]) == pytest.approx(worst["measured"], rel=1e-6)


def test_pooling_is_the_mean_and_distances_cannot_count():
    assert look(program="pooling")["measured"] < 1e-12
    flat = look(program="distances", tokens=[2, 2, 2, 2])
    assert max(flat["answers"]) - min(flat["answers"]) < 1e-12
    assert flat["kind"] == "lower" and flat["measured"] >= Fraction(flat["proved"]) == Fraction(3, 8)


def test_without_positions_order_is_invisible_and_hard_attention_copies():
    assert look(program="reversal", positions="off")["proved"] is None
    assert look(program="reversal", attention="hard")["answers"] == [6, 5, 4, 3, 2, 1]
    assert look(program="codes", attention="hard")["answers"][1:] == [1, 2, 3, 4, 5]


ASKED = {"name": "reverse", "program": None, "vocab": "", "length": 4, "tokens": "a b c", "dtype": "auto"}


def test_a_program_is_compiled_run_and_read():
    answer = program.run(program.read(ASKED), None, silent)
    assert answer["outcome"] == "proved" and answer["circuit"]["example"]["outputs"] == ["c", "b", "a"]
    assert answer["readings"] and not any(reading["wrong"] for reading in answer["readings"])


def test_a_program_of_ones_own_is_parsed_and_nothing_else_is_run():
    own = {
        **ASKED,
        "name": None,
        "program": "Select(indices, indices, EQ)\nAggregate(Select(tokens, tokens, EQ), tokens)",
    }
    answer = program.run(program.read({**own, "vocab": "a,b,c"}), None, silent)
    assert answer["circuit"]["example"]["outputs"] == ["a", "b", "c"]
    for text in ("__import__('os').system('true')", "tokens.__class__", "[x for x in tokens]", "open('/etc/passwd')"):
        with pytest.raises(BadInput, match="line 1"):
            program.run(program.read({**own, "program": text, "vocab": "a,b"}), None, silent)


def test_the_fourth_busy_beaver_halts_after_107_steps():
    asked = {"kind": "machine", "example": "beaver 4", "text": "", "input": "", "steps": 200, "cells": 40}
    answer = machine.run(machine.read(asked), None, silent)
    assert answer["word"] == "certified" and answer["result"]["steps"] == 107 and answer["result"]["ones"] == 13
    assert len(answer["moments"]) == 108


def test_an_automaton_reads_its_word():
    pytest.importorskip("automata")
    asked = {"kind": "automaton", "example": "own", "text": "(ab)*", "input": "abab", "steps": 1, "cells": 16}
    assert machine.run(machine.read(asked), None, silent)["accepted"]
    assert not machine.run(machine.read({**asked, "input": "aba"}), None, silent)["accepted"]


def test_a_kernel_of_rank_two_leaves_nothing_beyond_two():
    answer = rates.run(rates.read({"what": "kernel", "kernel": "1+u*v", "nodes": 16}), None, silent)
    assert answer["tails"][0] > 0.01 and answer["tails"][1] < 1e-12
    with pytest.raises(BadInput):
        rates.run(rates.read({"what": "kernel", "kernel": "u+__name__", "nodes": 16}), None, silent)
    with pytest.raises(BadInput, match="name the folder"):
        rates.run(rates.read({"what": "study", "kernel": "", "nodes": 16}), None, silent)


def test_a_run_is_audited_and_its_proof_is_unfolded(tmp_path):
    asked = {"formula": "x1**2", "box": "[0,1]", "epsilon": "0.1", "method": "ridge", "seconds": 0}
    folder = str(tmp_path / "run")
    built = approximate.run(approximate.read(asked), folder, silent)
    assert built["word"] == "certified"
    answer = trust.run(trust.read({}), folder, silent)
    assert answer["accepted"] and answer["proof"]["rule"] and all(facts["says"] for facts in answer["rules"].values())
    assert any("def " in facts["code"] for facts in answer["rules"].values())
    data = audit.run(audit.read({}), folder, silent)["audit"]
    assert data["path"] == "run" and data["theorems"]
    with pytest.raises(BadInput):
        trust.run(trust.read({}), str(tmp_path), silent)


def test_the_boxes_that_are_sent_are_those_of_the_proof(tmp_path):
    import certiformer
    from certiformer.search.report_pictures import boxes_of

    artifact = certiformer.build("x1*x2", on="[0,1]^2", eps="0.2", method="voronoi", rule="boxes")
    target = artifact.subject.target
    (part,) = boxes_of(artifact.certificate.proof, artifact.subject.leaves, target.program, target.domain)
    tree = base64.b64decode(part["tree"])
    assert tree == artifact.subject.leaves and part["leaves"] == tree.count(255)
    assert np.isclose(part["axes"][1]["high"], 1)


def test_every_room_reads_its_requests_strictly():
    from importlib import import_module

    for module in map(import_module, ROOMS.values()):
        with pytest.raises(BadInput):
            module.read({"unknown": 1})
