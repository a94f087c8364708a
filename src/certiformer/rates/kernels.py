"""Kernels rho(u, v) on [0, 1]^2, from a formula or a function, on the nodes of a quadrature rule.

Two rules, both with weights that sum to 1 (the uniform measure): `gauss` (Gauss-Legendre) for kernels that are smooth,
`midpoint` for those that are periodic and smooth, where it converges as fast. Kernels with a kink converge like a small
power of the number of nodes under both; `pod.py` measures that by doubling.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from jaxtyping import Float

from certiformer.errors import BadInput
from certiformer.target.named import parse_named

Rule = Literal["gauss", "midpoint"]
Nodes = Float[np.ndarray, " nodes"]
Kernel = Callable[[Float[np.ndarray, "*shape"], Float[np.ndarray, "*shape"]], Float[np.ndarray, "*shape"]]


def quadrature(count: int, rule: Rule = "gauss") -> tuple[Nodes, Nodes]:
    """Nodes in (0, 1) and weights.

    >>> quadrature(2, "midpoint")[0].tolist()
    [0.25, 0.75]
    >>> nodes, weights = quadrature(4)
    >>> round(float(weights @ nodes**7), 12)        # 4 nodes integrate polynomials up to degree 7
    0.125
    """
    if rule == "midpoint":
        return (np.arange(count) + 0.5) / count, np.full(count, 1 / count)
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return (nodes + 1) / 2, weights / 2


def formula_kernel(text: str) -> Kernel:
    """The kernel of a formula in u and v, by the grammar of `certiformer.target.parse`; nothing is evaluated as code.

    >>> formula_kernel("exp(-3*(u-v)**2)")(np.array([0.5]), np.array([0.5])).tolist()
    [1.0]
    >>> formula_kernel("u + x2")
    Traceback (most recent call last):
        ...
    certiformer.errors.BadInput: unknown variable 'x2' at column 5 of the formula; the variables are u, v
    """
    program = parse_named(text, ("u", "v"))
    if len(program.outputs) != 1:
        raise BadInput(f"a kernel has one value for each u and v, not {len(program.outputs)}")

    def kernel(u: np.ndarray, v: np.ndarray) -> np.ndarray:
        import jax

        from certiformer.target.floating import as_jax

        with jax.enable_x64(True):
            return np.asarray(as_jax(program)(np.stack([u, v], axis=-1)))[..., 0]  # pyright: ignore[reportArgumentType]

    return kernel


def on_nodes(kernel: Kernel, nodes: Nodes) -> Float[np.ndarray, "nodes nodes"]:
    """The values rho(u_i, u_j); a value that is not finite is refused with its place."""
    u, v = np.meshgrid(nodes, nodes, indexing="ij")
    values = np.asarray(kernel(u, v), np.float64)
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        i, j = bad[0]
        raise BadInput(f"the kernel has no finite value at u = {nodes[i]:g}, v = {nodes[j]:g}")
    return values


def sine_mixing(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """1 + 2 sin(2 pi u) sin(2 pi (u + v)): what mixing v -> u + v makes of `sine_pair` (Jiang and Li 2024, section 6).

    With a = 2 pi u and b = 2 pi v it is 1 + cos b - cos(2a + b), so its singular values are sqrt((7 + sqrt 33)/8) =
    1.262169, 1/2 and sqrt((7 - sqrt 33)/8) = 0.396143 (printed there: 1.265, 0.5, 0.4). Centred in v it is cos b -
    cos(2a + b), with the values sqrt(3)/2, 1/2: the constant 1 is a gauge and no query needs it, but sin b sin 2a and
    cos b (1 - cos 2a) do.
    """
    return 1 + 2 * np.sin(2 * np.pi * u) * np.sin(2 * np.pi * (u + v))


def sine_pair(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """1 + 2 sin(2 pi u) sin(2 pi v): rank 2, both singular values 1."""
    return 1 + 2 * np.sin(2 * np.pi * u) * np.sin(2 * np.pi * v)


def nearest_point_factors(
    points: Float[np.ndarray, "points size"], sharpness: float
) -> tuple[Float[np.ndarray, "points size+1"], Float[np.ndarray, "points size+1"]]:
    """Queries and keys of size d + 1 whose products are -sharpness |u - v|^2 up to a constant of each row.

    |u - v|^2 = |u|^2 - 2 <u, v> + |v|^2, and the softmax does not see |u|^2.
    """
    ones = np.ones((len(points), 1))
    keys = np.concatenate([points, (points**2).sum(1, keepdims=True)], axis=1)
    return sharpness * np.concatenate([2 * points, -ones], axis=1), keys
