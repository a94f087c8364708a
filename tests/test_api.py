"""The Python API is the command line: the same verbs, names and defaults, compared one by one; and what Python adds."""

from __future__ import annotations

import dataclasses
import inspect
import subprocess
import sys
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import certiformer
from certiformer import BadInput
from certiformer.cli.main import KINDS, VERBS

# Flags that speak to a terminal and write files beside the result; a Python function returns the result instead.
TERMINAL = {"json", "quiet", "config"}
ONLY_FLAGS = {
    "audit": {"compare", "fail_if", "out", "all", "force"},  # a report in a file, a gate for continuous integration
    "build": {"dry_run"},
    "check": {"proof_only", "replay"},  # runs and enclosures of single inputs are remarks of the command
    "compile": {"show", "limits", "seconds"},
    "prove": {"dry_run"},
    "run": {"attention", "trace", "variable", "out", "force", "costs"},  # views of runs: `Artifact.subject` has them
    "show": {"latex", "open"},  # `Artifact.latex` and `Artifact.page`
    "size": {"picture", "force"},
}
ONLY_ARGUMENTS = {
    "build": {"workers", "keep", "progress"},
    "prove": {"workers", "keep", "progress"},
    "curve": {"rule", "order", "workers", "progress"},
    "compile": {"certified", "name", "progress", "seen"},
    "check": {"progress"},
    "audit": {"progress"},
    "explore": {"say"},
    "rates": {"progress", "options"},
    "recommend_fit": {"progress"},
    "recommend_evaluate": {"progress"},
    "recommend_guarantee": {"progress"},
}
# What a verb calls the thing that it is about; in Python it may also be an object.
FIRST = {"check": "artifact", "run": "artifact", "show": "artifact", "export": "source"}
# Defaults that differ because a flag is repeated.
OTHER_DEFAULTS = {("audit", "set"), ("prove", "causal")}


def command_module(verb: str) -> str:
    return f"certiformer.cli.{verb}"


def functions() -> list[str]:
    """The verbs with a function: `bench` measures this machine from a checkout and has none, `recommend` lists its kinds."""
    kinds = [f"{verb}_{kind}" for verb in ("compile", "recommend") for kind in KINDS[verb]]
    return [verb for verb in (*VERBS, *kinds) if verb not in ("bench", "recommend")]


def flags_of(verb: str) -> dict[str, Any]:
    """The flags with their defaults, by the names of their fields."""
    if verb == "rates":  # its flags are those of the study beside the common ones
        rates = import_module("certiformer.cli.rates")
        fields = [*dataclasses.fields(rates.Common)]
        return {"study": dataclasses.MISSING} | {field.name: field.default for field in fields}
    fields = dataclasses.fields(import_module(command_module(verb)).Options)
    flags = {field.name: field.default for field in fields}
    if verb in FIRST:
        flags = {FIRST[verb]: flags.pop("directory"), **flags}
    if verb == "audit":
        flags["path"] = flags.pop("path")
    return flags


def arguments_of(verb: str) -> dict[str, Any]:
    parameters = inspect.signature(getattr(certiformer, verb)).parameters.values()
    return {p.name: dataclasses.MISSING if p.default is p.empty else p.default for p in parameters}


def differences(verb: str, flags: dict[str, Any], arguments: dict[str, Any]) -> list[str]:
    """What one side has and the other has not, in words."""
    only_flags = TERMINAL | ONLY_FLAGS.get(verb, set())
    missing = [f"{verb} has no argument {name}" for name in flags if name not in arguments and name not in only_flags]
    own = ONLY_ARGUMENTS.get(verb, set())
    more = [f"{verb} has no flag {name}" for name in arguments if name not in flags and name not in own]
    other = [
        f"{verb}: {name} is {flags[name]!r} as a flag and {arguments[name]!r} as an argument"
        for name in flags
        if name in arguments and flags[name] != arguments[name] and (verb, name) not in OTHER_DEFAULTS
    ]
    return [*missing, *more, *other]


@pytest.mark.parametrize("verb", functions())
def test_every_verb_has_the_names_and_defaults_of_its_function(verb):
    assert differences(verb, flags_of(verb), arguments_of(verb)) == []


def test_a_difference_is_noticed():
    flags = flags_of("compile_circuit")
    planted = {**flags, "dtype": "float32", "speed": 1}
    assert differences("compile_circuit", planted, arguments_of("compile_circuit")) == [
        "compile_circuit has no argument speed",
        "compile_circuit: dtype is 'float32' as a flag and 'float64' as an argument",
    ]
    assert differences("check", {}, {"loud": False}) == ["check has no flag loud"]


def test_the_lists_of_exceptions_name_nothing_that_is_gone():
    for verb, names in ONLY_FLAGS.items():
        assert names <= set(flags_of(verb)), verb
    for verb, names in ONLY_ARGUMENTS.items():
        assert names <= set(arguments_of(verb)), verb


