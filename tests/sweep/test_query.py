"""SQL, one table and CSV over a store."""

from __future__ import annotations

import csv
import importlib.util
import json
import math

import pytest

from certiformer.errors import BadInput, MissingExtra
from certiformer.sweep import Job, Store, query, read_table, run_jobs, to_csv


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "store", say=[].append) as store:
        run_jobs([Job("sweep.sample_jobs:square", {"x": x}) for x in range(4)], store)
        run_jobs([Job("sweep.sample_jobs:broken", {"x": 1})], store)
        yield store


def finish(store, function, rows):
    job = Job(function, {})
    store.add([job])
    claim = store.claim("w", 60.0)
    assert store.finish(claim, rows)


def test_one_table_of_all_rows(store):
    table = read_table(store)
    assert table.column_names == ["job", "function", "x", "square", "root"]
    assert table.column("square").to_pylist() == [0, 1, 4, 9]
    assert len(read_table(store, "no:function")) == 0


def test_functions_with_other_columns_stand_beside(store):
    finish(store, "other:one", [{"x": 0.5, "name": "a"}])
    last = read_table(store).to_pylist()[-1]
    assert (last["x"], last["name"], last["square"]) == (0.5, "a", None)
    finish(store, "other:two", [{"x": "text"}])
    with pytest.raises(BadInput, match="in two types; name one"):
        read_table(store)
    assert read_table(store, "other:two").column("x").to_pylist() == ["text"]


def test_a_column_may_not_take_the_name_of_ours(store):
    finish(store, "other:three", [{"job": 1}])
    with pytest.raises(BadInput, match="has a column 'job'"):
        read_table(store)


def test_an_empty_store_has_an_empty_table(tmp_path):
    with Store(tmp_path) as store:
        assert read_table(store).column_names == ["job", "function"]
        assert to_csv(store, tmp_path / "out.csv") == 0


def test_csv_reads_back_the_same_bits(store, tmp_path):
    values = [0.1, 1e-310, float("nan"), float("-inf")]
    finish(store, "other:floats", [{"value": value, "list": [value, 2.5], "text": 'a "b", c'} for value in values[:2]])
    assert to_csv(store, tmp_path / "out.csv", "other:floats") == 2
    with open(tmp_path / "out.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["value"]) for row in rows] == values[:2]
    assert json.loads(rows[1]["list"]) == [1e-310, 2.5]
    assert rows[0]["text"] == 'a "b", c'
    finish(store, "other:special", [{"value": value} for value in values[2:]])
    with pytest.raises(BadInput, match="already exists"):
        to_csv(store, tmp_path / "out.csv", "other:special")
    to_csv(store, tmp_path / "out.csv", "other:special", force=True)
    with open(tmp_path / "out.csv", newline="") as file:
        read = [float(row["value"]) for row in csv.DictReader(file)]
    assert math.isnan(read[0]) and read[1] == -math.inf
    with pytest.raises(BadInput, match="is a folder; name a file"):
        to_csv(store, tmp_path)


def test_sql(store):
    pytest.importorskip("duckdb")
    assert query(store, "SELECT sum(square) AS total, count(*) AS n FROM rows") == [{"total": 14, "n": 4}]
    assert query(store, "SELECT state, count(*) AS n FROM jobs GROUP BY state ORDER BY n") == [
        {"state": "failed", "n": 1},
        {"state": "done", "n": 4},
    ]
    joined = "SELECT max(config->>'$.x') AS x FROM rows JOIN jobs USING (job) WHERE root > 1.5"
    assert query(store, joined) == [{"x": "3"}]


@pytest.mark.parametrize("sql", ["SELEKT 1", "SELECT * FROM 'README.md'", "SELECT nothing FROM rows"])
def test_questions_that_are_not_taken(store, sql):
    pytest.importorskip("duckdb")
    with pytest.raises(BadInput, match="DuckDB does not take this question") as refusal:
        query(store, sql)
    assert "\n" not in str(refusal.value)


def test_sql_sees_no_files(store, tmp_path):
    pytest.importorskip("duckdb")
    (tmp_path / "secret.csv").write_text("a\n1\n")
    with pytest.raises(BadInput):
        query(store, f"SELECT * FROM read_csv('{tmp_path}/secret.csv')")
    with pytest.raises(BadInput):
        query(store, f"COPY rows TO '{tmp_path}/out.csv'")
    assert not (tmp_path / "out.csv").exists()


def test_without_duckdb_a_sentence_says_what_to_install(store, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "duckdb" else found(name))
    with pytest.raises(MissingExtra, match=r"pip install 'certiformer\[sql\]'"):
        query(store, "SELECT 1")
