"""`certiformer show`: what the folder says, without the word that only the checker may use."""

from __future__ import annotations

import shutil
import webbrowser
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest

from certiformer.kernel.check import check
from report.live_page import without_script


@pytest.fixture
def opened(monkeypatch, tmp_path) -> list[str]:
    """The addresses that were handed to a browser; pages are drawn in a folder that goes away."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
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


def test_open_draws_the_report_and_changes_nothing_in_the_folder(cli, folder, opened):
    (folder / "report.html").unlink()
    before = {path: path.read_bytes() for path in folder.iterdir()}
    assert "report     none;" in cli("show", str(folder)).out
    assert cli("show", str(folder), "--open").code == 0
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
    page = drawn(opened)
    # Nobody has checked this folder now, so the page must not say that somebody did.
    assert "proved, as recorded" in page and "nothing of that was checked" in page and ">certified<" not in page
    assert "<p>Recorded, not checked: The largest error" in page


@pytest.mark.parametrize("kind", ["function", "program"])
def test_a_page_that_lies_in_the_folder_is_not_opened(cli, folder, compiled_reverse, tmp_path, opened, kind):
    """Whoever made the folder may have written it: it could say, and run in the browser, anything."""
    if kind == "program":
        folder = shutil.copytree(compiled_reverse, tmp_path / "program")
    for name in ("report.html", "circuit.html"):
        (folder / name).write_text("<script>certified</script>", encoding="utf-8")
    assert cli("show", str(folder), "--open").code == 0
    page = without_script(drawn(opened))
    assert "proved, as recorded" in page and ">certified<" not in page and "<script" not in page


def drawn(opened: list[str]) -> str:
    """The one page that a browser was given."""
    (address,) = opened
    return Path(unquote(urlparse(address).path)).read_text(encoding="utf-8")


def test_only_the_checker_calls_a_folder_certified(finished, compiled_reverse):
    """Read into Python, a folder says what it records and no more; its maker may have recorded anything."""
    from certiformer import load

    for folder in (finished, compiled_reverse):
        assert check(folder).accepted
        again = load(folder)
        assert not again.certified and "proved, as recorded" in repr(again) and "certified" not in repr(again)
    assert "certified" not in load(finished)._repr_html_()
    # Negative control: what was made here and accepted is called so.
    assert "certified" in repr(replace(load(finished), recorded=False))


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "target.json", "certificate.json"])
def test_a_damaged_folder_is_one_sentence(cli, folder, name):
    (folder / name).write_bytes(b"{")
    done = cli("show", str(folder))
    assert (done.code, done.out) == (2, "")
    assert done.err.count("\n") == 1 and "Traceback" not in done.err


def test_what_is_not_a_run_folder_is_one_sentence(cli):
    done = cli("show", "gone", "--json")
    assert done.code == 2 and "is not the folder of a finished run" in done.data["reason"]
