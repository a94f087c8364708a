"""A small language model whose generalization bound is not vacuous: data, code and bits, all counted.

    python benchmarks/small_language.py            # reads the coded model, evaluates it on the stream, prints the bounds
    python benchmarks/small_language.py --train    # trains and writes it again, about a minute on one core

The language: eight letters. With probability 9/10 the next letter is a fixed function of the last letter and of the
third last (a table of 64 letters), otherwise any letter. The stream has 2^20 letters after the first three. No model can
expect to be wrong less often than 0.0875; guessing is wrong with probability 0.875.

The model is the one transformer: width 16, one causal head that sees distances, 64 relu units, read out at every letter.
The hypothesis is the *coded* model, theta = scale * w with w on a few levels: its file is the only thing that depends
on the data. Everything else is in this script and was fixed before: the architecture, the scales, the number of levels.
"""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import dataclass
from pathlib import Path

# One thread: sums in a fixed order. Read when jax starts, so set before it is imported.
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import numpy as np

from certiformer.bounds import compression
from certiformer.bounds.code_length import File, read, settings_bits, write
from certiformer.bounds.numbers import above
from certiformer.bounds.quantise import Whole, clustered_levels, nearest_level, seeded_words
from certiformer.model import Attention, Block, Config, FeedForward, Heads, Input, Readout, Transformer, tensor_specs
from certiformer.model.forward import forward

CODED = Path(__file__).parent / "models" / "small-language.code"
LETTERS, NOISE, SEED = 8, 0.1, 7
TOKENS, ROW, BEFORE = 2**20, 32, 2  # letters that are predicted; per row; and how many more of the past a row sees
LEVELS = 7
TRIED = 16  # settings that were looked at while this was written, generously counted
SMOOTHING, DELTA = 0.05, 0.05
STEPS, SECOND_STEPS, BATCH, RATE = 3000, 2000, 128, 4e-3

CONFIG = Config(
    Input("ids", tokens=ROW + BEFORE, vocabulary=LETTERS),
    width=16,
    outputs=LETTERS,
    readout=Readout("all"),
    blocks=(
        Block(
            attention=Attention((Heads(1, key=4, value=16),), mask="causal", score_bias="toeplitz"), ffn=FeedForward(64)
        ),
    ),
    dtype="float32",
)


def table() -> np.ndarray:
    """The rule: the letter after `last`, two letters after `third`, at [last, third]."""
    return (seeded_words(SEED, LETTERS**2) >> np.uint64(61)).astype(int).reshape(LETTERS, LETTERS)


def stream() -> np.ndarray:
    """The letters, three more than are predicted."""
    rule = table().tolist()
    words = seeded_words(SEED + 1, TOKENS + 3)
    wild = ((words >> np.uint64(11)).astype(np.float64) * 2.0**-53 < NOISE).tolist()
    anything = (words & np.uint64(LETTERS - 1)).tolist()
    letters = anything[:3]
    for place in range(3, TOKENS + 3):
        letters.append(anything[place] if wild[place] else rule[letters[place - 1]][letters[place - 3]])
    return np.array(letters)


