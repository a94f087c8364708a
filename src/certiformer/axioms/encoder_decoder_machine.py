"""An encoder-decoder with hard attention simulates a Turing machine: for ever in rationals, up to a horizon in floats.

Statement
    There is an encoder-decoder with hard attention, score -|<query, key>| (the kind `nearest` of the model), ReLU units
    and position codes (1, i, 1/(i+1), 1/(i+1)^2), whose weights are rational and depend on the machine alone, and whose
    decoder token i is (state, symbol under the head, last move) after i steps, for every input and every i. Suppose a
    stored model has these weights up to the rounding of its type, with positions for T steps and L symbols, and passes
    the checks below. Then for every input of at most L symbols and each of the first T steps the largest output is that
    of the right token, in real arithmetic and in every run in the stored type.

Source: Pérez, Barceló and Marinkovic 2021 (perez2021).

Differs from the source in
    There a reading phase first copies the input while the head walks right, and every step moves. Here the encoder
    ends in a blank on either side and is asked for the nearest cell, so no state is added, and moves may be S: the
    cell under the head is fresh only if the winner is the newest token *and* the head has moved. The source's
    activation min(max(t, 0), 1) is max(t, 0) here, as no argument exceeds 1. Encoder and decoder are one sequence: a
    coordinate that marks the other kind of token adds 4 to the product, so that no such token wins.

Proof
    Let c_i be the cell of the head after i steps (c_0 = 0), v_i the symbol written in step i and m_i its move.

    *Table.* Token i holds unit vectors of state and symbol, so max(q + s - 1, 0) over all pairs is the unit vector of
    the pair, and one linear map gives the next state, v_i and m_i (where the machine stops: the same state and
    symbol, S). All of this is 0 and 1, exact in a run.

    *Cell.* The product of the first head is 0 at decoder tokens and 1 at encoder tokens: uniform attention over the
    tokens 0, ..., i of m_j and of the move before it, m_{j-1}, gives c_{i+1} / (i + 1) and c_i / (i + 1).

    *Latest write.* The query of token i is (c_{i+1} / (i+1), 1 / (i+1), 1 / (3 (i+1)^2)), the key of token j (1 /
    (j+1), -c_j / (j+1), 1 / (j+1)^2); their product is a = (c_{i+1} - c_j) / ((i+1) (j+1)) + 1 / (3 (i+1)^2
    (j+1)^2). If c_j = c_{i+1} then |a| = 1 / (3 (i+1)^2 (j+1)^2), smallest for the latest such j. Otherwise |a| >=
    (2/3) / ((i+1) (j+1)) >= (2/3) / (i+1)^2, which is more. So the latest write at c_{i+1} wins if there is one. If
    there is none, then the head has moved, and j = i wins: |c_{i+1} - c_i| = 1 gives |a| <= (1 + 1 / (3 (i+1)^2)) /
    (i+1)^2, and for j < i |a| >= (1 - 1 / (3 (i+1) (j+1))) / ((i+1) (j+1)). With k = j + 1 <= i the second is more
    by at least (i + 1 - k) / (k (i+1)^2) - 1 / (3 (i+1)^2 k^2) - 1 / (3 (i+1)^4) >= (1 - 1/3 - 1/12) / (k (i+1)^2)
    > 1 / (2 k (i+1)^2). So the winner l is i after a move exactly when the cell is fresh. As |a| <= 4/3 for j = i, an
    encoder token, with the product 4, never wins.

    *Encoder.* The keys are (1, -j) for the cells j = -1, ..., L, with the symbols of the input and blanks elsewhere. The
    query (c_{i+1} / (i+1), 1 / (i+1)) has the product (c_{i+1} - j) / (i+1): the nearest j wins, alone, and holds
    what cell c_{i+1} held at the start. Its |product| is at most 1, that of a decoder token 4. At encoder tokens all
    queries and moves are 0, so that they change nothing that is read later.

    *Read.* same = max(l - i + 1, 0), fresh = max(same + moved - 1, 0), and the next symbol is max(v_l - fresh, 0) +
    max(initial - (1 - fresh), 0). The outputs add next state, symbol and move: 3 for the right token, at most 2
    for another. Induction. QED.

    *Floats.* Let eta bound the relative errors of the stored 1/(i+1), 1/(i+1)^2 and 1/3, and d that of a quotient. A
    weight of the uniform head errs by d, the sum of i + 1 <= T equal weights by gamma_T, so cells err by e = d +
    gamma_(T+1) (1 + d) at most. Both large terms of a err by at most (eta + e (1 + eta)) / (j+1) as |c_i| <= i, the
    small one by rho / 3 / (j+1) with rho = (1 + eta)^3 (1 + u)^2 - 1, and adding them by gamma_4 (7/3 + 3 eta + 3 e) /
    (j+1): together kappa / (j+1). Two writes j' < j to the same cell differ in |a| by at least 1 / (3 (i+1)^2 (j'+1)^2
    (j'+2)), since 1 - x^2 >= 1 - x for x = (j'+1) / (j'+2); this exceeds both errors if 6 kappa T^4 < 1, which is
    checked. The other leads are larger: 1 / (3 (i+1)^2) against 2 kappa, 1 / (2 k (i+1)^2) against 2 kappa / k. At
    the encoder the nearest cell leads by 1 / (i+1), checked against 2 (e T + eta (L + 1) + gamma_3 (T + L + 2)) / (i+1).
    The winner alone has the weight 1 up to d; what is read from it is followed through the units as intervals.

Assumptions
    form (**checked**): five blocks as stated, causal nearest attention, ReLU units, residuals.
    weights (**checked**): every whole number is the one of the proof, every other one is right up to eta.
    horizon (**checked**): 6 kappa T^4 < 1 for the stored positions; more steps do not fit.
    run (**trusted**): a run rounds as `kernel.rounding` describes; equal scores are compared as they were computed.

Certified
    The statement, for every input of at most L symbols and the first T steps. `margin` is the smaller of 1 - 6 kappa T^4,
    by which the latest write is safe, and the smallest lead of the right output.

Not certified
    Steps beyond the horizon, which a run refuses. In rationals there is no horizon; `run_exactly` and the tests go there.

Example
    >>> from certiformer.kernel.rounding import FORMATS
    >>> from certiformer.axioms.encoder_decoder_machine import unsafe
    >>> [bool(unsafe(FORMATS["float64"], steps) < 1) for steps in (900, 1_000)]
    [True, False]

Tests: tests/theorems/test_encoder_decoder_machine.py
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from flint import arb

from certiformer.axioms.encoder_weights import EncoderShape
from certiformer.kernel import Refused
from certiformer.kernel.balls import INFINITY, ONE, ZERO, decimal, larger, largest, smaller, working_precision
from certiformer.kernel.computation import Files, Finding
from certiformer.kernel.files import CONFIG, MACHINE, MODEL
from certiformer.kernel.meanings.machine import Machine
from certiformer.kernel.rounding import FORMATS, Format, NoBound, no_overflow
from certiformer.kernel.weights import Tensor, read_model

THEOREM = {
    "id": "axioms.encoder_decoder_machine",
    "title": "An encoder-decoder with hard attention simulates a Turing machine, up to a horizon in floats.",
    "kind": "exact",
    "sources": ("perez2021",),
    "verb": "compile",
    "assumptions": (
        ("form", "five blocks with causal nearest attention and ReLU units", "checked"),
        ("weights", "every number is the one of the proof, up to the rounding of the type", "checked"),
        ("horizon", "the latest write leads by more than a run errs; more steps do not fit", "checked"),
        ("run", "a run rounds as kernel.rounding describes", "trusted"),
    ),
}

NOT_CLAIMED = (
    "Steps beyond the horizon: `run` stops there and says so. In rationals the same weights go on for ever.",
    "Whether the machine halts: the proof is about every single step.",
)


def sentence(files: Files) -> str:
    """The claim in one plain sentence."""
    machine, (config, tensors) = Machine.from_text(files[MACHINE]), read_model(files[CONFIG], files[MODEL])
    shape = EncoderShape.of(machine, config, tensors)
    inputs = f"For every input of at most {shape.symbols:,} symbols" if shape.symbols else "For the empty input"
    return (
        f"{inputs} and each of the first {shape.steps:,} steps, on a tape that is free on both sides, the decoder writes"
        f" the state, the symbol under the head and the move of the machine of {len(machine.states)} states and"
        f" {len(machine.symbols)} symbols, in real arithmetic and in a run in {config['dtype']}."
    )


def find(files: Files) -> Finding:
    """Why the claim holds, with the smallest margin; raises `Refused` or `BadInput`."""
    machine = Machine.from_text(files[MACHINE])
    shape, least = prove_encoder_decoder(machine, *read_model(files[CONFIG], files[MODEL]))
    margin = decimal(least, up=False)
    reason = (
        "every stored number is that of the theorem up to rounding, and the latest write and the right output lead by more"
        f" than a run errs, with a margin of {margin}"
    )
    return Finding(reason, {"steps": shape.steps, "symbols": shape.symbols, "margin": margin})


def prove_encoder_decoder(machine: Machine, config: dict, tensors: Mapping[str, Tensor]) -> tuple[EncoderShape, arb]:
    """Check that the stored model runs the machine: its horizon and the smallest margin, or `Refused` with the reason."""
    working_precision()
    if config["dtype"] not in ("float64", "float32"):
        raise Refused("an encoder-decoder is proved in float64 and float32")
    shape, form = EncoderShape.of(machine, config, tensors), FORMATS[config["dtype"]]
    eta = _require_weights(shape, config, tensors)
    if not shape.steps + shape.symbols + 4 < 2 ** (form.precision - 2):
        raise Refused(f"{shape.steps:,} steps are beyond the whole numbers of {form.name}")
    danger = unsafe(form, shape.steps, eta)
    if not danger < 1:
        raise Refused(f"{shape.steps:,} steps are beyond the horizon: {form.name} does not tell the latest write apart")
    e = _cell_error(form, shape.steps)
    try:
        near = 2 * (e * shape.steps + eta * (shape.symbols + 1) + form.gamma(3) * (shape.steps + shape.symbols + 2))
        if not near < arb("0.5"):
            raise Refused(f"{form.name} does not tell the cells of the input apart")
        margin = smaller((1 - danger).lower(), _lead(form, shape.steps))
    except NoBound as reason:
        raise Refused(f"the run has no bound: {reason}") from None
    return shape, margin


def unsafe(form: Format, steps: int, eta: arb | None = None) -> arb:
    """6 kappa T^4: the latest write is safe where it is below 1."""
    try:
        e, eta = _cell_error(form, steps), form.unit if eta is None else eta
        rho = (1 + eta) ** 3 * (1 + form.unit) ** 2 - 1
        kappa = 2 * (eta + e * (1 + eta)) + rho / 3 + form.gamma(4) * (arb(7) / 3 + 3 * eta + 3 * e)
    except NoBound:
        return INFINITY
    # What underflows is far below 1 / (j + 1).
    kappa = kappa + 32 * form.tiny * (steps + 1)
    return (6 * kappa * arb(steps) ** 4).upper()


def _cell_error(form: Format, steps: int) -> arb:
    d = form.divide * form.unit
    return (d + form.gamma(steps + 1) * (1 + d) + form.tiny * 4 * (steps + 2)).upper()


def _require_weights(shape: EncoderShape, config: dict[str, Any], tensors: Mapping[str, Tensor]) -> arb:
    """Whole numbers are as stated; returns the largest relative error of the others."""
    numbers = shape.rounded(tensors)
    shape.construction(config["dtype"], numbers).require(config, tensors)
    inverses = [k for i in range(1, shape.steps + 1) for k in (i, i * i)]
    return largest([abs(arb(x) * k - 1).upper() for x, k in zip(numbers, [*inverses, 3], strict=True)])


def enclosed_sum(form: Format, constants: Iterable[arb]) -> arb:
    """The sum of enclosed numbers in any order, in real arithmetic and in a run: gamma_m times the sizes, and underflow."""
    added = [value for value in constants if not value.is_zero()]
    size, gamma = sum((abs(value) for value in added), ZERO), form.gamma(len(added))
    no_overflow(form, size * (1 + gamma))
    error = (gamma * size + 6 * form.tiny * len(added)).upper()
    total = sum(added, ZERO) + (-error).union(error)
    if not total.is_finite():
        raise NoBound("a sum of the run is not finite")
    return total


def _lead(form: Format, steps: int) -> arb:
    """The smallest lead of the right output, with the weight of a winner within its quotient of 1."""
    weight = form.divide * form.unit
    one, none = (1 - weight).lower().union((1 + weight).upper()), ZERO
    # winner - index + 1 for the newest token and for an older one; what is more than one step older is further below 0.
    slip = (weight * steps + form.gamma(3) * (2 * steps + 2) * (1 + weight) + 16 * form.tiny).upper()
    same = {True: (1 - slip).lower().union((1 + slip).upper()), False: none.union(larger(slip, ZERO))}
    error = ZERO
    for is_newest, newest in same.items():
        for moved in (0, 1):
            argument = enclosed_sum(form, [newest, arb(moved), -ONE])
            wanted = is_newest and moved
            # newest + (unit - newest), where both `newest` are one number: the unit, up to the roundings of two sums.
            unit = argument.max(ZERO)
            slack = (form.gamma(3) * (abs(unit) + 2 * abs(newest)) + 8 * form.tiny).upper()
            fresh = unit + (-slack).union(slack)
            for latest in (none, one):
                for initial in (none, one):
                    old = enclosed_sum(form, [latest, -fresh]).max(ZERO)
                    new = enclosed_sum(form, [initial, fresh, -ONE]).max(ZERO)
                    read = enclosed_sum(form, [old, new])
                    right = (initial if wanted else latest) is one
                    error = larger(error, abs(read - (1 if right else 0)).upper())
    # An output adds three numbers, each 0 or 1 up to the error of what is read, and a bias.
    added = form.gamma(5) * (6 + 2 * error)
    return (1 - 2 * error - 2 * added).lower()
