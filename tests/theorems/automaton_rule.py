"""What the rules of the three forms of an automaton have in common: what they accept, and that no changed number, table,
form or certificate passes. Each form has a test module that fixes `form` and takes these tests over."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from certiformer.compiler.automata import Automaton, word_reader
from certiformer.compiler.automata.compiled import RULES
from certiformer.compiler.computation import computation_certificate
from certiformer.kernel import Refused
from certiformer.kernel.certificate import Certificate, Outcome, axiom
from certiformer.kernel.computation import check_computation
from certiformer.kernel.files import digest
from certiformer.kernel.weights import Tensor, read_model
from compiler.automata.random_automata import is_right, random_automaton, words

LENGTH = 4
PROVE = {form: axiom(rule, "automaton.json").prove for form, rule in RULES.items()}
HEAD, UP, DOWN = "blocks.0.attention.groups.0", "blocks.0.ffn.up", "blocks.0.ffn.down"


def stored(form: str, automaton: Automaton, length: int = LENGTH, dtype: str = "float64"):
    files = word_reader(automaton, length, form, dtype).files()
    return read_model(files["config.json"], files["model.safetensors"])


def changed(tensors: dict[str, Tensor], name: str, change) -> dict[str, Tensor]:
    """The tensors with one array changed in place by a function."""
    old = tensors[name]
    array = np.array(old.data).reshape(old.shape)
    change(array)
    return {**tensors, name: Tensor(old.shape, array.reshape(-1).tolist(), old.dtype)}


def arrays(tensors: dict[str, Tensor]) -> dict[str, np.ndarray]:
    return {name: np.array(tensor.data).reshape(tensor.shape) for name, tensor in tensors.items()}


# What the rule of situations says of a fault: a pass that does not repeat itself (looped), an output that is wrong.
WRONG = "hold before a pass is not what they hold after|is not what the table says"
BLIND = "do not tell the row that a head looks at from all others"
MIXED = "coordinate 0 (does not hold what the plan says at the beginning|holds tokens and rows at once)"


def blunt(factor: float):
    return lambda query: query.__imul__(factor)


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
def test_compiled_automata_are_proved(form, dtype):
    for seed, (states, symbols, length) in enumerate([(1, 1, 1), (2, 1, 2), (3, 2, 7), (5, 3, 100)]):
        automaton = random_automaton(seed, states, symbols)
        report = PROVE[form](automaton, *stored(form, automaton, length, dtype))
        assert report.leak < 1e-25
        # In bfloat16 a number up to 4 arrives with a relative error of a few units of 2^-8.
        assert report.margin > (0.24 if dtype != "bfloat16" else 0.08)


@pytest.mark.parametrize("change", [1.0, -0.5, 2.0**-20])
def test_a_changed_number_is_refused_or_harmless(form, change):
    """Every tensor, at places that are zero and at places that are not; what is accepted is run on every word."""
    automaton = random_automaton(11, 3, 2)
    config, tensors = stored(form, automaton, 3)
    every = list(words(automaton, 3))
    assert all(is_right(form, automaton, config, arrays(tensors), word) for word in every)
    rng = np.random.default_rng(3)
    tried = harmless = 0
    for name, tensor in tensors.items():
        data = np.array(tensor.data)
        for places in (np.flatnonzero(data), np.flatnonzero(data == 0)):
            for place in rng.permutation(places)[:14]:
                other = data.copy()
                other[place] += change
                forged = {**tensors, name: Tensor(tensor.shape, other.tolist(), tensor.dtype)}
                tried += 1
                try:
                    PROVE[form](automaton, config, forged)
                except Refused:
                    continue
                # For instance one more reason for a hidden unit to stay off where it is off anyway.
                harmless += 1
                assert all(is_right(form, automaton, config, arrays(forged), word) for word in every), (name, place)
    assert tried > 150 and harmless < tried / 2


@pytest.mark.parametrize(
    ("name", "change", "problem"),
    [
        (f"{HEAD}.query", blunt(1 / 16), WRONG),
        (f"{HEAD}.query", blunt(0.75), None),  # scores of another size, which still tell rows apart
        (f"{HEAD}.query", blunt(-1.0), BLIND),
        (f"{HEAD}.key", blunt(2.0), None),
        (f"{HEAD}.value", blunt(0.5), WRONG),
        (f"{HEAD}.output", blunt(0.5), WRONG),
        (f"{HEAD}.output", lambda out: out.__setitem__((0, slice(0, 2)), out[0, 1::-1].copy()), WRONG),
        ("code.table", lambda table: table.__setitem__((2,), table[1]), BLIND),
        ("code.table", lambda table: table.__setitem__((2, 0), 1.0), MIXED),
        ("embed.weight", lambda table: table.__setitem__((0,), table[1]), WRONG),
        ("readout.weight", blunt(2.0), "output 0 is not what the table says"),
        ("readout.bias", lambda bias: bias.__iadd__(0.25), "output 0 is not what the table says"),
        ("blocks.0.ffn.down_bias", lambda bias: bias.__setitem__(0, 1.0), WRONG),
        (UP, blunt(1 / 8), WRONG),
        (DOWN, blunt(0.5), WRONG),
        ("blocks.0.ffn.up_bias", blunt(0.0), WRONG),
        ("blocks.0.ffn.up_bias", blunt(4.0), WRONG),
    ],
)  # fmt: skip
def test_planted_faults_are_named(form, name, change, problem):
    """The axiom compares weights; the rule of situations refuses them, unless every word comes out right all the same."""
    automaton = random_automaton(11, 3, 2)
    config, tensors = stored(form, automaton)
    PROVE[form](automaton, config, tensors)
    forged = changed(tensors, name, change)
    unread = (form, name) == ("chain-of-thought", "blocks.0.ffn.down_bias")  # a coordinate that is not read any more
    if form != "log-depth" and (problem is None or unread):
        assert PROVE[form](automaton, config, forged).margin > 0.2
        assert all(is_right(form, automaton, config, arrays(forged), word) for word in words(automaton, LENGTH))
        return
    with pytest.raises(Refused, match=rf"entry \d+ of {name} is" if form == "log-depth" else problem):
        PROVE[form](automaton, config, forged)


def test_a_lead_that_just_suffices(form):
    """Down to an eighth of the lead the proof holds, with a margin that is not larger than the worst leak allows."""
    automaton = random_automaton(11, 3, 2)
    config, tensors = stored(form, automaton, 24)
    others = config["input"]["tokens"] - 1
    margins = []
    for factor in (1, 1 / 4, 1 / 8):
        report = PROVE[form](automaton, config, changed(tensors, f"{HEAD}.query", blunt(factor)))
        small = float(np.exp(-64 * factor))
        # An empty slot whose row leads all others by just that much, while each of them holds a one.
        assert report.margin <= 0.25 - others * small / (1 + others * small)
        assert report.leak >= small / (1 + others * small)
        margins.append(report.margin)
    assert margins[0] > 0.24 and margins[2] > 0.1


def test_another_table_is_refused(form):
    automaton = random_automaton(11, 3, 2)
    config, tensors = stored(form, automaton)
    others = []
    for number, (state, symbol, following) in enumerate(automaton.rows):
        after = next(other for other in automaton.states if other != following)
        others.append(
            replace(automaton, rows=(*automaton.rows[:number], (state, symbol, after), *automaton.rows[number + 1 :]))
        )
    for state in set(automaton.states) - {automaton.start}:
        elsewhere = replace(automaton, start=state)
        if form == "chain-of-thought":  # the start state is part of the prompt, so these weights serve every one
            assert PROVE[form](elsewhere, config, tensors).margin > 0.24
        else:
            others.append(elsewhere)
    others += [
        replace(automaton, accepting=chosen) for chosen in ((), automaton.states) if chosen != automaton.accepting
    ]
    for other in others:
        with pytest.raises(Refused, match=f"{WRONG}|coordinate . does not hold|of (embed|readout).weight is"):
            PROVE[form](other, config, tensors)
    for other in (random_automaton(11, 4, 2), random_automaton(11, 3, 3), random_automaton(11, 2, 2)):
        with pytest.raises(
            Refused, match="tokens or the rows of the plan|coordinate . does not hold|embed.weight is|differs"
        ):
            PROVE[form](other, config, tensors)


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        (("registers",), 1, "tensors are not those"),
        (("readout", "kind"), "sum", "does not read out every row"),
        (("code", "kind"), "none", "tensors are not those"),
        (("width",), 500, "tensors are not those"),
        (("input", "vocabulary"), 9, "tensors are not those"),
        (("blocks", 0, "attention", "scale"), "inverse-sqrt", "not of unit scale"),
        (("blocks", 0, "attention", "kind"), "linear", "not plain softmax"),
        (("blocks", 0, "attention", "mask"), "none", "is causal"),
        (("blocks", 0, "attention", "bias"), True, "tensors are not those"),
        (("blocks", 0, "attention", "residual"), False, "not plain softmax with a residual"),
        (("blocks", 0, "attention"), None, "tensors are not those"),
        (("blocks", 0, "norm"), {"kind": "layer", "place": "pre", "epsilon": 1e-5}, "tensors are not those"),
        (("blocks", 0, "ffn", "kind"), "gelu", "hidden units that are not ReLU"),
        (("blocks", 0, "ffn", "residual"), False, "hidden units that are not ReLU with a residual"),
        (("blocks", 0, "ffn"), None, "tensors are not those"),
        (("blocks",), [], "tensors are not those"),
    ],
)  # fmt: skip
def test_another_architecture_is_refused(form, path, value, problem):
    automaton = random_automaton(11, 3, 2)
    config, tensors = stored(form, automaton)
    forged = json.loads(json.dumps(config))
    part = forged
    for step in path[:-1]:
        part = part[step]
    assert part[path[-1]] != value
    part[path[-1]] = value
    if path[-1] == "mask" and form == "looped":  # rows look at one row, which they see with and without a mask
        assert PROVE[form](automaton, forged, tensors).margin > 0.2
        assert all(is_right(form, automaton, forged, arrays(tensors), word) for word in words(automaton, LENGTH))
        return
    with pytest.raises(Refused, match=f"of the construction: {path[0]} differs" if form == "log-depth" else problem):
        PROVE[form](automaton, forged, tensors)


@pytest.fixture
def folder(form, tmp_path):
    word_reader(random_automaton(11, 3, 2), 10, form).certified().save(tmp_path / "a")
    return tmp_path / "a"


def test_the_folder_is_checked(folder):
    verdict = check_computation(folder)
    assert verdict.accepted and verdict.exit_code == 0 and verdict.level == 2
    assert verdict.sentence.startswith("For every word of 0 to 10 symbols over a, b, ")
    assert "0.24999" in verdict.reason


def test_a_resealed_lie_is_refused(folder):
    """Another automaton, sealed again: the weights do not do what the new table says."""
    honest = Certificate.from_bytes((folder / "certificate.json").read_bytes())
    rule = honest.proof.id
    automaton = random_automaton(11, 3, 2)
    first = automaton.rows[0]
    other = replace(automaton, rows=((*first[:2], "s0" if first[2] != "s0" else "s1"), *automaton.rows[1:]))
    (folder / "automaton.json").write_text(other.to_text())
    assert "automaton.json was changed" in check_computation(folder).reason
    files = {name: (folder / name).read_bytes() for name in ("model.safetensors", "config.json", "automaton.json")}
    assert computation_certificate(rule, files).outcome is Outcome.UNDECIDED
    seals = {name: digest(data) for name, data in files.items()}
    (folder / "certificate.json").write_bytes(replace(honest, seals=seals).to_bytes())
    verdict = check_computation(folder)
    assert verdict.outcome == "refused" and verdict.exit_code == 1


def test_a_better_claim_than_proved_is_refused(folder):
    honest = Certificate.from_bytes((folder / "certificate.json").read_bytes())
    for name, text in (("margin", "0.25"), ("leak", "1e-40"), ("length", 11), ("states", 2), ("symbols", 3)):
        proof = replace(honest.proof, parameters={**honest.proof.parameters, name: text})
        (folder / "certificate.json").write_bytes(replace(honest, proof=proof).to_bytes())
        assert check_computation(folder).outcome == "refused"
    for rule in set(RULES.values()) - {honest.proof.id}:
        (folder / "certificate.json").write_bytes(replace(honest, proof=replace(honest.proof, id=rule)).to_bytes())
        assert check_computation(folder).outcome == "refused"
    (folder / "certificate.json").write_bytes(honest.to_bytes())
    assert check_computation(folder).accepted


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
def test_scores_that_a_run_cannot_hold_are_refused(form, dtype):
    """In real arithmetic the larger the lead the better; in a run the scores end at the largest number."""
    automaton = random_automaton(11, 3, 2)
    config, tensors = stored(form, automaton, dtype=dtype)
    bits, largest = tensors[f"{HEAD}.key"].shape[2], 1023 if dtype == "float64" else 127
    for power in range(largest - 8, largest):
        sharp = changed(tensors, f"{HEAD}.query", blunt(2.0**power / 32))
        if 2 * bits * 2**power < 2**largest:
            assert PROVE[form](automaton, config, sharp).margin > 0
        elif 2 * bits * 2**power >= 2 ** (largest + 1):
            with pytest.raises(Refused, match="may exceed the largest finite"):
                PROVE[form](automaton, config, sharp)


def test_a_run_with_such_scores_is_wrong(form):
    """The negative control: what is refused above is no number in a run; four signs are needed for that."""
    config, tensors = stored(form, random_automaton(11, 3, 2), 12)
    held = arrays(changed(tensors, f"{HEAD}.query", blunt(2.0**1022 / 32)))
    with pytest.raises(Refused, match="may exceed the largest finite"):
        sharp = changed(tensors, f"{HEAD}.query", blunt(2.0**1022 / 32))
        PROVE[form](random_automaton(11, 3, 2), config, sharp)
    codes = held["code.table"]
    with np.errstate(over="ignore", invalid="ignore"):
        scores = (codes @ held[f"{HEAD}.query"][0]) @ (codes @ held[f"{HEAD}.key"][0]).T
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    assert np.isnan(shares).any()
