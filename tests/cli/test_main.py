"""The frame of the command line: help, errors, exit codes, and what is never imported or shown."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module

import pytest

import certiformer
from certiformer.cli import main as main_module
from certiformer.cli.main import VERBS

HEAVY = ("jax", "jaxlib", "numpy", "equinox", "flint", "rich")


def run_python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env={**os.environ, **environment})


def test_without_a_verb_everything_is_listed(cli):
    for arguments in ([], ["--help"], ["help"]):
        done = cli(*arguments)
        assert done.code == 0 and done.err == ""
        assert all(f"\n  {verb} " in done.out for verb in VERBS)
        assert "certiformer build" in done.out


def test_version(cli):
    assert cli("--version").out == f"certiformer {certiformer.__version__}\n"


@pytest.mark.parametrize("verb", VERBS)
def test_every_help_has_examples_and_exit_codes(cli, verb):
    done = cli(verb, "--help")
    assert done.code == 0 and done.err == ""
    assert f"usage: certiformer {verb}" in done.out
    examples = done.out.partition("\nexamples:\n")[2]
    assert f"  certiformer {verb}" in examples and "exit codes: 0" in examples
    assert cli("help", verb).out == done.out


def test_a_misspelt_verb_gets_a_suggestion(cli):
    done = cli("chekc")
    assert (done.code, done.out) == (2, "")
    assert done.err == "certiformer: there is no verb 'chekc'; did you mean 'check'?\n"


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["build", "x1"], "--on"),
        (["build", "x1", "--on", "[0,1]", "--eps", "0.1", "--lev", "1"], "--level"),
        (["build", "x1", "--on", "[0,1]", "--eps", "0.1", "--level", "3"], "level"),
        (["build", "x1", "--on", "[0,1]", "--eps", "0.1", "--boxes", "1.5"], "--boxes"),
        (["build", "x1", "x2", "--on", "[0,1]", "--eps", "0.1"], "x2"),
        (["check"], "DIR"),
        (["show", "a", "b"], "b"),
    ],
)
def test_bad_usage_exits_2_and_as_json_it_is_one_object(cli, arguments, word):
    done = cli(*arguments)
    assert (done.code, done.out) == (2, "")
    assert word in done.err and "Traceback" not in done.err
    as_json = cli(*arguments, "--json")
    assert as_json.code == 2 and as_json.err == ""
    assert as_json.data["outcome"] == "error"
    assert word in as_json.data["reason"] and "│" not in as_json.data["reason"]


def test_a_defect_is_one_sentence_and_its_place_is_shown_on_request(cli, monkeypatch):
    def broken(given, terminal):
        raise ZeroDivisionError("ours")

    monkeypatch.setattr(main_module, "_dispatch", broken)
    monkeypatch.delenv("CERTIFORMER_DEBUG", raising=False)
    done = cli("build")
    assert done.code == 70 and done.err.count("\n") == 1
    assert "a defect of certiformer" in done.err and "ZeroDivisionError: ours" in done.err
    assert cli("build", "--json").data["outcome"] == "error"
    monkeypatch.setenv("CERTIFORMER_DEBUG", "1")
    assert "Traceback" in cli("build").err


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (PermissionError(13, "Permission denied", "/somewhere"), 2, "/somewhere: Permission denied"),
        (BrokenPipeError(), 141, ""),
        (SystemExit(0), 2, "the target's own code ended the program; a target may only compute"),
    ],
)
def test_what_the_system_says_is_one_sentence(cli, monkeypatch, error, code, sentence):
    def interrupted(given, terminal):
        raise error

    monkeypatch.setattr(main_module, "_dispatch", interrupted)
    done = cli("build")
    assert done.code == code
    assert done.err == (f"certiformer: {sentence}\n" if sentence else "")


def test_help_imports_nothing_heavy():
    """What makes `--help` fast; its seconds are measured in benchmarks/."""
    for arguments in (["--help"], ["build", "--help"]):
        done = run_python("-X", "importtime", "-m", "certiformer", *arguments)
        assert done.returncode == 0
        imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
        assert imported.isdisjoint(HEAVY), imported & set(HEAVY)
        assert "certiformer" in imported  # the table was read


def test_check_loads_neither_jax_nor_numpy(finished):
    program = (
        "import sys; from certiformer.cli.main import main; code = main(['check', sys.argv[1], '--json']);"
        "print(sorted({'jax', 'jaxlib', 'numpy', 'equinox'} & set(sys.modules)), 'flint' in sys.modules); sys.exit(code)"
    )
    done = run_python("-c", program, str(finished))
    assert done.returncode == 0
    assert json.loads(done.stdout.splitlines()[0])["outcome"] == "proved"
    assert done.stdout.splitlines()[1] == "[] True"


def test_a_reader_that_goes_away_is_no_error(finished):
    """The pipe is closed before anything is written: no traceback, not even when Python ends, and the outcome's code."""
    reader, writer = os.pipe()
    os.close(reader)
    for arguments, code in ((["check", str(finished), "--quiet"], 0), (["--help"], 0)):
        command = [sys.executable, "-m", "certiformer", *arguments]
        done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (code, "")
    os.close(writer)


def test_the_same_words_through_the_module_with_arguments(finished):
    done = run_python("-m", "certiformer", "show", str(finished), "--quiet")
    assert done.returncode == 0
    assert done.stdout.startswith("At every real point x1 of [0, 2*pi]")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["build", "x1", "--on", "[0,1]", "--epsilon", "0.1"], "there is no flag --epsilon; did you mean --eps?"),
        (["compile", "reverse", "--length", "eight"], "--length is a whole number, not 'eight'"),
        (["audit", "x", "--radius", "wide"], "--radius is a number, not 'wide'"),
        (["compile", "reverse", "--vocab", "a b c", "--length", "4"], "no blanks in them, as in a,b,c"),
        (["theorem", "voronoy"], "did you mean 'axioms.voronoi"),
    ],
)
def test_a_mistake_is_said_in_words_of_the_user(cli, arguments, sentence):
    done = cli(*arguments)
    assert done.code == 2 and done.out == "" and sentence in done.err
    assert "NoneType" not in done.err and "class" not in done.err and done.err.count("\n") == 1


def test_examples_in_the_help_are_one_command_a_line():
    from certiformer.cli.main import KINDS, VERBS

    modules = [*VERBS, *(f"{verb}_{kind}" for verb, kinds in KINDS.items() for kind in kinds)]
    for name in modules:
        module = import_module(f"certiformer.cli.{name}")
        for line in getattr(module, "EXAMPLES", "").splitlines():
            command, _, comment = line.partition("#")
            assert command.count("certiformer ") <= 1 and not comment.endswith("certiformer"), (name, line)
            assert len(line) <= 125, (name, line)
