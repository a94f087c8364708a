"""Taylor forms of the checker against values of 200 digits: no value may lie outside of what a form says.

Formulas are drawn over the whole language, boxes from points to wide ones, orders from 0 to 8. Points are the centre,
corners, random ones, and the worst of many by floats, which is where the remainder is tight. `violated` has no
tolerance.
"""

from __future__ import annotations

import ast
import json
import random
from fractions import Fraction

import numpy as np
from _soundness_exact import (
    Model,
    Singular,
    Undecided,
    _fmpq,
    _less,
    _operation,
    exact,
    float_values,
    floats,
    precisely,
    value,
    written,
)
from _soundness_kernel import KERNEL, few_bits, rounded_to
from _soundness_readers import READERS
from flint import arb, fmpq

UNARY = ("neg", "sqrt", "exp", "log", "sin", "cos", "tan", "tanh", "atan", "erf", "abs")
BINARY = ("add", "sub", "mul", "div", "min", "max")


def draw_program(rng: random.Random, inputs: int) -> dict:
    """A formula of a few operations."""
    nodes: list[list] = [["var", i] for i in range(inputs)]
    nodes.append(["const", rng.choice(("1", "-1", "1/2", "3", "pi", "e", "0", "1/10", "-7/3"))])
    for _ in range(rng.randint(1, 7)):
        last = len(nodes) - 1

        def one(last: int = last) -> int:
            return last if rng.random() < 0.6 else rng.randrange(last + 1)

        kind = rng.random()
        if kind < 0.4:
            nodes.append([rng.choice(UNARY), one()])
        elif kind < 0.8:
            nodes.append([rng.choice(BINARY), one(), one()])
        elif kind < 0.9:
            nodes.append(["pow", one(), rng.choice((0, 1, 2, 3, 5))])
        elif kind < 0.95:
            nodes.append(["where", rng.choice(("lt", "le")), one(), one(), one(), one()])
        else:  # what has no value somewhere may be hidden in a condition that is always true
            nodes.append(["pow", one(), 0])
            nodes.append(["const", "2"])
            nodes.append(["where", "lt", len(nodes) - 2, len(nodes) - 1, one(), one()])
    return {"inputs": inputs, "nodes": nodes, "outputs": [len(nodes) - 1]}


def draw_box(rng: random.Random, inputs: int) -> tuple[list[float], list[float]]:
    centre = [rng.choice((rng.uniform(-2, 2), rng.uniform(0, 3), float(rng.randint(-2, 2)))) for _ in range(inputs)]
    radius = [rng.choice((0.0, 10 ** rng.uniform(-9, 0), 10 ** rng.uniform(-3, 0.5), 0.5, 1.0)) for _ in range(inputs)]
    return centre, radius


def places(rng: random.Random, inputs: int, residual) -> list[list[float]]:
    """Places e in [-1, 1]^D, as exact doubles."""
    chosen = [[float(rng.choice((-1, 1))) for _ in range(inputs)], [rng.uniform(-1, 1) for _ in range(inputs)]]
    many = np.array([[rng.uniform(-1, 1) for _ in range(inputs)] for _ in range(30)])
    with np.errstate(all="ignore"):
        sizes = np.nan_to_num(residual(many), nan=0.0, posinf=0.0)
    chosen.append(many[int(sizes.argmax())].tolist())
    if rng.random() < 0.3:
        chosen.append([0.0] * inputs)
    return chosen


def violated(form, e: list[float], found: arb | None) -> str:
    """Why a value (None: there is none) contradicts a form at the place e; empty if it does not."""
    if form.singular:
        return ""
    if found is None:
        return "there is no value, and the form does not say so"
    with precisely():
        total = arb(0)
        for i, c in form.coef.items():
            term = c
            for t, power in zip(e, form.table.monomials[i], strict=True):
                for _ in range(power):
                    term = term * arb(t)
            total = total + term
        if abs(found - total) > form.rem:
            return (
                f"at e={e} the value {found.str(20)} is not within {form.rem.str(5)} of the polynomial {total.str(20)}"
            )
        if found < form.low or found > form.high:
            return f"at e={e} the value {found.str(20)} is outside [{form.low.str(20)}, {form.high.str(20)}]"
    return ""


def polynomial(form, many: np.ndarray) -> np.ndarray:
    total = np.zeros(len(many))
    for i, c in form.coef.items():
        total = total + float(c.mid()) * np.prod(many ** np.array(form.table.monomials[i]), axis=1)
    return total


