"""No doctest shows the last digit of a linear algebra library: they differ from one processor to the next."""

from __future__ import annotations

import doctest
import importlib
import pathlib

import numpy as np
import pytest
import scipy.linalg

import certiformer

ROOT = pathlib.Path(certiformer.__file__).parent
MENTIONS = ("linalg", "largest_eigenvalue", "singular_values", "spectrum", "einsum")
LIBRARIES = [(np, "einsum")] + [
    (library, name)
    for library in (np.linalg, scipy.linalg)
    for name in ("cholesky", "eigh", "eigvalsh", "inv", "lstsq", "norm", "pinv", "qr", "solve", "svd", "svdvals")
    if hasattr(library, name)
]


def modules() -> list[str]:
    """The modules that use such a library, directly or by the name of a function of ours, and have an example."""
    names = []
    for path in sorted(ROOT.rglob("*.py")):
        text = path.read_text()
        if ">>>" in text and any(word in text for word in MENTIONS):
            names.append(".".join(("certiformer", *path.relative_to(ROOT).with_suffix("").parts)))
    return [name.removesuffix(".__init__") for name in names]


def moved(result, signs: np.random.Generator):
    """The result of another library: every number moved by a rounding of the largest one."""
    if isinstance(result, tuple):
        parts = [moved(part, signs) for part in result]
        return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)
    if isinstance(result, (np.ndarray, np.floating, float)) and np.asarray(result).dtype.kind == "f":
        numbers = np.asarray(result)
        if not numbers.size or not np.isfinite(numbers).all():
            return result
        rounding = 2 * np.finfo(numbers.dtype).eps * np.abs(numbers).max()
        shifted = numbers + rounding * signs.choice([-1.0, 1.0], numbers.shape).astype(numbers.dtype)
        return shifted if isinstance(result, np.ndarray) else type(result)(shifted)
    return result


@pytest.fixture
def another_library(monkeypatch):
    signs = np.random.default_rng(0)

    def other(original):
        return lambda *arguments, **options: moved(original(*arguments, **options), signs)

    for library, name in LIBRARIES:
        monkeypatch.setattr(library, name, other(getattr(library, name)))


def failures(module) -> int:
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    for example in doctest.DocTestFinder().find(module):
        runner.run(example)
    return runner.failures


@pytest.mark.parametrize("name", modules())
def test_no_example_shows_the_last_digit_of_a_library(name, another_library):
    assert failures(importlib.import_module(name)) == 0


def test_an_example_that_shows_it_is_found(another_library):
    from types import ModuleType

    plain = ModuleType("plain")
    plain.__dict__.update(np=np, __doc__=">>> float(np.linalg.svd(np.diag([1.0, 3.0]))[1][0])\n3.0\n")
    rounded = ModuleType("rounded")
    rounded.__dict__.update(np=np, __doc__=">>> round(float(np.linalg.svd(np.diag([1.0, 3.0]))[1][0]), 9)\n3.0\n")
    assert (failures(plain), failures(rounded)) == (1, 0)
