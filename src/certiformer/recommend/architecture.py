"""What holds by architecture: the verdicts of `audit` on this very model, and a Lipschitz constant of its scores.

The constant: if every embedded token of a history moves by at most r within the ball that holds all of them, no score
moves by more than r times the product of

- for each sub-layer, the constant of x + f(x): 1 + the token constant of the attention on the ball that holds its tokens
  (`bounds.attention_lipschitz`, summed over heads), or 1 + 1.13 |up| |down| for GELU;
- for each norm behind it, the largest gain over sqrt(epsilon);
- the length of the longest row of the table of items.

The tokens of a block lie in a ball: at first that of the longest embedding and position, then the one that the norm lets
through, largest gain * sqrt(width) + |shift|. The factor 1 / sqrt(epsilon) is paid for tokens that a norm could blow
up; training does not mend it. Spectral norms are bounded by traces of powers in ball arithmetic.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from flint import arb

from certiformer.audit.lipschitz import layer_constants
from certiformer.audit.measure import measure
from certiformer.audit.read import read_checkpoint
from certiformer.audit.result import audit
from certiformer.audit.verdict import Given
from certiformer.bounds.numbers import above
from certiformer.kernel.balls import working_precision
from certiformer.recommend.folder import Recommender
from certiformer.train.settle import spectral_above

GELU = 1.13  # a bound of the slope of x Phi(x)


def verdicts(opened: Recommender, users: int) -> list[dict[str, Any]]:
    """What `audit` says about the model, trained on so many users."""
    found = audit(opened.directory, Given(samples=users, length=opened.model.config.tokens))
    return [{"id": v.id, "verdict": v.verdict, "sentence": v.sentence, "value": v.value} for v in found.verdicts]


class Slopes(NamedTuple):
    """The constant of the scores in the embedded history, rounded up, with its factors; and the `span`, by which no score
    differs from another one, whatever the history."""

    constant: float
    factors: list[tuple[str, float]]
    span: float


def lipschitz(opened: Recommender) -> Slopes:
    """How far scores can move when a history does."""
    working_precision()
    model = opened.model
    tensors = {name: np.asarray(tensor, np.float64) for name, tensor in model.tensors.items()}
    checkpoint, _ = read_checkpoint(opened.directory)
    figures = measure(checkpoint, None)
    reach = _longest(tensors["embed.weight"]) + _longest(tensors["code.table"])
    factors: list[tuple[str, arb]] = []
    for index, (layer, measured) in enumerate(zip(checkpoint.layers, figures.layers, strict=True)):
        norm = model.config.blocks[index].norm
        prefix = f"blocks.{index}"
        token, _ = layer_constants(layer, measured, above(reach), None)
        spread = arb(spectral_above(tensors[f"{prefix}.ffn.up"])) * arb(spectral_above(tensors[f"{prefix}.ffn.down"]))
        steps = {"attention": 1 + arb(token), "ffn": 1 + arb(GELU) * spread}
        for name, factor in steps.items():
            gain, shift = tensors[f"{prefix}.norm.{name}.scale"], tensors[f"{prefix}.norm.{name}.shift"]
            largest = arb(float(np.abs(gain).max()))
            factors.append((f"{name} of block {index}", factor))
            factors.append(("norm after it", largest / arb(norm.epsilon if norm else 1.0).sqrt()))
            reach = largest * arb(model.config.width).sqrt() + _longest(shift[None])
    longest = _longest(tensors["embed.weight"])
    factors.append(("the longest row of the items", longest))
    total = arb(1)
    for _, factor in factors:
        total *= factor
    return Slopes(above(total), [(name, above(factor)) for name, factor in factors], above(2 * reach * longest))


def nearest_items(table: np.ndarray) -> float:
    """The smallest distance of the embeddings of two items, in float64, by blocks of rows.

    >>> nearest_items(np.array([[0.0, 0.0], [3.0, 4.0], [3.0, 5.0]]))
    1.0
    """
    rows = np.asarray(table, np.float64)
    squares, smallest = (rows**2).sum(axis=1), np.inf
    for first in range(0, len(rows), 1024):
        part = slice(first, first + 1024)
        apart = squares[part, None] + squares[None, :] - 2 * rows[part] @ rows.T
        apart[np.arange(len(apart)), np.arange(first, first + len(apart))] = np.inf
        smallest = min(smallest, float(apart.min()))
    return max(smallest, 0.0) ** 0.5


def _longest(rows: np.ndarray) -> arb:
    """The length of the longest row, from above."""
    row = rows[int(np.argmax((rows**2).sum(axis=1)))]
    exact = sum((arb(float(entry)) ** 2 for entry in row), arb(0)).sqrt()
    return exact * (1 + arb(2) ** -40)  # another row may be longer by the rounding of the float64 sum
