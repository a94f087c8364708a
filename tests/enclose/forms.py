"""Helpers that run enclosures on many boxes and hold every box against the oracle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import jax
import numpy as np
from flint import arb

from certiformer.enclose.taylor import Form, enclosed_range
from certiformer.interval import Interval, rigorous_jit
from enclose.balls import Undecided, box_points, check_form

WIDTHS = [1e-12, 1e-7, 1e-3, 0.1, 0.7, 3.0, 40.0, 1e3]


def compiled(function: Callable) -> Callable:
    """Compiled as a short search does it; test_error and test_network run the optimised code as well."""
    return rigorous_jit(function, optimise=False)


def assert_enclosed(
    enclose: Callable,
    oracle: Callable[[list[Fraction]], list[arb]],
    centres: Sequence[Sequence[float]],
    radii: Sequence[Sequence[float]],
    extra: Callable[[list[Fraction], list[Fraction]], list[list[Fraction]]] | None = None,
    points: int = 6,
    jit: Callable = compiled,
) -> tuple[Form, Interval]:
    """Compile `enclose`, run it on every box, and check each form at the centre, corners, random and `extra` points.

    `extra(centre, radius)` returns normalised points. Returns the batched form and its range.
    """

    def with_range(c, r):
        form = enclose(c, r)
        return form, enclosed_range(form)

    c, r = np.asarray(centres, dtype=float), np.asarray(radii, dtype=float)
    form, whole = jax.tree.map(np.asarray, jit(jax.vmap(with_range))(c, r))
    rng = np.random.default_rng(0)
    exponents = form.space.exponents(form.space.degree_of(form.coef.shape[1]))
    for b in range(len(c)):
        centre, radius = [Fraction(v) for v in c[b]], [Fraction(v) for v in r[b]]
        samples = box_points(c.shape[1], rng, points) + (extra(centre, radius) if extra else [])
        for e in samples:
            if any(abs(t) > 1 for t in e):
                continue
            try:
                values = oracle([m + s * t for m, s, t in zip(centre, radius, e, strict=True)])
            except Undecided:
                continue
            for o, value in enumerate(values):
                if not value.is_finite():
                    continue
                label = f"box {b} (centre {c[b]}, radius {r[b]}), output {o}"
                check_form(
                    form.coef[b, :, o], form.rem[b, o], (whole.lo[b, o], whole.hi[b, o]), exponents, e, value, label
                )
    return form, whole
