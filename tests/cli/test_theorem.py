"""`certiformer theorem`: the list, one statement, the sources."""

from __future__ import annotations

from certiformer.kernel.certificate import AXIOMS, BY_SITUATIONS
from certiformer.theorem import all_theorems


def test_the_list_has_every_theorem_with_its_status(cli):
    done = cli("theorem")
    assert done.code == 0
    for entry in all_theorems():
        (line,) = [line for line in done.out.splitlines() if f" {entry.record.id} " in line]
        status = "proved on paper" if entry.record.name in {*AXIOMS} - {*BY_SITUATIONS} else entry.status
        assert f" {status} " in line and entry.record.title in line
    assert [entry["id"] for entry in cli("theorem", "--json").data["theorems"]] == [e.record.id for e in all_theorems()]


def test_the_axioms_stand_in_a_section_of_their_own(cli):
    section, _, rest = cli("theorem").out.partition("\n\n")
    assert section.startswith("axioms: ") and section.endswith("a proof that a machine has checked: none yet")
    listed = [line.split()[0] for line in section.splitlines() if line.startswith("    ")]
    assert sorted(listed) == sorted(f"axioms.{name}" for name in AXIOMS if name not in BY_SITUATIONS)
    assert all(f"axioms.{name} " in rest for name in BY_SITUATIONS)  # the rule proves them: no axioms
    data = {entry["id"]: entry["axiom"] for entry in cli("theorem", "--json").data["theorems"]}
    assert {name for name, axiom in data.items() if axiom} == {*listed}
    assert data["axioms.exact_sort"] == {
        "status": "proved on paper", "machine_checked": False, "claims": "all sequences over an alphabet (build)",
    }  # fmt: skip
    one = cli("theorem", "exact_sort").out
    assert "an axiom, proved on paper" in one and "an axiom" not in cli("theorem", "looped_machine").out


def test_one_theorem_in_full(cli):
    entry = all_theorems()[0]
    done = cli("theorem", entry.record.name)
    assert done.code == 0
    for part in (entry.record.title, "Statement", "Assumptions", "Not certified", "Works cited"):
        assert part in done.out
    for assumption in entry.record.assumptions:
        assert f"{assumption.status:<8} {assumption.name}" in done.out
    data = cli("theorem", entry.record.name, "--json").data
    assert data["id"] == entry.record.id and data["sections"] == entry.sections


def test_bibtex_of_one_and_of_all(cli):
    entry = all_theorems()[0]
    one = cli("theorem", entry.record.id, "--bibtex").out
    assert [key for key in entry.record.citations if f"{{{key}," not in one] == []
    everything = cli("theorem", "--bibtex").out
    assert everything.count("@") >= one.count("@") > 0
    assert all(everything.count(f"{{{key},") == 1 for e in all_theorems() for key in e.record.citations)
    assert set(cli("theorem", entry.record.id, "--bibtex", "--json").data["bibtex"]) == set(entry.record.citations)


def test_an_unknown_theorem_is_one_sentence_with_a_hint(cli):
    done = cli("theorem", "voronoi_second_ordr")
    assert (done.code, done.out) == (2, "")
    assert "did you mean" in done.err