def test_dir_lists_exactly_what_is_public():
    assert dir(certiformer) == sorted(certiformer.__all__)
    assert all(getattr(certiformer, name) is not None for name in certiformer.__all__)
    verbs = {verb for verb in functions()}
    assert verbs <= set(certiformer.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'bulid'"):
        certiformer.bulid  # noqa: B018


def test_every_public_function_says_what_its_arguments_are_and_shows_an_example():
    for verb in functions():
        name = {
            "audit": "api.auditing",
            "explore": "explore.serving",
            "export": "api.exporting",
            "rates": "api.studies",
            "theorem": "api.studies",
        }
        home = name.get(verb)
        function = getattr(import_module(f"certiformer.{home}"), verb) if home else getattr(certiformer, verb)
        text = inspect.getdoc(function)
        assert text is not None and ">>> " in text, verb
        if verb == "prove":  # the rest are those of `build`
            assert "- `model`:" in text and "- `target`:" in text
            continue
        for argument in arguments_of(verb):
            assert f"`{argument}`" in text, f"{verb} does not say what {argument} is"


def test_an_unknown_argument_gets_a_suggestion():
    with pytest.raises(BadInput, match="^build has no argument 'metod'; did you mean 'method'\\?$"):
        certiformer.build("x1", on=(0, 1), eps=0.1, metod="ridge")  # type: ignore[call-arg]
    with pytest.raises(BadInput, match="did you mean 'heads'"):
        certiformer.audit("nowhere", head=3)  # type: ignore[call-arg, operator]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: certiformer.build("x1", on=(0, 1), eps=0.1, rule="magic"), "^rule is one of auto"),
        (lambda: certiformer.build("x1", eps=0.1), '^on BOX is missing: .* as in on="\\[0,1\\]\\^2" eps=0.1$'),
        (lambda: certiformer.build("sort", tokens=3), "needs alphabet V and tokens N"),
        (lambda: certiformer.build("sort", alphabet=3, tokens=3, on=(0, 1)), "^on is for functions on a box"),
        (lambda: certiformer.compile("reverse"), "^length says how many tokens"),
        (lambda: certiformer.size("lipschitz", constant=1, dimension=2, eps=0.1, over="eps"), "^over needs values"),
        (lambda: certiformer.build("x1", on=(0, 1, 2), eps=0.1), "a pair of ends or a list of such pairs"),
    ],
)
def test_errors_speak_of_arguments(call, sentence):
    with pytest.raises(BadInput, match=sentence) as problem:
        call()
    assert "--" not in str(problem.value)


def test_boxes_may_be_numbers_and_numpys_scalars_are_numbers():
    whole = certiformer.build("x1", on=np.array([0, 1]), eps=np.float32(0.1), tokens=np.int64(1), method="gather")
    assert whole.certified and "[0, 1]" in whole.claim and "at most 0.1." in whole.claim
    two = certiformer.build("x1+x2", on=[(0, 1), (np.float64(0.5), 2)], eps=0.1, method="gather")
    assert two.certified and "[0, 1] x [0.5, 2]" in two.claim


