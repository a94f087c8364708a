"""A small shop whose customers mostly go from one item to a certain next one."""

from __future__ import annotations

from pathlib import Path

import numpy as np

ITEMS = 40


def rows(users: int = 240, seed: int = 0) -> list[tuple[str, str, int]]:
    generator = np.random.default_rng(seed)
    following = (np.arange(ITEMS) * 7 + 3) % ITEMS
    table = []
    for user in range(users):
        item = int(generator.integers(ITEMS))
        for place in range(int(generator.integers(6, 12))):
            table.append((f"user {user}", f"item {item}", 1000 * user + place))
            item = int(following[item]) if generator.random() < 0.8 else int(generator.integers(ITEMS))
    return table


def write(path: Path, table: list[tuple], header: str = "user,item,time") -> Path:
    lines = [",".join(map(str, row)) for row in table]
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return path
