"""Every number of every sentence of every kind of claim is the exact one of the files, or on the side that keeps it true.

The oracle reads the files with `json` and computes with `Fraction`; the catalogue covers all kinds, so that a new one fails.
"""

from __future__ import annotations

import ast
import json
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import certiformer
from certiformer import axioms
from certiformer.compiler.machines.examples import INCREMENT
from certiformer.kernel import situations
from certiformer.kernel.certificate import STATEMENTS
from certiformer.kernel.claim import FUNCTION as PROGRAM_FORMAT
from certiformer.kernel.claim import TABLE as TABLE_FORMAT
from certiformer.kernel.claim import TEACHER as TEACHER_FORMAT
from certiformer.kernel.claim import read_target
from certiformer.kernel.files import DESCRIPTIONS
from certiformer.kernel.meanings.learner import KINDS
from certiformer.kernel.meanings.sequence_maps import MAPS
from certiformer.target import Domain, Teacher, any_target_from_text, any_target_to_text, sentence_of
from cli.sentence_numbers import Wanted, Within, mismatch, numbers_of

PACKAGE = Path(certiformer.__file__).parent
Folder = dict[str, Any]

CIRCUIT = 'inputs = ["a", "b", "c"]\noutputs = ["s"]\ngates = [["t", "AND", "a", "b"], ["s", "XOR", "t", "c"]]\n'
TABLE = "x1,x2,y\n0,0,1\n1,0,0.5\n0,1,-2\n1,1,1/3\n"


@dataclass(frozen=True)
class Case:
    """A command, the kinds of claims that it covers, and the numbers that its sentence must say, from its files."""

    command: str
    covers: frozenset[tuple[str, str]]
    wanted: Callable[[Folder], Wanted]
    files: dict[str, str] = field(default_factory=dict)


def exactly(*numbers: float | int | str | Fraction) -> Wanted:
    return [Fraction(number) for number in numbers]


def decimal(number: float) -> Fraction:
    """The decimal that JSON has for a float."""
    return Fraction(json.dumps(number))


def of_gd(folder: Folder) -> Wanted:
    data = folder["learner.json"]
    steps = [Fraction(step) for step in data["steps"]]
    sizes = [steps[0]] if len({*steps}) == 1 else [Within(tuple(steps))] if len(steps) > 4 else steps
    trace = data["features"] * max(Fraction(data["bound"]), decimal(data["bound"])) ** 2
    everywhere = max(Fraction(data["high"]), decimal(data["high"])) >= trace
    box = [decimal(data["bound"]), decimal(data["label_bound"]), *([] if everywhere else [decimal(data["high"])])]
    counts = exactly(1, data["rows"], data["features"])
    return [*counts, *box, *exactly(len(steps), len(steps)), *sizes, decimal(data["tolerance"])]


def of_ridge(folder: Folder) -> Wanted:
    data = folder["learner.json"]
    strength = decimal(data["strength"])
    trace = strength + data["features"] * max(Fraction(data["bound"]), decimal(data["bound"])) ** 2
    everywhere = max(Fraction(data["high"]), decimal(data["high"])) >= trace and decimal(data["low"]) <= strength
    between = [] if everywhere else [strength, decimal(data["low"]), decimal(data["high"])]
    counts = exactly(1, data["rows"], data["features"])
    box = [decimal(data["bound"]), decimal(data["label_bound"])]
    return [*counts, *box, *between, Fraction(len(data["steps"])), strength, decimal(data["tolerance"])]


def is_short(number: Fraction) -> bool:
    """Whether a number is a decimal of at most 20 digits."""
    bottom = number.denominator
    twos = fives = 0
    while bottom % 2 == 0:
        bottom, twos = bottom // 2, twos + 1
    while bottom % 5 == 0:
        bottom, fives = bottom // 5, fives + 1
    return bottom == 1 and len(str(abs(number * 10 ** max(twos, fives))).rstrip("0")) <= 20


