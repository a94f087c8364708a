"""The rule for encoder-decoders: rationals and floats against the simulator, and that no changed number passes."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from certiformer.axioms.encoder_decoder_machine import prove_encoder_decoder, unsafe
from certiformer.compiler.machines import EncoderDecoder, simulate
from certiformer.compiler.machines.examples import busy_beaver, increment, palindrome
from certiformer.errors import BadInput
from certiformer.kernel import Refused
from certiformer.kernel.computation import check_computation
from certiformer.kernel.files import digest
from certiformer.kernel.meanings.machine import Machine
from certiformer.kernel.rounding import FORMATS
from certiformer.kernel.weights import Tensor, read_model
from compiler.machines.random_machines import random_machine
from compiler.machines.token_runs import encoded
from compiler.numpy_decoder import arrays, outputs


def stored(decoder: EncoderDecoder):
    files = decoder.files()
    return read_model(files["config.json"], files["model.safetensors"])


def is_right(decoder: EncoderDecoder, config: dict, t: dict[str, np.ndarray], words) -> bool:
    """Whether the model chooses every token of the simulator's runs."""
    for word in words:
        tokens, wanted = encoded(decoder, tuple(word))
        rows = outputs(config, t, tokens[None])[0, decoder.symbols + 2 :]
        if np.argmax(rows, axis=-1).tolist() != wanted:
            return False
    return True


def test_rationals_give_the_runs_of_the_simulator():
    assert EncoderDecoder(busy_beaver(3), 40).run_exactly() == simulate(busy_beaver(3))
    counter, mirror = EncoderDecoder(increment(), 20, 4), EncoderDecoder(palindrome(), 30, 4)
    for word in ("", "1011", "111"):
        assert counter.run_exactly(word) == simulate(increment(), word)
    for word in ("abba", "abab", "a"):
        assert mirror.run_exactly(word) == simulate(palindrome(), word)
    for seed in range(4):
        machine = random_machine(seed)
        assert EncoderDecoder(machine, 25, 3).run_exactly(("a", "_", "a")) == simulate(machine, ("a", "_", "a"), 25)


def test_weights_are_rational_and_do_not_depend_on_the_horizon():
    short, long = EncoderDecoder(palindrome(), 5, 2), EncoderDecoder(palindrome(), 9, 2)
    assert short.exact_tensors["code.table"][4 + 3, short._at["square"]] == Fraction(1, 16)
    for name, tensor in short.exact_tensors.items():
        if name != "code.table":
            assert tensor == long.exact_tensors[name]
        assert all(isinstance(number, Fraction) for number in tensor.values())


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_compiled_machines_are_proved_and_right(dtype):
    steps = {"float64": 60, "float32": 15}[dtype]
    cases = [(busy_beaver(4), ("",)), (increment(), ("", "1011", "111")), (palindrome(), ("abba", "abab", "a"))]
    cases += [(random_machine(seed), ((), ("a", "_", "a"))) for seed in range(6)]
    for machine, words in cases:
        decoder = EncoderDecoder(machine, steps, 4, dtype)
        config, tensors = stored(decoder)
        shape, margin = prove_encoder_decoder(machine, config, tensors)
        assert (shape.steps, shape.symbols) == (steps, 4) and margin > 0
        assert is_right(decoder, config, arrays(tensors, dtype), words)


@pytest.mark.slow
def test_the_run_in_jax_is_that_of_the_simulator():
    decoder = EncoderDecoder(busy_beaver(4), 110)
    result, moments = decoder.follow()
    assert result == simulate(busy_beaver(4)) and result.ones == 13
    assert len(moments) == 108 and (moments[-1].state, moments[-1].step) == ("H", 107)


def test_a_machine_that_stops_at_once():
    machine = Machine(("0",), ("A",), (), (), missing="halt")
    decoder = EncoderDecoder(machine, 3)
    assert decoder.run() == decoder.run_exactly() == simulate(machine)


