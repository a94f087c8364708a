"""Tables as they come: out of order, with duplicates, odd names, missing values, too little in them."""

from __future__ import annotations

import gzip
import random

import numpy as np
import pytest

import certiformer
from certiformer import BadInput
from certiformer.recommend.folder import open_recommender
from certiformer.recommend.interactions import read_interactions
from certiformer.recommend.log import make_log, start_after
from certiformer.recommend.split import CONFORMAL, COUNTED, HOLDOUT, OPEN, leaks, make_split
from recommend.shop import rows, write

TINY = {"width": 8, "blocks": 1, "heads": 1, "length": 6, "epochs": 1, "core": 1}


def log_of(path, core=1, **columns):
    return make_log(read_interactions(path, **columns), core)[0]


def test_the_order_of_the_file_does_not_matter(tmp_path):
    table = rows(60)
    first = log_of(write(tmp_path / "a.csv", table))
    random.Random(1).shuffle(table)
    again = log_of(write(tmp_path / "b.csv", table))
    assert first.digest() == again.digest()
    assert make_split(first, "last", 0.1, 0).group.tolist() == make_split(again, "last", 0.1, 0).group.tolist()
    changed = log_of(write(tmp_path / "c.csv", [*table[:-1], (*table[-1][:2], 5)]))
    assert changed.digest() != first.digest()  # the negative control


def test_rows_that_repeat_count_once(tmp_path):
    table = rows(60)
    path = write(tmp_path / "a.csv", table + table[::3])
    log, notes = make_log(read_interactions(path), 1)
    assert log.digest() == log_of(write(tmp_path / "b.csv", table)).digest()
    assert any("count once" in note for note in notes)


def test_without_times_the_order_counts_and_is_named(tmp_path):
    path = write(tmp_path / "a.csv", [("u", item, 0) for item in "cabd"], "user,item,rank")
    table = read_interactions(path)
    assert table.times is None and "order of the file" in table.notes[-1]
    log, _ = make_log(table, 1)
    assert [log.item_names[i] for i in log.sequence(0)] == list("cabd")
    with pytest.raises(BadInput, match="--split time needs"):
        start_after(table, 0.9)


NAMES = ['red, small "mug"', "плита", "🍵 tea", "a\tb"]


def odd_table(path):
    quoted = ['"' + name.replace('"', '""') + '"' for name in NAMES]
    return write(path, [(f"u{u}", quoted[(u + t) % 4], t) for u in range(12) for t in range(5)])


def test_names_with_commas_quotes_and_emoji(tmp_path):
    assert sorted(log_of(odd_table(tmp_path / "a.csv")).item_names) == sorted(NAMES)


@pytest.mark.slow
def test_a_recommender_of_such_names(tmp_path):
    path = odd_table(tmp_path / "a.csv")
    made = certiformer.recommend_fit(path, out=tmp_path / "run", **TINY)
    best = certiformer.recommend_top(made.directory, ["🍵 tea"], k=3)
    assert {name for name, _ in best} == set(NAMES) - {"🍵 tea"}


@pytest.mark.parametrize("kind", ["gz", "parquet", "iso", "semicolons"])
def test_other_forms_of_the_same_table(tmp_path, kind):
    table = rows(30)
    plain = log_of(write(tmp_path / "a.csv", table))
    if kind == "gz":
        path = tmp_path / "a.csv.gz"
        path.write_bytes(gzip.compress((tmp_path / "a.csv").read_bytes()))
    elif kind == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = tmp_path / "a.parquet"
        columns = list(zip(*table, strict=True))
        pq.write_table(pa.table(dict(zip(("user", "item", "time"), map(list, columns), strict=True))), path)
    elif kind == "iso":
        moments = [
            str(np.datetime64("2026-01-01T00:00:00") + np.timedelta64(time, "s")).replace("T", " ")
            for *_, time in table
        ]
        path = write(
            tmp_path / "iso.csv",
            [(u, i, m) for (u, i, _), m in zip(table, moments, strict=True)],
            "CustomerID,StockCode,InvoiceDate",
        )
    else:
        path = tmp_path / "b.csv"
        path.write_text((tmp_path / "a.csv").read_text().replace(",", ";"))
    found = log_of(path)
    assert found.items.tolist() == plain.items.tolist() and found.offsets.tolist() == plain.offsets.tolist()


