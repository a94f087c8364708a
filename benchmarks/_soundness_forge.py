"""Forged folders: one honest folder changed so that its claim is false, re-sealed, with the certificate bent to fit.

A forger here knows the format and the proof. He moves a weight by just as much as breaks the claim, states an epsilon
just below the error, widens the box, changes a table, and then lowers bounds, merges leaves and turns the parameters of
theorems until a hasty checker would agree. `forge` returns a folder only when `_soundness_claims` has established that
it is false.
"""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

import _soundness_claims as claims
import numpy as np
from _soundness_exact import Singular, Undecided, shapes, tensor_bytes, tensors_of, written

Files = dict[str, bytes]
LEAF = 255


@dataclass(frozen=True)
class Forgery:
    """The files of a folder and why its claim is false; `outcome` is what a deceived checker would say."""

    files: Files
    why: str
    outcome: str = "proved"


# --- sealing ---------------------------------------------------------------------------------------


def canonical(data) -> bytes:
    return (json.dumps(data, sort_keys=True, indent=1, ensure_ascii=True, allow_nan=False) + "\n").encode("ascii")


def compact(data) -> bytes:
    return (json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True) + "\n").encode("ascii")


def sealed(files: Files, certificate: dict) -> Files:
    """The folder with every hash computed anew."""
    certificate = {name: entry for name, entry in certificate.items() if name != "sha256"}
    certificate["seals"] = {name: hashlib.sha256(files[name]).hexdigest() for name in certificate["seals"]}
    digest = hashlib.sha256(canonical(certificate)).hexdigest()
    return {**files, "certificate.json": canonical({**certificate, "sha256": digest})}


def decimal(value: Fraction, digits: int, up: bool = False) -> str:
    """Decimal text at most (or at least) the value."""
    context = Context(prec=digits, rounding=ROUND_CEILING if up else ROUND_FLOOR)
    return format(context.divide(Decimal(value.numerator), Decimal(value.denominator)), "f")


# --- weights ---------------------------------------------------------------------------------------


Change = Callable[[float], dict[str, np.ndarray]]


def weight_change(rng: random.Random, tensors: dict[str, np.ndarray]) -> Change:
    """A way to change the weights by a size that is still to be chosen."""
    names = [name for name, t in tensors.items() if t.size and not name.endswith(".mask")]
    name = rng.choice(names)
    t = tensors[name]
    nonzero = np.flatnonzero(t)
    kind = rng.random()
    place = int(rng.choice(nonzero)) if kind < 0.55 and len(nonzero) else rng.randrange(t.size)
    sign = rng.choice((-1.0, 1.0))
    if kind > 0.9 and t.ndim >= 1 and t.shape[0] > 1:  # two rows move into each other

        def mixed(size: float) -> dict[str, np.ndarray]:
            new, (a, b) = t.copy(), rows
            share = min(size, 1.0)
            new[a], new[b] = (1 - share) * t[a] + share * t[b], (1 - share) * t[b] + share * t[a]
            return {name: new}

        rows = rng.sample(range(t.shape[0]), 2)
        return mixed
    whole = 0.8 < kind <= 0.9
    unit = abs(float(t.reshape(-1)[place])) or float(np.abs(t).max()) or 1.0

    def moved(size: float) -> dict[str, np.ndarray]:
        new = t.copy().reshape(-1)
        if whole:
            new *= 1 + sign * size
        else:
            new[place] += sign * size * unit
        return {name: new.reshape(t.shape)}

    return moved


