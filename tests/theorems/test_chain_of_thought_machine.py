"""The rule for chains of thought: its bounds, what it accepts, and that no changed number passes."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from certiformer.axioms.chain_of_thought_machine import find, noise_of, prove_thoughts
from certiformer.axioms.thought_weights import anchor
from certiformer.compiler.machines import ChainOfThought, simulate
from certiformer.compiler.machines.examples import busy_beaver, increment, palindrome
from certiformer.errors import BadInput
from certiformer.kernel import Refused
from certiformer.kernel.certificate import Certificate
from certiformer.kernel.computation import check_computation
from certiformer.kernel.files import digest
from certiformer.kernel.meanings.machine import Machine
from certiformer.kernel.rounding import FORMATS
from certiformer.kernel.weights import Tensor, read_model
from compiler.machines.random_machines import random_machine
from compiler.machines.token_runs import thoughts
from compiler.numpy_decoder import arrays, outputs

WORDS = {"increment": ("", "1", "1011", "11111", "00000"), "palindrome": ("", "a", "abba", "abab", "aabaa")}


def stored(decoder: ChainOfThought):
    files = decoder.files()
    return read_model(files["config.json"], files["model.safetensors"])


def is_right(decoder: ChainOfThought, config: dict, t: dict[str, np.ndarray], words) -> bool:
    """Whether the model chooses every step of the simulator's runs."""
    for word in words:
        tokens, wanted = thoughts(decoder, tuple(word))
        rows = outputs(config, t, tokens[None])[0, len(word) :]
        if np.argmax(rows, axis=-1).tolist() != wanted:
            return False
    return True


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_compiled_machines_are_proved_and_right(dtype):
    cases = [
        (busy_beaver(4), 110, 0, ("",)),
        (increment(), 14, 5, WORDS["increment"]),
        (palindrome(), 40, 5, WORDS["palindrome"]),
    ]
    cases += [(random_machine(50 + seed), 25, 3, ((), ("a", "_", "a"))) for seed in range(4)]
    for machine, steps, symbols, words in cases:
        decoder = ChainOfThought(machine, steps, symbols, dtype)
        config, tensors = stored(decoder)
        report = prove_thoughts(machine, config, tensors)
        assert (report.steps, report.symbols) == (steps, symbols) and report.margin > 0.12
        assert report.cases == find(decoder.files()).cases == len(machine.states) * len(machine.symbols)
        assert is_right(decoder, config, arrays(tensors, dtype), words)


def test_inputs_longer_than_the_run():
    """More input symbols than steps: the numbered cells go as far as the input."""
    decoder = ChainOfThought(palindrome(), 3, 9, "float32")
    config, tensors = stored(decoder)
    assert prove_thoughts(palindrome(), config, tensors).symbols == 9
    assert is_right(decoder, config, arrays(tensors, "float32"), ("", "a", "abaabbaba"))