def point_of(centre: list[float], radius: list[float], e: list[float]) -> list[Fraction]:
    return [Fraction(c) + Fraction(r) * Fraction(t) for c, r, t in zip(centre, radius, e, strict=True)]


def formula(rng: random.Random) -> str:
    """One formula on one box."""
    from certiformer.kernel.balls import Box
    from certiformer.kernel.taylor import target_forms
    from certiformer.target import Program

    inputs = rng.choice((1, 1, 2, 3))
    program, (centre, radius), order = (
        draw_program(rng, inputs),
        draw_box(rng, inputs),
        rng.choice((0, 1, 2, 3, 4, 6, 8)),
    )
    order = min(order, 4) if inputs > 1 else order
    box = Box(tuple(map(arb, centre)), tuple(map(arb, radius)))
    bits = few_bits(rng)
    with rounded_to(bits):
        (form,) = target_forms(Program.from_json(program), box, order)

    def residual(many: np.ndarray) -> np.ndarray:
        return np.abs(float_values(program, np.array(centre) + np.array(radius) * many)[:, 0] - polynomial(form, many))

    for e in places(rng, inputs, residual) if not form.singular else []:
        try:
            found = value(program, point_of(centre, radius, e))[0]
        except Singular:
            found = None
        except Undecided:
            continue
        wrong = violated(form, e, found)
        if wrong:
            return f"{program} on {centre} +- {radius}, order {order}, {bits} bits: {wrong}"
    return ""


def ball(rng: random.Random) -> str:
    """A formula in balls at one point, as the ends of a box and witnesses are evaluated."""
    from certiformer.kernel.balls import ConstantAlgebra
    from certiformer.kernel.balls import ball as ball_of
    from certiformer.kernel.programs import Program, fold

    program, x, bits = draw_program(rng, 1), Fraction(rng.randint(-20, 20), rng.choice((1, 3, 8))), few_bits(rng)
    with rounded_to(bits):
        (given,) = fold(Program.from_json(program), [ball_of(x)], ConstantAlgebra())
    try:
        wanted = value(program, [x])[0]
    except Singular:
        return f"{program} has no value at {x}, and the ball is {given}" if given.is_finite() else ""
    except Undecided:
        return ""
    wrong = given.is_finite() and not given.overlaps(wanted)
    return f"{program} at {x} with {bits} bits is in {given}, and is {wanted.str(20)}" if wrong else ""


def derivatives(rng: random.Random) -> str:
    """The series of a formula on a box: where it calls it smooth, it has values that change as it says."""
    from certiformer.axioms.derivatives import series
    from certiformer.kernel.balls import working_precision
    from certiformer.target import Program

    working_precision()
    inputs = rng.choice((1, 1, 2))
    program, (centre, radius) = draw_program(rng, inputs), draw_box(rng, inputs)
    values = [arb(c, r) for c, r in zip(centre, radius, strict=True)]
    (found,) = series(Program.from_json(program), values, 2)
    e = [rng.choice((-1.0, 1.0, rng.uniform(-1, 1))) for _ in range(inputs)]
    step = [rng.uniform(-1, 1) * (1 - abs(t)) for t in e] if rng.random() < 0.5 else [-2 * t for t in e]
    far = [a + b for a, b in zip(e, step, strict=True)]
    middle = [(Fraction(a) + Fraction(b)) / 2 for a, b in zip(e, far, strict=True)]  # exactly: a line must not bend
    places_ = [e, middle, far]
    at = []
    for place in places_:
        if any(abs(t) > 1 for t in place):
            return ""
        try:
            at.append(value(program, point_of(centre, radius, place))[0])
        except Singular:
            at.append(None)
        except Undecided:
            return ""
    name = f"{program} on {centre} +- {radius}"
    with precisely():
        moved = [
            arb(_fmpq((Fraction(b) - Fraction(a)) * Fraction(r))) for a, b, r in zip(e, places_[2], radius, strict=True)
        ]
        if found.smooth < 1:
            return ""
        if any(v is None for v in at):
            return f"{name}: the series says that it is smooth, and there is no value at one of {places_}"
        if any(not found.value.overlaps(v) for v in at) and found.value.is_finite():
            return f"{name}: a value lies outside of the series'"
        most = sum((g.abs_upper() * abs(m) for g, m in zip(found.grad, moved, strict=True)), arb(0))
        if abs(at[2] - at[0]) > most:
            return f"{name}: it changes by more than the slopes of the series allow between {e} and {places_[2]}"
        if found.smooth == 2:
            bend = arb(0)
            for (i, j), size in found.hess.items():
                bend = bend + (1 if i == j else 2) * size.abs_upper() * abs(moved[i] * moved[j])
            if abs(at[2] - 2 * at[1] + at[0]) > bend / 4:
                return f"{name}: it bends by more than the series allows between {e} and {places_[2]}"
    return ""


