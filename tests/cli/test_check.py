"""`certiformer check`: accepted, refused, and not a run folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from certiformer.kernel.certificate import Certificate
from certiformer.kernel.files import digest, parse_json


def reseal(folder: Path, **changes) -> None:
    """Recompute every hash, so that only the content can give a change away."""
    path = folder / "certificate.json"
    data = parse_json(path.read_bytes(), "certificate.json")
    certificate = Certificate.from_json(data)
    seals = {name: digest((folder / name).read_bytes()) for name in certificate.seals}
    path.write_bytes(replace(certificate, seals=seals, **changes).to_bytes())


def test_an_honest_folder_is_certified_in_one_sentence(cli, finished):
    done = cli("check", str(finished))
    assert done.code == 0
    first = done.out.splitlines()[0]
    assert first.startswith("certified  At every real point x1 of [0, 2*pi], the transformer's output differs")
    assert "every step was recomputed" in done.out


def test_json_has_the_promised_fields(cli, finished):
    done = cli("check", str(finished), "--json", "--quiet")
    assert (done.code, done.err) == (0, "")
    assert (done.data["outcome"], done.data["level"]) == ("proved", 2)
    assert 0 < done.data["upper"] <= 0.2 and isinstance(done.data["reason"], str)


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "target.json", "leaves.bin", "certificate.json"])
def test_one_changed_byte_is_refused(cli, folder, name):
    path = folder / name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    done = cli("check", str(folder))
    assert done.code == 1
    assert "refused" in done.out and "certified" not in done.out
    assert cli("check", str(folder), "--json").data["outcome"] == "refused"


def test_a_smaller_epsilon_is_refused_though_every_hash_is_right(cli, folder):
    reseal(folder, epsilon="0.001")
    done = cli("check", str(folder))
    assert done.code == 1
    assert "refused" in done.out and "does not make it false" in done.out


def test_a_resealed_honest_folder_still_passes(cli, folder):
    """The control of the test above: resealing alone refuses nothing."""
    reseal(folder, epsilon="0.21")
    assert cli("check", str(folder), "--workers", "1").code == 0


def test_a_long_program_is_printed_in_full(cli):
    terms = "+".join(f"sin(x1)/{1000 + k}" for k in range(40))
    arguments = (
        "--on",
        "[0,1]",
        "--eps",
        "0.5",
        "--method",
        "voronoi",
        "--rule",
        "theorem",
        "--out",
        "long",
        "--quiet",
    )
    assert cli("build", terms, *arguments).code == 0
    done = cli("check", "long")
    assert done.code == 0
    assert "the recorded\n           program by" in done.out
    assert "\nprogram    sin(x1)/1000 + sin(x1)/1001" in done.out and "/1039\n" in done.out


@pytest.mark.parametrize("arguments", [("gone",), (".",), ("conftest.py",)])
def test_what_is_not_a_run_folder_is_one_sentence(cli, arguments):
    done = cli("check", *arguments)
    assert (done.code, done.out) == (2, "")
    assert "is not the folder of a finished run" in done.err and done.err.count("\n") == 1


def test_workers_must_be_positive(cli, finished):
    assert cli("check", str(finished), "--workers", "0").code == 2
