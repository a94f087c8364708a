"""`check` of a recommender: the bound is derived again, and changed files are refused."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import pytest

import certiformer
from certiformer.kernel.certificate import Certificate, certificate_in
from certiformer.kernel.files import CERTIFICATE, CONFIG, HITS, MODEL, canonical, digest
from certiformer.kernel.meanings.hits import read_hits, replay, sentence
from recommend.shop import ITEMS


@pytest.fixture
def certified(shop, tmp_path):
    certiformer.recommend_guarantee(shop.directory)
    return shutil.copytree(shop.directory, tmp_path / "copy")


def resealed(folder, change):
    """The folder with other recorded hits, sealed as if they were right."""
    data = json.loads((folder / HITS).read_bytes())
    change(data)
    (folder / HITS).write_bytes(canonical(data))
    certificate = Certificate.from_bytes((folder / CERTIFICATE).read_bytes())
    certificate.seals[HITS] = digest((folder / HITS).read_bytes())
    (folder / CERTIFICATE).write_bytes(certificate.to_bytes())
    return certiformer.check(folder)


def test_the_bound_is_confirmed_and_said(cli, certified):
    verdict = certiformer.check(certified)
    assert verdict.accepted and "drawn independently" in verdict.sentence and "as recorded" in verdict.sentence
    done = cli("check", str(certified))
    assert done.code == 0 and "axiom binomial_tail" in done.out and "recommend card" in done.out


def test_the_sentence_has_the_numbers_of_the_file_and_no_others(certified):
    import re

    data = json.loads((certified / HITS).read_bytes())
    numbers = re.findall(r"[0-9][0-9.,]*[0-9]|[0-9]", certiformer.check(certified).sentence)
    hits = sum(row[3] for row in data["rows"])
    left_out = max(len({*seen}) for _, seen, _, _ in data["rows"])
    items = json.loads((certified / CONFIG).read_bytes())["outputs"]
    said = [hits, len(data["rows"]), 10, items, left_out, data["level"], data["lower"]]
    assert numbers == list(map(str, said)) and left_out > 0


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda data: data.update(lower="0.99"), "do not show a hit rate of 0.99"),
        (lambda data: data.update(tries=1000), "do not show a hit rate"),
        (lambda data: data.update(level="0.999999"), "do not show a hit rate"),
        (lambda data: data["rows"].pop(), "hit|users"),
        (lambda data: data.update(level="1.5"), "not between 0 and 1"),
        (lambda data: data["rows"][0].__setitem__(3, 2), "something else than numbers"),
        (lambda data: data.update(more=1), "exactly the entries"),
    ],
)
def test_what_is_not_shown_is_refused(certified, change, reason):
    verdict = resealed(certified, change)
    assert not verdict.accepted
    import re

    assert re.search(reason, verdict.reason)


def test_changed_files_are_refused(certified):
    data = json.loads((certified / HITS).read_bytes())
    data["lower"] = "0.00001"
    (certified / HITS).write_bytes(canonical(data))
    assert "does not match" in certiformer.check(certified).reason


def test_a_replay_confirms_hits_and_finds_a_wrong_one(cli, certified):
    done = cli("check", str(certified), "--replay", "4", "--json", "--quiet")
    assert done.code == 0 and done.data["replay"] == {"rows": 4, "right": 4, "wrong": [], "open": []}
    files = {name: (certified / name).read_bytes() for name in (MODEL, CONFIG, HITS, CERTIFICATE)}
    rows = read_hits(files[HITS])["rows"]
    resealed(certified, lambda data: data["rows"][1].__setitem__(3, 1 - rows[1][3]))
    files = {name: (certified / name).read_bytes() for name in files}
    assert replay(files, len(rows))["wrong"] == [2]
    assert certificate_in(files).subject == HITS
    wrong = cli("check", str(certified), "--replay", str(len(rows)))
    assert wrong.code == 1


def test_nobody_knows_which_rows_are_replayed(certified):
    resealed(certified, lambda data: next(row for row in data["rows"] if row[3]).__setitem__(3, 0))
    files = {name: (certified / name).read_bytes() for name in (MODEL, CONFIG, HITS, CERTIFICATE)}
    assert any(replay(files, 6)["wrong"] for _ in range(60))  # one row of 24 is missed 60 times once in 3e7


def test_what_is_left_out_is_said(certified):
    """With all other items left out everybody is a hit, and a reader of the sentence sees it."""

    def alone(data):
        data["rows"] = [[h, [i for i in range(ITEMS) if i != w], w, 1] for h, _, w, _ in data["rows"]]

    resealed(certified, alone)
    files = {name: (certified / name).read_bytes() for name in (MODEL, CONFIG, HITS, CERTIFICATE)}
    assert f"from {ITEMS} items, up to {ITEMS - 1} left out for a user" in sentence(files)


@pytest.mark.parametrize("row", [[[0], [], ITEMS, 1], [[-1], [], 0, 1], [[0], [10**9], 0, 1]])
def test_items_that_there_are_not_are_refused(certified, row):
    assert "none of the 40" in resealed(certified, lambda data: data["rows"].__setitem__(0, row)).reason


def test_what_is_left_out_is_no_hit(certified):
    assert "which is left out" in resealed(certified, lambda data: data.update(rows=[[[0], [1], 1, 1]] * 9)).reason
    resealed(certified, lambda data: data.update(rows=[[[0], [*range(ITEMS)], 1, 0]], lower="0"))
    files = {name: (certified / name).read_bytes() for name in (MODEL, CONFIG, HITS, CERTIFICATE)}
    assert replay(files, 1)["right"] == 1  # a miss, though nothing competes


def test_nobody_hit_is_a_bound_of_zero(certified):
    verdict = resealed(certified, lambda data: data.update(rows=[[[0], [], 1, 0]] * 9, lower="0.00001"))
    assert not verdict.accepted
    certificate = Certificate.from_bytes((certified / CERTIFICATE).read_bytes())
    proof = replace(certificate.proof, bound="1", parameters={"hits": 0, "users": 9})
    (certified / CERTIFICATE).write_bytes(replace(certificate, epsilon="1", upper="1", proof=proof).to_bytes())
    assert not resealed(certified, lambda data: None).accepted
    assert "at least 0." in resealed(certified, lambda data: data.update(lower="0")).sentence
    assert certiformer.check(certified).accepted


def test_a_history_that_cannot_be_read_is_no_defect(cli, certified):
    resealed(certified, lambda data: data.update(rows=[[[], *row[1:]] for row in data["rows"]]))
    done = cli("check", str(certified), "--replay", "3")
    assert done.code == 2 and "cannot be replayed: row" in done.err


def test_a_replay_is_for_recommenders(cli, tmp_path):
    done = cli("check", str(tmp_path), "--replay", "3")
    assert done.code == 2 and "for the folder of a recommender" in done.err


def test_other_commands_about_the_folder(cli, certified):
    assert "recommender" in cli("show", str(certified)).err
    assert cli("audit", str(certified), "--quiet").code == 0
    assert cli("export", str(certified), "--to", "torch", "--out", "plain").code == 0
