"""Evidence for a claim: proof trees by the rules that apply, and a proved lower end.

`collect` tries the cheap rules first and returns every tree it found, tightest first; the caller hands them to the
checker in that order. Nothing here is trusted.

*Equal tokens.* If equal tokens keep equal rows whatever the weights are (`expressivity.relative_bias_not_universal`),
these inputs are tried as counterexamples, and half the spread of the target's rows there bounds the error of *every*
model of the architecture from below. The spread is enclosed in balls.
"""

from __future__ import annotations

import time
from fractions import Fraction
from pathlib import Path

import jax
import numpy as np
from flint import arb
from jaxtyping import Float

from certiformer.construct.method import Construction
from certiformer.expressivity.relative_bias_not_universal import equal_tokens_stay_equal
from certiformer.kernel.balls import ZERO, Box, ball, decimal, larger
from certiformer.kernel.layers import Prototypes
from certiformer.kernel.taylor import value_ball
from certiformer.model import Transformer
from certiformer.search.box_evidence import by_boxes
from certiformer.search.case import Case, Evidence, Progress, Tree, raise_lower
from certiformer.search.part_evidence import by_one_box, by_ridges, by_sum, by_units
from certiformer.search.request import Options
from certiformer.target import Target, Teacher
from certiformer.verify import Falsifier

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)  # of the way through the box


def equal_token_points(case: Case) -> Float[np.ndarray, "points inputs"] | None:
    """A few sequences of equal tokens in the domain; None if there are none, or if the architecture sees positions."""
    config, width = case.model.config, case.model.config.input.width or 1
    if config.readout.kind != "all" or config.tokens < 2:
        return None
    if not equal_tokens_stay_equal(config, case.model.tensors).holds:
        return None
    # The part of the box that all tokens share.
    low = case.domain.inner_low.reshape(config.tokens, width).max(axis=0)
    high = case.domain.inner_high.reshape(config.tokens, width).min(axis=0)
    if (low > high).any():
        return None
    tokens = [np.clip(low + share * (high - low), low, high) for share in SHARES]
    return np.array([np.tile(token, config.tokens) for token in tokens])


def architecture_limit(case: Case, points: Float[np.ndarray, "points inputs"] | None) -> str:
    """What no choice of weights can repair, in words; nothing unless it is more than epsilon."""
    if points is None:
        return ""
    limit = ZERO
    for point in points:
        limit = larger(limit, _half_spread(case, point))
    text = decimal(limit, up=False)
    if not Fraction(text) > case.epsilon:
        return ""
    return (
        f"no other weights of this architecture would do: equal tokens keep equal rows, so every model of it has an error"
        f" of at least {text} (certiformer theorem relative_bias_not_universal)"
    )


def _half_spread(case: Case, point: Float[np.ndarray, " inputs"]) -> arb:
    """A lower bound of half the largest difference of two rows of the target at a point."""
    box = Box(tuple(ball(Fraction(float(x))) for x in point), (ZERO,) * len(point))
    forms = case.problem.right.forms(box, 0)
    width, best = case.model.config.outputs, ZERO
    for column in range(width):
        values = [value_ball(form) for form in forms[column::width]]
        gaps = [(a - b).lower() / 2 for a in values for b in values]
        for gap in gaps:
            best = larger(best, gap.lower()) if gap.is_finite() else best
    return best


# From this many units on nothing but the directions is tried for a constructed sum of ridges.
MANY_UNITS = 300
MAX_BOX_DIMENSION = 3  # beyond, boxes are only tried when asked for


def collect(
    model: Transformer,
    target: Target | Teacher,
    epsilon: Fraction,
    options: Options,
    *,
    construction: Construction | None = None,
    checkpoint: tuple[Path, str] | None = None,
    progress: Progress | None = None,
) -> Evidence:
    """All evidence that the chosen rule gives; a counterexample ends the search at once."""
    with jax.enable_x64(True):
        case, found = Case(model, target, epsilon, options), Evidence()
        began = time.monotonic()
        falsifier = Falsifier(case.error_rows(), case.domain, options.seed, case.points_at_once)
        equal = equal_token_points(case)
        raise_lower(case, found, falsifier, equal)
        found.limit = architecture_limit(case, equal)
        found.seconds["lower"] = time.monotonic() - began
        if found.lower > epsilon:
            return found
        proof = None if construction is None else construction.proof
        if construction is not None and proof is not None and options.rule in ("auto", "theorem"):
            found.trees.append(Tree(proof, construction.leaves, Fraction(proof.bound)))
        elif options.rule == "theorem":
            found.reasons.append("no theorem speaks of this transformer")
        began = time.monotonic()
        tight = False
        if options.rule in ("auto", "ridges"):
            tight = by_ridges(case, found, None if construction is None else construction.through)
        if options.rule == "auto" and not tight and _only_through(construction, model):
            found.seconds["search"] = time.monotonic() - began
            return found
        if options.rule in ("auto", "sum") and not tight:
            heads = isinstance(case.problem.left, Prototypes)
            tight = by_sum(case, found) if heads else by_units(case, found, falsifier, progress)
        if options.rule == "auto" and not found.trees:
            tight = by_one_box(case, found)
        low_dimension = target.domain.dimension <= MAX_BOX_DIMENSION or not found.trees
        if options.rule == "boxes" or (options.rule == "auto" and not tight and low_dimension):
            by_boxes(case, found, falsifier, checkpoint, progress)
        found.seconds["search"] = time.monotonic() - began
    found.trees.sort(key=lambda tree: tree.upper)
    return found


def _only_through(construction: Construction | None, model: Transformer) -> bool:
    """Whether a proof without the intermediate program is out of reach: forms of so many kinks never close."""
    through = construction is not None and construction.through is not None
    return through and sum(block.ffn.width for block in model.config.blocks if block.ffn is not None) > MANY_UNITS
