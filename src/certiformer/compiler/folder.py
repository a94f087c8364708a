"""The folder of a transformer that computes something.

| file | holds |
|---|---|
| `model.safetensors`, `config.json` | the transformer |
| `machine.json`, `automaton.json`, `gates.json` or `learner.json` | the description of what it computes |
| `certificate.json` | the claim, and the hashes of the other three |
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from certiformer.disk import Workplace, claimed, put_folder, recover
from certiformer.errors import BadInput
from certiformer.kernel.axioms import AXIOMS, axiom
from certiformer.kernel.certificate import Certificate, Outcome, Theorem
from certiformer.kernel.files import AUTOMATON, CERTIFICATE, CONFIG, GATES, LEARNER, MACHINE, MODEL, digest, read_bytes
from certiformer.kernel.refusal import Refused
from certiformer.model.config import Config
from certiformer.model.tensor_file import arrays_to_bytes

if TYPE_CHECKING:
    from certiformer.model.transformer import Transformer

WHAT = {
    MACHINE: "compiled machine",
    AUTOMATON: "compiled automaton",
    GATES: "compiled circuit",
    LEARNER: "compiled learner",
}


def files_of(config: Config, tensors: Mapping[str, np.ndarray], description: str, text: str) -> dict[str, bytes]:
    """The files of a folder, all but the certificate; `description` is the name of the file that holds `text`."""
    return {
        MODEL: arrays_to_bytes(dict(tensors)),
        CONFIG: config.to_bytes(),
        description: text.encode("ascii"),
    }


def computation_certificate(rule: str, files: Mapping[str, bytes]) -> Certificate:
    """The certificate of the files: proved at level 2, or undecided with the checker's reason."""
    description, method = AXIOMS[rule], f"compile, {rule}"
    seals = {name: digest(files[name]) for name in (MODEL, CONFIG, description)}
    try:
        found = axiom(rule, description).find(files)
    except (Refused, BadInput) as refusal:
        proof = Theorem("0", rule, {})
        return Certificate("0", Outcome.UNDECIDED, 0, seals, method=method, proof=proof, reason=str(refusal))
    proof = Theorem(found.bound, rule, dict(found.parameters))
    return Certificate(
        found.bound, Outcome.PROVED, 2, seals, method=method, upper=found.bound, proof=proof, reason=found.reason
    )


def save_computation(files: Mapping[str, bytes], rule: str, directory: str | Path, force: bool = False) -> Certificate:
    """Ask the checker, then write the folder whole or not at all; an earlier one goes only with `force`."""
    with computation_place(directory, AXIOMS[rule], force):
        certificate = computation_certificate(rule, files)
        put_folder(Path(directory), {**files, CERTIFICATE: certificate.to_bytes()})
    return certificate


def computation_place(directory: str | Path, description: str, force: bool) -> AbstractContextManager[Workplace]:
    """Hold a place that is free or, with `force`, taken by an earlier folder with the same kind of description."""
    return claimed(directory, description, (MODEL, CONFIG, CERTIFICATE), WHAT[description], force)


def load_model(directory: str | Path) -> Transformer:
    """The transformer of a folder."""
    from certiformer.model.store import from_bytes

    folder = Path(directory)
    recover(folder)
    return from_bytes(read_bytes(folder / CONFIG), read_bytes(folder / MODEL), folder)
