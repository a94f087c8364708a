"""Making run folders by hand, and forging them: every seal fits, only the content is wrong.

`write_run` writes an honest folder the way a build does. `reseal` changes any part of it and computes all hashes anew,
as somebody who wants to deceive would; nothing but the content is left for the checker to notice.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from certiformer.axioms.grid import Grid
from certiformer.construct.method import Task
from certiformer.construct.voronoi import Plan, plan
from certiformer.kernel.balls import BallDomain
from certiformer.kernel.certificate import RECORDED, Boxes, Certificate, Node, Outcome, to_json
from certiformer.kernel.check import Verdict, check
from certiformer.kernel.files import CERTIFICATE, CONFIG, LEAVES, MODEL, TARGET, canonical, digest
from certiformer.kernel.layers import as_prototypes
from certiformer.kernel.problem import Network, Problem, ProgramFunction
from certiformer.kernel.rules import halves, root
from certiformer.kernel.weights import read_model
from certiformer.model import Transformer
from certiformer.model.store import from_bytes, tensors_to_bytes
from certiformer.search.split_proposal import by_groups
from certiformer.target import Target, any_target_to_text, parse_domain, parse_epsilon, parse_formula
from kernel.trees import encode

FILES = (MODEL, CONFIG, TARGET, LEAVES)


def target_of(formula: str, on: str) -> Target:
    domain = parse_domain(on)
    return Target(formula, parse_formula(formula, domain.dimension), domain)


def uniform_tree(dimension: int, levels: int) -> bytes:
    """The tree that bisects every axis `levels` times."""
    axes, stack = {}, [(root(dimension), 0)]
    while stack:
        cell, depth = stack.pop()
        if depth < levels * dimension:
            axes[cell] = depth % dimension
            stack += [(half, depth + 1) for half in halves(cell, depth % dimension)]
    return encode(dimension, axes)


@dataclass(frozen=True)
class Run:
    """The content of a run folder, before it is written."""

    model: Transformer
    target: Target
    epsilon: str
    proof: Node | None
    leaves: bytes = b""
    outcome: Outcome = Outcome.PROVED

    def write(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        contents = {
            MODEL: tensors_to_bytes(self.model),
            CONFIG: self.model.config.to_bytes(),
            TARGET: any_target_to_text(self.target).encode(),
            LEAVES: self.leaves,
        }
        for name, data in contents.items():
            (folder / name).write_bytes(data)
        seals = {name: digest(data) for name, data in contents.items()}
        certificate = Certificate(self.epsilon, self.outcome, 1, seals, proof=self.proof)
        (folder / CERTIFICATE).write_bytes(certificate.to_bytes())
        return folder


def reseal(
    folder: Path,
    *,
    model: bytes | Callable[[Transformer], Transformer] | None = None,
    config: bytes | Callable[[Any], Any] | None = None,
    target: bytes | Target | None = None,
    leaves: bytes | None = None,
    proof: Node | None = None,
    **fields: Any,
) -> Path:
    """Change parts of a run folder and recompute every hash.

    `fields` are raw JSON values of the certificate; the proof as raw JSON is `raw_proof`.
    """
    changes: dict[str, bytes] = {}
    if callable(model):
        old = from_bytes((folder / CONFIG).read_bytes(), (folder / MODEL).read_bytes())
        model = tensors_to_bytes(model(old))
    if callable(config):
        config = canonical(config(json.loads((folder / CONFIG).read_bytes())))
    if isinstance(target, Target):
        target = any_target_to_text(target).encode()
    for name, data in ((MODEL, model), (CONFIG, config), (TARGET, target), (LEAVES, leaves)):
        if data is not None:
            changes[name] = data
    for name, data in changes.items():
        (folder / name).write_bytes(data)
    data = json.loads((folder / CERTIFICATE).read_bytes())
    del data["sha256"]
    data["seals"] = {name: digest((folder / name).read_bytes()) for name in FILES}
    if proof is not None:
        data["proof"] = to_json(proof)
    if "raw_proof" in fields:
        data["proof"] = fields.pop("raw_proof")
    data["recorded"].update({name: fields.pop(name) for name in RECORDED if name in fields})
    data.update(fields)
    (folder / CERTIFICATE).write_bytes(canonical({**data, "sha256": digest(canonical(data))}))
    return folder


def moved_register(row: int, column: int, by: float) -> Callable[[Transformer], Transformer]:
    """A change of one number of one register. Columns of a Voronoi model: x.. | flag | c.. | offset | value.. | out.."""

    def change(model: Transformer) -> Transformer:
        registers = np.array(model.tensors["registers"])
        registers[row, column] += by
        return Transformer(model.config, {**model.tensors, "registers": registers})

    return change


def judged(folder: Path) -> Verdict:
    return check(folder, workers=1)


@cache
def theorem_run(formula: str, on: str, epsilon: str) -> Run:
    """A Voronoi transformer with the theorem node that proves it."""
    target = target_of(formula, on)
    built = plan(Task.of(target, parse_epsilon(epsilon))).realise()
    return Run(built.model, target, epsilon, built.proof)


@cache
def boxes_run(formula: str, on: str, epsilon: str, levels: int, order: int) -> Run:
    """The same transformer, proved by boxes."""
    run = theorem_run(formula, on, epsilon)
    tree = uniform_tree(run.target.domain.dimension, levels)
    return Run(run.model, run.target, epsilon, Boxes(epsilon, order, 0, len(tree)), tree)


@cache
def split_run(formula: str, on: str, epsilon: str, levels: int, order: int) -> Run:
    """The same transformer, proved axis by axis; the formula must be a sum of terms in single variables."""
    run = theorem_run(formula, on, epsilon)
    tree, axes = uniform_tree(1, levels), run.target.domain.dimension
    share = str(float(epsilon) / axes * 0.999)
    children = tuple(Boxes(share, order, 0, len(tree)) for _ in range(axes))
    left = as_prototypes(Network(*read_model(run.model.config.to_bytes(), tensors_to_bytes(run.model))))
    assert left is not None
    node, _ = by_groups(Problem(left, ProgramFunction(run.target.program), BallDomain(run.target.domain)))
    return Run(run.model, run.target, epsilon, replace(node, bound=epsilon, children=children), tree)


def grid_model(target: Target, theorem: str, cells: tuple[int, ...], margin: int, sharpness: Fraction, parts: int = 40):
    """The Voronoi transformer and theorem node of a chosen grid, whether or not the theorem applies."""
    return Plan(
        target, f"voronoi_{theorem}_order", Grid(cells, margin, sharpness), 1.0, (parts,) * len(cells)
    ).realise()
