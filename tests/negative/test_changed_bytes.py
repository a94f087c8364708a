"""Control (i): any byte of any file changed, inserted or removed without recomputing the seals is refused."""

from __future__ import annotations

import random

import pytest

from negative.forge import CERTIFICATE, FILES, boxes_run, judged

NAMES = [*FILES, CERTIFICATE]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    run = boxes_run("sin(x1)", "[0,1]", "0.1", 2, 4).write(tmp_path_factory.mktemp("honest"))
    verdict = judged(run)
    assert verdict.outcome == "proved"
    return run


def positions(rng: random.Random, data: bytes, count: int = 60) -> list[int]:
    """Random places, and the structured ones: both ends, and around every quote, brace and end of line."""
    special = [i for i, byte in enumerate(data[:2000]) if chr(byte) in '"{}[]:,\n' or byte in (0, 255)]
    return sorted(
        {
            0,
            len(data) - 1,
            *rng.sample(range(len(data)), min(count, len(data))),
            *rng.sample(special, min(20, len(special))),
        }
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_changed_byte_is_refused(folder, name):
    rng, path = random.Random(name), folder / name
    original = path.read_bytes()
    try:
        for i in positions(rng, original):
            for flip in (1, 0x20, 0x80):
                path.write_bytes(original[:i] + bytes([original[i] ^ flip]) + original[i + 1 :])
                verdict = judged(folder)
                assert (verdict.outcome, verdict.upper, verdict.accepted) == ("refused", None, False)
                assert verdict.reason
                assert verdict.exit_code == 1
    finally:
        path.write_bytes(original)
    assert judged(folder).outcome == "proved"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("change", ["removed", "inserted", "truncated", "emptied", "doubled", "newline"])
def test_bytes_removed_or_added_are_refused(folder, name, change):
    rng, path = random.Random(name + change), folder / name
    original = path.read_bytes()
    i = rng.randrange(len(original))
    changed = {
        "removed": original[:i] + original[i + 1 :],
        "inserted": original[:i] + b" " + original[i:],
        "truncated": original[: len(original) // 2],
        "emptied": b"",
        "doubled": original + original,
        "newline": original + b"\n",
    }[change]
    try:
        path.write_bytes(changed)
        assert judged(folder).outcome == "refused"
    finally:
        path.write_bytes(original)


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_refused(folder, name):
    path = folder / name
    original = path.read_bytes()
    try:
        path.unlink()
        verdict = judged(folder)
        assert verdict.outcome == "refused"
        assert name in verdict.reason
    finally:
        path.write_bytes(original)


def test_files_of_two_honest_runs_cannot_be_mixed(folder, tmp_path):
    other = boxes_run("cos(x1)", "[0,1]", "0.1", 2, 4).write(tmp_path / "other")
    assert judged(other).outcome == "proved"
    for name in NAMES:
        original = (folder / name).read_bytes()
        foreign = (other / name).read_bytes()
        if foreign != original:
            try:
                (folder / name).write_bytes(foreign)
                assert judged(folder).outcome == "refused"
            finally:
                (folder / name).write_bytes(original)
