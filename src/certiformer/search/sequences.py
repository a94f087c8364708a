"""`build_sequences`: maps on all sequences over an alphabet, each proved for all V^n of them at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path

from certiformer.artifact import Artifact
from certiformer.construct.counting import counting_network
from certiformer.construct.induction_head import LEAD, induction_network
from certiformer.construct.majority import majority_network
from certiformer.construct.memorise import Progress
from certiformer.construct.one_block import Tensors
from certiformer.construct.parity import parity_network
from certiformer.construct.selector_width import histogram_network
from certiformer.construct.sort_alphabet import sort_network
from certiformer.errors import BadInput
from certiformer.kernel.certificate import Theorem
from certiformer.kernel.programs import decimal_text
from certiformer.model import Config, Transformer
from certiformer.search.finite_job import EPSILON, FiniteJob, Made
from certiformer.search.request import read_epsilon
from certiformer.target import CountMap, InductionMap, SequenceMap, SortMap, WidthMap

# The real-number functions of the weights are the maps themselves, or leak less than 4 n exp(-64); the checker's balls of
# 96 bits prove this much.
BOUND = "1e-15"

Words = dict[str, tuple[Callable[..., SequenceMap], Callable[[int, int], tuple[Config, Tensors]], Theorem]]
WORDS: Words = {
    "sort": (SortMap, sort_network, Theorem(BOUND, "exact_sort")),
    "count": (partial(CountMap, what="count"), counting_network, Theorem(BOUND, "exact_count")),
    "parity": (
        partial(CountMap, what="parity"),
        lambda alphabet, tokens: parity_network(tokens, alphabet),
        Theorem(BOUND, "exact_count"),
    ),
    "majority": (partial(CountMap, what="majority"), majority_network, Theorem(BOUND, "exact_count")),
    "hist": (WidthMap, histogram_network, Theorem(BOUND, "exact_width")),
    "induction": (InductionMap, induction_network, Theorem(BOUND, "exact_induction", {"lead": LEAD})),
}
"""What is built, by its name on the command line: the claim, the weights, the theorem that proves them."""


def build_sequences(
    word: str,
    alphabet: int,
    tokens: int,
    *,
    eps: str | float | Fraction = EPSILON,
    dtype: str = "float64",
    out: str | Path | None = None,
    force: bool = False,
    keep: bool = False,
    progress: Progress | None = None,
) -> Artifact:
    """A transformer proved to compute a map on every sequence of `tokens` letters from an alphabet, all V^n of them.

    `word` is `sort`, `count`, `parity` (of the letters 1), `majority`, `hist` or `induction`; `dtype` is the stored type
    of the weights, for runs in which there is a bound as well; the rest as for `build`.

    >>> build_sequences("parity", 2, 40).certified
    True
    """
    if word not in WORDS:
        raise BadInput(f"on all sequences we build {', '.join(WORDS)}, not {word!r}")
    claim, network, theorem = WORDS[word]
    target = claim(f"{word} of {tokens} letters from {alphabet}", alphabet, tokens)
    text, epsilon = read_epsilon(eps)
    job = FiniteJob(target, text, epsilon, word, dtype, progress)

    def make() -> Made:
        config, tensors = network(alphabet, tokens)
        return Transformer(replace(config, dtype=dtype), tensors), theorem, None, []

    return _with_margin(job.run(make, out, force, keep), dtype)


def _with_margin(run: Artifact, dtype: str) -> Artifact:
    """The run with a note on how far its outputs, whole numbers all of them, stay from being rounded the wrong way."""
    certificate = run.certificate
    if not run.certified or certificate.upper is None:
        return run
    apart = Fraction(certificate.upper) + Fraction(certificate.run_error or 0)
    if apart >= Fraction(1, 2):
        return run
    margin, where = decimal_text(Fraction(1, 2) - apart, up=False), "in real arithmetic"
    if certificate.run_error is not None:
        where += f" and in a run in {dtype}"
    note = f"rounded to the nearest whole number the outputs are the answer itself, {where}: margin {margin}"
    return replace(run, notes=(*run.notes, note))


def build_sort(alphabet: int, tokens: int, **options) -> Artifact:
    """A transformer proved to sort every sequence of `tokens` letters from an alphabet; options of `build_sequences`.

    >>> build_sort(3, 8).certified
    True
    """
    return build_sequences("sort", alphabet, tokens, **options)
