"""One small honest folder of every kind of claim, made by the commands that users type.

`COMMANDS` is the list of kinds; a command stands for the whole way from a request to a folder. `undecided` folders are
among them: they claim nothing, and that must stay so.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
from pathlib import Path
from typing import Any

from certiformer.cli.main import main
from certiformer.kernel.certificate import RECORDED
from certiformer.kernel.files import CERTIFICATE, canonical, digest

MACHINE = """blank = "0"
start = "A"
halt = ["H"]
transitions = [
  ["A", "0", "1", "R", "B"], ["A", "1", "1", "L", "B"],
  ["B", "0", "1", "L", "A"], ["B", "1", "1", "R", "H"],
]
"""
AUTOMATON = """alphabet = ["0", "1"]
start = "even"
accept = ["even"]
transitions = [["even", "0", "even"], ["even", "1", "odd"], ["odd", "0", "odd"], ["odd", "1", "even"]]
"""
CIRCUIT = 'inputs = ["a", "b"]\noutputs = ["sum"]\ngates = [["sum", "XOR", "a", "b"]]\n'
TABLE = "x1,x2,y\n0,0,1\n0,1,2\n1,0,1.5\n1,1,0.1\n"
SOURCES = {"m.toml": MACHINE, "a.toml": AUTOMATON, "c.toml": CIRCUIT, "t.csv": TABLE}

SINE = "build sin(x1) --on [0,2*pi] --method voronoi"
LEARNER = "--features 2 --rows 4"
COMMANDS = {
    "theorem": f"{SINE} --eps 0.2 --rule theorem",
    "boxes": f"{SINE} --eps 0.2 --rule boxes",
    "level 1": f"{SINE} --eps 0.2 --level 1",
    "refuted": "prove theorem cos(x1) --on [0,2*pi] --eps 0.2",
    "undecided": "prove theorem sin(x1)+0.01 --on [0,2*pi] --eps 0.2 --rule theorem",
    "dtype": f"{SINE} --eps 0.2 --dtype float32",
    "teacher": "prove theorem boxes --on [0,2*pi] --eps 0.4",
    "table": "build t.csv --inputs x1,x2 --outputs y",
    "sequences": "build parity --tokens 3",
    "program": "compile reverse --length 3",
    "looped machine": "compile machine m.toml --tape 6",
    "chain-of-thought machine": "compile machine m.toml --form chain-of-thought --steps 6",
    "encoder-decoder machine": "compile machine m.toml --form encoder-decoder --steps 6",
    "looped automaton": "compile automaton a.toml --length 6",
    "chain-of-thought automaton": "compile automaton a.toml --length 6 --form chain-of-thought",
    "log-depth automaton": "compile automaton a.toml --length 6 --form log-depth",
    "circuit": "compile circuit c.toml",
    "gradient": f"compile incontext gd {LEARNER} --layers 2 --looped",
    "undecided gradient": f"compile incontext gd {LEARNER} --layers 2 --looped --tolerance 1e-20",
    "ridge": f"compile incontext ridge {LEARNER} --strength 0.5 --tolerance 0.1",
    "relu": f"compile incontext relu {LEARNER} --strength 0.5 --tolerance 0.5",
    "selection": f"compile incontext select {LEARNER} --strength 0.5,1 --tolerance 0.5",
}  # fmt: skip
CODES = {"level 1": 3, "refuted": 1, "undecided": 3, "undecided gradient": 3}  # of the command; 0 unless listed


def make_folders(place: Path) -> dict[str, Path]:
    """All kinds, each in a folder of `place` with its name."""
    for name, text in SOURCES.items():
        (place / name).write_text(text)
    here = Path.cwd()
    os.chdir(place)
    try:
        for kind, command in COMMANDS.items():
            code, out, err = in_process(*command.split(), "--out", kind, "--quiet")
            if code != CODES.get(kind, 0):
                raise AssertionError(f"{kind}: {command} gave {code}\n{out}{err}")
    finally:
        os.chdir(here)
    return {kind: place / kind for kind in COMMANDS}


def in_process(*arguments: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command, in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(arguments)
    return code, out.getvalue(), err.getvalue()


def copied(folder: Path, place: Path) -> Path:
    """A copy that may be broken, in the place of an earlier one."""
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(folder, place, ignore=shutil.ignore_patterns("*.html"))
    return place


def certificate_of(folder: Path) -> dict[str, Any]:
    """All fields of the certificate as JSON data, recorded ones beside the others, without its own seal."""
    data = json.loads((folder / CERTIFICATE).read_bytes())
    del data["sha256"]
    return {**data, **data.pop("recorded")}


def put_certificate(folder: Path, data: dict[str, Any]) -> None:
    """Write the certificate, all seals computed anew, as somebody who wants to deceive would."""
    recorded = {name: value for name, value in data.items() if name in RECORDED}
    present = {name: digest((folder / name).read_bytes()) for name in data["seals"] if (folder / name).is_file()}
    data = {name: value for name, value in data.items() if name not in RECORDED} | {"recorded": recorded}
    data["seals"] = {**data["seals"], **present}
    (folder / CERTIFICATE).write_bytes(canonical({**data, "sha256": digest(canonical(data))}))