KINDS = ("softmax", "softmax", "softmax", "linear", "relu")


def draw_network(rng: random.Random, kinds: tuple[str, ...] = KINDS, ids: bool = False) -> Model:
    """A small transformer with random weights, of any kind of input, code, attention, norm and read-out."""
    tokens, size, width = rng.randint(1, 3), rng.randint(1, 2), rng.randint(2, 4)
    registers, outputs = rng.choice((0, 0, 1, 3)), rng.randint(1, 2)
    numbers = np.random.default_rng(rng.getrandbits(32))
    scale = rng.choice((0.5, 1.0, 2.0))
    tensors: dict[str, np.ndarray] = {}

    def tensor(name: str, *shape: int) -> None:
        tensors[name] = np.round(numbers.normal(0, scale, shape) * 64) / 64

    tensor("embed.weight", size + 1 if ids else size, width)
    if not ids:
        tensor("embed.bias", width)
    if registers:
        tensor("registers", registers, width)
    at = rng.randint(0, max(width - tokens, 0))
    codes = [
        {"kind": "none"},
        {"kind": "circle", "offset": rng.randint(0, width - 2), "period": rng.randint(1, 5)},
        {"kind": "table"},
        {"kind": "sinusoidal", "offset": 0, "width": width},
        {"kind": "sinusoidal", "offset": 1, "width": width - 1},
        {"kind": "one-hot", "offset": at} if tokens <= width else {"kind": "none"},
    ]
    code = rng.choice(codes)
    if code["kind"] == "table":
        tensor("code.table", tokens, width)
    total, blocks = tokens + registers, []
    for b in range(rng.choice((0, 1, 1, 1, 2))):
        attention, ffn, norm = None, None, None
        if rng.random() < 0.8:
            groups = [{"count": rng.randint(1, 2), "key": rng.randint(1, 3), "value": rng.randint(1, 2)}
                      for _ in range(rng.choice((1, 1, 2)))]  # fmt: skip
            attention = {
                "kind": rng.choice(kinds), "heads": groups, "bias": rng.random() < 0.3,
                "scale": rng.choice(("unit", "inverse-sqrt")), "mask": rng.choice(("none", "none", "causal", "table")),
                "score_bias": rng.choice(("none", "none", "table", "toeplitz")), "residual": rng.random() < 0.8,
            }  # fmt: skip
            for g, group in enumerate(groups):
                p, key, v, count = f"blocks.{b}.attention.groups.{g}", group["key"], group["value"], group["count"]
                for role, second in (("query", key), ("key", key), ("value", v)):
                    tensor(f"{p}.{role}", count, width, second)
                    if attention["bias"]:
                        tensor(f"{p}.{role}_bias", count, second)
                tensor(f"{p}.output", count, v, width)
                if attention["score_bias"] != "none":
                    table = (total, total) if attention["score_bias"] == "table" else (2 * total - 1,)
                    tensor(f"{p}.score_bias", count, *table)
            if attention["bias"]:
                tensor(f"blocks.{b}.attention.output_bias", width)
            if attention["mask"] == "table":
                tensors[f"blocks.{b}.attention.mask"] = numbers.integers(0, 2, (total, total), np.uint8)
        if attention is None or rng.random() < 0.6:
            same = rng.random() < 0.3  # many units that look in one direction
            hidden = rng.randint(5, 9) if same else rng.randint(1, 4)
            ffn = {"kind": rng.choice(("relu", "gelu", "identity")), "width": hidden, "residual": rng.random() < 0.8}
            tensor(f"blocks.{b}.ffn.up", width, hidden)
            if same:
                tensors[f"blocks.{b}.ffn.up"] = np.repeat(tensors[f"blocks.{b}.ffn.up"][:, :1], hidden, axis=1)
            tensor(f"blocks.{b}.ffn.up_bias", hidden)
            tensor(f"blocks.{b}.ffn.down", hidden, width)
            tensor(f"blocks.{b}.ffn.down_bias", width)
        if rng.random() < 0.25:
            norm = {"kind": "layer", "place": rng.choice(("pre", "post")), "epsilon": rng.choice((1e-5, 0.125))}
            for part in ("attention", "ffn"):
                if (attention if part == "attention" else ffn) is not None:
                    tensor(f"blocks.{b}.norm.{part}.scale", width)
                    tensor(f"blocks.{b}.norm.{part}.shift", width)
        blocks.append({"attention": attention, "ffn": ffn, "norm": norm})
    tensor("readout.weight", width, outputs)
    tensor("readout.bias", outputs)
    readout = rng.choice(({"kind": "token", "token": tokens - 1}, {"kind": "mean"}, {"kind": "sum"}, {"kind": "all"},
                          {"kind": "register", "token": registers - 1} if registers else {"kind": "all"}))  # fmt: skip
    source = {"kind": "ids", "vocabulary": size + 1} if ids else {"kind": "continuous", "width": size}
    config = {
        "format": "certiformer-model-1", "dtype": "float64", "input": {**source, "tokens": tokens},
        "width": width, "registers": registers, "code": code, "blocks": blocks, "loops": rng.choice((1, 1, 2)),
        "readout": readout, "outputs": outputs,
    }  # fmt: skip
    return Model(config, tensors)


