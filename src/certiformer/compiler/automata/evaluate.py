"""Running a compiled automaton in NumPy: the formulas of the one transformer, without rows that cannot change.

Every product, exponential and sum is one that the forward pass has, in the stored type (bfloat16 is computed in float32
and rounded after every operation). The forward pass may add up in another order; the theorems of the three forms hold
for every order, so both give the same numbers. What is left out:

- looped: by its theorem a pass of the block changes row k only in pass k, where it sees rows 0 to k; so row k is
computed
  once, in pass k, with the rows 0 to k - 1 as they have become.
- chain of thought: under the causal mask and with one block, an output depends on its own row and the embeddings before
  it; so only the rows that choose a token are computed.
- log-depth: nothing, every row of every pass is computed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float, Int

from certiformer.model.config import Config

CHUNK = 512  # rows at a time: the scores of a long word would not fit into memory
_HEAD = "blocks.0.attention.groups.0"
Stream = Float[np.ndarray, "rows width"]


class Evaluation:
    """The blocks of a compiled automaton, to be applied to chosen rows."""

    def __init__(self, config: Config, tensors: dict[str, np.ndarray]) -> None:
        self.config = config
        self.stored: Any = tensors["embed.weight"].dtype
        wide = np.float32 if config.dtype == "bfloat16" else self.stored
        self.tensors = {name: tensor.astype(wide) for name, tensor in tensors.items()}

    def embedded(self, tokens: Int[np.ndarray, " rows"], first: int = 0) -> Stream:
        """Tokens and position codes, from row `first` on."""
        codes = self.tensors["code.table"][first : first + len(tokens)]
        return self.rounded(self.tensors["embed.weight"][tokens] + codes)

    def rounded(self, numbers: np.ndarray) -> np.ndarray:
        return numbers.astype(self.stored).astype(numbers.dtype) if self.config.dtype == "bfloat16" else numbers

    def project(self, role: str, rows: Stream) -> Float[np.ndarray, "rows size"]:
        """Keys, values or queries of rows."""
        return self.rounded(rows @ self.tensors[f"{_HEAD}.{role}"][0])

    def attend(
        self, rows: Stream, keys: Float[np.ndarray, "seen key"], values: Float[np.ndarray, "seen value"], first: int
    ) -> Stream:
        """Consecutive rows, from number `first` on, after the attention of block 0; row i sees the keys 0 to i."""
        seen = first + len(rows)
        scores = self.rounded(self.project("query", rows) @ keys[:seen].T)
        scores = np.where(np.tri(len(rows), seen, first, dtype=bool), scores, -np.inf)
        shares = self.rounded(np.exp(self.rounded(scores - scores.max(axis=1, keepdims=True))))
        shares = self.rounded(shares / self.rounded(shares.sum(axis=1, keepdims=True)))
        brought = self.rounded(self.rounded(shares @ values[:seen]) @ self.tensors[f"{_HEAD}.output"][0])
        return self.rounded(rows + brought)

    def feed_forward(self, block: int, rows: Stream) -> Stream:
        """The rows after the hidden units of a block."""
        up, down = (self.tensors[f"blocks.{block}.ffn.{part}"] for part in ("up", "down"))
        biases = [self.tensors[f"blocks.{block}.ffn.{part}_bias"] for part in ("up", "down")]
        hidden = np.maximum(self.rounded(self.rounded(rows @ up) + biases[0]), 0)
        return self.rounded(rows + self.rounded(self.rounded(hidden @ down) + biases[1]))

    def read(self, rows: Stream) -> Float[np.ndarray, "rows outputs"]:
        """The outputs of rows, as float64."""
        outputs = self.rounded(self.rounded(rows @ self.tensors["readout.weight"]) + self.tensors["readout.bias"])
        return outputs.astype(np.float64)


def looped_outputs(model: Evaluation, tokens: Int[np.ndarray, " rows"]) -> Float[np.ndarray, "rows outputs"]:
    """The outputs after as many passes as there are symbols; more passes change nothing."""
    stream = model.embedded(tokens)
    keys, values = model.project("key", stream), model.project("value", stream)
    for row in range(1, len(tokens)):
        here = slice(row, row + 1)
        stream[here] = model.feed_forward(0, model.attend(stream[here], keys, values, row))
        values[here] = model.project("value", stream[here])
    return model.read(stream)


def written_tokens(model: Evaluation, prompt: Int[np.ndarray, " rows"], first_state: int) -> list[int]:
    """What a chain of thought writes after the prompt: outputs, up to the first that is no state.

    States are the outputs before the last two, and output k is the token `first_state` + k.
    """
    states = model.config.outputs - 2
    rows = model.config.tokens
    keys = np.zeros((rows, model.tensors[f"{_HEAD}.key"].shape[2]), model.tensors["embed.weight"].dtype)
    values = np.zeros((rows, model.tensors[f"{_HEAD}.value"].shape[2]), keys.dtype)
    stream = model.embedded(prompt)
    keys[: len(prompt)], values[: len(prompt)] = model.project("key", stream), model.project("value", stream)
    row, place, written = stream[-1:], len(prompt) - 1, []
    while True:
        after = model.feed_forward(0, model.attend(row, keys, values, place))
        (chosen,) = unit_vectors(model.read(after))
        written.append(chosen)
        if chosen >= states:
            return written
        place += 1
        row = model.embedded(np.array([first_state + chosen]), place)
        keys[place], values[place] = model.project("key", row)[0], model.project("value", row)[0]


def log_depth_outputs(model: Evaluation, tokens: Int[np.ndarray, " rows"]) -> Float[np.ndarray, "rows outputs"]:
    """The outputs after all passes."""
    stream = model.embedded(tokens)
    keys = model.project("key", stream)
    for _ in range(model.config.loops):
        values = model.project("value", stream)
        parts = range(0, len(stream), CHUNK)
        looked = [model.attend(stream[first : first + CHUNK], keys, values, first) for first in parts]
        stream = np.concatenate([model.feed_forward(1, model.feed_forward(0, rows)) for rows in looked])
    return model.read(stream)


def unit_vectors(rows: Float[np.ndarray, "rows size"]) -> list[int]:
    """The place of the 1 in every row; the numbers must be exactly 0 and 1."""
    places = np.argmax(rows, axis=1)
    if not np.array_equal(rows, np.eye(rows.shape[1])[places]):
        raise ValueError("an output of the automaton is not exactly 0 and 1")
    return places.tolist()
