"""One path of a mixing process instead of independent examples: blocks that are far apart count as independent.

Statement
---------
Let z_1, ..., z_N be a stationary sequence with mixing coefficients beta(a), losses in [0, b], N = 2 u a with whole u,
a, and delta' = delta - 4 (u - 1) beta(a) > 0. With probability at least 1 - delta, for all f in F at once,

    risk(f) <= mean loss on the path + 2 Rad_u(loss o F) + 3 b sqrt(log(4 / delta') / (2 u)),

where Rad_u is the complexity on u independent examples; for the 2^k models that k bits can tell apart it is at most b
sqrt(2 k log 2 / u). If beta(a) <= c rho^a the best a can be sought, as it depends on nothing that is seen.

Source
------
Mohri and Rostamizadeh 2008 (mohri2008), Theorem 2, whose complexity carries the factor 2 in its definition. Massart's
lemma, for finitely many models: Shalev-Shwartz and Ben-David 2014 (shalev2014), Lemma 26.8.

Differs from the source in
--------------------------
Nothing; the theorem is recalled, not re-proved. What is left over when N is no multiple of 2 a is not used. It stands
in the place of Limmer et al. 2024 (arXiv 2405.16563), whose theorem could not be read and is not imitated.

Assumptions
-----------
- stationary: **trusted** the path is stationary and its mixing coefficients are at most c rho^a.
- theorem: **trusted** the source's theorem.
- bounded: **trusted** losses lie in [0, b].
- positive: **checked** 0 <= rho < 1, c >= 0, delta' > 0.

Certified
---------
The right side for the best a, in balls.

Not certified
-------------
The mixing rate of a real process: for a Markov chain that was fitted it is an estimate.

Example
-------
A path of a million steps, rho = 1/2 and 0.9; only the last term:

>>> [(b.gap, b.blocks, round(above(b.term), 4)) for b in (best_blocks(10**6, rho) for rho in (0.5, 0.9))]
[(23, 21739, 0.0309), (133, 3759, 0.0747)]

Tests
-----
`tests/theorems/test_mixing_path.py`
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from certiformer.bounds.numbers import Number, ball, require_positive, require_probability
from certiformer.bounds.numbers import above as above
from certiformer.errors import BadInput

THEOREM = {
    "id": "bounds.mixing_path",
    "title": "One path of a mixing process is worth as many examples as it has blocks that are far apart",
    "kind": "probabilistic",
    "sources": (
        "mohri2008, Theorem 2",
        "shalev2014, Lemma 26.8",
    ),
    "verb": "audit",
    "assumptions": (
        ("stationary", "The path is stationary and mixes at the rate given.", "trusted"),
        ("theorem", "The theorem of the source.", "trusted"),
        ("bounded", "Losses lie in [0, b].", "trusted"),
        ("positive", "The rate is below 1 and enough probability is left.", "checked"),
    ),
    "uses": (),
}


@dataclass(frozen=True)
class Blocks:
    """u = `blocks` blocks, `gap` = a steps apart, and the last term for losses in [0, 1]."""

    blocks: int
    gap: int
    term: arb


def finite_complexity(bits: int, blocks: int) -> arb:
    """Massart's lemma for all models of so many bits and losses in [0, 1]: vectors of u losses have norm at most sqrt u.

    >>> round(above(finite_complexity(1000, 10**6)), 4)
    0.0372
    """
    require_positive(number_of_bits=bits, number_of_blocks=blocks)
    return (2 * ball(bits) * arb(2).log() / blocks).sqrt()


def blocks_at(steps: int, gap: int, rho: float, scale: float = 1.0, delta: float = 0.05) -> Blocks | None:
    """The blocks with this gap, or None where no probability is left for them."""
    count = steps // (2 * gap)
    if count < 1:
        return None
    left = ball(Fraction(str(delta))) - 4 * (count - 1) * ball(scale) * ball(Fraction(str(rho))) ** gap
    return Blocks(count, gap, 3 * ((4 / left).log() / (2 * ball(count))).sqrt()) if left > 0 else None


def best_blocks(
    steps: int,
    rho: float,
    scale: float = 1.0,
    delta: float = 0.05,
    complexity: Callable[[int], Number] = lambda _: 0,
) -> Blocks:
    """The gap with the smallest bound; `complexity(u)` is that of the losses on u independent examples."""
    require_positive(length_of_the_path=steps)
    require_probability(delta)
    if not (0 <= rho < 1 and scale >= 0):
        raise BadInput(f"a mixing rate is at least 0 and below 1, not {rho}")
    best: tuple[arb, Blocks] | None = None
    for gap in range(1, steps // 2 + 1):
        found = blocks_at(steps, gap, rho, scale, delta)
        if found is None:
            continue
        value = 2 * ball(complexity(found.blocks)) + found.term
        if best is None or value.upper() < best[0].upper():
            best = value, found
        elif found.term.lower() > best[0].upper():  # fewer blocks only make it larger
            break
    if best is None:
        raise BadInput(f"a path of {steps:,} steps has no two blocks")
    return best[1]
