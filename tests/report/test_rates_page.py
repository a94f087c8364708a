"""The page of a study: nothing from outside, nothing that runs but its own script, every number at its place."""

from __future__ import annotations

import base64
import hashlib
import math
import re
from html.parser import HTMLParser

import pytest

from certiformer.report.rates_chart import Scale, scale_for
from certiformer.report.rates_data import exclusions, fit_line, plain
from certiformer.report.rates_page import write_rates
from report.rates_example import NASTY, bare, example, series

VOID = {"meta", "input", "br", "path", "circle"}


class Tags(HTMLParser):
    """Every tag with its attributes, and whether all of them are closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.wrong: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in VOID and (not self.open or self.open.pop() != tag):
            self.wrong.append(tag)


def tags(page: str) -> Tags:
    parser = Tags()
    parser.feed(page)
    return parser


@pytest.fixture(scope="module")
def page() -> str:
    return write_rates(plain(example()))


def test_the_page_is_well_formed_and_asks_for_nothing(page):
    found = tags(page)
    assert (found.wrong, found.open) == ([], [])
    named = [
        value for _, attributes in found.seen for key, value in attributes.items() if key in ("src", "href", "action")
    ]
    assert named == [] and "@import" not in page and "url(" not in page


def test_only_the_script_of_the_policy_can_run(page):
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert len(scripts) == 1
    digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page and "default-src 'none'" in page
    assert "unsafe-inline'; script" in page  # of styles only
    assert not any(key.startswith("on") for _, attributes in tags(page).seen for key in attributes)


def test_names_are_texts(page):
    assert "<script>alert" not in page
    assert page.count("&lt;script&gt;alert(&quot;x&quot;)") >= 6  # options, series, findings, tables, pictures, tips


def test_every_point_is_there_once_an_error(page):
    """straight and steep 5 each, the third series 2 of 3 (one is not a number), one point 1: 13 for each of two errors."""
    figure = page.partition('<figure class="broad rates')[2].partition("</figure>")[0]
    assert figure.count('class="pt"') + figure.count('class="pt zero"') == 26
    assert figure.count('class="pt zero"') == 2
    assert "exactly zero" in figure and "no finite number" in figure


def test_points_lie_where_their_numbers_say():
    """A chart without margins would have the first point at the left; the logarithms decide what lies between."""
    chart = write_rates(plain(example(series=[series("straight")], pictures=[])))
    places = [tuple(map(float, place.split())) for place in re.findall(r'class="pt" d="M([\d. ]+)h', chart)][:5]
    across, up = [x for x, _ in places], [y for _, y in places]
    steps = [b - a for a, b in zip(across, across[1:], strict=False)]
    assert max(steps) - min(steps) < 0.3  # coordinates have one decimal
    assert up == sorted(up) and 0 <= up[0] < up[-1] <= 1000  # errors fall, and y runs down the page


@pytest.mark.parametrize("count", [0, 1, 30])
def test_any_number_of_series(count):
    shown = write_rates(plain(example(series=[series(f"name {k} " + "long " * 30) for k in range(count)], pictures=[])))
    assert shown.count('class="item s') == count
    assert tags(shown).wrong == []
    assert ('data-all="true"' in shown) == (count >= 6)


def test_the_page_says_which_exponents_are_excluded(page):
    assert "The interval excludes founding note −3.00 and keeps paper −1.00, corrected (MSE) −1.00." in page
    changed = write_rates(plain(example(series=[series("s", excluded=["paper"])])))
    assert "The interval excludes paper −1.00 and keeps founding note −3.00" in changed
    assert "No slope was fitted for:" in page and "a slope needs 3 points" in page


def test_unfinished_runs_are_said_to_be_so(page):
    assert "incomplete: 2 of 3 jobs" in page and "missing: cafe" in page
    done = {"total": 3, "done": 3, "missing": [], "failed": []}
    assert "incomplete" not in write_rates(plain(example(jobs=done)))


def test_a_study_with_nothing_finished_is_a_page():
    empty = write_rates(plain(example(series=[], tables=[], pictures=[], findings=[])))
    assert "Nothing was found out yet." in empty and "<figure" not in empty


@pytest.mark.parametrize(
    "drawn",
    [
        bare("zeros", [1.0, 2.0], [0.0, 0.0]),
        bare("none", [1.0, 2.0], [None, None]),
        bare("at zero", [0.0, 0.5, 1.0], [1.0, 0.5, 0.25]),
        bare("tiny", [1.0, 2.0], [5e-324, 1e308]),
        bare("same", [3.0, 3.0], [0.5, 0.5]),
        series("overflow", slope_mse=-900.0, slope_interval=[-1000.0, 1000.0]),
    ],
)
def test_what_logarithms_cannot_show_is_drawn_or_left_out(drawn):
    page = write_rates(plain(example(series=[drawn], pictures=[])))
    coordinates = " ".join(re.findall(r'(?: d|style)="([^"]*)"', page))
    assert "nan" not in coordinates and "inf" not in coordinates
    assert tags(page).wrong == []


def test_plain_data_has_no_infinite_number_and_keeps_the_rest():
    data = plain({"series": [{"x": (1, math.inf)}], "options": {"rank": math.inf}, "tables": [{"rows": [[math.nan]]}]})
    assert data["series"] == [{"x": [1, None]}]
    assert data["options"] == {"rank": "inf"} and data["tables"] == [{"rows": [["nan"]]}]


def test_a_line_of_theory_passes_through_the_middle_of_its_window():
    (x0, y0), (x1, y1) = fit_line(series("s", -1.0), "mse", -1.0)
    assert (x0, x1) == (2.0, 16.0)
    assert y0 == pytest.approx(0.05, rel=1e-12) and y1 == pytest.approx(0.1 / 16, rel=1e-12)  # rounding of exp and log
    assert fit_line(bare("one", [1.0], [0.5]), "mse", -1.0) == []


def test_without_a_slope_nothing_is_excluded():
    assert exclusions(series("s", slope_mse=None, slope_l1=None)) == "No slope was fitted, so nothing is excluded."
    assert exclusions(bare("b", [], [])) == ""


def test_scales_have_room_for_everything():
    assert scale_for([1e-3, 1e3], log=True, pad=0.0) == Scale(1e-3, 1e3, True)
    assert scale_for([0.0, -1.0], log=True, pad=0.0).log is False
    scale = scale_for([2.0, 2.0], log=True)
    assert scale.low < 2.0 < scale.high and 0 < scale.share(2.0) < 1


def test_nasty_names_survive_as_they_are():
    assert NASTY in plain(example())["findings"]


def test_a_picture_comes_before_many_sentences():
    few, many = (write_rates(plain(example(findings=[f"finding {i}" for i in range(n)]))) for n in (2, 9))
    assert few.index("finding 1") < few.index("<h2>Rates</h2>")
    assert many.index("<h2>Rates</h2>") < many.index("finding 0") < many.index("finding 8")
    assert many.count("finding 3") == few.count("finding 1") == 1
