"""What holds for every audit, whatever was done to the checkpoint: a sentence, or an audit that adds up.

Nothing here shares code with the readers: sizes come from the tensors that were written, heads from `synthetic`."""

from __future__ import annotations

import json
import math
import re
import time
from collections import Counter
from pathlib import Path

import numpy as np

from audit.read.drafts import Draft
from audit.read.synthetic import Full, Synthetic
from certiformer.audit import Audit, Given, audit
from certiformer.audit.verdict import Verdict
from certiformer.errors import BadInput

# What is asked besides the files: nothing, everything, and lengths and radii at the ends of what is sensible.
ASKED = (
    Given(),
    Given(samples=1000, tokens=10**6, length=8, loss=0.1, radius=2.0, rho=0.5, delta=0.01),
    Given(samples=1, tokens=1, length=1, radius=1e-300, bits=1),
    Given(samples=10**12, tokens=10**15, length=10**9, radius=1e30, rho=0.999),
)
LONGEST = 10.0  # seconds of computing for one audit; an ordinary one takes 0.03
MOST_LETTERS = 1500
# Two ways to multiply and decompose matrices of at most 20 x 20, each off by a few units of 2^-53 times their sizes.
SUMS = 1e-13
LARGE = 1e100  # products of larger numbers are left to the measurements


def examine(draft: Draft, folder: Path, asked: Given = ASKED[0]) -> str:
    """Audits what the draft says, checks it, and tells whether it was "refused" or "audited"."""
    place = draft.write(folder)
    start = time.process_time()
    try:
        found = audit(place, asked, **draft.given)
        data = found.to_json()
    except BadInput as problem:
        check_sentence(str(problem))
        return "refused"
    finally:
        assert time.process_time() - start < LONGEST
    json.dumps(data, allow_nan=False)
    check_coverage(found, draft)
    for weight in found.checkpoint.weights():
        array = weight.read()
        assert array.shape == weight.shape and array.dtype == np.float64
    for each in found.verdicts:
        check_sentence(each.sentence)
        assert each.verdict != "holds" or each.value is None or math.isfinite(each.value) or may_be_infinite(each), each
    check_heads(found, data, draft)
    return "audited"


def may_be_infinite(verdict: Verdict) -> bool:
    """How many times as far apart as needed positions are: without bound where there is only one token."""
    return verdict.id == "hypothesis.disjoint_positions" and verdict.value == math.inf


def check_sentence(text: str) -> None:
    """One line for a reader, not what a library said when it fell over."""
    assert text and "\n" not in text and len(text) < MOST_LETTERS, text
    assert "Traceback" not in text and not re.search(r"\b[A-Z]\w+(Error|Exception)\b", text), text


def check_coverage(found: Audit, draft: Draft) -> None:
    """Every stored number is accounted for, or its tensor is named: as missing, as a buffer, or as a copy."""
    sizes = {name: array.size for name, array in draft.tensors.items()}
    coverage = found.coverage
    taken: Counter[str] = Counter()
    lengths: set[str] = set()
    for weight in found.checkpoint.weights():
        taken[weight.source.tensor] += weight.count
        lengths |= set(re.findall(r"g = ([^;]+)", weight.source.made))
    missing = dict(coverage.missing)
    # The lengths of a weight norm go with what they are the lengths of, also where nobody took it.
    further = {name.removesuffix("_g") + "_v": name for name in sizes if name.endswith("_g")}
    further |= {name.removesuffix("0") + "1": name for name in sizes if name.endswith(".original0")}
    lengths |= {further[name] for name in missing if name in further}
    aside = {*coverage.buffers, *coverage.copies}
    assert {*taken, *missing, *aside, *lengths} <= set(sizes)
    nowhere = {name for name, size in sizes.items() if size} - {*taken, *missing, *aside, *lengths}
    assert not nowhere, nowhere
    assert not aside & {*taken, *missing}
    assert coverage.total == sum(size for name, size in sizes.items() if name not in aside)
    whole = {name for name in sizes if name not in missing and name not in aside}
    assert all(taken[name] == sizes[name] for name in whole - lengths)
    left = {
        name: sizes[name] - min(taken[name], sizes[name]) if taken[name] <= sizes[name] else sizes[name]
        for name in missing
    }
    assert (
        coverage.accounted + sum(left.values()) + sum(sizes[further[n]] for n in left if n in further) == coverage.total
    )
    for name in coverage.copies:
        mine = draft.tensors[name]
        assert any(name != other and _same(mine, array) for other, array in draft.tensors.items()), name


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and np.array_equal(a.astype(np.float64), b.astype(np.float64), equal_nan=True)


def check_heads(found: Audit, data: dict, draft: Draft) -> None:
    """Where the tensors still mean what they meant: the maps of every head, and the figures that are promised."""
    made, maps = draft.made, draft.maps()
    if made is None or maps is None or found.checkpoint.family != made.family:
        return
    attentions = [(layer, each) for layer, held in enumerate(found.checkpoint.layers) for each in held.attention]
    if len(attentions) != len(maps):
        return
    places = Counter()
    for (layer, attention), full in zip(attentions, maps, strict=True):
        width = found.checkpoint.width
        roles = (attention.query, attention.key, attention.value)
        assert all(
            np.array_equal(weight.read().reshape(-1, width), rows, equal_nan=True)
            for weight, rows in zip(roles, full[:3], strict=True)
        )
        wanted = head_norms(full, made)
        written = data["layers"][layer]["heads"]
        if wanted is None or found.measurements.not_finite:
            continue
        for scores, mixed, size in wanted:
            head = written[places[layer]]
            places[layer] += 1
            assert abs(head["qk_spectral"] - scores) <= SUMS * size
            assert (head["vo_spectral"] is None) == (mixed is None)
            assert mixed is None or abs(head["vo_spectral"] - mixed) <= SUMS * size


def head_norms(full: Full, made: Synthetic) -> list[tuple[float, float | None, float]] | None:
    """|W_Q^T W_K| / sqrt(e) and |W_O W_V| of every head, and the size that rounding is measured by."""
    known = [each for each in full if each is not None]
    if not all(np.isfinite(each).all() and np.abs(each).max(initial=0.0) < LARGE for each in known):
        return None
    count, groups, size = made.heads
    query, key, value, output = full
    share, found = count // groups, []
    for head in range(count):
        own, shared = (slice(size * place, size * (place + 1)) for place in (head, head // share))
        scores = np.linalg.norm(query[own].T @ key[shared], 2) / np.sqrt(size)
        mixed = None if output is None else float(np.linalg.norm(output[:, own] @ value[shared], 2))
        scale = _peak(query[own]) * _peak(key[shared]) * query[own].size
        if output is not None:
            scale += _peak(output[:, own]) * _peak(value[shared]) * query[own].size
        found.append((float(scores), mixed, float(scale)))
    return found


def _peak(array: np.ndarray) -> float:
    """Sizes without squares, which vanish below 1e-162."""
    return float(np.abs(array).max())
