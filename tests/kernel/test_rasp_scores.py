"""How a query or key form is rounded when its variables belong to several groups: every group bears its own share."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from flint import arb

from certiformer.kernel.situations.numbers import UNIT, fixed
from certiformer.kernel.situations.rasp.fixed import Arithmetic
from certiformer.kernel.situations.rasp.score_errors import as_key
from certiformer.kernel.situations.rasp.scores import Scores
from certiformer.kernel.situations.rasp.state import Content, Form
from certiformer.rasp import indices, tokens
from certiformer.rasp.program_to_graph import program_to_graph
from kernel.compiled_programs import variables_of

STEP = 2.0**-27  # the error of a coordinate: one unit in the last place of 0.1, less than rounding a sum near 4 costs
WEIGHTS = {0: 3.0, 1: 0.7109375, 2: 1.0}
TOKENS, POSITIONS, FIXED = [0.0, 1 / 3, 0.9], [0.0, 0.7, 5 / 7], [0.1]


@pytest.fixture(scope="module")
def shares():
    """The error of the constant part, and of each group by the place of its variable."""
    variables = variables_of(program_to_graph(tokens + indices, {0, 1, 2}, 3))
    arithmetic = Arithmetic("float32")

    def content(variable, numbers):
        held = [fixed(float(np.float32(x)), "held") for x in numbers]
        return Content(variable, held, [int(STEP * UNIT) if x else 0 for x in held], 0, 0)

    contents = [content(variables.tokens, TOKENS), content(variables.indices, POSITIONS), content(None, FIXED)]
    key = Form(arithmetic, variables, contents, {c: fixed(w, "weight") for c, w in WEIGHTS.items()})
    query = Form(arithmetic, variables, contents, {}, UNIT)
    scores = Scores(arithmetic, variables, [query], [key], arb(1), False)
    scores._fix_errors([[as_key(variables.tokens)], [as_key(variables.indices)]])
    groups = [scores._cases([x], (x,), scores._sides()[1])[0] for x in (variables.tokens, variables.indices)]
    return scores.key_error[0], [[errors[0] for _, errors in cases] for cases in groups], key


def computed(values: list[float]) -> list[Fraction]:
    """The sum of products in float32, in every order."""
    terms = [np.float32(w) * np.float32(x) for w, x in zip(WEIGHTS.values(), values, strict=True)]
    return [Fraction(float(a + b + c)) for a, b, c in permutations(terms)]


def deviations():
    """For all places: how far runs are from the exact sum of what should be held."""
    for (t, x), (i, y) in product(enumerate(TOKENS), enumerate(POSITIONS)):
        ideal = [float(np.float32(z)) for z in (x, y, FIXED[0])]
        exact = sum(Fraction(w) * Fraction(z) for w, z in zip(WEIGHTS.values(), ideal, strict=True))
        for signs in product((-1, 0, 1), repeat=3):
            held = [float(np.float32(z + s * STEP)) if z else z for z, s in zip(ideal, signs, strict=True)]
            yield t, i, max(abs(found - exact) for found in computed(held))


def test_the_shares_bound_every_run(shares):
    fixed, (of_token, of_index), _ = shares
    worst = max(off * UNIT / (fixed + of_token[t] + of_index[i]) for t, i, off in deviations())
    assert worst <= 1
    assert worst > Fraction(1, 20)  # the bound is not idle


def test_the_errors_alone_would_not_do(shares):
    """Without the rounding of the sum, some run is outside."""
    _, _, key = shares
    parts = list(key.parts.values())
    alone = [(t, i, key.constant_error + parts[0][1][t] + parts[1][1][i], off) for t, i, off in deviations()]
    assert any(off * UNIT > bound for _, _, bound, off in alone)


def test_what_is_an_exact_zero_adds_nothing(shares):
    _, (of_token, of_index), key = shares
    assert of_token[0] == of_index[0] == 0 < min(of_token[1], of_index[1])
    assert key.carried > key.plan().limit  # nothing is absorbed here: rounding counts
