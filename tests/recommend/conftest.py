"""One small recommender for each way of splitting, trained once."""

from __future__ import annotations

import pytest

import certiformer
from cli.conftest import cli as cli
from recommend.shop import rows, write

SMALL = {"width": 16, "blocks": 1, "heads": 2, "length": 12, "epochs": 6, "batch": 16, "rate": 3e-3, "core": 2}


@pytest.fixture(scope="session")
def shop_table(tmp_path_factory):
    return write(tmp_path_factory.mktemp("table") / "shop.csv", rows())


@pytest.fixture(scope="session")
def shop(shop_table, tmp_path_factory):
    return certiformer.recommend_fit(shop_table, out=tmp_path_factory.mktemp("fit") / "shop", **SMALL)


@pytest.fixture(scope="session")
def shop_by_time(shop_table, tmp_path_factory):
    out = tmp_path_factory.mktemp("fit") / "by-time"
    return certiformer.recommend_fit(shop_table, split="time", out=out, **SMALL)
