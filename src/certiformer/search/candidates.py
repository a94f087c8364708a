"""Candidates: the transformers that could answer a request, from the smallest up.

One method gives one candidate. `auto` asks every method that applies, lets `fit` train a small block, sorts by the
objective, and leaves it to the caller to certify them in that order: the first that is proved is the smallest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from certiformer.construct.method import METHODS, Construction, Plan, Size, Task, method, with_layout
from certiformer.errors import BadInput
from certiformer.kernel import Refused
from certiformer.search.watching import show
from certiformer.target import Target, Teacher, ridge_split

OBJECTIVES = ("parameters", "heads", "time")
# The methods that `auto` plans. The others prove theorems; they are never smaller than these.
AUTO = ("gather", "ridge", "ridge-temperatures", "sigmoid-heads", "temperatures", "voronoi")
FIT = "fit"
# A block that was not reached is trained again for this many times the seconds, unless its error is this many epsilons.
RETRY, HOPELESS = 4.0, 30.0
Progress = Callable[[str, float, float | None, str], None]


@dataclass
class Candidate:
    """A transformer that may be built: by which method, how large, and which bound is predicted (None: none is)."""

    method: str
    size: Size | None
    bound: float | None
    realise: Callable[[], Construction]
    theorem: str = ""
    outcome: str = "not tried"
    seconds: float = 0.0

    def row(self) -> dict[str, Any]:
        """The line of the table of candidates."""
        sizes = {} if self.size is None else vars(self.size)
        return {
            "method": self.method,
            "nonzero": sizes.get("nonzero"),
            "dense": sizes.get("dense"),
            "heads": sizes.get("heads"),
            "units": sizes.get("units"),
            "registers": sizes.get("registers"),
            "bound": self.bound,
            "theorem": self.theorem,
            "outcome": self.outcome,
        }


@dataclass
class Choice:
    """The candidates in the order in which they are tried, and why the other methods gave none.

    `later` plans what is expensive to plan and is only worth it when everything before has failed.
    """

    candidates: list[Candidate]
    refused: dict[str, str] = field(default_factory=dict)
    later: Callable[[], list[Candidate]] | None = None

    def after(self, failed: Candidate, objective: str) -> list[Candidate]:
        """The candidates that are left when one has failed, with those that had been left for later."""
        if self.later is not None and failed.method == FIT:
            done = self.candidates[: self.candidates.index(failed) + 1]
            rest = self.candidates[len(done) :] + self.later()
            self.candidates = done + sorted(rest, key=lambda c: _cost(c, objective))
            self.later = None
        return self.candidates[self.candidates.index(failed) + 1 :]

    def rows(self) -> list[dict[str, Any]]:
        refused = [
            {**Candidate(name, None, None, _nothing).row(), "outcome": f"does not apply: {reason}"}
            for name, reason in self.refused.items()
        ]
        if self.later is not None:
            note = "not planned: a trained block that can be proved is smaller"
            refused.append({**Candidate("ridge", None, None, _nothing).row(), "outcome": note})
        return [candidate.row() for candidate in self.candidates] + refused


def known_method(name: str) -> str:
    names = ("auto", FIT, *METHODS)
    if name not in names:
        raise BadInput(f"--method is one of {', '.join(names)}, not {name!r}")
    return name


def choose(name: str, task: Task, objective: str, fit_seconds: float, progress: Progress) -> Choice:
    """The candidates of a method, or of all that apply for `auto`."""
    if objective not in OBJECTIVES:
        raise BadInput(f"--objective is one of {', '.join(OBJECTIVES)}, not {objective!r}")
    if name == FIT or (name == "auto" and isinstance(task.target, Teacher)):
        return Choice(_fitted(task, objective, fit_seconds, progress))
    if name != "auto":
        return Choice([_planned(name, task)])
    found = Choice([])

    def plan(names: tuple[str, ...]) -> list[Candidate]:
        planned = []
        for each in names:
            progress("construct", 0, None, f"planning the method {each}")
            try:
                planned.append(_planned(each, task))
            except (Refused, BadInput) as problem:
                found.refused[each] = str(problem)
        return planned

    # Fitting ridges to a target that is no sum of them takes long, and a trained block that can be proved is smaller.
    slow = () if objective == "time" or _is_ridge_sum(task) else ("ridge",)
    found.candidates = plan(tuple(each for each in AUTO if each not in slow))
    if fit_seconds > 0 and (objective != "time" or not found.candidates):
        try:
            found.candidates += _fitted(task, objective, fit_seconds, progress)
            found.later = (lambda: plan(slow)) if slow else None
        except (Refused, BadInput) as problem:
            found.refused[FIT] = str(problem)
    if found.later is None:
        found.candidates += plan(slow)
    found.candidates.sort(key=lambda c: _cost(c, objective))
    if not found.candidates:
        raise Refused("; ".join(f"{each}: {reason}" for each, reason in found.refused.items()))
    return found


def _is_ridge_sum(task: Task) -> bool:
    if not isinstance(task.target, Target):
        return False
    program = task.target.program
    return all(ridge_split(program, output) is not None for output in range(len(program.outputs)))


def _cost(candidate: Candidate, objective: str) -> tuple[float, ...]:
    size = candidate.size
    if size is None:
        return (float("inf"),)
    if objective == "heads":
        return size.heads, size.nonzero
    # Time goes with the work of the check: a theorem needs none, pieces little, boxes much.
    return (size.nonzero,) if objective == "parameters" else ((*AUTO, FIT).index(candidate.method), size.nonzero)


def _planned(name: str, task: Task) -> Candidate:
    if not isinstance(task.target, Target):
        raise Refused("the method constructs from a formula; a teacher can only be imitated by fit")
    chosen = Task(task.target, task.epsilon, with_layout(name, task.shape), task.seed)
    plan: Plan = method(name).plan(chosen)
    candidate = Candidate(name, plan.size(), plan.bound, plan.realise, plan.theorem)
    show("planned", lambda: (candidate,))
    return candidate


def _fitted(task: Task, objective: str, seconds: float, progress: Progress) -> list[Candidate]:
    from certiformer.search.fit import Objective, fit

    found: list[Candidate] = []
    results = []
    # A block that was not reached gets a second, longer chance; compilation is then done.
    for share in (1.0, RETRY):
        results = fit(
            task,
            seconds=share * seconds,
            objective=cast(Objective, objective),
            progress=lambda note: progress("construct", 0, None, note),
        )
        found = [
            Candidate(FIT, result.size, None, lambda model=result.model: Construction(model, None))
            for result in results
            if result.sampled_error <= float(task.epsilon)
        ]
        best = min((result.sampled_error for result in results), default=float("inf"))
        if not found and (share == RETRY or best > HOPELESS * float(task.epsilon)):
            raise Refused(f"the best block trained in {share * seconds:g} s has a sampled error of {best:.3g}")
        if found:
            break
    return found


def _nothing() -> Construction:
    raise Refused("the method does not apply")
