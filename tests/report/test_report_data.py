"""The data of the report, computed from runs, against direct evaluation and against the tree itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certiformer import search
from certiformer.artifact import Artifact
from certiformer.kernel.certificate import Boxes, Node, Outcome, Split
from certiformer.kernel.files import LEAVES
from certiformer.kernel.rules import halves, root
from certiformer.report.page import write
from certiformer.search.report_data import report_data
from certiformer.search.report_pictures import depths, leaf_depths
from kernel.trees import encode, leaves


@pytest.fixture(scope="module")
def line() -> Artifact:
    return search.build("exp(-3*x1)", on="[0,2]", eps="0.1", rule="theorem", method="voronoi")


@pytest.fixture(scope="module")
def plane() -> Artifact:
    return search.build("[x1*x2, x1-x2]", on="[0,1]x[-1,1]", eps="0.2", rule="theorem", method="voronoi")


def with_leaves(run: Artifact, leaves: bytes, proof: Node) -> Artifact:
    subject = replace(run.subject, files={**run.files, LEAVES: leaves})
    return replace(run, subject=subject, certificate=replace(run.certificate, proof=proof))


def error_and_depth(run: Artifact) -> list[dict]:
    """The pictures of the error and of the depth of cuts, without those of the transformer."""
    return [p for p in report_data(run, checked=True)["pictures"] if p["kind"] not in ("sizes", "attention")]


@st.composite
def trees(draw, dimension: int) -> bytes:
    """A random split tree."""
    axes = {}
    pending = [root(dimension)]
    for _ in range(draw(st.integers(0, 12))):
        cell = pending.pop(draw(st.integers(0, len(pending) - 1)))
        axes[cell] = draw(st.integers(0, dimension - 1))
        pending.extend(halves(cell, axes[cell]))
    return encode(dimension, axes)


@given(trees(2))
def test_depths_are_those_of_the_leaf_at_the_point(tree):
    cells = list(leaves(tree, 2))
    centres = np.array([[(k + 0.5) / 2**m for m, k in cell] for cell in cells])
    expected = [sum(m for m, _ in cell) for cell in cells]
    assert depths(tree, centres).tolist() == expected
    assert leaf_depths(tree) == (min(expected), max(expected))


def test_curves_are_samples_of_both_functions(line):
    data = report_data(line, checked=True)
    (picture,) = error_and_depth(line)
    points = np.array(picture["points"])
    assert (points[0], points[-1]) == (0.0, 2.0)
    np.testing.assert_allclose(picture["target"], np.exp(-3 * points), rtol=1e-13)
    np.testing.assert_array_equal(picture["model"], line.evaluate(points[:, None])[:, 0])
    assert max(map(abs, picture["error"])) <= float(line.certificate.upper)
    assert data["sizes"]["nonzero"] == line.model.nonzero_count()
    assert data["proof"]["rule"] == "theorem" and "voronoi" in data["proof"]["notes"][0]


def test_maps_are_the_right_way_up_and_one_pair_an_output(plane):
    pictures = error_and_depth(plane)
    assert [picture["palette"] for picture in pictures] == ["value", "error"] * 2
    values = np.array(pictures[0]["values"])
    side = len(values)
    x, y = (np.arange(side) + 0.5) / side, -1 + 2 * (np.arange(side) + 0.5) / side
    # Rows go with x2, columns with x1; the transformer is within 0.2 of x1 * x2.
    assert np.abs(values - y[:, None] * x[None, :]).max() <= 0.2
    assert np.abs(values - x[:, None] * y[None, :]).max() > 0.5  # the control: transposed it would not fit
    assert all("Output 2" in picture["title"] for picture in pictures[2:])
    assert "Output 2: The error" in write(report_data(plane, checked=True))


def test_boxes_have_a_picture_where_the_depth_varies(line, plane):
    uneven = encode(1, {root(1): 0, ((1, 0),): 0})
    proof = Boxes("0.1", 3, 0, len(uneven))
    boxed = with_leaves(line, uneven, proof)
    data = report_data(boxed, checked=True)
    strip = error_and_depth(boxed)[-1]
    assert strip["kind"] == "steps" and sorted(set(strip["values"])) == [1, 2]
    assert data["proof"]["notes"] == ["3 boxes, cut 1 to 2 times; Taylor forms of order 3"]
    even = encode(1, {root(1): 0})
    flat = with_leaves(line, even, replace(proof, length=len(even)))
    assert [picture["kind"] for picture in error_and_depth(flat)] == ["curves"]
    tree = encode(2, {root(2): 1, ((0, 0), (1, 0)): 0})
    mapped = with_leaves(plane, tree, Boxes("0.1", 2, 0, len(tree)))
    picture = error_and_depth(mapped)[-1]
    values = np.array(picture["values"])
    assert picture["palette"] == "depth"
    assert (values[0] == 2).all() and (values[-1] == 1).all()  # the lower half in x2 was cut once more


SQUARE = {"inputs": 1, "nodes": [["var", 0], ["pow", 0, 2]], "outputs": [1]}


@pytest.mark.slow
def test_the_parts_of_a_sum_have_their_own_axes():
    run = search.build("x1**2+x2**2", on="[0,1]x[2,3]", eps="0.5", rule="theorem", method="voronoi")
    tree = encode(1, {root(1): 0, ((1, 1),): 0})
    children = tuple(Boxes("0.1", 2, offset, len(tree)) for offset in (0, len(tree)))
    parts = [{"directions": [direction], "target": SQUARE} for direction in ([1, 0], [0, 1])]
    proof = Split("0.2", ["0", "0"], parts, children)
    summed = with_leaves(run, tree + tree, proof)
    pictures = [p for p in report_data(summed, checked=True)["pictures"] if p["kind"] == "steps"]
    assert [(p["x"]["label"], p["x"]["high_text"]) for p in pictures] == [("x1", "1"), ("x2", "3")]


def test_a_scale_that_reaches_beyond_the_tolerance_says_so(plane):
    certificate = replace(plane.certificate, epsilon="0.001", upper=None, outcome=Outcome.REFUTED, proof=None)
    picture = error_and_depth(replace(plane, certificate=certificate))[1]
    assert picture["high"] > 0.001 and picture["caption"].endswith("; the tolerance is 0.001.")


def test_a_run_without_a_model_has_a_page(line):
    certificate = replace(line.certificate, outcome=Outcome.INVALID, level=0, proof=None, reason="singular")
    data = report_data(
        replace(line, subject=replace(line.subject, files={}), files={}, certificate=certificate), checked=False
    )
    assert data["pictures"] == [] and data["sizes"] is None
    assert "No transformer was made" in write(data)