def bend_config(rng: random.Random, files: Files) -> Files:
    """Another architecture around the same weights: a norm, a head, a unit, a block, a bias, a mask, a loop more."""
    config = json.loads(files["config.json"])
    blocks = [block for block in config["blocks"] if block["attention"] or block["ffn"]]
    block = rng.choice(blocks) if blocks else None
    attention, ffn = (block["attention"], block["ffn"]) if block else (None, None)
    kind = rng.choice(("loops", "readout", "block", "register", "width", "outputs", *(("norm",) * 2 if block else ()),
                       *(("kind", "mask", "scale", "residual", "head", "bias", "score") if attention else ()),
                       *(("act", "unit", "flat") if ffn else ())))  # fmt: skip
    if kind == "loops":
        config["loops"] += 1
    elif kind == "readout":
        config["readout"] = rng.choice(
            ({"kind": "mean"}, {"kind": "sum"}, {"kind": "token", "token": 0}, {"kind": "all"})
        )
    elif kind == "block":
        extra = {"kind": rng.choice(("relu", "gelu", "identity")), "width": 1, "residual": True}
        config["blocks"].insert(rng.randint(0, len(config["blocks"])), {"attention": None, "ffn": extra, "norm": None})
    elif kind == "register":
        config["registers"] += 1
    elif kind in ("width", "outputs"):
        config[kind] += 1
    elif kind == "norm":
        block["norm"] = (
            None if block["norm"] else {"kind": "layer", "place": rng.choice(("pre", "post")), "epsilon": 1e-5}
        )
    elif kind == "kind":
        attention["kind"] = rng.choice(
            [k for k in ("softmax", "hard", "nearest", "linear", "relu") if k != attention["kind"]]
        )
    elif kind == "mask":
        attention["mask"] = rng.choice([m for m in ("none", "causal", "table") if m != attention["mask"]])
    elif kind == "scale":
        attention["scale"] = "unit" if attention["scale"] != "unit" else "inverse-sqrt"
    elif kind == "residual":
        attention["residual"] = not attention["residual"]
    elif kind == "head":
        rng.choice(attention["heads"])["count"] += 1
    elif kind == "bias":
        attention["bias"] = not attention["bias"]
    elif kind == "score":
        attention["score_bias"] = rng.choice([s for s in ("none", "table", "toeplitz") if s != attention["score_bias"]])
    elif kind == "act":
        ffn["kind"] = rng.choice([k for k in ("relu", "gelu", "identity") if k != ffn["kind"]])
    elif kind == "unit":
        ffn["width"] += 1
    elif kind == "flat":
        ffn["residual"] = not ffn["residual"]
    size, old = 10 ** rng.uniform(-4, 0.5), tensors_of(files["model.safetensors"])
    if kind == "block":  # the weights of later blocks move on with them
        place = next(i for i, part in enumerate(config["blocks"]) if part["ffn"] is extra)
        old = {_renumbered(name, place): t for name, t in old.items()}
    tensors = {name: _fitted(rng, name, shape, old.get(name), size) for name, shape in shapes(config).items()}
    return {**files, "config.json": canonical(config), "model.safetensors": written(tensors, config["dtype"])}


def _renumbered(name: str, place: int) -> str:
    if not name.startswith("blocks."):
        return name
    _, number, rest = name.split(".", 2)
    return f"blocks.{int(number) + (int(number) >= place)}.{rest}"


def _fitted(rng: random.Random, name: str, shape: tuple[int, ...], old: np.ndarray | None, size: float) -> np.ndarray:
    """The old numbers where they fit, new ones of the given size elsewhere."""
    if old is not None and old.shape == shape:
        return old
    noise = np.random.default_rng(rng.getrandbits(32))
    if name.endswith(".mask"):
        return noise.integers(0, 2, shape) | np.eye(shape[0], dtype=int)
    new = np.round(noise.normal(0, size, shape) * 1024) / 1024
    if name.endswith(".scale"):
        return new + 1
    if old is not None and old.ndim == len(shape):
        overlap = tuple(slice(0, min(a, b)) for a, b in zip(old.shape, shape, strict=True))
        new[overlap] = old[overlap]
    return new


# --- certificates ----------------------------------------------------------------------------------


def nodes_of(proof: dict) -> Iterator[dict]:
    yield proof
    for child in proof.get("children", ()):
        yield from nodes_of(child)


def lower_bounds(rng: random.Random, proof: dict, epsilon: Fraction) -> None:
    """State bounds that would be enough."""
    root = Fraction(proof["bound"])
    if root <= 0:
        return
    factor = epsilon / root * Fraction(rng.choice((1, 1, 1, 999, 500, 100)), 1000 if rng.random() < 0.5 else 1)
    factor = min(factor, Fraction(1))
    for node in nodes_of(proof):
        node["bound"] = decimal(max(Fraction(node["bound"]) * factor, Fraction(1, 10**300)), 12)


