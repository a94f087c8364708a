"""`certiformer audit RUN --radius R` on a run that `build` made: a constant that is proved on a ball of inputs."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np

from certiformer.model import load


def test_a_built_run_gets_a_constant_on_a_ball(cli, finished):
    done = cli("audit", str(finished), "--radius", "0.5", "--json")
    assert done.code == 0
    found = next(each for each in done.data["theorems"] if each["id"] == "bounds.local_lipschitz")
    assert found["verdict"] == "holds" and found["details"]["around"] == "the centre of the box [0, 2*pi]"
    x = np.linspace(np.pi - 0.5, np.pi + 0.5, 2001)
    slopes = np.abs(np.diff(load(finished).evaluate(x[:, None])[:, 0])) / np.diff(x)
    # Slopes over steps of 5e-4 are rounded at 1e-12 of their size.
    assert 0.5 < slopes.max() <= found["value"] < found["trivial"]
    assert found["value"] <= 1.01 * slopes.max()


def test_without_a_radius_no_jax_is_loaded(finished):
    program = "import sys; from certiformer.audit import audit; audit(sys.argv[1]); print('jax' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program, str(finished)], capture_output=True, text=True, check=False)
    assert done.stdout == "False\n", done.stderr


def test_without_a_radius_it_is_named(cli, finished):
    done = cli("audit", str(finished), "--json")
    found = next(each for each in json.loads(done.out)["theorems"] if each["id"] == "bounds.local_lipschitz")
    assert found["verdict"] == "holds-if" and found["needs"][0].startswith("--radius")