def network(rng: random.Random) -> str:
    """One random transformer on one box; also through `as_prototypes` where the checker takes that way."""
    from certiformer.errors import BadInput
    from certiformer.kernel import Refused
    from certiformer.kernel.balls import Box
    from certiformer.kernel.layers import as_prototypes
    from certiformer.kernel.problem import Network
    from certiformer.kernel.weights import Tensor, check_config

    model = draw_prototypes(rng) if rng.random() < 0.4 else draw_network(rng)
    config = check_config(model.config)
    tensors = {name: Tensor(t.shape, t.astype(float).ravel().tolist()) for name, t in model.tensors.items()}
    inputs = config["input"]["tokens"] * config["input"]["width"]
    centre, radius = draw_box(rng, inputs)
    order = rng.choice((0, 1, 2, 3)) if inputs < 4 else rng.choice((0, 1, 2))
    box = Box(tuple(map(arb, centre)), tuple(map(arb, radius)))
    bits = few_bits(rng)
    try:
        with rounded_to(bits):
            read = Network(model.config, tensors)
            function = as_prototypes(read) or read
            forms = function.restrict(box).forms(box, order)
    except (Refused, BadInput):
        return ""
    output = rng.randrange(len(forms))
    form = forms[output]

    def residual(many: np.ndarray) -> np.ndarray:
        points = np.array(centre) + np.array(radius) * many
        return np.abs(floats(model, points)[:, output] - polynomial(form, many))

    for e in places(rng, inputs, residual)[1:] if not form.singular else []:
        try:
            found = exact(model, point_of(centre, radius, e))[output]
        except Undecided:
            continue
        with precisely():
            found = arb(found) if isinstance(found, fmpq) else found
        wrong = violated(form, e, found) if found.is_finite() else ""
        if wrong:
            return f"{model.config} on {centre} +- {radius}, order {order}, {bits} bits: {wrong}"
    return ""


