"""The honest folders that `soundness.py` starts from: one small folder for every kind of claim, made by the commands that
users type.

`make(names, home)` writes each into `home/NAME`; a folder that is there already is kept. What is in them is not trusted
by the campaign: it is where a forger would begin.
"""

from __future__ import annotations

import contextlib
import io
import shutil
from collections.abc import Callable
from pathlib import Path

MACHINE = """blank = "0"
start = "A"
halt = ["H"]
transitions = [
  ["A", "0", "1", "R", "B"], ["A", "1", "1", "L", "B"],
  ["B", "0", "1", "L", "A"], ["B", "1", "0", "R", "H"],
]
"""
SMALL_MACHINE = """blank = "0"
start = "A"
halt = ["H"]
transitions = [["A", "0", "1", "R", "A"], ["A", "1", "0", "L", "H"]]
"""
AUTOMATON = """alphabet = ["a", "b"]
states = ["p", "q", "r"]
start = "p"
accept = ["r"]
transitions = [
  ["p", "a", "q"], ["p", "b", "p"], ["q", "a", "q"], ["q", "b", "r"], ["r", "a", "p"], ["r", "b", "r"],
]
"""
SMALL_AUTOMATON = """alphabet = ["a", "b"]
states = ["p", "q"]
start = "p"
accept = ["q"]
transitions = [["p", "a", "q"], ["p", "b", "p"], ["q", "a", "q"], ["q", "b", "p"]]
"""
CIRCUIT = """inputs = ["a", "b", "c"]
outputs = ["carry", "sum"]
gates = [["s", "XOR", "a", "b"], ["sum", "XOR", "s", "c"], ["t", "AND", "a", "b"], ["u", "AND", "s", "c"],
  ["carry", "OR", "t", "u"]]
"""


ROWS = "x1,y\n" + "".join(f"{i / 2},{(7 * i * i) % 11 / 4}\n" for i in range(8))
SOURCES = {"machine.toml": MACHINE, "small-machine.toml": SMALL_MACHINE, "automaton.toml": AUTOMATON,
           "small-automaton.toml": SMALL_AUTOMATON, "circuit.toml": CIRCUIT, "rows.csv": ROWS}  # fmt: skip
LEARNER = "compile incontext {} --features 1 --rows {} --layers {}"

