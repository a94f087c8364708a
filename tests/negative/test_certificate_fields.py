"""Every field of every kind of certificate is either compared with what was proved or printed as recorded only.

A forger may write anything into a certificate and compute all seals anew. What he writes into a compared field must be
refused unless it says less than what is proved; what he writes into a recorded one must change neither the verdict nor
any line that calls something proved.
"""

from __future__ import annotations

import json
from dataclasses import fields
from fractions import Fraction

import pytest

from certiformer.kernel.certificate import COMPARED, MEANINGFUL, RECORDED, SUBJECTS, Certificate
from certiformer.kernel.check import check
from certiformer.kernel.files import BASIS, CIRCUIT, DESCRIPTIONS, LEAVES, PROGRAM, TARGET
from negative.kinds import COMMANDS, certificate_of, copied, in_process, put_certificate

WORD = "forgedword"
NONSENSE = {"point": ["1"], "output": 0, "error": "7"}


def better(field: str, honest: dict, least: str | None) -> list:
    """Values of a compared field that claim more than is proved (an error of at most `least`), or claim
    where such a claim has nothing to say."""
    value = honest.get(field)
    proved = honest["outcome"] == "proved"
    if field in ("upper", "epsilon"):
        smaller = [str(Fraction(least) * Fraction(9, 10)), "1e-60", "0"] if least and Fraction(least) > 0 else []
        if field == "epsilon":
            # A smaller tolerance is refuted all the more, and an undecided one still claims nothing.
            return [*(smaller if proved else []), "-1", "1\n", "nan"]
        return [*smaller, "-1"] if proved else ["0.1", "0", "1e299"]
    if field == "lower":
        return [str(Fraction(value) * Fraction(11, 10)), "5"] if value else ["5", "0.1"]
    if field == "run_error":
        return ["0", "-1", str(Fraction(value) / 1000)] if value else ["0"] if "wrong dtype" in honest else []
    if field == "witness":
        forged = [{**NONSENSE, "point": [str(10**9)] * 3}, NONSENSE]
        if value:
            forged += [{**value, "error": "7"}, {**value, "output": 5}, {**value, "output": -1}, {**value, "point": []}]
        return forged
    if field == "outcome":
        return [word for word in ("proved", "refuted", "invalid") if word != value]
    if field == "seals":
        return [{}, {**value, "more.json": "0"}, {name: text for name, text in value.items() if name != "config.json"}]
    if field == "proof":
        return better_proofs(value, proved)
    raise AssertionError(f"the field {field} is compared, and this test does not know a better value of it")


def better_proofs(proof: dict | None, proved: bool) -> list:
    if not proved:
        return [
            {"rule": "boxes", "bound": "0.1", "order": 3, "offset": 0, "length": 1},
            {"rule": "situations", "bound": "0"},
        ]
    forged: list = [None, {"rule": "theorem", "bound": proof["bound"], "id": WORD, "parameters": {}}]
    return [*forged, {**proof, "bound": "1e-60"}, {**proof, "bound": "-1"}] if proof["bound"] != "0" else forged


def other(field: str, honest: dict) -> list:
    """Other values of a recorded field."""
    return {
        "level": [0, 1, 2],
        "method": [WORD],
        "reason": [WORD, "<= 1e-30"],
        "apriori": [None, "0", "1e-30"],
        "assumptions": [[], [WORD]],
        "versions": [{}, {WORD: WORD}],
        "seconds": [{}, {WORD: 1e-9}],
    }[field]


def test_every_field_is_of_one_sort():
    names = {field.name for field in fields(Certificate)}
    assert {*COMPARED, *RECORDED} == names and not {*COMPARED} & {*RECORDED}
    assert {*SUBJECTS} == {TARGET, PROGRAM, *DESCRIPTIONS} and {*MEANINGFUL} == {*SUBJECTS, LEAVES, CIRCUIT, BASIS}
    honest = {name: None for name in names} | {"outcome": "proved", "seals": {}, "proof": {"bound": "1"}}
    for name in RECORDED:  # a new field has no entry here, and fails
        assert other(name, honest)
    for name in COMPARED:
        assert better(name, honest | {"wrong dtype": True}, "1")


@pytest.mark.parametrize("kind", COMMANDS)
def test_a_better_value_of_a_compared_field_is_refused(folders, tmp_path, kind):
    honest = certificate_of(folders[kind])
    before = check(folders[kind], workers=1)
    assert before.outcome == honest["outcome"]
    for field in COMPARED:
        for value in better(field, honest, before.upper):
            folder = copied(folders[kind], tmp_path / "copy")
            put_certificate(folder, {**honest, field: value})
            verdict = check(folder, workers=1)
            assert verdict.outcome == "refused", (field, value, verdict)
            assert verdict.exit_code == 1 and verdict.upper is None and verdict.lower is None


def test_a_bound_for_runs_is_refused_where_there_is_no_such_claim(folders, tmp_path):
    for kind in (*(kind for kind in COMMANDS if " " in kind), "table", "program", "circuit", "gradient", "theorem"):
        honest = certificate_of(folders[kind])
        folder = copied(folders[kind], tmp_path / "copy")
        put_certificate(folder, {**honest, "run_error": "0"})
        assert check(folder, workers=1).outcome == "refused", kind


