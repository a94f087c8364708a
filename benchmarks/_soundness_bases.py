"""The honest folders that `soundness.py` starts from: one small folder for every kind of claim, made by the public verbs.

`make(names, home)` writes each into `home/NAME`; a folder that is there already is kept. What is in them is not trusted
by the campaign: it is where a forger would begin.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

Maker = Callable[[Path], object]


def _build(formula: str, on: str, eps: str, **options) -> Maker:
    def make(out: Path) -> object:
        import certiformer

        return certiformer.build(formula, on=on, eps=eps, out=out, seconds=60.0, workers=1, **options)

    return make


def _table(out: Path) -> object:
    from certiformer.search.finite import Table, build_table

    rows = tuple(((Fraction(i, 2),), (Fraction((7 * i * i) % 11, 4),)) for i in range(8))
    return build_table(Table("rows", "continuous", rows), out=out)


def _sequence(word: str, alphabet: int, tokens: int) -> Maker:
    def make(out: Path) -> object:
        from certiformer.search.sequences import build_sequences

        return build_sequences(word, alphabet, tokens, out=out)

    return make


def _program(name: str, length: int, dtype: str = "float32", causal: bool = False, letters: int = 3) -> Maker:
    def make(out: Path) -> object:
        from certiformer.api.compiling import compile as compile_program
        from certiformer.rasp.library import catalogue

        entry = catalogue()[name]
        vocabulary = list(entry.vocab)[:letters]
        return compile_program(entry.make(), vocabulary, length, causal, dtype, name=name).save(out)

    return make


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


def _machine(form: str) -> Maker:
    def make(out: Path) -> object:
        from certiformer.compiler.machines import ChainOfThought, EncoderDecoder, machine_loop
        from certiformer.compiler.machines.file import parse_machine

        if form == "looped":
            return machine_loop(parse_machine(SMALL_MACHINE), 5).certified().save(out)
        decoder = ChainOfThought if form == "thought" else EncoderDecoder
        return decoder(parse_machine(MACHINE), 6, 2).certified().save(out)

    return make


def _automaton(form: str, length: int, source: str = AUTOMATON) -> Maker:
    def make(out: Path) -> object:
        from certiformer.compiler.automata import parse_automaton, word_reader

        return word_reader(parse_automaton(source), length, form).certified().save(out)

    return make


def _circuit(out: Path) -> object:
    from certiformer.compiler.circuits import gate_writer
    from certiformer.compiler.circuits.file import parse_circuit

    return gate_writer(parse_circuit(CIRCUIT)).certified().save(out)


def _learner(**request) -> Maker:
    def make(out: Path) -> object:
        from certiformer.compiler.incontext import Request, context_learner, describe

        return context_learner(describe(Request(**request))).certified().save(out)

    return make


BASES: dict[str, Maker] = {
    "boxes": _build("sin(x1)", "[0,2*pi]", "0.4", method="voronoi", rule="boxes"),
    "boxes2": _build("sin(x1*x2)", "[0,1]^2", "0.5", method="voronoi", rule="boxes"),
    "sum": _build("sin(x1)+x2**2/2", "[0,1]^2", "0.7", method="voronoi", rule="sum"),
    "voronoi": _build("sin(x1)", "[0,2*pi]", "0.2", method="voronoi", rule="theorem"),
    "voronoi2": _build("x1*x2", "[0,1]^2", "0.2", method="voronoi", rule="theorem"),
    "first-order": _build("abs(x1-0.3)", "[0,1]", "0.2", method="voronoi", rule="theorem"),
    "ridge": _build("sin(x1)", "[0,2*pi]", "0.1", method="ridge"),
    "ridge2": _build("abs(x1-x2)+x1", "[0,1]^2", "0.05", method="ridge"),
    "outputs": _build("[exp(x2)/2,x1**2]", "[0,1]^2", "0.1", method="ridge", tokens=2),
    "outputs-boxes": _build("[x1*x2/2,x1**2/2]", "[0,1]^2", "0.4", method="voronoi", rule="boxes"),
    "temperatures": _build("sin(x1)", "[0,2*pi]", "0.3", method="temperatures", rule="theorem"),
    "ridge-temperatures": _build("sin(x1+2*x2)", "[-1,1]^2", "0.5", method="ridge-temperatures", rule="theorem"),
    "sigmoid-heads": _build("sin(x1)", "[0,pi]", "0.4", method="sigmoid-heads", rule="theorem"),
    "korovkin": _build("sin(x1)", "[0,pi]", "0.5", method="korovkin", rule="theorem"),
    "shifted-grids": _build("x1*x2/4", "[0,1]^2", "0.2", method="shifted-grids", rule="theorem"),
    "squares-rbf": _build("x1**2/2", "[0,1]", "0.3", method="squares-rbf", rule="theorem"),
    "gather": _build("[x2, x1]", "[0,1]^2", "0.01", method="gather", tokens=2),
    "run-error": _build("abs(x1-0.3)/3", "[-1,1]", "0.1", method="ridge", dtype="float32"),
    "table": _table,
    "sort": _sequence("sort", 3, 3),
    "count": _sequence("count", 2, 4),
    "majority": _sequence("majority", 2, 3),
    "parity": _sequence("parity", 2, 4),
    "hist": _sequence("hist", 3, 3),
    "induction": _sequence("induction", 3, 4),
    "program-reverse": _program("reverse", 3),
    "program-sort": _program("sort", 3, letters=2),
    "program-hist": _program("hist", 3),
    "program-frac-prevs": _program("frac_prevs", 3, "float64"),
    "machine-looped": _machine("looped"),
    "machine-thought": _machine("thought"),
    "machine-encoder": _machine("encoder"),
    "automaton-looped": _automaton("looped", 3, SMALL_AUTOMATON),
    "automaton-thought": _automaton("chain-of-thought", 2),
    "automaton-log-depth": _automaton("log-depth", 3),
    "circuit": _circuit,
    "learner-gd": _learner(learner="gd", features=1, rows=2, layers=2, step=0.5),
    "learner-ridge": _learner(learner="ridge", features=1, rows=2, strength="0.5", layers=3),
    "learner-relu": _learner(learner="relu", features=1, rows=2, strength="0.5", layers=3),
    "learner-lasso": _learner(learner="lasso", features=1, rows=2, strength="0.1", layers=3),
    "learner-select": _learner(learner="select", features=1, rows=4, strength="0.1,1", layers=1),
}


def make(names: list[str], home: Path, tell: Callable[[str], None]) -> dict[str, str]:
    """Writes the folders; returns the names of those that could not be made, with the reason."""
    failed = {}
    for name in names:
        folder = home / name
        if (folder / "certificate.json").is_file():
            continue
        tell(f"building {name}")
        try:
            BASES[name](folder)
        except Exception as error:  # the campaign goes on with the others and names this one
            shutil.rmtree(folder, ignore_errors=True)
            failed[name] = f"{type(error).__name__}: {error}"
    return failed


def read(folder: Path) -> dict[str, bytes]:
    """The files of a folder that a checker may read."""
    known = ("model.safetensors", "config.json", "target.json", "leaves.bin", "certificate.json", "program.json",
             "circuit.json", "machine.json", "automaton.json", "gates.json", "learner.json")  # fmt: skip
    return {name: (folder / name).read_bytes() for name in known if (folder / name).is_file()}
