"""The loop: every member takes all its steps inside one compiled call, or in a few when somebody wants to hear of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from certiformer.errors import BadInput
from certiformer.train.constraints import Constraint, parts_of
from certiformer.train.dropout import Dropout
from certiformer.train.optimiser import Optimiser
from certiformer.train.problem import Data, Params, Problem, stack
from certiformer.train.program import Common, Member, Plan
from certiformer.train.rounds import Call, Progress, in_rounds
from certiformer.train.settle import Kept, settle
from certiformer.train.state import Groups, first_state, grouped, ungrouped
from certiformer.train.weights import Weights

ENGINES = ("auto", "map", "vmap")


@dataclass(frozen=True)
class Trained:
    """All members after training.

    - `params`: their weights, stacked; always finite.
    - `losses`: mean losses over each record; NaN where a member diverged or had stopped before.
    - `steps`: how many steps each took, those of a record that ended badly not counted.
    - `diverged`: who met a number that is not finite; such a member keeps its last finite weights (or its best).
    - `scores`: by which `params` were judged: what `judge` says, or the mean loss over the record that ended with them
      (infinite if there was none).
    - `kept`: for each member, a proof for every part of its constraints; empty without constraints.
    """

    params: Params
    losses: Float[np.ndarray, "members records"]
    steps: Int[np.ndarray, " members"]
    diverged: Bool[np.ndarray, " members"]
    scores: Float[np.ndarray, " members"] = field(default_factory=lambda: np.zeros(0))
    kept: tuple[tuple[Kept, ...], ...] = ()

    def take(self, places: Int[np.ndarray, " taken"]) -> Trained:
        """Only these members, in this order."""
        places = np.asarray(places, int)
        params = jax.tree.map(lambda leaf: leaf[places], self.params)
        kept = tuple(self.kept[place] for place in places) if self.kept else ()
        losses, steps = self.losses[places], self.steps[places]
        return Trained(params, losses, steps, self.diverged[places], self.scores[places], kept)


def train(
    problem: Problem,
    start: Params,
    *,
    seeds: Int[np.ndarray, " members"],
    optimiser: Optimiser,
    steps: int,
    member: Data = None,
    shared: Data = None,
    free: Params | None = None,
    record: int = 100,
    engine: str = "auto",
    models_per_program: int | None = None,
    patience: int | None = None,
    goal: float | None = None,
    keep: str = "last",
    dropout: Dropout | None = None,
    constraints: Sequence[Constraint] = (),
    progress: Progress | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_seconds: float = 30.0,
) -> Trained:
    """Train every member of `start` (a pytree with a leading axis over members).

    **Arguments:**

    - `seeds`: of the batches (and units left out) of each member; equal seeds draw equal batches.
    - `member`, `shared`: what `problem.draw` gets; the leading axis of `member` counts members.
    - `free`: masks like `start`; a weight whose mask is 0 keeps its value exactly, weight decay or not. Padded ranks are
      made so: the surplus is 0 in `start` and in `free`.
    - `record`: steps between two looks at a member; `steps` must be a multiple of it.
    - `engine`: `map` runs one member after the other, `vmap` all side by side; `auto` takes `map` on a processor and `vmap`
      elsewhere. With `map` a member's result does not depend, bit for bit, on the members beside it.
    - `models_per_program`: that many members side by side instead, one group after the other.
    - `patience`: stop a member after so many records without a better score; `goal`: stop at this score.
    - `keep`: the `last` weights of each member, or the `best` ones by score at the end of a record.
    - `constraints`: what every member keeps, after each step up to rounding and at the end exactly, with a proof
      (`Trained.kept`). They cannot be had together with `free`.
    - `progress("train", done, total, note)`: is called about every second with steps done, all members together.
    - `checkpoint`: a folder; a run that finds its own checkpoint there goes on from it, bit for bit as if never
      interrupted. Written about every `checkpoint_seconds`, and at the end.

    A member whose loss or weights stop being finite within a record goes back to the weights before it, is marked, and
    stops; nothing changes for the others.
    """
    _check(steps, record, engine, keep, models_per_program, patience)
    if constraints and free is not None:
        raise BadInput("constraints move weights that free would hold; give one of the two")
    for constraint in constraints:
        parts_of(constraint, start)
    weights = Weights.of(start)
    count = _count_members(start, seeds, member)
    leaves, fixed = weights.split(start)
    masks = None if free is None else weights.masks(free, leaves)
    side_by_side = engine == "vmap" or (engine == "auto" and jax.default_backend() != "cpu")
    size = min(models_per_program or (count if side_by_side else 1), count)
    groups = Groups(count, size if side_by_side or size > 1 else None)

    rule, records = optimiser.without_rate(), steps // record
    plan = Plan(
        problem,
        rule,
        weights,
        record,
        groups.size is not None,
        keep == "best",
        patience,
        goal,
        dropout,
        tuple(constraints),
    )
    state = first_state(rule, leaves, groups, records, plan.keep_best)
    data = jax.tree.map(jnp.asarray, member)
    members = grouped(Member(jnp.asarray(np.asarray(seeds, np.uint32)), data, fixed, masks), groups)
    common = Common(jax.tree.map(jnp.asarray, shared), jnp.asarray(optimiser.numbers(steps), leaves[0].dtype))
    folder = None if checkpoint is None else Path(checkpoint)
    call = Call(plan, members, common, groups.programs)
    state = ungrouped(in_rounds(call, state, records, progress, folder, checkpoint_seconds), groups)
    kept, score = (state.best, state.best_score) if plan.keep_best else (state.leaves, state.score)
    losses, taken, diverged = (np.asarray(each) for each in (state.losses, state.steps, state.diverged))
    params = weights.joined(kept, fixed)
    trained = Trained(params, losses, taken, diverged, np.asarray(score))
    return _settled(trained, tuple(constraints)) if constraints else trained


def _settled(trained: Trained, constraints: tuple[Constraint, ...]) -> Trained:
    """Every member inside its constraints, with the proofs; one that was not finite from the start has none."""
    members, proofs = [], []
    for place in range(len(trained.steps)):
        weights, kept = {name: np.asarray(w[place]) for name, w in trained.params.items()}, ()
        if all(np.isfinite(w).all() for w in weights.values()):
            weights, kept = settle(constraints, weights)
        members.append(weights)
        proofs.append(kept)
    return replace(trained, params=stack(members), kept=tuple(proofs))


def best_of(trained: Trained, restarts: int) -> Trained:
    """The best of every `restarts` members in a row, by score; one that diverged wins only where all have.

    >>> losses = np.array([[3.0], [1.0], [np.nan], [2.0]])
    >>> four = Trained({"w": np.arange(4.0)}, losses, np.ones(4, int), np.array([0, 0, 1, 0], bool), losses[:, 0])
    >>> best_of(four, 2).params
    {'w': array([1., 3.])}
    """
    count = len(trained.scores)
    if restarts < 1 or count % restarts:
        raise BadInput(f"{count} members are not a multiple of {restarts} restarts")
    order = np.where(np.isnan(trained.scores), np.inf, trained.scores).reshape(-1, restarts)
    lost = trained.diverged.reshape(-1, restarts)
    order = np.where(lost & ~lost.all(axis=1, keepdims=True), np.inf, order)
    # Among scores that are all infinite the first member that did not diverge is taken.
    first = np.lexsort((np.arange(restarts) + np.zeros_like(order), lost, order), axis=1)[:, 0]
    return trained.take(np.arange(0, count, restarts) + first)


def _check(
    steps: int, record: int, engine: str, keep: str, models_per_program: int | None, patience: int | None
) -> None:
    if engine not in ENGINES:
        raise BadInput(f"there is no engine {engine!r}; there are {', '.join(ENGINES)}")
    if keep not in ("last", "best"):
        raise BadInput(f"keep is 'last' or 'best', not {keep!r}")
    for name, value in {"steps": steps, "record": record}.items():
        if value < 1:
            raise BadInput(f"{name} must be at least 1, not {value}")
    if steps % record:
        near = f"{steps - steps % record} or {steps - steps % record + record}" if steps > record else f"{record}"
        raise BadInput(f"{steps} steps are not a multiple of record={record}; take {near} steps, or another record")
    for name, value in {"models_per_program": models_per_program, "patience": patience}.items():
        if value is not None and value < 1:
            raise BadInput(f"{name} must be at least 1, not {value}")


def _count_members(start: Params, seeds: Int[np.ndarray, " members"], member: Data) -> int:
    """The number of members, on which the weights, the seeds and the data of members must agree."""
    count = len(seeds)
    if not count:
        raise BadInput("there is no member to train")
    for what, tree in {"the weights": start, "the data of members": member}.items():
        for leaf in jax.tree.leaves(tree):
            if not np.ndim(leaf) or len(leaf) != count:
                shape = np.shape(leaf)
                raise BadInput(
                    f"there are {count} seeds, so {what} must have a first axis of {count}, not shape {shape}"
                )
    return count