def test_the_gaps_of_the_proof():
    """In rationals: the latest write wins by the stated amount, and a fresh cell by its own."""
    for i in (1, 2, 3, 10, 40):
        for k in range(1, i + 1):
            fresh = Fraction(1, (i + 1) * k) * (1 - Fraction(1, 3 * (i + 1) * k))
            newest = Fraction(1, (i + 1) ** 2) * (1 + Fraction(1, 3 * (i + 1) ** 2))
            assert fresh - newest > Fraction(1, 2 * k * (i + 1) ** 2)
            for later in range(k + 1, i + 2):
                lead = Fraction(1, 3 * (i + 1) ** 2) * (Fraction(1, k * k) - Fraction(1, later * later))
                assert lead >= Fraction(1, 3 * (i + 1) ** 2 * k * k * (k + 1))
            other = Fraction(2, 3) / ((i + 1) * k)
            assert other - Fraction(1, 3 * (i + 1) ** 2) >= Fraction(1, 3 * (i + 1) ** 2)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_error_of_a_score_is_within_kappa(dtype):
    """Averages, keys and queries in the type, moves summed in a random order, against rationals."""
    rng = np.random.default_rng(1)
    number = np.dtype(dtype).type
    steps = {"float64": 300, "float32": 15}[dtype]
    moves = rng.choice([-1, 0, 1], steps, p=[0.2, 0.1, 0.7])
    cells = np.concatenate([[0], np.cumsum(moves)])

    def average(values: np.ndarray) -> np.floating:
        total, weight = number(0), number(1) / number(len(values))
        for value in rng.permutation(values):
            total = number(total + number(weight * number(value)))
        return total

    kappa = float(unsafe(FORMATS[dtype], steps)) / (6 * steps**4)
    i, worst = steps - 1, 0.0
    here, third = average(moves), number(1) / number(3)
    for j in rng.choice(i, 10 if steps > 20 else steps - 1, replace=False).tolist():
        before = average(np.concatenate([[0], moves[:j]]))
        inverse = {k: number(1) / number(k + 1) for k in (i, j)}
        square = {k: number(1.0 / (k + 1) ** 2) for k in (i, j)}
        product = number(number(here * inverse[j]) - number(inverse[i] * before))
        product = number(product + number(number(square[i] * third) * square[j]))
        exact = Fraction(int(cells[i + 1] - cells[j]), (i + 1) * (j + 1)) + Fraction(1, 3 * (i + 1) ** 2 * (j + 1) ** 2)
        worst = max(worst, abs(Fraction(float(product)) - exact) * (j + 1))
    assert 0 < worst <= kappa


def test_without_the_tie_breaker_two_writes_tie():
    """The negative control: equal products are averaged, and the run goes wrong."""
    decoder = EncoderDecoder(busy_beaver(4), 60)
    config, tensors = stored(decoder)
    t = arrays(tensors)
    t["blocks.2.attention.groups.0.query"][0, decoder._at["square"], 2] = 0.0
    assert not is_right(decoder, config, t, ("",))


@pytest.mark.parametrize("change", [0.5, -1.0, 2.0**-20])
def test_a_changed_number_is_refused_or_harmless(change):
    decoder = EncoderDecoder(increment(), 12, 4)
    config, tensors = stored(decoder)
    words = ("", "0", "1011", "111", "0110")
    assert is_right(decoder, config, arrays(tensors), words)
    rng = np.random.default_rng(3)
    tried = wrong = accepted = 0
    for name, tensor in tensors.items():
        data = np.array(tensor.data)
        for places in (np.flatnonzero(data), np.flatnonzero(data == 0)):
            for place in rng.permutation(places)[:5]:
                changed = data.copy()
                changed[place] += change
                forged = {**tensors, name: Tensor(tensor.shape, changed.tolist(), tensor.dtype)}
                right = is_right(decoder, config, arrays(forged), words)
                tried, wrong = tried + 1, wrong + (not right)
                try:
                    prove_encoder_decoder(decoder.machine, config, forged)
                except Refused:
                    continue
                accepted += 1
                assert right, (name, place)
    assert tried > 100 and accepted <= 3
    assert wrong > 10 or abs(change) < 1e-3