def rows(letters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What the model reads, and what it has to predict at the last ROW places of each row: always from the past alone."""
    starts = np.arange(0, TOKENS, ROW)[:, None]
    return letters[starts + np.arange(ROW + BEFORE)], letters[starts + np.arange(BEFORE + 1, ROW + BEFORE + 1)]


def frame() -> Whole:
    """theta = scale * w, the scale of a map being one over the root of the numbers it sums."""
    scales = []
    for name, spec in tensor_specs(CONFIG).items():
        incoming = spec.shape[-2] if len(spec.shape) > 1 and "bias" not in name and "embed" not in name else 1
        scales.append(np.full(int(np.prod(spec.shape)), incoming**-0.5))
    scale = np.concatenate(scales)
    return Whole(np.zeros(len(scale)), scale)


def split(weights):
    """The tensors of the model in one vector, by name; of NumPy or JAX."""
    tensors, place = {}, 0
    for name, spec in tensor_specs(CONFIG).items():
        size = int(np.prod(spec.shape))
        tensors[name] = weights[place : place + size].reshape(spec.shape)
        place += size
    return tensors


def model_of(weights: np.ndarray) -> Transformer:
    return Transformer(CONFIG, split(weights))


@dataclass(frozen=True)
class Losses:
    """Means over all letters of the stream: `wrong` predictions, smoothed loss in `bits`, and the chance of being wrong
    given the past, which is known here because the law of the stream is."""

    wrong: float
    bits: float
    expected_wrong: float


def logits_of(model: Transformer, seen: np.ndarray) -> np.ndarray:
    """(rows, places, letters), computed in the precision of the weights."""
    return model.evaluate(seen, CONFIG.dtype).reshape(len(seen), ROW + BEFORE, LETTERS).astype(np.float64)


def losses(model: Transformer) -> Losses:
    seen, wanted = rows(stream())
    wrong, bits, off_rule = 0, 0.0, 0
    for start in range(0, len(seen), 4096):
        part = slice(start, start + 4096)
        logits = logits_of(model, seen[part])[:, BEFORE:]
        guess = logits.argmax(-1)
        wrong += int((guess != wanted[part]).sum())
        off_rule += int((guess != table()[seen[part][:, BEFORE:], seen[part][:, :-BEFORE]]).sum())
        shares = np.exp(logits - logits.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        chosen = np.take_along_axis(shares, wanted[part][..., None], -1)
        bits -= float(np.log2((1 - SMOOTHING) * chosen + SMOOTHING / LETTERS).sum())
    return Losses(wrong / TOKENS, bits / TOKENS, NOISE * (1 - 1 / LETTERS) + (1 - NOISE) * off_rule / TOKENS)


def train() -> File:
    """The file of a model that Adam found, first with free weights, then with weights on their levels.

    In the second part gradients pass through the rounding to a level as if it were not there.
    """
    import jax
    import jax.numpy as jnp
    import optax

    seen, wanted = rows(stream())
    place, draws = frame(), np.random.default_rng(SEED)
    scale = jnp.asarray(place.scale, jnp.float32)

    def loss(code, levels, x, y):
        if levels is not None:
            nearest = levels[jnp.searchsorted((levels[1:] + levels[:-1]) / 2, code)]
            code = code + jax.lax.stop_gradient(nearest - code)
        tensors = split(code * scale)
        logits = jax.vmap(lambda row: forward(CONFIG, tensors, row))(x).reshape(len(x), ROW + BEFORE, LETTERS)
        return optax.softmax_cross_entropy_with_integer_labels(logits[:, BEFORE:], y).mean()

    def descend(code, levels, steps, rate):
        optimiser = optax.adam(optax.cosine_decay_schedule(rate, steps))
        memory = optimiser.init(code)

        @jax.jit
        def step(code, memory, x, y):
            updates, memory = optimiser.update(jax.grad(loss)(code, levels, x, y), memory)
            return optax.apply_updates(code, updates), memory

        for _ in range(steps):
            chosen = draws.integers(len(seen), size=BATCH)
            code, memory = step(code, memory, seen[chosen], wanted[chosen])
        return code

    start = np.concatenate([tensor.ravel() for tensor in Transformer.random(CONFIG, SEED).tensors.values()])
    code = descend(jnp.asarray(place.coordinates(start), jnp.float32), None, STEPS, RATE)
    levels = clustered_levels(np.asarray(code, np.float64), LEVELS)
    code = descend(code, jnp.asarray(levels, jnp.float32), SECOND_STEPS, RATE / 2)
    found = nearest_level(np.asarray(code, np.float64), levels)
    return write(found.symbols, found.levels)


@dataclass(frozen=True)
class Result:
    """The coded model on the stream, and what is promised of it with probability 1 - DELTA: both bounds at once."""

    weights: int
    bits: compression.Bits
    losses: Losses
    wrong_bound: float
    bits_bound: float


def result(data: bytes) -> Result:
    """Read the file, evaluate the model that it holds, bound what is expected of it."""
    symbols, levels = read(data, frame().dimension, LEVELS)
    bits = compression.Bits(write(symbols, levels).bits, settings_bits(TRIED))
    found = losses(model_of(frame().restore(levels[symbols])))
    sample, half = compression.Sample(TOKENS), DELTA / 2  # each of the two bounds fails with half of the probability
    return Result(
        len(symbols),
        bits,
        found,
        above(compression.bound(found.wrong, 1, bits, sample, half)),
        above(compression.bound(found.bits, compression.smoothed_range(SMOOTHING, LETTERS), bits, sample, half)),
    )


def report(r: Result) -> str:
    return "\n".join(
        (
            f"{r.weights:,} weights on {LEVELS} levels: {r.bits.file:,} bits; {r.bits.settings} more for {TRIED} settings",
            f"{TOKENS:,} letters of one stream, each predicted from those before it",
            f"wrong on the stream {r.losses.wrong:.4f}, expected at most {r.wrong_bound:.4f},"
            f" by guessing {1 - 1 / LETTERS}",
            f"bits per letter {r.losses.bits:.3f}, expected at most {r.bits_bound:.3f}, by guessing {np.log2(LETTERS):.0f}",
            f"both with probability {1 - DELTA:g}; the law is known here: expected wrong {r.losses.expected_wrong:.4f}",
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="A language model with a generalization bound that is not vacuous.")
    parser.add_argument("--train", action="store_true", help="train and write the coded model first")
    if parser.parse_args().train:
        began = time.process_time()
        CODED.write_bytes(train().data)
        print(f"trained in {time.process_time() - began:.0f} s of CPU")
    print(report(result(CODED.read_bytes())))


if __name__ == "__main__":
    main()
