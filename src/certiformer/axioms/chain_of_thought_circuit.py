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

    *Scores.* Keys and queries copy coordinates of the position table that no sub-layer writes to. Every key is a
    vector k_j of B signs, all different; the query of head h at the row that decides a gate is lambda k_m, where m is
    the place of its operand h, which is not behind the row, so that the causal mask allows it. As |k_j|^2 = B for
    all j, m leads by lambda |k_m - k_j|^2 / 2 >= 2 lambda. Scores are sums of B terms +-lambda with lambda a power of
    two: exact in a run.

    *Operands.* The value is the bit of a token, so slot h of the row is a weighted sum of bits, with a share of
    at least 1 / (1 + e) for the operand and at most e for all other places, e = (n + T) exp(-2 lambda)
    (`axioms.lookups.shares_of`, roundings included).

    *Gate.* What else the row holds is exact: the bit of its own token and its entries of the position table. So the
    outputs depend on finitely many things: the entries of the table that the hidden units or the read-out look at, the
    own bit, and the bits of the two operands. All cases are enumerated, with the slots as intervals; in each the
    output of the right token is larger than both others, roundings included. Tokens are discrete: nothing of the
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
    >>> from certiformer.axioms.lookups import shares_of
    >>> from certiformer.kernel.rounding import FORMATS
    >>> shares = shares_of(FORMATS["float32"], others=2_032, lead=64.0)
    >>> bool(1 - shares.low < 1e-5), bool(shares.rest < 1e-23)
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

from certiformer.axioms.lookups import Shares, Units, columns, copied_coordinates, enclosed_sum, shares_of, sparse_row
from certiformer.kernel.balls import ONE, ZERO, decimal, smaller, working_precision
from certiformer.kernel.computation import Files, Finding
from certiformer.kernel.files import CONFIG, GATES, MODEL
from certiformer.kernel.refusal import Refused
from certiformer.kernel.rounding import FORMATS, NoBound, no_overflow
from certiformer.kernel.weights import Tensor, read_model
from certiformer.target.gates import Gates

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
_HEAD, _FFN = "blocks.0.attention.groups.0", "blocks.0.ffn"
_ATTENTION = {
    "kind": "softmax", "bias": False, "scale": "unit", "mask": "causal", "score_bias": "none", "residual": True,
}  # fmt: skip
_BIT, _SLOTS, _REST = 0, (1, 2), 4  # own bit, operands, out; then what the position table holds


@dataclass(frozen=True)
class CircuitReport:
    """What was proved: the smallest lead of the right token, the share of all wrong places, how many cases there were."""

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
    power = frexp(float(report.leak))[1]  # the leak is below 2^power
    reason = (
        f"every lookup of the {len(circuit.gates):,} gates finds its operand, all wrong places together get less than"
        f" 2^{power}, and in all {report.cases:,} cases the right token leads by at least {margin}"
    )
    return Finding(reason, {"inputs": len(circuit.inputs), "gates": len(circuit.gates), "margin": margin, "leak": leak})


def prove_circuit(circuit: Gates, config: dict[str, Any], tensors: Mapping[str, Tensor]) -> CircuitReport:
    """Check that the stored decoder writes the gates of the circuit; raises `Refused` with the reason when it does not."""
    working_precision()
    _require_form(circuit, config)
    _require_tokens(config, tensors)
    lead = _require_lookups(circuit, config, tensors)
    _require_values(config, tensors)
    form = FORMATS[config["dtype"]]
    bits = config["blocks"][0]["attention"]["heads"][0]["key"]
    if not bits < 2 ** (form.precision - 1):
        raise Refused(f"the scores are not exact in {config['dtype']}")
    try:
        no_overflow(form, 2 * bits * arb(lead))
        shares = shares_of(form, config["input"]["tokens"] - 1, 2 * lead)
        margin, cases = _Rows(config, tensors, shares).compared(circuit)
    except NoBound as reason:
        raise Refused(f"the outputs have no bound: {reason}") from None
    return CircuitReport(margin, shares.rest, cases)


def _require_form(circuit: Gates, config: dict[str, Any]) -> None:
    blocks = config["blocks"]
    if len(blocks) != 1 or config["loops"] != 1 or config["registers"]:
        raise Refused("the decoder of a circuit is one block, applied once, without registers")
    attention, ffn = blocks[0]["attention"], blocks[0]["ffn"]
    if not attention or not ffn or blocks[0]["norm"] is not None:
        raise Refused("the block of a circuit has attention and hidden units, and no norm")
    if any(attention[name] != value for name, value in _ATTENTION.items()):
        raise Refused("the block of a circuit needs causal softmax attention of unit scale")
    if [(group["count"], group["value"]) for group in attention["heads"]] != [(2, 1)]:
        raise Refused("the block of a circuit has two heads with one value each, one for each operand")
    if (ffn["kind"], ffn["residual"]) != ("relu", True):
        raise Refused("the block of a circuit needs ReLU units with a residual")
    length = 1 + len(circuit.places)
    if config["input"] != {"kind": "ids", "tokens": length, "vocabulary": 3}:
        raise Refused(f"the decoder does not have {length:,} places for the tokens 0, 1 and start")
    if (config["readout"]["kind"], config["outputs"], config["code"]["kind"]) != ("all", 3, "table"):
        raise Refused("the decoder of a circuit has an output for each token and a table of position codes")
    if config["width"] <= _REST:
        raise Refused("the stream of a circuit has no room for positions")