@pytest.mark.slow
def test_the_run_in_jax_is_that_of_the_simulator():
    decoder = ChainOfThought(busy_beaver(4), 110, 0, "float32")
    result, moments = decoder.follow()
    assert result == simulate(busy_beaver(4)) and result.ones == 13
    assert len(moments) == 108 and (moments[-1].state, moments[-1].step) == ("H", 107)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_noise_of_the_sum_is_within_its_bound(dtype):
    """Shares and sums of moves in the type, in a random order: within the bound, and the anchor rounds them away."""
    rng = np.random.default_rng(5)
    number = np.dtype(dtype).type
    for longest in (20, 300, 650):
        bound = float(noise_of(FORMATS[dtype], longest, 1e-6))
        worst = 0.0
        for row in (longest // 3, longest - 2):
            moves = rng.choice([-1, 1], row + 1, p=[0.1, 0.9])
            weights = np.exp(np.zeros(row + 2, dtype) - np.log(number(longest - row)))
            weights[-1] = 1.0
            total = number(0)
            for weight in rng.permutation(weights):
                total = number(total + weight)
            share = number(weights[0] / total)
            summed = number(0)
            for move in rng.permutation(moves):
                summed = number(summed + number(share * number((longest + 1) * move)))
            worst = max(worst, abs(float(summed) - moves.sum()))
            anchored = number(number(anchor(dtype)) + summed)
            assert float(anchored) - anchor(dtype) == moves.sum()
        assert worst <= bound and bound < 1 / 16
        assert dtype == "float64" or worst > 0  # there was something to round away


def test_the_anchor_rounds_the_noise_away():
    """In float32, on a run to cell 600: the sum is off without the anchor, and exactly a whole number with it."""
    runner = Machine(("0",), ("A",), (), (("A", "0", "0", "R", "A"),))
    decoder = ChainOfThought(runner, 600, 0, "float32")
    config, tensors = stored(decoder)
    place, t = decoder.shape.places["sum"], arrays(tensors, "float32")
    head_alone = {**config, "blocks": [{**config["blocks"][0], "ffn": None}]}
    t |= {
        "readout.weight": np.eye(config["width"], dtype=np.float32)[:, [place]],
        "readout.bias": np.zeros(1, np.float32),
    }
    tokens, _ = thoughts(decoder, ())
    cells = np.arange(len(tokens))
    with_anchor = outputs(head_alone, t, tokens[None])[0, :, 0].astype(float) - anchor("float32")
    t["code.table"][:, place] = 0.0
    without = outputs(head_alone, t, tokens[None])[0, :, 0]
    assert np.array_equal(with_anchor, cells) and not np.array_equal(without, cells)


def test_without_the_order_of_writes_the_decoder_errs():
    """The negative control: the lead of the latest write is what makes it right."""
    decoder = ChainOfThought(busy_beaver(4), 107)
    config, tensors = stored(decoder)
    t = arrays(tensors)
    t["blocks.1.attention.groups.0.query"][0, decoder.shape.places["one"], decoder.shape.bits] = 0.0
    assert not is_right(decoder, config, t, ("",))


@pytest.mark.parametrize("change", [0.5, -1.0, 2.0**-20])
def test_a_changed_number_is_refused_or_harmless(change):
    """Every tensor, at places that are zero and at places that are not; what is accepted is run."""
    decoder = ChainOfThought(increment(), 12, 4)
    config, tensors = stored(decoder)
    words = ("", "0", "1011", "111", "0110")
    rng = np.random.default_rng(3)
    tried = accepted = wrong = 0
    for name, tensor in tensors.items():
        data = np.array(tensor.data)
        for places in (np.flatnonzero(data), np.flatnonzero(data == 0)):
            for place in rng.permutation(places)[:5]:
                changed = data.copy()
                changed[place] += change
                if changed[place] == data[place]:  # absorbed
                    continue
                forged = {**tensors, name: Tensor(tensor.shape, changed.tolist(), tensor.dtype)}
                right = is_right(decoder, config, arrays(forged), words)
                tried, wrong = tried + 1, wrong + (not right)
                try:
                    prove_thoughts(decoder.machine, config, forged)
                except Refused:
                    continue
                accepted += 1
                assert right, (name, place)
    # The logarithms have some room.
    assert tried > 100 and accepted < 3
    assert wrong > 10 or abs(change) < 1e-3


def test_another_table_or_architecture_is_refused():
    decoder = ChainOfThought(busy_beaver(4), 20)
    config, tensors = stored(decoder)
    rows = busy_beaver(4).rows
    for number, (state, read, write, move, following) in enumerate(rows):
        for other in (
            (state, read, "1" if write == "0" else "0", move, following),
            (state, read, write, {"L": "R", "R": "S", "S": "L"}[move], following),
            (state, read, write, move, "A" if following != "A" else "B"),
        ):
            machine = Machine(("0", "1"), (*"ABCD", "H"), ("H",), (*rows[:number], other, *rows[number + 1 :]))
            with pytest.raises(
                Refused, match="entry .* of (embed.weight|blocks.1.ffn.down) is|form of the construction"
            ):
                prove_thoughts(machine, config, tensors)
    for path, value, problem in (
        (("loops",), 2, "loops differs"), (("registers",), 0, "registers differs"),
        (("readout", "kind"), "sum", "readout differs"), (("dtype",), "bfloat16", "in float64 and float32"),
        (("blocks", 0, "attention", "mask"), "none", "blocks differs"),
        (("blocks", 1, "attention", "kind"), "hard", "blocks differs"),
        (("blocks", 1, "attention", "scale"), "inverse-sqrt", "blocks differs"),
        (("blocks", 0, "ffn", "residual"), False, "blocks differs"), (("blocks", 1, "ffn", "kind"), "gelu", "blocks differs"),
        (("input", "tokens"), 22, "input, blocks differs|input differs"), (("input", "tokens"), 20, "differs"),
    ):  # fmt: skip
        forged = json.loads(json.dumps(config))
        part = forged
        for step in path[:-1]:
            part = part[step]
        part[path[-1]] = value
        with pytest.raises(Refused, match=problem):
            prove_thoughts(busy_beaver(4), forged, tensors)
    for missing in ("code.table", "blocks.0.ffn.up"):
        with pytest.raises(Refused, match="does not have the parts of a chain of thought"):
            prove_thoughts(busy_beaver(4), config, {name: t for name, t in tensors.items() if name != missing})


@pytest.mark.parametrize(
    ("lead", "message"), [(5.0, "does not lead by enough among 31 tokens"), (0.0, "by enough|no bound")]
)
def test_a_lead_that_does_not_suffice_is_refused(lead, message, monkeypatch):
    """The negative control of what is read: the same construction with a smaller lead."""
    decoder = ChainOfThought(busy_beaver(3), 30)
    for module in ("chain_of_thought_machine", "thought_weights"):
        monkeypatch.setattr(f"certiformer.axioms.{module}.LEAD", lead)
    with pytest.raises(Refused, match=message):
        prove_thoughts(decoder.machine, *stored(decoder))


def test_a_fault_in_the_construction_would_be_seen():
    """The axiom and the compiler share it, so what it computes is compared with the simulator; this is the control."""
    decoder, words = ChainOfThought(increment(), 8, 4), ("", "0", "1011", "1111")
    config, tensors = stored(decoder)
    assert is_right(decoder, config, arrays(tensors), words)
    seen = {}
    for name in ("embed.weight", "blocks.0.ffn.up", "blocks.0.ffn.down", "blocks.1.ffn.up", "blocks.1.ffn.down"):
        data = np.array(tensors[name].data)
        places = np.random.default_rng(1).permutation(np.flatnonzero(data))[:40]
        for place in places:
            other = data.copy()
            other[place] *= -1
            faulty = {**tensors, name: Tensor(tensors[name].shape, other.tolist(), tensors[name].dtype)}
            seen[name] = seen.get(name, 0) + (not is_right(decoder, config, arrays(faulty), words))
    assert min(seen.values()) >= 4, seen


def test_the_horizon_is_kept():
    assert ChainOfThought(busy_beaver(5), 5, 0, "float32").farthest() == 692
    edge = ChainOfThought(busy_beaver(2), 692, 0, "float32")
    assert prove_thoughts(edge.machine, *stored(edge)).noise < 1 / 16
    with pytest.raises(BadInput, match="in float32, for 0 input symbols, is proved for at most 692 steps, not 693"):
        ChainOfThought(busy_beaver(5), 693, 0, "float32")
    decoder = ChainOfThought(increment(), 5, 2)
    with pytest.raises(BadInput, match="reads at most 2 input symbols, not 3"):
        decoder.run("101")
    with pytest.raises(BadInput, match="is proved for 5 steps, not 6"):
        decoder.run("1", steps=6)
    with pytest.raises(BadInput, match="is for 1 to 20,000 steps, not 0"):
        ChainOfThought(increment(), 0)
    with pytest.raises(BadInput, match="stored in float64 or float32, not 'bfloat16'"):
        ChainOfThought(increment(), 5, 2, "bfloat16")


class Unchecked(ChainOfThought):
    """One that is made whatever its horizon is."""

    def reaches(self, steps: int) -> bool:
        return True


@pytest.mark.parametrize(
    ("steps", "message"),
    [(710, "are not added up well enough"), (760, "760 steps are beyond what float32 adds up exactly")],
)
def test_the_rule_knows_the_horizon_too(steps, message):
    beyond = Unchecked(busy_beaver(2), steps, 0, "float32")
    with pytest.raises(Refused, match=message):
        prove_thoughts(beyond.machine, *stored(beyond))


def test_a_wrong_logarithm_is_refused():
    decoder = ChainOfThought(busy_beaver(3), 30)
    config, tensors = stored(decoder)
    codes = np.array(tensors["code.table"].data).reshape(tensors["code.table"].shape)
    place = decoder.shape.places["log"]
    for change, accepted in ((1e-12, True), (1e-6, True), (0.002, False), (-0.002, False), (0.01, False)):
        codes[4, place] = np.log(decoder.shape.longest - 4) + change
        forged = {**tensors, "code.table": Tensor(codes.shape, codes.reshape(-1).tolist(), "F64")}
        if accepted:
            assert prove_thoughts(decoder.machine, config, forged).noise < 1 / 17
        else:
            with pytest.raises(Refused, match="are not added up well enough by the stored logarithms"):
                prove_thoughts(decoder.machine, config, forged)


def test_the_folder(tmp_path):
    folder = tmp_path / "m"
    artifact = ChainOfThought(busy_beaver(4), 20).certified()
    artifact.save(folder)
    honest = artifact.certificate
    verdict = check_computation(folder)
    assert verdict.accepted and verdict.sentence.startswith("For the empty input and each of the first 20 steps")
    proof = honest.proof
    for name, text in (("margin", "1"), ("noise", "1e-40"), ("steps", 21), ("symbols", 1)):
        forged = replace(honest, proof=replace(proof, parameters={**proof.parameters, name: text}))
        (folder / "certificate.json").write_bytes(forged.to_bytes())
        assert check_computation(folder).outcome == "refused"
    # Another machine, sealed again: the weights are not those of its table.
    lie = (folder / "machine.json").read_bytes().replace(b'"1","R","B"', b'"1","L","B"', 1)
    (folder / "machine.json").write_bytes(lie)
    forged = replace(honest, seals={**honest.seals, "machine.json": digest(lie)})
    (folder / "certificate.json").write_bytes(forged.to_bytes())
    verdict = check_computation(folder)
    assert verdict.outcome == "refused" and Certificate.from_bytes(forged.to_bytes()).level == 2


@pytest.mark.slow
def test_five_thousand_steps_of_the_five_state_beaver():
    decoder = ChainOfThought(busy_beaver(5), 5_000)
    assert prove_thoughts(decoder.machine, *stored(decoder)).margin > 0.12
    assert decoder.run() == simulate(busy_beaver(5), (), 5_000)
