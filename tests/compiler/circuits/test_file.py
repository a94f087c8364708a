"""Circuit files: what is read, against the function that it means, and one sentence for each mistake."""

from __future__ import annotations

import json
from itertools import product

import pytest

from certiformer.compiler.circuits.definitions import OPERATIONS, Definition, circuit_of
from certiformer.compiler.circuits.file import (
    parse_bench,
    parse_blif,
    parse_circuit,
    parse_circuit_json,
    read_circuit,
    split_bits,
)
from certiformer.errors import BadInput
from certiformer.kernel.meanings.gates import Gate, Gates

MEANING = {
    "AND": all, "NAND": lambda bits: not all(bits), "OR": any, "NOR": lambda bits: not any(bits),
    "XOR": lambda bits: sum(bits) % 2 == 1, "XNOR": lambda bits: sum(bits) % 2 == 0,
}  # fmt: skip
C17 = """
# c17, the smallest of the ISCAS-85 benchmarks
INPUT(1)
INPUT(2)
INPUT(3)
INPUT(6)
INPUT(7)
OUTPUT(22)
OUTPUT(23)
10 = NAND(1, 3)
11 = NAND(3, 6)
16 = NAND(2, 11)
19 = NAND(11, 7)
22 = NAND(10, 16)
23 = NAND(16, 19)
"""


def truth(circuit: Gates, output: str) -> str:
    return "".join(str(circuit.values(bits)[output]) for bits in product((0, 1), repeat=len(circuit.inputs)))


@pytest.mark.parametrize("operation", MEANING)
@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_operations_of_any_number_of_operands(operation, count):
    names = [f"x{k}" for k in range(count)]
    circuit = circuit_of(names, [Definition("y", tuple(names), operation)], ["y"])
    wanted = "".join(str(int(MEANING[operation](bits))) for bits in product((0, 1), repeat=count))
    assert truth(circuit, "y") == wanted
    assert len(circuit.gates) == max(1, count - 1) and circuit.gates[-1].name == "y"


@pytest.mark.parametrize("table", ["00010111", "01101001", "10000001", "00001111", "1010101001010110"])
def test_long_truth_tables(table):
    names = "abcd"[: len(table).bit_length() - 1]
    gates = json.dumps([["y", table, *names]])
    assert truth(parse_circuit(f'inputs = {json.dumps([*names])}\noutputs = ["y"]\ngates = {gates}'), "y") == table


@pytest.mark.parametrize("covers", ["0", "1"])
@pytest.mark.parametrize(
    "rows",
    [[], ["---"], ["1--"], ["-0-"], ["01-"], ["010"], ["1--", "-1-"], ["0-1", "-10", "1--"], ["000", "111", "--0"]],
)
def test_covers(rows, covers):
    text = "\n".join(f"{row} {covers}" for row in rows)
    circuit = parse_blif(f".model m\n.inputs a b c\n.outputs y\n.names a b c y\n{text}\n.end\n")

    def covered(bits: tuple[int, ...]) -> bool:
        return any(all(sign in ("-", str(bit)) for sign, bit in zip(row, bits, strict=True)) for row in rows)

    on, off = covers, "10"[int(covers)]
    # A cover without rows is the constant 0, whatever its rows would have said.
    wanted = "".join((on if covered(bits) else off) if rows else "0" for bits in product((0, 1), repeat=3))
    assert truth(circuit, "y") == wanted


def test_bench():
    circuit = parse_bench(C17)
    assert circuit.inputs == ("1", "2", "3", "6", "7") and circuit.outputs == ("22", "23")
    for bits in product((0, 1), repeat=5):
        one, two, three, six, seven = bits
        eleven = 1 - (three & six)
        sixteen = 1 - (two & eleven)
        values = circuit.values(bits)
        assert values["22"] == 1 - ((1 - (one & three)) & sixteen) and values["23"] == 1 - (
            sixteen & (1 - (eleven & seven))
        )
    constants = parse_bench("OUTPUT(y)\nz = gnd\no = VDD\ny = OR(z, o)\n")
    assert constants.values(()) == {"z": 0, "o": 1, "y": 1}


def test_blif_lines_comments_and_constants():
    circuit = parse_blif(
        ".model top # a comment\n.inputs a \\\n b\n.outputs y one\n.names one\n1\n.names zero\n"
        ".names a b zero y\n1-0 1\n-10 1\n.end\nnothing after the end is read"
    )
    assert circuit.inputs == ("a", "b") and truth(circuit, "y") == "0111" and circuit.values((0, 0))["one"] == 1
    assert circuit.values((0, 0))["zero"] == 0


