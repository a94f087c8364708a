"""The checker's forward pass: any stored transformer with continuous inputs, in Taylor forms.

This is the one allowed second implementation of the transformer; tests hold it equal to `certiformer.model`. It follows
the definition in `docs/model.md` literally, in real-number semantics: codes, masks, every kind of attention,
feed-forward, residuals, layer norm, loops and read-outs. A point is a box of radius zero.

Softmax is enclosed by the *tilt*. Write s_j = c_j + y_j with any constants c_j (the scores at the box centre) and subtract
one common function l from all scores, which changes no weight: with t_j = y_j - l

    softmax_j(s) = e^{c_j} e^{t_j} / Z,     Z = sum_i e^{c_i} e^{t_i}.

l = sum_i p_i y_i with p the softmax of c makes every t_j that matters small, so e^{t_j} has a short Taylor form.
With W = sum_i e^{c_i}, Jensen's inequality for the convex exponential gives Z >= W exp(sum_i e^{c_i} t_i / W), a positive
lower bound that does not suffer when the scores are wide; the range of Z itself is used where it is better.
Scores enter only through differences and nothing is ever added to a denominator.
"""

from __future__ import annotations

from typing import Any

from flint import arb, arb_mat, fmpq

from certiformer.checker import stream, taylor
from certiformer.checker.balls import HALF, ONE, ZERO, Box, larger, smaller
from certiformer.checker.functions import FormAlgebra
from certiformer.checker.stream import Stream
from certiformer.checker.taylor import Form, Table
from certiformer.checker.weights import Tensor


