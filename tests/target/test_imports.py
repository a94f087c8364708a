"""The part of `target` that the checker stands on loads neither JAX nor NumPy."""

from __future__ import annotations

import subprocess
import sys

import pytest

USE = """
from certiformer.target import *
import certiformer.target as t
program = t.parse_formula("[sin(x1)+x2, x1**0.3]")
target = t.Target("s", program, t.parse_domain("[0,2*pi]^2"))
assert t.any_target_from_text(t.any_target_to_text(target)) == target
t.formula(program), t.additive_split(program, 0), t.parse_epsilon("0.1"), t.parse_constant("pi")
import sys
loaded = {name.partition(".")[0] for name in sys.modules}
print(sorted(loaded & {"jax", "jaxlib", "numpy", "jaxtyping", "equinox"}))
"""


@pytest.mark.parametrize(("extra", "loaded"), [("", "[]"), ("import certiformer.target.floating\n", "jax")])
def test_modules_loaded(extra, loaded):
    """The second case is the control: the test does notice JAX."""
    run = subprocess.run([sys.executable, "-c", extra + USE], capture_output=True, text=True, check=True)
    assert loaded in run.stdout
