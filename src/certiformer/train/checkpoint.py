"""Checkpoints: a folder with the state of all members (safetensors) and a JSON file that says what it belongs to.

The tensors are written first, under a new name, and the JSON file that names them replaces its predecessor in one step: a
run killed at any moment leaves the old checkpoint or the new one. Nothing is unpickled.

A checkpoint belongs to one run. Its *fingerprint* is a hash of the traced program (so of the model, the loss, the way
batches are drawn and the optimiser), of every array that goes in, and of the version of JAX. It leaves out how many
records are done in one call: that changes nothing.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from certiformer.disk import write_atomically
from certiformer.errors import BadInput
from certiformer.train.state import State

FORMAT = "certiformer-training-1"
INDEX = "training.json"


def fingerprint(jaxpr: Any, arrays: Any) -> str:
    """What a run computes, as 64 hexadecimal digits."""
    digest = hashlib.sha256(f"{FORMAT} jax {jax.__version__} {jax.default_backend()}".encode())
    # Functions inside the text carry their address in memory, which says nothing.
    digest.update(re.sub(r"0x[0-9a-f]+", "", str(jaxpr.jaxpr)).encode())
    for leaf in (*jaxpr.consts, *jax.tree.leaves(arrays)):
        if jnp.issubdtype(getattr(leaf, "dtype", np.dtype(int)), jax.dtypes.prng_key):
            leaf = jax.random.key_data(leaf)
        array = np.ascontiguousarray(leaf)
        digest.update(f"{array.dtype} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def save(folder: Path, state: State, done: int, mark: str) -> None:
    """Replace the checkpoint in `folder` by this state after `done` records."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {f"{place:05}": np.ascontiguousarray(leaf) for place, leaf in enumerate(jax.tree.leaves(state))}
    name = f"state-{done:06}.safetensors"
    write_atomically(folder / name, safetensors.numpy.save(tensors))
    index = {"format": FORMAT, "fingerprint": mark, "records": done, "tensors": name}
    write_atomically(folder / INDEX, (json.dumps(index, indent=1) + "\n").encode())
    for old in folder.glob("state-*.safetensors"):
        if old.name != name:
            old.unlink(missing_ok=True)


def load(folder: Path, like: State, mark: str) -> tuple[State, int] | None:
    """The state in `folder` and how many records it has done; None when there is no checkpoint yet."""
    try:
        text = (folder / INDEX).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadInput(f"the checkpoint {folder / INDEX} cannot be read: {error.strerror}") from None
    try:
        index = json.loads(text)
        kind, found, done, name = (index[key] for key in ("format", "fingerprint", "records", "tensors"))
    except (ValueError, KeyError, TypeError):
        raise BadInput(f"{folder / INDEX} is not the index of a checkpoint; remove the folder to start anew") from None
    if kind != FORMAT or found != mark:
        raise BadInput(
            f"the checkpoint in {folder} belongs to another run (other weights, data, settings or version of JAX);"
            " give another folder, or remove this one to start anew"
        )
    return _state(folder / Path(str(name)).name, like), int(done)


def _state(path: Path, like: State) -> State:
    leaves, structure = jax.tree.flatten(like)
    try:
        tensors = safetensors.numpy.load(path.read_bytes())
    except (OSError, SafetensorError) as error:
        raise BadInput(f"the checkpoint {path} cannot be read ({error}); remove the folder to start anew") from None
    stored = [tensors.get(f"{place:05}") for place in range(len(leaves))]
    if len(tensors) != len(leaves) or any(
        new is None or new.shape != old.shape or new.dtype != old.dtype for new, old in zip(stored, leaves, strict=True)
    ):
        raise BadInput(f"the checkpoint {path} does not hold the tensors of this run; remove the folder to start anew")
    return jax.tree.unflatten(structure, [jnp.asarray(tensor) for tensor in stored])
