"""Runs of a transformer in a chosen format, one rounded operation at a time, as badly as the stated rules allow.

A `Machine` decides what is left open: the order of summation, fused multiply-add, flushing, and which way the
functions err. Numbers are Python floats that lie in the format; float64 holds products of two float32 or bfloat16
numbers exactly, so an operation is done there and rounded once more (twice for additions of very different numbers,
which the rules allow).
"""

from __future__ import annotations

import math
import random
from typing import Any

import ml_dtypes
import numpy as np

TYPES = {"float32": np.float32, "bfloat16": ml_dtypes.bfloat16, "float64": np.float64}
UNIT = {"float32": 2.0**-24, "bfloat16": 2.0**-8, "float64": 2.0**-53}
# Relative errors of exp and division and the absolute error of erf, in units of UNIT, as docs/float-semantics.md states them.
STATED = {"float32": (8, 4, 16), "float64": (8, 4, 16), "bfloat16": (2, 2, 2)}
TINY = {"float32": 2.0**-126, "bfloat16": 2.0**-126, "float64": 2.0**-1022}


class Machine:
    """One way of executing: `order` is sequential, reversed, shuffled or pairwise; `push` = -1, 0, 1 moves functions by
    almost their whole stated error (0: correctly rounded).
    """

    def __init__(self, dtype: str, order: str = "sequential", fused: bool = False, flush: bool = False, push: int = 0):
        self.dtype, self.type, self.order, self.fused, self.flushes, self.push = (
            dtype,
            TYPES[dtype],
            order,
            fused,
            flush,
            push,
        )
        self.random = random.Random(7)

    def round(self, x: float) -> float:
        # ml_dtypes rounds float64 to bfloat16 through float32, which is a rounding in a wider format
        return self.flush(float(self.type(x)))

    def flush(self, x: float) -> float:
        return 0.0 if self.flushes and abs(x) < TINY[self.dtype] else x

    def add(self, a: float, b: float) -> float:
        return self.round(self.flush(a) + self.flush(b))

    def mul(self, a: float, b: float) -> float:
        return self.round(self.flush(a) * self.flush(b))

    def moved(self, value: float, units: float) -> float:
        """A function's value, off by `units` roundings relatively when the machine pushes."""
        sign = self.push if self.push >= 0 else self.random.choice((-1, 1))
        return self.round(value * (1 + sign * 0.9 * max(units - 1.2, 0) * UNIT[self.dtype]))

    def exp(self, x: float) -> float:
        return self.moved(math.exp(x), STATED[self.dtype][0])

    def div(self, a: float, b: float) -> float:
        return self.round(a) if b == 1 else self.moved(a / b, STATED[self.dtype][1])

    def erf(self, x: float) -> float:
        shift = self.push * 0.9 * (STATED[self.dtype][2] - 1.2) * UNIT[self.dtype]
        return self.round(math.erf(x) + shift)

    def total(self, terms: list[float]) -> float:
        """The sum of the terms in the order of the machine."""
        terms = list(terms)
        if self.order == "pairwise":
            while len(terms) > 1:
                pairs = [self.add(*terms[i : i + 2]) for i in range(0, len(terms) - 1, 2)]
                terms = pairs + (terms[-1:] if len(terms) % 2 else [])
            return terms[0] if terms else 0.0
        self._arrange(terms)
        result = terms[0] if terms else 0.0
        for term in terms[1:]:
            result = self.add(result, term)
        return result

    def _arrange(self, terms: list) -> None:
        if self.order == "reversed":
            terms.reverse()
        elif self.order == "shuffled":
            self.random.shuffle(terms)

    def dot(self, xs: list[float], ys: list[float], more: list[float] | None = None) -> float:
        """sum x y + more."""
        more = more or []
        if not self.fused:
            return self.total([self.mul(x, y) for x, y in zip(xs, ys, strict=True)] + more)
        pairs, result = list(zip(xs, ys, strict=True)), self.total(more)
        self._arrange(pairs)
        for x, y in pairs:
            result = self.round(self.flush(x) * self.flush(y) + self.flush(result))
        return result


def run(model, x, m: Machine) -> list[float]:
    """The outputs for one input (a list of rows), by the definition of the model."""
    c = model.config.to_json()
    w = {name: _nested(np.asarray(tensor).astype(np.float64)) for name, tensor in model.tensors.items()}
    h = [list(row) for row in w.get("registers", [])]
    registers = len(h)
    for t, token in enumerate(x):
        extra = _code(c, w, t, m)
        columns = list(zip(*w["embed.weight"], strict=True))
        rows = zip(columns, w["embed.bias"], extra, strict=True)
        h.append([m.dot(token, column, [b, e]) for column, b, e in rows])
    for _ in range(c["loops"]):
        for b, block in enumerate(c["blocks"]):
            h = _block(block, w, f"blocks.{b}", h, registers + c["input"]["tokens"], m)
    data = h[:registers] if c["readout"]["kind"] == "register" else h[registers:]
    return _read_out(c, w, data, m)


def _nested(tensor) -> Any:
    return [_nested(part) for part in tensor] if tensor.ndim else float(tensor)


