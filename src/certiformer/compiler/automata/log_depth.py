"""The log-depth form of a compiled automaton: its configuration and tensors.

Two blocks, applied log2 of the length times, compose the maps of the symbols. The theorem, its proof and the weights are in
`axioms.log_depth_automaton`. Every row holds a map from states to states as Q numbers, and a pointer to an earlier row. One
pass composes the row's map with that of the row it points to and takes over that row's pointer, so that both reach twice
as far (pointer jumping). Weights do not depend on the length; only the log2(length) signs of a position and the number of
passes do.
"""

from __future__ import annotations

from certiformer.axioms.log_depth_automaton import construction
from certiformer.compiler.automata.parts import Tensors
from certiformer.compiler.tensors import arrays
from certiformer.errors import BadInput
from certiformer.kernel.meanings.automaton import Automaton
from certiformer.model.config import Config

MAX_STATES = 40  # 4 Q^2 hidden units


def log_depth_automaton(automaton: Automaton, length: int, dtype: str) -> tuple[Config, Tensors]:
    """The transformer that reads words of up to `length` symbols in log2(length) passes."""
    states = len(automaton.states)
    if states > MAX_STATES:
        raise BadInput(
            f"the log-depth form takes up to {MAX_STATES} states, not {states}, as its weights grow as the fourth power;"
            " take looped or chain-of-thought"
        )
    made = construction(automaton, length, dtype)
    return Config.from_json(made.config), arrays(made)
