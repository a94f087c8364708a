"""One honest folder of every kind, made once for all tests here."""

from __future__ import annotations

import pytest

from negative.kinds import make_folders


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """The folders by their kinds, not to be changed."""
    return make_folders(tmp_path_factory.mktemp("kinds"))