def point(rng: random.Random) -> str:
    """A random transformer, read from its bytes, at one point: the ball contains the value, and not much else."""
    from certiformer.kernel import Refused
    from certiformer.kernel.problem import PointNetwork
    from certiformer.kernel.weights import read_model

    ids = rng.random() < 0.4
    model = draw_network(rng, (*KINDS, "hard", "nearest", "relu", "linear"), ids)
    config, dtype = model.config, rng.choice(("float64", "float32", "bfloat16"))
    if dtype == "bfloat16":  # eight bits hold fewer numbers
        model = Model(config, {name: np.clip(np.round(t * 8), -255, 255) / 8 if "mask" not in name else t
                               for name, t in model.tensors.items()})  # fmt: skip
    if rng.random() < 0.2:  # magnitudes at which a sum in a fixed type would lose everything
        model.tensors["readout.weight"] = model.tensors["readout.weight"] * 2.0 ** rng.choice((-60, 60))
    config["dtype"], n = dtype, config["input"]["tokens"]
    x = [Fraction(rng.randrange(config["input"]["vocabulary"])) for _ in range(n)] if ids else [
        Fraction(rng.randint(-40, 40), rng.choice((1, 3, 16))) for _ in range(n * config["input"]["width"])]  # fmt: skip
    bits = few_bits(rng)
    with rounded_to(bits):
        stored, tensors = read_model(json.dumps(config).encode(), written(model.tensors, dtype))
        try:
            balls = PointNetwork(stored, tensors).values(tuple(x))
        except Refused:
            balls = None
        longer = (*x, *x)
        outside = (
            [(Fraction(1, 2),) * n, (Fraction(-1),) * n, (Fraction(config["input"]["vocabulary"]),) * n] if ids else []
        )
        for bad in (longer, tuple(x[:-1]), *outside):
            try:
                PointNetwork(stored, tensors).values(bad)
            except Refused:
                continue
            return f"{config} takes the point {bad}"
    attention = [b["attention"]["kind"] for b in config["blocks"] if b["attention"]]
    sure = bits == 96 and not {"hard", "nearest"} & set(attention)
    if balls is None:
        return (
            f"{config} at {[*map(str, x)]} is refused"
            if sure and None not in [b["norm"] for b in config["blocks"]]
            else ""
        )
    try:
        wanted = exact(model, x)
    except Undecided:
        return ""
    with precisely():
        for given, value_ in zip(balls, wanted, strict=True):
            value_ = arb(value_) if isinstance(value_, fmpq) else value_
            scale = max(1.0, float(np.abs(model.tensors["readout.weight"]).max()))
            wide = sure and abs(value_) < 1e6 * scale and given.rad() > 1e-8 * scale  # else every step may magnify
            if wide:  # large numbers that cancel on the way cost bits, and with more bits they do not
                with rounded_to(1000):
                    stored, tensors = read_model(json.dumps(config).encode(), written(model.tensors, dtype))
                    again = PointNetwork(stored, tensors).values(tuple(x))
                wide = max(ball.rad() for ball in again) > 1e-8 * scale
            if not given.overlaps(value_) or wide:
                return f"{config} at {[*map(str, x)]}, {bits} bits: {given} for {value_.str(20)}"
    return ""