class Network:
    """A stored transformer as a function of the flat point (x_1, ..., x_D), token-major."""

    def __init__(self, config: dict[str, Any], tensors: dict[str, Tensor]):
        self.config, self.tensors = config, tensors
        # A token id is one number; only `checker.points` gives it a meaning.
        self.tokens, self.token_width = config["input"]["tokens"], config["input"].get("width", 1)
        self.registers = config["registers"]
        self.dimension = self.tokens * self.token_width
        readout = config["readout"]["kind"]
        self.outputs = config["outputs"] * (self.tokens if readout == "all" else 1)
        self._matrices: dict[tuple, arb_mat] = {}

    def restrict(self, box: Box) -> Network:
        """The same function on a smaller box; a general network has nothing to gain."""
        return self

    def forms(self, box: Box, order: int) -> list[Form]:
        """The forms of all outputs on `box`."""
        tab = taylor.table(self.dimension, order)
        h = self.embed(tab, box)
        blocks = self.config["blocks"]
        for loop in range(self.config["loops"]):
            for b in range(len(blocks)):
                last = loop == self.config["loops"] - 1 and b == len(blocks) - 1
                h = self.block(h, b, self.read_rows() if last else list(range(h.shape[0])))
        if not blocks:
            h = h.rows(self.read_rows())
        return self._readout(h)

    def read_rows(self) -> list[int]:
        readout = self.config["readout"]
        if readout["kind"] == "register":
            return [readout["token"]]
        data = range(self.registers, self.registers + self.tokens)
        return [self.registers + readout["token"]] if readout["kind"] == "token" else list(data)

    def embed(self, tab: Table, box: Box) -> Stream:
        weight, bias = self.tensors["embed.weight"], self.tensors["embed.bias"].row()
        width = self.config["width"]
        n, total = self.tokens, self.tokens + self.registers
        centre = [ZERO] * (total * width)
        for r in range(self.registers):
            centre[r * width : (r + 1) * width] = self.tensors["registers"].row(r)
        coef: dict[int, arb_mat] = {}
        rem = arb_mat(total, width)
        for t in range(n):
            code = self._code(t)
            row = [b + c for b, c in zip(bias, code, strict=True)]
            for i in range(self.token_width):
                axis = t * self.token_width + i
                weights = weight.row(i)
                row = [value + box.centre[axis] * w for value, w in zip(row, weights, strict=True)]
                for c, w in enumerate(weights):
                    if w.is_zero() or box.radius[axis].is_zero():
                        continue
                    if tab.order == 0:
                        rem[self.registers + t, c] = rem[self.registers + t, c] + abs(w) * box.radius[axis]
                    else:
                        place = tab.axis[axis]
                        matrix = coef.setdefault(place, arb_mat(total, width))
                        matrix[self.registers + t, c] = w * box.radius[axis]
            start = (self.registers + t) * width
            centre[start : start + width] = row
        coef[0] = arb_mat(total, width, centre)
        return Stream(tab, coef, rem)

    def _code(self, t: int) -> list[arb]:
        """The position code of data token t."""
        code, width = self.config["code"], self.config["width"]
        result = [ZERO] * width
        if code["kind"] == "one-hot":
            result[code["offset"] + t] = ONE
        elif code["kind"] == "circle":
            angle = 2 * arb.pi() * arb(fmpq(t, code["period"]))
            result[code["offset"]], result[code["offset"] + 1] = angle.cos(), angle.sin()
        elif code["kind"] == "sinusoidal":
            for i in range(code["width"]):
                exponent = arb(fmpq(2 * (i // 2), code["width"]))
                angle = arb(t) / (arb(10000).log() * exponent).exp()
                result[code["offset"] + i] = angle.cos() if i % 2 else angle.sin()
        elif code["kind"] == "table":
            result = self.tensors["code.table"].row(t)
        return result

    def block(self, h: Stream, b: int, rows: list[int]) -> Stream:
        """The given rows after block b."""
        kept = self.attended(h, b, rows)
        block = self.config["blocks"][b]
        norm, ffn, prefix = block["norm"], block["ffn"], f"blocks.{b}"
        if ffn is not None:
            u = self._norm(kept, f"{prefix}.norm.ffn", norm) if norm and norm["place"] == "pre" else kept
            out = self._ffn(u, f"{prefix}.ffn", ffn)
            kept = stream.plus(kept, out) if ffn["residual"] else out
            if norm and norm["place"] == "post":
                kept = self._norm(kept, f"{prefix}.norm.ffn", norm)
        return kept

    def attended(self, h: Stream, b: int, rows: list[int]) -> Stream:
        """The given rows after the attention part of block b."""
        block, prefix = self.config["blocks"][b], f"blocks.{b}"
        norm, attention = block["norm"], block["attention"]
        kept = h.rows(rows) if rows != list(range(h.shape[0])) else h
        if attention is not None:
            u = self._norm(h, f"{prefix}.norm.attention", norm) if norm and norm["place"] == "pre" else h
            out = self._attention(u, prefix, attention, rows)
            kept = stream.plus(kept, out) if attention["residual"] else out
            if norm and norm["place"] == "post":
                kept = self._norm(kept, f"{prefix}.norm.attention", norm)
        return kept

    def matrix(self, name: str, *lead: int) -> tuple[arb_mat, arb_mat]:
        """A weight matrix and its absolute value, kept for the next box."""
        key = (name, *lead)
        if key not in self._matrices:
            self._matrices[key] = self.tensors[name].matrix(*lead)
            self._matrices[("size", *key)] = stream.absolute(self._matrices[key])
        return self._matrices[key], self._matrices[("size", *key)]

    def _ffn(self, u: Stream, name: str, ffn: dict[str, Any]) -> Stream:
        hidden = stream.linear(u, *self.matrix(f"{name}.up"), self.tensors[f"{name}.up_bias"].row())
        if ffn["kind"] == "relu":
            hidden = stream.relu(hidden)
        elif ffn["kind"] == "gelu":
            rows, columns = hidden.shape
            forms = [[gelu(hidden.form(r, c)) for c in range(columns)] for r in range(rows)]
            hidden = stream.from_forms(u.table, forms)
        return stream.linear(hidden, *self.matrix(f"{name}.down"), self.tensors[f"{name}.down_bias"].row())

    def _norm(self, h: Stream, name: str, norm: dict[str, Any]) -> Stream:
        """(h - mean) / sqrt(variance + epsilon) * scale + shift, row by row."""
        rows, columns = h.shape
        scale, shift = self.tensors[f"{name}.scale"].row(), self.tensors[f"{name}.shift"].row()
        share = ONE / columns
        # h - mean is a linear map of h: applied as one matrix, so that common parts cancel.
        centring = arb_mat(
            columns, columns, [(ONE if i == j else ZERO) - share for i in range(columns) for j in range(columns)]
        )
        centred = stream.linear(h, centring, stream.absolute(centring))
        algebra = FormAlgebra(h.table)
        result = []
        for r in range(rows):
            entries = [centred.form(r, c) for c in range(columns)]
            variance = taylor.scale(_total([taylor.multiply(e, e) for e in entries]), share)
            variance.low = larger(variance.low, ZERO)
            root = algebra.sqrt(taylor.add(variance, taylor.constant(h.table, arb(norm["epsilon"]))))
            inverse = taylor.divide(taylor.constant(h.table, ONE), root)
            row = [taylor.scale(taylor.multiply(e, inverse), s) for e, s in zip(entries, scale, strict=True)]
            result.append([taylor.add(f, taylor.constant(h.table, b)) for f, b in zip(row, shift, strict=True)])
        return stream.from_forms(h.table, result)

    def _attention(self, u: Stream, prefix: str, attention: dict[str, Any], rows: list[int]) -> Stream:
        queries = u.rows(rows)
        out = stream.constants(u.table, arb_mat(len(rows), u.shape[1]))
        if attention["bias"]:
            bias = self.tensors[f"{prefix}.attention.output_bias"].row()
            out = stream.constants(u.table, arb_mat(len(rows), len(bias), bias * len(rows)))
        for g, group in enumerate(attention["heads"]):
            for head in range(group["count"]):
                name = f"{prefix}.attention.groups.{g}"
                mixed = self._head(u, queries, name, head, attention, group, rows)
                out = stream.plus(out, stream.linear(mixed, *self.matrix(f"{name}.output", head)))
        return out

    def _head(
        self, u: Stream, queries: Stream, name: str, head: int, attention: dict, group: dict, rows: list[int]
    ) -> Stream:
        """Attention-weighted values of one head, a (rows x value width) stream."""
        biases = {
            part: self.tensors[f"{name}.{part}_bias"].row(head) if attention["bias"] else None
            for part in ("query", "key", "value")
        }
        q = stream.linear(queries, *self.matrix(f"{name}.query", head), biases["query"])
        k = stream.linear(u, *self.matrix(f"{name}.key", head), biases["key"])
        v = stream.linear(u, *self.matrix(f"{name}.value", head), biases["value"])
        factor = ONE if attention["scale"] == "unit" else arb(group["key"]).rsqrt()
        scores = stream.contract(q, stream.transpose(k))
        result = []
        for position, i in enumerate(rows):
            allowed = [j for j in range(u.shape[0]) if self._allowed(name, attention, i, j)]
            s = [
                taylor.add(
                    taylor.scale(scores.form(position, j), factor),
                    taylor.constant(u.table, self._score_bias(name, attention, head, i, j)),
                )
                for j in allowed
            ]
            result.append(_mix(attention["kind"], s, v.rows(allowed), group["value"]) if allowed else None)
        empty = stream.constants(u.table, arb_mat(1, group["value"]))
        return _stack(u.table, [empty if part is None else part for part in result])

    def _allowed(self, name: str, attention: dict, i: int, j: int) -> bool:
        if attention["mask"] == "table":
            return self.tensors[name.split(".groups.")[0] + ".mask"].at(i, j) != 0
        return attention["mask"] == "none" or j <= i

    def _score_bias(self, name: str, attention: dict, head: int, i: int, j: int) -> arb:
        if attention["score_bias"] == "none":
            return ZERO
        tensor = self.tensors[f"{name}.score_bias"]
        if attention["score_bias"] == "table":
            return arb(tensor.at(head, i, j))
        return arb(tensor.at(head, i - j + self.registers + self.tokens - 1))

    def _readout(self, h: Stream) -> list[Form]:
        kind, count = self.config["readout"]["kind"], h.shape[0]
        if kind in ("mean", "sum"):
            pool = arb_mat(1, count, [ONE / count if kind == "mean" else ONE] * count)
            h = Stream(h.table, {i: pool * m for i, m in h.coef.items()}, pool * h.rem)
        weight, weight_size = self.matrix("readout.weight")
        out = stream.linear(h, weight, weight_size, self.tensors["readout.bias"].row())
        return [out.form(r, c) for r in range(out.shape[0]) for c in range(out.shape[1])]


def _total(forms: list[Form]) -> Form:
    result = forms[0]
    for form in forms[1:]:
        result = taylor.add(result, form)
    return result


def gelu(x: Form) -> Form:
    """x Phi(x) with Phi(x) = (1 + erf(x / sqrt 2)) / 2."""
    erf = FormAlgebra(x.table).erf(taylor.scale(x, arb(2).rsqrt()))
    return taylor.multiply(x, taylor.scale(taylor.add(erf, taylor.constant(x.table, ONE)), HALF))


def _stack(tab: Table, parts: list[Stream]) -> Stream:
    """Streams of one row each, on top of each other."""
    width = parts[0].shape[1]
    used = sorted({i for part in parts for i in part.coef})
    zero = [ZERO] * width
    coef = {
        i: arb_mat(len(parts), width, [e for p in parts for e in (p.coef[i].entries() if i in p.coef else zero)])
        for i in used
    }
    return Stream(tab, coef, arb_mat(len(parts), width, [e for p in parts for e in p.rem.entries()]))


def _mix(kind: str, scores: list[Form], values: Stream, width: int) -> Stream:
    """The weighted sum of the value rows under one query's scores."""
    if kind == "nearest":
        sizes = [taylor.add(taylor.relu(s), taylor.relu(taylor.scale(s, -ONE))) for s in scores]
        scores, kind = [taylor.scale(size, -ONE) for size in sizes], "hard"
    if kind == "hard":
        return _hard(scores, values, width)
    weights = softmax(scores) if kind == "softmax" else [taylor.relu(s) for s in scores] if kind == "relu" else scores
    tab = values.table
    row = stream.from_forms(tab, [weights])
    if kind != "softmax" or len(scores) == 1:
        return stream.contract(row, values)
    # sum_j w_j v_j = v0 + sum_j w_j (v_j - v0) because softmax weights sum to one: smaller numbers, smaller remainders.
    p = [weight.coef.get(0, ZERO).mid() for weight in weights]
    centre = (arb_mat(1, len(p), p) * values.coef[0]).mid() if 0 in values.coef else arb_mat(1, width)
    shift = arb_mat(len(p), width, [-e for e in centre.entries()] * len(p))
    moved = stream.plus(values, stream.constants(tab, shift))
    return stream.plus(stream.contract(row, moved), stream.constants(tab, centre))


def softmax(scores: list[Form]) -> list[Form]:
    """Forms of the softmax weights, by the tilt of the module docstring."""
    tab = scores[0].table
    if len(scores) == 1:
        return [taylor.constant(tab, ONE)]
    centres = [s.coef.get(0, ZERO).mid() for s in scores]
    top = max(centres)
    exact = [(c - top).exp() for c in centres]  # e^{c_j} up to the common factor e^{-top}
    weight_sum = sum(exact, ZERO)
    deviations = [taylor.add(s, taylor.constant(tab, c), -1) for s, c in zip(scores, centres, strict=True)]
    common = _total([taylor.scale(y, (e / weight_sum).mid()) for y, e in zip(deviations, exact, strict=True)])
    tilted = [taylor.add(y, common, -1) for y in deviations]
    algebra = FormAlgebra(tab)
    terms = [taylor.scale(algebra.exp(t), e) for t, e in zip(tilted, exact, strict=True)]
    denominator = _total(terms)
    average = _total([taylor.scale(t, e) for t, e in zip(tilted, exact, strict=True)])
    jensen = (weight_sum * (taylor.bounds(average)[0] / weight_sum).exp()).lower()
    smallest = larger(jensen, taylor.bounds(denominator)[0]) if jensen.is_finite() else taylor.bounds(denominator)[0]
    weights = [taylor.divide(term, denominator, smallest) for term in terms]
    for weight in weights:
        weight.low = larger(weight.low, ZERO) if not weight.low.is_nan() else ZERO
        weight.high = smaller(weight.high, ONE) if not weight.high.is_nan() else ONE
    return [taylor.tightest(weight) for weight in weights]


def _hard(scores: list[Form], values: Stream, width: int) -> Stream:
    """Hard attention: the winner when it is certain on the whole box, else the hull of all possible winners.

    The output is the average over the set of keys with maximal score, hence a convex combination of candidates.
    Equal scores as exact constants (a tie on the whole box) are averaged.
    """
    ends = [taylor.bounds(s) for s in scores]
    best = ends[0][0]
    for low, _ in ends[1:]:
        best = larger(best, low)
    candidates = [j for j, (_, high) in enumerate(ends) if not high < best]
    tab = values.table
    tied = all(
        scores[j].rem.is_zero() and list(scores[j].coef) == [0] and scores[j].coef[0].is_exact() for j in candidates
    )
    if tied and len({str(scores[j].coef[0].man_exp()) for j in candidates}) == 1:
        share = ONE / len(candidates)
        row = stream.constants(
            tab, arb_mat(1, len(scores), [share if j in candidates else ZERO for j in range(len(scores))])
        )
        return stream.contract(row, values)
    result = []
    for c in range(width):
        hull = values.form(candidates[0], c)
        for j in candidates[1:]:
            hull = taylor.either(hull, values.form(j, c))
        result.append(hull)
    return stream.from_forms(tab, [result])
