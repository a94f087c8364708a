"""The campaign against the checker, in seconds: cheap kinds of claim, its oracles, a planted fault, the exit code."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
FORGED = (
    "table",
    "sort",
    "automaton-looped",
    "automaton-thought",
    "machine-looped",
    "circuit",
    "learner-gd",
    "program-hist",
)
TRIALS = 50


@pytest.fixture(scope="module")
def campaign():
    """The parts of the campaign, importable as the script imports them."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import _soundness_claims
        import _soundness_exact
        import _soundness_forge
        import _soundness_forms
        import _soundness_trials
        import soundness

        yield {
            "claims": _soundness_claims, "exact": _soundness_exact, "forge": _soundness_forge,
            "forms": _soundness_forms, "trials": _soundness_trials, "script": soundness,
        }  # fmt: skip
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))


@pytest.fixture(scope="module")
def home(campaign, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("bases")
    assert campaign["trials"].bases.make(list(FORGED), folder, lambda text: None) == {}
    return folder


@pytest.fixture
def unwatched(campaign, monkeypatch):
    """What the campaign does to classes of the kernel and of axioms is undone, so that no later test meets it."""
    from certiformer.errors import BadInput
    from certiformer.kernel import Refused

    trials = campaign["trials"]
    for kind in {Refused, BadInput, *trials.classes_of_targets()}:
        monkeypatch.setattr(kind, "__init__", kind.__init__)
    trials.watch_refusals.cache_clear(), trials.remember_targets.cache_clear()


@pytest.mark.parametrize("kind", FORGED)
def test_forgeries_are_refused_and_most_reach_the_last_rule(campaign, home, tmp_path, unwatched, kind):
    trials = campaign["trials"]
    result = trials.chunk(kind, 0, TRIALS, 3, str(home), str(tmp_path))
    assert (result.accepted, result.crashed, result.honest_refused) == (0, 0, 0), result.finds
    assert result.false >= TRIALS // 4
    assert 2 * result.last_rule >= result.false


CHEAP = ("balls", "operations", "sharpness", "attention", "points", "texts", "covers", "shown", "read-models", "read-formulas",
         "read-numbers")  # fmt: skip


@pytest.mark.parametrize("kind", CHEAP)
def test_operations_and_readers_hold_what_they_say(campaign, tmp_path, kind):
    result = campaign["trials"].chunk(kind, 0, 4 * TRIALS, 3, "", str(tmp_path))
    assert (result.accepted, result.crashed) == (0, 0), result.finds


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("scale", lambda form: (form.rem * 0, form.low, form.high)),
        ("add", lambda form: (form.rem.mid() * 0.999, form.low, form.high)),
        ("multiply", lambda form: (form.rem, form.low, (form.low + form.high) / 2)),
    ],
)
def test_a_small_fault_in_one_operation_is_noticed(campaign, tmp_path, monkeypatch, name, fault):
    """Negative control: forms are tried at the very ends of what they allow."""
    from certiformer.kernel import taylor

    honest = getattr(taylor, name)

    def faulty(*arguments):
        form = honest(*arguments)
        return taylor.Form(form.table, form.coef, *fault(form), form.singular)

    monkeypatch.setattr(taylor, name, faulty)
    assert campaign["trials"].chunk("operations", 0, 20 * TRIALS, 3, "", str(tmp_path)).accepted > 0


def test_a_reader_that_skips_a_check_is_noticed(campaign, tmp_path, monkeypatch):
    from certiformer.kernel import files

    monkeypatch.setattr(files, "_fits", lambda value, rule: True)
    result = campaign["trials"].chunk("read-models", 0, 2 * TRIALS, 3, "", str(tmp_path))
    assert result.accepted > 0


def test_parts_of_a_run_add_up_and_what_is_noted_is_not_tried_again(campaign, home, tmp_path, capsys):
    script, noted = campaign["script"], [str(tmp_path / name) for name in ("a", "b")]
    flags = ["--kind", "formulas,table", "--bases", str(home), "--trials", "100", "--workers", "1", "--quiet", "--json"]
    for shard, file in zip(("1/2", "2/2"), noted, strict=True):
        assert script.main([*flags, "--shard", shard, "--report", file]) == 0
    capsys.readouterr()
    size = Path(noted[0]).stat().st_size
    assert script.main([*flags, "--shard", "1/2", "--report", noted[0]]) == 0
    assert json.loads(capsys.readouterr().out)["trials"] == 50
    assert Path(noted[0]).stat().st_size == size
    assert script.main(["--merge", ",".join([*noted, noted[0]]), "--json"]) == 0
    together = json.loads(capsys.readouterr().out)
    assert together["trials"] == 100
    assert script.main(flags) == 0
    whole = json.loads(capsys.readouterr().out)
    assert {row["kind"]: row["false"] for row in whole["kinds"]} == {
        row["kind"]: row["false"] for row in together["kinds"]
    }


def test_every_listed_equivalent_has_a_reason_and_no_line_number(campaign):
    from _soundness_equivalents import EQUIVALENT

    assert all(reason and name[0].endswith(".py") for name, reason in EQUIVALENT.items())
    assert not any(part.isdigit() for name in EQUIVALENT for part in name[:2])