def test_weaker_values_are_fine(folders, tmp_path):
    """The negative control of the test above: it is not the change that is refused."""
    for kind, change in {
        "theorem": {"upper": "0.2", "lower": "0.0001"},
        "boxes": {"epsilon": "0.3", "upper": None},
        "dtype": {"run_error": "0.5"},
        "table": {"upper": "1e-6", "epsilon": "1"},
    }.items():
        honest = certificate_of(folders[kind])
        folder = copied(folders[kind], tmp_path / "copy")
        put_certificate(folder, {**honest, **change})
        assert check(folder, workers=1).outcome == "proved", kind


@pytest.mark.parametrize("kind", COMMANDS)
def test_a_recorded_field_changes_no_verdict_and_is_printed_as_recorded(folders, tmp_path, kind):
    honest = certificate_of(folders[kind])
    before = check(folders[kind], workers=1)
    absent = "apriori" if SUBJECTS.index(Certificate.from_bytes(
        (folders[kind] / "certificate.json").read_bytes()).subject) > 0 else ""  # fmt: skip
    for field in RECORDED:
        for value in other(field, honest):
            folder = copied(folders[kind], tmp_path / "copy")
            put_certificate(folder, {**honest, field: value})
            verdict = check(folder, workers=1)
            if field == absent and value is not None:
                assert verdict.outcome == "refused"
                continue
            same = (verdict.outcome, verdict.level, verdict.upper, verdict.lower, verdict.sentence, verdict.exit_code)
            assert same == (
                before.outcome, before.level, before.upper, before.lower, before.sentence, before.exit_code
            ), (field, value)  # fmt: skip
            for verb in ("check", "show") if WORD in str(value) or "1e-30" in str(value) else ():
                require_marked(verb, str(folder))


def require_marked(verb: str, folder: str) -> None:
    """A forged word stands only in sentences that say that it is recorded."""
    more = ["--proof-only", "--quiet"] if verb == "check" else []
    _, out, _ = in_process(verb, folder, *more)
    text = " ".join(out.split())
    for part in text.split(WORD)[:-1]:
        assert "recorded" in part[-400:], text
    assert "1e-30" not in text or "recorded" in text.split("1e-30")[0][-60:]


def test_show_never_says_that_something_is_proved_without_saying_who_decides(folders):
    for kind in COMMANDS:
        code, out, _ = in_process("show", str(folders[kind]))
        text = " ".join(out.split())
        assert code == 0 and "certified" not in text.replace("not certified", "")
        assert f"certiformer check '{folders[kind]}'" in text or f"certiformer check {folders[kind]}" in text
        assert "recorded, not checked" in text
        for label in ("error", "rests on", "runs"):
            lines = [line for line in out.splitlines() if line.startswith(label.ljust(11))]
            assert all("claimed, not checked" in line or "no proof" in line for line in lines), lines
        code, out, _ = in_process("show", str(folders[kind]), "--json")
        assert code == 0 and json.loads(out)["checked"] is False


@pytest.mark.parametrize("kind", COMMANDS)
def test_a_file_that_would_change_the_reading_is_refused(folders, tmp_path, kind):
    honest = certificate_of(folders[kind])
    for name in MEANINGFUL:
        if name in honest["seals"]:
            continue
        folder = copied(folders[kind], tmp_path / "copy")
        (folder / name).write_bytes(b"{}")
        verdict = check(folder, workers=1)
        assert verdict.outcome == "refused" and name in verdict.reason
        assert in_process("show", str(folder))[0] == 2
        if (kind, name) != ("program", BASIS):  # which may be there: no claim rests on it
            put_certificate(folder, {**honest, "seals": {**honest["seals"], name: "0"}})
            assert check(folder, workers=1).outcome == "refused"
    folder = copied(folders[kind], tmp_path / "copy")
    (folder / "notes.txt").write_bytes(b"{}")  # any other file says nothing
    assert check(folder, workers=1).outcome == honest["outcome"]


def test_exit_code_zero_means_that_this_very_check_accepted(folders, tmp_path):
    """A folder of level 1 is proved by `check` or it is refused; what level was recorded does not count."""
    assert certificate_of(folders["level 1"])["level"] == 1
    code, out, _ = in_process("check", str(folders["level 1"]), "--json", "--quiet")
    assert (code, json.loads(out)["outcome"], json.loads(out)["level"]) == (0, "proved", 2)
    for level in (0, 1, 2):
        folder = copied(folders["level 1"], tmp_path / "copy")
        data = certificate_of(folder)
        put_certificate(folder, {**data, "level": level, "proof": {**data["proof"], "bound": "1e-9"}})
        code, out, _ = in_process("check", str(folder), "--json", "--quiet")
        assert (code, json.loads(out)["outcome"]) == (1, "refused")
    for kind in COMMANDS:
        verdict = check(folders[kind], workers=1)
        assert (verdict.exit_code == 0) == verdict.accepted == (certificate_of(folders[kind])["outcome"] == "proved")
