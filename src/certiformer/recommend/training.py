"""Training: packed rows in, weights out. After every epoch the model is judged by NDCG@10 on the validation items."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from certiformer.errors import BadInput
from certiformer.recommend.log import Log
from certiformer.recommend.network import Shape, first_weights, loss_of, states
from certiformer.recommend.packing import Packed, pack
from certiformer.recommend.split import Split
from certiformer.train import Optimiser, Problem, parse_constraint, train
from certiformer.train.rounds import Progress
from certiformer.train.settle import Kept

JUDGED = 256  # users whose scores are computed at once
ROWS = 128  # packed rows that run at once when the model is judged


@dataclass(frozen=True)
class Recipe:
    """How the model is trained."""

    loss: str = "cross-entropy"
    negatives: int = 256
    dropout: float = 0.3
    rate: float = 1e-3
    batch: int = 32  # packed rows
    epochs: int = 100
    patience: int = 8
    seed: int = 0
    constraints: tuple[str, ...] = ()  # as `train.parse_constraint` reads them
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        for name in ("negatives", "batch", "epochs", "patience"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name} is at least 1, not {getattr(self, name)}")
        if not 0 <= self.dropout < 1:
            raise BadInput(f"--dropout is at least 0 and below 1, not {self.dropout:g}")


@dataclass(frozen=True)
class Learnt:
    """The weights of the best epoch, and how it went."""

    tensors: dict[str, np.ndarray]
    epochs: int
    validation: float
    losses: tuple[float, ...]
    kept: tuple[Kept, ...] = ()


def learn(
    log: Log,
    split: Split,
    shape: Shape,
    recipe: Recipe,
    progress: Progress | None = None,
    checkpoint: Path | None = None,
) -> Learnt:
    """Train on the open users; raises `BadInput` where the numbers stop being finite."""
    rows, judge = _training_rows(log, split, shape.length)
    batch = min(recipe.batch, len(rows["ids"]))
    steps = max(1, len(rows["ids"]) // batch)
    problem = _problem(shape, recipe.loss, recipe.negatives, recipe.dropout, batch)
    start = {name: tensor[None] for name, tensor in first_weights(shape, recipe.seed).items()}
    trained = train(
        problem,
        start,
        seeds=np.array([recipe.seed]),
        optimiser=Optimiser(rate=recipe.rate, weight_decay=recipe.weight_decay),
        constraints=[parse_constraint(text) for text in recipe.constraints],
        steps=recipe.epochs * steps,
        shared={"rows": rows, "judge": judge},
        record=steps,
        patience=recipe.patience,
        keep="best",
        progress=progress,
        checkpoint=checkpoint,
        checkpoint_seconds=5.0,
    )
    losses = tuple(float(loss) for loss in trained.losses[0] if np.isfinite(loss))
    if trained.diverged[0]:
        raise BadInput(
            f"training met numbers that are not finite in epoch {len(losses) + 1}; a smaller --rate than"
            f" {recipe.rate:g} may help"
        )
    kept = trained.kept[0] if trained.kept else ()
    tensors = {name: np.asarray(tensor[0]) for name, tensor in trained.params.items()}
    return Learnt(tensors, int(trained.steps[0]) // steps, -float(trained.scores[0]), losses, kept)


def _training_rows(log: Log, split: Split, length: int) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Packed inputs with the next item of each, -1 after the last one that is trained on; and what the judge needs."""
    users = np.flatnonzero(split.fitted & (split.trained >= 2))
    histories = [log.sequence(user)[: split.trained[user]] for user in users]
    packed = pack(histories, length)
    wanted = np.full(packed.ids.shape, -1, np.int32)
    wanted[:, :-1] = np.where(packed.owner[:, 1:] == packed.owner[:, :-1], packed.ids[:, 1:], -1)
    wanted[packed.owner == 0] = -1
    rows = {"ids": packed.ids, "position": packed.position, "owner": packed.owner, "wanted": wanted}
    return rows, _judged(log, split, users, packed)


