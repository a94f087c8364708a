"""Machine files: what is read, and one sentence for every mistake."""

from __future__ import annotations

import pytest

from certiformer.compiler.machines import notes, parse_machine, read_machine, split_symbols
from certiformer.compiler.machines.examples import busy_beaver, increment
from certiformer.errors import BadInput
from certiformer.kernel.meanings.machine import Machine

GOOD = """
blank = "0"
start = "A"
halt = ["H"]
transitions = [["A", "0", "1", "R", "B"], ["A", "1", "1", "L", "B"], ["B", "0", "1", "L", "A"], ["B", "1", "1", "S", "H"]]
"""


def test_a_file_is_read(tmp_path):
    path = tmp_path / "machine.toml"
    path.write_text(GOOD)
    machine = read_machine(path)
    assert machine.symbols == ("0", "1") and machine.states == ("A", "B", "H") and machine.halting == ("H",)
    assert machine.transition("B", "1") == ("1", "S", "H")
    assert machine.transition("H", "1") is None
    assert notes(machine) == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('start = "A"', 'start = ["A", "B"]', r"one start state, not 2 \(A, B\)"),
        ('start = "A"', "start = 1", "start holds 1, which is not a text"),
        ('start = "A"\n', "", "no entry 'start'"),
        ('start = "A"', 'start = "A"\nname = "x"', "an entry 'name'"),
        (', ["B", "1", "1", "S", "H"]', "", 'no transition for state B reading 1; add it, .* missing = "halt"'),
        (', ["B", "0", "1", "L", "A"], ["B", "1", "1", "S", "H"]', "", r"state B reading 0 \(and 1 more are missing\)"),
        ('start = "A"', 'start = "A"\nsymbols = ["0"]', "transition 1 uses '1', which is not in the alphabet 0"),
        ('start = "A"', 'start = "A"\nsymbols = ["1"]', "the blank '0' is not in the alphabet 1"),
        ('start = "A"', 'start = "A"\nsymbols = ["0", "1", "1"]', "lists a symbol twice"),
        ('"R"', '"X"', "transition 1 moves 'X'; a move is L, R or S"),
        (
            '["B", "1", "1", "S", "H"]',
            '["A", "1", "1", "S", "H"]',
            "transitions 2 and 4 both say what A does on reading 1",
        ),
        ('["B", "1", "1", "S", "H"]', '["H", "1", "1", "S", "H"]', "transition 4 leaves the halting state H"),
        ('["B", "1", "1", "S", "H"]', '["B", "1", "1", "S"]', "transition 4 is not a list of five"),
        ('["B", "1", "1", "S", "H"]', '["B", "1", 1, "S", "H"]', "transition 4 holds 1, which is not a text"),
        ('"1", "R", "B"]', '"a b", "R", "B"]', "a symbol is a text without blanks"),
        ('halt = ["H"]', 'halt = ["H", "H"]', "halt lists a state twice"),
        ('halt = ["H"]', 'halt = "H"', "halt must be a list"),
        ('halt = ["H"]', "halt = [", "this is not TOML"),
        ('halt = ["H"]', 'halt = ["H"]\nmissing = "guess"', "missing is one of refuse, halt"),
    ],
)
def test_a_mistake_gets_one_sentence(old, new, message):
    assert old in GOOD
    with pytest.raises(BadInput, match=message) as caught:
        parse_machine(GOOD.replace(old, new))
    assert "\n" not in str(caught.value)


def test_missing_transitions_may_halt():
    machine = parse_machine(GOOD.replace(', ["B", "1", "1", "S", "H"]', "") + 'missing = "halt"')
    assert machine.transition("B", "1") is None


def test_unreachable_states_are_noted_and_kept():
    machine = parse_machine(GOOD.replace('["B", "1", "1", "S", "H"]', '["B", "1", "1", "S", "A"]'))
    assert machine.unreachable == ("H",)
    assert notes(machine)[0] == "no run from A can enter the state H"


def test_a_file_that_is_none_is_named(tmp_path):
    with pytest.raises(BadInput, match=r"absent\.toml cannot be read: No such file"):
        read_machine(tmp_path / "absent.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadInput, match=r"binary\.toml is not a text file"):
        read_machine(tmp_path / "binary.toml")


def test_symbols_of_an_input():
    beaver = busy_beaver(3)
    assert split_symbols("1 0  1", beaver) == split_symbols("101", beaver) == ("1", "0", "1")
    with pytest.raises(BadInput, match=r"symbol 2 of the input is '2', which is not in the alphabet 0, 1"):
        split_symbols("1 2", beaver)
    with pytest.raises(BadInput, match=r"symbol 3 of the input is 'x'"):
        split_symbols("10x", beaver)


@pytest.mark.parametrize("machine", [busy_beaver(5), increment()])
def test_the_stored_table_is_the_machine(machine):
    text = machine.to_text()
    assert Machine.from_text(text) == machine
    with pytest.raises(BadInput, match="canonical"):
        Machine.from_text(text + " ")
    with pytest.raises(BadInput, match="canonical"):
        Machine.from_text(text.replace('"format"', '"missing":"halt","format"'))
    with pytest.raises(BadInput, match="not valid JSON"):
        Machine.from_text(text[:-3])
    with pytest.raises(BadInput, match="not a JSON object"):
        Machine.from_text("[]")
    with pytest.raises(BadInput, match="exactly the entries"):
        Machine.from_text("{}")
