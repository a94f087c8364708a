"""A causal decoder writes one token for every step of a Turing machine, and so computes what the machine computes.

Statement
    Let T and L bound a machine's steps and input, N = L + 1 + T. The decoder reads the input and a token `start`; every
    token that it writes says which symbol a step wrote, where the head moved and which state was entered. Suppose the
    stored model passes the checks below. Then for every input of at most L symbols and each of the first T steps the
    largest output is that of the step that the machine makes, or of `stop` where it stops, in real arithmetic and in
    every run in the stored type.

Source
    Merrill and Sabharwal 2024 (merrill2024): one token a step, the head's place as a sum of moves, the latest write at
    that place by attention.

Differs from the source in
    There, sums are uniform averages, places are compared by normalised vectors (h, 1, -h, -1) and the latest write wins
    by a term of size j^-4, for every length at once, with hard attention and precision that grows with the length. Here
    the horizon is fixed: a register turns the average into the sum, 4 (2 T + 1) + 2 L ReLU units turn it into a sign
    vector, the right token leads by 16, and plain softmax is enough. The sum stands on an anchor M, so that a run
    rounds its noise away (below).

Proof
    *Sum of moves.* At token i (counted from 0) the keys score 0 and the register a_i, log(N - i) up to eta. With a_i =
    log(N - i) every token has the share 1 / (i + 1 + N - i) = 1 / (N + 1), and values (N + 1) move add up to the cell h
    of the head. With the stored a_i every share changes by a factor between exp(-eta) and exp(eta), the sum by at most
    N (exp(eta) - 1) = e. In a run exponentials, their sum, the quotient and the weighted sum change it by further
    factors (`noise`), by e' >= e in all. Checked: e' < 1/17.

    *Anchor.* The stream holds M + sum, M = 3 2^(p-5) for p bits. In real arithmetic that is M plus a number within 1/4
    of h. In a run it is rounded to the type, whose numbers near M are the multiples of 1/8; as e' < 1/16, it is M + h
    exactly. From here on all numbers of a run are whole quarters until the softmax of the second block, and sums of at
    most 2^p quarters are exact in every order.

    *Cells.* For x within 1/4 of h and cells c = lowest, ..., highest, 2 relu(x - c + 3/4) - 2 relu(x - c + 1/4) is 1 if
    h >= c and else 0. Let k(c) = c - lowest + 1 number the cells and s(k) be the binary digits of k as signs. The sum
    of the differences s(k(c)) - s(k(c) - 1) over all c <= h, plus s(0), is s(k(h)). This gives s(k(h)) for queries and
    s(k(h - move)), the cell that the token wrote to, for keys; at input token i the key is s(k(i)), and at `start`
    s(0), which no cell has. Units of one sort of token are kept off at the others by a bias, and at the register by -M.
    After T steps the head is between -T and T; an input symbol is between 0 and L - 1.

    *Latest write.* The score of token j is lambda <s, s_j> + 16 j, that of the register lambda (B - 1), with B signs
    and lambda = 16 (N + 2); all are multiples of 16, exact in a run. Tokens that wrote to h score at least lambda B,
    others at most lambda (B - 2) + 16 N <= lambda (B - 1) - 32. So the latest write leads by at least 16; without one
    the register leads by 32, and it carries the blank. What is read is the unit vector of the symbol up to the shares
    of all others, enclosed as rule 6 does it (`kernel.situations.heads`). Checked: they are within 1/8 of that.

    *Table.* Two units for each pair of state and symbol see x - 1/4 and x - 3/4, x being what is read of the symbol,
    less 1 at every other state and at an input. At the pair of the token 7/8 <= x <= 9/8: both numbers are exact in a
    run, as x is a multiple of 2^-p, and twice the one less twice the other is 1. For another symbol x <= 1/8, for
    another state x - 1 <= 1/8, so that the numbers are at most -1/8, beyond the roundings of three terms of at most
    9/8, and the units are 0. So the right output is 1, all others are 0. Induction. QED.

Assumptions
    weights (**checked**): every stored number but the logarithms is the one of the construction
    (`axioms.thought_weights`); the logarithms are right up to eta, and what is read is near enough to 0 or 1.
    horizon (**checked**): the model has room for L symbols and T steps; more do not fit.
    run (**trusted**): a run rounds as `kernel.rounding` describes, and the stream between sub-layers is one array of
    numbers of the stored type.

Certified
    The statement, for every input of at most L symbols and the first T steps. `margin`: left of 1/8, `noise`: e'.

Not certified: Steps beyond the horizon, which a run refuses; that the machine does what its author wanted.

Example
    >>> from certiformer.kernel.rounding import FORMATS
    >>> from certiformer.axioms.chain_of_thought_machine import noise_of
    >>> [bool(noise_of(FORMATS[name], 701, 1e-6) < 1 / 16) for name in ("float64", "float32", "bfloat16")]
    [True, True, False]

Tests: tests/theorems/test_chain_of_thought_machine.py
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flint import arb

from certiformer.axioms.thought_weights import LEAD, ThoughtShape, anchor
from certiformer.kernel import Refused
from certiformer.kernel.balls import INFINITY, decimal, larger, largest, working_precision
from certiformer.kernel.computation import Files, Finding
from certiformer.kernel.files import CONFIG, MACHINE, MODEL
from certiformer.kernel.meanings.machine import Machine
from certiformer.kernel.rounding import FORMATS, Format, NoBound
from certiformer.kernel.situations.heads import brought, shares_of
from certiformer.kernel.situations.numbers import UNIT, Run, as_ball, sure
from certiformer.kernel.weights import Tensor, read_model

THEOREM = {
    "id": "axioms.chain_of_thought_machine",
    "title": "A causal decoder that writes one token a step computes what a Turing machine computes.",
    "kind": "exact",
    "sources": ("merrill2024",),
    "verb": "compile",
    "assumptions": (
        ("weights", "every number is the one of the construction, the logarithms up to rounding", "checked"),
        ("horizon", "at most L input symbols and T steps; more do not fit", "checked"),
        ("run", "a run rounds as kernel.rounding describes, between sub-layers to the stored type", "trusted"),
    ),
}

NOT_CLAIMED = (
    "Steps beyond the horizon: `run` stops there and says so.",
    "Whether the machine halts: the proof is about every single step.",
)


@dataclass(frozen=True)
class ThoughtReport:
    """The horizon, how much closer than 1/8 what is read is to 0 or 1, the noise of a sum of moves, the pairs."""

    steps: int
    symbols: int
    margin: arb
    noise: arb
    cases: int


def sentence(files: Files) -> str:
    """The claim in one plain sentence."""
    machine, (config, tensors) = Machine.from_text(files[MACHINE]), read_model(files[CONFIG], files[MODEL])
    shape = ThoughtShape.of(machine, config, tensors)
    inputs = f"For every input of at most {shape.symbols:,} symbols" if shape.symbols else "For the empty input"
    return (
        f"{inputs} and each of the first {shape.steps:,} steps, on a tape that is free on both sides, the decoder writes"
        f" the step that the machine of {len(machine.states)} states and {len(machine.symbols)} symbols makes, or stop"
        f" where it stops, in real arithmetic and in a run in {config['dtype']}."
    )


def find(files: Files) -> Finding:
    """Why the claim holds, with the smallest margin; raises `Refused` or `BadInput`."""
    machine = Machine.from_text(files[MACHINE])
    report = prove_thoughts(machine, *read_model(files[CONFIG], files[MODEL]))
    margin, noise = decimal(report.margin, up=False), decimal(report.noise, up=True)
    reason = (
        f"every stored number is that of the theorem, the place of the head is known up to {noise} before it is rounded,"
        f" the latest write leads by 16, and for all {report.cases:,} pairs what is read is right by {margin}"
    )
    numbers = {"steps": report.steps, "symbols": report.symbols, "margin": margin, "noise": noise}
    return Finding(reason, numbers, cases=report.cases)


def prove_thoughts(machine: Machine, config: dict[str, Any], tensors: Mapping[str, Tensor]) -> ThoughtReport:
    """Check that the stored decoder writes the steps of the machine; raises `Refused` with the reason when it does not."""
    working_precision()
    if config["dtype"] not in ("float64", "float32"):
        raise Refused("a chain of thought is proved in float64 and float32")
    shape, form, codes = ThoughtShape.of(machine, config, tensors), FORMATS[config["dtype"]], tensors["code.table"]
    logs = codes.data[shape.places["log"] :: codes.shape[1]]
    shape.construction(config["dtype"], logs).require(config, tensors)
    if not adds_exactly(shape, form):
        raise Refused(f"{shape.steps:,} steps are beyond what {form.name} adds up exactly")
    noise, pairs = _require_sums(shape, form, logs), len(machine.states) * len(machine.symbols)
    return ThoughtReport(shape.steps, shape.symbols, _require_read(shape, form), noise, pairs)


def reaches(shape: ThoughtShape, form: Format) -> bool:
    """Whether the horizon is one that the theorem holds for, with logarithms that are off by at most two roundings."""
    n = shape.longest
    return adds_exactly(shape, form) and bool(noise_of(form, n, 2 * form.unit * arb(n).log()) < arb(1) / 17)


def adds_exactly(shape: ThoughtShape, form: Format) -> bool:
    """Whether sums of whole quarters, of signs and of scores stay below 2^p of their units."""
    most, levels, n = 2**form.precision, shape.levels, shape.longest
    highest = int(anchor(form.name))
    arguments = 4 * (2 * highest + 4 * levels + n + 16)
    # Each of `levels` pairs adds at most 4 (x - c + 3/4) + 4 (x - c + 1/4) to a sign; products are whole numbers.
    signs = 8 * levels * (levels + 1) + 2
    scores = (n + 2) * 2 * shape.bits + n
    return max(arguments, signs, scores) <= most and 4 * levels + n + 16 < highest // 8


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


def _require_sums(shape: ThoughtShape, form: Format, logs: Sequence[float]) -> arb:
    """The stored logarithms are right up to eta, and the noise of a run is rounded away; returns the noise."""
    eta = largest([abs(arb(stored) - arb(shape.longest - row).log()).upper() for row, stored in enumerate(logs)])
    noise = noise_of(form, shape.longest, eta)
    # 1/16 is half the distance of the numbers near the anchor; a little less, as a run may round twice.
    if not noise < arb(1) / 17:
        steps = f"the moves of {shape.steps:,} steps"
        raise Refused(f"{steps} are not added up well enough by the stored logarithms in {form.name}")
    return noise


def _require_read(shape: ThoughtShape, form: Format) -> arb:
    """How much closer than 1/8 the number of a symbol is to 1 if it is the latest write, and else to 0."""
    shares, ends = shares_of(form, shape.longest, arb(LEAD)), [sure(0), sure(UNIT)]
    farthest = max(brought(Run(form.name), shares, end, ends).off for end in ends)
    if not 8 * farthest < UNIT:
        raise Refused(f"the latest write does not lead by enough among {shape.longest:,} tokens")
    return as_ball(UNIT // 8 - farthest)
