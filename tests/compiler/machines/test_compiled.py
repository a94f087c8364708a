"""Compiled machines against the plain simulator, through the one transformer."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from certiformer import load
from certiformer.compiler.machines import machine_loop, simulate
from certiformer.compiler.machines.examples import busy_beaver, increment, palindrome
from certiformer.compiler.machines.simulate import Simulation
from certiformer.compiler.machines.windows import run_cached
from certiformer.errors import BadInput
from certiformer.model import Transformer
from compiler.machines.random_machines import after, configuration, random_machine


@pytest.mark.parametrize(("cells", "loops"), [(1, 1), (2, 1), (4, 1), (3, 5)])
def test_loops_are_steps_from_every_configuration(cells, loops):
    """Every tape, every place and every state of the head, in the model's own forward pass."""
    for seed in range(2):
        machine = random_machine(seed)
        compiled = machine_loop(machine, cells)
        model = Transformer(replace(compiled.config, loops=loops), compiled.tensors)
        count, tokens, wanted = len(machine.symbols), [], []
        for symbols in product(machine.symbols, repeat=cells):
            for head, state in product(range(cells), machine.states):
                row = [machine.symbols.index(symbol) for symbol in symbols]
                row[head] += count * (1 + machine.states.index(state))
                tokens.append(row)
                wanted.append(after(configuration(machine, symbols, head, state), loops).reshape(-1))
        assert np.array_equal(model.evaluate(np.array(tokens)), np.array(wanted))


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize("method", ["near", "full", "cached"])
def test_the_four_state_beaver_halts(dtype, method):
    compiled = machine_loop(busy_beaver(4), 24, dtype)
    result = compiled.run(method=method)
    assert result == simulate(busy_beaver(4), cells=24)
    assert (result.halted, result.steps, result.ones) == (True, 107, 13)
    if method != "cached":
        assert compiled.deviation(method=method) == 0.0


def test_five_thousand_steps_of_the_five_state_beaver():
    compiled = machine_loop(busy_beaver(5), 400)
    assert compiled.run(steps=5_000) == simulate(busy_beaver(5), steps=5_000, cells=400)
    assert compiled.deviation(steps=5_000) == 0.0


def test_near_the_head_is_the_full_pass():
    """Bit by bit, arrival slots and positions included, after every number of steps."""
    for seed in range(2):
        compiled = machine_loop(random_machine(seed), 9)
        for steps in (1, 2, 3, 10):
            streams = []
            for method in ("near", "full"):
                try:
                    streams.append(np.asarray(compiled._run(("_", "a", "a"), steps, method).stream))
                except BadInput as reason:
                    streams.append(str(reason))
            assert type(streams[0]) is type(streams[1])
            assert (
                np.array_equal(streams[0], streams[1])
                if isinstance(streams[0], np.ndarray)
                else streams[0] == streams[1]
            )


@pytest.mark.parametrize("seed", range(3))
def test_random_machines(seed):
    machine = random_machine(100 + seed)
    compiled = machine_loop(machine, 30, ("float64", "float32", "bfloat16")[seed % 3])
    for word in ((), ("_", "a"), ("a", "a", "_", "a")):
        try:
            wanted = simulate(machine, word, 60, cells=30)
        except BadInput as reason:
            with pytest.raises(BadInput) as caught:
                compiled.run(word, 60)
            assert str(caught.value) == str(reason)
        else:
            assert compiled.run(word, 60) == wanted


@pytest.mark.parametrize(("machine", "word"), [(increment(), "1011"), (palindrome(), "abba"), (palindrome(), "abab")])
def test_a_trace_is_the_run_step_by_step(machine, word):
    compiled = machine_loop(machine, 20)
    assert compiled.trace(word, 50) == list(Simulation(machine, word, 20))


def test_a_tape_that_is_too_short_is_noticed():
    compiled = machine_loop(busy_beaver(4), 8)
    for method in ("near", "full"):
        with pytest.raises(BadInput, match="^the tape of 8 cells is too short: the machine needs cell -5 at step 59$"):
            compiled.run(method=method)
        assert compiled.run(steps=58, method=method) == simulate(busy_beaver(4), steps=58, cells=8)
    with pytest.raises(BadInput, match="needs cell -5 at step 59"):
        compiled.trace(steps=80)