def of_relu(folder: Folder) -> Wanted:
    data = folder["learner.json"]
    lost = Fraction(data["decay"]) + Fraction(data["threshold"])
    labels = exactly(0, 1) if data["knots"] else []
    penalty: Wanted = [Within((lost / Fraction(data["rate"]),))] if lost else []
    if lost and not is_short(lost / Fraction(data["rate"])):
        penalty.append(lost)
    counts = exactly(1, data["rows"], data["features"]) + labels + exactly(data["steps"], data["steps"])
    trace = data["features"] * max(Fraction(data["bound"]), decimal(data["bound"])) ** 2
    everywhere = max(Fraction(data["spectrum"]), decimal(data["spectrum"])) >= trace
    box = [decimal(data["bound"]), *([] if data["knots"] else [decimal(data["label_bound"])])]
    box += [] if everywhere else [decimal(data["spectrum"])]
    return [*counts, Fraction(data["rate"]), *penalty, *box, Fraction(folder["certificate.json"]["upper"])]


def of_selection(folder: Folder) -> Wanted:
    data, certificate = folder["learner.json"], folder["certificate.json"]
    counts = exactly(data["rows"], data["features"], data["validation"], data["steps"], data["steps"])
    choices: Wanted = []
    for rate, decay in zip(data["rates"], data["decays"], strict=True):
        strength = Fraction(decay) / Fraction(rate)
        choices += [Within((strength,)), Fraction(rate), *([] if is_short(strength) else [Fraction(decay)])]
    if len(data["rates"]) > 6:
        strengths = [Fraction(d) / Fraction(r) for r, d in zip(data["rates"], data["decays"], strict=True)]
        choices = [Within(tuple(strengths)), Within(tuple(map(Fraction, data["rates"])))]
    gap = Fraction(data["gap"])
    trace = data["features"] * max(Fraction(data["bound"]), decimal(data["bound"])) ** 2
    everywhere = max(Fraction(data["spectrum"]), decimal(data["spectrum"])) >= trace
    box = [decimal(data["bound"]), decimal(data["label_bound"]), *([] if everywhere else [decimal(data["spectrum"])])]
    runs = exactly(certificate["proof"]["parameters"]["lead"], certificate["upper"])
    return [*counts, Fraction(len(data["rates"])), *choices, gap, gap, *box, *runs]


