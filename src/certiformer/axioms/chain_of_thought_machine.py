"""A causal decoder writes one token for every step of a Turing machine, and so computes what the machine computes.

Statement
    Let a machine have G symbols, and let T and L bound the steps and the length of the input, N = L + 1 + T. The
    decoder reads the input and a token `start`; every token that it writes says which symbol a step wrote, where the
    head moved and which state was entered. Suppose the stored model passes the checks below. Then for every input of
    at most L symbols and each of the first T steps the largest output is that of the step that the machine makes, or
    of `stop` where it stops, in real arithmetic and in every run in the stored type.

Source
    Merrill and Sabharwal 2024 (merrill2024, arXiv 2310.07923): one token a step, the head's place as a sum of moves,
    the latest write at that place by attention.

Differs from the source in
    There, sums are uniform averages, places are compared by normalised vectors (h, 1, -h, -1) and the latest write
    wins by a term of size j^-4, for every length at once, with hard attention and precision that grows with the
    length. Here the horizon is fixed: a register turns the average into the sum, ReLU units turn it into a sign
    vector, the lead of the right token is at least 16, and plain softmax is enough. The price is 4 (2 T + 1) + 2 L
    hidden units. The sum is stored on top of an anchor M, so that a run rounds its noise away (below).

Proof
    *Sum of moves.* At token i (counted from 0) the keys score 0 and the register a_i, log(N - i) up to eta. With a_i =
    log(N - i) every token has the share 1 / (i + 1 + N - i) = 1 / (N + 1), and values (N + 1) move add up to the cell h
    of the head. With the stored a_i every share changes by a factor between exp(-eta) and exp(eta), the sum by at
    most N (exp(eta) - 1) = e. In a run exponentials, their sum, the quotient and the weighted sum change it by further
    factors (`noise`), by e' >= e in all. Checked: e' < 1/17.

    *Anchor.* The stream holds M + sum, M = 3 2^(p-5) for p bits. In real arithmetic that is M plus a number within 1/4
    of h. In a run it is rounded to the type, whose numbers near M are the multiples of 1/8; as e' < 1/16, it is M + h
    exactly, whatever the noise was. From here on all numbers of a run are whole quarters until the softmax of the
    second block, and sums of at most 2^p quarters are exact in every order.

    *Cells.* For x within 1/4 of h and cells c = lowest, ..., highest, 2 relu(x - c + 3/4) - 2 relu(x - c + 1/4) is 1 if
    h >= c and else 0. Let k(c) = c - lowest + 1 number the cells and s(k) be the binary digits of k as signs. The sum
    of the differences s(k(c)) - s(k(c) - 1) over all c <= h, plus s(0), is s(k(h)). This gives s(k(h)) for queries and
    s(k(h - move)), the cell that the token wrote to, for keys; at input token i the key is s(k(i)), and at `start`
    s(0), which no cell has. Units of one sort of token are kept off at the others by a bias, and at the register by -M.
    After T steps the head is between -T and T; an input symbol is between 0 and L - 1.

    *Latest write.* The score of token j is lambda <s, s_j> + 16 j, that of the register lambda (B - 1), with B signs and
    lambda = 16 (N + 2); all are multiples of 16, exact in a run. Tokens that wrote to h score at least lambda B, others
    at most lambda (B - 2) + 16 N <= lambda (B - 1) - 32. So the latest write leads by at least 16; without one the
    register leads by 32, and it carries the blank. What is read is the unit vector of the symbol up to the shares of
    all others (`axioms.lookups.shares_of`).

    *Table.* What else the last units and the read-out look at is the state and that the token is not an input, which are
    exact. Every pair of state and symbol is run through the stored units, with what is read as intervals: the largest
    output is the one of the table. Tokens are discrete, so nothing is handed on. Induction over the tokens. QED.

Assumptions
    form (**checked**): two causal softmax blocks of unit scale with ReLU units and residuals, one register.
    weights (**checked**): every stored number but the logarithms and the last units is the one of the proof; the
    logarithms are right up to eta, and the last units and the read-out are run on every pair.
    horizon (**checked**): the model has room for L symbols and T steps; more do not fit.
    run (**trusted**): a run rounds as `kernel.rounding` describes, and the stream between sub-layers is one array of
    numbers of the stored type.

Certified
    The statement, for every input of at most L symbols and the first T steps. `margin` is the smallest lead of the
    right output, `noise` bounds e'.

Not certified
    Steps beyond the horizon, which a run refuses; that the machine does what its author wanted.

Example
    >>> from certiformer.kernel.rounding import FORMATS
    >>> from certiformer.axioms.chain_of_thought_machine import noise_of
    >>> [bool(noise_of(FORMATS[name], 701, 1e-6) < 1 / 16) for name in ("float64", "float32", "bfloat16")]
    [True, True, False]

Tests
    tests/theorems/test_chain_of_thought_machine.py
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flint import arb

from certiformer.axioms.lookups import Units, columns, enclosed_sum, shares_of
from certiformer.axioms.thought_weights import ANCHOR_BITS, LEAD, ThoughtShape
from certiformer.kernel.balls import INFINITY, ONE, ZERO, decimal, larger, smaller, working_precision
from certiformer.kernel.computation import Files, Finding
from certiformer.kernel.files import CONFIG, MACHINE, MODEL
from certiformer.kernel.meanings.machine import Machine
from certiformer.kernel.refusal import Refused
from certiformer.kernel.rounding import FORMATS, Format, NoBound
from certiformer.kernel.weights import Tensor, read_model

THEOREM = {
    "id": "axioms.chain_of_thought_machine",
    "title": "A causal decoder that writes one token a step computes what a Turing machine computes.",
    "kind": "exact",
    "sources": ("merrill2024",),
    "verb": "compile",
    "assumptions": (
        ("form", "two causal softmax blocks with ReLU units, one register", "checked"),
        ("weights", "every number is the one of the proof, or is run on every pair", "checked"),
        ("horizon", "at most L input symbols and T steps; more do not fit", "checked"),
        ("run", "a run rounds as kernel.rounding describes, between sub-layers to the stored type", "trusted"),
    ),
    "uses": (),
}

NOT_CLAIMED = (
    "Steps beyond the horizon: `run` stops there and says so.",
    "Whether the machine halts: the proof is about every single step.",
)
_ATTENTION = {
    "kind": "softmax", "bias": False, "scale": "unit", "mask": "causal", "score_bias": "none", "residual": True,
}  # fmt: skip


@dataclass(frozen=True)
class ThoughtReport:
    """What was proved: the horizon, the smallest lead of the right output, the noise of the sum of moves in a run."""

    steps: int
    symbols: int
    margin: arb
    noise: arb
    pairs: int


def sentence(files: Files) -> str:
    """The claim in one plain sentence."""
    machine, (config, tensors) = Machine.from_text(files[MACHINE]), read_model(files[CONFIG], files[MODEL])
    shape = ThoughtShape.of(machine, config, tensors)
    inputs = f"For every input of at most {shape.symbols:,} symbols" if shape.symbols else "For the empty input"
    return (
        f"{inputs} and each of the first {shape.steps:,} steps, on a tape that"
        f" is free on both sides, the decoder writes the step that the machine of {len(machine.states)} states and"
        f" {len(machine.symbols)} symbols makes, or stop where it stops, in real arithmetic and in a run in"
        f" {config['dtype']}."
    )


def find(files: Files) -> Finding:
    """Why the claim holds, with the smallest margin; raises `Refused` or `BadInput`."""
    machine = Machine.from_text(files[MACHINE])
    report = prove_thoughts(machine, *read_model(files[CONFIG], files[MODEL]))
    margin, noise = decimal(report.margin, up=False), decimal(report.noise, up=True)
    reason = (
        f"every stored number is that of the theorem, the place of the head is known up to {noise} before it is rounded,"
        f" the latest write leads by 16, and for all {report.pairs:,} pairs the right output leads by at least {margin}"
    )
    return Finding(reason, {"steps": report.steps, "symbols": report.symbols, "margin": margin, "noise": noise})


def prove_thoughts(machine: Machine, config: dict[str, Any], tensors: Mapping[str, Tensor]) -> ThoughtReport:
    """Check that the stored decoder writes the steps of the machine; raises `Refused` with the reason when it does not."""
    working_precision()
    _require_form(machine, config)
    shape, form = ThoughtShape.of(machine, config, tensors), FORMATS[config["dtype"]]
    if config["width"] != shape.width or config["blocks"][1]["attention"]["heads"][0]["key"] != shape.bits + 2:
        raise Refused("the stream does not have the parts that the theorem needs")
    if config["blocks"][0]["ffn"]["width"] != shape.units or config["blocks"][0]["attention"]["heads"][0]["key"] != 1:
        raise Refused("the first block does not have the units that the theorem needs")
    for name, wanted in shape.expected(form.precision).items():
        found = {place: number for place, number in enumerate(tensors[name].data) if number}
        if name == "code.table":
            for row in range(shape.longest):
                found.pop(row * shape.width + shape.places["log"], None)
        if found != wanted:
            raise Refused(f"the tensor {name} is not the one of the theorem")
    if not adds_exactly(shape, form):
        raise Refused(f"{shape.steps:,} steps are beyond what {form.name} adds up exactly")
    try:
        noise = _require_sums(shape, form, tensors["code.table"])
        margin = _Table(shape, form, tensors).compared()
    except NoBound as reason:
        raise Refused(f"the run has no bound: {reason}") from None
    pairs = len(machine.states) * len(machine.symbols)
    return ThoughtReport(shape.steps, shape.symbols, margin, noise, pairs)


def _require_form(machine: Machine, config: dict[str, Any]) -> None:
    blocks, thoughts = config["blocks"], len(machine.steps)
    if len(blocks) != 2 or config["loops"] != 1 or config["registers"] != 1:
        raise Refused("a chain of thought has two blocks, applied once, and one register")
    for block in blocks:
        attention, ffn = block["attention"], block["ffn"]
        if not attention or not ffn or block["norm"] is not None:
            raise Refused("a block of a chain of thought has attention and hidden units, and no norm")
        if any(attention[name] != value for name, value in _ATTENTION.items()):
            raise Refused("a chain of thought needs causal softmax attention of unit scale")
        if [group["count"] for group in attention["heads"]] != [1] or (ffn["kind"], ffn["residual"]) != ("relu", True):
            raise Refused("a block of a chain of thought has one head, and ReLU units with a residual")
    if [block["attention"]["heads"][0]["value"] for block in blocks] != [1, len(machine.symbols)]:
        raise Refused("the heads of a chain of thought bring the sum of moves and a symbol")
    vocabulary = len(machine.symbols) + 1 + thoughts
    if (config["input"]["kind"], config["input"].get("vocabulary")) != ("ids", vocabulary):
        raise Refused(f"the tokens are not the {vocabulary} symbols, start and steps of this machine")
    if (config["readout"]["kind"], config["outputs"], config["code"]["kind"]) != ("all", thoughts + 1, "table"):
        raise Refused("a chain of thought has an output for each step and for stop, and a table of position codes")
    if config["dtype"] not in ("float64", "float32"):
        raise Refused("a chain of thought is proved in float64 and float32")


def reaches(shape: ThoughtShape, form: Format) -> bool:
    """Whether the horizon is one that the theorem holds for, with logarithms that are off by at most two roundings."""
    n = shape.longest
    return adds_exactly(shape, form) and bool(noise_of(form, n, 2 * form.unit * arb(n).log()) < arb(1) / 17)


def adds_exactly(shape: ThoughtShape, form: Format) -> bool:
    """Whether sums of whole quarters, of signs and of scores stay below 2^p of their units."""
    most, levels, n = 2**form.precision, shape.levels, shape.longest
    anchor = 3 * 2 ** (form.precision - ANCHOR_BITS)
    arguments = 4 * (2 * anchor + 4 * levels + n + 16)
    # Each of `levels` pairs adds at most 4 (x - c + 3/4) + 4 (x - c + 1/4) to a sign; products are whole numbers.
    signs = 8 * levels * (levels + 1) + 2
    scores = (n + 2) * 2 * shape.bits + n
    return max(arguments, signs, scores) <= most and 4 * levels + n + 16 < anchor // 8


def noise_of(form: Format, longest: int, eta: float | arb) -> arb:
    """How far the sum of moves of a run may be from the cell of the head, with N = `longest`.

    Shares: exp(-a) within (1 + E u) and exp(eta), the register's 1 within 1 + E u, their sum of at most N + 1 positive
    terms within 1 + gamma_(N+1), the quotient within 1 + D u. The weighted sum has at most N + 1 products of sizes that
    add up to N at most before these factors; it is within 1 + gamma_(N+2) term by term.
    """
    try:
        exp, quotient = form.exp * form.unit, form.divide * form.unit
        added, mixed = form.gamma(longest + 1), form.gamma(longest + 2)
    except NoBound:
        return INFINITY
    grown = arb(eta).exp()
    high = grown * (1 + exp) / (1 - exp) / (1 - added) * (1 + quotient) * (1 + mixed)
    low = (1 - exp) / (1 + exp) / (1 + added) * (1 - quotient) * (1 - mixed) / grown
    factor = larger((high - 1).upper(), (1 - low).upper())
    # What underflows is multiplied by N + 1 and added up.
    return (longest * factor + form.tiny * 8 * (longest + 2) ** 2).upper()


def _require_sums(shape: ThoughtShape, form: Format, codes: Tensor) -> arb:
    """The stored logarithms are right up to eta, and the noise of a run is rounded away; returns the noise."""
    eta = ZERO
    for row in range(shape.longest):
        stored = arb(codes.at(row, shape.places["log"]))
        eta = larger(eta, abs(stored - arb(shape.longest - row).log()).upper())
    noise = noise_of(form, shape.longest, eta)
    # 1/16 is half the distance of the numbers near the anchor; a little less, as a run may round twice.
    if not noise < arb(1) / 17:
        raise Refused(
            f"the moves of {shape.steps:,} steps are not added up well enough by the stored logarithms in {form.name}"
        )
    return noise


class _Table:
    """The last units and the read-out, run on every pair of a state and a symbol that is read."""

    def __init__(self, shape: ThoughtShape, form: Format, tensors: Mapping[str, Tensor]):
        self.shape, self.form = shape, form
        self.units, self.outputs = Units(form, tensors, "blocks.1.ffn"), columns(tensors["readout.weight"])
        self.biases = [arb(x) for x in tensors["readout.bias"].data]
        self.read_out = sorted({c for column in self.outputs for c in column})
        at = shape.places
        known = {*range(at["state"], at["move"]), at["input"], *range(at["read"], shape.width)}
        if not self.units.reads | set(self.read_out) <= known:
            raise Refused("the last units or the read-out look at more than the state and what is read")
        self.shares = shares_of(form, shape.longest, LEAD)

    def compared(self) -> arb:
        machine, at, margin = self.shape.machine, self.shape.places, INFINITY
        for state, name in enumerate(machine.states):
            for symbol, read in enumerate(machine.symbols):
                row = {at["read"] + place: self.shares.read(place == symbol) for place in range(len(machine.symbols))}
                after = self.units.after({**row, at["state"] + state: ONE}, self.read_out)
                outputs = [
                    enclosed_sum(self.form, [(after[c], weight) for c, weight in column.items()], [bias])
                    for column, bias in zip(self.outputs, self.biases, strict=True)
                ]
                transition = machine.transition(name, read)
                wanted = len(machine.steps) if transition is None else machine.steps.index(transition)
                for place, output in enumerate(outputs):
                    if place != wanted:
                        lead = (outputs[wanted] - output).lower()
                        if not lead > 0:
                            raise Refused(f"the decoder does not write the step of state {name} reading {read}")
                        margin = smaller(margin, lead)
        # With the output `stop` alone there is nothing to lead.
        return smaller(margin, ONE)
