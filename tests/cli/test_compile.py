"""`certiformer compile`: what is written and said, and every mistake as one sentence with exit code 2."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import certiformer
from certiformer.kernel.files import digest
from certiformer.model.tensor_file import arrays_to_bytes
from report.live_page import without_script

MISTAKES = """import itertools
from certiformer.rasp import *

everyone = Select(indices, indices, Comparison.TRUE).named("everyone")
numbers = itertools.count()
raises = Map(lambda x: x + 1, tokens).named("next")
fickle = Map(lambda x: next(numbers), tokens).named("fickle")


def forever(x):
    return forever(x)


endless = Map(forever, tokens).named("endless")
listed = Map(lambda x: [x], tokens).named("listed")
infinite = Map(lambda x: float("inf"), tokens).named("infinite")
mixed = Aggregate(everyone, tokens).named("mixed")
pairs = SequenceMap(lambda a, b: (a, b), indices, length)
unbounded = SequenceMap(lambda a, b: (a, b), pairs, SequenceMap(lambda a, b: (a, b), indices, tokens)).named("unbounded")
right = Aggregate(Select(indices, indices + 1, Comparison.EQ), tokens).named("right")
inverse = (1 / tokens).named("inverse")
chain = tokens
for _ in range(10_000):
    chain = chain + 1
