"""Transformers listed by their nonzero weights: any other number, name or configuration is refused, and so is any size."""

from __future__ import annotations

import time
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from certiformer.axioms import in_context_ridge
from certiformer.compiler.incontext import Request, context_learner, describe
from certiformer.errors import BadInput
from certiformer.kernel import Refused
from certiformer.kernel.construction import Construction, copy, eraser
from certiformer.kernel.files import LEARNER
from certiformer.kernel.weights import Tensor
from compiler.incontext.exact_linear import contexts, descent, forward, fractions, tokens_of


def made() -> Construction:
    made = Construction("relu", (2, 2, 3), [(2, 1.0)], 1, {2: 1.0}, [{0: 0.5}])
    made.block()
    made.heads(1, 1, [([(0, 0, 1.0)], [(1, 0, -2.0)], [(2, 0, 1.0)], [(0, 2, 3.0)])])
    made.units(eraser([2]))
    return made.finished(2, "float64")


def tensors(construction: Construction) -> dict[str, Tensor]:
    from certiformer.kernel.weights import expected_shapes

    stored = {}
    for name, shape in expected_shapes(construction.config).items():
        array = np.zeros(shape)
        for index, weight in construction.entries[name].items():
            array[index] = weight
        stored[name] = Tensor(shape, array.ravel().tolist())
    return stored


def test_the_construction_itself_passes_and_no_changed_entry_does():
    construction = made()
    stored = tensors(construction)
    construction.require(construction.config, stored)
    for name, tensor in stored.items():
        for place, value in enumerate(tensor.data):
            for other in (np.nextafter(value, 9.0), value + 1e-9, value + 1e-3, -value or 5e-324):
                data = [*tensor.data]
                data[place] = float(other)
                with pytest.raises(Refused, match=f"entry {place} of {name}"):
                    construction.require(construction.config, {**stored, name: replace(tensor, data=data)})


def test_no_other_names_and_no_other_configuration_pass():
    construction = made()
    stored = tensors(construction)
    for name in stored:
        with pytest.raises(Refused):
            construction.require(construction.config, {n: t for n, t in stored.items() if n != name})
    for name, value in construction.config.items():
        with pytest.raises(Refused, match=f"{name} differs"):
            construction.require({**construction.config, name: [value]}, stored)
    with pytest.raises(Refused):
        construction.require({**construction.config, "more": 1}, stored)


def test_a_description_of_any_size_is_refused_before_its_weights_are_made():
    """A file of a few kilobytes may call for a billion weights."""
    construction = Construction("relu", (1, 1, 1), [(0, 1.0)], 0)
    construction.block()
    with pytest.raises(BadInput, match="more than 2,000,000 weights"):
        construction.heads(1, 1, ((copy(0, 1_000),) * 4 for _ in range(10**9)))
    with pytest.raises(BadInput, match="more than 2,000,000 weights"):
        construction.units(({0: 1.0}, 0.0, {0: 1.0}) for _ in range(10**9))
    small = context_learner(describe(Request(learner="ridge", strength="0.5", features=2, rows=3, layers=2)))
    huge = replace(small.learner, features=1_000, steps=(0.1,) * 256, whiten=(0.001,) * 256)
    started = time.process_time()
    with pytest.raises((Refused, BadInput)):
        in_context_ridge.find({**small.files(), LEARNER: huge.to_text().encode()})
    assert time.process_time() - started < 60


@pytest.mark.parametrize("flags", [{"learner": "gd"}, {"learner": "ridge", "strength": "0.5"}])
def test_a_fault_in_the_construction_would_be_seen_in_exact_arithmetic(flags):
    """The axiom and the compiler share it, so what it computes is compared with the algorithm, and this is the control."""
    compiled = context_learner(describe(Request(features=2, rows=3, layers=2, **flags)))
    learner = compiled.learner
    x, y, query = [*contexts(learner, 0, 5)][-1]
    exact = tokens_of(learner, *map(fractions, (x, y, query)))
    wanted = descent(learner, x, y, query)
    assert forward(compiled, exact) == wanted
    for name, array in compiled.tensors.items():
        for place in zip(*array.nonzero(), strict=True):
            changed = array.copy()
            changed[place] = -changed[place]
            faulty = replace(compiled, tensors={**compiled.tensors, name: changed})
            assert forward(faulty, exact) != wanted or not _matters(name), (name, place)
    assert isinstance(wanted, Fraction)


def _matters(name: str) -> bool:
    return "blocks.1" not in name or "groups.1" not in name  # nobody reads the whitening of the last layer
