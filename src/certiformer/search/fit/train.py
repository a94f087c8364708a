"""Training for the largest error: Adam, then damped Gauss-Newton (Levenberg-Marquardt) on p-norms with growing p.

For residuals r_i = T(x_i) - f(x_i) at N points let s = max |r_i| and m = mean (|r_i|/s)^p. What is minimised is

    F_p(theta)^2 + rho |theta|^2,   F_p = s m^(1/p), the p-norm of the residuals: the root mean square for p = 2, and

    max |r| N^(-1/p) <= F_p <= max |r|, for p = 64 and N = 1,152 at least 0.89 max |r|.

With v_i = m^(2/p-1) (|r_i|/s)^(p-2) / N the gradient of F_p^2 is 2 J^T V r, and 2 (p-1) J^T V J is its Hessian without the
terms that vanish with the curvature of T and with the spread of r; so each step solves

    ((p-1) J^T V J + rho + lambda) d = J^T V r + rho theta,

then solves once more for the parameters that enter linearly (o, a, c), at the new w and b. A step is taken if it
lowers the objective, and changes lambda accordingly. Points with large errors weigh more: this is iteratively reweighted
least squares. The second solve is variable projection (Golub and Pereyra 1973), and it decides: with 4 units for sin on
[0, 2 pi], 12 starts and 600 steps, the largest error is 4e-7 with it and 2e-4 without. All parameters are
scaled alike (the box is [-1, 1]^k, f has range about 1), hence the plain multiple of the identity as damping.

Many starts are trained at once; a start that runs into numbers that are not finite keeps an infinite error.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float

from certiformer.search.fit.architecture import Activation, evaluate, evaluate_with_slopes, linear_features

# Keeps the Gram matrix of hidden values, whose entries are about 1, positive definite in float64.
SMALLEST_RIDGE = 1e-13
LAMBDA_START, LAMBDA_LEAST, LAMBDA_MOST = 1e-4, 1e-14, 1e8
# A start is given up when this many steps in a row lowered its objective by less than this part.
STALLED_STEPS, STALLED_GAIN = 20, 1e-5
ADAM_RATE = 0.02


@partial(jax.jit, static_argnames=("activation",))
def largest_errors(
    activation: Activation,
    vectors: Float[Array, "starts parameters"],
    points: Float[Array, "points inputs"],
    values: Float[Array, " points"],
) -> Float[Array, " starts"]:
    """The largest error of every network at the points; infinite where it is not a number."""
    worst = jax.vmap(lambda vector: jnp.max(jnp.abs(evaluate(activation, vector, points) - values)))(vectors)
    return jnp.where(jnp.isfinite(worst), worst, jnp.inf)


@partial(jax.jit, static_argnames=("activation",))
def errors_at(
    activation: Activation,
    vector: Float[Array, " parameters"],
    points: Float[Array, "points inputs"],
    values: Float[Array, " points"],
) -> Float[Array, " points"]:
    """T - f at every point."""
    return evaluate(activation, vector, points) - values


@partial(jax.jit, static_argnames=("activation",))
def adam(
    activation: Activation,
    vectors: Float[Array, "starts parameters"],
    free: Float[Array, "starts parameters"],
    points: Float[Array, "points inputs"],
    values: Float[Array, " points"],
    steps: int,
) -> Float[Array, "starts parameters"]:
    """The networks after `steps` of Adam on the mean square; parameters with `free` zero stay."""
    optimiser = optax.adam(ADAM_RATE)

    def one(vector, free):
        def step(_, state):
            vector, memory = state
            error, jacobian = evaluate_with_slopes(activation, vector, points)
            change, memory = optimiser.update((error - values) @ jacobian / len(points), memory)
            return optax.apply_updates(vector, change * free), memory

        return jax.lax.fori_loop(0, steps, step, (vector, optimiser.init(vector)))[0]

    return jax.vmap(one)(vectors, free)


@partial(jax.jit, static_argnames=("activation",))
def descend(
    activation: Activation,
    vectors: Float[Array, "starts parameters"],
    free: Float[Array, "starts parameters"],
    points: Float[Array, "points inputs"],
    values: Float[Array, " points"],
    counted: Bool[Array, " points"],
    power: float,
    steps: int,
    goal: float,
    penalty: float,
) -> Float[Array, "starts parameters"]:
    """The networks after at most `steps` of Gauss-Newton on the p-norm.

    **Arguments:**

    - `free`: 1 for parameters that are trained, 0 for those that stay.
    - `counted`: the points that matter; the others are there to fill the array.
    - `power`: p. `goal`: a start stops when its largest error is below. `penalty`: rho.
    """
    run = partial(_descend_one, activation, points, values, counted, power, steps, goal, penalty)
    return jax.vmap(run)(vectors, free)


def _descend_one(activation, points, values, counted, power, steps, goal, penalty, vector, free):
    number = jnp.sum(counted)

    def objective(vector, residual):
        residual = jnp.where(counted, jnp.abs(residual), 0.0)
        worst = jnp.maximum(jnp.max(residual), 1e-300)
        mean = jnp.sum((residual / worst) ** power) / number
        return worst**2 * mean ** (2 / power) + penalty * jnp.sum(vector**2), worst, mean

    def refitted(vector, weight):
        """The vector after one step in the parameters that enter linearly, and its residuals."""
        features = linear_features(activation, vector, points)
        first = len(vector) - features.shape[1]
        outer, fixed = vector[first:], free[first:]
        weighted = features * weight[:, None]
        gradient = ((features @ outer - values) @ weighted) * fixed + penalty / (power - 1) * outer
        gram = (weighted.T @ features) * fixed[:, None] * fixed
        diagonal = jnp.where(fixed > 0, penalty / (power - 1) + SMALLEST_RIDGE, 1.0)
        change = jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(gram + jnp.diag(diagonal)), gradient * fixed)
        outer = outer - change / (power - 1)
        return vector.at[first:].set(outer), features @ outer - values

    def unfinished(state):
        step, _, _, _, worst, stalled = state
        return (step < steps) & (worst > goal) & (stalled < STALLED_STEPS)

    def advance(state):
        step, vector, damping, value, worst, stalled = state
        output, jacobian = evaluate_with_slopes(activation, vector, points)
        residual = output - values
        _, scale, mean = objective(vector, residual)
        weight = mean ** (2 / power - 1) * (jnp.abs(residual) / scale) ** (power - 2) / number
        weight = jnp.where(counted, weight, 0.0)
        weighted = jacobian * weight[:, None]
        gradient = (residual @ weighted + penalty * vector) * free
        hessian = (power - 1) * (weighted.T @ jacobian) * free[:, None] * free
        factor = jax.scipy.linalg.cho_factor(hessian + jnp.diag(jnp.where(free > 0, penalty + damping, 1.0)))
        moved = vector - jax.scipy.linalg.cho_solve(factor, gradient)
        moved, residual = refitted(moved, weight)
        new_value, new_worst, _ = objective(moved, residual)
        better = new_value < value  # false for NaN
        stalled = jnp.where(better & (new_value < value * (1 - STALLED_GAIN)), 0, stalled + 1)
        damping = jnp.clip(jnp.where(better, damping / 3, damping * 4), LAMBDA_LEAST, LAMBDA_MOST)
        return (
            step + 1,
            jnp.where(better, moved, vector),
            damping,
            jnp.where(better, new_value, value),
            jnp.where(better, new_worst, worst),
            stalled,
        )

    value, worst, _ = objective(vector, evaluate(activation, vector, points) - values)
    start = (0, vector, jnp.asarray(LAMBDA_START), value, worst, 0)
    return jax.lax.while_loop(unfinished, advance, start)[1]
