"""Error against the attention dimension m_h, for targets whose kernel has the singular values k^-alpha (Jiang and Li 2024,
Theorem 4.2 and Figure 5): the constructed models, by truncating the POD, and trained ones.

Four exponents are compared. `founding_note`: -(2 alpha + 1), as a summary of the first version has it; `paper`: -(2
alpha - 1), which the final version prints for an L1 error; `corrected_mse` and `corrected_l1`: what its proof gives
for the mean squared and for the mean absolute error (`truncation.py`). Slopes are fitted from m_h = 2 on.

What differs from the paper's experiment. The small default models have one ReLU layer of 65 units for f^, no
feed-forward network F^ behind the attention (the target has F = identity), values of size 1, and features that start
as hat functions (`sine_training.py`). `--full` is the paper's size: three ReLU layers of 128 units before and behind,
n = d_v = 32, m_h up to 16, PyTorch's initialisation. Where the infinite target is cut off the paper does not say; here
it is R = 128 for alpha <= 1 and R = 64 above. Errors are those of fresh inputs, the paper plots training errors; both
agree for a model this small.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from certiformer.errors import BadInput
from certiformer.rates.jackson_summary import Trained, summarised
from certiformer.rates.study import Result, Study
from certiformer.rates.targets import SineTarget
from certiformer.sweep.job import Job, Row

QUESTION = "Does the error fall with the attention dimension m_h as the singular values of the target say?"
# Models of one job: small ones take less than a minute then, those of the paper's size are for an accelerator.
AT_ONCE = {"knots": 12, "random": 80}
SHOWN_VALUES = 16
BESIDE = 1  # ranks on both sides of that of a finite target which are trained: nothing happens elsewhere


@dataclass(frozen=True)
class Options:
    """What is constructed and trained."""

    mh: tuple[int, ...] = tuple(range(1, 17))
    """Attention dimensions of the constructed models."""
    alpha: tuple[float, ...] = (0.55, 1.0, 1.5, 2.0)
    """How fast the singular values of the target fall, k^-alpha."""
    target_rank: tuple[str, ...] = ("2", "6", "inf")
    """Ranks of the target; inf is cut off at --cut."""
    diagonal: Literal["masked", "kept", "both"] = "both"
    """Whether a token attends to itself, in the target and in the models; both: models are trained for masked."""
    layers: Literal[1, 2] = 1
    """Attention layers of the trained models."""
    trained: bool = True
    """Whether models are trained."""
    trained_mh: tuple[int, ...] = tuple(range(1, 9))
    """Attention dimensions of the trained models."""
    trained_alpha: tuple[float, ...] = (1.0, 1.5)
    """For which alpha models are trained."""
    restarts: int = 3
    """Trained models of every kind; the best counts."""
    steps: int = 3000
    """Steps of Adam for the attention alone; a fifth of it follows for all weights."""
    batch: int = 32
    """Inputs of one step."""
    start: Literal["knots", "random"] = "knots"
    """Where training starts: at piecewise linear features, or at random with feed-forward networks of the paper's size."""
    cut: int = 0
    """Terms of the infinite target; 0: 128 for alpha up to 1, 64 above."""
    samples: int = 2048
    """Inputs of each of the 8 samples on which the constructed models are measured."""
    length: int = 16
    """Tokens of an input."""
    seed: int = 0
    """Where all randomness comes from."""


FULL: dict[str, Any] = {
    "trained_mh": tuple(range(1, 17)),
    "trained_alpha": (0.55, 1.0, 1.5, 2.0),
    "start": "random",
    "steps": 50_000,
    "batch": 64,
    "restarts": 5,
}


def jobs(options: Options) -> list[Job]:
    """One job for the constructed models of every target, several for its trained ones."""
    _check(options)
    diagonals = ("masked", "kept") if options.diagonal == "both" else (options.diagonal,)
    found, trained = [], []
    for alpha in dict.fromkeys((*options.alpha, *(options.trained_alpha if options.trained else ()))):
        for rank in options.target_rank:
            for diagonal in diagonals:
                place = {
                    "alpha": alpha,
                    "rank": rank,
                    "diagonal": diagonal,
                    "length": options.length,
                    "seed": options.seed,
                }
                place["cut"] = options.cut or (128 if alpha <= 1 else 64)
                if alpha in options.alpha:
                    sizes = {"mh": list(options.mh), "samples": options.samples}
                    found.append(Job(f"{__name__}:construct", {**place, **sizes}))
                if options.trained and alpha in options.trained_alpha and diagonal == diagonals[0]:
                    trained += [Job(f"{__name__}:run", {**place, **part}) for part in _chunks(options, rank)]
    return found + trained


