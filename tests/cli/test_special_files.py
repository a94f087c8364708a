"""A pipe, a device, a huge file in the place of a file that a command names: one sentence, at once."""

from __future__ import annotations

import os

import pytest

from certiformer.reading import LARGEST_TEXT, read_text

COMMANDS = [
    ("build", "in.csv", "--inputs", "x1", "--outputs", "y"),
    ("build", "x1", "--on", "[0,1]", "--eps", "0.1", "--config", "in.toml"),
    ("compile", "in.csv"),
    ("compile", "machine", "in.toml"),
    ("compile", "automaton", "in.toml", "--length", "3"),
    ("compile", "circuit", "in.toml"),
    ("compile", "circuit", "in.blif"),
    ("audit", "in.onnx"),
    ("audit", "in.gguf"),
    ("audit", "in.safetensors"),
]


def pipe(path):
    os.mkfifo(path)


def device(path):
    path.symlink_to("/dev/zero")


def huge(path):
    with open(path, "wb") as file:
        file.truncate(LARGEST_TEXT + 1)


@pytest.mark.parametrize("kind", [pipe, device, huge], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_what_is_no_file_of_a_moderate_size_is_refused(cli, tmp_path, kind, words):
    """Nobody writes into the pipe: reading it would never end."""
    name = next(word for word in words if word.startswith("in."))
    kind(tmp_path / name)
    done = cli(*words, "--json")
    assert done.code == 2 and done.data["outcome"] == "error" and name in done.data["reason"]
    if kind is not huge or words[0] != "audit":  # checkpoints are read in pieces; this one is merely none
        assert "not a regular file" in done.data["reason"] or "the most that is read" in done.data["reason"]
    assert os.listdir(tmp_path) == [name]


def test_an_ordinary_file_is_read_as_it_is(tmp_path):
    (tmp_path / "text").write_bytes("a,é\r\n1,2\n".encode())
    assert read_text(tmp_path / "text") == "a,é\r\n1,2\n"
