"""What a certificate rests on is read off the proof that was replayed, never off what is recorded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import certiformer.kernel.situations as situations
from certiformer.kernel import Refused
from certiformer.kernel.certificate import AXIOMS, BY_SITUATIONS, USES, axiom
from certiformer.kernel.check import check
from certiformer.kernel.rules import LEAF
from negative.kinds import COMMANDS, certificate_of, copied, in_process, put_certificate

# Some of what `check` must say, in full; of the other kinds only what follows from the proof in the file.
RESTS_ON = {
    "boxes": "the kernel",
    "theorem": "the kernel and the axiom voronoi_second_order (proved on paper)",
    "table": "the kernel",
    "program": "the kernel, rule situations",
    "looped machine": "the kernel, rule situations",
    "chain-of-thought machine": "the kernel and the axiom chain_of_thought_machine (proved on paper)",
    "ridge": "the kernel and the axioms in_context_ridge, in_context_gradient (proved on paper)",
}
WITHOUT_PROOF = ("refuted", "undecided", "undecided gradient")


def named_in(proof: dict) -> set[str]:
    """The theorems that a proof in a certificate names, with those that they use."""
    own = {proof["id"], *USES.get(proof["id"], ())} if proof["rule"] == "theorem" else set()
    return own.union(*map(named_in, proof.get("children", ())))


def checked(folder: Path) -> tuple[dict, str]:
    """What `check` says as data, and as one line of text."""
    _, out, _ = in_process("check", str(folder), "--json", "--quiet", "--proof-only")
    _, text, _ = in_process("check", str(folder), "--quiet", "--proof-only")
    return json.loads(out), " ".join(text.split())


@pytest.mark.parametrize("kind", COMMANDS)
def test_check_says_what_a_certificate_of_each_kind_rests_on(folders, kind):
    data, text = checked(folders[kind])
    if kind in WITHOUT_PROOF:
        assert data["rests_on"] is None and data["rules"] == [] and data["steps"] == {} and "rests on" not in text
        return
    said, stored = data["rests_on"], certificate_of(folders[kind])
    assert f"rests on {said}" in text and said.startswith("the kernel")
    assert said == RESTS_ON.get(kind, said)
    theorems = {name.removeprefix("theorem ") for name in data["rules"] if name.startswith("theorem ")}
    assert theorems == named_in(stored["proof"])
    axioms = theorems - {*BY_SITUATIONS}
    assert all(name in said for name in axioms) and ("proved on paper" in said) == bool(axioms)
    assert ("rounding" in said) == ("run_error" in stored)
    assert ("situations" in said) == bool(named_in(stored["proof"]) & {*BY_SITUATIONS} or kind == "program")


def test_leaves_rows_and_cases_are_those_that_were_gone_through(folders):
    data, text = checked(folders["boxes"])
    leaves = (folders["boxes"] / "leaves.bin").read_bytes().count(LEAF)
    assert data["steps"] == {"leaves": leaves} and leaves > 1 and f"boxes; {leaves:,} leaves; " in text
    assert checked(folders["table"])[0]["steps"] == {"rows": 4}
    assert checked(folders["theorem"])[0]["steps"] == {}  # no case is gone through
    for kind in ("program", "looped machine", "looped automaton", "circuit"):
        data, text = checked(folders[kind])
        assert data["steps"]["cases"] > 1 and f"; {data['steps']['cases']:,} cases; " in text


def test_a_bound_for_runs_is_said_where_it_was_confirmed_and_nowhere_else(folders):
    data, text = checked(folders["dtype"])
    assert data["run_error"] > 0 and "runs a run in the stored type adds at most" in text
    data, text = checked(folders["theorem"])
    assert data["run_error"] is None and "runs a run" not in text


def test_what_is_recorded_changes_nothing_of_it(folders, tmp_path):
    """A certificate may record that it rests on anything; the negative control names another axiom in its proof."""
    honest, words = certificate_of(folders["theorem"]), "rests on the kernel alone"
    folder = copied(folders["theorem"], tmp_path / "copy")
    put_certificate(folder, {**honest, "reason": words, "method": words, "assumptions": [words], "level": 2})
    assert checked(folder)[0]["rests_on"] == RESTS_ON["theorem"]
    for name in ("voronoi_first_order", "looped_machine", "exact_sort"):
        put_certificate(folder, {**honest, "proof": {**honest["proof"], "id": name}})
        data, text = checked(folder)
        assert data["outcome"] == "refused" and data["rests_on"] is None and "rests on the kernel" not in text
    put_certificate(folder, {**honest, "rests_on": "the kernel"})  # no field of the format
    assert checked(folder)[0]["outcome"] == "refused"


@pytest.mark.parametrize("name", BY_SITUATIONS)
def test_what_is_said_to_rest_on_the_rule_of_situations_does(folders, monkeypatch, name):
    """Without the walk of the rule, these modules prove nothing."""
    kind = {"looped_machine": "looped machine", "looped_automaton": "looped automaton",
            "chain_of_thought_automaton": "chain-of-thought automaton", "chain_of_thought_circuit": "circuit"}[name]  # fmt: skip
    assert check(folders[kind], workers=1).accepted
    module = axiom(name, AXIOMS[name])
    walks = [name for name, value in vars(module).items() if value in vars(situations).values() and callable(value)]
    assert len(walks) == 1

    def refuse(*_arguments: object) -> None:
        raise Refused("the walk was taken away")

    monkeypatch.setattr(module, walks[0], refuse)
    verdict = check(folders[kind], workers=1)
    assert verdict.outcome == "refused" and "taken away" in verdict.reason and verdict.proof is None
