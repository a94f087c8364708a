"""ONNX files of no known family: every tensor is a matrix, a kernel or a vector of its own, and no head is known.

A graph keeps no names of modules, and stores the matrix of a MatMul as (in, out). So nothing is guessed about attention:
all tensors are counted and can be measured, and what needs heads or layers does not apply. Constants of the graph that
are no whole numbers (an epsilon) cannot be told from parameters that are single numbers, and count."""

from __future__ import annotations

from certiformer.audit.form import Checkpoint
from certiformer.audit.read.names import Names
from certiformer.audit.read.settings import Settings

NOTE = "a graph says neither heads nor layers: its matrices are measured one by one, the way round they are stored"


def read(names: Names, settings: Settings) -> Checkpoint:
    """All tensors of the graph."""
    others = names.rest("")
    return Checkpoint("onnx", (), 0, others=others, config=settings.config, notes=(NOTE,))
