"""`build` of tables and of sorting, and every other verb on the folders they leave."""

from __future__ import annotations

from pathlib import Path

import pytest

from certiformer.api import building
from certiformer.search import sequences

ROWS = "x1,x2,y\n0,0,1\n1,0,0.5\n0,1,-2\n1,1,1/3\n"


@pytest.fixture
def table(cli) -> Path:
    Path("data.csv").write_text(ROWS)
    return Path("data.csv")


def test_a_table_goes_through_every_verb(cli, table):
    done = cli("build", "data.csv", "--inputs", "x1,x2", "--outputs", "y", "--out", "run", "--quiet")
    assert done.code == 0, done.err
    assert "For every one of the 4 rows of the table" in done.out
    assert "plain interpolation needs" in done.out
    assert cli("check", "run").code == 0
    assert "every one of the 4 rows" in cli("check", "run").out
    shown = cli("show", "run", "--json").data
    assert (shown["rules"], shown["domain"], shown["program"]) == (["finite"], "4 rows", [])
    assert shown["not_claimed"][0].startswith("Inputs that are not rows")
    assert "rests on   claimed, not checked: the kernel, by finite" in cli("show", "run").out
    exported = cli("export", "run", "--to", "torch", "--json").data
    assert exported["notes"]["claim"].startswith("For every one of the 4 rows")
    page = Path("run/report.html").read_text()
    assert "For every one of the 4 rows" in page
    assert "largest error over the rows" in page
    assert "the box" not in page


def test_one_json_object(cli, table):
    data = cli("build", "data.csv", "--inputs", "x1,x2", "--outputs", "y", "--eps", "1e-9", "--json", "--quiet").data
    assert (data["outcome"], data["level"], data["method"]) == ("proved", 2, "memorise")
    assert data["upper"] <= 1e-9
    assert len(data["notes"]) == 2


def test_sorting_goes_through_every_verb(cli):
    done = cli("build", "sort", "--alphabet", "3", "--tokens", "9", "--out", "run", "--quiet")
    assert done.code == 0, done.err
    assert "3^9 = 19,683 sequences" in done.out
    assert cli("check", "run").code == 0
    assert cli("show", "run", "--json").data["domain"] == "3^9 sequences"
    assert cli("export", "run", "--to", "hf", "--quiet").code == 0
    assert "3^9 = 19,683 sequences" in Path("run/report.html").read_text()


SENTENCES = {
    ("parity", "--tokens", "40"): "2^40 = 1,099,511,627,776 sequences",
    ("majority", "--tokens", "9", "--alphabet", "3"): "more than half of the letters are v",
    ("count", "--tokens", "9", "--alphabet", "3"): "the number of letters v",
    ("hist", "--tokens", "6", "--alphabet", "3"): "positions with the same letter",
    ("induction", "--tokens", "5", "--alphabet", "2"): "followed the last earlier occurrence",
}


@pytest.mark.parametrize("arguments", SENTENCES, ids=lambda arguments: arguments[0])
def test_maps_on_sequences_go_through_build_check_and_show(cli, arguments):
    done = cli("build", *arguments, "--out", "run", "--quiet")
    assert done.code == 0, done.err
    assert SENTENCES[arguments] in " ".join(done.out.split())
    assert "a run in float64 adds at most" in done.out
    assert "in real arithmetic and in a run in float64: margin 0.49999" in " ".join(done.out.split())
    assert cli("check", "run").code == 0
    assert cli("show", "run", "--json").data["rules"][0].startswith("theorem exact_")


def test_the_words_of_the_command_line_are_those_of_the_library():
    assert set(building.WORDS) == set(sequences.WORDS)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("parity",), "build parity needs"),
        (("induction", "--tokens", "5"), "build induction needs"),
        (("parity", "--tokens", "5", "--alphabet", "1"), "at least two letters"),
        (("count", "--tokens", "5", "--alphabet", "3", "--on", "[0,1]"), "--on is for functions"),
        (("x1",), "--on BOX is missing"),
        (("x1", "--on", "[0,1]"), "--eps E is missing"),
        (("data.csv", "--outputs", "y"), "--inputs names"),
        (("data.csv", "--inputs", "x1,x2", "--outputs", "w"), "no column 'w'"),
        (("data.csv", "--inputs", "x1", "--outputs", "y"), "rows 1 and 3"),
        (("data.csv", "--inputs", "x1,x2", "--outputs", "y", "--on", "[0,1]^2"), "--on is for functions"),
        (("data.csv", "--inputs", "x1,x2", "--outputs", "y", "--level", "1"), "--level is for functions"),
        (("data.csv", "--inputs", "x1,x2", "--outputs", "y", "--dry-run"), "--dry-run is for functions"),
        (("absent.csv", "--inputs", "x1", "--outputs", "y"), "cannot be read"),
        (("data.csv", "--inputs", "x1,x2", "--outputs", "y", "--dtype", "float32"), "--dtype is for functions"),
        (("sort", "--alphabet", "3"), "--tokens"),
        (("sort", "--alphabet", "0", "--tokens", "3"), "between 1 and 10,000"),
    ],
)
def test_mistakes_are_one_sentence_and_exit_code_two(cli, table, arguments, reason):
    done = cli("build", *arguments, "--quiet")
    assert done.code == 2
    assert reason in done.err
    assert not Path("runs").exists()


def test_undecided_has_exit_code_three(cli, table):
    done = cli("build", "data.csv", "--inputs", "x1,x2", "--outputs", "y", "--eps", "1e-40", "--quiet")
    assert done.code == 3
    assert "Float64 weights of this construction come within" in done.out


def test_other_types_are_stored_and_their_runs_bounded(cli):
    done = cli("build", "parity", "--tokens", "20", "--dtype", "float32", "--out", "run", "--quiet")
    assert done.code == 0, done.err
    assert "a run in float32 adds at most" in done.out
    assert cli("check", "run").code == 0
