"""Mutations of valid files: a clear error or tensors of the claimed shape, never a crash, never much memory."""

from __future__ import annotations

import random
import tracemalloc

import numpy as np
import pytest

from audit.files.valid import MAKERS
from certiformer.audit.files import open_tensors
from certiformer.errors import BadInput

INTERESTING = (0, 1, 2, 7, 0x7F, 0x80, 0xFF)
MOST_MEMORY = 64 << 20  # bytes for a file of one kilobyte


def mutated(raw: bytes, rng: random.Random) -> bytes:
    """One to four of: a flipped bit, an interesting byte, a large number, a cut, a copied or a removed part."""
    data = bytearray(raw)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(max(1, len(data)))
        match rng.randrange(6):
            case 0 if data:
                data[at] ^= 1 << rng.randrange(8)
            case 1 if data:
                data[at] = rng.choice(INTERESTING)
            case 2:
                data[at : at + 8] = rng.choice([2**63, 2**40, 2**31, 2**64 - 1, 10**9]).to_bytes(8, "little")
            case 3:
                del data[at:]
            case 4:
                data[at:at] = data[rng.randrange(len(data) + 1) :][: rng.randint(1, 64)]
            case _:
                del data[at : at + rng.randint(1, 32)]
    return bytes(data)


def outcome(path) -> str:
    try:
        files = open_tensors(path)
        for name, info in files.infos.items():
            array = files.read(name)
            assert isinstance(array, np.ndarray) and array.shape == info.shape
    except BadInput as problem:
        assert "\n" not in str(problem)
        return "refused"
    return "read"


def fuzz(kind, tmp_path, rounds, seed):
    path = MAKERS[kind](tmp_path)
    raw, rng, seen = path.read_bytes(), random.Random(seed), []
    tracemalloc.start()
    try:
        for _ in range(rounds):
            path.write_bytes(mutated(raw, rng))
            seen.append(outcome(path))
        assert tracemalloc.get_traced_memory()[1] < MOST_MEMORY
    finally:
        tracemalloc.stop()
    # Both must occur, or nothing was tested: flipped weights are read, broken headers refused.
    assert seen.count("refused") > rounds // 10 and seen.count("read") > rounds // 50


@pytest.mark.parametrize("kind", sorted(MAKERS))
def test_mutated_files(kind, tmp_path):
    fuzz(kind, tmp_path, 250, 1)


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(MAKERS))
def test_ten_thousand_mutated_files(kind, tmp_path):
    fuzz(kind, tmp_path, 10_000, 2)