def bend_parameters(rng: random.Random, parameters) -> None:
    """Turn one number of a theorem's parameters, anywhere."""
    places = []

    def walk(data) -> None:
        for key, entry in data.items() if isinstance(data, dict) else enumerate(data):
            if isinstance(entry, (dict, list)):
                walk(entry)
            else:
                places.append((data, key))

    walk(parameters)
    if not places:
        return
    data, key = rng.choice(places)
    entry = data[key]
    if isinstance(entry, bool):
        data[key] = not entry
    elif isinstance(entry, int):
        data[key] = max(entry + rng.choice((-1, 1, 2, entry, 10 * entry)), 0)
    elif isinstance(entry, float):
        data[key] = entry * rng.choice((0.5, 0.999, 1.001, 2.0))
    elif isinstance(entry, str):
        try:
            number = Fraction(entry)
        except (ValueError, ZeroDivisionError):
            return
        factor = rng.choice(
            (Fraction(1, 2), Fraction(999, 1000), Fraction(1001, 1000), Fraction(2), Fraction(0), Fraction(-1))
        )
        number = number * factor
        data[key] = decimal(number, 12) if "/" not in entry and number >= 0 else str(number)


def bend_leaves(rng: random.Random, files: Files, proof: dict) -> Files:
    """Merge leaves, cut an axis the other way, or point a node at another tree."""
    boxes = [node for node in nodes_of(proof) if node["rule"] == "boxes"]
    if not boxes:
        return files
    raw, trees = files["leaves.bin"], []
    for node in boxes:
        trees.append(raw[node["offset"] : node["offset"] + node["length"]])
    chosen = rng.randrange(len(boxes))
    tree, kind = trees[chosen], rng.random()
    inner = [i for i, byte in enumerate(tree) if byte != LEAF]
    if kind < 0.6 and inner:
        start = rng.choice(inner)
        trees[chosen] = tree[:start] + bytes([LEAF]) + tree[subtree_end(tree, start) :]
    elif kind < 0.7:
        trees[chosen] = bytes([LEAF])
    elif kind < 0.8 and len(trees) > 1:
        trees[chosen] = rng.choice(trees)
    else:
        boxes[chosen]["order"] = rng.choice((0, 1, 2, 3, 5, 8))
    joined = b""
    for node, part in zip(boxes, trees, strict=True):
        node["offset"], node["length"] = len(joined), len(part)
        joined += part
    return {**files, "leaves.bin": joined}


def subtree_end(tree: bytes, start: int) -> int:
    open_ends, place = 1, start
    while open_ends:
        open_ends += -1 if tree[place] == LEAF else 1
        place += 1
    return place


# --- claims about numbers --------------------------------------------------------------------------


def forge_numbers(rng: random.Random, files: Files, peak_of) -> Forgery | None:
    """A claim |T - f| <= epsilon on a box or on rows, with an epsilon just below the error or a change just too large."""
    certificate = json.loads(files["certificate.json"])
    proof, style = certificate["proof"], rng.random()
    changed = dict(files)
    if style < 0.45:
        raw = files["model.safetensors"]
        change = weight_change(rng, tensors_of(raw))
        changed["model.safetensors"] = tensor_bytes(raw, change(10 ** rng.uniform(-9, 0.5)))
    elif style < 0.55:
        changed = bend_config(rng, files)
    elif style < 0.69:
        changed["target.json"] = bend_target(rng, files["target.json"])
    try:
        peak = peak_of(changed)
    except (Singular, Undecided, ZeroDivisionError, ValueError, IndexError, KeyError, OverflowError):
        return None
    if peak is None or peak.lower() <= Fraction(1, 10**40) or peak.lower() > 10**6:
        return None
    error = peak.lower()
    if style < 0.69 and error > Fraction(certificate["epsilon"]) and rng.random() < 0.4:
        epsilon = Fraction(certificate["epsilon"])
    else:
        epsilon = error * (1 - Fraction(10 ** rng.uniform(-12, -0.3)))
        certificate["epsilon"] = decimal(epsilon, rng.choice((6, 12, 17)))
        epsilon = Fraction(certificate["epsilon"])
    if not 0 < epsilon < error:
        return None
    if rng.random() < 0.85:
        lower_bounds(rng, proof, epsilon)
    if rng.random() < 0.4:
        changed = bend_leaves(rng, changed, proof)
    if rng.random() < 0.25:
        for node in nodes_of(proof):
            own = {name: part for name, part in node.items() if name not in ("rule", "bound", "children", "id")}
            bend_parameters(rng, own)
            node.update(own)
    certificate["upper"] = certificate["epsilon"]
    if rng.random() < 0.9:
        certificate["witness"] = certificate["lower"] = None
    certificate.pop("run_error", None)
    point = ", ".join(f"{float(x):.17g}" for x in peak.point)
    why = f"at ({point}) output {peak.output} errs by {float(error):.17g} > {certificate['epsilon']}"
    return Forgery(sealed(changed, certificate), why)


