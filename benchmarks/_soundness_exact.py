"""What a stored transformer and a stored formula really are: a reading of `docs/model.md` and `docs/targets.md` of its own.

Nothing of certiformer is imported here. `floats` runs many inputs at once in NumPy: it *looks for* violations and
decides nothing. `exact` runs one input in rationals (python-flint's `fmpq`) where the model has no exponential, root or
sine, and in balls of 700 bits otherwise; `value` does the same for a formula. Only these two establish that a claim is
false.
"""

from __future__ import annotations

import json
import math
import struct
from contextlib import contextmanager
from fractions import Fraction

import flint
import numpy as np
from flint import arb, fmpq

BITS = 700  # more than 200 decimal digits
WIDTHS = {"F64": ("<f8", 8), "F32": ("<f4", 4), "BF16": ("<u2", 2), "U8": ("u1", 1)}


class Undecided(Exception):
    """700 bits do not settle a comparison; then nothing is established."""


@contextmanager
def precisely():
    """700 bits here, the precision from before afterwards."""
    before, flint.ctx.prec = flint.ctx.prec, BITS
    try:
        yield
    finally:
        flint.ctx.prec = before


def tensors_of(raw: bytes) -> dict[str, np.ndarray]:
    """Every tensor of a safetensors file as float64, which holds all stored numbers exactly."""
    (size,) = struct.unpack("<Q", raw[:8])
    header, body, tensors = json.loads(raw[8 : 8 + size]), raw[8 + size :], {}
    for name, entry in header.items():
        if name != "__metadata__":
            start, end = entry["data_offsets"]
            numbers = np.frombuffer(body[start:end], WIDTHS[entry["dtype"]][0])
            if entry["dtype"] == "BF16":
                numbers = (numbers.astype(np.uint32) << 16).view(np.float32)
            tensors[name] = numbers.astype(np.float64).reshape(entry["shape"])
    return tensors


def tensor_bytes(raw: bytes, changed: dict[str, np.ndarray]) -> bytes:
    """The same file with the numbers of some tensors replaced (rounded to their stored type)."""
    (size,) = struct.unpack("<Q", raw[:8])
    header, body = json.loads(raw[8 : 8 + size]), bytearray(raw[8 + size :])
    for name, numbers in changed.items():
        entry = header[name]
        start, end = entry["data_offsets"]
        if entry["dtype"] == "BF16":
            words = (numbers.astype(np.float32).view(np.uint32) >> 16).astype("<u2")
        else:
            words = numbers.astype(WIDTHS[entry["dtype"]][0])
        body[start:end] = np.ascontiguousarray(words).tobytes()
    return raw[: 8 + size] + bytes(body)


def written(tensors: dict[str, np.ndarray], dtype: str) -> bytes:
    """A safetensors file of these tensors in the type of a configuration; masks are bytes."""
    word = {"float64": "F64", "float32": "F32", "bfloat16": "BF16"}[dtype]
    header, body = {}, b""
    for name, numbers in sorted(tensors.items()):
        own = "U8" if name.endswith(".attention.mask") else word
        if own == "BF16":
            words = (numbers.astype(np.float32).view(np.uint32) >> 16).astype("<u2")
        else:
            words = numbers.astype(WIDTHS[own][0])
        raw = np.ascontiguousarray(words).tobytes()
        header[name] = {"dtype": own, "shape": list(numbers.shape), "data_offsets": [len(body), len(body) + len(raw)]}
        body += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + body


