"""SGD, momentum and Adam with a schedule, as a record that a configuration can hold.

With g the gradient of the loss on the batch, r the rate that the schedule gives this step (counted from 1 as t) and w the
weight decay, which is decoupled from the gradient (Loshchilov and Hutter 2019, arXiv 1711.05101), one step is

- *sgd*: p <- p - r (g + w p), which is (4) of Gumaan 2025 (arXiv 2507.10581) for w = 0;
- *momentum*: v <- mu v + g, then p <- p - r (v + w p);
- *adam* (Kingma and Ba 2015, arXiv 1412.6980): m <- b1 m + (1 - b1) g, s <- b2 s + (1 - b2) g^2, then
  p <- p - r (m / (1 - b1^t) / (sqrt(s / (1 - b2^t)) + epsilon) + w p).

Everything that depends on the number of the step alone is computed before the run, in float64: a member's weights are then
the same whether JAX is set to 64 bits or not, and runs that differ in rate or schedule share one compilation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from certiformer.errors import BadInput

if TYPE_CHECKING:
    import optax

KINDS = ("sgd", "momentum", "adam")
SCHEDULES = ("constant", "linear", "cosine", "warmup-cosine", "exponential")
Leaves = list[Float[Array, "..."]]
Memory = tuple[Leaves, ...]


@dataclass(frozen=True)
class Optimiser:
    """How weights follow gradients.

    - `kind`: sgd, momentum or adam.
    - `schedule` of the rate: constant, linear (to zero), cosine (to zero), warmup-cosine (from zero over a tenth of the
      steps, then cosine), exponential (to a hundredth).

    >>> Optimiser(kind="adamw")
    Traceback (most recent call last):
    ...
    certiformer.errors.BadInput: there is no optimiser 'adamw'; there are sgd, momentum and adam (weight decay is a \
number of each)
    """

    kind: str = "adam"
    rate: float = 1e-3
    schedule: str = "constant"
    momentum: float = 0.9
    b1: float = 0.9
    b2: float = 0.999
    epsilon: float = 1e-8
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            known = "sgd, momentum and adam (weight decay is a number of each)"
            raise BadInput(f"there is no optimiser {self.kind!r}; there are {known}")
        if self.schedule not in SCHEDULES:
            raise BadInput(f"there is no schedule {self.schedule!r}; there are {', '.join(SCHEDULES)}")
        for name in ("rate", "epsilon", "weight_decay"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) >= 0):
                raise BadInput(f"{name} is a finite number of at least 0, not {getattr(self, name)}")
        for name in ("momentum", "b1", "b2"):
            if not 0 <= getattr(self, name) < 1:
                raise BadInput(f"{name} is at least 0 and below 1, not {getattr(self, name)}")

    def rates(self, steps: int) -> Float[np.ndarray, " steps"]:
        """The rate of every step.

        >>> Optimiser(rate=1.0, schedule="linear").rates(4)
        array([1.  , 0.75, 0.5 , 0.25])
        """
        if self.schedule == "constant":
            return np.full(steps, self.rate)
        with jax.enable_x64(True):
            return np.asarray(schedule(self, steps)(jnp.arange(steps)), np.float64)

    def numbers(self, steps: int) -> Float[np.ndarray, "steps 3"]:
        """What a step depends on besides gradients: its rate, 1 / (1 - b1^t) and 1 / (1 - b2^t)."""
        t = np.arange(1, steps + 1)
        return np.stack([self.rates(steps), 1 / (1 - self.b1**t), 1 / (1 - self.b2**t)], axis=1)

    def without_rate(self) -> Optimiser:
        """What the compiled program depends on."""
        return replace(self, rate=1.0, schedule="constant")

    def memory(self, leaves: Leaves) -> Memory:
        """What is remembered between steps, before the first one."""
        count = {"sgd": 0, "momentum": 1, "adam": 2}[self.kind]
        return tuple([jnp.zeros_like(leaf) for leaf in leaves] for _ in range(count))

    def step(
        self, numbers: Float[Array, " 3"], slopes: Leaves, memory: Memory, leaves: Leaves
    ) -> tuple[Leaves, Memory]:
        """The weights and the memory after one step."""
        rate, first, second = numbers[0], numbers[1], numbers[2]
        directions = slopes
        if self.kind == "momentum":
            directions = [self.momentum * v + g for v, g in zip(memory[0], slopes, strict=True)]
            memory = (directions,)
        elif self.kind == "adam":
            means = [self.b1 * m + (1 - self.b1) * g for m, g in zip(memory[0], slopes, strict=True)]
            squares = [self.b2 * s + (1 - self.b2) * g * g for s, g in zip(memory[1], slopes, strict=True)]
            sizes = [jnp.sqrt(s * second) + self.epsilon for s in squares]
            directions = [m * first / size for m, size in zip(means, sizes, strict=True)]
            memory = (means, squares)
        if self.weight_decay:
            directions = [d + self.weight_decay * p for d, p in zip(directions, leaves, strict=True)]
        return [p - rate * d for p, d in zip(leaves, directions, strict=True)], memory


def schedule(optimiser: Optimiser, steps: int) -> optax.Schedule:
    """The rate of every step of a run, from optax."""
    import optax

    rate = optimiser.rate
    schedules = {
        "constant": lambda: optax.constant_schedule(rate),
        "linear": lambda: optax.linear_schedule(rate, 0.0, steps),
        "cosine": lambda: optax.cosine_decay_schedule(rate, steps),
        "warmup-cosine": lambda: optax.warmup_cosine_decay_schedule(0.0, rate, max(1, steps // 10), steps),
        "exponential": lambda: optax.exponential_decay(rate, steps, 0.01),
    }
    return schedules[optimiser.schedule]()
