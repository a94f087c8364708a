"""The attention half of memorisation: one scalar key for every sequence (and position), and which projection to take.

The residual stream is laid out as  w.x | logit | key | 1 | outputs.  The head's query is the constant, its key the
stored logit of a position, its value w.x; it adds xi = sum_j softmax(l)_j w.x_j to the coordinate `key`, which
already holds the offset of the position. With a single token there is no head: the embedding writes w.x into `key`
itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from certiformer.construct.fewest_pieces import fewest_pieces
from certiformer.construct.key_function import Units, merged
from certiformer.model import Attention, Block, Code, Config, FeedForward, Heads, Input, Readout, Transformer

DRAWS = 200  # random projections whose smallest gap is looked at
COORDINATES = 16  # that are looked at one by one
COUNTED = 6  # of those, how many have their pieces counted
ROOM = 0.05  # between the keys of neighbouring positions, as a share of their range
LAID_OUT = 4  # coordinates before the outputs when there is a head


@dataclass(frozen=True)
class Projection:
    """w (one number a coordinate, or one a letter), the logits of the positions, and the offsets added to the key."""

    weights: np.ndarray
    logits: np.ndarray
    offsets: np.ndarray
    ids: bool

    def keys(self, inputs: np.ndarray) -> np.ndarray:
        """The keys in float64, one a row of inputs, without offsets."""
        values = self.weights[inputs] if self.ids else inputs @ self.weights
        shares = np.exp(self.logits - self.logits.max())
        return values @ (shares / shares.sum())


def projections(
    inputs: np.ndarray,
    outputs: Float[np.ndarray, "keys outputs"],
    epsilon: float,
    everywhere: bool,
    seed: int,
    report: Callable[[str, float, float | None, str], None],
) -> Iterator[tuple[Projection, bool]]:
    """Projections worth building, smallest transformer first; the flag asks for plain interpolation at the keys.

    `outputs` holds one row a key: position by position within a row of inputs when `everywhere` is set.
    """
    tokens = inputs.shape[1]
    places = tokens if everywhere else 1
    drawn = sorted((_gap(p, inputs), i, p) for i, p in enumerate(_draws(inputs, seed)))
    widest = [p for _, _, p in reversed(drawn)][:COUNTED]
    candidates = [_placed(p, inputs, places) for p in [*_structured(inputs, outputs), *widest]]
    counted = []
    for number, p in enumerate(candidates):
        report("construct", number, len(candidates), f"projection {number + 1} of {len(candidates)}")
        counted.append((_weights(p, inputs, outputs, places, epsilon), number, p))
    ranked = [p for cost, _, p in sorted(counted, key=lambda entry: entry[:2]) if np.isfinite(cost)]
    yield from ((p, False) for p in ranked[:2])
    yield _placed(widest[0], inputs, places), True


def _draws(inputs: np.ndarray, seed: int) -> Iterator[Projection]:
    """Random projections; columns are scaled to their range so that none drowns the others."""
    generator = np.random.default_rng(seed)
    scale = _scale(inputs)
    for _ in range(DRAWS):
        weights = generator.normal(size=scale.shape) / scale
        logits = np.zeros(inputs.shape[1]) if inputs.shape[1] == 1 else generator.uniform(-1, 1, inputs.shape[1])
        yield Projection(weights, logits, np.zeros(1), inputs.ndim == 2)


def _structured(inputs: np.ndarray, outputs: np.ndarray) -> Iterator[Projection]:
    """Keys that rows may share: the sum of everything, one coordinate alone, the best linear fit of the first output."""
    logits, scale, ids = np.zeros(inputs.shape[1]), _scale(inputs), inputs.ndim == 2
    yield Projection(
        np.arange(len(scale), dtype=float) if ids else np.ones(len(scale)) / scale.max(), logits, np.zeros(1), ids
    )
    if ids:
        return
    for axis in range(min(len(scale), COORDINATES)):
        yield Projection(np.eye(len(scale))[axis] / scale[axis], logits, np.zeros(1), False)
    if len(outputs) == len(inputs):
        mean = inputs.mean(axis=1)
        design = np.column_stack([mean / scale, np.ones(len(mean))])
        slope = np.linalg.lstsq(design, outputs[:, 0], rcond=None)[0][:-1]
        if np.any(slope):
            yield Projection(slope / np.abs(slope).max() / scale, logits, np.zeros(1), False)


def _scale(inputs: np.ndarray) -> np.ndarray:
    if inputs.ndim == 2:
        return np.ones(int(inputs.max()) + 1)
    spread = np.ptp(inputs.reshape(-1, inputs.shape[-1]), axis=0)
    return np.where(spread > 0, spread, 1.0)


def _gap(projection: Projection, inputs: np.ndarray) -> float:
    """The smallest distance of two keys, as a share of their range."""
    keys = np.sort(projection.keys(inputs))
    spread = keys[-1] - keys[0]
    return float(np.min(np.diff(keys)) / spread) if len(keys) > 1 and spread > 0 else 0.0


def _placed(projection: Projection, inputs: np.ndarray, places: int) -> Projection:
    """With offsets that put the smallest key at zero and keep the positions apart."""
    keys = projection.keys(inputs)
    spread = float(np.ptp(keys)) or 1.0
    offsets = np.arange(places) * spread * (1 + ROOM) - keys.min()
    return replace(projection, offsets=offsets)


def _weights(projection: Projection, inputs: np.ndarray, outputs: np.ndarray, places: int, epsilon: float) -> float:
    """About how many weights the projection and its units would need; infinite when rows that differ share a key."""
    keys = (projection.keys(inputs)[:, None] + projection.offsets[None, :places]).ravel()
    grouped = merged(keys, outputs - epsilon / 2, outputs + epsilon / 2)
    if grouped is None:
        return np.inf
    keys, low, high = grouped
    units = sum(len(fewest_pieces(keys, low[:, o], high[:, o]).knots) for o in range(outputs.shape[1]))
    return 3.0 * units + np.count_nonzero(projection.weights)


def key_transformer(projection: Projection, units: Units | None, out_tokens: int) -> Transformer:
    """The transformer of a projection and hidden units; without units it outputs the key itself."""
    tokens, ids = len(projection.logits), projection.ids
    headed = tokens > 1 or ids
    outputs = 1 if units is None else len(units.intercept)
    width = (LAID_OUT if headed else 1) + outputs
    key, first = (2, LAID_OUT) if headed else (0, 1)
    hidden = 0 if units is None else len(units.thresholds)
    attention = Attention((Heads(1, 1, 1),)) if headed else None
    ffn = FeedForward(hidden) if hidden else None
    size = len(projection.weights)
    config = Config(
        Input("ids", tokens=tokens, vocabulary=size) if ids else Input("continuous", tokens=tokens, width=size),
        width=width,
        outputs=outputs,
        readout=Readout("all") if out_tokens > 1 else Readout("token", token=tokens - 1),
        blocks=(Block(attention, ffn),) if attention or ffn else (),
        code=Code("table") if headed else Code(),
    )
    embed = np.zeros((size, width))
    embed[:, 0] = projection.weights
    read = np.zeros((width, outputs))
    tensors = {"embed.weight": embed, "readout.weight": read, "readout.bias": np.zeros(outputs)}
    if not ids:
        tensors["embed.bias"] = np.zeros(width)
    if headed:
        tensors |= _head(projection, width, out_tokens)
    else:
        tensors["embed.bias"][key] = projection.offsets[0]
    if units is None:
        read[key] = 1.0
        return Transformer(config, tensors)
    read[key], tensors["readout.bias"] = units.slope, units.intercept
    if hidden:
        read[first:] = np.eye(outputs)
        up, down = np.zeros((width, hidden)), np.zeros((hidden, width))
        up[key], down[:, first:] = 1.0, units.weights
        tensors |= {"blocks.0.ffn.up": up, "blocks.0.ffn.up_bias": -units.thresholds}
        tensors |= {"blocks.0.ffn.down": down, "blocks.0.ffn.down_bias": np.zeros(width)}
    return Transformer(config, tensors)


def _head(projection: Projection, width: int, out_tokens: int) -> dict[str, np.ndarray]:
    tokens = len(projection.logits)
    code = np.zeros((tokens, width))
    code[:, 1], code[:, 3] = projection.logits, 1.0
    code[-out_tokens:, 2] = projection.offsets
    column = {name: np.zeros((1, width, 1)) for name in ("query", "key", "value")}
    column["query"][0, 3], column["key"][0, 1], column["value"][0, 0] = 1.0, 1.0, 1.0
    output = np.zeros((1, 1, width))
    output[0, 0, 2] = 1.0
    head = "blocks.0.attention.groups.0"
    return {"code.table": code, f"{head}.output": output, **{f"{head}.{name}": w for name, w in column.items()}}
