"""What is known about members between records, and how it is made."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from certiformer.train.optimiser import Leaves, Memory, Optimiser


class State(NamedTuple):
    """One member, or many along a leading axis. `leaves` are its trained weights, always finite.

    `score` judges `leaves`; `best` and `best_score` are the best weights so far (`best` is empty when only the last ones
    are kept); `waited` counts records without a better score.
    """

    leaves: Leaves
    memory: Memory
    best: Leaves
    score: Float[Array, ""]
    best_score: Float[Array, ""]
    waited: Int[Array, ""]
    alive: Bool[Array, ""]
    diverged: Bool[Array, ""]
    steps: Int[Array, ""]
    losses: Float[Array, " records"]


class Groups(NamedTuple):
    """How many members there are, and how they are put into programs of `size` side by side (None: one by one)."""

    members: int
    size: int | None

    @property
    def programs(self) -> int:
        """How many programs take them all."""
        return self.members if self.size is None else -(-self.members // self.size)


# Compiled, like the function below: dozens of small operations for each of many leaves are slow one by one.
@partial(jax.jit, static_argnames=("optimiser", "groups", "records", "keep_best"))
def first_state(optimiser: Optimiser, leaves: Leaves, groups: Groups, records: int, keep_best: bool) -> State:
    """All members before their first step; a member whose weights are not finite has diverged already."""
    members = groups.members
    fine = jnp.ones(members, bool)
    for leaf in leaves:
        fine &= jnp.isfinite(leaf).reshape(members, -1).all(axis=1)
    # NumPy's types are explicit, so nothing depends on the width that JAX is set to.
    unknown, none = np.full(members, np.inf, np.float32), np.zeros(members, np.int32)
    state = State(
        leaves=leaves,
        memory=optimiser.memory(leaves),
        best=leaves if keep_best else [],
        score=jnp.asarray(unknown),
        best_score=jnp.asarray(unknown),
        waited=jnp.asarray(none),
        alive=fine,
        diverged=~fine,
        steps=jnp.asarray(none),
        losses=jnp.asarray(np.full((members, records), np.nan, np.float32)),
    )
    if groups.size is None:
        return state
    state = grouped(state, groups)
    real = np.arange(groups.programs * groups.size).reshape(groups.programs, groups.size) < members
    return state._replace(alive=state.alive & real)  # the last group is filled up with copies that never start


@partial(jax.jit, static_argnames="groups")
def grouped(tree: Any, groups: Groups) -> Any:
    """The leading axis of members as two, programs and places in them; the last member fills up."""
    size = groups.size
    if size is None:
        return tree

    def one(leaf: Array) -> Array:
        missing = groups.programs * size - groups.members
        leaf = jnp.concatenate([leaf, jnp.repeat(leaf[-1:], missing, axis=0)]) if missing else leaf
        return leaf.reshape(groups.programs, size, *leaf.shape[1:])

    return jax.tree.map(one, tree)


@partial(jax.jit, static_argnames="groups")
def ungrouped(tree: Any, groups: Groups) -> Any:
    """Undoes `grouped`."""
    if groups.size is None:
        return tree
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:])[: groups.members], tree)


def chosen(take: Bool[Array, ""], new: Any, old: Any) -> Any:
    """`new` where `take` says so, else `old`, leaf by leaf."""
    return jax.tree.map(lambda n, o: jnp.where(take, n, o), new, old)
