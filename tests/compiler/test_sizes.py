"""Sizes and times: never more parameters than Tracr needs, widths that do not grow, and quick."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from certiformer.compiler.driver import compile_program
from certiformer.rasp.library import catalogue

CATALOGUE = catalogue()

# (program, length): parameters of Tracr for a vocabulary of 4 (dyck1: 2), as measured.
TRACR = {
    ("length", 5): 1_208,
    ("length", 100): 112_453,
    ("reverse", 5): 19_700,
    ("hist", 5): 1_208,
    ("hist", 100): 112_453,
    ("sort", 5): 17_544,
    ("sort", 50): 1_156_449,
    ("sort_freq", 5): 64_122,
    ("frac_prevs", 5): 1_108,
    ("frac_prevs", 100): 102_093,
    ("pair_balance", 5): 2_540,
    ("shift", 100): 57_916,
    ("dyck1", 10): 293_055,
}


def compiled(name: str, length: int, dtype: str = "float32"):
    vocab = CATALOGUE[name].vocab
    if name not in ("dyck1", "pair_balance"):
        vocab = ("a", "b", "c", "d") if isinstance(vocab[0], str) else (1, 2, 3, 4)
    return compile_program(CATALOGUE[name].make(), vocab, length, dtype=dtype)


@pytest.mark.parametrize("name, length", TRACR)
def test_no_more_parameters_than_tracr(name: str, length: int) -> None:
    assert compiled(name, length).parameters <= TRACR[name, length]


def test_a_hundredth_for_reverse_and_a_fiftieth_for_dyck() -> None:
    assert compiled("reverse", 50).parameters <= 69_000
    assert compiled("dyck1", 20).parameters <= 32_000


@pytest.mark.parametrize("name", ["length", "shift", "reverse", "frac_prevs", "hist"])
def test_the_width_does_not_grow_with_the_length(name: str) -> None:
    assert compiled(name, 100, "float64").config.width == compiled(name, 10, "float64").config.width


def test_the_tables_have_one_unit_for_each_change_of_slope() -> None:
    """Negative control of the sizes: a count of up to n needs n units, a truth value of it one or two."""
    assert compiled("hist", 30).config.blocks[0].ffn.width == 29
    assert compiled("contains", 30).config.blocks[0].ffn.width <= 2


def test_compiling_is_quick() -> None:
    """0.1 s at length 100 is wanted; the limit here leaves room for a loaded machine, and for the first call."""
    for name in ("reverse", "hist", "length", "shift", "sort", "dyck1"):
        compiled(name, 10)
        start = time.process_time()
        compiled(name, 100)
        assert time.process_time() - start < 0.4


def test_no_jax_in_the_compile_path() -> None:
    """What is compiled is written down in the kernel's own terms, and proved with python-flint, which loads in 0.1 s."""
    code = (
        "import sys; from certiformer.compiler.driver import compile_program;"
        "from certiformer.rasp.library import catalogue;"
        "compile_program(catalogue()['reverse'].make(), {'a', 'b'}, 5);"
        "sys.exit(any(name.partition('.')[0] in ('jax', 'jaxlib', 'equinox') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