def shapes(config: dict) -> dict[str, tuple[int, ...]]:
    """The tensors that docs/model.md calls for."""
    n, d, source = config["input"]["tokens"], config["width"], config["input"]
    total = n + config["registers"]
    found: dict[str, tuple[int, ...]] = {"readout.weight": (d, config["outputs"]), "readout.bias": (config["outputs"],)}
    if source["kind"] == "continuous":
        found |= {"embed.weight": (source["width"], d), "embed.bias": (d,)}
    else:
        found["embed.weight"] = (source["vocabulary"], d)
    if config["registers"]:
        found["registers"] = (config["registers"], d)
    if config["code"]["kind"] == "table":
        found["code.table"] = (n, d)
    for b, block in enumerate(config["blocks"]):
        name, attention, ffn = f"blocks.{b}", block["attention"], block["ffn"]
        if attention is not None:
            for g, group in enumerate(attention["heads"]):
                p, count, key, value_ = f"{name}.attention.groups.{g}", group["count"], group["key"], group["value"]
                found |= {f"{p}.query": (count, d, key), f"{p}.key": (count, d, key), f"{p}.value": (count, d, value_)}
                found[f"{p}.output"] = (count, value_, d)
                if attention["bias"]:
                    found |= {
                        f"{p}.query_bias": (count, key),
                        f"{p}.key_bias": (count, key),
                        f"{p}.value_bias": (count, value_),
                    }
                if attention["score_bias"] != "none":
                    found[f"{p}.score_bias"] = (
                        (count, total, total) if attention["score_bias"] == "table" else (count, 2 * total - 1)
                    )
            if attention["bias"]:
                found[f"{name}.attention.output_bias"] = (d,)
            if attention["mask"] == "table":
                found[f"{name}.attention.mask"] = (total, total)
        if ffn is not None:
            m = ffn["width"]
            found |= {
                f"{name}.ffn.up": (d, m),
                f"{name}.ffn.up_bias": (m,),
                f"{name}.ffn.down": (m, d),
                f"{name}.ffn.down_bias": (d,),
            }
        for part, present in (("attention", attention), ("ffn", ffn)):
            if block["norm"] is not None and present is not None:
                found |= {f"{name}.norm.{part}.scale": (d,), f"{name}.norm.{part}.shift": (d,)}
    return found


class Model:
    """A stored transformer: `config` as JSON data, `tensors` as float64 arrays."""

    def __init__(self, config: dict, tensors: dict[str, np.ndarray]):
        self.config, self.tensors = config, tensors
        self._sparse: dict[tuple, list] = {}
        self._vectors: dict[tuple, list] = {}

    @staticmethod
    def of(files: dict[str, bytes]) -> Model:
        return Model(json.loads(files["config.json"]), tensors_of(files["model.safetensors"]))

    @property
    def rational(self) -> bool:
        """Whether every number of a run is a rational one, and none of them has more digits than a ball."""
        config = self.config
        kinds = [block["attention"]["kind"] for block in config["blocks"] if block["attention"]]
        if config["loops"] * sum(kind in ("linear", "relu") for kind in kinds) > 3:  # each triples the digits
            return False
        if config["code"]["kind"] not in ("none", "one-hot", "table"):
            return False
        for block in config["blocks"]:
            attention = block["attention"]
            if block["norm"] is not None or (block["ffn"] is not None and block["ffn"]["kind"] == "gelu"):
                return False
            if attention is not None and (attention["kind"] == "softmax" or attention["scale"] != "unit"):
                return False
        return True

    def sparse(self, name: str, *lead: int) -> list[list[tuple[int, object]]]:
        """The columns of a matrix: for each output the inputs with a weight that is not zero."""
        key = (name, *lead, self.rational)
        if key not in self._sparse:
            matrix = self.tensors[name][lead]
            number = _rational if self.rational else arb
            rows, columns = matrix.shape
            self._sparse[key] = [
                [(int(i), number(float(matrix[i, j]))) for i in np.nonzero(matrix[:, j])[0]] for j in range(columns)
            ]
        return self._sparse[key]


# --- many inputs in floats, to look for violations -------------------------------------------------