chain = (chain - 10_000).named("chain")
"""


@pytest.fixture
def mistakes(tmp_path, cli):
    (tmp_path / "mistakes.py").write_text(MISTAKES)
    return tmp_path


def test_a_library_program_is_compiled_certified_and_run(cli):
    done = cli("compile", "reverse", "--length", "6")
    assert done.code == 0
    said = " ".join(done.out.split())
    assert "program reverse on 1 to 6 of the tokens a, b, c" in said
    assert "certified For every input of 1 to 6 tokens" in said
    assert "certiformer check runs/reverse" in said
    assert done.out.index("bill ") < done.out.index("certified ")
    assert cli("run", "runs/reverse", "a b c", "--quiet").out == "c b a\n"


def test_json_is_one_object_with_the_sizes(cli):
    data = cli("compile", "hist", "--vocab", "1,2,x", "--length", "5", "--json", "--quiet").data
    assert (data["outcome"], data["level"], data["dtype"], data["vocab"]) == ("proved", 2, "float32", ["1", "2", "x"])
    assert data["parameters"] * 4 == data["bytes"] > 0 and data["causes"]


def test_numerals_are_integers_and_the_length_excludes_the_start(cli):
    assert cli("compile", "sort", "--vocab", "1,2,10", "--length", "3", "--out", "s", "--quiet").code == 0
    assert cli("run", "s", "10 2 1", "--quiet").out == "1 2 10\n"  # as strings 10 would come before 2
    assert "the stated length is 3" in cli("run", "s", "1 1 1 1").err


def test_check_accepts_and_runs_every_input(cli, compiled_reverse):
    done = cli("check", str(compiled_reverse))
    assert done.code == 0
    said = " ".join(done.out.split())
    assert "certified For every input of 1 to 4 tokens" in said
    assert "all 30 inputs were also run on this machine in float32, and each answer is right (a run, not part" in said
    data = cli("check", str(compiled_reverse), "--json", "--quiet").data
    assert data["outcome"] == "proved" and (data["run"]["tried"], data["run"]["wrong"]) == (30, None)
    assert cli("check", str(compiled_reverse), "--json", "--proof-only").data["run"] is None


@pytest.mark.parametrize(
    "name", ["model.safetensors", "config.json", "program.json", "circuit.json", "certificate.json"]
)
def test_one_changed_byte_is_refused(cli, compiled_reverse, tmp_path, name):
    folder = tmp_path / "copy"
    shutil.copytree(compiled_reverse, folder)
    data = bytearray((folder / name).read_bytes())
    data[len(data) // 2] ^= 1
    (folder / name).write_bytes(bytes(data))
    done = cli("check", str(folder))
    assert done.code == 1 and "refused" in done.out and "certified" not in done.out


def test_a_weight_moved_beyond_its_margin_is_refused_though_all_hashes_fit(cli, compiled_reverse, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(compiled_reverse, folder)
    compiled = certiformer.load(folder)
    tensors = dict(compiled.model.tensors)
    name = next(name for name in tensors if name.endswith(".ffn.down"))
    tensors[name] = np.where(tensors[name] != 0, tensors[name] * 1.5, tensors[name]).astype(tensors[name].dtype)
    (folder / "model.safetensors").write_bytes(arrays_to_bytes(tensors))
    seals = {**compiled.certificate.seals, "model.safetensors": digest(arrays_to_bytes(tensors))}
    (folder / "certificate.json").write_bytes(replace(compiled.certificate, seals=seals).to_bytes())
    done = cli("check", str(folder))
    assert done.code == 1 and "refused" in done.out and "certified" not in done.out


def test_a_wrong_answer_of_a_run_is_a_failure_whatever_was_proved(cli, compiled_reverse, monkeypatch):
    from certiformer.compiler.programs.decode import Decoder

    right = Decoder.places
    monkeypatch.setattr(Decoder, "places", lambda self, outputs: (right(self, outputs) + 1) % 3)
    done = cli("check", str(compiled_reverse))
    assert done.code == 1
    assert "on this machine the input a is answered by b at position 0, where the program says a" in " ".join(
        done.out.split()
    )


def test_realistic_weights_are_run_and_not_called_certified(cli):
    done = cli("compile", "copy", "--vocab", "a,b", "--length", "2", "--rotate", "--out", "r", "--quiet")
    assert done.code == 3 and "all 6 inputs were tried and answered rightly" in " ".join(done.out.split())
    assert "basis.json" in done.out and "certified  For" not in done.out
    assert cli("run", "r", "a b", "--quiet").out == "a b\n"
    assert cli("run", "r", "a b", "--trace").code == 0
    done = cli("check", "r")
    assert done.code == 3 and "undecided" in done.out
    assert "--compress is the width of the stream" in cli("compile", "copy", "--length", "2", "--compress", "0").err


@pytest.mark.parametrize(
    ("program", "flags", "sentence"),
    [
        ("raises", "--vocab a,b", "next raises TypeError: can only concatenate str"),
        ("fickle", "--vocab a", "fickle gives 0 and then 1 on the same 'a'"),
        ("endless", "--vocab a", "endless does not end on 'a'"),
        ("listed", "--vocab a", "listed returns what is not a value on 'a': a list is not a value"),
        ("infinite", "--vocab a", "infinite returns what is not a value on 'a': inf is not a value"),
        ("mixed", "--vocab a,b", "mixed selects both 'a' and 'b' on the input 'a', 'b', and they have no mean"),
        ("unbounded", "--vocab a,b --length 90", "unbounded is a map written in Python on 1,458,000 combinations"),
        ("right", "--vocab a,b --causal", "looks right: on the input 'a', 'a' position 0 selects position 1"),
        ("everyone", "--vocab a", "a program is a sequence of values"),
        ("inverse", "", "--vocab says which tokens the inputs are made of"),
        ("inverse", "--vocab 1,,2", "--vocab is a list of tokens with commas between them"),
        ("inverse", "--vocab 1,1", "1"),
        ("inverse", "--vocab 1 --length 0", "length"),
        ("nothing", "--vocab a", "has no program 'nothing'"),
    ],
)
def test_every_mistake_is_one_sentence_that_names_the_expression(cli, mistakes, program, flags, sentence):
    length = [] if "--length" in flags else ["--length", "4"]
    done = cli("compile", f"mistakes.py:{program}", *flags.split(), *length, "--quiet", "--out", "out")
    assert done.code == 2
    assert sentence in done.err and done.err.count("\n") == 1 and "Traceback" not in done.err
    assert not (mistakes / "out").exists()


def test_a_length_is_asked_for(cli):
    assert "--length says how many tokens an input may have" in cli("compile", "reverse").err


@pytest.mark.parametrize(
    ("program", "flags", "tokens", "answer"),
    [
        ("inverse", "--vocab 0,2", "0 2", "None 0.5"),  # division by zero inside a map is undefined
        ("chain", "--vocab 1,2", "2 1", "2 1"),  # 10,000 nodes
        ("right", "--vocab a --length 1", "a", "None"),  # one symbol, one token
    ],
)
def test_odd_programs_compile(cli, mistakes, program, flags, tokens, answer):
    length = [] if "--length" in flags else ["--length", "3"]
    done = cli("compile", f"mistakes.py:{program}", *flags.split(), *length, "--quiet", "--out", "out")
    assert done.code == 0, done.err
    assert cli("run", "out", tokens, "--quiet").out == f"{answer}\n"


def test_a_table_is_a_program(cli, tmp_path):
    (tmp_path / "xor.csv").write_text("x,y,out\n0,0,no\n0,1,yes\n1,0,yes\n1,1,no\n")
    assert cli("compile", "xor.csv", "--quiet").code == 0
    assert cli("run", "runs/xor", "0 1", "--quiet").out == "yes yes\n"
    assert cli("check", "runs/xor").code == 0


def test_a_dtype_that_cannot_carry_it_says_what_can(cli):
    done = cli("compile", "length", "--length", "300", "--dtype", "bfloat16", "--quiet")
    assert done.code == 2
    assert "bfloat16 cannot carry length at length 300" in done.err and "float32 can" in done.err
    assert "bfloat16 can up to length " in done.err


def test_an_earlier_folder_is_replaced_only_on_request(cli):
    arguments = ("compile", "copy", "--length", "2", "--out", "c", "--quiet")
    assert cli(*arguments).code == 0
    refused = cli(*arguments)
    assert refused.code == 2 and "add --force" in refused.err
    assert cli(*arguments, "--force").code == 0


def test_limits_are_the_lengths_that_were_proved(cli):
    data = cli("compile", "count", "--length", "4", "--limits", "--seconds", "3", "--json", "--quiet").data
    limits = [data["limits"][dtype] for dtype in ("float64", "float32", "bfloat16")]
    assert all(limit["proved"] >= 1 for limit in limits)
    # How far the search comes depends on the machine; but what a narrower type carries, a wider one does not refuse.
    for wide, narrow in pairwise(limits):
        assert wide["refused"] is None or narrow["proved"] < wide["refused"]


def test_the_drawing_is_written_on_request(cli, tmp_path):
    assert cli("compile", "shift", "--length", "4", "--show", "--quiet").code == 0
    page = without_script((tmp_path / "runs" / "shift" / "circuit.html").read_text())
    assert "<svg" in page and "certified" in page and "http" not in page.replace("http-equiv", "")


def test_compiling_needs_no_jax(tmp_path):
    program = (
        "import sys, certiformer; from certiformer.rasp.library import catalogue;"
        "made = certiformer.compile(catalogue()['reverse'].make(), vocab={'a', 'b'}, length=4);"
        "made.save(sys.argv[1]); print(made.certified, sorted({'jax', 'jaxlib', 'equinox'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "r")], capture_output=True, text=True, timeout=120
    )
    assert done.stdout == "True []\n", done.stderr
