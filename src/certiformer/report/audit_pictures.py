"""The pictures of an audit: spectra of heads, norms head by head beside those of random weights, factors of bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from statistics import median
from typing import Any

from certiformer.report.frame import figure, frame
from certiformer.report.maps import colour_map
from certiformer.report.numbers import short
from certiformer.report.sizes import powers

PANELS = 12  # layers whose spectra are drawn
DIVIDES = {"n": "samples", "blocks": "blocks"}  # factors that a bound falls with, and what they count
FLOOR = 1e-6  # of the largest singular value: what lies below is left out of a picture

CSS = """
.spectrum path{stroke:var(--accent);stroke-width:1;opacity:.45}
.spectrum path.line{stroke:var(--error);stroke-width:2;opacity:1;stroke-dasharray:6 4}
.fall{font-size:.85rem;table-layout:fixed;width:100%}.fall td{border:0;padding:.12rem .5rem .12rem 0;vertical-align:middle}
.fall td:first-child{width:48%;overflow-wrap:anywhere}.fall td.number{width:4.6rem;white-space:nowrap}
.fall i{display:block;height:.85rem;background:var(--accent);min-width:2px;border-radius:.15rem}
.fall tr.top i{background:var(--bad)}.fall tr.gain i{background:var(--good)}
.verdict{display:inline-block;border-radius:.3rem;padding:0 .45rem;white-space:nowrap;font-size:.85rem;
background:var(--line)}
.verdict.holds{background:var(--good);color:var(--card)}.verdict.vacuous{background:var(--bad);color:var(--card)}
.verdict.holds-if{background:var(--weak);color:var(--card)}
.theorems td:nth-child(3){font-variant-numeric:tabular-nums;text-align:right;white-space:nowrap}
.theorems td.mono{overflow-wrap:normal;min-width:8.5rem}
.theorems small{display:block;color:var(--quiet)}
@media (max-width:34rem){.theorems,.theorems tbody,.theorems tr,.theorems td{display:block;border:0;padding:.1rem 0}
.theorems thead{display:none}.theorems tr{border-bottom:1px solid var(--line);padding:.5rem 0}
.theorems td:nth-child(3){text-align:left}.theorems td:empty{display:none}
.fall td:first-child{width:7rem}.fall td.number{width:4.6rem;font-size:.78rem}}
"""


def heat_maps(layers: Sequence[dict[str, Any]], part: str, formula: str) -> str:
    """The spectral norms of a product, head by head, and those of random weights with the same entries in the mean."""
    ours = [[_field(head, part, "spectral") for head in layer["heads"]] for layer in layers]
    random = [[_field(head, part, "random") for head in layer["heads"]] for layer in layers]
    known = [value for row in (*ours, *random) for value in row if value]
    if not known:
        return ""
    low, high = math.log10(min(known)), math.log10(max(known))
    drawn = ""
    for title, rows, caption in (
        (f"{formula}, as trained", ours, "One cell is one head; the lowest row is the first layer."),
        ("random weights of the same size", random, "A Gaussian control: same shape, same mean square, same colours."),
    ):
        wide = max(len(row) for row in rows)
        values = [[math.log10(value) if value else None for value in row] + [None] * (wide - len(row)) for row in rows]
        picture = {"title": title, "caption": caption, "x": _axis("head", wide), "y": _axis("layer", len(rows))}
        picture |= {"values": values, "low": low, "high": max(high, low + 1e-9), "unit": "log10", "palette": "value"}
        drawn += colour_map(picture)
    return f'<div class="figures">{drawn}</div>'


def spectra(layers: Sequence[dict[str, Any]], part: str, formula: str) -> str:
    """The singular values of every head of a layer, and the power law with the layer's median exponent."""
    places = _spread(len(layers), PANELS)
    drawn = "".join(_spectrum(layers[place], place, part) for place in places)
    if not drawn:
        return ""
    rest = f" {len(places)} of {len(layers)} layers are drawn." if len(places) < len(layers) else ""
    text = (
        f"Singular values of {formula}, one line a head, both axes logarithmic; dashed: k^-α with the median α.{rest}"
    )
    return f'<p class="quiet">{escape(text)}</p><div class="figures">{drawn}</div>'