def floats(model: Model, inputs: np.ndarray, dtype=np.float64, stream_only: bool = False) -> np.ndarray:
    """Outputs of a batch: rows of numbers (x1, ..., xD) or of token ids; (batch, outputs), or (batch, tokens * outputs).

    With `stream_only` the stream after the last block, (batch, registers and tokens, width).
    """
    config, t = model.config, {name: a.astype(dtype) for name, a in model.tensors.items()}
    with np.errstate(all="ignore"):
        stream = _embedded(config, t, inputs, dtype)
        for _ in range(config["loops"]):
            for b, block in enumerate(config["blocks"]):
                stream = _float_block(block, t, f"blocks.{b}", stream, dtype)
        if stream_only:
            return stream
        data = stream[:, config["registers"] :]
        kind = config["readout"]["kind"]
        if kind == "token":
            data = data[:, config["readout"]["token"]][:, None]
        elif kind == "register":
            data = stream[:, config["readout"]["token"]][:, None]
        elif kind in ("mean", "sum"):
            data = (data.mean if kind == "mean" else data.sum)(axis=1, keepdims=True)
        return (data @ t["readout.weight"] + t["readout.bias"]).reshape(len(inputs), -1)


def _embedded(config: dict, t: dict, inputs: np.ndarray, dtype) -> np.ndarray:
    if config["input"]["kind"] == "continuous":
        rows = inputs.astype(dtype).reshape(len(inputs), -1, config["input"]["width"])
        data = rows @ t["embed.weight"] + t["embed.bias"]
    else:
        data = t["embed.weight"][inputs.astype(int)]
    code = _float_code(config, t)
    if code is not None:
        data = data + code[: data.shape[1]].astype(dtype)
    if config["registers"]:
        data = np.concatenate([np.broadcast_to(t["registers"], (len(data), *t["registers"].shape)), data], axis=1)
    return data


def _float_code(config: dict, t: dict) -> np.ndarray | None:
    code, n, d = config["code"], config["input"]["tokens"], config["width"]
    if code["kind"] == "none":
        return None
    if code["kind"] == "table":
        return t["code.table"]
    rows, at = np.zeros((n, d)), code["offset"]
    for position in range(n):
        for place, number in enumerate(_code_numbers(code, position, math.cos, math.sin, math.pi)):
            if number is not None:
                rows[position, at + place] = float(number)
    return rows


