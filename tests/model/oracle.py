"""The transformer a second time: loops over plain floats, straight from the definition, one line per formula.

Slow and obvious on purpose. It reads the same configuration and tensors and shares no code with the library.
"""

from __future__ import annotations

import math


def run(model, x):
    """The outputs for one input, a list of rows (continuous) or of ids."""
    c = model.config.to_json()
    w = {name: _nested(tensor) for name, tensor in model.tensors.items()}
    h = [list(row) for row in w.get("registers", [])]
    registers = len(h)
    for t, token in enumerate(x):
        h.append(_embed(c, w, t, token))
    for _ in range(c["loops"]):
        for b, block in enumerate(c["blocks"]):
            h = _block(block, w, f"blocks.{b}", h, registers + c["input"]["tokens"])
    return _read_out(c, w, h[:registers] if c["readout"]["kind"] == "register" else h[registers:])


def _nested(tensor):
    return [_nested(part) for part in tensor] if tensor.ndim else float(tensor)


def _embed(c, w, t, token):
    if c["input"]["kind"] == "ids":
        h = list(w["embed.weight"][int(token)])
    else:
        h = [b + y for b, y in zip(w["embed.bias"], _times(token, w["embed.weight"]), strict=True)]
    code = c["code"]
    if code["kind"] == "one-hot":
        h[code["offset"] + t] += 1.0
    elif code["kind"] == "circle":
        h[code["offset"]] += math.cos(2 * math.pi * t / code["period"])
        h[code["offset"] + 1] += math.sin(2 * math.pi * t / code["period"])
    elif code["kind"] == "sinusoidal":
        for i in range(code["width"]):
            angle = t / 10000 ** (2 * (i // 2) / code["width"])
            h[code["offset"] + i] += math.sin(angle) if i % 2 == 0 else math.cos(angle)
    elif code["kind"] == "table":
        h = [a + b for a, b in zip(h, w["code.table"][t], strict=True)]
    return h


def _times(row, matrix):
    """row @ matrix"""
    return [sum(row[i] * matrix[i][j] for i in range(len(row))) for j in range(len(matrix[0]))]


def _plus(row, bias):
    return row if bias is None else [a + b for a, b in zip(row, bias, strict=True)]


def _block(block, w, name, h, longest):
    for sublayer, apply in (("attention", _attention), ("ffn", _ffn)):
        options, norm = block[sublayer], block["norm"]
        if options is None:
            continue
        u = [_norm(row, w, f"{name}.norm.{sublayer}", norm) for row in h] if _at(norm, "pre") else h
        out = apply(options, w, f"{name}.{sublayer}", u, longest)
        h = [_plus(a, b) for a, b in zip(h, out, strict=True)] if options["residual"] else out
        if _at(norm, "post"):
            h = [_norm(row, w, f"{name}.norm.{sublayer}", norm) for row in h]
    return h


def _at(norm, place):
    return norm is not None and norm["place"] == place


def _norm(row, w, name, norm):
    mean = sum(row) / len(row)
    variance = sum((a - mean) ** 2 for a in row) / len(row)
    unit = [(a - mean) / math.sqrt(variance + norm["epsilon"]) for a in row]
    return [u * s + b for u, s, b in zip(unit, w[f"{name}.scale"], w[f"{name}.shift"], strict=True)]


def _attention(options, w, name, u, longest):
    out = [[0.0] * len(u[0]) for _ in u]
    for g, group in enumerate(options["heads"]):
        for head in range(group["count"]):
            part = _head(options, w, name, f"{name}.groups.{g}", head, group["key"], u, longest)
            out = [_plus(a, b) for a, b in zip(out, part, strict=True)]
    return [_plus(row, w.get(f"{name}.output_bias")) for row in out]


def _head(options, w, name, group, head, key_size, u, longest):
    def project(role):
        bias = w.get(f"{group}.{role}_bias")
        return [_plus(_times(row, w[f"{group}.{role}"][head]), None if bias is None else bias[head]) for row in u]

    query, key, value = project("query"), project("key"), project("value")
    scale = 1 / math.sqrt(key_size) if options["scale"] == "inverse-sqrt" else 1.0
    rows = []
    for i in range(len(u)):
        scores = {}
        for j in range(len(u)):
            if options["mask"] == "causal" and j > i or options["mask"] == "table" and w[f"{name}.mask"][i][j] == 0:
                continue
            scores[j] = scale * sum(a * b for a, b in zip(query[i], key[j], strict=True))
            if options["score_bias"] == "table":
                scores[j] += w[f"{group}.score_bias"][head][i][j]
            elif options["score_bias"] == "toeplitz":
                scores[j] += w[f"{group}.score_bias"][head][i - j + longest - 1]
        weights = _weights(options["kind"], scores)
        mixed = [sum(weights[j] * value[j][c] for j in weights) for c in range(len(value[0]))]
        rows.append(_times(mixed, w[f"{group}.output"][head]))
    return rows


def _weights(kind, scores):
    if not scores or kind == "linear":
        return scores
    if kind == "relu":
        return {j: max(s, 0.0) for j, s in scores.items()}
    if kind == "nearest":
        scores, kind = {j: -abs(s) for j, s in scores.items()}, "hard"
    top = max(scores.values())
    if kind == "hard":
        best = [j for j in scores if scores[j] == top]
        return {j: 1 / len(best) for j in best}
    powers = {j: math.exp(s - top) for j, s in scores.items()}
    return {j: p / sum(powers.values()) for j, p in powers.items()}


def _ffn(options, w, name, u, _):
    activation = {
        "relu": lambda a: max(a, 0.0),
        "gelu": lambda a: a * 0.5 * math.erfc(-a / math.sqrt(2)),
        "identity": lambda a: a,
    }[options["kind"]]
    hidden = [[activation(a) for a in _plus(_times(row, w[f"{name}.up"]), w[f"{name}.up_bias"])] for row in u]
    return [_plus(_times(row, w[f"{name}.down"]), w[f"{name}.down_bias"]) for row in hidden]


def _read_out(c, w, data):
    kind = c["readout"]["kind"]
    if kind in ("token", "register"):
        data = [data[c["readout"]["token"]]]
    elif kind in ("mean", "sum"):
        total = [sum(row[i] for row in data) for i in range(len(data[0]))]
        data = [[a / len(data) if kind == "mean" else a for a in total]]
    return [y for row in data for y in _plus(_times(row, w["readout.weight"]), w["readout.bias"])]
