"""Boolean circuits: what a row means whose token decides the next gate.

Place 0 holds `start`, place j <= n input j, place n + t gate t. Row n + t - 1 decides gate t, and looks at the places of
its operands, which are not behind it. A gate of one operand looks at it twice; a constant looks at its own row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from flint import arb

from certiformer.kernel import Refused
from certiformer.kernel.balls import ONE, smaller
from certiformer.kernel.computation import Files, Finding
from certiformer.kernel.files import CONFIG, GATES, MODEL
from certiformer.kernel.meanings.gates import Gates
from certiformer.kernel.situations.cells import Cell, Equation, Link, Meaning
from certiformer.kernel.situations.numbers import UNIT, as_ball
from certiformer.kernel.situations.plan import Held, Step
from certiformer.kernel.situations.reports import Report, finding
from certiformer.kernel.situations.walk import ROW, Walk
from certiformer.kernel.weights import Tensor, read_model

NOT_CLAIMED = (
    "That the circuit computes what its author wanted: it is compared with nothing but itself.",
    "Sampled tokens: the token with the largest output is written.",
)
START = "start"
TOKENS = (0, 1, START)
LEFT, RIGHT, OUT, REST = 1, 2, 3, 4  # operands, what is written; then what the table of rows holds


def circuit_meaning(circuit: Gates) -> Meaning:
    """Every row that decides a gate, with anything as its own token and any bits as operands."""
    first, rows = len(circuit.inputs), 1 + len(circuit.places)
    deciding = dict(enumerate(circuit.gates, first))
    tables = tuple(dict.fromkeys(gate.table_of_two for gate in circuit.gates))

    def operand(number: int) -> Any:
        def target(row: int) -> int:
            gate = deciding[row]
            return circuit.places[gate.operands[number]] if gate.operands else row

        return target

    def value(table: str, x: object, y: object) -> int:
        return int(table[2 * (x == 1) + (y == 1)])

    def operands_are_bits(table: str, x: object, y: object) -> bool:
        return START not in (x, y) or len(set(table)) == 1  # a constant may look at `start`

    cells = {
        ROW: Cell(tuple(range(rows)), (ROW,), lambda row: row),
        "token": Cell(TOKENS, ("token",), lambda token: token),
        "left": Cell(TOKENS, ("left",), lambda bit: bit),
        "right": Cell(TOKENS, ("right",), lambda bit: bit),
        "gate": Cell((0, 1), ("table", "left", "right"), value),
        "table": Cell(tables, ("table",), lambda table: table),
    }
    bases = {ROW: tuple(range(rows)), "token": TOKENS, "left": TOKENS, "right": TOKENS, "table": tables}
    links = {"left": Link(operand(0), {"token": "left"}), "right": Link(operand(-1), {"token": "right"})}
    equation = Equation("an operand is an input or a gate", ("table", "left", "right"), operands_are_bits)
    return Meaning(bases, cells, (equation,), links)


def circuit_walk(circuit: Gates, config: dict[str, Any], tensors: Mapping[str, Tensor]) -> tuple[Walk, arb]:
    """The walk of a proof, and the smallest lead of the right token over both others (1 where there is no gate)."""
    first, length = len(circuit.inputs), 1 + len(circuit.places)
    if (
        config["input"] != {"kind": "ids", "tokens": length, "vocabulary": 3}
        or config["outputs"] != 3
        or config["loops"] != 1
    ):
        raise Refused(f"the decoder does not have {length:,} places for the tokens 0, 1 and start")
    meaning = circuit_meaning(circuit)
    walk, rows = Walk(config, tensors, meaning), range(first, first + len(circuit.gates))
    walk.require_decoder()
    tables = meaning.cell("table").domain
    names = {row: gate.table_of_two for row, gate in enumerate(circuit.gates, first)}
    of_row = replace(meaning.cell("table"), bases=(ROW,), value=names.__getitem__)
    decided = meaning.with_cell("table", of_row).restricted(ROW, tuple(rows))
    held = {REST + k: Held("table", tuple(UNIT * (table[k] == "1") for table in tables)) for k in range(4)}
    before = walk.embedding()
    if rows:
        before = walk.renamed(before, held, decided)
    bit = tuple(UNIT * (token == 1) for token in TOKENS)
    steps = [
        Step({LEFT: Held("left", bit), RIGHT: Held("right", bit)}, ("left", "right")),
        Step({OUT: Held("gate", (0, UNIT))}),
    ]
    lead = ONE
    if rows:
        for value, outputs in enumerate(walk.read_out(walk.passed(before, steps, rows), "gate")):
            for token, output in enumerate(outputs):
                lead = lead if token == value else smaller(lead, as_ball(outputs[value].low - output.high))
    if not lead > 0:
        raise Refused("the decoder does not write the gates of the circuit")
    return walk, lead


def sentence(files: Files) -> str:
    """The claim in one plain sentence."""
    circuit, (config, _) = Gates.from_text(files[GATES]), read_model(files[CONFIG], files[MODEL])
    count, gates, outputs = len(circuit.inputs), len(circuit.gates), len(circuit.outputs)
    inputs = f"For each of the 2^{count} inputs" if count else "Without any input"
    written = "the value of the one gate" if gates == 1 else f"the values of the {gates:,} gates in order"
    return (
        f"{inputs} the decoder writes {written}, in real arithmetic and in a run in {config['dtype']}, and so the"
        f" {outputs:,} output{'s' * (outputs > 1)} of the circuit."
    )


def find(files: Files) -> Finding:
    """Why the claim holds, with the smallest margin; raises `Refused` or `BadInput`."""
    circuit = Gates.from_text(files[GATES])
    report = prove_circuit(circuit, *read_model(files[CONFIG], files[MODEL]))
    reason = (
        f"every lookup of the {len(circuit.gates):,} gates finds its operand, all wrong places together get less than"
        " {leak}, and in all {cases} cases the right token leads by at least {margin}"
    )
    return finding(report, reason, {"inputs": len(circuit.inputs), "gates": len(circuit.gates)})


def prove_circuit(circuit: Gates, config: dict[str, Any], tensors: Mapping[str, Tensor]) -> Report:
    """Check that the stored decoder writes the gates of the circuit; raises `Refused` with the reason when it does not."""
    walk, lead = circuit_walk(circuit, config, tensors)
    return Report(walk.leak * (config["input"]["tokens"] - 1), lead, walk.meaning.tally.checked)
