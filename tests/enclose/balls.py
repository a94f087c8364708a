"""The oracle of the enclosure tests: exact points, ball arithmetic at 300 bits, a naive forward pass.

Everything here is written independently of `certiformer.enclose`: scalars, loops, no matrices, no forms.
"""

from __future__ import annotations

import math
from fractions import Fraction

import flint
import numpy as np
from flint import arb, fmpq

from certiformer.kernel.programs import Program
from certiformer.model import Transformer
from target.reading import read

PRECISION = 300


def ball(x: Fraction | float | int) -> arb:
    """The exact number as a ball (radius far below any double's rounding)."""
    flint.ctx.prec = PRECISION
    f = Fraction(x)
    return arb(fmpq(f.numerator, f.denominator))


class Balls:
    """The algebra of balls for target programs; `None` in a comparison that the ball cannot decide."""

    def constant(self, text: str) -> arb:
        flint.ctx.prec = PRECISION
        if text == "pi":
            return arb.pi()
        if text == "e":
            return arb(1).exp()
        return ball(Fraction(text))

    def neg(self, a):
        return -a

    def add(self, a, b):
        return a + b

    def sub(self, a, b):
        return a - b

    def mul(self, a, b):
        return a * b

    def div(self, a, b):
        return a / b

    def pow(self, a, n):
        out = arb(1)
        for _ in range(n):
            out = out * a
        return out

    def min(self, a, b):
        return a.min(b)

    def max(self, a, b):
        return a.max(b)

    def abs(self, a):
        return abs(a)

    def where(self, comparison, a, b, x, y):
        true = a < b if comparison == "lt" else a <= b
        false = a >= b if comparison == "lt" else a > b
        if not (true or false):
            raise Undecided
        return x if true else y

    def __getattr__(self, name):
        if name not in ("sqrt", "exp", "log", "sin", "cos", "tan", "tanh", "atan", "erf"):
            raise AttributeError(name)
        return lambda a: getattr(a, name)()


class Undecided(Exception):
    """The point lies on a branch boundary that balls cannot decide."""


def program_values(program: Program, point: list[Fraction]) -> list[arb]:
    """The outputs of a program at an exact point."""
    return read(program, [ball(x) for x in point], Balls())


def check_form(coef, rem, interval, exponents, e: list[Fraction], value: arb, label: str = "") -> None:
    """Fail when the form of one function is provably wrong at the normalised point e, where the function has `value`.

    Zero tolerance: the only allowance is the ball's own radius, about 1e-80 relative.
    """
    flint.ctx.prec = PRECISION
    if math.isfinite(rem):
        polynomial = arb(0)
        for c, row in zip(coef, exponents, strict=False):
            term = ball(float(c))
            for x, m in zip(e, row, strict=True):
                for _ in range(int(m)):
                    term = term * ball(x)
            polynomial = polynomial + term
        gap = abs(value - polynomial)
        assert not gap > ball(float(rem)), f"{label}: off the polynomial by {gap} > {rem!r} at e = {e}"
    if interval is not None:
        lo, hi = (float(v) for v in interval)
        if math.isfinite(lo):
            assert not value < ball(lo), f"{label}: value {value} below {lo!r} at e = {e}"
        if math.isfinite(hi):
            assert not value > ball(hi), f"{label}: value {value} above {hi!r} at e = {e}"


def box_points(dimension: int, rng: np.random.Generator, count: int = 6) -> list[list[Fraction]]:
    """Normalised points of a box: centre, corners, and random dyadic points."""
    corners = [[Fraction(s) for s in signs] for signs in np.ndindex(*(2,) * dimension)]
    corners = [[2 * s - 1 for s in row] for row in corners]
    inside = [[Fraction(int(v), 1 << 20) for v in rng.integers(-(1 << 20), 1 << 20, dimension)] for _ in range(count)]
    return [[Fraction(0)] * dimension, *corners[:8], *inside]


def model_values(model: Transformer, point: list[Fraction]) -> list[arb]:
    """The outputs of a continuous-input model at an exact point: a naive loop over balls."""
    flint.ctx.prec = PRECISION
    config, tensors = model.config, {n: np.asarray(t).astype(float) for n, t in model.tensors.items()}
    width, size = config.width, config.input.width or 1
    x = [ball(v) for v in point]
    rows = [[ball(v) for v in row] for row in tensors.get("registers", np.zeros((0, width)))]
    for t in range(config.tokens):
        row = [ball(v) for v in tensors["embed.bias"]]
        for i in range(size):
            row = [h + x[t * size + i] * ball(w) for h, w in zip(row, tensors["embed.weight"][i], strict=True)]
        rows.append([h + c for h, c in zip(row, _code(config, tensors, t), strict=True)])
    for _ in range(config.loops):
        for index, block in enumerate(config.blocks):
            rows = _block(config, block, tensors, f"blocks.{index}", rows)
    kind = config.readout.kind
    data = rows[: config.registers] if kind == "register" else rows[config.registers :]
    if kind in ("token", "register"):
        data = [data[config.readout.token]]
    elif kind in ("mean", "sum"):
        summed = [sum((r[i] for r in data), arb(0)) for i in range(width)]
        data = [[s / len(data) for s in summed] if kind == "mean" else summed]
    return [
        sum((h * ball(w) for h, w in zip(row, tensors["readout.weight"][:, o], strict=True)), ball(bias))
        for row in data
        for o, bias in enumerate(tensors["readout.bias"])
    ]


