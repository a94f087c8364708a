"""Whether a token at one position can be taken for another token at another position.

Theorems on transformers with codes that are added to the tokens ask that the encoded domains, code of position s plus
the domain of the tokens, are pairwise disjoint (Jiang and Li 2023, arXiv 2305.18475, equation 7). For a box with sides
w_j the domains of s and t are disjoint if and only if |p_sj - p_tj| > w_j for some j; for a ball of radius r, if and
only if |p_s - p_t| > 2 r. The stated box is the smallest one that holds every row of the table of tokens."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from certiformer.audit.form import Checkpoint
from certiformer.audit.measure import Measurements
from certiformer.audit.verdict import Given, Verdict

DISJOINT = "hypothesis.disjoint_positions"
IDS = (DISJOINT,)
PAIRS = 1 << 15  # numbers that are compared at once: what stays near the processor


def disjoint_positions(checkpoint: Checkpoint, figures: Measurements, given: Given) -> Verdict:
    """The verdict on the stored table of codes."""
    table, box = checkpoint.embeddings.get("position"), figures.token_box
    if not checkpoint.adds_codes:
        where = checkpoint.positions or "not known"
        return Verdict(DISJOINT, "does-not-apply", f"No code is added to the tokens (positions: {where}).")
    fits = box is not None and table is not None and table.shape[1:] == (len(box),)
    if table is None or len(table.shape) != 2 or not (fits or given.radius is not None):
        needs = ("a table of codes and one of tokens, of one width, or --radius",)
        why = "The codes of the positions, or the tokens they are added to, are in no file."
        return Verdict(DISJOINT, "holds-if", why, needs=needs)
    if table.shape[0] < 2:
        return Verdict(DISJOINT, "holds", "There is one position only, which no other can be taken for.")
    codes = table.read()
    if given.radius is not None or box is None:
        closest, pair = nearest_pair(codes, None)
        ratio, domain = closest / (2 * (given.radius or 0.0)), f"the ball of radius {given.radius:g}"
    else:
        ratio, pair = nearest_pair(codes, np.array(box) * abs(checkpoint.embedding_scale))
        rows = checkpoint.embeddings[checkpoint.token_table or ""].shape[0]
        domain = f"the box that holds all {rows:,} token embeddings"
    what = f"On {domain}, positions {pair[0]} and {pair[1]} are"
    if ratio > 1:
        return Verdict(
            DISJOINT,
            "holds",
            f"{what} the nearest, {ratio:.3g} times as far apart as needed: all domains are disjoint.",
            ratio,
            1.0,
        )
    return Verdict(
        DISJOINT,
        "does-not-apply",
        f"{what} {ratio:.3g} times as far apart as disjoint domains need: a token at one can equal another at the other.",
        ratio,
        1.0,
    )


def nearest_pair(
    codes: Float[np.ndarray, "positions width"], sides: Float[np.ndarray, " width"] | None
) -> tuple[float, tuple[int, int]]:
    """The smallest max_j |p_sj - p_tj| / w_j over all pairs (Euclidean distance where there are no sides) and its pair.

    The search ends at the first pair that is not far enough apart: it is neighbours that are tried first.

    >>> nearest_pair(np.array([[0.0], [3.0], [4.0]]), np.array([0.5]))
    (2.0, (1, 2))
    """
    count = len(codes)
    best, pair = np.inf, (0, 0)
    for gap in range(1, count):
        step = max(1, PAIRS // max(codes.shape[1], 1))
        for start in range(0, count - gap, step):
            stop = min(count - gap, start + step)
            moved = np.abs(codes[start + gap : stop + gap] - codes[start:stop])
            far = np.sqrt((moved**2).sum(1)) if sides is None else _shares(moved, sides).max(1)
            place = int(far.argmin())
            if far[place] < best:
                best, pair = float(far[place]), (start + place, start + place + gap)
        if sides is not None and best <= 1:
            break
    return best, pair


def _shares(moved: np.ndarray, sides: np.ndarray) -> np.ndarray:
    """moved / sides; a coordinate without extent separates whatever differs in it."""
    flat = sides == 0
    return np.where(flat, np.where(moved > 0, np.inf, 0.0), moved / np.where(flat, 1.0, sides))
