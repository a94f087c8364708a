"""Files that are sealed correctly but are not what they should be: refused with a sentence, never a crash."""

from __future__ import annotations

import copy
import json
import random
import struct

import pytest
from flint import arb

from certiformer.errors import BadInput
from certiformer.kernel.balls import Box
from certiformer.kernel.check import check
from certiformer.kernel.files import canonical, digest
from certiformer.kernel.problem import Network
from certiformer.kernel.taylor import bounds
from certiformer.kernel.weights import read_model
from negative.forge import CERTIFICATE, CONFIG, FILES, LEAVES, MODEL, TARGET, boxes_run, judged, reseal

RUN = boxes_run("sin(x1)", "[0,1]", "0.1", 2, 4)


@pytest.fixture
def folder(tmp_path):
    return RUN.write(tmp_path / "run")


def refused(folder) -> str:
    verdict = judged(folder)
    assert verdict.outcome == "refused", verdict
    assert verdict.upper is None
    return verdict.reason


def split(data: bytes) -> tuple[dict, bytes]:
    (size,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8 : 8 + size]), data[8 + size :]


def joined(header: dict, body: bytes) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


# --- model.safetensors ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.5, 0.99, 0.9999])
def test_truncated_safetensors(folder, share):
    data = (folder / MODEL).read_bytes()
    reseal(folder, model=data[: int(share * len(data))])
    assert MODEL in refused(folder)


def test_tensors_that_overlap_or_leave_gaps(folder):
    header, body = split((folder / MODEL).read_bytes())
    names = [name for name in header if header[name]["shape"] == header["readout.weight"]["shape"]]
    assert len(names) >= 1
    first, second = sorted(header, key=lambda name: header[name]["data_offsets"])[:2]
    size = header[first]["data_offsets"][1] - header[first]["data_offsets"][0]
    shifted = copy.deepcopy(header)
    shifted[second]["data_offsets"] = [x - size for x in shifted[second]["data_offsets"]]
    reseal(folder, model=joined(shifted, body))
    assert "one after the other" in refused(folder)
    gap = {name: {**entry, "data_offsets": [x + 8 for x in entry["data_offsets"]]} for name, entry in header.items()}
    reseal(folder, model=joined(gap, b"\x00" * 8 + body))
    assert "one after the other" in refused(folder)
    reseal(folder, model=joined(header, body))  # only re-encoded: the same tensors
    assert judged(folder).outcome == "proved"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_weights_that_are_not_finite(folder, value):
    header, body = split((folder / MODEL).read_bytes())
    for name in ("registers", "readout.bias", "embed.weight"):
        start = header[name]["data_offsets"][0]
        reseal(folder, model=joined(header, body[:start] + struct.pack("<d", value) + body[start + 8 :]))
        assert "not finite" in refused(folder)


def test_huge_finite_weights_are_refused_unless_they_do_not_matter(folder):
    header, body = split((folder / MODEL).read_bytes())
    accepted = 0
    for name in header:
        start = header[name]["data_offsets"][0]
        changed = joined(header, body[:start] + struct.pack("<d", 1e308) + body[start + 8 :])
        reseal(folder, model=changed)
        verdict = judged(folder)
        accepted += verdict.outcome == "proved"
        if verdict.outcome == "proved":
            network = Network(*read_model((folder / CONFIG).read_bytes(), changed))
            for x in (0.0, 0.25, 0.7, 1.0):
                low, high = bounds(network.forms(Box((arb(x),), (arb(0),)), 0)[0])
                assert low - 0.1 <= arb(x).sin() <= high + 0.1
    assert accepted < len(header) // 2


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b"\x80\x04\x95pickle", b"{}", b"\x00" * 4096, b"\xff" * 4096])
def test_another_kind_of_file_as_model(folder, data):
    reseal(folder, model=data)
    assert MODEL in refused(folder)


# --- config.json -----------------------------------------------------------------------------------------------------------


def changes_of(data, values):
    """Every value of nested JSON data replaced by each of `values`, removed, or joined by an unknown key."""

    def walk(inner, rebuild):
        keys = list(inner) if isinstance(inner, dict) else range(len(inner)) if isinstance(inner, list) else ()
        for key in keys:
            for value in values:
                changed = copy.deepcopy(inner)
                changed[key] = value
                yield rebuild(changed)
            removed = copy.deepcopy(inner)
            del removed[key]
            yield rebuild(removed)

            def deeper(part, inner=inner, key=key):
                changed = copy.deepcopy(inner)
                changed[key] = part
                return rebuild(changed)

            yield from walk(inner[key], deeper)
        if isinstance(inner, dict):
            yield rebuild({**inner, "unknown": 0})

    yield from walk(data, lambda x: x)


VALUES = ["1", 7.25, -1, True, None, [], {}, 10**30, "nan"]


def test_every_damage_of_the_configuration_is_refused(folder):
    original = json.loads((folder / CONFIG).read_bytes())
    count = 0
    for changed in changes_of(original, VALUES):
        if changed == original:
            continue
        reseal(folder, config=canonical(changed))
        verdict = judged(folder)
        count += 1
        assert verdict.outcome == "refused", changed
    assert count > 200


@pytest.mark.parametrize("raw", [b"", b"null", b"[]", b"{}", b"\xff", b'{"format": NaN}', b'{"a": 1, "a": 1}'])
def test_another_kind_of_file_as_configuration(folder, raw):
    reseal(folder, config=raw)
    assert CONFIG in refused(folder)