# A rule that is asked for by name may have been replaced by others: then the command is given again without it.
BASES: dict[str, str] = {
    "boxes": "build sin(x1) --on [0,2*pi] --eps 0.4 --method voronoi --rule boxes",
    "boxes2": "build sin(x1*x2) --on [0,1]^2 --eps 0.5 --method voronoi --rule boxes",
    "sum": "build sin(x1)+x2**2/2 --on [0,1]^2 --eps 0.7 --method voronoi --rule sum",
    "voronoi": "build sin(x1) --on [0,2*pi] --eps 0.2 --method voronoi --rule theorem",
    "voronoi2": "build x1*x2 --on [0,1]^2 --eps 0.2 --method voronoi --rule theorem",
    "first-order": "build abs(x1-0.3) --on [0,1] --eps 0.2 --method voronoi --rule theorem",
    "ridge": "build sin(x1) --on [0,2*pi] --eps 0.1 --method ridge",
    "ridge2": "build abs(x1-x2)+x1 --on [0,1]^2 --eps 0.05 --method ridge",
    "outputs": "build [exp(x2)/2,x1**2] --on [0,1]^2 --eps 0.1 --method ridge --tokens 2",
    "outputs-boxes": "build [x1*x2/2,x1**2/2] --on [0,1]^2 --eps 0.4 --method voronoi --rule boxes",
    "temperatures": "build sin(x1) --on [0,2*pi] --eps 0.3 --method temperatures --rule theorem",
    "ridge-temperatures": "build sin(x1+2*x2) --on [-1,1]^2 --eps 0.5 --method ridge-temperatures --rule theorem",
    "sigmoid-heads": "build sin(x1) --on [0,pi] --eps 0.4 --method sigmoid-heads --rule theorem",
    "korovkin": "build sin(x1) --on [0,pi] --eps 0.5 --method korovkin --rule theorem",
    "shifted-grids": "build x1*x2/4 --on [0,1]^2 --eps 0.2 --method shifted-grids --rule theorem",
    "squares-rbf": "build x1**2/2 --on [0,1] --eps 0.3 --method squares-rbf --rule theorem",
    "gather": "build [x2,x1] --on [0,1]^2 --eps 0.01 --method gather --tokens 2",
    "run-error": "build abs(x1-0.3)/3 --on [-1,1] --eps 0.1 --method ridge --dtype float32",
    "teacher": "prove {home}/voronoi {home}/boxes --on [0,2*pi] --eps 0.5",
    "table": "build rows.csv --inputs x1 --outputs y",
    "sort": "build sort --alphabet 3 --tokens 3",
    "count": "build count --alphabet 2 --tokens 4",
    "majority": "build majority --alphabet 2 --tokens 3",
    "parity": "build parity --tokens 4",
    "hist": "build hist --alphabet 3 --tokens 3",
    "induction": "build induction --alphabet 3 --tokens 4",
    "program-reverse": "compile reverse --vocab a,b,c --length 3",
    "program-sort": "compile sort --vocab 1,2 --length 3",
    "program-hist": "compile hist --vocab a,b,c --length 3",
    "program-frac-prevs": "compile frac_prevs --vocab a,b,c --length 3 --dtype float64",
    "machine-looped": "compile machine small-machine.toml --tape 5",
    "machine-thought": "compile machine machine.toml --form chain-of-thought --steps 6 --symbols 2",
    "machine-encoder": "compile machine machine.toml --form encoder-decoder --steps 6 --symbols 2",
    "automaton-looped": "compile automaton small-automaton.toml --length 3",
    "automaton-thought": "compile automaton automaton.toml --length 2 --form chain-of-thought",
    "automaton-log-depth": "compile automaton automaton.toml --length 3 --form log-depth",
    "circuit": "compile circuit circuit.toml",
    "learner-gd": f"{LEARNER.format('gd', 2, 2)} --step 0.5",
    "learner-ridge": f"{LEARNER.format('ridge', 2, 3)} --strength 0.5",
    "learner-relu": f"{LEARNER.format('relu', 2, 3)} --strength 0.5",
    "learner-lasso": f"{LEARNER.format('lasso', 2, 3)} --strength 0.1",
    "learner-select": f"{LEARNER.format('select', 4, 1)} --strength 0.1,1",
}
NEEDS = {"teacher": ("voronoi", "boxes")}


def make(names: list[str], home: Path, tell: Callable[[str], None]) -> dict[str, str]:
    """Writes the folders; returns the names of those that could not be made, with the reason."""
    home.mkdir(parents=True, exist_ok=True)
    failed, wanted = {}, dict.fromkeys(part for name in names for part in (*NEEDS.get(name, ()), name))
    with contextlib.chdir(home):
        for name, text in SOURCES.items():
            Path(name).write_text(text)
        for name in wanted:
            if not Path(name, "certificate.json").is_file():
                tell(f"building {name}")
                said = _made(BASES[name].format(home=home).split(), name)
                if said:
                    shutil.rmtree(name, ignore_errors=True)
                    failed[name] = said
    return failed


def _made(command: list[str], out: str) -> str:
    """Runs a command, again without the rule that it names where it does not certify with it; what was said otherwise."""
    from certiformer.cli.main import main

    rule = command.index("--rule") if "--rule" in command else None
    for words in [command] if rule is None else [command, command[:rule] + command[rule + 2 :]]:
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = main([*words, "--out", out, "--force", "--quiet"])
        if code == 0:
            return ""
    return f"exit code {code}: {' '.join(said.getvalue().split())[-300:]}"


def read(folder: Path) -> dict[str, bytes]:
    """The files of a folder that a checker may read."""
    known = ("model.safetensors", "config.json", "target.json", "leaves.bin", "certificate.json", "program.json",
             "circuit.json", "machine.json", "automaton.json", "gates.json", "learner.json")  # fmt: skip
    return {name: (folder / name).read_bytes() for name in known if (folder / name).is_file()}