@pytest.mark.parametrize("kind", ["formulas", "networks", "automata", "machines", "circuits", "learners", "rasp"])
def test_forms_and_sources_hold_what_they_say(campaign, tmp_path, kind):
    result = campaign["trials"].chunk(
        kind, 0, TRIALS // (2 if kind in ("networks", "rasp", "learners") else 1), 3, "", str(tmp_path)
    )
    assert (result.accepted, result.crashed) == (0, 0), result.finds


def test_a_checker_that_skips_rows_is_deceived_and_the_folder_is_kept(campaign, home, tmp_path, unwatched, monkeypatch):
    """Negative control of (i): with one fault in the checker, the same trials find it out."""
    from certiformer.kernel import rules
    from certiformer.kernel.balls import ZERO

    trials = campaign["trials"]
    monkeypatch.setattr(rules, "finite", lambda problem, progress=None: ZERO)
    result = trials.chunk("table", 0, 20, 3, str(home), str(tmp_path))
    assert result.accepted > 0
    assert "> " in result.finds[0]
    assert (
        tmp_path / result.finds[0].split(";")[0].split(":")[0].replace("table ", "table-") / "certificate.json"
    ).is_file()


def test_a_form_that_forgets_its_remainder_is_noticed(campaign, tmp_path, monkeypatch):
    """Negative control of (iii)."""
    from certiformer.kernel import taylor

    compose = taylor.compose

    def without_remainder(*arguments):
        form = compose(*arguments)
        return taylor.Form(form.table, form.coef, form.rem / 1000, form.low, form.high, form.singular)

    monkeypatch.setattr(taylor, "compose", without_remainder)
    assert campaign["trials"].chunk("formulas", 0, 100, 3, "", str(tmp_path)).accepted > 0


def test_a_planted_fault_is_exposed_and_the_command_says_so(home):
    """Negative control of (i) to (iii) as a whole, through the script: faults in the evaluation of rows show on tables."""
    flags = [
        "--kind",
        "table",
        "--bases",
        str(home),
        "--source",
        "kernel/problem.py",
        "--mutants",
        "4",
        "--trials",
        "0",
    ]
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "soundness.py"), *flags, "--workers", "1", "--json", "--quiet"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    report = json.loads(done.stdout)["planted"]
    assert report["drawn"] == 4
    assert report["exposed"] >= 1
    assert "a false claim was accepted" in report["how"] or "an honest folder was refused" in report["how"]
    assert len(report["survivors"]) == 4 - report["exposed"] - report["equivalent"]
    assert done.returncode == 0


def test_malformed_folders_are_answered_and_a_checker_that_looks_outside_is_noticed(campaign, home, tmp_path):
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import _soundness_files as malformed
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))
    assert malformed.run(["table", "circuit"], home, 30, 3, lambda text: None) == {"folders": 30, "wrong": []}
    # Negative control: the same batch in a process whose checker first opens a file elsewhere, or divides by zero.
    elsewhere = tmp_path / "elsewhere"
    elsewhere.touch()
    for deed, word in ((f"open({str(elsewhere)!r}).close()", "opened"), ("1 / 0", "ZeroDivisionError")):
        program = (
            "import sys, json; from pathlib import Path; import certiformer.kernel.check as c, _soundness_files as m\n"
            f"honest = c.check\ndef check(folder, workers):\n    if 'run' in folder.name: {deed}\n"
            "    return honest(folder, workers=workers)\n"
            f"c.check = check; print(json.dumps(m.batch(['table'], Path({str(home)!r}), 0, 3, 3)))"
        )
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=ROOT / "benchmarks", capture_output=True, text=True, check=False
        )
        assert word in done.stdout, done.stderr


def test_the_exit_code_is_1_when_something_false_was_accepted(campaign, monkeypatch, capsys):
    script, trials = campaign["script"], campaign["trials"]
    for accepted in (0, 1):
        result = trials.Result("formulas", trials=5, false=5, accepted=accepted)
        monkeypatch.setattr(script, "attack", lambda *_, result=result: [result])
        assert script.main(["--kind", "formulas", "--trials", "5", "--quiet"]) == accepted
    assert "formulas" in capsys.readouterr().out


def test_the_two_forward_passes_of_the_campaign_agree_with_the_transformer(campaign):
    """The oracle itself: floats, rationals or balls, and the one transformer, on random models."""
    from certiformer.model.store import from_bytes
    from certiformer.model.tensor_file import arrays_to_bytes

    exact, forms = campaign["exact"], campaign["forms"]
    for seed in range(8):
        model = forms.draw_network(random.Random(seed))
        numbers = model.config["input"]["tokens"] * model.config["input"]["width"]
        x = np.random.default_rng(seed).integers(-8, 9, (2, numbers)) / 8
        mine = exact.floats(model, x)
        balls = [
            float(str(y.p)) / float(str(y.q)) if hasattr(y, "p") else float(y)
            for y in exact.exact(model, [Fraction(v) for v in x[0]])
        ]
        stored = from_bytes(json.dumps(model.config).encode(), arrays_to_bytes(model.tensors))
        theirs = np.asarray(stored.evaluate(x))
        assert np.abs(mine - theirs).max() < 1e-9 * (1 + np.abs(theirs).max())
        assert np.abs(mine[0] - balls).max() < 1e-9 * (1 + np.abs(mine[0]).max())
