"""The job of the studies of size: train or build the models of one shape, and one row for each.

A member is a JSON object: `group` (the line of a picture it belongs to), `x` (where on that line), `seed`, and the size:
`units`, `heads`, `key`, `value`, `depth`, `norm`, `width`, `layout` as `size_models.size_config` takes them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from certiformer.kernel import Refused
from certiformer.model.config import Config
from certiformer.rates.size_built import built_graph_in, built_sines_in, built_sink_in
from certiformer.rates.size_models import Tensors, padded, parameter_count, size_config, start
from certiformer.rates.size_targets import SizeTarget
from certiformer.rates.size_training import Schedule, built_errors, train_members, trained_errors
from certiformer.sweep.job import Job, Row

SIZES = ("units", "heads", "key", "value", "depth")
SHAPE = ("norm", "width", "layout")
Member = dict[str, Any]


def size_jobs(module: str, options: Any, parts: Iterable[tuple[str, str, list[Member]]]) -> list[Job]:
    """A job for every (kind, target, members), with the training that the options say."""
    shared = {name: getattr(options, name) for name in ("steps", "samples", "batch", "rate", "rank")}
    return [
        Job(f"{module}:run", {"kind": kind, "target": target, "members": members, **shared})
        for kind, target, members in parts
    ]


def seed_chunks(options: Any, size: int = 5) -> list[range]:
    """The seeds of a study in the portions of its jobs."""
    seeds = range(options.seed, options.seed + options.seeds)
    return [seeds[first : first + size] for first in range(0, len(seeds), size)]


def target_of(config: dict[str, Any]) -> SizeTarget:
    """The target that a job speaks of."""
    return SizeTarget(config["target"], rank=config["rank"])


def config_of(target: SizeTarget, member: Member) -> Config:
    """The configuration of one member."""
    return size_config(target, **{name: member[name] for name in (*SIZES, *SHAPE) if name in member})


def common_config(target: SizeTarget, members: Sequence[Member]) -> Config:
    """The smallest configuration into which all members fit."""
    largest = {name: max(member[name] for member in members) for name in SIZES if name in members[0]}
    return config_of(target, {**members[0], **largest})


def run_members(config: dict[str, Any]) -> list[Row]:
    """The rows of the members of a job: `trained` together from random weights, `continued` from built ones, or `built`
    (for `graph` also `split`) one by one."""
    target, members = target_of(config), config["members"]
    if config["kind"] in ("built", "split"):
        return [_built_row(target, config, member) for member in members]
    large = common_config(target, members)
    schedule = Schedule(config["steps"], config["samples"], config["batch"], config["rate"])
    placed = []
    for member in members:
        small = config_of(target, member)
        tensors = start(small, member["seed"], target.high) if config["kind"] == "trained" else None
        placed.append(padded(small, tensors or built_tensors(target, small)[0], large))
    starts, free = zip(*placed, strict=True)
    trained, diverged = train_members(target, large, starts, free, [m["seed"] for m in members], schedule)
    errors = trained_errors(target, large, trained, schedule.samples)
    return [
        _row(config, member, parameter_count(config_of(target, member)), found, None, lost)
        for member, found, lost in zip(members, errors, diverged, strict=True)
    ]


def built_tensors(target: SizeTarget, config: Config, split: bool = False) -> tuple[Tensors, float | None]:
    """The built weights in the shape of a configuration, and their bound; `Refused` where the theorem has nothing."""
    shape = replace(config, dtype="float64")
    if target.name == "graph":
        return built_graph_in(target, shape, split)
    return built_sink_in(shape) if config.registers else built_sines_in(shape)


def _built_row(target: SizeTarget, config: dict[str, Any], member: Member) -> Row:
    shape = replace(config_of(target, member), dtype="float64")
    try:
        tensors, bound = built_tensors(target, shape, config["kind"] == "split")
        errors = built_errors(target, shape, tensors, config["samples"])
    except Refused:
        errors, bound = {name: math.nan for name in ERRORS}, None
    return _row(config, member, parameter_count(shape), errors, bound, False)


ERRORS = ("train_mse", "train_l1", "test_mse", "test_l1", "test_sup")


def _row(
    config: dict[str, Any], member: Member, parameters: int, errors: Row, bound: float | None, diverged: bool
) -> Row:
    return {
        "target": config["target"],
        "kind": config["kind"],
        "group": member["group"],
        "x": float(member["x"]),
        "seed": member["seed"],
        "heads": member["heads"],
        "depth": member.get("depth", 1),
        "norm": member.get("norm", "none"),
        "parameters": parameters,
        **errors,
        "bound": bound,
        "diverged": diverged,
    }