def _code(c, w, t, m):
    code, row = c["code"], [0.0] * c["width"]
    if code["kind"] == "one-hot":
        row[code["offset"] + t] = 1.0
    elif code["kind"] == "circle":
        angle = 2 * math.pi * t / code["period"]
        row[code["offset"]], row[code["offset"] + 1] = m.round(math.cos(angle)), m.round(math.sin(angle))
    elif code["kind"] == "sinusoidal":
        for i in range(code["width"]):
            angle = t / 10000 ** (2 * (i // 2) / code["width"])
            row[code["offset"] + i] = m.round(math.sin(angle) if i % 2 == 0 else math.cos(angle))
    elif code["kind"] == "table":
        row = w["code.table"][t]
    return row


def _times(row, matrix, bias, m):
    columns = zip(*matrix, strict=True)
    return [m.dot(row, list(column), [] if bias is None else [bias[i]]) for i, column in enumerate(columns)]


def _block(block, w, name, h, longest, m):
    for sublayer, apply in (("attention", _attention), ("ffn", _ffn)):
        options, norm = block[sublayer], block["norm"]
        if options is None:
            continue
        place = norm and norm["place"]
        u = [_norm(row, w, f"{name}.norm.{sublayer}", norm, m) for row in h] if place == "pre" else h
        out = apply(options, w, f"{name}.{sublayer}", u, longest, m)
        if options["residual"]:
            out = [[m.add(a, b) for a, b in zip(x, y, strict=True)] for x, y in zip(h, out, strict=True)]
        h = [_norm(row, w, f"{name}.norm.{sublayer}", norm, m) for row in out] if place == "post" else out
    return h


def _norm(row, w, name, norm, m):
    mean = m.div(m.total(row), len(row))
    centred = [m.add(a, -mean) for a in row]
    variance = m.div(m.dot(centred, centred), len(row))
    root = m.moved(math.sqrt(m.add(variance, m.round(norm["epsilon"]))), STATED[m.dtype][1])
    unit = [m.div(a, root) for a in centred]
    return [m.add(m.mul(a, s), b) for a, s, b in zip(unit, w[f"{name}.scale"], w[f"{name}.shift"], strict=True)]


def _attention(options, w, name, u, longest, m):
    mixed: list[list[float]] = [[] for _ in u]
    output = []
    for g, group in enumerate(options["heads"]):
        for head in range(group["count"]):
            part = _head(options, w, name, f"{name}.groups.{g}", head, group, u, longest, m)
            mixed = [a + b for a, b in zip(mixed, part, strict=True)]
            output += w[f"{name}.groups.{g}.output"][head]
    return [_times(row, output, w.get(f"{name}.output_bias"), m) for row in mixed]


def _head(options, w, name, group, head, sizes, u, longest, m):
    def project(role):
        bias = w.get(f"{group}.{role}_bias")
        return [_times(row, w[f"{group}.{role}"][head], None if bias is None else bias[head], m) for row in u]

    query, key, value = project("query"), project("key"), project("value")
    scale = m.round(1 / math.sqrt(sizes["key"])) if options["scale"] == "inverse-sqrt" else 1.0
    rows = []
    for i in range(len(u)):
        scores = {}
        for j in range(len(u)):
            if options["mask"] == "causal" and j > i or options["mask"] == "table" and w[f"{name}.mask"][i][j] == 0:
                continue
            scores[j] = m.mul(scale, m.dot(query[i], key[j]))
            if options["score_bias"] == "table":
                scores[j] = m.add(scores[j], w[f"{group}.score_bias"][head][i][j])
            elif options["score_bias"] == "toeplitz":
                scores[j] = m.add(scores[j], w[f"{group}.score_bias"][head][i - j + longest - 1])
        weights = _weights(options["kind"], scores, m)
        keys = list(weights)
        rows.append([m.dot([weights[j] for j in keys], [value[j][c] for j in keys]) for c in range(sizes["value"])])
    return rows


def _weights(kind, scores, m):
    if not scores or kind == "linear":
        return scores
    if kind == "relu":
        return {j: max(s, 0.0) for j, s in scores.items()}
    if kind == "nearest":
        scores, kind = {j: -abs(s) for j, s in scores.items()}, "hard"
    top = max(scores.values())
    if kind == "hard":
        best = [j for j in scores if scores[j] == top]
        count = m.total([1.0] * len(best))
        return {j: m.div(1.0, count) for j in best}
    powers = {j: m.exp(m.add(s, -top)) for j, s in scores.items()}
    total = m.total(list(powers.values()))
    return {j: m.div(p, total) for j, p in powers.items()}


def _ffn(options, w, name, u, _, m):
    def gelu(a):
        return m.mul(m.mul(0.5, a), m.add(1.0, m.erf(m.mul(a, m.round(math.sqrt(0.5))))))

    activation = {"relu": lambda a: max(a, 0.0), "gelu": gelu, "identity": lambda a: a}[options["kind"]]
    hidden = [[activation(a) for a in _times(row, w[f"{name}.up"], w[f"{name}.up_bias"], m)] for row in u]
    return [_times(row, w[f"{name}.down"], w[f"{name}.down_bias"], m) for row in hidden]


def _read_out(c, w, data, m):
    kind = c["readout"]["kind"]
    if kind in ("token", "register"):
        data = [data[c["readout"]["token"]]]
    elif kind in ("mean", "sum"):
        total = [m.total([row[i] for row in data]) for i in range(len(data[0]))]
        data = [[m.div(a, len(data)) if kind == "mean" else a for a in total]]
    return [y for row in data for y in _times(row, w["readout.weight"], w["readout.bias"], m)]
