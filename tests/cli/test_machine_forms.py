"""`compile machine --form`, and `run`, `check`, `show` of the three forms."""

from __future__ import annotations

import json

import pytest

from certiformer import load
from certiformer.cli.main import main
from certiformer.compiler.machines import simulate
from certiformer.compiler.machines.examples import INCREMENT, increment

FORMS = ("looped", "chain-of-thought", "encoder-decoder")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    place = tmp_path_factory.mktemp("machines")
    (place / "increment.toml").write_text(INCREMENT)
    for form in FORMS:
        horizon = ["--tape", "20"] if form == "looped" else ["--steps", "8", "--symbols", "4"]
        arguments = ["compile", "machine", str(place / "increment.toml"), "--form", form, "--out", str(place / form)]
        assert main([*arguments, *horizon, "--quiet"]) == 0
    return place


@pytest.mark.parametrize("form", FORMS)
def test_the_forms_say_the_same(folders, form, capsys):
    assert main(["run", str(folders / form), "1 0 1 1", "--steps", "8", "--trace", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    wanted = simulate(increment(), "1011")
    used = [symbol for symbol in facts["tape"] if symbol != "_"]
    assert (facts["halted"], facts["steps"], facts["state"], facts["ones"]) == (True, wanted.steps, "done", 4)
    assert used == ["1", "1", "0", "0"] and facts["cell"] == wanted.cell
    assert facts["trace"][0] == [0, "right", 0, "1"] and facts["trace"][-1] == [wanted.steps, "done", wanted.cell, "1"]
    assert main(["check", str(folders / form)]) == 0 and main(["show", str(folders / form)]) == 0


@pytest.mark.parametrize("form", FORMS[1:])
def test_the_horizon_is_one_sentence(folders, form, capsys):
    # It stops before the horizon: more steps may be asked for.
    assert main(["run", str(folders / form), "1", "--steps", "5000", "--quiet"]) == 0
    assert capsys.readouterr().out == "[1] 0\n"
    assert main(["run", str(folders / form), "1 1 1 1 1"]) == 2
    assert "reads at most 4 input symbols, not 5" in capsys.readouterr().err
    assert main(["run", str(folders / form), "1", "--steps", "-1"]) == 2


def test_a_run_beyond_the_horizon(folders, capsys):
    assert main(["run", str(folders / "encoder-decoder"), "1111", "--steps", "9"]) == 2
    assert "is proved for 8 steps, and the machine has not stopped by then" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--steps", "9"], "--steps is not for the form looped, which runs any number of steps"),
        (
            ["--form", "chain-of-thought", "--tape", "9"],
            "--tape is not for the form chain-of-thought, whose tape is free",
        ),
        (["--form", "encoder-decoder", "--steps", "9999"], "is proved for at most 941 steps, not 9,999"),
        (["--form", "chain-of-thought", "--steps", "0"], "is for 1 to 20,000 steps, not 0"),
        (["--form", "chain-of-thought", "--dtype", "bfloat16"], "stored in float64 or float32, not 'bfloat16'"),
    ],
)
def test_mistakes(folders, tmp_path, flags, message, capsys):
    arguments = ["compile", "machine", str(folders / "increment.toml"), "--out", str(tmp_path / "none")]
    assert main([*arguments, *flags]) == 2
    assert message in " ".join(capsys.readouterr().err.split()) and not (tmp_path / "none").exists()


def test_forms_are_told_apart(folders):
    assert [type(load(folders / form).subject).__name__ for form in FORMS] == [
        "LoopedMachine", "ChainOfThought", "EncoderDecoder",
    ]  # fmt: skip


def test_costs_over_inputs(folders, capsys):
    assert main(["run", str(folders / "looped"), "--costs", "3", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["proved"] and facts["states"] == {"done": 15} and facts["costliest"] == ["1", "1", "1"]
    assert facts["lengths"][3]["most"] == 8 and sum(count for _, count in facts["histogram"]) == 15
    assert main(["run", str(folders / "looped"), "--costs", "3"]) == 0
    assert "run by the transformer, it took as many" in " ".join(capsys.readouterr().out.split())
    assert main(["run", str(folders / "looped"), "11", "--costs", "3"]) == 2
