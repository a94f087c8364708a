"""`build_under_mask`: a proved transformer whose tokens attend only where given masks allow it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from jaxtyping import ArrayLike

from certiformer.artifact import Artifact
from certiformer.construct import masked_gather
from certiformer.construct.method import Task
from certiformer.expressivity.sparse_attention import mask_stack
from certiformer.search.candidates import Candidate, Choice
from certiformer.search.case import Progress
from certiformer.search.job import Job
from certiformer.search.request import Options, read_shape, read_target

METHOD = "masked-gather"


def build_under_mask(
    target: str | Callable[..., Any],
    masks: ArrayLike | Sequence[ArrayLike],
    *,
    on: str,
    eps: str | float,
    attention: str = "softmax",
    tokens: int | None = None,
    out_tokens: int | None = None,
    out_width: int | None = None,
    out: str | Path | None = None,
    force: bool = False,
    keep: bool = False,
    progress: Progress | None = None,
    **options: Any,
) -> Artifact:
    """A transformer under `masks` proved to be within `eps` of `target` at every point of the box `on`.

    `masks` is one (n, n) table, row k saying whom token k attends to, or one for each layer, used in turn. `attention` is
    `softmax` or `linear`. Everything else is as for `build`. Masks under which a token that is read cannot hear another
    that it needs are `BadInput` with the pair.

    >>> ring = [[1, 0, 1], [1, 1, 0], [0, 1, 1]]                    # each token hears itself and the one before it
    >>> claim = {"on": "[-1,1]^3", "eps": "1e-9", "rule": "ridges"}
    >>> run = build_under_mask("x1 - 2*x2 + abs(x3)", ring, attention="linear", **claim)
    >>> run.certified, run.certificate.method
    (True, 'masked-gather')
    """
    wanted = read_target(target, on, tokens)
    shape = read_shape(wanted, tokens, out_tokens, out_width, "sequence")
    job = Job(wanted, eps, METHOD, Options(**options), progress, f"{shape} {attention} {mask_stack(masks).tolist()}")
    task = Task(wanted, job.epsilon, shape, job.options.seed)

    def candidates() -> Choice:
        built = masked_gather.construction_under_mask(task, masks, attention)
        return Choice([Candidate(METHOD, None, None, lambda: built, "masked_gather")])

    return job.run(out, force, keep, candidates)