def test_all_five_kinds_of_target_are_built(tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("x,y\n0,1\n1,3\n")
    import jax.numpy as jnp

    formula = certiformer.build("x1", on=(0, 1), eps=0.1, method="gather")
    kinds = [
        formula,
        certiformer.build(lambda x: jnp.abs(x[0]), on=(-1, 1), eps=0.1, method="ridge"),
        certiformer.build(table, inputs="x", outputs="y"),
        certiformer.build("parity", tokens=5),
        certiformer.build(formula.model, on=(0, 1), eps=0.5, method="fit", fit_seconds=2.0),
    ]
    for artifact in kinds[:4]:
        assert artifact.certified and artifact.check().accepted, artifact
    assert kinds[4].claim and kinds[2].run([1]) == pytest.approx([3], abs=1e-6)  # the tolerance of the claim
    assert kinds[3].run([1, 0, 1, 1, 0])[-1] == 1


AUTOMATON = """start = "p"
accept = ["q"]
transitions = [["p", "a", "q"], ["q", "a", "p"]]
"""
CIRCUIT = 'inputs = ["a", "b"]\noutputs = ["c"]\ngates = [["c", "AND", "a", "b"]]\n'


def everything(tmp_path) -> dict[str, tuple[certiformer.Artifact, Any, dict[str, Any], list[Any]]]:
    """One artifact of every kind, with an input, and the answer."""
    from certiformer.compiler.machines.examples import INCREMENT

    for name, text in (("machine", INCREMENT), ("automaton", AUTOMATON), ("circuit", CIRCUIT)):
        (tmp_path / f"{name}.toml").write_text(text)
    learner = certiformer.compile_incontext("gd", features=1, rows=4, step=0.5)
    context = ([[1.0], [-1.0]], [1.0, -1.0])
    machine = str(tmp_path / "machine.toml")
    return {
        "function": (certiformer.build("2*x1", on=(0, 1), eps=0.1, method="gather"), [0.5], {}, [1.0]),
        "sequences": (certiformer.build("sort", alphabet=3, tokens=3), [2, 1, 0], {}, [0, 1, 2]),
        "program": (certiformer.compile("reverse", length=4), "abc", {}, ["c", "b", "a"]),
        "automaton": (certiformer.compile_automaton(str(tmp_path / "automaton.toml"), length=4), "aa", {}, ["q", "p"]),
        "machine": (certiformer.compile_machine(machine, tape=20), "1011", {"steps": 50}, list("1100")),
        "thought": (
            certiformer.compile_machine(machine, form="chain-of-thought", steps=20, symbols=4),
            "1011",
            {},
            list("1100"),
        ),
        "circuit": (certiformer.compile_circuit(str(tmp_path / "circuit.toml")), "11", {}, [1]),
        "learner": (learner, [[0.5]], {"context": context}, [0.25]),
    }


def test_one_contract_for_every_kind(tmp_path, capsys):
    for name, (artifact, asked, options, answer) in everything(tmp_path).items():
        assert type(artifact) is certiformer.Artifact, name
        assert artifact.certified and artifact.check().accepted and certiformer.check(artifact).accepted, name
        answered = artifact.run(asked, **options)
        assert type(answered) is list and answered == pytest.approx(answer, abs=0.1) if name == "function" else True
        if name != "function":
            assert [cell for cell in answered if cell != "_"] == answer, name
        assert artifact.model is not None and artifact.claim.endswith("."), name
        assert artifact.claim == artifact.check().sentence, name
        folder = artifact.save(tmp_path / name)
        again = certiformer.load(folder)
        assert not again.certified and again.recorded and again.claim == artifact.claim, name
        assert again.files == artifact.files and again.run(asked, **options) == answered, name
        assert certiformer.check(folder).accepted and again.check().accepted, name
        assert "certified" not in again._repr_html_() and artifact.claim.split()[0] in artifact._repr_html_(), name
        artifact.show()
        assert capsys.readouterr().out.startswith("certified"), name
        assert again.summary()["sentence"] == artifact.claim, name
        with pytest.raises(BadInput, match="pass force=True"):
            artifact.save(folder)
        assert artifact.save(folder, force=True) == folder, name


def test_a_changed_weight_is_refused_in_memory_as_in_a_folder(tmp_path):
    artifact = certiformer.build("2*x1", on=(0, 1), eps=0.1, method="gather")
    weights = bytearray(artifact.files["model.safetensors"])
    weights[-1] ^= 1
    broken = dataclasses.replace(artifact, files={**artifact.files, "model.safetensors": bytes(weights)})
    assert not broken.check().accepted and artifact.check().accepted
    assert not certiformer.check(broken.save(tmp_path / "broken")).accepted


def test_pictures_are_drawn_for_notebooks():
    function = certiformer.build("2*x1", on=(0, 1), eps=0.1, method="gather")._repr_html_()
    program = certiformer.compile("reverse", length=3)._repr_html_()
    for page in (function, program):
        assert "<iframe srcdoc=" in page and "&lt;svg" in page


def test_what_has_no_transformer_says_so():
    nothing = certiformer.build("1/x1", on=(-1, 1), eps=0.1)
    assert nothing.outcome.value == "invalid" and not nothing.certified and nothing.model is None
    assert not nothing.check().accepted and "invalid" in repr(nothing) and "<table>" in nothing._repr_html_()
    with pytest.raises(BadInput, match="there is no transformer"):
        nothing.run([0.5])
    with pytest.raises(BadInput, match="there is no transformer"):
        nothing.save("nowhere")


def test_verbs_that_are_packages_too():
    import certiformer.audit
    import certiformer.theorem

    assert certiformer.theorem("voronoi_second_order").record.id == "axioms.voronoi_second_order"  # type: ignore[operator]
    assert "@" in certiformer.theorem("voronoi_second_order", bibtex=True)  # type: ignore[operator]
    assert certiformer.rasp.tokens is not None and callable(certiformer.audit) and callable(certiformer.train)


def test_importing_runs_nothing_but_its_own():
    code = "import sys; before = set(sys.modules); import certiformer; print(sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['certiformer', 'certiformer.errors']"


def test_a_claim_as_latex_says_first_what_became_of_it():
    proved = certiformer.build("x1**2", on=(0, 1), eps=0.1, method="ridge")
    text = proved.latex()
    assert text.startswith("Certified, by certiformer ")
    assert "differs from x1**2 by at most 0.1." in text and "SHA-256 of the weights: \\texttt{" in text
    assert "Points outside the box" in text
    refuted = certiformer.prove(proved.model, "x1**2", on=(0, 1), eps="1e-9")
    assert refuted.latex().startswith("Refuted (")
    program = certiformer.compile("reverse", vocab=["a_b", "50%"], length=2)
    assert "_" not in program.latex().replace("\\_", "") and "%" not in program.latex().replace("\\%", "")


def test_run_answers_a_batch():
    program = certiformer.compile("reverse", length=4)
    assert certiformer.run(program, batch=["abc", "ba"]) == [["c", "b", "a"], ["a", "b"]]
    with pytest.raises(BadInput, match="batch holds all inputs"):
        certiformer.run(program, "ab", batch=["abc"])
