"""Random circuits: every kind of gate, operands anywhere before, repeated operands, outputs that are inputs."""

from __future__ import annotations

import numpy as np

from certiformer.kernel.meanings.gates import Gate, Gates


def random_circuit(seed: int, inputs: int, gates: int) -> Gates:
    rng = np.random.default_rng(seed)
    names = [f"x{k}" for k in range(inputs)]
    found = []
    for number in range(gates):
        arity = int(rng.choice([0, 1, 2], p=[0.03, 0.12, 0.85])) if names else 0
        # Half of the operands are recent, so that the circuit is deep.
        recent = names[-8:] if rng.random() < 0.5 else names
        operands = tuple(str(name) for name in rng.choice(recent, arity))
        table = "".join(rng.choice(["0", "1"], 2**arity))
        found.append(Gate(f"g{number}", table, operands))
        names.append(f"g{number}")
    outputs = tuple(dict.fromkeys([*names[-3:], *(names[:1] if inputs else [])]))
    return Gates(tuple(names[:inputs]), tuple(found), outputs)
