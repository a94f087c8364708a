"""`certiformer rates show`: what a store holds, SQL, CSV, and stores that are empty, missing or no stores."""

from __future__ import annotations

import sys

import pytest

from certiformer.cli.rates_tables import say_table
from certiformer.cli.terminal import Terminal
from certiformer.sweep import Job, Store, run_jobs

JOBS = [Job("cli.fake_study:run", {"m": m, "alpha": [1.0, 2.0], "seed": 0}) for m in (1, 2, 4)]
BAD = Job("cli.fake_study:run", {"m": -5, "alpha": [1.0], "seed": 0})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run of three jobs that are done, one that has failed and one that was never begun."""
    place = tmp_path_factory.mktemp("runs") / "mixed"
    with Store(place / "store", say=lambda _: None) as store:
        run_jobs([*JOBS, BAD], store)
        store.add([Job("cli.fake_study:run", {"m": 8, "alpha": [1.0], "seed": 0})])
    return str(place)


def test_a_store_is_counted_and_its_rows_shown(cli, folder):
    done = cli("rates", "show", folder)
    assert done.code == 0
    assert "cli.fake_study:run: 3 done, 1 open, 1 failed" in done.out and "ValueError: a size of -5" in done.out
    assert "6 in all" in done.out and "0.0625" in done.out
    assert cli("rates", "show", f"{folder}/store").code == 0


def test_as_json(cli, folder):
    data = cli("rates", "show", folder, "--json", "--rows", "2").data
    assert data["studies"] == {"cli.fake_study:run": {"done": 3, "open": 1, "running": 0, "failed": 1}}
    assert data["rows"] == 6 and len(data["first"]) == 2 and data["first"][1]["mse"] == 1.0 and data["result"] is None
    assert len(data["failed"]) == 1


def test_sql(cli, folder):
    pytest.importorskip("duckdb")
    question = "select m, sum(mse) as total from rows group by m order by m"
    assert cli("rates", "show", folder, "--sql", question, "--json").data == {
        "rows": [{"m": 1, "total": 2.0}, {"m": 2, "total": 0.75}, {"m": 4, "total": 0.3125}]
    }
    assert "0.3125" in cli("rates", "show", folder, "--sql", question).out
    states = cli("rates", "show", folder, "--sql", "select state, count(*) n from jobs group by state order by n desc")
    assert "done" in states.out and "failed" in states.out
    done = cli("rates", "show", folder, "--sql", "select nothing")
    assert done.code == 2 and "DuckDB does not take this question" in done.err
    assert cli("rates", "show", folder, "--sql", "select 1 where false").out == "no rows\n"


def test_without_duckdb_one_sentence(cli, folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    done = cli("rates", "show", folder, "--sql", "select 1")
    assert done.code == 2 and "certiformer[sql]" in done.err


def test_csv(cli, folder, tmp_path):
    assert cli("rates", "show", folder, "--csv", "all.csv").code == 0
    lines = (tmp_path / "all.csv").read_text().splitlines()
    assert len(lines) == 7 and lines[0].startswith("job,function,m,")


def test_zero_finished_jobs_is_a_clear_sentence(cli, tmp_path):
    with Store(tmp_path / "waiting") as store:
        store.add(JOBS)
    done = cli("rates", "show", "waiting")
    assert done.code == 0 and "no job of waiting has finished yet (3 open)" in " ".join(done.out.split())
    asked = cli("rates", "show", "waiting", "--sql", "select m from rows")
    assert asked.code == 2 and "has finished yet" in asked.err
    with Store(tmp_path / "empty"):
        pass
    assert "holds no job yet" in cli("rates", "show", "empty").out


def test_no_store_is_one_sentence_and_nothing_is_made(cli, tmp_path):
    done = cli("rates", "show", "nowhere")
    assert done.code == 2 and "nowhere does not exist" in done.err and not (tmp_path / "nowhere").exists()
    (tmp_path / "other").mkdir()
    assert "holds no store" in cli("rates", "show", "other").err
    assert "are about one store" in cli("rates", "show", "--sql", "select 1").err


def test_without_a_folder_all_runs_are_listed(cli, tmp_path):
    assert "there is no run of a study" in cli("rates", "show").out
    with Store(tmp_path / "runs" / "rates-a" / "store") as store:
        store.add(JOBS)
    done = cli("rates", "show")
    assert "runs/rates-a" in done.out and done.code == 0
    assert cli("rates", "show", "--json").data["stores"]["runs/rates-a"]["cli.fake_study:run"]["open"] == 3


def test_tables_fit_the_terminal(capsys, monkeypatch):
    """A table that does not fit stands row under row, and no number of it is broken or left out."""
    for columns in (60, 79, 80, 100):
        monkeypatch.setenv("COLUMNS", str(columns))
        say_table([f"column {k}" for k in range(30)], [[k * 1.5 for k in range(30)]], Terminal())
        lines = capsys.readouterr().out.splitlines()
        assert max(map(len, lines)) <= columns
        assert [line.split()[-1] for line in lines] == [f"{k * 1.5:.4g}" for k in range(30)]
