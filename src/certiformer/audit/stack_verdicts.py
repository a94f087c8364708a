"""What `bounds.normed_stack` and `bounds.stack_by_count` say about a checkpoint, as powers of ten, and why.

Bounds are printed as logarithms and never cut off at the trivial value, so that progress can be seen long before a bound
says something. The causes of the bound by norms multiply to it (`bounds.mending`)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

from flint import arb

from certiformer.audit.form import Checkpoint
from certiformer.audit.measure import Measurements
from certiformer.audit.stack_norms_of import Cells, stack_norms_of, unfit
from certiformer.audit.verdict import Factor, Given, Verdict
from certiformer.bounds import normed_stack, stack_by_count
from certiformer.bounds.mending import REST, waterfall
from certiformer.bounds.numbers import above, log10_above
from certiformer.bounds.rademacher_gap import gap
from certiformer.bounds.stack_norms import StackNorms
from certiformer.errors import BadInput

NORMS, COUNT = "bounds.normed_stack", "bounds.stack_by_count"
IDS = (NORMS, COUNT)
ASKED = "--samples: the number of independent training sequences"
USUAL = 10**6  # sequences that the causes are shown for where the number is not known
MOST = 300  # decimal digits of a number of sequences that is looked for: floats end at 308
SMALLEST_CAUSE = 0.05  # of a power of ten


def stack_verdicts(checkpoint: Checkpoint, figures: Measurements, given: Given) -> Iterator[Verdict]:
    """The verdicts, in the order of `IDS`."""
    problem = unfit(checkpoint)
    if problem is None:
        try:
            stack, cells = stack_norms_of(checkpoint, figures)
        except BadInput as beyond:  # norms of extreme weights that no float holds
            problem = f"The bound needs other norms: {beyond}."
    if problem is not None:
        for name in IDS:
            yield Verdict(name, "does-not-apply", problem)
        return
    yield _by_norms(stack, cells, given)
    yield _by_count(stack, cells, given)


def _by_norms(stack: StackNorms, cells: Cells, given: Given) -> Verdict:
    factors = tuple(_factors(stack, cells, given))
    worst = max(factors[:-1], key=lambda factor: factor.log10 or 0.0)
    mendable = [each for each in factors[:-1] if not each.mend.startswith("no command")]
    best = max(mendable, key=lambda factor: factor.log10 or 0.0)
    advice = f" The largest cause is {worst.name} (a factor of 10^{worst.log10:.1f}; {worst.mend})."
    if best is not worst and (best.log10 or 0.0) > SMALLEST_CAUSE:
        advice += f" The largest that training mends is {best.name} (10^{best.log10:.1f}; {best.mend})."
    return _judged(NORMS, {"norms": lambda m: _gap(stack, cells, given, m)}, given, advice, factors)


def _by_count(stack: StackNorms, cells: Cells, given: Given) -> Verdict:
    made = normed_stack.pieces(stack)
    ways = {by: partial(_counted_gap, stack, cells, given, by) for by in stack_by_count.WAYS}
    counts = {by: stack_by_count.entries(made, by) for by in stack_by_count.WAYS}
    advice = (
        f" It counts {counts['count']:,} trained numbers; {counts['ranks']:,} by the ranks that the sizes of heads allow."
        " What mends it is a smaller model, or heads and maps of lower rank."
    )
    return _judged(COUNT, ways, given, advice, ())


def _judged(name: str, ways: dict, given: Given, advice: str, factors: tuple[Factor, ...]) -> Verdict:
    """The better of several ways, against the trivial value; without a number of sequences, how many it would take."""
    trivial = math.log10(given.largest_loss)
    if given.samples is None:
        needed = min(_digits_needed(bound, given.largest_loss) for bound in ways.values())
        many = f"from 10^{needed} on" if needed <= MOST else f"not up to 10^{MOST}"
        sentence = (
            f"With all that is trained in the class, it says something for so many independent sequences: {many}."
        )
        return Verdict(
            name, "holds-if", sentence + advice, needs=(ASKED,), factors=factors, details={"digits_needed": needed}
        )
    values = {by: log10_above(bound(given.samples)) for by, bound in ways.items()}
    value = min(values.values())
    each = ", ".join(f"10^{one:.2f} by {by}" for by, one in values.items())
    sentence = (
        f"On {given.samples:,} independent sequences, with probability {1 - given.delta:g}, the loss exceeds its mean on"
        f" the sample by at most {each} (trivial: 10^{trivial:.2f}).{advice}"
    )
    verdict = "holds" if value < trivial else "vacuous"
    details: dict[str, object] = {"unit": "log10 of the loss", "log10": values}
    text = sentence if verdict == "holds" else f"vacuous: {sentence}"
    return Verdict(name, verdict, text, value, trivial, factors=factors, details=details)


def _gap(stack: StackNorms, cells: Cells, given: Given, samples: int) -> arb:
    complexity = normed_stack.complexity(stack, given.largest_loss, samples)
    return gap(complexity, given.largest_loss, samples, cells.left_of(given.delta))


def _counted_gap(stack: StackNorms, cells: Cells, given: Given, by: str, samples: int) -> arb:
    complexity = stack_by_count.complexity(stack, given.largest_loss, samples, by)
    return gap(complexity, given.largest_loss, samples, cells.left_of(given.delta))


def _digits_needed(bound, largest: float) -> int:
    """The least k for which 10^k sequences are enough; above `MOST` where none is found."""
    low, high = 0, MOST + 1
    while low < high:
        middle = (low + high) // 2
        if middle <= MOST and not bound(10**middle) < largest:
            low = middle + 1
        else:
            high = middle
    return low


def _factors(stack: StackNorms, cells: Cells, given: Given) -> Iterator[Factor]:
    samples = given.samples or USUAL
    for fall in waterfall(stack, lambda mended: _gap(mended, cells, given, samples)):
        size = log10_above(fall.factor)
        name = fall.cause if fall.cause != REST else f"{REST}, on {samples:,} sequences"
        yield Factor(name, above(fall.factor), size, fall.mend)
