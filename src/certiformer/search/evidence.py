"""Evidence for a claim: proof trees by the rules that apply, and a proved lower end.

`collect` tries the cheap rules first and returns every tree it found, tightest first; the caller hands them to the
checker in that order. Nothing here is trusted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from certiformer.certificate import Boxes, Node, Sum, Witness, decimal_text
from certiformer.checker.balls import BallDomain, working_precision
from certiformer.checker.check import decimal, error_lower
from certiformer.checker.network import Network
from certiformer.checker.problem import Problem, ProgramFunction
from certiformer.checker.prototypes import as_prototypes
from certiformer.checker.rules import sum as sum_rule
from certiformer.checker.rules.refusal import Refused
from certiformer.checker.weights import read_model
from certiformer.construct.method import Construction
from certiformer.interval import run_canaries
from certiformer.model import Transformer
from certiformer.model.store import tensors_to_bytes
from certiformer.search.request import Options, teacher_model
from certiformer.search.ridge_proof import prove_by_ridges
from certiformer.target import Program, Target, Teacher
from certiformer.target.floating import as_jax
from certiformer.verify import Budget, Falsifier, FloatDomain, SplitTree, search
from certiformer.verify.ball_bounder import BallBounder
from certiformer.verify.bounder import bounder_for

# Level 1 closes a leaf a little below the stated bound: room for the different rounding of the checker.
ROOM = 1 - 2e-4
SUM_ORDER = 4
SUM_SECONDS = 4.0  # per term when the sum rule is only one of several; asked for by name it gets the whole budget
# What boxes may cost when a theorem has already proved the claim and they would only tighten it.
TIGHTEN_BOXES, TIGHTEN_SECONDS = 6_000, 20.0
TIGHT_QUALITY = 0.02
TIGHTENINGS = 3  # rounds of raising the lower end and lowering the upper one
MAX_BOX_DIMENSION = 3  # beyond, boxes are only tried when asked for

Progress = Callable[[str, float, float | None, str], None]


@dataclass(frozen=True)
class Tree:
    """A proof tree with its leaves and the bound it claims."""

    proof: Node
    leaves: bytes
    upper: Fraction


@dataclass
class Evidence:
    """What was found: trees (tightest first), a proved lower end with its witness, and why a rule failed."""

    trees: list[Tree] = field(default_factory=list)
    witness: Witness | None = None
    lower: Fraction = Fraction(0)
    reasons: list[str] = field(default_factory=list)
    boxes: int = 0
    seconds: dict[str, float] = field(default_factory=dict)


class Case:
    """A model and a target, with everything that several rules need prepared once."""

    def __init__(self, model: Transformer, target: Target | Teacher, epsilon: Fraction, options: Options):
        working_precision()
        self.model, self.target, self.epsilon, self.options = model, target, epsilon, options
        network = Network(*read_model(model.config.to_bytes(), tensors_to_bytes(model)))
        left = as_prototypes(network) or network
        if isinstance(target, Teacher):
            right = Network(*read_model(target.config, target.tensors))
        else:
            right = ProgramFunction(target.program)
        self.problem = Problem(left, right, BallDomain(target.domain))
        self.domain = FloatDomain(self.problem.domain)

    @property
    def wanted(self) -> Program | Transformer:
        """What is approximated, for the float64 search."""
        return teacher_model(self.target) if isinstance(self.target, Teacher) else self.target.program

    def error_rows(self) -> Callable:
        """T - f in float64 on rows of points."""
        wanted = self.wanted
        rows = _model_rows(wanted) if isinstance(wanted, Transformer) else as_jax(wanted)
        own = _model_rows(self.model)
        return lambda points: own(points) - rows(points)


def _model_rows(model: Transformer) -> Callable:
    """The outputs of a model on rows of points, to be traced."""
    shape = (model.config.tokens, model.config.input.width)
    tensors = jax.tree.map(jnp.asarray, model)
    return lambda points: jax.vmap(lambda p: tensors(p.reshape(shape)))(points)


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
        falsifier = Falsifier(case.error_rows(), case.domain, options.seed)
        _raise_lower(case, found, falsifier, None)
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
            tight = _by_ridges(case, found, None if construction is None else construction.through)
        if options.rule == "sum" or (options.rule == "auto" and not tight):
            tight = _by_sum(case, found)
        low_dimension = target.domain.dimension <= MAX_BOX_DIMENSION or not found.trees
        if options.rule == "boxes" or (options.rule == "auto" and not tight and low_dimension):
            _by_boxes(case, found, falsifier, checkpoint, progress)
        found.seconds["search"] = time.monotonic() - began
    found.trees.sort(key=lambda tree: tree.upper)
    return found


def _raise_lower(case: Case, found: Evidence, falsifier: Falsifier, extra: np.ndarray | None) -> None:
    """Look for a larger error; keep it only with its enclosure in balls."""
    point, value = falsifier.search(extra)
    if not value > float(found.lower):
        return
    witness = falsifier.witness(point)
    try:
        proved = decimal(error_lower(case.problem, witness), up=False)
    except Refused:
        return
    if Fraction(proved) > found.lower:
        found.witness, found.lower = replace(witness, error=proved), Fraction(proved)


def _goal(lower: Fraction, epsilon: Fraction, quality: float) -> float:
    """The threshold that makes the bracket tight: (1 + quality) times the lower end, never above epsilon."""
    return min(float(lower) * (1 + quality), float(epsilon))


def _by_boxes(
    case: Case,
    found: Evidence,
    falsifier: Falsifier,
    checkpoint: tuple[Path, str] | None,
    progress: Progress | None,
) -> None:
    """Branch and bound on T - f: first below epsilon, then, with what is left of the budget, towards the lower end."""
    options = case.options
    bounder = bounder_for(case.model, case.wanted, case.domain, options.order)
    canaries = run_canaries(bounder.batch)
    if not canaries.sound:
        found.reasons.append(f"the float64 search is refused on this machine: {'; '.join(canaries.failures)}")
        return
    budget = Budget(options.boxes, options.seconds)
    if options.rule == "auto" and found.trees:
        budget = Budget(min(options.boxes, TIGHTEN_BOXES), min(options.seconds, TIGHTEN_SECONDS))
    tree = SplitTree.restore(*checkpoint, case.domain.dimension) if checkpoint else None
    report = _Reporter(case, found, falsifier, progress)
    threshold = float(case.epsilon) * ROOM
    first = search(bounder, case.domain, threshold, budget, tree=tree, checkpoint=checkpoint, progress=report)
    found.boxes += first.boxes
    if found.lower > case.epsilon:
        return
    if not first.closed:
        found.reasons.append(f"{first.stopped} (the best bound so far is {first.tree.upper():.6g})")
        return
    upper, leaves = first.tree.upper(), first.tree.to_bytes()
    # Tightening is worth about as much effort as the proof itself, and more where a tight bracket was asked for; a
    # half-tightened tree would only cost the checker.
    effort = 3 if options.quality > TIGHT_QUALITY else 30
    more = Budget(min(budget.boxes, effort * (first.boxes + 1000)), min(budget.seconds, effort * (first.seconds + 1)))
    tree = first.tree
    for _ in range(TIGHTENINGS):
        # What is hard to close is often where the error is largest: then the lower end has to rise.
        _raise_lower(case, found, falsifier, _hardest(case, tree))
        goal = _goal(found.lower, case.epsilon, options.quality) * ROOM
        if upper <= goal:
            break
        second = search(bounder, case.domain, goal, more, tree=tree, progress=report)
        found.boxes += second.boxes
        if second.closed:
            upper, leaves = second.tree.upper(), second.tree.to_bytes()
            break
        tree = second.tree
    bound = min(Fraction(decimal_text(upper / ROOM, up=True)), case.epsilon)
    found.trees.append(Tree(Boxes(decimal_text(bound, up=True), bounder.order, 0, len(leaves)), leaves, bound))


def _hardest(case: Case, tree: SplitTree) -> np.ndarray:
    """The centres of the leaves with the largest bounds."""
    leaves = tree.leaves()
    hardest = leaves[np.argsort(-tree.bounds(leaves))[:512]]
    return case.domain.boxes(*tree.cells(hardest))[0]


class _Reporter:
    """Reports progress of the search, and looks for a counterexample now and then while it runs."""

    def __init__(self, case: Case, found: Evidence, falsifier: Falsifier, progress: Progress | None):
        self.case, self.found, self.falsifier, self.progress = case, found, falsifier, progress
        self.next_look = time.monotonic() + 5.0

    def __call__(self, boxes: int, still_open: int, tree: SplitTree) -> bool:
        if self.progress is not None:
            note = f"{boxes:,} boxes, {still_open:,} open, deepest {tree.deepest()}"
            self.progress("search", boxes, boxes + still_open, note)
        if time.monotonic() > self.next_look:
            self.next_look = time.monotonic() + 15.0
            _raise_lower(self.case, self.found, self.falsifier, _hardest(self.case, tree))
        return self.found.lower > self.case.epsilon


def _by_ridges(case: Case, found: Evidence, through: Program | None) -> bool:
    """Direction by direction, in the checker's own arithmetic; True when a tree was found."""
    budget = Budget(case.options.boxes, case.options.seconds)
    try:
        tree = prove_by_ridges(case.problem, budget, through, case.epsilon)
    except Refused as refusal:
        if case.options.rule == "ridges" or through is not None:
            found.reasons.append(str(refusal))
        return False
    if tree.upper > case.epsilon:
        found.reasons.append(f"the directions add up to {float(tree.upper):.6g}")
        return False
    found.trees.append(Tree(tree.proof, tree.leaves, tree.upper))
    return True