def of_looped_machine(folder: Folder) -> Wanted:
    cells, machine = folder["config.json"]["input"]["tokens"], folder["machine.json"]
    first = -(cells // 2)
    return exactly(cells, first, first + cells - 1, len(machine["states"]), len(machine["symbols"]))


def of_decoder(folder: Folder) -> Wanted:
    machine, stated = folder["machine.json"], folder["certificate.json"]["proof"]["parameters"]
    return exactly(stated["symbols"], stated["steps"], len(machine["states"]), len(machine["symbols"]))


def of_automaton(folder: Folder) -> Wanted:
    config, automaton = folder["config.json"], folder["automaton.json"]
    thought = folder["certificate.json"]["proof"]["id"] == "chain_of_thought_automaton"
    length = config["input"]["tokens"] // 2 - 1 if thought else config["input"]["tokens"] - 1
    passes = [] if thought else exactly(config["loops"])
    return [*exactly(0, length), *passes, *exactly(len(automaton["states"]))]


def of_circuit(folder: Folder) -> Wanted:
    gates = folder["gates.json"]
    return exactly(2 ** len(gates["inputs"]), len(gates["gates"]), len(gates["outputs"]))


def of_sequences(folder: Folder) -> Wanted:
    target = folder["target.json"]
    inputs = target["alphabet"] ** target["tokens"]
    counts = exactly(inputs, inputs, target["tokens"], target["alphabet"])
    said = {"parity": exactly(0, 1, 1), "count": exactly(0, 1), "majority": exactly(1, 0)}
    return [*counts, *said.get(target.get("what"), []), Fraction(folder["certificate.json"]["epsilon"])]


def of_table(folder: Folder) -> Wanted:
    return exactly(len(folder["target.json"]["rows"]), folder["certificate.json"]["epsilon"])


def of_compiled(folder: Folder) -> Wanted:
    program = folder["program.json"]
    return exactly(1, program["length"], len(program["vocab"]))


def learner(kind: str, rule: str) -> frozenset[tuple[str, str]]:
    return frozenset({("learner", kind), ("rule", rule)})


def incontext(word: str, flags: str, kind: str, rule: str, wanted: Callable[[Folder], Wanted]) -> Case:
    return Case(f"compile incontext {word} --rows 9 {flags}", learner(kind, rule), wanted)


def rule(name: str) -> frozenset[tuple[str, str]]:
    return frozenset({("rule", name)})


GD, RIDGE = ("gd", "in_context_gradient", of_gd), ("ridge", "in_context_ridge", of_ridge)
LOGISTIC, LASSO = ("relu-logistic", "in_context_relu", of_relu), ("relu-lasso", "in_context_relu", of_relu)
RELU = ("relu-least-squares", "in_context_relu", of_relu)
SELECT = ("selection", "in_context_selection", of_selection)
CASES = {
    "gd": incontext("gd", "--features 3 --layers 4 --bound 0.1", *GD),
    "gd float32": incontext("gd", "--features 3 --layers 2 --looped --dtype float32 --label-bound 0.3", *GD),
    "gd steps": incontext("gd", "--features 2 --layers 3 --schedule chebyshev --spectrum 0.1 1.7", *GD),
    "gd many steps": incontext("gd", "--features 2 --layers 6 --schedule chebyshev --spectrum 0.1 1.7", *GD),
    "ridge": incontext("ridge", "--features 2 --strength 0.1 --bound 0.7", *RIDGE),
    "ridge float32": incontext("ridge", "--features 2 --strength 0.1 --dtype float32 --bound 1.1", *RIDGE),
    "ridge spectrum": incontext("ridge", "--features 2 --strength 0.01 --spectrum 0.0123456789 1.3", *RIDGE),
    "relu": incontext("relu", "--features 2 --strength 0.1 --layers 7 --bound 0.3", *RELU),
    "relu float32": incontext("relu", "--features 3 --strength 0.1 --dtype float32 --layers 7", *RELU),
    "relu spectrum": incontext("relu", "--features 2 --spectrum 0.1234567 1.7654321 --layers 5", *RELU),
    "logistic": incontext("logistic", "--features 2 --strength 0.1 --layers 5", *LOGISTIC),
    "lasso": incontext("lasso", "--features 3 --strength 0.05 --layers 5 --bound 1.3", *LASSO),
    "select": incontext("select", "--features 2 --strength 0.1,1 --layers 5 --margin 0.1", *SELECT),
    "select many": incontext("select", "--features 2 --strength 0.1,0.2,0.3,0.4,0.5,0.6,0.7 --layers 5", *SELECT),
    "looped machine": Case(
        "compile machine m.toml --tape 1001", rule("looped_machine"), of_looped_machine, files={"m.toml": INCREMENT}
    ),
    "thoughts of a machine": Case(
        "compile machine m.toml --form chain-of-thought --steps 8 --symbols 4",
        rule("chain_of_thought_machine"),
        of_decoder,
        files={"m.toml": INCREMENT},
    ),
    "encoder and decoder": Case(
        "compile machine m.toml --form encoder-decoder --steps 8 --symbols 4",
        rule("encoder_decoder_machine"),
        of_decoder,
        files={"m.toml": INCREMENT},
    ),
    **{
        form: Case(
            f"compile automaton (ab)* --length 20 --form {form}",
            rule(f"{form.replace('-', '_')}_automaton"),
            of_automaton,
        )
        for form in ("looped", "chain-of-thought", "log-depth")
    },
    "circuit": Case("compile circuit c.toml", rule("chain_of_thought_circuit"), of_circuit, files={"c.toml": CIRCUIT}),
    **{
        word: Case(f"build {word} --tokens 5 --alphabet {letters} --eps 1/1000", frozenset(kinds), of_sequences)
        for word, letters, kinds in (
            ("sort", 3, {("target", "certiformer-sort-1")}),
            ("hist", 3, {("target", "certiformer-histogram-1")}),
            ("induction", 2, {("target", "certiformer-induction-1")}),
            *((w, 2, {("target", "certiformer-count-1"), ("count", w)}) for w in ("count", "parity", "majority")),
        )
    },
    "table": Case(
        "build data.csv --inputs x1,x2 --outputs y --eps 2e-7",
        frozenset({("target", TABLE_FORMAT)}),
        of_table,
        files={"data.csv": TABLE},
    ),
    "box": Case(
        "build x1**2*0.1250+0.30 --on [-0.50,3e-1] --eps 20/100 --method voronoi --dtype float32",
        frozenset({("target", PROGRAM_FORMAT)}),
        lambda _: exactly("-1/2", "0.3", 2, "1/8", "0.3", "0.2"),
    ),
    "program": Case("compile reverse --length 4 --vocab a,b,c", frozenset({("compiled", "situations")}), of_compiled),
}


def all_kinds() -> set[tuple[str, str]]:
    """Every kind of claim that the package knows."""
    found = {("rule", name) for name, subject in STATEMENTS.items() if subject in DESCRIPTIONS} | {
        ("learner", kind) for kind in KINDS
    }
    found |= {("target", name) for name in (*MAPS, TABLE_FORMAT, TEACHER_FORMAT, PROGRAM_FORMAT)}
    return found | {("count", word) for word in ("count", "parity", "majority")} | {("compiled", "situations")}


def test_every_kind_of_claim_is_in_the_catalogue():
    elsewhere = {("target", TEACHER_FORMAT), ("rule", "binomial_tail")}  # below, and in tests/recommend/test_check.py
    covered = set().union(*(case.covers for case in CASES.values())) | elsewhere
    assert covered == all_kinds()
    rooms = (axioms, situations)
    modules = [
        import_module(f"{room.__name__}.{info.name}") for room in rooms for info in pkgutil.iter_modules(room.__path__)
    ]
    named = {name for kind, name in all_kinds() if kind == "rule"}
    assert {m.__name__.rpartition(".")[2] for m in modules if hasattr(m, "sentence")} == named


def folder_of(place: Path) -> Folder:
    return {path.name: json.loads(path.read_text()) for path in place.glob("*.json")}


@pytest.mark.parametrize("name", CASES)
def test_the_numbers_of_a_sentence_are_those_of_the_files(cli, tmp_path, name):
    case = CASES[name]
    for file, text in case.files.items():
        (tmp_path / file).write_text(text)
    done = cli(*case.command.split(), "--out", "run", "--json", "--quiet")
    assert done.code == 0, done.err
    sentence, wanted = done.data["sentence"], case.wanted(folder_of(tmp_path / "run"))
    assert mismatch(sentence, wanted) is None, sentence
    for verb in ("check", "show"):
        assert cli(verb, "run", "--json").data["sentence"] == sentence
    report = tmp_path / "run" / "report.html"
    if report.exists():
        assert sentence.split("<")[0].split("'")[0] in report.read_text()
    for number, wrong in enumerate(spoiled(sentence)):
        assert mismatch(wrong, wanted) is not None, (number, wrong)


def spoiled(sentence: str) -> list[str]:
    """The sentence with one number moved a little up or down, or formatted with `:g`, in all ways that change it."""
    found = []
    for shown in numbers_of(sentence):
        for factor in (1 - Fraction(1, 10**6), 1 + Fraction(1, 10**6)):
            moved = str(shown.value * factor or Fraction(1, 10**6))
            if shown.word != "about":
                found.append(sentence[: shown.start] + moved + sentence[shown.end :])
        rounded = f"{float(shown.value):g}"
        if shown.word != "about" and Fraction(rounded) != shown.value:
            found.append(sentence[: shown.start] + rounded + sentence[shown.end :])
    assert found
    return found


def test_the_sentence_of_a_teacher():
    config = '{"input":{"kind":"continuous","tokens":1,"width":2},"outputs":3,"readout":{"kind":"mean"}}'
    teacher = Teacher("t", config.encode(), b"weights", Domain((("0", "2*pi"), ("1e-3/4", "00.10"))))
    assert sentence_of(any_target_from_text(any_target_to_text(teacher)), "1/3") == sentence_of(teacher, "1/3")
    sentence = sentence_of(teacher, "1/3")
    assert read_target(any_target_to_text(teacher).encode()).sentence("1/3") == sentence
    wanted = exactly(0, 2, "1/4000", "1/10", 3, "1/3")
    assert mismatch(sentence, wanted) is None, sentence
    assert all(mismatch(wrong, wanted) for wrong in spoiled(sentence))


def test_a_sentence_with_rounded_numbers_is_caught():
    """0.1000004 was proved, and `:g` made it 0.1; a bound of 1e-9 that is rounded down is not proved."""
    proved = Fraction("0.1000004")
    assert mismatch(f"strength {float(proved):g}", [proved]) is not None
    assert mismatch("strength between 0.1000003 and 0.1000004", [Within((proved + Fraction(1, 10**15),))]) is not None
    assert mismatch("strength between 0.1000004 and 0.1000004001", [Within((proved + Fraction(1, 10**15),))]) is None
    assert mismatch("strength between 0.1 and 0.2", [Within((proved,))]) is not None
    assert mismatch("strength 0.1000004 and 7 more", [proved]) is not None
    assert mismatch("strength", [proved]) is not None


def test_the_lines_about_errors_are_rounded_outward(cli, tmp_path):
    done = cli(*CASES["box"].command.split(), "--out", "run", "--quiet")
    certificate = json.loads((tmp_path / "run" / "certificate.json").read_text())
    lines = {line.split()[0]: line for line in done.out.splitlines() if line and not line.startswith(" ")}
    low, high = (n.value for n in numbers_of(lines["error"]))
    assert low <= Fraction(certificate["lower"]) <= Fraction(certificate["upper"]) <= high
    assert high - low <= Fraction(certificate["upper"]) - Fraction(certificate["lower"]) + high / 500
    (more,) = (n.value for n in numbers_of(lines["runs"]))
    assert Fraction(certificate["run_error"]) <= more <= Fraction(certificate["run_error"]) * Fraction(1001, 1000)
    data = cli("check", "run", "--json").data
    for end in ("lower", "upper"):
        assert Fraction(json.dumps(data[end])) == Fraction(certificate[end])


def rounded_formats(source: str) -> list[str]:
    """Statements that format a number with g, f or e, and do not say `about`."""
    found = []
    for statement in ast.walk(ast.parse(source)):
        if not isinstance(statement, ast.stmt) or hasattr(statement, "body"):
            continue
        texts = [n.value for n in ast.walk(statement) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        specs = [n.format_spec for n in ast.walk(statement) if isinstance(n, ast.FormattedValue) and n.format_spec]
        rounded = any(text[-1:] in "gfe" for spec in specs for text in [ast.unparse(spec).strip("f'\"")])
        if rounded and not any("about" in text for text in texts):
            found.append(ast.unparse(statement))
    return found


def test_the_trusted_part_rounds_a_number_only_where_it_says_about():
    # Keys that group slopes are never printed.
    allowed = {"sum.py": 1}
    for package in ("checker", "target", "certificate"):
        for path in (PACKAGE / package).rglob("*.py"):
            assert len(rounded_formats(path.read_text())) == allowed.get(path.name, 0), path
    assert rounded_formats('def f(x):\n    return f"strength {x:g} in {x:,} rows"\n')
    assert rounded_formats('def f(x):\n    raise Refused(f"only {float(x):.6g}")\n')
    assert not rounded_formats('def f(x):\n    raise Refused(f"only about {float(x):.6g} in {x:,}")\n')
