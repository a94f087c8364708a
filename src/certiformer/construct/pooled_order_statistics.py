r"""m pooled ramps know all order statistics of n numbers up to 1/m; for m < n nothing pooled is four times better.

A *pooled* (Deep Sets) model adds up a feature vector phi(x) in R^m of every token and answers with a function of the sum,
rho(phi(x_1) + ... + phi(x_n)). m is the latent dimension. This module says how the error depends on it, and builds the
transformer.

Statement
---------
Let x_1, ..., x_n be numbers in [a, b], x_(1) >= ... >= x_(n) in order, h = (b - a)/m, t_k = a + k h, and
clamp(u) = min(max(u, 0), 1).

(a) With the latent sums R_k = sum_i clamp((x_i - t_k)/h), k = 0..m-1, the estimates

        y_j = a + h sum_k clamp(R_k - j + 1)        satisfy     sup |y_j - x_(j)| = h (1 - 1/max(j, n - j + 1)).

    Hence sum_j c_j y_j is within h sum_j |c_j| (1 - 1/max(j, n-j+1)) of the L-statistic sum_j c_j x_(j), and for
    every f with |f(x) - f(x')| <= L max_j |x_(j) - x'_(j)| the function f(y_1, ..., y_n) of the latent sums is within
    L (b-a)(1 - 1/n)/m of f.
(b) The transformer of this module computes sum_j c_j y_j: a feed-forward layer of m units, one head with equal
    scores, and a feed-forward layer of at most m (n-1) units.
(c) For every continuous phi into R^m with m < n, and every rho, some order statistic has an error of at least (b - a)
    / (2 (m + 1)). So for m < n the construction is at most 4 times worse than the best, and 1/m is the true rate.

Source
------
The form is that of Zaheer et al. 2017 (arXiv 1703.06114). Wagstaff et al. 2019 (arXiv 1901.09006) show that an exact
continuous representation of all such functions needs m >= n.

Differs from the source in
--------------------------
Errors instead of exact representability: a bound with its
constant for every m, attained, and a lower bound for every m < n. For m >= n exact representations exist (power
sums); this one still has an error then, in exchange for piecewise linear parts that a transformer computes exactly.

Proof
-----
(a) Let x_(j) = t_k + u h with 0 <= u < 1 (for x_(j) = b take k = m-1, u = 1). For i < k at least j numbers are >=
t_{i+1}, so R_i >= j and clamp(R_i - j + 1) = 1. For i > k only numbers above x_(j) count, at most j-1 of them, so it
is 0. Hence y_j and x_(j) both lie in [t_k, t_k + h], and y_j - x_(j) = h (clamp(R_k - j + 1) - u). In R_k the j-1
larger numbers add between u and 1 each, x_(j) adds u, the smaller ones between 0 and u: 1 - j (1-u) <= R_k - j + 1 <=
(n-j+1) u. So the difference lies between h (max(0, 1 - j (1-u)) - u) and h (min(1, (n-j+1) u) - u). These are
smallest at u = 1 - 1/j and largest at u = 1/(n-j+1), with the values -h (1 - 1/j) and h (1 - 1/(n-j+1)); both occur:
numbers equal to x_(j) with the others at t_k, or with the others at t_{k+1}.
(b) On [a, b], clamp((x - t_k)/h) = relu((x - t_k)/h) - relu((x - t_{k+1})/h), and the last unit is 0. Equal scores
give the mean of the tokens (`expressivity.uniform_pooling`), n times it is R. sum_j c_j clamp(R - j + 1) is piecewise
linear on [0, n] with slope c_j on [j-1, j]: c_1 R + sum_{j<n} (c_{j+1} - c_j) relu(R - j).
(c) Let m + 1 groups of tokens, none empty, sit at s_i = a + (b-a)(2i-1)/(2(m+1)) + v_i, |v_i| <= r := (b-a)/(2(m+1)).
They stay in order and in [a, b]. v -> sum_i phi(x_i) is continuous from the boundary of the cube [-r, r]^{m+1}, a
sphere of dimension m, to R^m. By Borsuk and Ulam two antipodal points v, -v have the same image. Some |v_i| is r, so
an order statistic differs by 2r while rho is the same: one of the two errors is at least r. QED.

Assumptions
-----------
- box: **trusted** all tokens lie in [a, b]; it is the box of a claim that the checker proves.
- borsuk-ulam: **trusted** the theorem of Borsuk and Ulam, for (c) only.

Certified
---------
`error_bound` and `pooled_lower_bound` are exact rationals. `certiformer prove` certifies a
transformer against max, min, median.

Not certified
-------------
The bounds are those of the ideal weights; 1/m in the read-out is rounded to float64
(exact for powers of two on [0, 1]).

Example
-------
>>> largest = [1, 0, 0]
>>> model = pooled_order_statistics(3, latent=16, coefficients=[largest])
>>> model.evaluate([[0.2, 0.9, 0.5], [0.2, 0.9, 0.91]]).round(6)  # exact, unless two numbers share a cell
array([[0.9  ],
       [0.935]])
>>> error_bound(3, 16, largest), pooled_lower_bound(3, 2)
(Fraction(1, 24), Fraction(1, 6))

Tests
-----
`tests/theorems/test_pooled_order_statistics.py`
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from certiformer.errors import BadInput
from certiformer.expressivity.exact_numbers import Real, exact
from certiformer.model import Attention, Block, Config, FeedForward, Heads, Input, Readout, Transformer

THEOREM = {
    "id": "construct.pooled_order_statistics",
    "title": "m pooled ramps know all order statistics of n numbers up to 1/m; for m < n nothing pooled is four "
    "times better",
    "kind": "rate",
    "sources": (
        "zaheer2017",
        "wagstaff2019",
    ),
    "verb": "explore",
    "assumptions": (
        ("box", "All tokens lie in [a, b].", "trusted"),
        ("borsuk-ulam", "The theorem of Borsuk and Ulam, for the lower bound.", "trusted"),
    ),
    "uses": (
        "expressivity.uniform_pooling",
        "expressivity.permutation_equivariance",
    ),
}


def pooled_order_statistics(
    length: int, latent: int, coefficients: Sequence[Sequence[Real]], low: Real = 0, high: Real = 1
) -> Transformer:
    """The transformer of (b): for each row c of `coefficients` one output sum_j c_j y_j, largest number first."""
    cells, rows = _interval(length, latent, low, high), [_row(length, row) for row in coefficients]
    if not rows:
        raise BadInput("there is at least one row of coefficients, an output each")
    steps = np.array([[float(c[j + 1] - c[j]) for c in rows] for j in range(length - 1)]).reshape(length - 1, len(rows))
    knots = np.flatnonzero(steps.any(axis=1))  # R - j - 1 for these j
    units, width = latent * len(knots), latent + len(rows)
    config = Config(
        Input("continuous", length, width=1),
        width=width,
        outputs=len(rows),
        readout=Readout("mean"),
        blocks=(
            Block(None, FeedForward(latent, residual=False)),
            Block(
                Attention((Heads(1, 1, latent),), scale="unit", residual=False), FeedForward(units) if units else None
            ),
        ),
    )
    ramps = np.eye(latent, width)
    ramps[1:] -= np.eye(latent, width)[:-1]
    head = "blocks.1.attention.groups.0"
    tensors = {
        "embed.weight": np.eye(1, width),
        "embed.bias": np.zeros(width),
        "blocks.0.ffn.up": np.concatenate([np.full((1, latent), float(1 / cells)), np.zeros((width - 1, latent))]),
        "blocks.0.ffn.up_bias": np.array([float(-(exact(low) / cells + k)) for k in range(latent)]),
        "blocks.0.ffn.down": ramps,
        "blocks.0.ffn.down_bias": np.zeros(width),
        f"{head}.query": np.zeros((1, width, 1)),
        f"{head}.key": np.zeros((1, width, 1)),
        f"{head}.value": np.eye(width, latent)[None],
        f"{head}.output": np.eye(latent, width)[None],
    }
    if units:
        # Unit (k, j): relu(n mean_k - j - 1).
        up = np.kron(np.eye(width, latent), np.full((1, len(knots)), float(length)))
        down = np.zeros((units, width))
        down[:, latent:] = np.tile(steps[knots], (latent, 1))
        tensors |= {"blocks.1.ffn.up": up, "blocks.1.ffn.up_bias": np.tile(-(knots + 1.0), latent)}
        tensors |= {"blocks.1.ffn.down": down, "blocks.1.ffn.down_bias": np.zeros(width)}
    # Per unit of R_k = n mean_k: h c_1 directly, h times the rest by way of the output coordinates.
    read = np.zeros((width, len(rows)))
    read[:latent] = [float(cells * length * c[0]) for c in rows]
    read[latent:] = float(cells) * np.eye(len(rows))
    constant = np.array([float(exact(low) * sum(c)) for c in rows])
    return Transformer(config, tensors | {"readout.weight": read, "readout.bias": constant})


def error_bound(length: int, latent: int, coefficients: Sequence[Real], low: Real = 0, high: Real = 1) -> Fraction:
    """The bound h sum_j |c_j| (1 - 1/max(j, n-j+1)) of (a); for a single order statistic it is attained."""
    cells = _interval(length, latent, low, high)
    row = _row(length, coefficients)
    shares = [1 - Fraction(1, max(j, length - j + 1)) for j in range(1, length + 1)]
    return cells * sum((abs(c) * share for c, share in zip(row, shares, strict=True)), Fraction(0))


def pooled_lower_bound(length: int, latent: int, low: Real = 0, high: Real = 1) -> Fraction:
    """What every pooled model of this latent dimension must err on some order statistic: (c); 0 when m >= n."""
    _interval(length, latent, low, high)
    return (exact(high) - exact(low)) / (2 * (latent + 1)) if latent < length else Fraction(0)


def _interval(length: int, latent: int, low: Real, high: Real) -> Fraction:
    """The width h of a cell."""
    for number in (length, latent):
        if type(number) is not int or not 0 < number < 2**31:
            raise BadInput(f"the length and the latent dimension are positive integers, not {length!r} and {latent!r}")
    if not exact(low) < exact(high):
        raise BadInput(f"the interval from {low} to {high} is empty")
    return (exact(high) - exact(low)) / latent


def _row(length: int, coefficients: Sequence[Real]) -> list[Fraction]:
    if len(coefficients) != length:
        raise BadInput(f"there is a coefficient for each of the {length} order statistics, not {len(coefficients)}")
    return [exact(c) for c in coefficients]
