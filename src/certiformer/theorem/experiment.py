"""The experiment of a theorem: the section *Example* of its docstring, executed line by line."""

from __future__ import annotations

import doctest
from dataclasses import dataclass
from importlib import import_module

from certiformer.errors import BadInput
from certiformer.theorem.registry import Entry


@dataclass(frozen=True)
class Step:
    """One line of an experiment: what was asked, what was found, and whether that is what the docstring shows."""

    asked: str
    answer: str
    as_written: bool


def run_experiment(entry: Entry) -> list[Step]:
    """Execute the example of a theorem in its own module; a line that fails is a step, too, and is not as written.

    >>> from certiformer.theorem import find
    >>> [(step.asked, step.answer) for step in run_experiment(find("hardmax_not_contextual"))][0]
    ('twins(5)', '((0, 1, 4, 5, 6), (0, 2, 3, 5, 6))')
    """
    lines = doctest.DocTestParser().get_examples(entry.sections.get("Example", ""))
    if not lines:
        raise BadInput(f"{entry.record.id} has no experiment: its example is text only")
    names = dict(vars(import_module(entry.module)))
    recorder = _Recorder(verbose=False, optionflags=doctest.ELLIPSIS)
    recorder.run(doctest.DocTest(lines, names, entry.record.id, None, None, None), out=lambda _: None)
    return recorder.steps


class _Recorder(doctest.DocTestRunner):
    """Keeps what every line printed, instead of complaining about some."""

    def __init__(self, **options):
        super().__init__(**options)
        self.steps: list[Step] = []

    def report_success(self, out, test, example, got):
        self.steps.append(Step(example.source.rstrip(), got.rstrip(), True))

    def report_failure(self, out, test, example, got):
        self.steps.append(Step(example.source.rstrip(), got.rstrip(), False))

    def report_unexpected_exception(self, out, test, example, exc_info):
        self.steps.append(Step(example.source.rstrip(), f"{exc_info[0].__name__}: {exc_info[1]}", False))
