"""The error T - f of a model against its target as one Taylor form per box, and its bound.

Coefficients are subtracted before any range is taken, so what model and target have in common cancels. The result for a box
is a number that bounds |T - f| there, or inf when nothing is known (NaN never passes as a bound).
"""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jaxtyping import Array, Float

from certiformer.enclose.lists import PrototypeLists
from certiformer.enclose.network import enclose_model
from certiformer.enclose.prototype_form import BoxFunction, enclose_prototypes
from certiformer.enclose.target import enclose_target
from certiformer.enclose.taylor import Form, enclosed_range, pad_rows, sub
from certiformer.errors import BadInput
from certiformer.interval import apart
from certiformer.kernel.programs import Program
from certiformer.model import Transformer

ErrorBound = Callable[[Float[Array, " D"], Float[Array, " D"]], tuple[Float[Array, ""], Float[Array, " D"]]]


def error_bound(
    model: Transformer, target: Program | Transformer, order: int, lists: PrototypeLists | None = None
) -> ErrorBound:
    """`difference_bound` of a model against a program or another model, by the general enclosure of `network`.

    With `lists` (see `prototype_error_bound`) the closed form of prototype attention is used instead.
    """
    if isinstance(target, Transformer):
        return difference_bound(enclose_model(model, order), enclose_model(target, order))
    if lists is not None:
        return prototype_error_bound(lists, target, order)
    config = model.config
    _same_shape(config.tokens * (config.input.width or 1), model.output_size, target)
    return difference_bound(enclose_model(model, order), enclose_target(target, order))


def prototype_error_bound(lists: PrototypeLists, program: Program, order: int) -> ErrorBound:
    """`difference_bound` for prototype attention with lists, against a target."""
    _same_shape(lists.prototypes.dimension, lists.prototypes.outputs, program)
    return difference_bound(enclose_prototypes(lists.prototypes, order, lists), enclose_target(program, order))


def difference_bound(network: BoxFunction, target: BoxFunction) -> ErrorBound:
    """A function of (centre, radius) that returns a bound of |network - target| and a score per axis.

    The scores say how much each variable contributes: sum_a a_i (|T_a| + |f_a|) over the coefficients, plus a share of
    the remainder in proportion to the radius (the radius alone where nothing is known). Split the axis with the largest.
    """

    def bound(centre: Float[Array, " D"], radius: Float[Array, " D"]) -> tuple[Float[Array, ""], Float[Array, " D"]]:
        t, f = apart(network, centre, radius), apart(target, centre, radius)
        error = apart(sub, t, f)
        size = enclosed_range(error).magnitude.max()
        return jnp.where(jnp.isfinite(size), size, jnp.inf), apart(_axis_scores, t, f, error, radius)

    return bound


def _axis_scores(t: Form, f: Form, error: Form, radius: Float[Array, " D"]) -> Float[Array, " D"]:
    rows = max(t.coef.shape[0], f.coef.shape[0])
    sizes = jnp.abs(pad_rows(t.coef, rows)).sum(1) + jnp.abs(pad_rows(f.coef, rows)).sum(1)
    exponents = jnp.asarray(error.space.exponents(error.degree), dtype=float)
    scores = sizes @ exponents + error.rem.sum() * (radius / radius.sum())
    return jnp.where(jnp.isfinite(scores), scores, radius)


def _same_shape(dimension: int, outputs: int, program: Program) -> None:
    if dimension != program.inputs or outputs != len(program.outputs):
        raise BadInput(
            f"the model maps {dimension} numbers to {outputs}, the target {program.inputs} to {len(program.outputs)}"
        )
