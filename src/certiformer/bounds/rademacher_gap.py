"""From Rademacher complexity to a bound on the risk, valid for norms that were measured after training.

Statement
---------
Let losses lie in [0, b] and let z_1, ..., z_m be independent examples. With probability at least 1 - delta, for all f
in F at once,

    risk(f) <= mean loss of f on the sample + 2 Rad(loss o F) + 3 b sqrt(log(2 / delta) / (2 m)).

Stratification: suppose that for every vector of cells j = (j_1, ..., j_k), j_i = 0, 1, 2, ..., such a bound holds for the
class of norms B_i <= u_i q^(j_i), q > 1 fixed (2 where nothing else is said), with delta replaced by delta_j = delta
prod_i 1 / ((j_i + 1)(j_i + 2)). Then with probability at least 1 - delta all these bounds hold at once; so the bound of
the smallest cells that contain a trained model holds for it, though its norms were not known before.

Source
------
Mohri, Rostamizadeh and Talwalkar 2018 (mohri2018), Theorem 3.3, for losses in [0, 1]; the second part is a union bound.

Differs from the source in
--------------------------
Scaled to [0, b]. The empirical complexity is bounded by the same number as the expected one, because the covers used here
hold for every sample.

Proof
-----
First part: the source's inequality with empirical complexity, applied to loss / b. Second part: sum over j >= 0 of
1 / ((j + 1)(j + 2)) = 1 (telescoping), so the delta_j sum to delta. QED.

Assumptions
-----------
- independent: **trusted** the m examples are independent and have one distribution; the sample unit is a whole sequence.
- bounded: **trusted** the loss lies in [0, b]; a cross entropy is clipped or smoothed for that.
- before-data: **checked** the units u_i of the cells are arguments, fixed before the data are seen, not measured.

Certified
---------
The right side, rounded up, and delta_j exactly.

Not certified
-------------
That examples of a real data set are independent.

Example
-------
A million sequences, loss in [0, 1], complexity 0.01:

>>> round(above(gap(0.01, 1, 10**6, 0.05)), 6)
0.024074
>>> stratify([5.0, 0.3], [1.0, 1.0], 0.05)
([8.0, 1.0], Fraction(1, 800))

Tests
-----
`tests/theorems/test_rademacher_gap.py`
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from flint import arb

from certiformer.bounds.numbers import Number, ball, require_positive, require_probability
from certiformer.bounds.numbers import above as above
from certiformer.errors import BadInput

THEOREM = {
    "id": "bounds.rademacher_gap",
    "title": "Rademacher complexity bounds the risk, also for norms that are measured afterwards",
    "kind": "probabilistic",
    "sources": (
        "mohri2018, Theorem 3.3",
        "classical",
    ),
    "verb": "audit",
    "assumptions": (
        ("independent", "The examples are independent and have one distribution.", "trusted"),
        ("bounded", "The loss lies in [0, b].", "trusted"),
        ("before-data", "The units of the cells are fixed before the data are seen.", "checked"),
    ),
    "uses": (),
}


DYADIC = Fraction(2)


def gap(complexity: Number, largest_loss: Number, examples: int, delta: Number) -> arb:
    """2 Rad + 3 b sqrt(log(2 / delta) / (2 m)), where the complexity is that of the losses."""
    require_positive(number_of_examples=examples)
    if not 0 < ball(delta) < 1:
        raise BadInput(f"the probability of failure is between 0 and 1, not {delta}")
    return 2 * ball(complexity) + 3 * ball(largest_loss) * ((2 / ball(delta)).log() / (2 * ball(examples))).sqrt()


def stratify(
    measured: Sequence[float], units: Sequence[float], delta: float, ratio: Fraction = DYADIC
) -> tuple[list[float], Fraction]:
    """The ends of the cells that hold the measured norms, and the probability that is left for these cells.

    Ends are the unit times powers of `ratio`, rounded up to floats: dyadic cells, or finer ones.
    """
    require_probability(delta)
    ends, left = [], Fraction(str(delta))
    for value, unit in zip(measured, units, strict=True):
        require_positive(unit_of_a_cell=unit)
        if not (math.isfinite(value) and value >= 0):
            raise BadInput(f"a norm is a finite number, not {value}")
        cell = 0
        end = Fraction(unit)
        while end < Fraction(value):
            cell += 1
            end *= ratio
        ends.append(above(ball(end)))
        left /= (cell + 1) * (cell + 2)
    return ends, left
