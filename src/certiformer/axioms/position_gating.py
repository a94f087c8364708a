"""A feed-forward layer shared by all positions computes a different function at each: units are switched off by position.

Statement
    Let every token t see the whole sequence x (`exact_gather`) and its one-hot code e_t. On a box let
    B >= sup (w.x + b). Then

        relu(w.x + b - B <e_s, code>)     is 0 at position s and relu(w.x + b) at every other one,
        relu(w.x + b - B + B <e_s, code>) is relu(w.x + b) at position s and 0 at every other one.

    A unit that is nonnegative on the box is affine there. Hence for any affine maps F_1, ..., F_n on the box there is
    one block with relu units whose output at position t is F_t(x), exactly: with s_t >= sup (-F_t) one unit
    relu(F_t(x) + s_t - B_t + B_t <e_t, code>) for each output and the constant -s_t read off the code.

Source
    The usual one-hot gate of constructive proofs, as in yun2020, with an explicit constant; derived here.

Differs from the source in
    Gates are exact on the box instead of approximate, and constants that differ by position cost no unit.

Proof
    Where the code's entry subtracts B, the argument is at most sup (w.x + b) - B <= 0. Elsewhere nothing is subtracted.
    On a box where every unit has one sign at every position that is read, each is zero or affine, so that T is affine
    at every position; the difference to the affine target is largest at a corner. QED.

Assumptions
    form (**checked**): one block; no query and no key depends on the input; relu units.
    one-sign (**checked**): every unit that is read has one sign on the whole box, at each position by itself.
    affine (**checked**): every output of the target is written as an affine function.

Certified
    sup |T - f| <= bound over all positions for the exact stored weights; the rounding of gates, biases and of the
    gather is in the enclosure. A gate that is too small leaves a unit without a sign and is refused.

Not certified
    Anything outside the box, where a gate may open; the rounding of a floating-point run.

Example
    >>> gate = lambda x, position: max(3 * x - 1 - 2 * (position == 1), 0)  # sup of 3x - 1 on [0, 1] is 2
    >>> [gate(x, 1) for x in (0, 0.5, 1)], [gate(x, 2) for x in (0, 0.5, 1)]
    ([0, 0, 0], [0, 0.5, 2])

Tests
    tests/theorems/test_position_gating.py
"""

from __future__ import annotations

from flint import arb

from certiformer.axioms.affine import affine_error, require_constant_scores, whole_box
from certiformer.kernel import taylor
from certiformer.kernel.balls import Box
from certiformer.kernel.network import Network
from certiformer.kernel.problem import Problem
from certiformer.kernel.refusal import Refused
from certiformer.kernel.shallow import read_layer
from certiformer.kernel.steps import Theorem as TheoremNode

THEOREM = {
    "id": "axioms.position_gating",
    "title": "A shared feed-forward layer computes a different function at each position: units are switched off "
    "by position.",
    "kind": "exact",
    "sources": ("yun2020",),
    "verb": "build",
    "assumptions": (
        ("form", "one block of relu units behind an attention whose scores do not depend on the input", "checked"),
        ("one-sign", "every unit has one sign on the whole box, at each position by itself", "checked"),
        ("affine", "every output of the target is written as an affine function", "checked"),
    ),
    "uses": ("axioms.exact_gather",),
}


def check(node: TheoremNode, problem: Problem) -> arb:
    """The distance of the stored maps, one a position, to the target's."""
    if node.parameters:
        raise Refused("the theorem position_gating has no parameters")
    if not isinstance(problem.left, Network):
        raise Refused("the theorem position_gating needs a block with a feed-forward part on its left-hand side")
    require_constant_scores(problem.left)
    require_one_sign(problem.left, whole_box(problem))
    return affine_error(problem)


def require_one_sign(network: Network, box: Box) -> None:
    """Refuse unless every unit, at every row that is read, is on or off on the whole box."""
    ffn = network.config["blocks"][0]["ffn"]
    if ffn is None or ffn["kind"] != "relu":
        raise Refused("the theorem position_gating speaks of relu units")
    for mix in read_layer(network.program, box).mixes:
        for unit, weights in enumerate(mix.values.tolist()):
            low, high = taylor.bounds(mix.arguments.form(0, unit))
            if not (low >= 0 or high <= 0) and any(not weight.is_zero() for weight in weights):
                ends = f"about [{float(low):.3g}, {float(high):.3g}]"
                raise Refused(f"unit {unit} is neither on nor off at position {mix.row + 1}: its range is {ends}")
