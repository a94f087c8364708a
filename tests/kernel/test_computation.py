"""The frame of claims about transformers that compute: what a certificate says is believed nowhere."""

from __future__ import annotations

from dataclasses import replace

import pytest

from certiformer.compiler.computation import computation_certificate
from certiformer.compiler.machines import machine_loop
from certiformer.compiler.machines.examples import busy_beaver
from certiformer.kernel import Refused
from certiformer.kernel.certificate import Certificate, Outcome, Theorem
from certiformer.kernel.check import check
from certiformer.kernel.computation import Finding, _require_stated


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("machine") / "m"
    machine_loop(busy_beaver(2), 8).certified().save(folder)
    return folder


@pytest.fixture
def folder(saved, tmp_path):
    for path in saved.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


def certificate_in(folder):
    return Certificate.from_bytes((folder / "certificate.json").read_bytes())


def verdict_with(folder, certificate):
    (folder / "certificate.json").write_bytes(certificate.to_bytes())
    return check(folder)


def test_an_honest_folder_is_accepted(folder):
    verdict = check(folder)
    assert (verdict.outcome, verdict.level, verdict.upper) == ("proved", 2, "0")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"proof": None}, "does not rest on a theorem"),
        ({"proof": Theorem("0", "exact_sort", {})}, "does not rest on a theorem about transformers that compute"),
        ({"upper": None}, "does not state one bound"),
        ({"epsilon": "1"}, "does not state one bound"),
        ({"seals": {}}, "does not seal exactly one file that says what is claimed"),
        ({"seals": {"machine.json": ""}}, "seals files that it should not, or misses one"),
    ],
)
def test_a_certificate_that_says_something_else_is_refused(folder, change, reason):
    verdict = verdict_with(folder, replace(certificate_in(folder), **change))
    assert verdict.outcome == "refused" and reason in verdict.reason


def test_parameters_are_stated_completely(folder):
    honest = certificate_in(folder)
    for parameters in ({}, {**honest.proof.parameters, "more": 1}):
        forged = replace(honest, proof=replace(honest.proof, parameters=parameters))
        assert "does not state exactly cells, leak, margin" in verdict_with(folder, forged).reason


def test_a_theorem_of_another_description_is_refused(folder):
    honest = certificate_in(folder)
    (folder / "machine.json").rename(folder / "gates.json")
    assert "holds gates.json, which the certificate, about machine.json, does not seal" in check(folder).reason
    seals = {("gates.json" if name == "machine.json" else name): seal for name, seal in honest.seals.items()}
    assert "speaks of a machine.json" in verdict_with(folder, replace(honest, seals=seals)).reason


def test_what_is_undecided_stays_undecided(folder):
    files = {name: (folder / name).read_bytes() for name in ("model.safetensors", "config.json", "machine.json")}
    files["machine.json"] = files["machine.json"].replace(b'"1","R","B"', b'"1","L","B"', 1)
    certificate = computation_certificate("looped_machine", files)
    assert (certificate.outcome, certificate.level, certificate.upper) == (Outcome.UNDECIDED, 0, None)
    (folder / "machine.json").write_bytes(files["machine.json"])
    verdict = verdict_with(folder, certificate)
    assert (verdict.outcome, verdict.level, verdict.exit_code) == ("undecided", 0, 3)


def test_weaker_numbers_may_be_stated_and_better_ones_not(folder):
    found = Finding("", {"margin": "0.5", "leak": "0.25", "cells": 8}, "0.125")
    honest = certificate_in(folder)

    def stated(bound="0.125", **changes):
        proof = replace(honest.proof, parameters={**found.parameters, **changes}, bound=bound)
        return replace(honest, proof=proof, epsilon=bound, upper=bound)

    for fine in (stated(), stated(margin="0.4"), stated(leak="0.3"), stated("0.2")):
        _require_stated(fine, found)
    for lie in (stated(margin="0.6"), stated(leak="0.2"), stated(cells=9), stated(cells="8"), stated("0.1")):
        with pytest.raises(Refused):
            _require_stated(lie, found)
