"""A compiled automaton and its folder: `compiler.folder` with the table of the automaton in `automaton.json`."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from certiformer.compiler.automata.compiled import CompiledAutomaton
from certiformer.compiler.folder import files_of, load_model, save_computation
from certiformer.errors import BadInput
from certiformer.kernel.certificate import Certificate
from certiformer.kernel.files import AUTOMATON, read_bytes
from certiformer.kernel.meanings.automaton import Automaton

RULES = {
    "looped": "looped_automaton",
    "chain-of-thought": "chain_of_thought_automaton",
    "log-depth": "log_depth_automaton",
}


def automaton_files(compiled: CompiledAutomaton) -> dict[str, bytes]:
    """The files of a compiled automaton, all but the certificate."""
    return files_of(compiled.config, compiled.tensors, AUTOMATON, compiled.automaton.to_text())


def save_automaton(compiled: CompiledAutomaton, directory: str | Path, force: bool = False) -> Certificate:
    """Write the folder, with the certificate of the checker, which is returned."""
    return save_computation(automaton_files(compiled), RULES[compiled.form], directory, force)


def load_automaton(directory: str | Path) -> CompiledAutomaton:
    """The compiled automaton that `save_automaton` wrote; its form shows in the sizes of its transformer."""
    automaton, model = Automaton.from_text(read_bytes(Path(directory) / AUTOMATON)), load_model(directory)
    config, states, symbols = model.config, len(automaton.states), len(automaton.symbols)
    forms = {
        (1, symbols + 1, states + 1): ("looped", config.tokens - 1),
        (1, symbols + 1 + states, states + 2): ("chain-of-thought", config.tokens // 2 - 1),
        (2, symbols + 1, 2): ("log-depth", config.tokens - 1),
    }
    sizes = (len(config.blocks), config.input.vocabulary or 0, config.outputs)
    if sizes not in forms:
        raise BadInput(f"the transformer in {directory} is not that of the automaton beside it")
    form, length = forms[sizes]
    return CompiledAutomaton(
        automaton, length, form, config, {name: np.asarray(t) for name, t in model.tensors.items()}
    )