def bend_target(rng: random.Random, raw: bytes) -> bytes:
    """Another formula, another box, or another row."""
    target = json.loads(raw)
    if "rows" in target:
        row = rng.choice(target["rows"])
        place = rng.randrange(len(row[1]))
        row[1][place] = str(Fraction(row[1][place]) + Fraction(rng.choice((-1, 1)), 10 ** rng.randint(0, 8)))
    elif "tensors" in target:
        weights = base64.b64decode(target["tensors"])
        moved = weight_change(rng, tensors_of(weights))(10 ** rng.uniform(-6, 0.5))
        target["tensors"] = base64.b64encode(tensor_bytes(weights, moved)).decode()
    elif "program" not in target:
        if "what" in target and rng.random() < 0.5:
            target["what"] = rng.choice(("count", "parity", "majority"))
        else:
            name = rng.choice(
                ("certiformer-sort-1", "certiformer-histogram-1", "certiformer-induction-1", "certiformer-count-1")
            )
            target["format"] = name
            target.pop("what", None)
            if name == "certiformer-count-1":
                target["what"] = rng.choice(("count", "majority"))
    elif rng.random() < 0.3:
        axis = rng.choice(target["domain"])
        side = rng.randrange(2)
        reach = Fraction(rng.choice((-1, 1)), 10 ** rng.randint(0, 6)) * (1 if side else -1)
        axis[side] = moved_end(axis[side], reach)
    else:
        bend_formula(rng, target["program"])
    return compact(target)


def moved_end(end: str | list, reach: Fraction) -> str | list:
    """The end of an interval moved by a rational."""
    if isinstance(end, str):
        return str(Fraction(end) + reach)
    return [*end, ["const", str(reach)], ["add", len(end) - 1, len(end)]]


def bend_formula(rng: random.Random, program: dict) -> None:
    nodes = program["nodes"]
    place = rng.randrange(len(nodes))
    node = nodes[place]
    alike = [
        ("sin", "cos", "tanh", "atan"),
        ("add", "sub"),
        ("min", "max"),
        ("mul", "add"),
        ("exp", "cos"),
        ("abs", "neg"),
    ]
    if node[0] == "const":
        number = {"pi": Fraction(22, 7), "e": Fraction(19, 7)}.get(node[1]) or Fraction(node[1])
        node[1] = str(number + Fraction(rng.choice((-1, 1)), 10 ** rng.randint(0, 6)))
        return
    for group in alike:
        if node[0] in group:
            node[0] = rng.choice([name for name in group if name != node[0]])
            return
    if node[0] == "pow":
        node[2] = max(node[2] + rng.choice((-1, 1)), 0)
    elif node[0] == "var" and program["inputs"] > 1:
        node[1] = (node[1] + 1) % program["inputs"]