def test_missing_values_are_refused_with_their_row_or_dropped(tmp_path):
    table = rows(30)
    table[16] = ("", *table[16][1:])
    path = write(tmp_path / "a.csv", table)
    with pytest.raises(BadInput, match=r"row 17 \(line 18 of a CSV file\) has no user"):
        read_interactions(path)
    kept = read_interactions(path, missing="drop")
    assert len(kept.users) == len(table) - 1 and "1 rows with a missing value" in kept.notes[-1]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("user,item,time\nu,i,yesterday\n", "neither an integer nor an ISO text"),
        ("who,what\nu,i\n", "which column is the user"),
        ("user,item\n", "has no interactions"),
        ("", "cannot be read as a table"),
        ("user,item\nu\nu,i,3\n", "cannot be read as a table"),
    ],
)
def test_what_is_no_table_is_one_sentence(tmp_path, text, sentence):
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(BadInput, match=sentence):
        read_interactions(path)
    with pytest.raises(BadInput, match="is not a file"):
        read_interactions(tmp_path)


def test_one_item_one_user_and_short_users(tmp_path):
    with pytest.raises(BadInput, match="only one item"):
        log_of(write(tmp_path / "a.csv", [("u", "i", t) for t in range(5)]))
    alone = certiformer.recommend_fit(
        write(tmp_path / "b.csv", [("u", f"i{t}", t) for t in range(5)]), out=tmp_path / "b", **TINY
    )
    assert certiformer.recommend_evaluate(alone.directory)["users"] == 1
    assert [one.value is None for one in certiformer.recommend_guarantee(alone.directory)][:4] == [True] * 4
    short = [("s", "i0", 0), ("s2", "i1", 0), ("s2", "i2", 1)]
    log = log_of(write(tmp_path / "c.csv", [*short, *[("u", f"i{t}", t) for t in range(5)]]))
    split = make_split(log, "last", 0.0, 0)
    assert split.test.tolist() == [-1, -1, 4] and split.trained.tolist() == [1, 2, 3]
    with pytest.raises(BadInput, match="no user has two events"):
        make_split(log_of(write(tmp_path / "d.csv", short[:2])), "last", 0.0, 0)
    with pytest.raises(BadInput, match="no user and no item has 7"):
        log_of(tmp_path / "c.csv", 7)


def test_sealed_users_are_disjoint_and_never_trained_on(tmp_path):
    log = log_of(write(tmp_path / "a.csv", rows(200)))
    split = make_split(log, "last", 0.1, 3)
    assert [len(split.tested(group)) for group in (OPEN, HOLDOUT, CONFORMAL, COUNTED)] == [140, 20, 20, 20]
    from certiformer.recommend.baselines import trained_events

    users, _ = trained_events(log, split)
    assert set(users.tolist()) <= set(split.tested(OPEN).tolist())
    assert make_split(log, "last", 0.1, 4).group.tolist() != split.group.tolist()


def test_the_catalogue_of_a_stream_is_known_before_it_begins(tmp_path):
    old = [(f"u{u}", f"i{(u + t) % 5}", t) for u in range(10) for t in range(6)]
    new = [("u1", "i9", 100 + t) for t in range(5)] + [("u2", "i3", 100), ("new", "i1", 101)]
    table = read_interactions(write(tmp_path / "a.csv", old + new))
    log, _ = make_log(table, 2, 50)
    assert log.item_names == ("i0", "i1", "i2", "i3", "i4") and len(log.items) == 62
    split = make_split(log, "time", 0.0, 0, 50)
    assert sum(split.test >= 0) == 1 and not leaks(log, split)


def test_a_split_that_leaks_is_named(shop, tmp_path):
    import shutil

    import safetensors.numpy

    copy = tmp_path / "copy"
    shutil.copytree(shop.directory, copy)
    arrays = safetensors.numpy.load_file(copy / "log.safetensors")
    arrays["trained"][7] += 2
    safetensors.numpy.save_file(arrays, copy / "log.safetensors")
    with pytest.raises(BadInput, match="test items of 1 users are trained on, first of the user number 7"):
        open_recommender(copy)


def test_training_that_meets_nan_says_so(shop_table, tmp_path):
    with pytest.raises(BadInput, match="numbers that are not finite in epoch 1; a smaller rate"):
        certiformer.recommend_fit(shop_table, rate=1e30, out=tmp_path / "run", **{**TINY, "epochs": 3})
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_repeated_purchases_are_counted(tmp_path):
    table = [(f"u{u}", f"i{(u + t) % 3}", t) for u in range(20) for t in range(7)]
    made = certiformer.recommend_fit(write(tmp_path / "a.csv", table), out=tmp_path / "run", **TINY)
    assert certiformer.recommend_evaluate(made.directory)["repeated"] == 1.0
