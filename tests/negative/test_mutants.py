"""Thousands of damaged folders of every kind: `check` and `show` answer each with a sentence, never with a defect.

Mutants are of three sorts: a value of a JSON file replaced, removed or joined; bytes of any file changed; a file emptied,
cut or missing. Seals are computed anew, so that the content itself is read.
"""

from __future__ import annotations

import copy
import json
import random

import pytest

from certiformer.kernel.files import CERTIFICATE
from negative.kinds import COMMANDS, certificate_of, copied, in_process, put_certificate

VALUES = [
    "",
    "1",
    "-1",
    "nan",
    "1/3",
    "1e999",
    "1e-999",
    "x1",
    0,
    -1,
    1,
    7.25,
    10**30,
    True,
    None,
    [],
    {},
    [[]],
    {"a": 1},
]
VALUES += ["\x1b[2J", "a\nb", "9" * 5000, [0] * 50, "\ud800"]
MUTANTS = 40  # of each kind
DEFECT = 70


def places(data, path=()):
    """The paths of all values of nested JSON data."""
    keys = data if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ()
    for key in keys:
        yield (*path, key)
        yield from places(data[key], (*path, key))


def mutated_json(data, rng: random.Random):
    changed = copy.deepcopy(data)
    path = rng.choice(list(places(changed)) or [()])
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    if not path:
        return rng.choice(VALUES)
    if rng.random() < 0.2:
        del inner[path[-1]]
    else:
        inner[path[-1]] = rng.choice(VALUES)
    return changed


def mutated_bytes(data: bytes, rng: random.Random) -> bytes:
    kind, place = rng.random(), rng.randrange(len(data) + 1)
    if kind < 0.2:
        return data[:place]
    if kind < 0.6 and data:
        return data[: place - 1] + bytes([rng.randrange(256)]) + data[place:]
    return data[:place] + rng.choice([b"0", b"{", b"]", b"\xff", b"\x00" * 8]) + data[place:]


def mutate(folder, rng: random.Random) -> str:
    """Damage one file of the folder and seal it; returns what was done."""
    honest = certificate_of(folder)
    name = rng.choice([CERTIFICATE, *honest["seals"]])
    if name == CERTIFICATE:
        damaged = mutated_json(honest, rng)
        if isinstance(damaged, dict) and isinstance(damaged.get("seals"), dict):
            put_certificate(folder, damaged)
        else:
            (folder / name).write_text(json.dumps(damaged))
        return f"{name}: {str(damaged)[:2000]}"
    data = (folder / name).read_bytes()
    if name.endswith(".json") and rng.random() < 0.8:
        data = json.dumps(mutated_json(json.loads(data), rng)).encode()
    else:
        data = mutated_bytes(data, rng)
    (folder / name).write_bytes(data)
    if rng.random() < 0.9:
        put_certificate(folder, honest)
    return f"{name}: {data[:2000]!r}"


def require_no_defect(folder, place, seeds) -> None:
    for seed in seeds:
        broken = copied(folder, place)
        done = mutate(broken, random.Random(seed))
        for verb, more in (("check", ["--workers", "1", "--proof-only"]), ("show", [])):
            code, out, err = in_process(verb, str(broken), "--quiet", *more)
            assert code != DEFECT and "Traceback" not in out + err, (verb, seed, err, done)
            assert code in ((0, 1, 2, 3) if verb == "check" else (0, 2)), (verb, seed, err, done)
            assert code != 2 or err.startswith("certiformer: ") and err.count("\n") == 1, (verb, seed, err)


@pytest.mark.parametrize("kind", COMMANDS)
def test_a_damaged_folder_is_answered_with_a_sentence(folders, tmp_path, kind):
    require_no_defect(folders[kind], tmp_path / "copy", range(MUTANTS))


def test_a_reader_that_breaks_would_be_noticed(folders, tmp_path, monkeypatch):
    """The control: a reader of certificates that lets an unforeseen exception out."""
    from certiformer.kernel.certificate import Certificate

    def broken(raw):
        raise OSError if not raw else AssertionError("unforeseen")

    monkeypatch.setattr(Certificate, "from_bytes", broken)
    with pytest.raises(AssertionError, match="unforeseen"):
        require_no_defect(folders["circuit"], tmp_path / "copy", range(3))