def test_wrong_arguments_get_one_sentence():
    compiled = machine_loop(busy_beaver(2), 8)
    with pytest.raises(BadInput, match=r"symbol 2 of the input is 'x', which is not in the alphabet 0, 1"):
        compiled.run(("1", "x"))
    with pytest.raises(BadInput, match="the input has 5 symbols, more than the 4 cells from 0 on"):
        compiled.run("11111")
    with pytest.raises(BadInput, match="non-negative integer, not -1"):
        compiled.run(steps=-1)
    with pytest.raises(BadInput, match="near or full, not 'fast'"):
        compiled.run(method="fast")
    with pytest.raises(BadInput, match="1 to 1,000,000 cells, not 0"):
        machine_loop(busy_beaver(2), 0)
    with pytest.raises(BadInput, match="float64, float32, bfloat16, not 'int8'"):
        machine_loop(busy_beaver(2), 8, "int8")


def test_a_folder_holds_the_same_machine(tmp_path):
    compiled = machine_loop(increment(), 20, "float32")
    artifact = compiled.certified()
    assert artifact.certified and artifact.save(tmp_path / "m") == tmp_path / "m"
    loaded = load(tmp_path / "m").subject
    assert loaded.machine == compiled.machine and loaded.config == compiled.config
    assert all(np.array_equal(loaded.tensors[name], tensor) for name, tensor in compiled.tensors.items())
    assert loaded.run("111").ones == 4
    with pytest.raises(BadInput, match="already holds a compiled machine; pass force=True"):
        artifact.save(tmp_path / "m")
    machine_loop(increment(), 30).certified().save(tmp_path / "m", force=True)
    assert load(tmp_path / "m").subject.cells == 30
    (tmp_path / "m" / "notes.txt").touch()
    with pytest.raises(BadInput, match="not empty and not an earlier compiled machine"):
        artifact.save(tmp_path / "m", force=True)
    (tmp_path / "m" / "machine.json").write_text(palindrome().to_text())
    with pytest.raises(BadInput, match="is not that of the machine beside it"):
        load(tmp_path / "m")


def test_compiling_needs_no_jax():
    code = "import sys; from certiformer.compiler.machines import *; from certiformer.compiler.machines.examples import busy_beaver;"
    code += "c = machine_loop(busy_beaver(5)); print(c.config.width, 'jax' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["50", "False"]


def test_windows_are_looked_up():
    """Machines that wander, loop in place and stop, by windows of 64 and fewer cells, on tapes that end and that do not."""
    for machine, word, steps, cells in (
        (busy_beaver(5), "", 20_000, 1_000),
        (increment(), "1011", 30, 20),
        (palindrome(), "abba", 100, 200),
        (random_machine(3), "a", 500, 2_000),
    ):
        compiled = machine_loop(machine, cells)
        for few in (0, 1, 7, steps):
            assert compiled.run(word, few, "cached") == simulate(machine, word, few, cells=cells)


def test_windows_are_computed_once():
    result, effort = run_cached(machine_loop(busy_beaver(5), 2_000), (), 100_000)
    assert result == simulate(busy_beaver(5), steps=100_000, cells=2_000)
    assert effort.visits > 10 * effort.windows and effort.passes < 20_000


def test_a_short_tape_is_noticed_by_windows():
    for cells in (8, 100):
        with pytest.raises(BadInput) as wanted:
            simulate(busy_beaver(5 if cells == 100 else 4), steps=100_000, cells=cells)
        with pytest.raises(BadInput) as found:
            machine_loop(busy_beaver(5 if cells == 100 else 4), cells).run(steps=100_000, method="cached")
        assert str(found.value) == str(wanted.value)


@pytest.mark.slow
def test_the_five_state_beaver_halts():
    result, effort = run_cached(machine_loop(busy_beaver(5), 24_600), (), 50_000_000)
    assert (result.halted, result.steps, result.ones) == (True, 47_176_870, 4_098)
    assert effort.windows < 200


@pytest.mark.slow
def test_five_thousand_full_passes():
    compiled = machine_loop(busy_beaver(5), 400)
    assert compiled.run(steps=5_000, method="full") == simulate(busy_beaver(5), steps=5_000, cells=400)
    assert compiled.deviation(steps=5_000, method="full") == 0.0