def _chunks(options: Options, rank: str) -> list[dict[str, Any]]:
    """The members of a series in parts; small and large m_h mixed, so that parts take equally long."""
    wanted = [mh for mh in sorted(set(options.trained_mh)) if rank == "inf" or abs(mh - int(rank)) <= BESIDE]
    if not wanted:
        return []
    parts = max(1, -(-len(wanted) * options.restarts // AT_ONCE[options.start]))
    common = {"restarts": options.restarts, "steps": options.steps, "batch": options.batch, "start": options.start}
    common |= {"layers": options.layers, "key": max(wanted)}
    return [{**common, "mh": wanted[part::parts]} for part in range(min(parts, len(wanted)))]


def _check(options: Options) -> None:
    for name in ("mh", "trained_mh"):
        if any(mh < 1 for mh in getattr(options, name)):
            raise BadInput(f"--{name.replace('_', '-')} takes whole numbers from 1 on")
    for rank in options.target_rank:
        if rank != "inf" and not (rank.isdigit() and int(rank) > 0):
            raise BadInput(f"--target-rank takes whole numbers from 1 on and inf, not {rank!r}")
    if options.restarts < 1 or options.steps < 10 or options.batch < 1 or options.samples < 1:
        raise BadInput("--restarts, --batch and --samples are 1 or more, and --steps 10 or more")


def _target(config: dict[str, Any]) -> SineTarget:
    rank = None if config["rank"] == "inf" else int(config["rank"])
    return SineTarget(config["alpha"], rank, config["diagonal"] == "masked", config["length"], config["cut"])


def construct(config: dict[str, Any]) -> list[Row]:
    """Errors of the constructed models of one target: a row for every rank and sample."""
    from certiformer.rates.truncation import truncation_errors

    errors = truncation_errors(_target(config), config["mh"], config["samples"], seed=config["seed"])
    place = {name: config[name] for name in ("alpha", "rank", "diagonal")}
    return [
        {"kind": "constructed", **place, "mh": mh, "replicate": sample, "mse": float(mse), "l1": float(l1)}
        for sample, (mses, l1s) in enumerate(zip(errors.mse, errors.l1, strict=True))
        for mh, mse, l1 in zip(errors.kept, mses, l1s, strict=True)
    ]


def run(config: dict[str, Any]) -> list[Row]:
    """Errors of trained models of one target: a row for every rank and restart, with the singular values learned."""
    from certiformer.rates.sine_training import Plan, train_ranks
    from certiformer.rates.trained_kernel import learned_values

    plan = Plan(config["steps"], config["batch"], config["start"], config["layers"])
    members = train_ranks(_target(config), config["mh"], config["restarts"], plan, config["key"], config["seed"])
    place = {name: config[name] for name in ("alpha", "rank", "diagonal")}
    rows = []
    for member in members:
        figures = {"mse": member.mse, "l1": member.l1, "diverged": member.diverged}
        learned = learned_values(member.model, config["length"], config["seed"])[:SHOWN_VALUES]
        place_in = {"kind": "trained", **place, "mh": member.mh, "replicate": member.restart}
        rows.append({**place_in, **figures, "singular_values": learned})
    return rows


def summary(rows: Sequence[Row], options: Options) -> Result:
    """Slopes against the four exponents; drops of finite ranks; trained against constructed."""
    missing = sum(len(job.config["mh"]) * job.config.get("restarts", 8) for job in jobs(options)) - len(rows)
    trained = Trained(options.start, options.layers, options.restarts, options.steps)
    return summarised(QUESTION, rows, options, trained, missing)


STUDY = Study("jackson", QUESTION, Options, FULL, jobs, summary)