def _code(config, tensors, t) -> list[arb]:
    code, out = config.code, [arb(0)] * config.width
    if code.kind == "table":
        return [ball(v) for v in tensors["code.table"][t]]
    if code.kind == "one-hot":
        out[code.offset + t] = arb(1)
    elif code.kind == "circle":
        angle = 2 * arb.pi() * t / code.period
        out[code.offset], out[code.offset + 1] = angle.cos(), angle.sin()
    elif code.kind == "sinusoidal":
        for i in range(code.width):
            angle = t / (ball(Fraction(2 * (i // 2), code.width)) * arb(10000).log()).exp()
            out[code.offset + i] = angle.sin() if i % 2 == 0 else angle.cos()
    return out


def _affine(row, weight, bias) -> list[arb]:
    start = [arb(0)] * weight.shape[1] if bias is None else [ball(b) for b in bias]
    for h, w in zip(row, weight, strict=True):
        start = [s + h * ball(v) for s, v in zip(start, w, strict=True)]
    return start


def _norm(config, block, tensors, name, place, rows):
    if block.norm is None or block.norm.place != place:
        return rows
    out = []
    for row in rows:
        mean = sum(row, arb(0)) / len(row)
        variance = sum(((h - mean) * (h - mean) for h in row), arb(0)) / len(row)
        root = (variance + ball(block.norm.epsilon)).sqrt()
        scale, shift = tensors[f"{name}.scale"], tensors[f"{name}.shift"]
        out.append([(h - mean) / root * ball(s) + ball(b) for h, s, b in zip(row, scale, shift, strict=True)])
    return out


def _block(config, block, tensors, prefix, rows):
    if block.attention is not None:
        normed = _norm(config, block, tensors, f"{prefix}.norm.attention", "pre", rows)
        out = _attention(config, block.attention, tensors, f"{prefix}.attention", normed)
        rows = [
            [h + o for h, o in zip(r, s, strict=True)] if block.attention.residual else s
            for r, s in zip(rows, out, strict=True)
        ]
        rows = _norm(config, block, tensors, f"{prefix}.norm.attention", "post", rows)
    if block.ffn is not None:
        normed = _norm(config, block, tensors, f"{prefix}.norm.ffn", "pre", rows)
        out = [_feed_forward(block.ffn, tensors, f"{prefix}.ffn", row) for row in normed]
        rows = [
            [h + o for h, o in zip(r, s, strict=True)] if block.ffn.residual else s
            for r, s in zip(rows, out, strict=True)
        ]
        rows = _norm(config, block, tensors, f"{prefix}.norm.ffn", "post", rows)
    return rows


def _feed_forward(ffn, tensors, prefix, row):
    hidden = _affine(row, tensors[f"{prefix}.up"], tensors[f"{prefix}.up_bias"])
    if ffn.kind == "relu":
        hidden = [h.max(arb(0)) for h in hidden]
    elif ffn.kind == "gelu":
        hidden = [h * (1 + (h / arb(2).sqrt()).erf()) / 2 for h in hidden]
    return _affine(hidden, tensors[f"{prefix}.down"], tensors[f"{prefix}.down_bias"])


def _attention(config, attention, tensors, prefix, rows):
    length = len(rows)
    bias = tensors.get(f"{prefix}.output_bias")
    out = [[arb(0) if bias is None else ball(bias[i]) for i in range(config.width)] for _ in rows]
    for g, group in enumerate(attention.heads):
        name = f"{prefix}.groups.{g}"
        for h in range(group.count):
            project = {
                role: [
                    _affine(
                        row, tensors[f"{name}.{role}"][h], tensors[f"{name}.{role}_bias"][h] if attention.bias else None
                    )
                    for row in rows
                ]
                for role in ("query", "key", "value")
            }
            for i in range(length):
                keys = [j for j in range(length) if _allowed(attention, tensors, prefix, i, j)]
                if not keys:
                    continue
                scores = []
                for j in keys:
                    s = sum((q * k for q, k in zip(project["query"][i], project["key"][j], strict=True)), arb(0))
                    if attention.scale == "inverse-sqrt":
                        s = s / arb(group.key).sqrt()
                    if attention.score_bias == "table":
                        s = s + ball(tensors[f"{name}.score_bias"][h][i][j])
                    elif attention.score_bias == "toeplitz":
                        s = s + ball(tensors[f"{name}.score_bias"][h][i - j + length - 1])
                    scores.append(s)
                weights = _weights(attention.kind, scores)
                mixed = [
                    sum((w * project["value"][j][v] for w, j in zip(weights, keys, strict=True)), arb(0))
                    for v in range(group.value)
                ]
                mapped = _affine(mixed, tensors[f"{name}.output"][h], None)
                out[i] = [a + b for a, b in zip(out[i], mapped, strict=True)]
    return out


def _allowed(attention, tensors, prefix, i, j) -> bool:
    if attention.mask == "causal":
        return j <= i
    return attention.mask != "table" or tensors[f"{prefix}.mask"][i][j] != 0


def _weights(kind, scores):
    if kind == "linear":
        return scores
    if kind == "relu":
        return [s.max(arb(0)) for s in scores]
    if kind == "softmax":
        best = scores[0]
        for s in scores[1:]:
            best = best.max(s)
        raised = [(s - best).exp() for s in scores]
        total = sum(raised, arb(0))
        return [r / total for r in raised]
    order = [all(not (t > s) for t in scores) for s in scores]
    if any(not (s > t) and not (s < t) and not (s - t) == 0 for s in scores for t in scores if s is not t):
        raise Undecided
    return [arb(1) / sum(order) if best else arb(0) for best in order]
