"""A recommender whose norms are kept: what the folder says is what its weights have."""

from __future__ import annotations

import numpy as np

import certiformer
from certiformer.recommend.folder import open_recommender


def test_fit_keeps_what_it_was_asked_and_says_so(cli, shop, shop_table, tmp_path):
    small = [
        "--width",
        "16",
        "--blocks",
        "1",
        "--heads",
        "2",
        "--length",
        "12",
        "--epochs",
        "2",
        "--batch",
        "16",
        "--rate",
        "3e-3",
        "--core",
        "2",
    ]
    limits = ["--constrain", "qk<=0.005", "--constrain", "ffn<=0.5", "--weight-decay", "0.01"]
    done = cli("recommend", "fit", str(shop_table), "--out", str(tmp_path / "kept"), *small, *limits, "--quiet")
    assert done.code == 0 and done.out.count("is at most") == 2
    made = open_recommender(tmp_path / "kept")
    held = {name: np.asarray(tensor, np.float64) for name, tensor in made.model.tensors.items()}
    group = "blocks.0.attention.groups.0"
    for query, key in zip(held[f"{group}.query"], held[f"{group}.key"], strict=True):
        assert np.linalg.norm(query @ key.T, 2) / np.sqrt(query.shape[1]) <= 0.005
    assert np.linalg.norm(held["blocks.0.ffn.up"], 2) * np.linalg.norm(held["blocks.0.ffn.down"], 2) <= 0.5
    assert all(one["proved"] <= one["largest"] for one in made.facts["training"]["kept"])
    # The negative control: without the limit the norms of the same shop are larger, and nothing is claimed.
    free = {name: np.asarray(tensor, np.float64) for name, tensor in shop.model.tensors.items()}
    sizes = [np.linalg.norm(q @ k.T, 2) for q, k in zip(free[f"{group}.query"], free[f"{group}.key"], strict=True)]
    assert max(sizes) / np.sqrt(8) > 0.005 and shop.facts["training"]["kept"] == []


def test_a_limit_that_there_is_not_is_refused(cli, shop_table, tmp_path):
    done = cli("recommend", "fit", str(shop_table), "--out", str(tmp_path / "x"), "--constrain", "size<=1")
    assert done.code == 2 and "no constraint 'size'" in done.err
    assert callable(certiformer.recommend_fit)
