"""Evidence for a claim: proof trees by the rules that apply, and a proved lower end.

`collect` tries the cheap rules first and returns every tree it found, tightest first; the caller hands them to the
checker in that order. Nothing here is trusted.
"""

from __future__ import annotations

import time
from fractions import Fraction
from pathlib import Path

import jax

from certiformer.construct.method import Construction
from certiformer.kernel.layers import Prototypes
from certiformer.model import Transformer
from certiformer.search.box_evidence import by_boxes
from certiformer.search.case import Case, Evidence, Progress, Tree, raise_lower
from certiformer.search.equal_tokens import architecture_limit, equal_token_points
from certiformer.search.part_evidence import by_one_box, by_ridges, by_sum, by_units
from certiformer.search.request import Options
from certiformer.target import Target, Teacher
from certiformer.verify import Falsifier

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