def forge_undefined(rng: random.Random, files: Files) -> Forgery | None:
    """A target that has no value somewhere in the box, hidden where a checker may forget to look."""
    target = json.loads(files["target.json"])
    if "program" not in target:
        return None
    program, domain = target["program"], target["domain"]
    axis = rng.randrange(program["inputs"])
    points = claims.box_points(domain)
    point = [Fraction(float(x)) for x in points[rng.randrange(len(points))]]
    nodes = program["nodes"]

    def add(*node) -> int:
        nodes.append(list(node))
        return len(nodes) - 1

    x, output = add("var", axis), rng.randrange(len(program["outputs"]))
    from_here = add("sub", x, add("const", str(point[axis])))
    hidden = {
        "log": lambda: add("log", from_here),
        "root": lambda: add("sqrt", add("sub", from_here, add("const", "1/1000000"))),
        "quotient": lambda: add("div", add("const", "1"), from_here),
        "log of square": lambda: add("log", add("mul", from_here, from_here)),
    }[rng.choice(("log", "root", "quotient", "log of square"))]()
    if rng.random() < 0.7:
        hidden = add("pow", hidden, 0)
    old = program["outputs"][output]
    disguise = rng.random()
    if disguise < 0.6:
        bound = add("const", "2")
        other = rng.choice((old, add("const", "0")))
        new = add("where", rng.choice(("lt", "le")), hidden, bound, old, other)
    elif disguise < 0.8:
        new = add("add", old, add("mul", hidden, add("const", "0")))
    else:
        far = add("sub", add("pow", hidden, 0), add("const", "100000"))
        new = add("max", old, far)
    program["outputs"][output] = new
    try:
        claims.value(program, point)
    except Singular:
        pass
    except Undecided:
        return None
    else:
        return None
    if not claims.inside(domain, point):
        return None
    certificate = json.loads(files["certificate.json"])
    certificate["witness"] = certificate["lower"] = None
    certificate.pop("run_error", None)
    why = f"the target has no value at {[*map(str, point)]}"
    return Forgery(sealed({**files, "target.json": compact(target)}, certificate), why)


def forge_refutation(rng: random.Random, files: Files, peak_of) -> Forgery | None:
    """*Refuted* for an epsilon that the error does not reach at the recorded point."""
    peak = peak_of(files)
    if peak is None:
        return None
    certificate = json.loads(files["certificate.json"])
    error = max(peak.lower(), Fraction(1, 10**30)) * (1 + Fraction(1, 10**150))  # lower() is within 1e-200 of the error
    certificate["epsilon"] = decimal(error * (1 + Fraction(10 ** rng.uniform(-12, 0))), 17, up=True)
    point = [str(x) for x in peak.point]
    certificate |= {"outcome": "refuted", "proof": None, "upper": None, "lower": certificate["epsilon"]}
    certificate["witness"] = {"point": point, "output": peak.output, "error": certificate["epsilon"]}
    certificate.pop("run_error", None)
    why = f"the error at the recorded point is {float(error):.17g}, not above {certificate['epsilon']}"
    return Forgery(sealed(dict(files), certificate), why, "refuted")


def forge_run_error(rng: random.Random, files: Files, _peak) -> Forgery | None:
    """A bound of runs just below what one run does."""
    changed = dict(files)
    if rng.random() < 0.5:
        raw = files["model.safetensors"]
        change = weight_change(rng, tensors_of(raw))
        changed["model.safetensors"] = tensor_bytes(raw, change(10 ** rng.uniform(-9, -3)))
    peak = claims.run_peak(changed)
    if peak is None or peak.lower() <= 0:
        return None
    certificate = json.loads(files["certificate.json"])
    certificate["run_error"] = decimal(peak.lower() * (1 - Fraction(10 ** rng.uniform(-12, -0.3))), 17)
    if not 0 < Fraction(certificate["run_error"]) < peak.lower():
        return None
    if changed["model.safetensors"] != files["model.safetensors"]:
        certificate["witness"] = certificate["lower"] = None
    why = f"a float32 run errs by {float(peak.lower()):.17g} > {certificate['run_error']} at {[*map(str, peak.point)]}"
    return Forgery(sealed(changed, certificate), why)


# --- claims about what is computed -----------------------------------------------------------------


