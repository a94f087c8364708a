"""Backpropagation through a chain of layers, by formulas (9) and (10) of Gumaan 2025 (arXiv 2507.10581), in both readings.

Layer l computes z^l = W^l h^(l-1) + b^l and h^l = phi(z^l); h^0 is the input, and the loss is L = |h^K - y|^2 / 2.
The formulas are

    (9)   delta^(l-1) = (W^l)^T delta^l * phi'(z^(l-1)),
    (10)  dL/dW^l = delta^l (h^(l-1))^T,   dL/db^l = delta^l.

They hold for delta^l = dL/dz^l. The paper prints delta^l = dL/dh^l. By the chain rule these differ by a factor:
dL/dz^l = dL/dh^l * phi'(z^l). Started with dL/dh^K, every delta of (9) misses phi'(z^K), so the gradients of all layers are
wrong unless phi'(z^K) = 1, as for a last layer without activation, where the two readings are the same.

>>> chain = example()
>>> right, printed = gradients(chain, "z"), gradients(chain, "h")
>>> [float(round(layer.bias[0], 6)) for layer in right]
[0.114381, 0.095863]
>>> [float(round(layer.bias[0], 6)) for layer in printed]
[0.422238, 0.353878]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from certiformer.errors import BadInput

Vector = Float[np.ndarray, " units"]
Activation = Literal["tanh", "identity"]
ACTIVATIONS: dict[str, tuple[Callable[[Vector], Vector], Callable[[Vector], Vector]]] = {
    "tanh": (np.tanh, lambda z: 1 - np.tanh(z) ** 2),
    "identity": (lambda z: z, np.ones_like),
}


class Layer(NamedTuple):
    """W and b of one layer, or the gradients of the loss by them, and phi."""

    weight: Float[np.ndarray, "out in"]
    bias: Vector
    activation: Activation = "tanh"


class Chain(NamedTuple):
    """Layers, an input and the output that is wanted."""

    layers: tuple[Layer, ...]
    x: Vector
    y: Vector


class Pass(NamedTuple):
    """What the forward pass leaves behind: z^1 to z^K, h^0 to h^K and the loss."""

    z: list[Vector]
    h: list[Vector]
    loss: float


def forward(chain: Chain) -> Pass:
    """The solid arrows of the picture: from the input to the loss."""
    z, h = [], [chain.x]
    for layer in chain.layers:
        z.append(layer.weight @ h[-1] + layer.bias)
        h.append(ACTIVATIONS[layer.activation][0](z[-1]))
    return Pass(z, h, float(np.sum((h[-1] - chain.y) ** 2) / 2))


def gradients(chain: Chain, delta: Literal["z", "h"] = "z") -> list[Layer]:
    """The dashed arrows: (9) and (10), with delta^K = dL/dz^K (`z`, right) or dL/dh^K (`h`, as printed)."""
    if delta not in ("z", "h"):
        raise BadInput(f"delta is the gradient by 'z' or by 'h', not {delta!r}")
    done = forward(chain)
    slopes = [ACTIVATIONS[layer.activation][1](z) for layer, z in zip(chain.layers, done.z, strict=True)]
    signal = done.h[-1] - chain.y  # dL/dh^K
    if delta == "z":
        signal = signal * slopes[-1]
    found = []
    for place in range(len(chain.layers) - 1, -1, -1):
        layer = chain.layers[place]
        found.append(Layer(np.outer(signal, done.h[place]), signal, layer.activation))  # (10)
        if place:
            signal = layer.weight.T @ signal * slopes[place - 1]  # (9)
    return found[::-1]


def example() -> Chain:
    """The chain of the documentation: one input, one hidden unit and one output, both with tanh."""
    layers = (Layer(np.array([[1.0]]), np.array([0.5])), Layer(np.array([[2.0]]), np.array([0.0])))
    return Chain(layers, np.array([0.25]), np.array([0.5]))
