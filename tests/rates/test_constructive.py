"""Constructions against their theorems: orders on given grids, what the summary says of made-up rows, and planted faults."""

from __future__ import annotations

import importlib
import json
import pkgutil
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import certiformer.construct
from certiformer.axioms.grid import Grid
from certiformer.construct import voronoi
from certiformer.construct.method import METHODS
from certiformer.rates.bit_bound import SHARPNESS_4
from certiformer.rates.constructions import APPROXIMATING, EXACT, Law, _row, build_target, built, grid_points, partition
from certiformer.rates.studies.constructive import FULL, LARGER, Options, jobs, run, summary

LINE = grid_points(1, 2048)


def test_every_construction_is_in_one_of_the_lists():
    assert {*APPROXIMATING, "gather"} == {*METHODS}
    names = [module.name for module in pkgutil.iter_modules(certiformer.construct.__path__)]
    with_theorem = {n for n in names if hasattr(importlib.import_module(f"certiformer.construct.{n}"), "THEOREM")}
    measured, methods_use = {"pooled_order_statistics", "max_norm_prototypes"}, {"sigmoid_bound", "smooth_heads"}
    assert with_theorem - {*EXACT} == measured | methods_use
    assert {*EXACT} <= {*names}


def test_softmax_partition_of_unity_is_of_first_order():
    # |x - 3/10| in one variable: N err = 0.5003 for every N, and never above L sqrt(v).
    row = partition("first kink", 32, LINE)
    assert row["error_max"] * 32 == pytest.approx(0.5003, abs=2e-3)  # the grid misses the worst point a little
    assert row["error_max"] <= float(SHARPNESS_4) ** 0.5 / 32 < row["bound"]


@pytest.mark.slow
def test_softmax_partition_of_unity_at_more_sizes_and_in_two_variables():
    for cells in (4, 8, 16, 64):
        assert partition("first kink", cells, LINE)["error_max"] <= float(SHARPNESS_4) ** 0.5 / cells
    for cells in (4, 8, 16):
        row, bound = partition("first cone", cells, grid_points(2, 16384)), (2 * float(SHARPNESS_4)) ** 0.5 / cells
        assert 0.9 * bound < row["error_max"] <= bound < row["bound"]


def test_partition_of_unity_has_bounded_slope_and_weights_of_sum_one():
    # |grad| <= 2 b v sqrt(d) L, whatever N: 2 * 4 * 0.2507 = 2.006 in one variable.
    target = build_target("abs(x1 - 3/10)", 1)
    model = voronoi.realise(voronoi.Plan(target, "", Grid((32,), 0, Fraction(4)), 0.0, ())).model
    values = model.evaluate(LINE)[:, 0]
    assert np.abs(np.diff(values) / np.diff(LINE[:, 0])).max() <= 2 * 4 * float(SHARPNESS_4)
    weights = model.attention_weights(np.array([[0.37]]))[0][0]
    assert weights.sum(-1) == pytest.approx(1.0, abs=1e-12)


def test_ghosts_make_it_second_order():
    # sin(2 pi x), sharpness 1, 8 ghosts a side: 0.143, 0.0379, 0.00961, 0.00241, 0.000603 for 8 to 128 cells.
    errors = [partition("ghosts sine", cells, LINE)["error_max"] for cells in (16, 32)]
    assert errors == pytest.approx([0.0379, 0.00961], rel=5e-3)
    assert 1.95 < np.log2(errors[0] / errors[1]) < 2.01


@pytest.mark.slow
def test_the_second_order_over_four_doublings():
    errors = [partition("ghosts sine", cells, LINE)["error_max"] for cells in (8, 16, 32, 64, 128)]
    assert errors == pytest.approx([0.143, 0.0379, 0.00961, 0.00241, 0.000603], rel=5e-3)
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert orders.min() > 1.9 and orders.max() < 2.01
    for cells in (8, 32, 128):
        proved = partition("tangent sine", cells, LINE)
        assert proved["error_max"] <= proved["bound"] < 2 * proved["error_max"]


def test_a_job_builds_what_its_theorem_bounds_and_says_why_it_cannot():
    rows = run({"target": "sine", "method": "voronoi", "sizes": [0.2], "points": 500, "largest": 10**6, "seed": 0})
    assert json.loads(json.dumps(rows)) == rows
    for row, tolerance in zip(rows, (0.2,), strict=True):
        assert row["error_max"] <= row["bound"] <= tolerance and row["proved"]
        assert (row["order"], row["axes"], row["theorem"]) == (2, 1, "voronoi_second_order")
    assert rows[0]["slopes"] == pytest.approx([2 * np.pi], rel=1e-2) and rows[0]["curvature"] >= 4 * np.pi**2
    refused = built(build_target("abs(x1 - 3/10)", 1), "temperatures", 0.1, 10**6, LINE)
    assert "kink" in refused["refused"] and refused.keys() == {*rows[0]} - {
        "target",
        "dimension",
        "slopes",
        "curvature",
    }
    large = built(build_target("sin(2*pi*x1)", 1), "voronoi", 0.1, 10, LINE)
    assert "more than the 10" in large["refused"]