def _spectrum(layer: dict[str, Any], place: int, part: str) -> str:
    heads = [head[part] for head in layer["heads"] if head[part] is not None]
    curves = [[(each["k"], each["sigma"]) for each in head["values"] if each["sigma"]] for head in heads]
    top = max((sigma for curve in curves for _, sigma in curve), default=0.0)
    curves = [[(k, sigma) for k, sigma in curve if sigma > FLOOR * top] for curve in curves]
    curves = [curve for curve in curves if len(curve) > 1]
    if not curves:
        return ""
    x = (1.0, float(max(k for curve in curves for k, _ in curve)))
    y = (min(s for curve in curves for _, s in curve) / 1.1, top * 1.1)
    paths = "".join(f'<path d="{_path(curve, x, y)}"/>' for curve in curves)
    decays = [head["decay"] for head in heads if head["decay"] is not None]
    caption = "too few singular values for an exponent"
    if decays:
        alpha = median(each["alpha"] for each in decays)
        level = median(_level(curve, alpha) for curve in curves)
        ends = [(k, level * k**-alpha) for k in (x[0], x[1])]
        clipped = [(k, sigma) for k, sigma in ends if y[0] <= sigma <= y[1]]
        if len(clipped) < 2:  # the line leaves the picture at the bottom
            clipped = [ends[0], ((level / y[0]) ** (1 / alpha), y[0])] if alpha > 0 and level > y[0] else []
        paths += f'<path class="line" d="{_path(clipped, x, y)}"/>' if len(clipped) == 2 else ""
        least, most = min(each["alpha"] for each in decays), max(each["alpha"] for each in decays)
        caption = f"α = {alpha:.2f} (heads: {least:.2f} to {most:.2f})"
    label = escape(f"singular values of layer {place}")
    svg = f'<svg viewBox="0 0 1000 1000" preserveAspectRatio="none" role="img" aria-label="{label}">{paths}</svg>'
    plot = frame(
        svg,
        powers(*x) if x[1] >= 10 else [(0.0, "1"), (1.0, f"{x[1]:.0f}")],
        _log_ticks(*y),
        "k",
        shape="wide spectrum",
    )
    return figure(f"layer {place}", caption, plot)


def _level(curve: Sequence[tuple[float, float]], alpha: float) -> float:
    """c of the line c k^-alpha through the middle of a curve from its second value on."""
    tail = curve[1:]
    return math.exp(sum(math.log(sigma) + alpha * math.log(k) for k, sigma in tail) / len(tail))


def waterfall(theorem: dict[str, Any], loss: float = 0.0) -> str:
    """The factors of a bound, each as long as its logarithm, and what would make the bound say something; `loss` is the
    mean loss on the sample, which is part of its value."""
    powers_known = any(each.get("log10") is not None for each in theorem["factors"])
    factors = [
        each for each in theorem["factors"] if each.get("log10") is not None or (each["value"] and each["value"] > 0)
    ]
    if not factors:
        return ""
    sizes = [math.log10(each["value"]) if each.get("log10") is None else each["log10"] for each in factors]
    longest = max(map(abs, sizes)) or 1.0
    grown = [size for each, size in zip(factors, sizes, strict=True) if each["name"] not in DIVIDES]
    rows = ""
    for each, size in zip(factors, sizes, strict=True):
        kind = "gain" if each["name"] in DIVIDES or size < 0 else "top" if size == max(grown, default=None) else ""
        bar = f'<i style="width:{100 * abs(size) / longest:.1f}%"></i>'
        rows += (
            f'<tr class="{kind}"><td>{escape(each["name"])}</td><td class="number">{escape(_size(each))}</td>'
            f"<td>{bar}{_mend(each)}</td></tr>"
        )
    title = theorem["id"].rpartition(".")[2]
    caption = "Bars are logarithms; red is the largest factor, green works for the bound."
    more = "The factors multiply to the bound; each is what is gained when it is mended, after those above it."
    told = more if powers_known else bite(theorem, loss)
    return figure(title, f"{caption} {told}".strip(), f'<table class="fall">{rows}</table>')