def _by_sum(case: Case, found: Evidence) -> bool:
    """Group by group, in the checker's own arithmetic; True when a tree was found."""
    try:
        problems, spent = sum_rule.split(case.problem)
    except Refused as refusal:
        if case.options.rule == "sum":
            found.reasons.append(str(refusal))
        return False
    order = case.options.order or SUM_ORDER
    peaks = [_sampled_error(problem) for problem in problems]
    room = float(case.epsilon) * ROOM - float(spent)
    factor = min(1 + case.options.quality, room / max(sum(peaks), 1e-300))
    # A part that is exact still needs a positive share.
    shares = [peak * factor + 1e-3 * max(room - factor * sum(peaks), room * 1e-6) / len(peaks) for peak in peaks]
    seconds = case.options.seconds if case.options.rule == "sum" else SUM_SECONDS
    children, leaves = [], b""
    for problem, share in zip(problems, shares, strict=True):
        domain = FloatDomain(problem.domain)
        result = search(BallBounder(problem, order), domain, share, Budget(case.options.boxes, seconds))
        found.boxes += result.boxes
        if not result.closed:
            found.reasons.append(f"one term of the sum did not close: {result.stopped}")
            return False
        tree = result.tree.to_bytes()
        bound = decimal_text(max(result.tree.upper(), 1e-300) * (1 + 1e-6), up=True)
        children.append(Boxes(bound, order, len(leaves), len(tree)))
        leaves += tree
    total = sum((Fraction(child.bound) for child in children), Fraction(decimal(spent, up=True)))
    if total > case.epsilon:
        found.reasons.append(f"the terms of the sum add up to {float(total):.6g}")
        return False
    found.trees.append(Tree(Sum(decimal_text(total, up=True), tuple(children)), leaves, total))
    return True


def _sampled_error(problem: Problem, points: int = 129) -> float:
    """The largest error on a coarse grid of points (not a bound; it only guides how the budget is shared)."""
    domain = FloatDomain(problem.domain)
    count = max(3, int(points ** (1 / domain.dimension)))
    axes = [np.linspace(low, high, count) for low, high in zip(domain.low, domain.high, strict=True)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, domain.dimension)
    bounds, _ = BallBounder(problem, 0)(grid, np.zeros(grid.shape))
    return float(np.max(bounds[np.isfinite(bounds)], initial=0.0))
