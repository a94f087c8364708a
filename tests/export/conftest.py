"""One certified run folder for the tests of the exports."""

from __future__ import annotations

from pathlib import Path

import pytest

import certiformer


@pytest.fixture(scope="session")
def sines(tmp_path_factory) -> Path:
    """The folder of a Voronoi build, not to be changed."""
    folder = tmp_path_factory.mktemp("export") / "sines"
    run = certiformer.build("sin(x1)+sin(x2)", on="[0,2*pi]^2", eps="0.3", out=folder)
    assert run.certified
    return folder
