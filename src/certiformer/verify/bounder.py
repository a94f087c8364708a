"""Which enclosure bounds the boxes of a search."""

from __future__ import annotations

from certiformer.checker.problem import Problem
from certiformer.model import Transformer
from certiformer.target import Program
from certiformer.verify.ball_bounder import BallBounder
from certiformer.verify.domain import FloatDomain


def bounder_for(model: Transformer, program: Program, problem: Problem, domain: FloatDomain, order: int | None):
    return BallBounder(problem, order or 3)
