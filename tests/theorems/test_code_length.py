"""Files of quantised weights: every file is read back, its length is the formula's, and broken files are refused."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certiformer.bounds.code_length import EXACT, HALF, length, printed_length, read, settings_bits, write
from certiformer.errors import BadInput


@settings(max_examples=150, deadline=None)
@given(
    st.integers(1, 9).flatmap(lambda width: st.tuples(st.just(width), st.lists(st.integers(0, width - 1), min_size=1)))
)
def test_every_file_is_read_back(case):
    width, symbols = case
    levels = np.linspace(-2, 3, width)
    file = write(np.array(symbols), levels)
    assert file.bits == length(np.bincount(symbols, minlength=width).tolist()) <= 8 * len(file.data) < file.bits + 8
    found, half = read(file.data, len(symbols), width)
    assert found.tolist() == symbols
    assert half.tolist() == levels.astype(np.float16).tolist()


@pytest.mark.parametrize("dimension", [2, 3, 4])
def test_all_files_of_a_kind_form_a_prefix_code(dimension):
    """All words of so many symbols on three levels: no file begins another (the filling is not part of it), Kraft's sum < 1."""
    files = [write(np.array(w), np.zeros(3)) for w in itertools.product(range(3), repeat=dimension)]
    texts = sorted("".join(f"{byte:08b}" for byte in file.data)[: file.bits] for file in files)
    assert len(set(texts)) == len(texts)
    assert not any(b.startswith(a) for a, b in itertools.pairwise(texts))
    # The levels take 16 bits each and are the same here.
    assert sum(Fraction(1, 2 ** (len(text) - 3 * HALF)) for text in texts) < 1


def test_the_length_is_the_entropy():
    counts = [10, 200, 700, 80, 10]
    total = sum(counts)
    entropy = sum(c * math.log2(total / c) for c in counts)
    assert length(counts) == 16 * 5 + 4 * 10 + math.ceil(entropy) + 1
    assert printed_length(counts) == 16 * 5 + 5 * 10 + math.ceil(entropy) + 1
    # Whole numbers decide where the entropy is one: eight coins take eight bits and one.
    assert length([4, 4]) - 2 * HALF - 4 == 9 and length([0, 7, 0]) - 3 * HALF - 2 * 3 == 1


def test_balls_and_whole_numbers_agree_on_long_files(monkeypatch):
    for counts in ([3001, 5000, 2100], [1, 10_500], [4096, 4096, 4096, 4096]):
        assert sum(counts) > EXACT
        by_balls = length(counts)
        with monkeypatch.context() as patch:
            patch.setattr("certiformer.bounds.code_length.EXACT", 10**6)
            assert length(counts) <= by_balls <= length(counts) + 1


def test_a_long_file_is_read_back():
    symbols = np.random.default_rng(0).choice(5, p=[0.1, 0.2, 0.4, 0.2, 0.1], size=4000)
    file = write(symbols, np.arange(5.0))
    assert (read(file.data, 4000, 5)[0] == symbols).all()
    assert file.bits < 2.15 * 4000 + 200  # the entropy is 2.12 bits


def test_the_code_that_is_printed_may_mean_two_models():
    """Counts of 3 bits for 8 weights: all on the first level or all on the second are the same counts (0, 0), the same file."""
    assert (8).bit_length() == 4 and printed_length([8, 0]) - 2 * HALF - 1 == 2 * 3
    assert write(np.zeros(8, int), np.zeros(2)).data != write(np.ones(8, int), np.zeros(2)).data


def test_broken_files_are_refused_or_mean_another_model():
    symbols = np.random.default_rng(1).integers(0, 3, size=40)
    file = write(symbols, np.array([-1.0, 0.25, 1.0]))
    with pytest.raises(BadInput, match="ends too early"):
        read(file.data[:-1], 40, 3)
    with pytest.raises(BadInput, match="does not end where it should"):
        read(file.data + b"\0", 40, 3)
    refused = 0
    for bit in range(file.bits):
        data = bytearray(file.data)
        data[bit // 8] ^= 128 >> bit % 8
        try:
            found, half = read(bytes(data), 40, 3)
        except BadInput:
            refused += 1
            continue
        assert (found != symbols).any() or half.tolist() != [-1.0, 0.25, 1.0]
    assert refused > 5


def test_nonsense_is_refused():
    for make, sentence in (
        (lambda: write(np.array([0, 3]), np.zeros(3)), "symbols are numbers of levels, 0 to 2"),
        (lambda: write(np.array([-1]), np.zeros(3)), "symbols are numbers of levels"),
        (lambda: write(np.array([0]), np.array([1e6])), "at most 65504"),
        (lambda: write(np.array([], int), np.zeros(2)), "number of weights is a positive number, not 0"),
        (lambda: settings_bits(0), "number of settings is a positive number, not 0"),
    ):
        with pytest.raises(BadInput, match=sentence):
            make()
