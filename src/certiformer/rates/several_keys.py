"""A target that asks several places at once, a part of the study `heads`: heads against their size, with and without norm.

Tokens t(0) .. t(n-1) and x, all from 0 to n - 1. The answer is the number whose bit j says whether t(x + j n/k mod n) is in
the upper half, for j < k: the last token must read k places that depend on x, and keep apart which bit came from where.

In exact arithmetic one head can: with weights in the proportions 1 : 2 : ... : 2^(k-1) on the k places its mean *is* the
answer, up to a factor. So no lower bound in heads exists; what heads buy here is measured. The transformer that is built
has k heads and is certified for all inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from certiformer.compiler.programs.make import Request, compile_request
from certiformer.errors import BadInput
from certiformer.expressivity.blind_block import needed
from certiformer.rasp import Map, SOp, tokens
from certiformer.rasp.library.patterns import at_position
from certiformer.rates.composition_tasks import Task, Tokens
from certiformer.rates.over_seeds import bootstrap_mean, share_in_words
from certiformer.rates.study import Picture, Table
from certiformer.rates.token_models import token_config, trained_rows
from certiformer.sweep.job import Row

NORMS = ("none", "pre")
BUILT_INPUTS = 200
TRAINING = {"samples": 65_536, "batch": 32, "rates": [0.01]}


def keys_task(n: int, keys: int) -> Task:
    """The target with a table of n entries and k = `keys` places.

    >>> asked = keys_task(4, 2)
    >>> asked.answer(np.array([[0, 3, 2, 1, 1]])).tolist()  # t(1) = 3 is in the upper half, t(3) = 1 is not
    [1]
    """
    if n < 2 or not 1 <= keys <= n // 2 or n % keys:
        raise BadInput(f"{keys} places at once need a table with a multiple of {keys} entries, twice as many at least")

    def answer(inputs: Tokens) -> np.ndarray:
        table, place = inputs[:, :n], inputs[:, -1:]
        wanted = (place + np.arange(keys)[None] * (n // keys)) % n
        return (np.take_along_axis(table, wanted, 1) >= n // 2) @ (2 ** np.arange(keys))

    return Task(f"{keys} keys", n, n + 1, n, 2**keys, answer, needed("recall", 2, 2**keys) // 2)


def keys_program(n: int, keys: int) -> SOp:
    """The same as a RASP program, right at the last position."""
    parts: list[SOp] = []
    for j in range(keys):
        place = Map(lambda x, shift=j * (n // keys): (x + shift) % n, tokens)
        parts.append(Map(lambda value, bit=2**j: bit * (value >= n // 2), at_position(place, tokens)))
    return reduce(lambda total, part: total + part, parts)


def keys_parts(options: Any) -> list[dict[str, Any]]:
    """What the jobs of this target are: one builds, the others train all seeds of a shape."""
    shared = {"n": options.table, "steps": options.steps, "seed": options.seed, "seeds": options.seeds}
    made = []
    for keys in options.keys:
        keys_task(options.table, keys)
        made.append({**shared, "target": "keys", "kind": "built", "keys": keys})
        for norm in NORMS:
            for heads in options.heads:
                shape = {"heads": heads, "key": options.total // heads, "norm": norm}
                made.append({**shared, "target": "keys", "kind": "trained", "keys": keys, **shape})
    return made


def keys_rows(config: dict[str, Any]) -> list[Row]:
    """The rows of one job."""
    asked = keys_task(config["n"], config["keys"])
    facts = {"target": "keys", "kind": config["kind"], "keys": config["keys"]}
    if config["kind"] == "built":
        return [{**facts, **_built(asked, config["keys"])}]
    shape = token_config(asked, width=config["n"], heads=config["heads"], key=config["key"], norm=config["norm"])
    seeds = range(config["seed"], config["seed"] + config["seeds"])
    facts |= {"heads": config["heads"], "key": config["key"], "norm": config["norm"], "certified": False}
    return [{**facts, **row} for row in trained_rows(asked, shape, {**TRAINING, "steps": config["steps"]}, seeds)]


def _built(asked: Task, keys: int) -> Row:
    made = compile_request(Request(keys_program(asked.n, keys), tuple(range(asked.n)), asked.length, name=asked.name))
    inputs, wanted = asked.sample(BUILT_INPUTS, seed=0)
    wrong = float(np.mean([made.run(row)[-1] != value for row, value in zip(inputs.tolist(), wanted, strict=True)]))
    model = made.model
    heads = sum(
        group.count
        for block in (() if model is None else model.config.blocks)
        if block.attention is not None
        for group in block.attention.heads
    )
    numbers = {"seed": 0, "weights": 0 if model is None else model.nonzero_count(), "wrong": wrong}
    return {**numbers, "heads": heads, "key": 0, "norm": "none", "certified": made.certified, "diverged": False}


def keys_table(rows: Sequence[Row]) -> list[Table]:
    """Wrong answers by places at once, norm and number of heads."""
    trained = [row for row in rows if row["kind"] == "trained" and not row["diverged"]]
    if not trained:
        return []
    shapes = sorted({(row["heads"], row["key"]) for row in trained})
    lines = []
    for keys in sorted({row["keys"] for row in trained}):
        for norm in NORMS:
            shares = [share_in_words(_shares(trained, keys, norm, heads)) for heads, _ in shapes]
            lines.append([keys, norm, *shares])
    headings = ["places at once", "norm", *(f"{heads} of size {key}" for heads, key in shapes)]
    caption = "Several places at once: wrong answers in percent, one block, equal weights, mean and bootstrap interval"
    return [Table(caption, headings, lines)]


def keys_picture(rows: Sequence[Row]) -> list[Picture]:
    """Wrong answers over the number of heads, one line for each number of places and each norm."""
    trained = [row for row in rows if row["kind"] == "trained" and not row["diverged"]]
    lines = []
    for keys, norm in sorted({(row["keys"], row["norm"]) for row in trained}):
        heads = sorted({row["heads"] for row in trained})
        points = [(float(count), _shares(trained, keys, norm, count)) for count in heads]
        known = [(x, float(np.mean(shares))) for x, shares in points if shares]
        name = f"{keys} places" + (", LayerNorm" if norm == "pre" else "")
        lines.append({"name": name, "x": [x for x, _ in known], "y": [y for _, y in known]})
    data = {"x_label": "heads, at equal weights", "y_label": "share of wrong answers", "lines": lines}
    title = "Several places at once: heads against head size"
    return [Picture("curves", title, {**data, "log_x": True, "log_y": False})] if lines else []


def keys_findings(rows: Sequence[Row]) -> list[str]:
    """What is built, which number of heads is best, and what LayerNorm does to it."""
    found = []
    for row in rows:
        if row["kind"] == "built":
            word = "certified for all inputs" if row["certified"] else "not certified"
            found.append(f"{row['keys']} places at once: a transformer with {row['heads']} heads is built and {word}.")
    trained = [row for row in rows if row["kind"] == "trained" and not row["diverged"]]
    for keys, norm in sorted({(row["keys"], row["norm"]) for row in trained}):
        heads = sorted({row["heads"] for row in trained})
        shares = {count: _shares(trained, keys, norm, count) for count in heads}
        if len(heads) < 2 or min(map(len, shares.values())) < 3:
            continue
        best = min(heads, key=lambda count, shares=shares: float(np.mean(shares[count])))
        worse = [str(count) for count in heads if _apart(shares[best], shares[count])]
        beaten = f"better than {' and '.join(worse)}, intervals apart" if worse else "no other number is clearly worse"
        words = "with LayerNorm" if norm == "pre" else "without norm"
        found.append(
            f"{keys} places at once, {words}, equal weights: least wrong answers with {best} head{'s' * (best > 1)}"
            f" ({share_in_words(shares[best])} %); {beaten}."
        )
    return found


def _shares(rows: Sequence[Row], keys: int, norm: str, heads: int) -> list[float]:
    return [row["wrong"] for row in rows if (row["keys"], row["norm"], row["heads"]) == (keys, norm, heads)]


def _apart(best: Sequence[float], other: Sequence[float]) -> bool:
    return bootstrap_mean(best)[1][1] < bootstrap_mean(other)[1][0]
