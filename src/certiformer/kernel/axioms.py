"""The theorems that certificates name: axioms, proved on paper, and statements that the rule of situations proves."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from certiformer.kernel.refusal import Refused

_OF = {
    "functions on a box": "korovkin_ridges piecewise_linear ridge_temperatures shifted_grids "
    "squares_rbf temperatures voronoi_first_order voronoi_second_order",
    "sequences": "exact_count exact_induction exact_sort exact_width",
    "machine.json": "chain_of_thought_machine encoder_decoder_machine",
    "automaton.json": "log_depth_automaton",
    "learner.json": "in_context_gradient in_context_relu in_context_ridge in_context_selection",
}
AXIOMS = {name: subject for subject, names in _OF.items() for name in names.split()}  # each with what it speaks of
# Whose statements the proof of another one uses, too.
USES = {
    "in_context_ridge": ("in_context_gradient",),
    "ridge_temperatures": ("temperatures",),
    "squares_rbf": ("voronoi_second_order",),
}
# No axioms: these modules of `kernel.situations` name a meaning and a plan, and the rule of situations proves the claim.
BY_SITUATIONS = {
    "looped_machine": "machine.json",
    "looped_automaton": "automaton.json",
    "chain_of_thought_automaton": "automaton.json",
    "chain_of_thought_circuit": "gates.json",
}
SUBJECTS = AXIOMS | BY_SITUATIONS


def axiom(name: str, subject: str) -> Any:
    """The module of the theorem `name`, which must speak of `subject`; no other module is ever loaded by name."""
    if SUBJECTS.get(name) != subject:
        raise Refused(f"the certificate rests on {name!r}, which is no axiom about {subject} that this checker knows")
    package = "kernel.situations" if name in BY_SITUATIONS else "axioms"
    return import_module(f"certiformer.{package}.{name}")
