"""`certiformer show`: what the folder says, without the word that only the checker may use."""

from __future__ import annotations

import webbrowser

import pytest

from certiformer.checker import check


@pytest.fixture
def opened(monkeypatch) -> list[str]:
    """The addresses that were handed to a browser."""
    addresses: list[str] = []

    def remember(address: str) -> bool:
        addresses.append(address)
        return True

    monkeypatch.setattr(webbrowser, "open", remember)
    return addresses


def test_claim_limits_sizes_and_rules(cli, finished, opened):
    done = cli("show", str(finished))
    assert done.code == 0 and done.err == ""
    for part in ("claim ", "recorded   proved at level 2", "error ", "rests on", "size ", "not said", "report "):
        assert part in done.out
    assert "certified" not in done.out
    assert opened == []


def test_the_sentence_is_the_checkers_own(cli, finished):
    sentence = check(finished).sentence
    assert cli("show", str(finished), "--quiet").out == f"{sentence}\n"


def test_json_counts_agree_with_the_model(cli, finished):
    from certiformer import load

    data, run = cli("show", str(finished), "--json").data, load(finished)
    facts = run.summary()
    for name in ("outcome", "level", "method", "nonzero", "dense", "heads", "registers", "rules", "leaves"):
        assert data[name] == facts[name], name
    assert data["not_claimed"] and data["bytes"] == (finished / "model.safetensors").stat().st_size


def test_open_shows_the_report_and_draws_it_when_missing(cli, folder, opened):
    assert cli("show", str(folder), "--open").code == 0
    assert opened == [(folder / "report.html").resolve().as_uri()]
    (folder / "report.html").unlink()
    assert "none yet" in cli("show", str(folder)).out
    assert cli("show", str(folder), "--open").code == 0
    # Nobody has checked this folder now, so the page must not say that somebody did.
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "proved, as recorded" in page and ">certified<" not in page


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "target.json", "certificate.json"])
def test_a_damaged_folder_is_one_sentence(cli, folder, name):
    (folder / name).write_bytes(b"{")
    done = cli("show", str(folder))
    assert (done.code, done.out) == (2, "")
    assert done.err.count("\n") == 1 and "Traceback" not in done.err


def test_what_is_not_a_run_folder_is_one_sentence(cli):
    done = cli("show", "gone", "--json")
    assert done.code == 2 and "is not the folder of a finished run" in done.data["reason"]
