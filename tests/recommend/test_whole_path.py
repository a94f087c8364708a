"""fit, evaluate, top, guarantee, card: the whole path on a small shop, through the command line and through Python."""

from __future__ import annotations

import json

import numpy as np
import pytest

import certiformer
from certiformer import BadInput
from certiformer.recommend.folder import open_recommender


def test_a_trained_recommender_beats_popularity(shop):
    found = certiformer.recommend_evaluate(shop.directory)
    assert found["metrics"]["HR@10"] > found["baselines"]["popularity"]["HR@10"] + 0.1
    assert found["ranking"] == "full" and found["items"] == 40
    assert found["users"] == len(shop.split.tested(0)) == sum(row["users"] for row in found["segments"])


def test_the_command_line_says_the_same(cli, shop):
    done = cli("recommend", "evaluate", str(shop.directory), "--json")
    assert done.code == 0
    said = json.loads(done.out)
    found = certiformer.recommend_evaluate(shop.directory)
    assert said["metrics"] == found["metrics"] and said["baselines"]["popularity"] == found["baselines"]["popularity"]
    assert cli("recommend", "evaluate", str(shop.directory), "--quiet").out.count("popularity") == 1


def test_the_best_items_are_those_of_the_stored_transformer(shop):
    history = ["item 3", "item 24", "item 11"]
    best = certiformer.recommend_top(shop.directory, history, k=40)
    ids = shop.numbers(history)
    scores = shop.model.evaluate_sequences([ids], dtype="float32")[0][-1]
    order = [shop.log.item_names[place] for place in np.argsort(-scores, kind="stable") if place not in ids]
    assert [item for item, _ in best][:10] == order[:10] and len(best) == 37
    assert certiformer.recommend_top(shop.directory, "'item 3' 'item 24' 'item 11'", k=40) == best


def test_an_item_that_there_is_not_gets_a_suggestion(cli, shop):
    done = cli("recommend", "top", str(shop.directory), "--history", "'item 3' itme")
    assert done.code == 2 and "did you mean 'item" in done.err


def test_five_guarantees_each_with_its_assumption(shop):
    found = {one.id: one for one in certiformer.recommend_guarantee(shop.directory)}
    assert list(found) == ["clopper-pearson", "conformal", "compression", "stream", "architecture"]
    assert 0 < found["clopper-pearson"].value < found["clopper-pearson"].details["hits"] / 24
    assert found["stream"].value is None and "--split time" in found["stream"].reason
    assert found["architecture"].value > 0 and all(one.assumption for one in found.values())
    looks = found["clopper-pearson"].details["looks"]
    again = certiformer.recommend_guarantee(shop.directory, tries=20)
    assert again[0].details["looks"] == looks + 1 and again[0].value < found["clopper-pearson"].value


def test_the_stream_has_a_bound_below_its_mean(shop_by_time):
    [one] = [one for one in certiformer.recommend_guarantee(shop_by_time.directory) if one.id == "stream"]
    assert 0 < one.value < one.details["hits"] / one.details["events"]
    assert all(lower <= mean for _, mean, lower in one.details["picture"])


def test_the_card_names_no_user_and_no_item(cli, shop, tmp_path):
    certiformer.recommend_guarantee(shop.directory)
    for name in ("card.md", "card.html"):
        done = cli("recommend", "card", str(shop.directory), "--out", str(tmp_path / name))
        assert done.code == 0
        page = (tmp_path / name).read_text(encoding="utf-8")
        assert "Clopper" in page and "item 3" not in page and "user 1" not in page
    assert "<svg" in page and "Assumed: " in page
    taken = cli("recommend", "card", str(shop.directory), "--out", str(tmp_path / name))
    assert taken.code == 2 and "--force" in taken.err


def test_no_name_of_a_user_is_in_the_folder(shop):
    for path in shop.directory.iterdir():
        assert b"user 1" not in path.read_bytes(), path


def test_changed_data_are_noticed(shop, tmp_path):
    import shutil

    import safetensors.numpy

    copy = tmp_path / "copy"
    shutil.copytree(shop.directory, copy)
    arrays = safetensors.numpy.load_file(copy / "log.safetensors")
    arrays["items"] = arrays["items"][::-1].copy()
    safetensors.numpy.save_file(arrays, copy / "log.safetensors")
    with pytest.raises(BadInput, match="its hash does not match"):
        open_recommender(copy)


def test_the_list_of_kinds(cli):
    assert all(word in cli("recommend").out for word in ("fit", "evaluate", "top", "guarantee", "card"))
    assert set(json.loads(cli("recommend", "--json").out)["kinds"]) == {"fit", "evaluate", "top", "guarantee", "card"}


@pytest.mark.slow
def test_whoever_fits_again_after_a_look_has_looked(shop_table, tmp_path):
    from recommend.conftest import SMALL

    for seen in (1, 2):
        made = certiformer.recommend_fit(shop_table, out=tmp_path / "shop", force=True, **{**SMALL, "epochs": 1})
        assert certiformer.recommend_guarantee(made.directory)[0].details["looks"] == seen
