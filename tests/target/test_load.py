"""Callables named as `file.py:name`."""

from __future__ import annotations

from fractions import Fraction

import jax
import pytest

from certiformer.errors import BadInput
from certiformer.target import parse_formula
from certiformer.target.load import load_callable
from certiformer.target.trace import trace
from target.oracle import exact

GOOD = """
import jax.numpy as jnp
from neighbour import factor

tenth = jnp.array(0.1)
number = 3

def wave(x, y):
    return jnp.sin(x) * factor + y

def scaled(x):
    return tenth * x
"""


@pytest.fixture
def file(tmp_path):
    (tmp_path / "neighbour.py").write_text("factor = 2.0\n")
    path = tmp_path / "my target.py"
    path.write_text(GOOD)
    return path


def test_a_function_of_a_file(file):
    assert trace(load_callable(f"{file}:wave"), 2) == parse_formula("sin(x1)*2 + x2")
    assert sorted(p.name for p in file.parent.iterdir()) == ["my target.py", "neighbour.py"]  # nothing is written


def test_constants_of_the_file_are_doubles_whatever_the_setting(file):
    with jax.enable_x64(False):
        function = load_callable(f"{file}:scaled")
    assert exact(trace(function, 1), [1]) == [Fraction(0.1)]


@pytest.mark.parametrize(
    ("reference", "part"),
    [
        ("wave", "file.py:name"),
        ("{file}", "file.py:name"),
        ("{file}:", "file.py:name"),
        ("{file}:a.b", "file.py:name"),
        ("{file}:wave()", "file.py:name"),
        ("nowhere.py:f", "no file 'nowhere.py'"),
        ("{file}:number", "not callable"),
        ("{file}:wav", "has no function 'wav'; it has wave, scaled"),
    ],
)
def test_bad_references(file, reference, part):
    with pytest.raises(BadInput) as caught:
        load_callable(reference.format(file=file))
    assert part in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("source", "part"),
    [
        ("x = 1\ny = 1/0\n", "ZeroDivisionError in line 2"),
        ("def f(:\n", "SyntaxError in line 1"),
        ("import no_such_module_at_all", "ModuleNotFoundError in line 1"),
        ("raise SystemExit('bye')", "SystemExit in line 1: bye"),
        ("\0", "cannot be imported"),
    ],
)
def test_a_file_that_does_not_run(tmp_path, source, part):
    path = tmp_path / "broken.py"
    path.write_text(source)
    with pytest.raises(BadInput) as caught:
        load_callable(f"{path}:f")
    assert part in str(caught.value) and "\n" not in str(caught.value)