def made_up(sizes=(100, 400, 1600, 6400), exponent=-0.5, **changes):
    """Rows of a construction of first order in two variables whose error is 3 size^exponent, give or take 2 percent."""
    rows = []
    for size, off in zip(sizes, (1.02, 0.98, 0.98, 1.02), strict=False):
        error = 3.0 * off * size**exponent
        row = _row("voronoi", error, "voronoi_first_order", Law(1, 2), 1.5 * error, True)
        row |= {"nonzero": size, "dense": 2 * size, "parts": size}
        row |= {"error_max": error, "error_mse": error**2 / 3, "error_l1": error / 2}
        rows.append({"target": "max", "dimension": 2, "slopes": [1.0, 2.0], "curvature": 0.0, **row, **changes})
    return rows


def test_summary_finds_the_slope_and_the_exponent():
    result = summary(made_up(), Options())
    (line,) = result.series
    assert line.slope_mse == pytest.approx(-1.0, abs=1e-9) and line.theory == {"theorem": -1.0, "theorem_l1": -0.5}
    assert line.excluded == []
    text = " ".join(result.findings)
    assert "4 of 4 proved bounds hold" in text and "exponent of the theorem for 1 of 1 lines" in text
    assert "BROKEN" not in text and "IMPOSSIBLE" not in text
    assert any("are missing" in limit for limit in result.limits)
    flat = summary(made_up(exponent=-0.3), Options())
    assert flat.series[0].excluded == ["theorem", "theorem_l1"]
    assert any("more slowly" in finding for finding in flat.findings)
    assert any("faster" in finding for finding in summary(made_up(exponent=-0.8), Options()).findings)


def test_summary_reports_a_broken_bound_and_an_impossible_size():
    broken = made_up()
    broken[1]["bound"] = 0.9 * broken[1]["error_max"]
    found = summary(broken, Options()).findings
    assert any("3 of 4 proved bounds" in f for f in found) and any(f.startswith("BROKEN") for f in found)
    # Slopes 1 and 2, error 0.01: (50 - 1) (100 - 1) = 4851 weights at least; 4850 are impossible, 4851 are not.
    for size, impossible in ((4850, True), (4851, False)):
        rows = made_up(sizes=(size,), bound=0.01, error_max=0.005)
        found = summary(rows, Options()).findings
        assert any(f.startswith("IMPOSSIBLE") for f in found) is impossible
    # The same size for a construction that uses its target claims nothing for the class.
    assert not any(
        "IMPOSSIBLE" in f for f in summary(made_up((4850,), bound=0.01, theorem="ridge"), Options()).findings
    )


def test_summary_of_two_points_exact_rows_and_nothing():
    result = summary(made_up(sizes=(100, 400)), Options())
    assert result.series[0].slope_mse is None and "3 points" in result.series[0].note
    exact = summary(made_up(error_max=1e-16, error_mse=1e-32, error_l1=1e-17), Options())
    assert "exact up to rounding" in exact.series[0].note
    assert exact.tables[0].rows[0][2] == "exact up to rounding"
    empty = summary([], Options())
    assert empty.series == [] and empty.findings == [] and empty.limits
    refused = summary([*made_up(), {**made_up()[0], "refused": "no theorem"}], Options())
    assert any("no theorem" in limit for limit in refused.limits)


def test_summary_is_json_and_draws_the_lower_bounds():
    result = summary(made_up(), Options())
    json.dumps([vars(s) for s in result.series] + [vars(p) for p in result.pictures], allow_nan=False)
    names = [line["name"] for line in result.pictures[0].data["lines"]]
    assert names[-2:] == ["lower bound, continuous", "lower bound, bits"]
    continuous, stored = result.pictures[0].data["lines"][-2:]
    assert all(a >= b for a, b in zip(continuous["x"], stored["x"], strict=True)) and continuous["x"][-1] > 1


def test_jobs_are_different_and_plain():
    all_jobs = jobs(Options())
    assert len({job.id for job in all_jobs}) == len(all_jobs)
    assert {job.config["method"] for job in all_jobs} >= {*APPROXIMATING}
    assert [job.config["target"] for job in jobs(Options(target="max"))][-1] == LARGER
    assert len(jobs(replace(Options(), **FULL))) == len(all_jobs)
