"""The bibliography: every entry is complete enough to print, and a wrong key gets a suggestion."""

import re

import pytest

from certiformer.errors import BadInput
from certiformer.theorem import BIBLIOGRAPHY, bibtex, cite


@pytest.mark.parametrize("key", sorted(BIBLIOGRAPHY))
def test_every_entry_prints(key):
    fields = BIBLIOGRAPHY[key]
    assert bibtex(key).startswith(f"@{fields['type']}{{{key},\n")
    assert bibtex(key).count("{") == bibtex(key).count("}")
    assert fields["title"] in cite(key)
    assert "\n" not in cite(key)


@pytest.mark.parametrize("key", sorted(set(BIBLIOGRAPHY) - {"classical"}))
def test_every_work_has_an_author_and_the_year_of_its_key(key):
    fields = BIBLIOGRAPHY[key]
    parts = re.fullmatch(r"([a-z]+)(\d{4})b?", key)  # b: the second work of an author and a year
    assert parts is not None
    assert fields["year"] == parts[2]
    assert fields["author"].partition(",")[0].lower().removeprefix("von ").replace("é", "e").startswith(parts[1])
    if "eprint" in fields:
        assert re.fullmatch(r"\d{4}\.\d{4,5}", fields["eprint"])


def test_a_wrong_key_gets_a_suggestion():
    with pytest.raises(BadInput, match="did you mean 'gumaan2025'?"):
        bibtex("guman2025")
    with pytest.raises(BadInput, match=f"known keys are {', '.join(sorted(BIBLIOGRAPHY))}"):
        cite("?")


def test_entries_cannot_be_changed():
    with pytest.raises(TypeError):
        BIBLIOGRAPHY["moore1966"]["year"] = "1967"  # type: ignore[index]