def test_any_order_and_helper_names_that_are_taken():
    circuit = parse_circuit_json(
        json.dumps({
            "inputs": ["a", "b", "c"],
            "outputs": ["y"],
            "gates": [["y", "AND", "y~1", "a", "b"], ["y~1", "xor", "a", "b", "c"]],
        })
    )  # fmt: skip
    assert len({gate.name for gate in circuit.gates}) == len(circuit.gates) == 4
    assert truth(circuit, "y") == "00000001"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('inputs = ["a"]\noutputs = ["y"]\ngates = [["y", "NOT", "y"]]', "the circuit has a cycle: y feeds y"),
        ('inputs = ["a"]\noutputs = ["y"]\ngates = [["y", "AND", "a", "q"]]', "the gate y uses q, which is neither"),
        ('inputs = ["a"]\noutputs = ["a"]\ngates = [["y", "NOT", "a"], ["y", "BUF", "a"]]', "y is defined twice"),
        ('inputs = ["a"]\noutputs = ["a"]\ngates = [["a", "NOT", "a"]]', "a is defined twice"),
        ('inputs = ["a", "a"]\noutputs = ["a"]\ngates = []', "a is defined twice"),
        ('inputs = ["a"]\noutputs = []\ngates = []', "the circuit has no outputs"),
        ('inputs = ["a"]\noutputs = ["b"]\ngates = []', "the output b is neither an input nor a gate"),
        ('inputs = ["a"]\noutputs = ["y"]\ngates = [["y", "FOO", "a"]]', "the gate y is a 'FOO'; known are AND"),
        (
            'inputs = ["a"]\noutputs = ["y"]\ngates = [["y", "NOT", "a", "a"]]',
            "NOT of 2 operands; it needs one operand",
        ),
        ('inputs = ["a"]\noutputs = ["y"]\ngates = [["y", "AND"]]', "AND of 0 operands; it needs at least one"),
        ('inputs = ["a"]\noutputs = ["y"]\ngates = [["y", "011", "a"]]', "has 3 bits; for 1 operands it needs 2"),
        ('inputs = ["a"]\noutputs = ["y"]\ngates = [["y"]]', "gate 1 is not a list of texts"),
        ('inputs = ["a b"]\noutputs = ["a b"]\ngates = []', "the input is a text without blanks, not 'a b'"),
        ('inputs = "a"\noutputs = ["a"]\ngates = []', "inputs must be a list of texts"),
        ('inputs = ["a"]\noutputs = ["a"]', "has the entries inputs, outputs, gates, not inputs, outputs"),
        ("inputs = [", "this is not TOML"),
    ],
)
def test_mistakes_in_our_own_format(text, message):
    with pytest.raises(BadInput) as caught:
        parse_circuit(text)
    assert message in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (".model a\n.latch a b\n", "line 2: .latch is not part of a plain Boolean circuit"),
        (".model a\n.model b\n", "line 2: the file has a second .model"),
        (".inputs a\n11 1\n", "line 2: '11 1' does not belong to any .names"),
        (".inputs a\n.names a y\n11 1\n", "line 3: the row has 2 places for 1 operands"),
        (".inputs a\n.names a y\n2 1\n", "line 3: a row of a cover is a pattern of 0, 1 and -"),
        (".inputs a\n.outputs y\n.names a y\n1 1\n0 0\n", "line 3: the cover of y mixes rows for 0 and for 1"),
        (".inputs a\n.names\n", "line 2: .names needs the name of a signal"),
        (".inputs a\n.names a y\n1 1\n", "the circuit has no outputs"),
    ],
)
def test_mistakes_in_blif(text, message):
    with pytest.raises(BadInput) as caught:
        parse_blif(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("INPUT(a)\nOUTPUT(q)\nq = DFF(a)", "line 3: DFF is not part of a plain Boolean circuit"),
        ("INPUT(a)\ny := AND(a)", "line 2: 'y := AND(a)' is not INPUT"),
        ("INPUT(a)\nOUTPUT(y)\ny = MUX(a, a, a)", "the gate y is a 'MUX'"),
        ("INPUT(a)\nOUTPUT(y)\ny = AND(a, z)\nz = NOT(y)", "the circuit has a cycle"),
    ],
)
def test_mistakes_in_bench(text, message):
    with pytest.raises(BadInput) as caught:
        parse_bench(text)
    assert message in str(caught.value)


def test_files_are_found_by_their_ending(tmp_path):
    (tmp_path / "c17.bench").write_text(C17)
    assert len(read_circuit(tmp_path / "c17.bench").gates) == 6
    with pytest.raises(BadInput, match="a circuit file ends in .toml, .json, .blif, .bench"):
        read_circuit(tmp_path / "c17.v")
    with pytest.raises(BadInput, match="cannot be read"):
        read_circuit(tmp_path / "none.blif")
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(BadInput, match=r"bad.json: this is not JSON"):
        read_circuit(tmp_path / "bad.json")


def test_bits():
    circuit = parse_bench(C17)
    assert split_bits("1 0 1 1 0", circuit) == split_bits("10110", circuit) == (1, 0, 1, 1, 0)
    with pytest.raises(BadInput, match="the circuit has 5 inputs, and 4 bits are given"):
        split_bits("1 0 1 1", circuit)
    with pytest.raises(BadInput, match="bit 3 of the input is '2', which is not 0 or 1"):
        split_bits("1 0 2 1 0", circuit)


def test_gates_json_is_canonical():
    circuit = parse_bench(C17)
    assert Gates.from_text(circuit.to_text()) == circuit
    with pytest.raises(BadInput, match="not in its canonical form"):
        Gates.from_text(circuit.to_text() + "\n")
    with pytest.raises(BadInput, match="which is not an input or an earlier gate"):
        Gates(("a",), (Gate("y", "01", ("z",)), Gate("z", "01", ("a",))), ("y",))
    with pytest.raises(BadInput, match="needs a truth table of 4 bits, not '01'"):
        Gates(("a",), (Gate("y", "01", ("a", "a")),), ("y",))
    assert set(OPERATIONS) == {*MEANING, "BUF", "NOT"}
