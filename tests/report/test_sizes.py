"""Size against tolerance: what is drawn is what the theorems say, and nothing that is missing is invented."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from certiformer import search
from certiformer.artifact import Artifact
from certiformer.construct.method import Task
from certiformer.construct.voronoi import plan
from certiformer.expressivity.bits_lower_bound import bits
from certiformer.report.sizes import candidate_table, powers, size_facts, size_plot
from certiformer.search.report_sizes import size_picture
from negative.forge import target_of

CANDIDATES = [
    {"method": "ridge", "nonzero": 18, "dense": 520, "heads": 2, "bound": 0.098, "outcome": "proved"},
    {"method": "fit", "nonzero": None, "dense": None, "heads": None, "bound": None, "outcome": "does not apply: <b>"},
]


@pytest.fixture(scope="module")
def run() -> Artifact:
    return search.build("sin(x1)*x2", on="[0,3]x[0,1]", eps="0.1", method="voronoi", rule="theorem")


def curve(picture, style: str) -> list[tuple[float, float]]:
    return next(c["points"] for c in picture["curves"] if c["style"] == style)


def test_the_picture_shows_this_run_and_what_the_theorems_need(run):
    picture = size_picture(run)
    assert [dot["style"] for dot in picture["dots"]] == ["ours", "apriori"]
    ours = picture["dots"][0]
    assert (ours["x"], ours["y"]) == (float(run.certificate.upper), run.model.nonzero_count())
    # A2 with one sharpness and one margin is never smaller than the best plan, and not much larger at its own epsilon.
    best = plan(Task.of(run.subject.target, Fraction(1, 10))).size().nonzero
    near = min(curve(picture, "second"), key=lambda point: abs(point[0] - 0.1))
    assert 0.95 * best < near[1] < 3 * best
    for style in ("first", "second", "limit"):
        heights = [y for _, y in curve(picture, style)]
        assert heights == sorted(heights, reverse=True) and len(heights) > 5


def test_the_lower_bound_is_that_of_the_theorem(run):
    """L of sin(x1) x2 on this box: 3 sup|cos(x1) x2| + sup|sin| = 4, up to the enclosure on 400 parts."""
    for epsilon, weights in curve(size_picture(run), "limit"):
        low, high = (-(-bits(Fraction(constant), Fraction(epsilon), 2) // 64) for constant in ("3.99", "4.3"))
        assert low <= weights <= high


def test_candidates_are_dots_where_they_have_a_size(run):
    picture = size_picture(replace(run, candidates=CANDIDATES))
    (dot,) = [dot for dot in picture["dots"] if dot["style"] == "candidate"]
    assert (dot["label"], dot["x"], dot["y"]) == ("ridge", 0.098, 18.0)
    itself = {**CANDIDATES[0], "nonzero": run.model.nonzero_count()}
    assert all(dot["style"] != "candidate" for dot in size_picture(replace(run, candidates=[itself]))["dots"])
    assert size_picture(replace(run, candidates=None)) == size_picture(run)


@pytest.mark.parametrize(
    ("formula", "reason"), [("sqrt(x1)+x2", "not known to be Lipschitz"), ("0*x1+0*x2", "constant")]
)
def test_without_a_lipschitz_constant_no_curve_is_invented(run, formula, reason):
    picture = size_picture(replace(run, subject=replace(run.subject, target=target_of(formula, "[0,1]^2"))))
    assert [c["style"] for c in picture["curves"]] == ["ours"] and reason in picture["caption"]
    assert "figure" in size_plot(picture)


def test_no_transformer_no_picture(run):
    assert size_picture(replace(run, subject=replace(run.subject, files={}))) is None


def test_everything_drawn_lies_inside_the_plot(run):
    picture = size_picture(replace(run, candidates=CANDIDATES))
    text = size_plot(picture)
    for number in text.split('d="')[1:]:
        for corner in number.split('"')[0].strip("MZ").replace("M", "L").split("L"):
            x, y = map(float, corner.split())
            assert -1 <= x <= 1001 and -1 <= y <= 1001
    assert "this run" in text and "ridge" in text


def test_labels_that_would_touch_are_left_out():
    dots = [
        {"label": name, "style": "candidate", "x": 0.1, "y": y}
        for name, y in (("one", 100.0), ("two", 101.0), ("far", 9e4))
    ]
    base = {"title": "t", "caption": "", "name": "n", "x": [0.01, 1.0], "y": [1.0, 1e6], "curves": []}
    text = size_plot({**base, "dots": dots})
    assert ">one<" in text and ">far<" in text and ">two<" not in text
    assert text.count('class="dot candidate"') == 3


def test_the_table_of_candidates():
    text = candidate_table(CANDIDATES)
    assert "ridge" in text and "18" in text and "0.098" in text and "&lt;b&gt;" in text and "<b>" not in text
    assert candidate_table([]) == candidate_table(None) == candidate_table(CANDIDATES[:1]) == ""


def test_sizes_without_a_part_are_shown_as_far_as_known():
    assert "No transformer" in size_facts(None)
    text = size_facts({"nonzero": 12345, "dense": 3, "heads": 1, "registers": 0, "width": 2, "blocks": 1, "bytes": 900})
    assert "12,345" in text and "900 bytes" in text and "hidden units" not in text


@pytest.mark.parametrize(("low", "high"), [(1e-9, 1e9), (0.5, 3.0), (2.0, 9.0), (1.0, 1e12)])
def test_axes_have_few_round_labels(low, high):
    ticks = powers(low, high)
    assert len(ticks) <= 8 and all(0 <= at <= 1 for at, _ in ticks)
