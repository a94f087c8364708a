"""The certificate file: one byte string for each certificate, and nothing else is read."""

from __future__ import annotations

import json
import random

import pytest

from certiformer.errors import BadInput
from certiformer.kernel.certificate import RECORDED, Boxes, Certificate, Outcome, Witness
from certiformer.kernel.files import canonical, digest

SEALS = {"config.json": "0" * 64, "model.safetensors": "1" * 64}
CERTIFICATE = Certificate(
    "0.1",
    Outcome.PROVED,
    1,
    SEALS,
    method="voronoi",
    upper="0.09",
    lower="0.08",
    witness=Witness(("1/3", "0"), 0, "0.08"),
    proof=Boxes("0.1", 4, 0, 3),
    assumptions=("none",),
    versions={"certiformer": "0"},
    seconds={"search": 0.25},
)


def resealed(**changes) -> bytes:
    """The canonical bytes of the certificate with some fields replaced and the seal computed anew."""
    data = json.loads(CERTIFICATE.to_bytes())
    data.pop("sha256")
    data["recorded"].update({name: changes.pop(name) for name in RECORDED if name in changes})
    data.update(changes)
    return canonical({**data, "sha256": digest(canonical(data))})


def test_a_certificate_survives_the_file():
    assert Certificate.from_bytes(CERTIFICATE.to_bytes()) == CERTIFICATE
    bare = Certificate("1/3", Outcome.UNDECIDED, 0, {})
    assert Certificate.from_bytes(bare.to_bytes()) == bare
    assert resealed() == CERTIFICATE.to_bytes()
    for certificate in (CERTIFICATE, bare):
        assert Certificate.from_bytes(certificate.to_bytes()).to_bytes() == certificate.to_bytes()


def test_any_changed_inserted_or_removed_byte_is_refused():
    raw, rng = CERTIFICATE.to_bytes(), random.Random(0)
    for i in range(len(raw)):
        variants = [raw[:i] + raw[i + 1 :], raw[:i] + b" " + raw[i:], raw[:i] + bytes([raw[i] ^ 1]) + raw[i + 1 :]]
        variants.append(raw[:i] + bytes([rng.randrange(256)]) + raw[i + 1 :])
        for changed in variants:
            if changed != raw:
                with pytest.raises(BadInput):
                    Certificate.from_bytes(changed)


@pytest.mark.parametrize(
    "change",
    [
        lambda raw: raw.replace(b"\n", b"\r\n"),
        lambda raw: raw.replace(b" ", b"\t", 1),
        lambda raw: raw + b"\n",
        lambda raw: raw.rstrip(),
        lambda raw: json.dumps(json.loads(raw)).encode(),
        lambda raw: raw.replace(b"0.25", b"0.250"),
        lambda raw: raw.replace(b"0.25", b"25e-2"),
        lambda raw: raw.replace(b"voronoi", b"\\u0076oronoi"),
    ],
)
def test_the_same_data_in_other_bytes_is_refused(change):
    raw = CERTIFICATE.to_bytes()
    changed = change(raw)
    assert json.loads(changed) == json.loads(raw)
    assert changed != raw
    with pytest.raises(BadInput, match="canonical form"):
        Certificate.from_bytes(changed)


def test_a_changed_field_with_the_old_seal_is_refused():
    for name in ("epsilon", "upper", "method"):
        data = json.loads(CERTIFICATE.to_bytes())
        (data["recorded"] if name in RECORDED else data)[name] = "7"
        with pytest.raises(BadInput, match="hash does not match"):
            Certificate.from_bytes(canonical(data))


FIELDS = [name for name in json.loads(CERTIFICATE.to_bytes()) if name not in ("sha256", "proof", "witness")]


@pytest.mark.parametrize("name", FIELDS)
def test_fields_of_the_wrong_type_are_refused_even_when_sealed(name):
    original = json.loads(CERTIFICATE.to_bytes())[name]
    for value in (1, True, 0.5, "text", [], [["deep"]], {}, {"a": []}, None):
        optional = value is None and name in ("upper", "lower", "apriori")
        if type(value) is type(original) or optional:
            continue
        if name == "apriori" and isinstance(value, str):
            continue
        with pytest.raises(BadInput):
            Certificate.from_bytes(resealed(**{name: value}))


@pytest.mark.parametrize(
    "witness",
    [
        {"point": ["1"], "output": 0},
        {"point": "1", "output": 0, "error": "0"},
        {"point": [1], "output": 0, "error": "0"},
        {"point": ["1"], "output": "0", "error": "0"},
        {"point": ["1"], "output": True, "error": "0"},
        {"point": ["1"], "output": 0, "error": 0.5},
        {"point": ["1"], "output": 0, "error": "0", "note": ""},
        [], "here", 3,
    ],
)  # fmt: skip
def test_malformed_witnesses_are_refused(witness):
    with pytest.raises(BadInput, match="witness"):
        Certificate.from_bytes(resealed(witness=witness))


def test_missing_and_unknown_fields_are_refused_even_when_sealed():
    with pytest.raises(BadInput, match="unknown one"):
        Certificate.from_bytes(resealed(note="harmless?"))
    data = json.loads(CERTIFICATE.to_bytes())
    del data["upper"], data["sha256"]
    with pytest.raises(BadInput, match="lacks a field"):
        Certificate.from_bytes(canonical({**data, "sha256": digest(canonical(data))}))
    recorded = json.loads(CERTIFICATE.to_bytes())["recorded"]
    for odd in ({**recorded, "upper": "0"}, {name: recorded[name] for name in RECORDED[1:]}):
        with pytest.raises(BadInput, match="recorded field"):
            Certificate.from_bytes(resealed(recorded=odd))


def test_the_earlier_format_is_refused_with_what_to_do():
    with pytest.raises(BadInput, match="run the command that made it again"):
        Certificate.from_bytes(resealed(format="certiformer-certificate-1"))


def test_nesting_that_cannot_be_written_back_is_refused():
    deep = "[" * 700 + "]" * 700
    raw = CERTIFICATE.to_bytes().replace(b'"assumptions": [\n   "none"\n  ]', b'"assumptions": ' + deep.encode())
    assert deep.encode() in raw
    with pytest.raises(BadInput):
        Certificate.from_bytes(raw)


@pytest.mark.parametrize("raw", [b"", b"null", b"[]", b'"certificate"', b"\x00" * 100, b'{"format": "other"}'])
def test_other_files_are_refused(raw):
    with pytest.raises(BadInput):
        Certificate.from_bytes(raw)