def test_another_table_or_architecture_is_refused():
    decoder = EncoderDecoder(busy_beaver(3), 12)
    config, tensors = stored(decoder)
    rows = busy_beaver(3).rows
    for number, (state, read, write, move, following) in enumerate(rows):
        for other in (
            (state, read, "1" if write == "0" else "0", move, following),
            (state, read, write, {"L": "R", "R": "S", "S": "L"}[move], following),
            (state, read, write, move, "A" if following != "A" else "B"),
        ):
            machine = Machine(("0", "1"), (*"ABC", "H"), ("H",), (*rows[:number], other, *rows[number + 1 :]))
            with pytest.raises(Refused, match=r"of blocks.0.ffn.down is .*, but the construction has"):
                prove_encoder_decoder(machine, config, tensors)
    for path, value in (
        (("loops",), 2), (("registers",), 1), (("readout", "kind"), "sum"), (("dtype",), "bfloat16"),
        (("blocks", 1, "attention", "mask"), "none"), (("blocks", 2, "attention", "kind"), "hard"),
        (("blocks", 2, "attention", "scale"), "inverse-sqrt"), (("blocks", 0, "ffn", "residual"), False),
        (("blocks", 4, "ffn", "kind"), "gelu"), (("blocks", 3, "norm"), {}), (("outputs",), 5),
    ):  # fmt: skip
        forged = json.loads(json.dumps(config))
        part = forged
        for step in path[:-1]:
            part = part[step]
        part[path[-1]] = value
        with pytest.raises(Refused):
            prove_encoder_decoder(busy_beaver(3), forged, tensors)


def test_the_horizon_is_kept():
    assert [EncoderDecoder(busy_beaver(5), 5, 0, dtype).farthest() for dtype in ("float64", "float32")] == [941, 15]
    edge = EncoderDecoder(busy_beaver(2), 941)
    assert prove_encoder_decoder(edge.machine, *stored(edge))[1] > 0
    with pytest.raises(BadInput, match="in float64, for 0 input symbols, is proved for at most 941 steps, not 942"):
        EncoderDecoder(busy_beaver(5), 942)
    with pytest.raises(BadInput, match="reads at most 2 input symbols, not 3"):
        EncoderDecoder(increment(), 5, 2).run("101")


class Unchecked(EncoderDecoder):
    """One that is made whatever its horizon is."""

    def reaches(self, steps: int) -> bool:
        return True


@pytest.mark.parametrize(("steps", "dtype"), [(942, "float64"), (16, "float32")])
def test_the_rule_knows_the_horizon_too(steps, dtype):
    beyond = Unchecked(busy_beaver(2), steps, 0, dtype)
    with pytest.raises(Refused, match="steps are beyond the horizon: float.. does not tell the latest write apart"):
        prove_encoder_decoder(beyond.machine, *stored(beyond))


def test_the_folder(tmp_path):
    folder = tmp_path / "m"
    artifact = EncoderDecoder(busy_beaver(4), 20, 3).certified()
    artifact.save(folder)
    honest = artifact.certificate
    verdict = check_computation(folder)
    assert verdict.accepted and verdict.sentence.startswith(
        "For every input of at most 3 symbols and each of the first 20"
    )
    proof = honest.proof
    for name, text in (("margin", "1"), ("steps", 21), ("symbols", 1)):
        forged = replace(honest, proof=replace(proof, parameters={**proof.parameters, name: text}))
        (folder / "certificate.json").write_bytes(forged.to_bytes())
        assert check_computation(folder).outcome == "refused"
    lie = (folder / "machine.json").read_bytes().replace(b'"1","R","B"', b'"1","L","B"', 1)
    (folder / "machine.json").write_bytes(lie)
    forged = replace(honest, seals={**honest.seals, "machine.json": digest(lie)})
    (folder / "certificate.json").write_bytes(forged.to_bytes())
    verdict = check_computation(folder)
    assert verdict.outcome == "refused" and "blocks.0.ffn.down" in verdict.reason


@pytest.mark.slow
def test_the_four_state_beaver_halts_in_rationals_and_nine_hundred_steps_in_float64():
    assert EncoderDecoder(busy_beaver(4), 110).run_exactly() == simulate(busy_beaver(4))
    assert EncoderDecoder(busy_beaver(5), 900).run() == simulate(busy_beaver(5), (), 900)
