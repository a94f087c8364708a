"""Which generalization bounds hold for a checkpoint.

The norm-based bounds of the literature are proved for stacks of bare attention (`audit.plain_stack`). A real
checkpoint fails that assumption, and is told where; what is printed for it is `bounds.normed_stack`, which knows norms
and residuals, and `bounds.compression`, which counts bits and needs no assumption on the architecture."""

from __future__ import annotations

import math
from collections.abc import Iterator

from certiformer.audit.form import Checkpoint, Coverage
from certiformer.audit.measure import Measurements
from certiformer.audit.plain_stack import STACKS as STACKS
from certiformer.audit.plain_stack import plain_stacks
from certiformer.audit.stack_verdicts import stack_verdicts
from certiformer.audit.verdict import Factor, Given, Verdict, judged
from certiformer.bounds import compression, mixing_path
from certiformer.bounds.numbers import above, ball

BITS = {"F64": 64, "F32": 32, "F16": 16, "BF16": 16, "Q8_0": 9}
WIDEST = 64


def generalization(
    checkpoint: Checkpoint, figures: Measurements, coverage: Coverage, given: Given
) -> Iterator[Verdict]:
    """The verdicts, in the order in which they are printed."""
    yield _compression(checkpoint, coverage, given)
    yield from stack_verdicts(checkpoint, figures, given)
    yield from plain_stacks(checkpoint)
    yield _path(checkpoint, coverage, given)


def stored_bits(checkpoint: Checkpoint, coverage: Coverage) -> int:
    """The bits of all parameters as they are stored; those that are not accounted for count with the widest type."""
    known = sum(weight.count * BITS.get(weight.stored, WIDEST) for weight in checkpoint.weights())
    return max(1, known + WIDEST * (coverage.total - coverage.accounted))


def _compression(checkpoint: Checkpoint, coverage: Coverage, given: Given) -> Verdict:
    name = "bounds.compression"
    n, unit = (given.tokens, "tokens") if given.tokens is not None else (given.samples, "independent documents")
    bits = given.bits if given.bits is not None else stored_bits(checkpoint, coverage)
    source = "given" if given.bits is not None else "the file as it is"
    if n is None:
        needs = ("--tokens or --samples: how much data it was trained on",)
        return Verdict(
            name,
            "holds-if",
            f"The model is written in {bits:,} bits ({source}); with n tokens its error rate is at most the training error"
            f" plus {math.sqrt(bits * math.log(2) / 2):.3g} / sqrt(n).",
            needs=needs,
            details={"bits": bits},
        )
    written, sample = compression.Bits(bits, delimited=False), compression.Sample(n)
    value = above(compression.bound(given.loss or 0.0, given.largest_loss, written, sample, given.delta))
    sentence = (
        f"Written in {bits:,} bits ({source}) and trained on {n:,} {unit}, its expected loss is, with probability"
        f" {1 - given.delta:g}, at most the mean loss on the sample"
        + (f" ({given.loss:g}) plus what the bits cost, together" if given.loss is not None else " plus")
    )
    factors = (Factor("bits", float(bits)), Factor("n", float(n)))
    return judged(name, value, given.largest_loss, sentence, factors=factors, details={"unit": unit})


def _path(checkpoint: Checkpoint, coverage: Coverage, given: Given) -> Verdict:
    name = "bounds.mixing_path"
    if given.rho is None or given.tokens is None:
        return Verdict(
            name,
            "holds-if",
            "For one path of a mixing process: as many examples as it has blocks that are far apart.",
            needs=tuple(
                need
                for need, value in (
                    ("--tokens: the length of the path", given.tokens),
                    ("--rho: its mixing rate", given.rho),
                )
                if value is None
            ),
        )
    found = mixing_path.best_blocks(given.tokens, given.rho, delta=given.delta)
    bits = stored_bits(checkpoint, coverage)
    among_all = mixing_path.finite_complexity(bits, found.blocks)
    value = above(ball(given.largest_loss) * (2 * among_all + found.term))
    sentence = (
        f"A path of {given.tokens:,} steps with mixing rate {given.rho:g} is worth {found.blocks:,} independent blocks,"
        f" {found.gap} steps apart; for all models of {bits:,} bits at once, the loss exceeds its mean on it by at most"
    )
    factors = (Factor("bits", float(bits)), Factor("blocks", float(found.blocks)))
    return judged(name, value, given.largest_loss, sentence, factors=factors, details={"unit": "blocks"})
