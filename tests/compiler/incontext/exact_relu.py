"""ReLU transformers and their algorithms a second time, in exact rationals, straight from the definitions."""

from __future__ import annotations

from fractions import Fraction


def run(model, tokens):
    """The outputs of a model of ReLU attention and ReLU units for one input, a list of rows."""
    config = model.config.to_json()
    weights = {name: _entries(tensor) for name, tensor in model.tensors.items()}
    bias = weights["embed.bias"]
    stream = [_plus(_times(row, weights["embed.weight"], config["width"]), bias) for row in tokens]
    for _ in range(config["loops"]):
        for index, block in enumerate(config["blocks"]):
            if block["attention"] is not None:
                stream = _attend(block["attention"], weights, f"blocks.{index}.attention", stream)
            if block["ffn"] is not None:
                stream = [_hidden(block["ffn"], weights, f"blocks.{index}.ffn", row) for row in stream]
    read = _times(stream[config["readout"]["token"]], weights["readout.weight"], config["outputs"])
    return _plus(read, weights["readout.bias"])


def _entries(tensor):
    """Place -> exact number, of what is not zero."""
    flat = tensor.astype(float)
    places = zip(*flat.nonzero(), strict=True)
    return {tuple(map(int, place)): Fraction(float(flat[place])) for place in places}


def _times(row, matrix, width):
    out = [Fraction(0)] * width
    for (i, j), weight in matrix.items():
        out[j] += row[i] * weight
    return out


def _plus(row, bias):
    return [entry + bias.get((place,), 0) for place, entry in enumerate(row)]


def _attend(options, weights, name, stream):
    assert (options["kind"], options["scale"], options["mask"], options["bias"]) == ("relu", "unit", "none", False)
    result = [list(row) for row in stream]
    for index, group in enumerate(options["heads"]):
        for head in range(group["count"]):
            query, key, value, output = (
                {place[1:]: w for place, w in weights[f"{name}.groups.{index}.{role}"].items() if place[0] == head}
                for role in ("query", "key", "value", "output")
            )
            keys = [_times(row, key, group["key"]) for row in stream]
            values = [_times(row, value, group["value"]) for row in stream]
            for i, row in enumerate(stream):
                asked = _times(row, query, group["key"])
                shares = [
                    max(sum((a * b for a, b in zip(asked, k, strict=True)), Fraction(0)), Fraction(0)) for k in keys
                ]
                mixed = [sum(s * v[c] for s, v in zip(shares, values, strict=True)) for c in range(group["value"])]
                result[i] = [a + b for a, b in zip(result[i], _times(mixed, output, len(row)), strict=True)]
    return result


def _hidden(options, weights, name, row):
    inside = _plus(_times(row, weights[f"{name}.up"], options["width"]), weights[f"{name}.up_bias"])
    active = [max(entry, Fraction(0)) for entry in inside]
    added = _plus(_times(active, weights[f"{name}.down"], len(row)), weights[f"{name}.down_bias"])
    return [a + b for a, b in zip(row, added, strict=True)]


def dot(a, b):
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))


def polygon(learner, s):
    pairs = zip(learner.knots, learner.bends, strict=True)
    return sum((Fraction(b) * max(s - Fraction(k), Fraction(0)) for k, b in pairs), Fraction(0))


def weights_of(learner, xs, ys, slope=None):
    """The weights after all steps of `meanings.relu_learner`; `slope` is what stands for the logistic function."""
    slope = slope or (lambda s: polygon(learner, s))
    rate, decay, threshold = Fraction(learner.rate), Fraction(learner.decay), Fraction(learner.threshold)
    w = [Fraction(0)] * learner.features
    for _ in range(learner.steps):
        gaps = [(slope(dot(w, x)) if learner.knots else dot(w, x)) - y for x, y in zip(xs, ys, strict=True)]
        mean = [sum((g * x[c] for g, x in zip(gaps, xs, strict=True)), Fraction(0)) / len(xs) for c in range(len(w))]
        w = [a - rate * g - decay * a for a, g in zip(w, mean, strict=True)]
        w = [max(abs(a) - threshold, Fraction(0)) * (1 if a > 0 else -1) for a in w]
    return w


def relu_tokens(learner, xs, ys, query):
    d, n = learner.features, len(xs)
    rows = [[*x, *(entry / n for entry in x), y, Fraction(0)] for x, y in zip(xs, ys, strict=True)]
    rows += [[Fraction(0)] * (2 * d + 2)] * (learner.rows - n)
    return [*rows, [*query, *[Fraction(0)] * (d + 1), Fraction(1)]]


def selection_tokens(learner, xs, ys, query):
    d, m = learner.features, learner.validation
    n, zero = len(xs) - m, [Fraction(0)] * learner.features
    rows = [[*x, *(e / n for e in x), *zero, y, Fraction(0), Fraction(0)] for x, y in zip(xs[:n], ys[:n], strict=True)]
    rows += [[*x, *zero, *(e / m for e in x), y, y / m, Fraction(0)] for x, y in zip(xs[n:], ys[n:], strict=True)]
    rows += [[Fraction(0)] * (3 * d + 3)] * (learner.rows - len(xs))
    return [*rows, [*query, *[Fraction(0)] * (2 * d + 2), Fraction(1)]]


def selected(learner, xs, ys, query):
    """Prediction, shares and losses of `meanings.selection`."""
    n, gap = len(xs) - learner.validation, Fraction(learner.gap)
    losses, predictions = [], []
    for rate, decay in zip(learner.rates, learner.decays, strict=True):
        w = [Fraction(0)] * learner.features
        for _ in range(learner.steps):
            gaps = [dot(w, x) - y for x, y in zip(xs[:n], ys[:n], strict=True)]
            mean = [sum((g * x[c] for g, x in zip(gaps, xs[:n], strict=True)), Fraction(0)) / n for c in range(len(w))]
            w = [a - Fraction(rate) * g - Fraction(decay) * a for a, g in zip(w, mean, strict=True)]
        losses.append(sum((dot(w, x) - y) ** 2 for x, y in zip(xs[n:], ys[n:], strict=True)) / learner.validation)
        predictions.append(dot(w, query))
    bids = [max(1 - sum(max((a - b) / gap, Fraction(0)) for b in losses), Fraction(0)) for a in losses]
    left = [max(1 - sum(bids[:k]), Fraction(0)) for k in range(len(bids) + 1)]
    shares = [a - b for a, b in zip(left, left[1:], strict=False)]
    return dot(shares, predictions), shares, losses
