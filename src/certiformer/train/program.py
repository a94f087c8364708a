"""The compiled part: members take records of steps until they stop.

A *record* is a stretch of steps after which a member is looked at. A *program* takes one member through its records in a
loop that ends when it stops, so a member that stops early costs nothing afterwards; or several members side by side, in
a loop that ends when all have stopped. Programs run one after the other. On a processor one member at a time is fastest:
its weights and activations stay in the cache; on a GPU all members side by side are.

How many programs there are is a number that the compiler does not know. Otherwise it would simplify the loop
around a single program, and the last bits of a member would depend on whether there are others.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from certiformer.train.constraints import Constraint, projected
from certiformer.train.dropout import Dropout, with_dropout
from certiformer.train.losses import LOSSES
from certiformer.train.optimiser import Leaves, Memory, Optimiser
from certiformer.train.problem import Data, Problem
from certiformer.train.state import State, chosen
from certiformer.train.weights import Weights


@dataclass(frozen=True)
class Plan:
    """All that the compiled program depends on besides the shapes of its arguments."""

    problem: Problem
    optimiser: Optimiser
    weights: Weights
    record: int
    together: bool
    keep_best: bool = False
    patience: int | None = None
    goal: float | None = None
    dropout: Dropout | None = None
    constraints: tuple[Constraint, ...] = ()


class Member(NamedTuple):
    """What stays the same for a member: its seed, what it learns from, its weights that are not trained, and masks."""

    seed: Int[Array, ""]
    data: Data
    fixed: Leaves
    free: Leaves | None


class Common(NamedTuple):
    """What all members share: their data, and the numbers of every step (`Optimiser.numbers`)."""

    data: Data
    numbers: Float[Array, "steps 3"]


@partial(jax.jit, static_argnames=("plan",))
def run_programs(
    plan: Plan, state: State, members: Member, common: Common, first: Array, stop: Array, programs: Array
) -> State:
    """Records `first` to `stop` of all members; the leading axis of `state` and `members` counts programs."""

    def one(place: Array, state: State) -> State:
        own, member = (jax.tree.map(lambda leaf: leaf[place], each) for each in (state, members))
        after = _program(plan, own, member, common, first, stop)
        return jax.tree.map(lambda every, new: every.at[place].set(new), state, after)

    return jax.lax.fori_loop(0, programs, one, state)


def _program(plan: Plan, state: State, member: Member, common: Common, first: Array, stop: Array) -> State:
    advance = partial(_advance, plan, common)
    if plan.together:
        advance = jax.vmap(advance, in_axes=(None, 0, 0))

    def unfinished(carry: tuple[Array, State]) -> Array:
        return (carry[0] < stop) & jnp.any(carry[1].alive)

    def onward(carry: tuple[Array, State]) -> tuple[Array, State]:
        return carry[0] + 1, advance(carry[0], carry[1], member)

    return jax.lax.while_loop(unfinished, onward, (first, state))[1]


def _advance(plan: Plan, common: Common, record: Array, state: State, member: Member) -> State:
    """One member after one more record; its weights stay if it has stopped or if the record ends in numbers not finite."""
    leaves, memory, loss = _record(plan, common, record, member, state)
    if plan.problem.judge is None:
        score = loss
    else:
        score = plan.problem.judge(plan.weights.joined(leaves, member.fixed), member.data, common.data).astype(
            jnp.float32
        )
    finite = jnp.isfinite(loss)
    for leaf in leaves:
        finite &= jnp.isfinite(leaf).all()
    taken, failed = state.alive & finite, state.alive & ~finite
    better = taken & (score < state.best_score)
    waited = jnp.where(better, 0, state.waited + taken)
    stopped = failed
    if plan.patience is not None:
        stopped |= waited >= plan.patience
    if plan.goal is not None:
        stopped |= taken & (score <= plan.goal)
    seen = jnp.where(state.alive, jnp.where(finite, loss, jnp.nan), state.losses[record])
    return State(
        leaves=chosen(taken, leaves, state.leaves),
        memory=chosen(taken, memory, state.memory),
        best=chosen(better, leaves, state.best) if plan.keep_best else [],
        score=jnp.where(taken, score, state.score),
        best_score=jnp.where(better, score, state.best_score),
        waited=waited,
        alive=state.alive & ~stopped,
        diverged=state.diverged | failed,
        steps=jnp.where(taken, (record + 1) * plan.record, state.steps).astype(jnp.int32),
        losses=state.losses.at[record].set(seen),
    )


def _record(plan: Plan, common: Common, record: Array, member: Member, state: State) -> tuple[Leaves, Memory, Array]:
    """The weights, the memory and the mean loss after one record of steps."""
    problem, key = plan.problem, jax.random.key(member.seed)

    def step(place: Array, carry: tuple[Leaves, Memory, Array]) -> tuple[Leaves, Memory, Array]:
        leaves, memory, total = carry
        number = record * plan.record + place
        drawn = jax.random.fold_in(key, number)
        x, y = problem.draw(drawn, member.data, common.data)
        value, slopes = jax.value_and_grad(lambda p: _loss(plan, plan.weights.joined(p, member.fixed), x, y, drawn))(
            leaves
        )
        numbers = common.numbers[number].astype(leaves[0].dtype)
        moved, memory = plan.optimiser.step(numbers, slopes, memory, leaves)
        if plan.constraints:
            moved = plan.weights.split(projected(plan.constraints, plan.weights.joined(moved, member.fixed)))[0]
        if member.free is not None:
            moved = [jnp.where(free != 0, new, old) for free, new, old in zip(member.free, moved, leaves, strict=True)]
        return moved, memory, total + value.astype(jnp.float32)

    leaves, memory, total = jax.lax.fori_loop(
        0, plan.record, step, (state.leaves, state.memory, jnp.zeros((), jnp.float32))
    )
    return leaves, memory, total / plan.record


def _loss(plan: Plan, params: Any, x: Array, y: Array, key: Array) -> Array:
    loss, apply = LOSSES[plan.problem.loss], plan.problem.apply
    if plan.dropout is None or plan.dropout.rate == 0:
        return loss(apply(params, x), y)
    # `draw` has used this key; a number folded in gives another one.
    return loss(with_dropout(apply, plan.dropout)(params, x, jax.random.fold_in(key, 0x64726F70)), y)