def _judged(log: Log, split: Split, users: np.ndarray, packed: Packed) -> dict[str, np.ndarray]:
    """By chunks of users: where their last tokens are, the validation items, and the pairs (user, item) already seen."""
    chosen = np.flatnonzero(split.validation[users] >= 0)
    chunks = [chosen[first : first + JUDGED] for first in range(0, len(chosen), JUDGED)] or [chosen]
    seen: list[np.ndarray] = []
    for chunk in chunks:
        histories = [np.unique(log.sequence(user)[: split.trained[user]]) for user in users[chunk]]
        owners = np.repeat(np.arange(len(chunk)), [len(history) for history in histories])
        seen.append(np.stack([owners, np.concatenate(histories) if histories else owners]).T)
    widest = max((len(pairs) for pairs in seen), default=0)
    # A pair that fills up points to the row after the last one, which is left out.
    pairs = np.stack([np.pad(p, ((0, widest - len(p)), (0, 0)), constant_values=JUDGED) for p in seen])
    last = np.stack([np.pad(packed.last[c], ((0, JUDGED - len(c)), (0, 0))) for c in chunks])
    wanted = np.full((len(chunks), JUDGED), -1, np.int32)
    for place, chunk in enumerate(chunks):
        wanted[place, : len(chunk)] = [log.sequence(user)[split.validation[user]] for user in users[chunk]]
    return {"last": last.astype(np.int32), "wanted": wanted, "seen": pairs.astype(np.int32)}


@cache
def _problem(shape: Shape, loss: str, negatives: int, dropout: float, batch: int) -> Problem:
    """One problem for each setting, so that runs with other seeds share the compilation."""

    def draw(key: Array, member: Any, shared: Any) -> tuple[Any, Array]:
        rows = shared["rows"]
        drawn, noise = jax.random.split(key)
        places = jax.random.choice(drawn, rows["ids"].shape[0], (batch,), replace=False)
        ids, position, owner, wanted = (rows[name][places] for name in ("ids", "position", "owner", "wanted"))
        return (ids, position, owner, wanted, noise), jnp.zeros(())

    def judge(tensors: Any, member: Any, shared: Any) -> Float[Array, ""]:
        return -mean_ndcg(shape, tensors, shared["rows"], shared["judge"])

    return Problem(loss_of(shape, loss, negatives, dropout), draw, "value", judge)


def mean_ndcg(shape: Shape, tensors: Any, rows: Any, judged: Any, k: int = 10) -> Float[Array, ""]:
    """NDCG@k of the wanted items among all that were not seen, over all users that are judged."""
    hidden = states(shape)
    count = rows["ids"].shape[0]
    filled = -(-count // ROWS) * ROWS
    parts = [jnp.resize(rows[name], (filled, shape.length)) for name in ("ids", "position", "owner")]
    blocks = [part.reshape(-1, ROWS, shape.length) for part in parts]
    outputs = jax.lax.map(lambda part: hidden(tensors, *part), tuple(blocks)).reshape(filled, shape.length, -1)

    def gains(chunk: Any) -> Array:
        last, wanted, seen = chunk
        scores = outputs[last[:, 0], last[:, 1]] @ tensors["embed.weight"].T
        own = jnp.take_along_axis(scores, jnp.maximum(wanted, 0)[:, None], axis=1)
        scores = scores.at[seen[:, 0], seen[:, 1]].set(-jnp.inf, mode="drop")
        # An item that was seen is on no list; of items with the same score half stand before the wanted one.
        listed = jnp.take_along_axis(scores, jnp.maximum(wanted, 0)[:, None], axis=1)[:, 0] == own[:, 0]
        rank = 1 + jnp.sum(scores > own, axis=1) + jnp.maximum(jnp.sum(scores == own, axis=1) - 1, 0) / 2
        return jnp.where((wanted >= 0) & listed & (rank <= k), 1 / jnp.log2(rank + 1), 0.0)

    total = jax.lax.map(gains, (judged["last"], judged["wanted"], judged["seen"])).sum()
    return total / jnp.maximum((judged["wanted"] >= 0).sum(), 1)