def violation_of(kind: str, files: Files, rng: random.Random, quick: bool = False) -> str:
    """Where the folder breaks its claim; empty where that is not established. With `quick` a suspicion is enough."""
    if kind.startswith("automaton"):
        form = {"automaton-looped": "looped", "automaton-thought": "chain-of-thought"}.get(kind, "log-depth")
        key = (kind, files["automaton.json"], files["config.json"])
        cases = claims.remembered("a", key, lambda: claims.automaton_cases(files, form))
        return claims.decoder_violation(files, cases, quick)
    if kind == "machine-looped":
        return claims.looped_machine_violation(files, quick=quick)
    makers = {
        "machine-thought": claims.thought_cases,
        "machine-encoder": claims.encoder_cases,
        "circuit": claims.circuit_cases,
    }
    if kind in makers:
        description = files["gates.json" if kind == "circuit" else "machine.json"]
        key = (kind, description, files["config.json"])
        return claims.decoder_violation(files, claims.remembered("m", key, lambda: makers[kind](files)), quick)
    if kind.startswith("learner"):
        return claims.learner_violation(files, rng, quick)
    return claims.program_violation(files, quick=quick)


def forge_computation(rng: random.Random, kind: str, files: Files) -> Forgery | None:
    """A machine, automaton, circuit, learner or program whose weights or description were changed just too far."""
    certificate = json.loads(files["certificate.json"])
    for _ in range(6):
        style = rng.random()
        if style < 0.15:
            changed = bend_config(rng, files)
            why = _violation(kind, changed, rng)
        elif style < 0.4:
            bend = bend_program if kind.startswith("program") else bend_description
            changed = bend(rng, files)
            why = "" if changed is None else _violation(kind, changed, rng)
        else:
            changed, why = just_too_far(rng, kind, files)
        if changed is None or not why:
            continue
        proof = certificate["proof"]
        if rng.random() < 0.3:
            bend_parameters(rng, proof.get("parameters", {}))
        return Forgery(sealed(changed, certificate), why)
    return None


def _violation(kind: str, files: Files, rng: random.Random, quick: bool = False) -> str:
    try:
        return violation_of(kind, files, rng, quick)
    except (
        KeyError,
        ValueError,
        IndexError,
        Undecided,
        ZeroDivisionError,
        OverflowError,
    ):  # it is no such model any more
        return ""


def just_too_far(rng: random.Random, kind: str, files: Files) -> tuple[Files | None, str]:
    """Weights changed by nearly the smallest amount in one direction that breaks the claim."""
    raw = files["model.safetensors"]
    change = weight_change(rng, tensors_of(raw))

    def at(size: float, quick: bool) -> tuple[Files, str]:
        moved = {**files, "model.safetensors": tensor_bytes(raw, change(size))}
        return moved, "" if moved["model.safetensors"] == raw else _violation(kind, moved, rng, quick)

    size = rng.choice((1.0, 1.0, 2.0, 0.5, 10 ** rng.uniform(-6, 1)))
    if not at(size, True)[1]:
        return None, ""
    low, high = -8.0, math.log10(size)
    for _ in range(rng.choice((0, 0, 3, 6, 9))):  # floats look for the size, and what they find is established below
        middle = (low + high) / 2
        low, high = (low, middle) if at(10**middle, True)[1] else (middle, high)
    for found in dict.fromkeys((10**high, size)):
        moved, why = at(found, False)
        if why:
            return moved, why
    return None, ""


