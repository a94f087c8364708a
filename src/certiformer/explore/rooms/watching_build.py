"""What a build shows while it runs, as events (the table is in `rooms.approximate`)."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import numpy as np

from certiformer.explore.rooms.events import Emit, Throttle, finite
from certiformer.report.live import numbers

if TYPE_CHECKING:
    from certiformer.search.candidates import Candidate
    from certiformer.search.case import Evidence, Tree
    from certiformer.search.fit.trainer import Trainer
    from certiformer.target import Domain, Program
    from certiformer.verify import SplitTree

CURVE, SURFACE = 161, 36  # samples of an error curve, and along each side of an error surface
MOST_BOXES = 40_000  # of one drawing


class BuildWatcher:
    """Receives the moments of `search.watching` and the notes of `progress`."""

    def __init__(self, emit: Emit, program: Program, domain: Domain):
        self.emit, self.program, self.domain = emit, program, domain
        self.training, self.searching, self.checking = Throttle(0.08), Throttle(0.15), Throttle(0.05)
        self.components: list[Trainer] = []

    def __call__(self, moment: str, *things: Any) -> None:
        getattr(self, f"see_{moment}")(*things)

    def progress(self, stage: str, done: float, total: float | None, note: str) -> None:
        """A note of the build, or how many boxes the kernel has confirmed."""
        if stage == "check" and total is not None:
            if done == total or self.checking.due():
                self.emit("checked", done=done, total=total)
        else:
            self.emit("note", stage=stage, note=note)

    def see_planned(self, candidate: Candidate) -> None:
        self.emit("planned", candidate=candidate.row())

    def see_training(self, trainer: Trainer, networks: np.ndarray, errors: np.ndarray) -> None:
        from certiformer.search.fit.architecture import unpack
        from certiformer.search.fit.train import errors_at

        if not self.training.due():
            return
        if not any(trainer is known for known in self.components):
            self.components.append(trainer)
        best = networks[int(np.argmin(errors))]
        room = (len(best) - 1 - trainer.inputs) // (trainer.inputs + 2)
        units = int(np.count_nonzero(unpack(best, trainer.inputs, room).coefficients))
        event: dict[str, Any] = {
            "component": next(i for i, known in enumerate(self.components) if known is trainer),
            "inputs": trainer.inputs,
            "activation": trainer.activation,
            "units": units,
            "error": finite(float(errors.min()) / trainer.goal),
        }
        if trainer.inputs in (1, 2):
            side = CURVE if trainer.inputs == 1 else SURFACE
            line = np.linspace(-1, 1, side)
            points = line[:, None] if trainer.inputs == 1 else np.stack(np.meshgrid(line, line), -1).reshape(-1, 2)
            values = np.asarray(errors_at(trainer.activation, best, points, trainer.sample.values_of(points)))
            event["values"] = numbers((values / trainer.goal).reshape((side,) * trainer.inputs), 4)
        self.emit("training", **event)

    def see_lower(self, evidence: Evidence) -> None:
        self.emit("lower", lower=float(evidence.lower))

    def see_boxes(self, tree: SplitTree, threshold: float) -> None:
        if tree.dimension > 2 or not self.searching.due():
            return
        leaves = tree.leaves()
        if len(leaves) > MOST_BOXES:
            return
        closed = tree.bounds(leaves) <= threshold
        order = tree.to_bytes()
        self.emit("boxes", tree=_packed(order), dimension=tree.dimension, closed=int(closed.sum()), leaves=len(leaves))

    def see_proof(self, tree: Tree) -> None:
        from certiformer.search.report_pictures import boxes_of

        drawn = boxes_of(tree.proof, tree.leaves, self.program, self.domain)
        self.emit("proof", parts=drawn, upper=float(tree.upper), nodes=outline(tree.proof))


def outline(node: Any) -> dict[str, Any]:
    """The rules of a proof tree with what each proves."""
    from certiformer.kernel.certificate import rule_name

    children = [outline(child) for child in getattr(node, "children", ())]
    return {"rule": rule_name(node), "bound": node.bound, "theorem": getattr(node, "id", None), "children": children}


def _packed(tree: bytes) -> str:
    return base64.b64encode(tree).decode("ascii")