def _size(factor: dict[str, Any]) -> str:
    return short(factor["value"]) if factor.get("log10") is None else f"10^{factor['log10']:.1f}"


def _mend(factor: dict[str, Any]) -> str:
    return f'<span class="quiet">{escape(factor["mend"])}</span>' if factor.get("mend") else ""


def bite(theorem: dict[str, Any], loss: float = 0.0) -> str:
    """What would make a vacuous bound say something, as far as its factors tell.

    >>> bits = {"id": "bounds.compression", "verdict": "vacuous", "value": 10.0, "trivial": 1.0}
    >>> bite({**bits, "factors": [{"name": "bits", "value": 3e6}, {"name": "n", "value": 1e4}]})
    'It is 10 times too large. It would bite from about 1e+06 samples on, or with at most about 3e+04 bits.'
    """
    value, trivial = theorem["value"], theorem["trivial"]
    if theorem["verdict"] != "vacuous" or not value or not trivial:
        return ""
    start = f"It is {value / trivial:.3g} times too large."
    factors = {each["name"]: each["value"] for each in theorem["factors"]}
    known = next((name for name in DIVIDES if set(factors) == {"bits", name}), None)
    if known is not None:  # what is added to the loss grows with the root of bits / n
        part = loss if theorem["id"] == "bounds.compression" else 0.0
        if part >= trivial:
            return start
        excess = (value - part) / (trivial - part)
        need, most = factors[known] * excess**2, factors["bits"] / excess**2
        return (
            f"{start} It would bite from about {need:.2g} {DIVIDES[known]} on, or with at most about {most:.2g} bits."
        )
    layers = [each for name, each in factors.items() if name.startswith("layer") and each > 1]
    if not layers:
        return start
    shrink = (value / trivial) ** (1 / len(layers))
    middle = math.exp(sum(map(math.log, layers)) / len(layers))
    return (
        f"{start} For it to bite, each of the {len(layers)} factors of the layers would have to be about {shrink:.3g} times"
        f" smaller: {middle / shrink:.3g} in the mean, where it is {middle:.3g} now."
    )


def _field(head: dict[str, Any], part: str, which: str) -> float | None:
    product = head[part]
    if product is None:
        return None
    return product["spectral"] if which == "spectral" else product["controls"]["gaussian"]


def _axis(label: str, count: int) -> dict[str, Any]:
    return {"label": label, "low": 0.0, "high": float(count), "low_text": "0", "high_text": str(count)}


def _log_ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Powers of ten, or the ends where there are not two of them."""
    ticks = powers(low, high)
    return ticks if len(ticks) > 1 else [(0.0, short(low)), (1.0, short(high))]


def _path(points: Sequence[tuple[float, float]], x: tuple[float, float], y: tuple[float, float]) -> str:
    spans = [math.log(max(high / low, 1 + 1e-9)) for low, high in (x, y)]
    placed = [
        (1000 * math.log(a / x[0]) / spans[0], 1000 * (1 - math.log(max(b, y[0]) / y[0]) / spans[1])) for a, b in points
    ]
    return "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in placed)


def _spread(count: int, most: int) -> list[int]:
    """Up to `most` of `count` places, the first and the last among them."""
    if count <= most:
        return list(range(count))
    return sorted({round(step * (count - 1) / (most - 1)) for step in range(most)})