def bend_description(rng: random.Random, files: Files) -> Files | None:
    """Another table, start, answer or number of a learner."""
    name = next(n for n in ("machine.json", "automaton.json", "gates.json", "learner.json") if n in files)
    data = json.loads(files[name])
    if name == "learner.json":
        keys = [
            k for k, v in data.items() if isinstance(v, float) and k not in ("bound", "label_bound", "tolerance") and v
        ]
        keys += [k for k, v in data.items() if isinstance(v, list) and v]
        key = rng.choice(keys)
        factor = 1 + rng.choice((-1, 1)) * 10 ** rng.uniform(-9, 0)
        if isinstance(data[key], list):
            place = rng.randrange(len(data[key]))
            data[key][place] *= factor
        else:
            data[key] *= factor
    elif name == "gates.json":
        gate = rng.choice(data["gates"])
        if rng.random() < 0.5:
            place = rng.randrange(len(gate[1]))
            gate[1] = gate[1][:place] + "10"[int(gate[1][place])] + gate[1][place + 1 :]
        else:
            gate[2 + rng.randrange(len(gate) - 2)] = rng.choice(data["inputs"])
    else:
        row = rng.choice(data["transitions"])
        states, symbols = data["states"], data["symbols"]
        place = rng.choice((len(row) - 1, *((2, 3) if name == "machine.json" else ())))
        row[place] = rng.choice("LRS" if place == 3 else symbols if place == 2 and name == "machine.json" else states)
        if name == "automaton.json" and rng.random() < 0.3:
            data["start"] = rng.choice(states)
            data["accepting"] = rng.sample(states, rng.randint(1, len(states) - 1))
    changed = {**files, name: compact(data)}
    return changed if changed[name] != files[name] else None


def bend_program(rng: random.Random, files: Files) -> Files | None:
    """Another program, also where the circuit repeats it; or another circuit."""
    program, circuit = json.loads(files["program.json"]), json.loads(files["circuit.json"])
    if rng.random() < 0.6:
        extended = json.loads(circuit["extended"]) if "extended" in circuit else None
        place, seed = rng.randrange(len(program["nodes"])), rng.random()
        for nodes in [program["nodes"], *([] if extended is None else [extended["nodes"]])]:
            if not bend_node(random.Random(seed), nodes[place]):
                return None
        if extended is not None:
            circuit["extended"] = compact(extended).decode()
    else:  # a witness that nobody believes: any number of it, most of all the codes of its cells
        codes = [part["feature"] for part in (circuit["output"], *circuit["cells"]) if part.get("feature")]
        codes = codes or [entries for entries in lists_in(circuit) if all(type(x) in (int, str) for x in entries)]
        if not codes:
            return None
        code = rng.choice(codes)
        code[rng.randrange(len(code))] = rng.choice((rng.randint(-3, 5), "1/2", "1/3"))
    return {**files, "program.json": compact(program), "circuit.json": compact(circuit)}


def lists_in(data) -> Iterator[list]:
    """All lists in JSON data that are not empty."""
    if isinstance(data, list) and data:
        yield data
    for part in data.values() if isinstance(data, dict) else data if isinstance(data, list) else ():
        yield from lists_in(part)


def bend_node(rng: random.Random, node: dict) -> bool:
    if "comparison" in node:
        node["comparison"] = rng.choice(
            [c for c in ("==", "<", "<=", ">", ">=", "!=", "True") if c != node["comparison"]]
        )
    elif "operation" in node and "with" in node["operation"]:
        node["operation"]["with"] = rng.choice(("==", "!="))
    elif "operation" in node and "affine" in node["operation"]:
        node["operation"]["offset"] = rng.randint(-2, 2)
    elif "constant" in node and node["kind"] == "aggregate":
        node["constant"] = rng.choice((None, 0, 1))
    elif "table" in node:
        entries = node["table"]["entries"]
        entries[rng.randrange(len(entries))] = rng.choice(entries)
    else:
        return False
    return True


# --- one call for every kind -----------------------------------------------------------------------


FINITE = ("table", "sort", "count", "majority", "parity", "hist", "induction")
COMPUTED = ("machine", "automaton", "circuit", "learner", "program")


def forge(kind: str, rng: random.Random, files: Files) -> Forgery | None:
    """A false folder made from the honest one, or None where none was established."""
    files = copy.copy(files)
    if kind == "run-error":
        return forge_run_error(rng, files, None)
    if kind.startswith(COMPUTED):
        return forge_computation(rng, kind, files)
    peak = claims.finite_peak if kind in FINITE else claims.box_peak
    style = rng.random()
    if style < 0.08:
        return forge_refutation(rng, files, peak)
    if style < 0.12 and kind not in FINITE:
        return forge_undefined(rng, files)
    tries = (forge_numbers(rng, files, peak) for _ in range(6))
    return next((forgery for forgery in tries if forgery is not None), None)
