"""An orthogonal change of basis of the residual stream: every coordinate then mixes all variables.

*Exact.* A Hadamard matrix H of a power of two D has entries 1 and -1, and H H^T = D. With D the next power of two
from the number of coordinates on and a = floor(log2(D) / 2), the directions are rows of H / 2^a with random signs of
the columns, in random order; the reader is the transpose times 2^(2a) / D. All of these are powers of two, so integer
weights become multiples of 2^-a, or of 2^a / D, and nothing is rounded as long as the sums fit the significand (24
bits in float32): the rotated model is the same function of real numbers, which `stream.is_conjugate` checks.
Directions have length 1 (D a power of four) or sqrt 2. Example: 7 coordinates become D = 8 with entries +-1/2, and
the reader's entries are +-1/4.

*Random.* The directions are the rows of a random orthogonal matrix (the Q of a Gaussian one, signs made even): the
look of a trained model, but its weights are rounded to the stored type, so what is computed changes by a relative u =
2^-24 or so at every step.
"""

from __future__ import annotations

import numpy as np

from certiformer.compiler.realistic.basis import Basis, Matrix
from certiformer.errors import BadInput

KINDS = ("exact", "random")


def rotation(width: int, kind: str | Matrix, seed: int) -> Basis:
    """A basis for `width` coordinates: random, or that of given directions.

    >>> rotation(3, "exact", 0).directions.tolist()
    [[0.5, 0.5, -0.5, -0.5], [-0.5, -0.5, -0.5, -0.5], [-0.5, 0.5, -0.5, 0.5]]
    """
    if not isinstance(kind, str):
        return _given(kind, width)
    generator = np.random.default_rng(seed)
    if kind == "exact":
        return _hadamard(width, generator)
    if kind == "random":
        q, r = np.linalg.qr(generator.normal(size=(width, width)))
        directions = q * np.sign(np.diag(r))
        return Basis.of(directions, directions.T)
    raise BadInput(f"a rotation is one of {', '.join(KINDS)}, not {kind!r}")


def _given(directions: Matrix, width: int) -> Basis:
    """The basis of given directions, one row for each coordinate, orthogonal to each other."""
    rows = np.asarray(directions, np.float64)
    if rows.ndim != 2 or rows.shape[0] != width or not np.isfinite(rows).all():
        raise BadInput(f"a basis is a matrix with {width} rows of finite numbers, one for each coordinate")
    gram = rows @ rows.T
    sizes = np.diag(gram)
    # Orthogonal up to the rounding of float64: D products of numbers of size 1 err by about D 2^-53.
    if not (sizes > 0).all() or np.abs(gram - np.diag(sizes)).max() > 1e-12 * sizes.max() * rows.shape[1]:
        raise BadInput("the directions of a basis must be orthogonal to each other")
    return Basis.of(rows, rows.T / sizes)


def _hadamard(width: int, generator: np.random.Generator) -> Basis:
    size = 1 << max(1, (width - 1).bit_length())
    rows, columns = np.arange(size)[:, None], np.arange(size)[None, :]
    signs = 1.0 - 2.0 * (np.bitwise_count(rows & columns) % 2)
    signs = signs[generator.permutation(size)[:width]] * generator.choice([-1.0, 1.0], size)
    signs = signs * generator.choice([-1.0, 1.0], (width, 1))
    scale = 2.0 ** ((size.bit_length() - 1) // 2)
    return Basis.of(signs / scale, signs.T * scale / size)