# --- target.json -----------------------------------------------------------------------------------------------------------


def test_every_damage_of_the_target_is_refused(folder):
    original = json.loads((folder / TARGET).read_bytes())
    count = 0
    for changed in changes_of(original, VALUES):
        if changed == original:
            continue
        reseal(folder, target=json.dumps(changed).encode())
        verdict = judged(folder)
        count += 1
        # The source is a comment; any text will do.
        source_only = changed.get("source") != original["source"] and {**changed, "source": 0} == {
            **original,
            "source": 0,
        }
        assert verdict.outcome == "refused" or (source_only and isinstance(changed["source"], str)), changed
    assert count > 100


@pytest.mark.parametrize(
    "domain",
    [
        [["0", "x1"]], [["0", "1/0"]], [["0", "1e999"]], [["1", "0"]], [["0", "0"]], [["0", "__import__('os')"]], [["0", "sqrt(-1)"]],
        [["0", "1" * 3000]], [["0", "9**9**9"]], [["0", "(" * 200 + "1" + ")" * 200]], [["0", "1"], ["0", "1"]], [], [["0"]],
        [[0, 1]], "[0,1]", [["0", "inf"]], [["nan", "1"]],
    ],
    ids=lambda domain: str(domain)[:40],
)  # fmt: skip
def test_domains_that_are_no_boxes(folder, domain):
    original = json.loads((folder / TARGET).read_bytes())
    reseal(folder, target=json.dumps({**original, "domain": domain}).encode())
    assert refused(folder)


@pytest.mark.parametrize(
    "nodes",
    [
        [["eval", "1"]], [["var", 0], ["sin", 1]], [["var", 0], ["sin", 0, 0]], [["const", "1e5"]], [["const", "2/4"]],
        [["const", "nan"]], [["var", 0], ["pow", 0, -1]], [["var", 0], ["pow", 0, 10**6]], [["var", 0], ["where", "eq", 0, 0, 0, 0]],
        [["var", 0], ["__class__", 0]], [["var", 0], [["sin"], 0]], [[]], [None], ["var"], [["var", True]], [["var", "0"]],
    ],
    ids=str,
)  # fmt: skip
def test_programs_outside_the_closed_language(folder, nodes):
    original = json.loads((folder / TARGET).read_bytes())
    program = {"inputs": 1, "nodes": nodes, "outputs": [len(nodes) - 1]}
    reseal(folder, target=json.dumps({**original, "program": program}).encode())
    assert refused(folder)


# --- certificate.json --------------------------------------------------------------------------------------------------------


def test_every_damage_of_the_certificate_is_refused_or_harmless(folder):
    path = folder / CERTIFICATE
    original = json.loads(path.read_bytes())
    del original["sha256"]
    comments = {"recorded", "upper", "lower"}
    count = 0
    for changed in changes_of(original, VALUES):
        if changed == original:
            continue
        path.write_bytes(canonical({**changed, "sha256": digest(canonical(changed))}))
        verdict = judged(folder)
        count += 1
        different = {key for key in {*original, *changed} if original.get(key, 0) != changed.get(key, 0)}
        if verdict.outcome == "proved":
            # What is left may concern comments, a wider claim, or another honest order; never the files or the bound.
            assert different <= comments | {"epsilon", "proof"}, changed
            assert float(verdict.upper) <= float(RUN.epsilon) + 1e-12 or different == {"epsilon"}
    assert count > 100


def test_seals_of_other_or_missing_files(folder):
    seals = json.loads((folder / CERTIFICATE).read_bytes())["seals"]
    for changed in (
        {}, {**seals, "extra.bin": seals[MODEL]}, {name: seals[name] for name in FILES[1:]}, {**seals, MODEL: seals[CONFIG]},
        {**seals, MODEL: seals[MODEL].upper()}, {**seals, LEAVES: None},
    ):  # fmt: skip
        reseal(folder, seals=changed)
        assert refused(folder)


def test_random_garbage_in_any_file_never_crashes_the_checker(folder):
    rng = random.Random(0)
    originals = {name: (folder / name).read_bytes() for name in FILES}
    for _ in range(150):
        name = rng.choice(FILES)
        data = bytearray(originals[name])
        for _ in range(rng.randrange(1, 4)):
            place = rng.randrange(len(data) + 1)
            kind = rng.random()
            if kind < 0.4 and data:
                data[place % len(data)] = rng.choice(b'0123456789"{}[],:.-eE \x00\xff')
            elif kind < 0.7:
                data[place:place] = bytes([rng.choice(b'0123456789"{}[],:.-eE \x00\xff')])
            else:
                del data[place : place + rng.randrange(1, 4)]
        RUN.write(folder)
        reseal(folder, **{{MODEL: "model", CONFIG: "config", TARGET: "target", LEAVES: "leaves"}[name]: bytes(data)})
        verdict = judged(folder)
        assert verdict.outcome in ("refused", "proved")
        if verdict.outcome == "proved":  # the low bits of a weight, or the source text
            assert float(verdict.upper) <= float(RUN.epsilon)


def test_a_folder_without_a_certificate_is_bad_input(tmp_path):
    with pytest.raises(BadInput, match=r"no certificate\.json"):
        check(tmp_path)
    with pytest.raises(BadInput, match=r"no certificate\.json"):
        check(tmp_path / "absent")
