"""A model that can be written in few bits generalizes: the bound that is not vacuous for real models.

Statement
---------
Fix a prefix code for models before seeing the data, and a loss of range D. With probability at least 1 - delta, for
every model h of the code at once, written in b bits,

    risk(h) <= mean loss of h on the sample + D sqrt((b log 2 + log(1 / delta)) / (2 n)),

(documents) for n independent examples, and (tokens) for n consecutive tokens of one stream, where the risk is the
mean over i of the conditional expectation of the i-th loss given the tokens before it. A file of b' bits that is not
self-delimiting costs b = b' + 2 log2 b' bits; a choice among k settings costs log2 k more. If the mean loss is taken
on n' random examples of the n (with replacement), then with r = n' / (n' + n)

    risk(h) <= mean loss on the n' + D (sqrt((b log 2 - log(r delta)) / (2 n)) + sqrt(-log((1 - r) delta) / (2 n'))).

The loss -log2((1 - a) p + a / V) of the probability p that the model gives the next token, smoothed with 0 < a <= 1
over V tokens, has the range D = log2(1 + (1 - a) V / a); an error rate has D = 1.

Source
------
Lotfi et al. 2024 (lotfi2024) for documents and subsampling, Lotfi et al. 2024 (lotfi2024b) for tokens; the inequality
behind both is that of Hoeffding and Azuma with a union bound over the code.

Differs from the source in
--------------------------
Nothing in the formula. The theorem of lotfi2024b could not be read; its formula is that of its published code, and
the proof below is our own. How bits are counted is stated beside every number (`Bits`).

Proof
-----
For one h the losses minus their (conditional) expectations are martingale differences with range D, so the mean loss
is below the risk by t with probability at most exp(-2 n t^2 / D^2) (Hoeffding; Azuma for the stream, where each
difference lies in an interval of length D that the past determines). Give h the probability delta 2^-b; these sum to
at most delta by Kraft's inequality. Solve for t. With a subsample, give the first event r delta and the second,
Hoeffding's for the n' draws given the sample, (1 - r) delta. A smoothed p lies in [a / V, 1 - a + a / V], the
quotient of the ends is 1 + (1 - a) V / a. QED.

Assumptions
-----------
- code-before-data: **trusted** the code, the initial weights, the seed and the architecture were fixed before the
  data were seen.
- coded-model: **trusted** the mean loss is that of the model that was written down, after quantisation.
- independent: **trusted** documents: the examples are independent; tokens: nothing is assumed of their dependence.
- positive: **checked** counts are positive, 0 < delta < 1.

Certified
---------
The right side, rounded up.

Not certified
-------------
That a code was not chosen after a look at the data: say how many were tried, and they are paid for.

Example
-------
A 70-billion-parameter model in 1.9 GB, 1.2e12 tokens, 10,000 of them evaluated:

>>> figure = Sample(n=1_200_000_000_000, evaluated=10_000)
>>> round(above(bound(2.87, smoothed_range(0.1, 32_000), Bits(8 * 1_900_000_000, 2), figure)), 4)
4.2936

Tests
-----
`tests/theorems/test_compression.py`
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from certiformer.bounds.numbers import Number, ball, require_positive, require_probability
from certiformer.bounds.numbers import above as above
from certiformer.errors import BadInput

THEOREM = {
    "id": "bounds.compression",
    "title": "A model that can be written in few bits generalizes",
    "kind": "probabilistic",
    "sources": (
        "lotfi2024",
        "lotfi2024b",
    ),
    "verb": "audit",
    "assumptions": (
        ("code-before-data", "The code and everything it leaves out were fixed before the data.", "trusted"),
        ("coded-model", "The mean loss is that of the model that was written down.", "trusted"),
        ("independent", "Documents are independent; of tokens nothing is assumed.", "trusted"),
        ("positive", "Counts are positive and 0 < delta < 1.", "checked"),
    ),
    "uses": (),
}


@dataclass(frozen=True)
class Bits:
    """How a model is written: `file` bits, `settings` more for what was tried, `delimited` if the code is a prefix code."""

    file: int
    settings: int = 0
    delimited: bool = True

    def __post_init__(self) -> None:
        require_positive(number_of_bits=self.file)
        if self.settings < 0:
            raise BadInput(f"settings cost no negative number of bits, not {self.settings}")

    @property
    def total(self) -> arb:
        length = ball(self.file)
        return length + self.settings + (0 if self.delimited else 2 * length.log() / arb(2).log())


@dataclass(frozen=True)
class Sample:
    """`n` examples or tokens, of which `evaluated` random ones gave the mean loss (None: all of them)."""

    n: int
    evaluated: int | None = None

    def __post_init__(self) -> None:
        require_positive(
            number_of_examples=self.n, evaluated_examples=self.n if self.evaluated is None else self.evaluated
        )


def penalty(bits: Bits, sample: Sample, delta: float = 0.05) -> arb:
    """What is added to the mean loss for a loss of range 1."""
    require_probability(delta)
    description, chance, n = bits.total * arb(2).log(), ball(Fraction(str(delta))), ball(sample.n)
    if sample.evaluated is None:
        return ((description - chance.log()) / (2 * n)).sqrt()
    share = ball(Fraction(sample.evaluated, sample.evaluated + sample.n))
    first = ((description - (share * chance).log()) / (2 * n)).sqrt()
    return first + (-((1 - share) * chance).log() / (2 * ball(sample.evaluated))).sqrt()


def bound(mean_loss: Number, loss_range: Number, bits: Bits, sample: Sample, delta: float = 0.05) -> arb:
    """The bound of the risk."""
    return ball(mean_loss) + ball(loss_range) * penalty(bits, sample, delta)


def smoothed_range(smoothing: float, vocabulary: int) -> arb:
    """D of the smoothed loss, in bits.

    >>> round(above(smoothed_range(0.1, 50_257)), 6)
    18.786965
    """
    if not 0 < smoothing <= 1:
        raise BadInput(f"a smoothing is above 0 and at most 1, not {smoothing}")
    require_positive(size_of_the_vocabulary=vocabulary)
    a = ball(Fraction(str(smoothing)))
    return (1 + (1 - a) * vocabulary / a).log() / arb(2).log()