def _require_tokens(config: dict[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """A token is its bit; positions leave the bit, the slots and the output alone."""
    if [sparse_row(tensors["embed.weight"], token) for token in range(3)] != [{}, {_BIT: 1.0}, {}]:
        raise Refused("the embedding of a token is not its bit")
    width, codes = config["width"], tensors["code.table"]
    for place in range(config["input"]["tokens"]):
        if any(codes.data[place * width : place * width + _REST]):
            raise Refused(f"the position code of place {place} changes a bit")


def _require_lookups(circuit: Gates, config: dict[str, Any], tensors: Mapping[str, Tensor]) -> float:
    """Each head looks at its operand of the gate that is decided; returns lambda."""
    width, codes = config["width"], tensors["code.table"]
    rows = [codes.data[place * width : (place + 1) * width] for place in range(config["input"]["tokens"])]
    leads = set()
    for head in (0, 1):
        key_from, ones = copied_coordinates(tensors[f"{_HEAD}.key"], head, _REST)
        query_from, factors = copied_coordinates(tensors[f"{_HEAD}.query"], head, _REST)
        if ones != {1.0} or len(factors) != 1 or frexp(min(factors))[0] != 0.5:
            raise Refused("keys and queries are not position codes times a power of two")
        leads |= factors
        keys = {tuple(row[c] for c in key_from): place for place, row in enumerate(rows)}
        if len(keys) != len(rows) or not all(abs(sign) == 1.0 for key in keys for sign in key):
            raise Refused("the codes of the places are not different vectors of signs")
        for row, gate in enumerate(circuit.gates, len(circuit.inputs)):
            found = keys.get(tuple(rows[row][c] for c in query_from))
            # A constant may look anywhere that the mask allows.
            wanted = circuit.places[gate.operands[-head]] if gate.operands else found
            if found is None or found != wanted or found > row:
                raise Refused(f"head {head} does not look at operand {1 + head} of the gate {gate.name}")
    if len(leads) > 1:
        raise Refused("the two heads do not have queries of one size")
    return min(leads)


def _require_values(config: dict[str, Any], tensors: Mapping[str, Tensor]) -> None:
    for head, slot in enumerate(_SLOTS):
        read = [sparse_row(tensors[f"{_HEAD}.value"], head, coordinate) for coordinate in range(config["width"])]
        if read != [{0: 1.0}, *({} for _ in read[1:])]:
            raise Refused(f"the value of head {head} is not the bit of a token")
        if sparse_row(tensors[f"{_HEAD}.output"], head, 0) != {slot: 1.0}:
            raise Refused(f"what head {head} reads does not go into its slot alone")


class _Rows:
    """What the decoder puts out at a row, for everything that the row can hold."""

    def __init__(self, config: dict[str, Any], tensors: Mapping[str, Tensor], shares: Shares):
        self.shares, self.codes, self.width = shares, tensors["code.table"], config["width"]
        self.form = FORMATS[config["dtype"]]
        self.units = Units(self.form, tensors, _FFN)
        self.outputs = columns(tensors["readout.weight"])
        self.biases = [arb(x) for x in tensors["readout.bias"].data]
        self.read_out = sorted({c for column in self.outputs for c in column})
        self.looked_at = sorted(c for c in self.units.reads | set(self.read_out) if c >= _REST)
        self._known: dict[tuple[tuple[float, ...], int], tuple[int, arb]] = {}

    def compared(self, circuit: Gates) -> tuple[arb, int]:
        """The smallest lead of the right token over all gates, and how many cases were run; at least one gate is needed
        for a lead below 1."""
        margin = ONE
        for row, gate in enumerate(circuit.gates, len(circuit.inputs)):
            held = tuple(self.codes.data[row * self.width + c] for c in self.looked_at)
            for content, bit in enumerate(gate.table_of_two):
                written, lead = self._written(held, content)
                if written != int(bit):
                    raise Refused(
                        f"the decoder does not write the gate {gate.name} where its operands are {content:02b}"
                    )
                margin = smaller(margin, lead)
        return margin, 2 * len(self._known)

    def _written(self, held: tuple[float, ...], content: int) -> tuple[int, arb]:
        """The token that wins for these operands whatever the own bit is, and its lead; -1 if there is none."""
        if (held, content) not in self._known:
            left, right = divmod(content, 2)
            row = dict(zip(self.looked_at, map(arb, held), strict=True))
            row |= {_SLOTS[0]: self.shares.read(bool(left)), _SLOTS[1]: self.shares.read(bool(right))}
            one, other = (self._winner({**row, _BIT: arb(own)}) for own in (0, 1))
            agreed = one[0] if one[0] == other[0] else -1
            self._known[held, content] = agreed, smaller(one[1], other[1])
        return self._known[held, content]

    def _winner(self, row: dict[int, arb]) -> tuple[int, arb]:
        after = self.units.after(row, self.read_out)
        outputs = [
            enclosed_sum(self.form, [(after[c], weight) for c, weight in column.items()], [bias])
            for column, bias in zip(self.outputs, self.biases, strict=True)
        ]
        for token, output in enumerate(outputs):
            leads = [(output - other).lower() for place, other in enumerate(outputs) if place != token]
            if all(lead > 0 for lead in leads):
                return token, smaller(*leads)
        return -1, ZERO
