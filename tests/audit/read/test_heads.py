"""Where heads stand in fused rows: every row belongs to one head, and the two layouts are what their names say."""

from __future__ import annotations

import numpy as np
import pytest

from certiformer.audit.read.heads import Heads, fused_heads, fused_rows, separate_heads
from certiformer.audit.read.settings import Settings
from certiformer.errors import BadInput


@pytest.mark.parametrize("layout", ["blocks", "groups"])
@pytest.mark.parametrize(("count", "groups", "size"), [(4, 2, 3), (4, 4, 3), (6, 1, 2), (1, 1, 5), (7, 7, 1)])
def test_every_row_belongs_to_one_head(layout, count, groups, size):
    rows = fused_rows(Heads(count, groups, size), layout)
    assert rows.query.shape == (count, size) and rows.key.shape == rows.value.shape == (groups, size)
    everything = np.concatenate([part.ravel() for part in rows])
    assert sorted(everything.tolist()) == list(range((count + 2 * groups) * size))
    # Rows of a head are consecutive and in order.
    assert all((np.diff(part, axis=1) == 1).all() for part in rows)


def test_the_two_layouts_of_two_heads():
    blocks, groups = (fused_rows(Heads(2, 2, 1), layout) for layout in ("blocks", "groups"))
    assert [part.ravel().tolist() for part in blocks] == [[0, 1], [2, 3], [4, 5]]
    assert [part.ravel().tolist() for part in groups] == [[0, 3], [1, 4], [2, 5]]


def test_heads_from_what_is_known():
    assert separate_heads(Settings({"num_attention_heads": 4}), 12, 6, "q") == Heads(4, 2, 3)
    assert separate_heads(Settings({"head_dim": 3}), 12, 6, "q") == Heads(4, 2, 3)
    assert separate_heads(Settings({}), 12, 12, "q") == Heads(1, 1, 12, known=False)
    assert separate_heads(Settings({"num_attention_heads": 4}, {"heads": 2}), 12, 12, "q") == Heads(2, 2, 6)
    assert fused_heads(Settings({"n_head": 4}), 36, "qkv", groups=None, layout="groups") == Heads(4, 4, 3)
    assert Heads(1, 1, 12, known=False).scale is None and Heads(2, 2, 4).scale == 0.5


@pytest.mark.parametrize(
    ("config", "query", "key"),
    [
        ({"num_attention_heads": 5}, 12, 12),
        ({"num_attention_heads": 4, "head_dim": 4}, 12, 12),
        ({"num_attention_heads": 4, "num_key_value_heads": 4}, 12, 6),
        ({"num_attention_heads": 4}, 12, 9),  # three keys for four queries
        ({"num_attention_heads": 4}, 12, 5),
        ({"num_attention_heads": 4}, 0, 0),
        ({"num_attention_heads": 0}, 12, 12),
        ({"head_dim": 5}, 12, 12),
        ({}, 12, 6),
    ],
)
def test_what_does_not_fit(config, query, key):
    with pytest.raises(BadInput):
        separate_heads(Settings(config), query, key, "q")
