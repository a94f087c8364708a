"""What is proved about a model of ours on a ball of its inputs: the verdict of `certiformer audit RUN --radius R`.

The ball stands around the centre of the box that the run made its claim on, or around the origin where there is no such
box. Other checkpoints are told why not: nothing here encloses their arithmetic. JAX is loaded only when a ball is given
for a model of ours."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from certiformer.audit.form import Checkpoint
from certiformer.audit.measure import Measurements, Progress
from certiformer.audit.verdict import Given, Verdict
from certiformer.errors import BadInput
from certiformer.kernel.files import MODEL, TARGET, read_bytes

if TYPE_CHECKING:
    from certiformer.model import Transformer

LOCAL = "bounds.local_lipschitz"
BOXES = 2048  # a number and no time: the same run has the same constant on every machine
WORK = 10_000_000  # coefficients of all forms of the weights; beyond it a batch of boxes may take minutes


def local(
    path: str | Path, checkpoint: Checkpoint, figures: Measurements, given: Given, progress: Progress | None = None
) -> Verdict:
    """The verdict on the ball of radius `given.radius`."""
    if checkpoint.family != "certiformer":
        return _unfit(f"nothing here encloses the arithmetic of a {checkpoint.family}")
    if checkpoint.config["input"]["kind"] != "continuous":
        return _unfit("this one reads token ids, which have no ball around them")
    others = [block["attention"]["kind"] for block in checkpoint.config["blocks"] if block["attention"] is not None]
    other = next((kind for kind in others if kind != "softmax"), None)
    if other is not None:
        return _unfit(f"derivatives are enclosed for softmax attention, and this one has the kind {other}")
    if given.radius is None:
        needs = ("--radius: how far inputs may be from the centre of the box",)
        return Verdict(LOCAL, "holds-if", "A constant on a ball is proved by enclosing all derivatives.", needs=needs)
    dimension = checkpoint.config["input"]["tokens"] * checkpoint.config["input"]["width"]
    order = 2 if dimension <= 4 else 1
    if math.comb(dimension + order, order) * dimension * sum(w.count for w in checkpoint.weights()) > WORK:
        needs = ("more time than an audit takes: `ball_lipschitz` of `certiformer.audit.local_lipschitz`",)
        return Verdict(LOCAL, "holds-if", f"Derivatives in {dimension} inputs are many to enclose.", needs=needs)
    folder = Path(path) if Path(path).is_dir() else Path(path).parent
    if any(weight.source.file != MODEL for weight in checkpoint.weights()):
        return _unfit(f"this one is not in a {MODEL} of its own folder")
    try:
        return _proved(folder, checkpoint, figures, given.radius, order, progress)
    except BadInput as error:
        return _unfit(f"here {error}")


def _unfit(reason: str) -> Verdict:
    return Verdict(LOCAL, "does-not-apply", f"Constants on a ball are proved for models of this library; {reason}.")


def _proved(
    folder: Path, checkpoint: Checkpoint, figures: Measurements, radius: float, order: int, progress: Progress | None
) -> Verdict:
    from certiformer.audit.local_lipschitz import ball_lipschitz
    from certiformer.model import load

    model = load(folder)
    centre, where = centre_of(folder, model.config.tokens * (model.config.input.width or 0))
    found = ball_lipschitz(
        model,
        centre,
        radius,
        BOXES,
        order,
        progress=None if progress is None else lambda done, most: progress(done, most, "boxes of the ball"),
    )
    if not math.isfinite(found.upper):
        return _unfit(f"on the ball of radius {radius:g} around {where} {found.boxes} boxes were too few")
    trivial = _global(model, checkpoint, figures, centre, radius)
    sentence = (
        f"On the ball of radius {radius:g} around {where}, outputs move at most {found.upper:.4g} times as far as inputs"
        f" (Euclidean norms; proved in float64 on {found.boxes:,} boxes, seen {found.lower:.4g}); the constants of all"
        f" parts multiplied give {trivial:.4g}."
    )
    useful = found.upper < trivial
    return Verdict(
        LOCAL,
        "holds" if useful else "vacuous",
        sentence if useful else f"vacuous: {found.upper:.2g} against a trivial {trivial:.3g}. {sentence}",
        found.upper,
        trivial,
        details={"lower": found.lower, "boxes": found.boxes, "centre": centre, "radius": radius, "around": where},
    )


def centre_of(folder: Path, dimension: int) -> tuple[list[float], str]:
    """The centre of the box of a run, or the origin where there is none, and its name."""
    from certiformer.kernel.balls import BallDomain
    from certiformer.target import Target, Teacher, any_target_from_text

    if (folder / TARGET).is_file():
        target = any_target_from_text(read_bytes(folder / TARGET))
        if isinstance(target, Target | Teacher) and target.domain.dimension == dimension:
            ends = BallDomain(target.domain).ends
            return [float(((low + high) / 2).mid()) for low, high in ends], f"the centre of the box {target.domain}"
    return [0.0] * dimension, "the origin"


def _global(
    model: Transformer, checkpoint: Checkpoint, figures: Measurements, centre: list[float], radius: float
) -> float:
    """The product of the constants of the parts; tokens of a moved input are no further off than the embedding lets it."""
    import numpy as np

    from certiformer.audit.constants_multiplied import constants_multiplied, spectral
    from certiformer.enclose.weights import data_offsets

    offsets, weight = data_offsets(model), np.asarray(model.tensors["embed.weight"], np.float64)
    rows = np.reshape(centre, (model.config.tokens, -1)) @ weight + offsets.value
    start = np.linalg.norm(rows, axis=1).max() + np.linalg.norm(offsets.error) + spectral(weight) * radius
    if model.config.registers:
        still = np.asarray(model.tensors["registers"], np.float64)
        start = max(start, np.linalg.norm(still, axis=1).max())
    return constants_multiplied(checkpoint, figures, float(start), model.config.length)
