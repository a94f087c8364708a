"""One block that writes a token for each gate computes a Boolean circuit: for all inputs at once, width O(log size).

Statement
    Let a circuit have n inputs and T gates with at most two operands, in an order in which they can be computed. The
    decoder reads the tokens `start`, x_1, ..., x_n and then writes one token after the other, each the one with the
    largest output. Suppose the stored block passes the checks below. Then for each of the 2^n inputs the tokens that
    it writes are the values of gate 1, ..., gate T, in real arithmetic and in every run in the stored type.

Source
    Li, Liu, Zhou and Ma 2024 (li2024, arXiv 2402.12875): with T steps of chain of thought, constant depth, constant
    precision and width O(log n), transformers compute what circuits of size T compute. *Upper bounds.* Without
    a chain of thought, constant depth gives no more than AC0 in constant precision (li2024) and no more than TC0 in
    precision O(log n) (merrill2023, arXiv 2207.00729); so the steps are needed, unless TC0 is all of P/poly.

Differs from the source in
    The weights are our own and explicit: width 3 ceil(log2(n + T + 1)) + 8, two heads, eight hidden units for every
    circuit, all numbers small multiples of 1/4, scores that are multiples of 32. The circuit is in the table of
    positions, as in the source (its theorem is non-uniform, too). The claim is checked from the stored weights.

Proof
    *Places.* Place 0 holds `start`, place j <= n input j, place n + t gate t. Row n + t - 1 decides gate t.

    By the rule of situations (`kernel.situations`), with the meaning and the plan of `kernel.situations.circuits`.

    *Operands.* Row n + t - 1 looks at the place of its operand, once for each head, which is not behind the row, so
    that the causal mask allows it. The value is the bit of a token, so a slot of the row is the operand's bit up to the
    share of all other places, roundings included.

    *Gate.* What else the row holds is exact: its own token and its entries of the table of rows. All combinations of the
    gate's truth table and of what the operands may be are run through the stored units and the read-out, with the slots
    as intervals; in each the output of the right token is larger than both others. Tokens are discrete: nothing of the
    leakage is handed on. Induction over the gates. QED.

Assumptions
    form (**checked**): one causal block, two softmax heads of unit scale, ReLU units with residual, a table of codes.
    weights (**checked**): lookups, values and outputs are those of the stored circuit, in every case.
    run (**trusted**): arithmetic is as described in `kernel.rounding`, and the stream between attention and hidden units
    is one array of numbers of the stored type.

Certified
    The statement, for all 2^n inputs. `margin` is the smallest lead of the right token, `leak` the largest share of all
    wrong places together.

Not certified
    That the circuit computes what its author wanted; sampling instead of taking the largest output.

Example
    >>> from flint import arb
    >>> from certiformer.kernel.rounding import FORMATS
    >>> from certiformer.kernel.situations.heads import shares_of
    >>> shares = shares_of(FORMATS["float32"], 2_032, arb(64))
    >>> bool(1 - shares.low < 1e-5), bool(shares.leak < 1e-26)
    (True, True)

Tests
    tests/theorems/test_chain_of_thought_circuit.py
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import frexp
from typing import Any

from flint import arb

from certiformer.kernel.balls import decimal
from certiformer.kernel.computation import Files, Finding
from certiformer.kernel.files import CONFIG, GATES, MODEL
from certiformer.kernel.meanings.gates import Gates
from certiformer.kernel.situations.circuits import written_circuit
from certiformer.kernel.weights import Tensor, read_model

THEOREM = {
    "id": "axioms.chain_of_thought_circuit",
    "title": "One block that writes a token for each gate computes a Boolean circuit, for all inputs at once.",
    "kind": "exact",
    "sources": (
        "li2024",
        "merrill2023",
    ),
    "verb": "compile",
    "assumptions": (
        ("form", "one causal block, two softmax heads, ReLU units, a table of position codes", "checked"),
        ("weights", "lookups, values and outputs are those of the circuit in every case", "checked"),
        ("run", "a run rounds as kernel.rounding describes, between sub-layers to the stored type", "trusted"),
    ),
    "uses": (),
}

NOT_CLAIMED = (
    "That the circuit computes what its author wanted: it is compared with nothing but itself.",
    "Sampled tokens: the token with the largest output is written.",
)


@dataclass(frozen=True)
class CircuitReport:
    """What was proved: the smallest lead of the right token, the share of all wrong places, how many situations."""

    margin: arb
    leak: arb
    cases: int


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
    margin, leak = decimal(report.margin, up=False), decimal(report.leak, up=True)
    power = frexp(float(report.leak.upper()))[1]  # the leak is below 2^power
    reason = (
        f"every lookup of the {len(circuit.gates):,} gates finds its operand, all wrong places together get less than"
        f" 2^{power}, and in all {report.cases:,} cases the right token leads by at least {margin}"
    )
    sizes = {"inputs": len(circuit.inputs), "gates": len(circuit.gates)}
    return Finding(reason, {**sizes, "margin": margin, "leak": leak}, cases=report.cases)


def prove_circuit(circuit: Gates, config: dict[str, Any], tensors: Mapping[str, Tensor]) -> CircuitReport:
    """Check that the stored decoder writes the gates of the circuit; raises `Refused` with the reason when it does not."""
    walk, lead = written_circuit(circuit, config, tensors)
    return CircuitReport(lead, walk.leak * (config["input"]["tokens"] - 1), walk.meaning.tally.checked)
