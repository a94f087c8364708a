"""One block, applied over and over, is a Turing machine on a bounded tape: exactly, for every tape and any number of steps.

Statement
    Let a machine with G symbols and S states be given by its table. The tokens are the n cells of a tape. A cell's
    stream holds the unit vector of its symbol, the unit vector of (state, symbol) where the head stands, and a flag
    `off`; the code of a configuration is the stream that its tokens are embedded to. Suppose the stored block passes
    the checks below. Then for every tape, every place and state of the head and every number k of passes, k passes of
    the block turn the code of a configuration into the code of the configuration that the machine reaches in k steps
    (a machine that has stopped stays), exactly, in real arithmetic and in every run in the stored type. If a step
    would leave the tape, the configuration before it is kept, and from the next pass on `off` is 1 on the end cell.
    Passes change nothing but the cell of the head and its two neighbours.

Source
    Own derivation. That one looped block can run a machine is in Giannou et al. 2023 (giannou2023); robust gates that
    round softmax weights to bits are folklore (perez2021 use the same piecewise linear function).

Differs from the source in
    Positions are sign vectors, so scores are small integers and the wanted cell leads by the same amount on every
    tape, where position numbers need scores that grow as n^2, and points on a circle a lead that shrinks as 1 / n^2.
    Leaving the tape is noticed; without the flag the head would vanish. The claim is checked from the stored weights.

Proof
    By the rule of situations (`kernel.situations`), with the meaning and the plan of `kernel.situations.machines`.

    *Arrivals.* Head 0 of cell i looks at cell i - 1, head 1 at cell i + 1, and at an end of the tape a cell looks at
    itself. Values are zero except where the head stands, and there they are the unit vector of the next state if the
    machine moves towards the cell that looks. So an arrival slot is in an interval around 1 if the head stands on the
    cell that is looked at and moves here, and otherwise in one around 0, roundings included.

    *Hidden units.* A cell is in finitely many situations: which ends of the tape it is, whether the head stands here, on
    the left, on the right or elsewhere, the state, the symbol here and the one under the head, and the flag. In all of
    them that the equations allow (no neighbour beyond an end; the flag is up only where a step off the tape was not
    made) the stored units leave, exactly, symbol, pair and flag as they are a step later, and empty the slots. So one
    pass turns the code of a configuration into the code of the next one; induction. The read-out is compared with the
    content of every cell. QED.

Assumptions
    form (**checked**): one block, two softmax heads of unit scale, ReLU units with residual; a table of position codes.
    weights (**checked**): the numbers satisfy what the proof uses, enumerated over all situations of a cell.
    run (**trusted**): arithmetic is as described in `kernel.rounding`, and the stream between attention and hidden units
    is one array of numbers of the stored type.

Certified
    The statement, for all configurations with one head on the tape at once, and any number of passes.

Not certified
    Streams that are not the code of a configuration; that the machine does what its author wanted.

Example
    >>> from flint import arb
    >>> from certiformer.kernel.rounding import FORMATS
    >>> from certiformer.kernel.situations.heads import shares_of
    >>> shares = shares_of(FORMATS["float64"], 399, arb(64))
    >>> bool(1 - shares.low < 1e-14), bool(shares.leak < 1e-27)
    (True, True)

Tests
    tests/theorems/test_looped_machine.py
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import frexp
from typing import Any

from flint import arb

from certiformer.kernel import Refused
from certiformer.kernel.balls import decimal
from certiformer.kernel.computation import Files, Finding
from certiformer.kernel.files import CONFIG, MACHINE, MODEL
from certiformer.kernel.meanings.machine import Machine
from certiformer.kernel.situations.machines import looped_machine
from certiformer.kernel.situations.numbers import as_ball
from certiformer.kernel.weights import Tensor, read_model

THEOREM = {
    "id": "axioms.looped_machine",
    "title": "One looped block is a Turing machine on a bounded tape, exactly, for any number of steps.",
    "kind": "exact",
    "sources": (
        "classical",
        "giannou2023",
        "perez2021",
    ),
    "verb": "compile",
    "assumptions": (
        ("form", "one block, two softmax heads, ReLU units, a table of position codes", "checked"),
        ("weights", "scores, values and hidden units act as the table says in every situation", "checked"),
        ("run", "a run rounds as kernel.rounding describes, between sub-layers to the stored type", "trusted"),
    ),
    "uses": (),
}

NOT_CLAIMED = (
    "Longer tapes: a step off the tape is not made; it raises a flag, and `run` says which cell was needed.",
    "Whether the machine halts: the proof is about every single step.",
)


@dataclass(frozen=True)
class LoopedReport:
    """What was proved: the tape, the type of a run, the largest share of a wrong cell, how far every arrival stays from
    the thresholds of hidden units, and how many situations of a cell were run."""

    cells: int
    dtype: str
    leak: arb
    margin: arb
    situations: int


def sentence(files: Files) -> str:
    """The claim in one plain sentence."""
    machine, (config, _) = Machine.from_text(files[MACHINE]), read_model(files[CONFIG], files[MODEL])
    cells, dtype = config["input"]["tokens"], config["dtype"]
    first = -(cells // 2)
    return (
        f"On the {cells:,} cells {first} to {first + cells - 1}, from every configuration with one head, any number of"
        f" passes of the block gives exactly the configuration that the machine of {len(machine.states)} states and"
        f" {len(machine.symbols)} symbols reaches in as many steps, in real arithmetic and in a run in {dtype}, as long"
        " as its head stays on the tape; a step off the tape is not made and raises a flag."
    )


def find(files: Files) -> Finding:
    """Why the claim holds, with the smallest margin and what it was found over; raises `Refused` or `BadInput`."""
    report = prove_looped(Machine.from_text(files[MACHINE]), *read_model(files[CONFIG], files[MODEL]))
    margin, leak = decimal(report.margin, up=False), decimal(report.leak, up=True)
    power = frexp(float(report.leak.upper()))[1]  # the leak is below 2^power
    reason = (
        f"all {report.situations:,} situations of a cell were run through the stored weights; what arrives from a neighbour"
        f" stays {margin} away from the thresholds, and a wrong cell gets less than 2^{power}"
    )
    return Finding(reason, {"cells": report.cells, "margin": margin, "leak": leak}, cases=report.situations)


def prove_looped(machine: Machine, config: dict[str, Any], tensors: Mapping[str, Tensor]) -> LoopedReport:
    """Check that the stored block is one step of the machine; raises `Refused` with the reason when it is not."""
    walk = looped_machine(machine, config, tensors)
    if walk.margin is None:
        raise Refused("nothing of what arrives from a neighbour reaches a hidden unit")
    margin, situations = as_ball(walk.margin).lower(), walk.meaning.tally.checked
    return LoopedReport(config["input"]["tokens"], config["dtype"], walk.leak, margin, situations)
