"""Numbers with thousands of digits, nesting without end, repetitions of repetitions: one sentence before the work starts."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

MANY = "9" * 5000
DEEP = "(" * 10_000 + "x1" + ")" * 10_000
BUILD = ("--on", "[0,1]", "--eps", "0.1")
FILES = {
    "digits.toml": f"start = {MANY}",
    "deep.toml": "start = " + "[" * 10_000 + "]" * 10_000,
    "seconds.toml": f"eps = {MANY}",
    "deep.json": "[" * 100_000 + "]" * 100_000,
    "digits.json": f'{{"inputs": {MANY}}}',
    "machine.toml": 'blank = "0"\nstart = "A"\nhalt = ["H"]\ntransitions = [["A", "0", "1", "R", "H"]]\nmissing = "halt"\n',
    "wide.toml": 'start = "s"\naccept = []\ntransitions = ['
    + ", ".join(f'["s{i}", "{j}", "s"], ["s", "{j}", "s{i}"]' for i in range(1000) for j in range(9))
    + ']\nmissing = "reject"',
}
FORMULAS = [
    f"{MANY}*x1", "x1 + 1/(1e-400)", "x1*1e400", "x1*1e999999999", "x1*1e-999999999", "10**10**10*x1", "2**(10**9)*x1",
    "x1**1000000", f"x1**{MANY}", "(x1+1)**100000", "9**9**9**9", DEEP, "sin(" * 10_000 + "x1" + ")" * 10_000,
    "+".join(["x1"] * 100_000), f"x{MANY}", "x1000000000", "1e300*x1*1e300", f"x1 + 0x{'f' * 5000}",
]  # fmt: skip
BOXES = [
    f"[0,{MANY}]",
    "[0,1e400]",
    "[0,10**10**10]",
    "[0,1/(1e-400)]",
    f"[0,1]^{MANY}",
    "[0,1]^1000000000",
    "[" * 10_000,
]
EPSILONS = [MANY, "1e-999999999", f"1/{MANY}", "10**-10**10", "1/(1e-400)", "1e999999999", DEEP]
EXPRESSIONS = [
    "((a{1000}){1000}){1000}", "(a{1000}){1000}", "((a{1,1000}){1,1000})", f"a{{{MANY}}}", "((((((a{9}){9}){9}){9}){9}){9}){9}",
    "a" * 100_000, "(" * 10_000 + "a" + ")" * 10_000, "(a|" * 3000 + "b" + ")" * 3000, "a{50}^b{50}^c{50}", "a{500}^b{500}",
    "(a{300})*&(a{299})*&(a{298})*", "(a?){1000}", "((a?){30}){30}", "(a{1000})+b", "(a|b)*a(a|b){1000}", "[a-z]{1000}",
    "((a{900,}){900,})", "(a*){1000}{1000}",
]  # fmt: skip
LEARNER = ("--features", "2", "--strength", "0.1")
REFUSED: list[tuple[str, ...]] = [
    *(("build", formula, *BUILD) for formula in FORMULAS),
    *(("build", "x1", "--on", box, "--eps", "0.1") for box in BOXES),
    *(("build", "x1", "--on", "[0,1]", "--eps", epsilon) for epsilon in EPSILONS),
    *(("build", "x1", *BUILD, flag, MANY) for flag in ("--seed", "--tokens", "--boxes", "--order", "--out-width")),
    *(("build", "x1", *BUILD, flag, "1000000000000") for flag in ("--tokens", "--out-tokens", "--out-width", "--order")),
    ("build", "x1", *BUILD, "--seed", "-1"),
    ("build", "x1", "--on", "[0,1]", "--config", "seconds.toml"),
    *(("build", name, "--tokens", "100000000") for name in ("sort", "count", "parity", "majority", "hist", "induction")),
    *(("prove", "nowhere", formula, *BUILD) for formula in FORMULAS[:6]),
    *(("compile", "reverse", "--length", length) for length in (MANY, "1000000000000", "-1", "0")),
    ("compile", "reverse", "--length", "4", "--vocab", f"{MANY},a"),
    ("compile", "reverse", "--length", "4", "--seed", "-1", "--rotate"),
    *(("compile", "automaton", expression, "--length", "10") for expression in EXPRESSIONS),
    *(("compile", "automaton", "(ab)*", "--length", length) for length in (MANY, "1000000000000", "0")),
    *(("compile", "automaton", name, "--length", "5") for name in ("digits.toml", "deep.toml", "wide.toml")),
    ("compile", "automaton", "wide.toml", "--length", "5", "--form", "chain-of-thought"),
    *(("compile", "machine", name) for name in ("digits.toml", "deep.toml")),
    *(("compile", "machine", "machine.toml", "--tape", tape) for tape in (MANY, "1000000000000", "1000000", "0")),
    *(("compile", "machine", "machine.toml", "--form", form, flag, size)
      for form in ("chain-of-thought", "encoder-decoder") for flag in ("--steps", "--symbols") for size in (MANY, "1000000")),
    *(("compile", "circuit", name) for name in ("digits.toml", "deep.toml", "digits.json", "deep.json")),
    *(("compile", "incontext", learner, "--features", "1000", "--strength", strength)
      for learner, strength in (("ridge", "0.1"), ("relu", "0.1"), ("lasso", "0.1"), ("select", "0.1,1"))),
    *(("compile", "incontext", learner, *LEARNER, "--layers", "100000000") for learner in ("ridge", "relu", "lasso")),
    ("compile", "incontext", "gd", "--features", "2", "--layers", "100000000"),
    *(("compile", "incontext", "ridge", *LEARNER, "--rows", rows) for rows in (MANY, "1000000000000")),
    *(("compile", "incontext", "ridge", "--features", "2", "--strength", strength) for strength in (MANY, "1e400", "0")),
    ("compile", "incontext", "ridge", *LEARNER, "--bound", "1e400"),
    *(("rates", "pod", kernel) for kernel in (f"u*{MANY}", "u**1000000", DEEP)),
    *(("rates", "pod", "u*v", "--nodes", nodes) for nodes in (MANY, "1000000000", "0")),
    ("rates", "pod", "u*v", "--window", f"1:{MANY}"),
    *(("theorem", name) for name in (MANY, "construct." + "x" * 10_000)),
    *(("audit", "nowhere.safetensors", flag, MANY) for flag in ("--length", "--heads", "--head-size", "--repeats")),
    ("run", "nowhere", MANY),
    ("check", "x" * 10_000),
    ("show", "x" * 10_000),
]  # fmt: skip


def complaint(code: int, out: str, err: str) -> str | None:
    """What is wrong with an answer: it is refused with one sentence of a readable length, or this says why not."""
    sentences = [line for line in err.splitlines() if line.startswith("certiformer: ")]
    if code not in (1, 2, 3):
        return f"exit code {code}"
    if len(sentences) != 1 or "Traceback" in err or "Warning" in err or "defect" in err:
        return f"not one sentence: {err[:300]}"
    return None if len(out) + len(err) < 3000 else "too long to read"


def test_what_is_too_large_is_refused_with_one_sentence(cli, tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    before = sorted(path.name for path in tmp_path.iterdir())
    wrong = []
    for arguments in REFUSED:
        done = cli(*arguments)
        if problem := complaint(done.code, done.out, done.err):
            wrong.append((problem, [argument[:60] for argument in arguments]))
    assert wrong == []
    assert sorted(path.name for path in tmp_path.iterdir()) == before  # refused before anything is written


def test_a_defect_a_silence_and_a_flood_are_complained_about():
    assert complaint(2, "", "certiformer: the number is too large\n") is None
    assert complaint(70, "", "certiformer: this is a defect of certiformer\n")
    assert complaint(0, "certified", "")
    assert complaint(2, "", "")
    assert complaint(2, "", "certiformer: one\ncertiformer: two\n")
    assert complaint(2, "", "certiformer: " + "9" * 5000)


MEASURED = """
import json, resource, sys
from certiformer.cli.main import main
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
main(["compile", "reverse", "--length", "2", "--out", "first", "--quiet"])
before = resource.getrusage(resource.RUSAGE_SELF)
code = main(json.load(sys.stdin))  # longer than a command line may be
after = resource.getrusage(resource.RUSAGE_SELF)
print("used", code, after.ru_maxrss - before.ru_maxrss, after.ru_utime - before.ru_utime)
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_none_of_them_takes_a_gigabyte_or_twenty_seconds(number, tmp_path):
    """Each in a process of its own; kilobytes beyond those of a command before, and seconds of the processor."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    source = str(Path(sys.modules["certiformer"].__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", MEASURED],
        input=json.dumps(REFUSED[number]),
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": source},
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30)),
    )
    code, kilobytes, seconds = done.stdout.splitlines()[-1].split()[1:]
    assert complaint(int(code), "", done.stderr) is None
    assert int(kilobytes) < 2**20 and float(seconds) < 20