def _code_numbers(code: dict, t: int, cos, sin, pi) -> list:
    """What the code of position t adds from its offset on."""
    if code["kind"] == "one-hot":
        return [None] * t + [1]
    if code["kind"] == "circle":
        angle = 2 * pi * t / code["period"]
        return [cos(angle), sin(angle)]
    width, numbers = code["width"], []
    for i in range(width):
        exponent = Fraction(2 * (i // 2), width)
        base = arb(10000) if isinstance(pi, arb) else 10000.0
        power = base ** (
            arb(fmpq(exponent.numerator, exponent.denominator)) if isinstance(pi, arb) else float(exponent)
        )
        numbers.append((sin if i % 2 == 0 else cos)(t / power))
    return numbers


def _float_block(block: dict, t: dict, name: str, h: np.ndarray, dtype) -> np.ndarray:
    attention, ffn, norm = block["attention"], block["ffn"], block["norm"]

    def normed(x: np.ndarray, part: str, place: str) -> np.ndarray:
        if norm is None or norm["place"] != place:
            return x
        centred = x - x.mean(axis=-1, keepdims=True)
        centred = centred / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + dtype(norm["epsilon"]))
        return centred * t[f"{name}.norm.{part}.scale"] + t[f"{name}.norm.{part}.shift"]

    if attention is not None:
        out = _float_attention(attention, t, f"{name}.attention", normed(h, "attention", "pre"), dtype)
        h = normed(h + out if attention["residual"] else out, "attention", "post")
    if ffn is not None:
        u = normed(h, "ffn", "pre")
        hidden = u @ t[f"{name}.ffn.up"] + t[f"{name}.ffn.up_bias"]
        if ffn["kind"] == "relu":
            hidden = np.maximum(hidden, 0)
        elif ffn["kind"] == "gelu":
            hidden = hidden * (0.5 + 0.5 * np.vectorize(math.erf)(hidden / math.sqrt(2)))
        out = hidden @ t[f"{name}.ffn.down"] + t[f"{name}.ffn.down_bias"]
        h = normed(h + out if ffn["residual"] else out, "ffn", "post")
    return h


def _float_attention(attention: dict, t: dict, name: str, u: np.ndarray, dtype) -> np.ndarray:
    n, out = u.shape[1], np.zeros_like(u)
    allowed = np.ones((n, n), bool)
    if attention["mask"] == "causal":
        allowed = np.tri(n, dtype=bool)
    elif attention["mask"] == "table":
        allowed = t[f"{name}.mask"][:n, :n] != 0
    for g, group in enumerate(attention["heads"]):
        p = f"{name}.groups.{g}"
        for k in range(group["count"]):
            side = {}
            for role in ("query", "key", "value"):
                side[role] = u @ t[f"{p}.{role}"][k]
                if attention["bias"]:
                    side[role] = side[role] + t[f"{p}.{role}_bias"][k]
            scores = side["query"] @ side["key"].swapaxes(1, 2)
            if attention["scale"] != "unit":
                scores = scores / np.sqrt(dtype(group["key"]))
            if attention["score_bias"] != "none":
                scores = scores + _bias_table(attention, t[f"{p}.score_bias"][k], n)
            out = out + _float_weights(attention["kind"], scores, allowed) @ side["value"] @ t[f"{p}.output"][k]
    return out + t[f"{name}.output_bias"] if attention["bias"] else out


def _bias_table(attention: dict, bias: np.ndarray, n: int) -> np.ndarray:
    if attention["score_bias"] == "table":
        return bias[:n, :n]
    zero = (len(bias) - 1) // 2
    return bias[np.arange(n)[:, None] - np.arange(n)[None, :] + zero]


def _float_weights(kind: str, scores: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    if kind in ("linear", "relu"):
        return np.where(allowed, np.maximum(scores, 0) if kind == "relu" else scores, 0)
    scores = np.where(allowed, -np.abs(scores) if kind == "nearest" else scores, -np.inf)
    top = scores.max(axis=-1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0)
    weights = np.exp(scores - top) if kind == "softmax" else (scores >= top - 1e-12).astype(scores.dtype)
    total = weights.sum(axis=-1, keepdims=True)
    return weights / np.where(total == 0, 1, total)


# --- one input exactly -----------------------------------------------------------------------------


def _rational(x: float) -> fmpq:
    return _fmpq(Fraction(x))


def _fmpq(x: Fraction) -> fmpq:
    return fmpq(x.numerator, x.denominator)


def exact(model: Model, inputs: list[Fraction]) -> list:
    """All outputs at one input, token after token: rationals, or balls of 700 bits."""
    with precisely():
        return _Exact(model).run(inputs)


def exact_stream(model: Model, inputs: list[Fraction]) -> list[list]:
    """The stream after the last block, registers first."""
    with precisely():
        return _Exact(model).stream(inputs)


class _Exact:
    """The forward pass in one kind of numbers."""

    def __init__(self, model: Model):
        self.model, self.config, self.rational = model, model.config, model.rational
        self.zero = fmpq(0) if self.rational else arb(0)

    def number(self, x) -> fmpq | arb:
        if isinstance(x, float) and not self.rational:
            return arb(x)
        value = _fmpq(Fraction(x))
        return value if self.rational else arb(value)

    def vector(self, name: str, *lead: int) -> list:
        known, key = self.model._vectors, (name, *lead)
        if key not in known:
            known[key] = [self.number(x) for x in self.model.tensors[name][lead].tolist()]
        return known[key]

    def times(self, row: list, name: str, *lead: int) -> list:
        return [sum((row[i] * w for i, w in column), self.zero) for column in self.model.sparse(name, *lead)]

    def stream(self, inputs: list[Fraction]) -> list[list]:
        config = self.config
        stream = [self.vector("registers", r) for r in range(config["registers"])]
        stream += [self.plus(row, self.code(t)) for t, row in enumerate(self.embedded(inputs))]
        for _ in range(config["loops"]):
            for b, block in enumerate(config["blocks"]):
                stream = self.block(block, f"blocks.{b}", stream)
        return stream

    def run(self, inputs: list[Fraction]) -> list:
        config, stream = self.config, self.stream(inputs)
        data, kind = stream[config["registers"] :], config["readout"]["kind"]
        if kind in ("token", "register"):
            data = [(data if kind == "token" else stream)[config["readout"]["token"]]]
        elif kind in ("mean", "sum"):
            total = [sum(column, self.zero) for column in zip(*data, strict=True)]
            data = [[x / len(data) for x in total] if kind == "mean" else total]
        bias = self.vector("readout.bias")
        return [x for row in data for x in self.plus(self.times(row, "readout.weight"), bias)]

    @staticmethod
    def plus(row: list, other: list) -> list:
        return [a + b for a, b in zip(row, other, strict=True)]

    def embedded(self, inputs: list[Fraction]) -> list[list]:
        source = self.config["input"]
        if source["kind"] == "ids":
            return [self.vector("embed.weight", int(x)) for x in inputs]
        numbers = [self.number(x) for x in inputs]
        rows = [numbers[i : i + source["width"]] for i in range(0, len(numbers), source["width"])]
        return [self.plus(self.times(row, "embed.weight"), self.vector("embed.bias")) for row in rows]

    def code(self, t: int) -> list:
        code, row = self.config["code"], [self.zero] * self.config["width"]
        if code["kind"] == "table":
            return self.vector("code.table", t)
        if code["kind"] != "none":
            numbers = _code_numbers(code, t, lambda x: arb(x).cos(), lambda x: arb(x).sin(), arb.pi())
            for place, number in enumerate(numbers):
                if number is not None:
                    row[code["offset"] + place] = self.number(1) if code["kind"] == "one-hot" else number
        return row

    def block(self, block: dict, name: str, h: list[list]) -> list[list]:
        attention, ffn, norm = block["attention"], block["ffn"], block["norm"]

        def normed(rows: list[list], part: str, place: str) -> list[list]:
            return rows if norm is None or norm["place"] != place else [
                self.norm(row, norm["epsilon"], f"{name}.norm.{part}") for row in rows
            ]  # fmt: skip

        if attention is not None:
            out = self.attention(attention, f"{name}.attention", normed(h, "attention", "pre"))
            h = [self.plus(a, b) for a, b in zip(h, out, strict=True)] if attention["residual"] else out
            h = normed(h, "attention", "post")
        if ffn is not None:
            out = [self.ffn(ffn["kind"], f"{name}.ffn", row) for row in normed(h, "ffn", "pre")]
            h = [self.plus(a, b) for a, b in zip(h, out, strict=True)] if ffn["residual"] else out
            h = normed(h, "ffn", "post")
        return h

    def norm(self, row: list, epsilon: float, name: str) -> list:
        mean = sum(row, self.zero) / len(row)
        centred = [x - mean for x in row]
        variance = sum((x * x for x in centred), self.zero) / len(row)
        root = (variance + self.number(epsilon)).sqrt()
        scale, shift = self.vector(f"{name}.scale"), self.vector(f"{name}.shift")
        return [x / root * a + b for x, a, b in zip(centred, scale, shift, strict=True)]

    def ffn(self, kind: str, name: str, row: list) -> list:
        hidden = self.plus(self.times(row, f"{name}.up"), self.vector(f"{name}.up_bias"))
        if kind == "relu":
            hidden = [self.positive(x) for x in hidden]
        elif kind == "gelu":
            hidden = [x * (1 + (x / arb(2).sqrt()).erf()) / 2 for x in hidden]
        return self.plus(self.times(hidden, f"{name}.down"), self.vector(f"{name}.down_bias"))

    def positive(self, x):
        return max(x, self.zero) if self.rational else x.nonnegative_part()

    def attention(self, attention: dict, name: str, u: list[list]) -> list[list]:
        n, out = len(u), [[self.zero] * len(u[0]) for _ in u]
        for g, group in enumerate(attention["heads"]):
            p = f"{name}.groups.{g}"
            for k in range(group["count"]):
                side = {role: [self.times(row, f"{p}.{role}", k) for row in u] for role in ("query", "key", "value")}
                if attention["bias"]:
                    for role, rows in side.items():
                        bias = self.vector(f"{p}.{role}_bias", k)
                        side[role] = [self.plus(row, bias) for row in rows]
                table = None
                if attention["score_bias"] != "none":
                    table = _bias_table(attention, self.model.tensors[f"{p}.score_bias"][k], n)
                for i in range(n):
                    keys = self.allowed(attention, name, i, n)
                    scores = [sum((a * b for a, b in zip(side["query"][i], side["key"][j], strict=True)), self.zero)
                              for j in keys]  # fmt: skip
                    if attention["scale"] != "unit":
                        scores = [s / arb(group["key"]).sqrt() for s in scores]
                    if table is not None:
                        scores = [s + self.number(float(table[i, j])) for s, j in zip(scores, keys, strict=True)]
                    weights = self.weights(attention["kind"], scores)
                    mixed = [self.zero] * group["value"]
                    for w, j in zip(weights, keys, strict=True):
                        mixed = [m + w * v for m, v in zip(mixed, side["value"][j], strict=True)]
                    out[i] = self.plus(out[i], self.times(mixed, f"{p}.output", k))
        if attention["bias"]:
            bias = self.vector(f"{name}.output_bias")
            out = [self.plus(row, bias) for row in out]
        return out

    def allowed(self, attention: dict, name: str, i: int, n: int) -> list[int]:
        if attention["mask"] == "causal":
            return list(range(i + 1))
        if attention["mask"] == "table":
            return [j for j in range(n) if self.model.tensors[f"{name}.mask"][i, j] != 0]
        return list(range(n))

    def weights(self, kind: str, scores: list) -> list:
        if kind == "linear" or not scores:
            return scores
        if kind == "relu":
            return [self.positive(s) for s in scores]
        if kind == "softmax":
            top = max(scores, key=lambda s: s.mid())
            powers = [(s - top).exp() for s in scores]
            total = sum(powers, arb(0))
            return [p / total for p in powers]
        scores = [-abs(s) for s in scores] if kind == "nearest" else scores
        best = scores[0]
        for s in scores[1:]:
            if not (s == best or s > best or s < best):
                raise Undecided
            best = s if s > best else best
        chosen = [not s < best for s in scores]  # no two are left undecided
        return [self.number(Fraction(int(c), sum(chosen))) for c in chosen]


# --- formulas --------------------------------------------------------------------------------------


class Singular(Exception):
    """The formula has no value at the point."""


def value(program: dict, point: list[Fraction]) -> list[arb]:
    """Every output of a stored program at a rational point, in balls of 700 bits; `Singular` where it has no value."""
    with precisely():
        variables = [arb(_fmpq(x)) for x in point]
        needed = _Lazy(program["nodes"], variables)
        return [needed[o] for o in program["outputs"]]


class _Lazy:
    """Nodes evaluated when they are asked for, so that the branch that `where` does not choose is never looked at."""

    def __init__(self, nodes: list, variables: list[arb]):
        self.nodes, self.variables, self.known = nodes, variables, {}

    def __getitem__(self, place: int) -> arb:
        if place not in self.known:
            stack = [place]
            while stack:  # without recursion: programs may be long
                node = self.nodes[stack[-1]]
                missing = [a for a in self.read(node) if a not in self.known]
                if missing:
                    stack.extend(missing)
                else:
                    here = stack.pop()
                    if here not in self.known:
                        self.known[here] = self.node(node)
        return self.known[place]

    def read(self, node: list) -> list[int]:
        name, *rest = node
        if name in ("var", "const"):
            return []
        if name == "pow":
            return [rest[0]]
        if name != "where":
            return rest
        comparison, a, b, x, y = rest
        if a not in self.known or b not in self.known:
            return [a, b]
        return [x if _less(comparison, self.known[a], self.known[b]) else y]

    def node(self, node: list) -> arb:
        name, *rest = node
        if name == "var":
            return self.variables[rest[0]]
        if name == "const":
            named = {"pi": arb.pi, "e": arb.const_e}
            return named[rest[0]]() if rest[0] in named else arb(_fmpq(Fraction(rest[0])))
        if name == "where":
            comparison, a, b, x, y = rest
            return self.known[x if _less(comparison, self.known[a], self.known[b]) else y]
        if name == "pow":
            result = arb(1)
            for _ in range(rest[1]):
                result = result * self.known[rest[0]]
            return result
        return _operation(name, *(self.known[a] for a in rest))


def _less(comparison: str, a: arb, b: arb) -> bool:
    true, false = (a < b, a >= b) if comparison == "lt" else (a <= b, a > b)
    if not (true or false):
        raise Undecided
    return bool(true)


def _operation(name: str, a: arb, b: arb | None = None) -> arb:
    simple = {"neg": lambda: -a, "abs": lambda: abs(a), "add": lambda: a + b, "sub": lambda: a - b, "mul": lambda: a * b,
              "min": lambda: a.min(b), "max": lambda: a.max(b)}  # fmt: skip
    if name in simple:
        return simple[name]()
    if name == "div":
        if b.is_zero():
            raise Singular
        result = a / b
    else:
        if (name == "log" and a <= 0) or (name == "sqrt" and a < 0):
            raise Singular
        result = getattr(a, name)()
    if not result.is_finite():
        raise Undecided
    return result


def end(stored: str | list) -> arb:
    """The end of an interval as `target.json` writes it: a rational, or the nodes of a program without variables."""
    nodes = [["const", stored]] if isinstance(stored, str) else stored
    (number,) = value({"nodes": nodes, "outputs": [len(nodes) - 1]}, [])
    return number


def inside(domain: list[list], point: list[Fraction]) -> bool:
    """Whether a rational point certainly lies in the closed box."""
    with precisely():
        numbers = [arb(_fmpq(x)) for x in point]
        return all(bool(end(low) <= x) and bool(x <= end(high)) for (low, high), x in zip(domain, numbers, strict=True))


def float_values(program: dict, points: np.ndarray) -> np.ndarray:
    """The program at many points in floats, to look for violations; NaN where something is odd."""
    erf = np.vectorize(math.erf, otypes=[float])
    known: list[np.ndarray] = []
    with np.errstate(all="ignore"):
        for name, *rest in program["nodes"]:
            if name == "var":
                known.append(points[:, rest[0]])
            elif name == "const":
                number = {"pi": math.pi, "e": math.e}.get(rest[0])
                known.append(np.full(len(points), float(Fraction(rest[0])) if number is None else number))
            elif name == "pow":
                known.append(known[rest[0]] ** rest[1])
            elif name == "where":
                comparison, a, b, x, y = rest
                less = known[a] < known[b] if comparison == "lt" else known[a] <= known[b]
                known.append(np.where(less, known[x], known[y]))
            else:
                functions = {"neg": np.negative, "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
                             "min": np.minimum, "max": np.maximum, "atan": np.arctan, "erf": erf}  # fmt: skip
                known.append(functions.get(name, getattr(np, name, None))(*(known[a] for a in rest)))
    return np.stack([known[o] for o in program["outputs"]], axis=1)