def draw_prototypes(rng: random.Random) -> Model:
    """One data token that queries a list of registers: scores affine in the input, values constant."""
    d, rows, outputs = rng.randint(1, 2), rng.choice((2, 2, 5, 5, 8, 12, 12, 60)), 1
    width = 2 * d + 3 + outputs  # x | flag | centre | offset | value | out
    numbers = np.random.default_rng(rng.getrandbits(32))
    zeros = {
        "embed.weight": np.zeros((d, width)), "embed.bias": np.zeros(width), "registers": np.zeros((rows, width)),
        "blocks.0.attention.groups.0.query": np.zeros((1, width, d + 1)),
        "blocks.0.attention.groups.0.key": np.zeros((1, width, d + 1)),
        "blocks.0.attention.groups.0.value": np.zeros((1, width, outputs)),
        "blocks.0.attention.groups.0.output": np.zeros((1, outputs, width)),
        "readout.weight": np.zeros((width, outputs)), "readout.bias": np.round(numbers.normal(0, 1, outputs) * 8) / 8,
    }  # fmt: skip
    t = zeros
    t["embed.weight"][:, :d], t["embed.bias"][d] = np.eye(d), 1.0
    t["registers"][:, d + 1 : 2 * d + 1] = numbers.normal(0, rng.choice((1, 5, 30)), (rows, d))
    t["registers"][:, 2 * d + 1] = numbers.normal(0, 2, rows)
    t["registers"][:, 2 * d + 2] = numbers.normal(0, 1, rows)
    if rows > 48 and rng.random() < 0.5:  # one prototype, just too weak to be kept, is all that is lost
        t["registers"][:, d + 1 : 2 * d + 1], t["registers"][:, 2 * d + 1 :] = 0, 0
        lost = rng.choice((0, 0, rng.randrange(rows)))
        t["registers"][:, 2 * d + 1] = np.where(np.arange(rows) < rows // 2, -300.0, 0.0)
        t["registers"][lost, 2 * d + 1], t["registers"][lost, 2 * d + 2] = -rng.uniform(40.1, 45), rng.choice((-1, 1))
    t["blocks.0.attention.groups.0.query"][0, : d + 1, :] = np.eye(d + 1)
    t["blocks.0.attention.groups.0.key"][0, d + 1 : 2 * d + 2, :] = np.eye(d + 1)
    t["blocks.0.attention.groups.0.value"][0, 2 * d + 2, 0] = 1.0
    t["blocks.0.attention.groups.0.output"][0, 0, 2 * d + 3] = 1.0
    t["readout.weight"][2 * d + 3, 0] = 1.0
    first = rng.choice((None, None, None, "softmax", "linear", "relu", "hard", "nearest"))
    if first:  # a head whose choice, or whose sign, is certain near zero and not everywhere
        t |= {name.replace("blocks.0", "blocks.1"): t.pop(name) for name in list(t) if name.startswith("blocks.0")}
        t |= {f"blocks.0.attention.groups.0.{role}": np.zeros((1, width, 1)) for role in ("query", "key", "value")}
        t["blocks.0.attention.groups.0.query"][0, 0], t["blocks.0.attention.groups.0.query"][0, d] = -1.0, 2.0
        t["blocks.0.attention.groups.0.key"][0, d] = rng.choice((1.0, -1.0))
        t["blocks.0.attention.groups.0.value"][0, rng.choice((0, d))] = 1.0
        t["blocks.0.attention.groups.0.output"] = np.zeros((1, 1, width))
        t["blocks.0.attention.groups.0.output"][0, 0, 2 * d + 3] = 1.0
    attention = {"kind": "softmax", "heads": [{"count": 1, "key": d + 1, "value": outputs}], "bias": False, "scale": "unit",
                 "mask": "none", "score_bias": "none", "residual": True}  # fmt: skip
    config = {
        "format": "certiformer-model-1", "dtype": "float64", "input": {"kind": "continuous", "tokens": 1, "width": d},
        "width": width, "registers": rows, "code": {"kind": "none"}, "loops": 1, "outputs": outputs,
        "blocks": [{"attention": attention, "ffn": None, "norm": None}], "readout": {"kind": "token", "token": 0},
    }  # fmt: skip
    if first:
        before = {**attention, "kind": first, "heads": [{"count": 1, "key": 1, "value": 1}]}
        config["blocks"].insert(0, {"attention": before, "ffn": None, "norm": None})
    return Model(config, t)


def shown(rng: random.Random) -> str:
    """The text of a formula in a sentence, read by Python's own grammar, is the formula."""
    from certiformer.target import Program
    from certiformer.target.show import formula as text_of

    inputs = rng.choice((1, 2, 3))
    program = draw_program(rng, inputs)
    for node in program["nodes"]:
        if node[0] == "const":
            node[1] = rng.choice((node[1], str(Fraction(rng.randint(-99, 99), rng.choice((1, 2, 3, 7, 8, 10**17))))))
    (text,) = text_of(Program.from_json(program))
    if text.startswith("let "):
        return ""
    point = [Fraction(rng.randint(-20, 20), rng.choice((1, 3, 8))) for _ in range(inputs)]
    try:
        wanted = value(program, point)[0]
    except (Singular, Undecided):
        return ""
    try:
        read = _read_text(text, point)
    except Undecided:
        return ""
    with precisely():
        return (
            ""
            if read.overlaps(wanted)
            else f"{program} is shown as {text}, which is {read} at {[*map(str, point)]}, not {wanted}"
        )


def _read_text(text: str, point: list[Fraction]) -> arb:
    """A formula in Python's grammar at a point; numbers are what their decimals say."""
    names = {f"x{i + 1}": arb(_fmpq(x)) for i, x in enumerate(point)}

    def at(node: ast.expr) -> arb:
        if isinstance(node, ast.Constant):
            return arb(_fmpq(Fraction(ast.get_source_segment(text, node))))
        if isinstance(node, ast.Name):
            return names[node.id] if node.id in names else {"pi": arb.pi, "e": arb.const_e}[node.id]()
        if isinstance(node, ast.UnaryOp):
            return -at(node.operand)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            result, base = arb(1), at(node.left)
            for _ in range(node.right.value):
                result = result * base
            return result
        if isinstance(node, ast.BinOp):
            operation = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div"}[type(node.op)]
            return _operation(operation, at(node.left), at(node.right))
        name, arguments = node.func.id, node.args
        if name == "where":
            holds = arguments[0]
            comparison = "lt" if isinstance(holds.ops[0], ast.Lt) else "le"
            return at(arguments[1 if _less(comparison, at(holds.left), at(holds.comparators[0])) else 2])
        return _operation(name, *map(at, arguments))

    with precisely():
        return at(ast.parse(text, mode="eval").body)


FORMS = {
    "shown": shown,
    "balls": ball,
    "formulas": formula,
    "derivatives": derivatives,
    "networks": network,
    "points": point,
    **KERNEL,
    **READERS,
}
