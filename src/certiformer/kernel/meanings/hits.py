"""Recorded hits of a recommender: `hits.json` lists users by what they had done, what they did next, and whether that was
among the first items.

A row is [history, seen, wanted, hit]: the items that the transformer reads, the items that do not compete, the next item,
and 1 or 0. A wanted item that does not compete is no hit. How many items there are and how many are left out is part of the
claim: where hardly any compete, everybody is a hit. `replay` encloses the scores of some rows, drawn at random so that
nobody knows beforehand which rows have to be right, and says which hits are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from random import SystemRandom
from typing import Any

from certiformer.errors import BadInput
from certiformer.kernel import Refused
from certiformer.kernel.balls import working_precision
from certiformer.kernel.certificate import certificate_in
from certiformer.kernel.files import CONFIG, HITS, MODEL, canonical, digest, entries, parse_json
from certiformer.kernel.problem import PointNetwork
from certiformer.kernel.programs import exact
from certiformer.kernel.weights import check_config, read_model

FORMAT = "certiformer-hits-1"
NOT_CLAIMED = (
    "The hits are as recorded; check with --replay N encloses the scores behind N of them.",
    "That nobody looked at these users elsewhere is trusted.",
    "Users of another population, or of another time, are not spoken of.",
)
_RULES = {"format": (FORMAT,), "cut": 1, "tries": 1, "level": str, "lower": str, "rows": list}


def read_hits(raw: bytes) -> dict[str, Any]:
    """The content of the file; raises `BadInput` for anything else than rows of numbers and two probabilities."""
    data = entries(parse_json(raw, HITS), _RULES, HITS)
    if canonical(data) != raw or not data["rows"]:
        raise BadInput(f"{HITS} is not in its canonical form, or has no rows")
    if not 0 <= exact(data["lower"]) < 1 or not 0 < exact(data["level"]) < 1:
        raise BadInput(f"{HITS} states a probability that is not between 0 and 1")
    for row in data["rows"]:
        if type(row) is not list or len(row) != 4 or not all(type(part) is list for part in row[:2]):
            raise BadInput(f"{HITS} has a row that is not a history, the items seen, an item and a hit")
        if any(type(number) is not int for number in (*row[0], *row[1], *row[2:])) or row[3] not in (0, 1):
            raise BadInput(f"{HITS} has a row with something else than numbers of items")
        if row[3] and row[2] in row[1]:
            raise BadInput(f"{HITS} calls it a hit that an item is wanted which is left out")
    return data


def counts(data: Mapping[str, Any]) -> tuple[int, int]:
    """How many users are recorded, and how many hits.

    >>> counts({"rows": [[[0], [0], 1, 1], [[2], [], 0, 0]]})
    (2, 1)
    """
    return len(data["rows"]), sum(row[3] for row in data["rows"])


def require_items(data: Mapping[str, Any], config: bytes) -> tuple[int, int]:
    """How many items there are, and how many are left out for one user at most; raises `Refused` for other items."""
    items, left_out = check_config(parse_json(config, CONFIG))["outputs"], 0
    for history, seen, wanted, _ in data["rows"]:
        if not all(0 <= item < items for item in (*history, *seen, wanted)):
            raise Refused(f"{HITS} names an item that is none of the {items:,} of the transformer")
        left_out = max(left_out, len({*seen}))
    return items, left_out


def sentence(files: Mapping[str, bytes]) -> str:
    """The claim in one plain sentence."""
    data = read_hits(files[HITS])
    (users, hits), (items, left_out) = counts(data), require_items(data, files[CONFIG])
    seen = f", up to {left_out:,} left out for a user" if left_out else ""
    looks = f", for {data['tries']:,} looks at once," if data["tries"] > 1 else ""
    return (
        f"If {hits:,} of {users:,} users, drawn independently from one population, have their next item among the first"
        f" {data['cut']:,} that the transformer picks from {items:,} items{seen}, as recorded, then with confidence"
        f" {data['level']}{looks} a new user of that population has it there with probability at least {data['lower']}."
    )


def replay(files: Mapping[str, bytes], most: int, progress: Callable[[int, int], None] | None = None) -> dict[str, Any]:
    """Enclose the scores of so many rows at random: how many hits and misses are right, which rows are wrong or open.

    A hit is right where fewer than `cut` other items can have a score that is not below the wanted one, a miss where at
    least `cut` certainly are above it. The files are those that the certificate seals.
    """
    working_precision()
    seals = certificate_in(files).seals
    if any(digest(files[name]) != seals.get(name) for name in (MODEL, CONFIG, HITS)):
        raise Refused("a file was changed after the certificate was sealed")
    data = read_hits(files[HITS])
    config, tensors = read_model(files[CONFIG], files[MODEL])
    _require_causal(config)
    require_items(data, files[CONFIG])
    wrong, unsettled, count = [], [], min(most, len(data["rows"]))
    for done, place in enumerate(sorted(SystemRandom().sample(range(len(data["rows"])), count))):
        history, seen, wanted, hit = data["rows"][place]
        if not 0 < len(history) <= config["input"]["tokens"]:
            raise Refused(f"row {place + 1} of {HITS} is no history of this transformer")
        # Causal: the state at the last item of a history does not depend on the positions behind it.
        short = {**config, "input": {**config["input"], "tokens": len(history)}}
        short["readout"] = {"kind": "token", "token": len(history) - 1}
        scores = PointNetwork(short, tensors).values(tuple(Fraction(item) for item in history))
        own, left_out = scores[wanted], {*seen, wanted}
        others = [score for item, score in enumerate(scores) if item not in left_out]
        above = sum(1 for score in others if score > own)
        possible = sum(1 for score in others if not score < own)
        if wanted in seen:  # on no list, however few items compete
            above = possible = data["cut"]
        if (hit and above >= data["cut"]) or (not hit and possible < data["cut"]):
            wrong.append(place + 1)
        elif (hit and possible >= data["cut"]) or (not hit and above < data["cut"]):
            unsettled.append(place + 1)
        if progress is not None:
            progress(done + 1, count)
    return {"rows": count, "right": count - len(wrong) - len(unsettled), "wrong": wrong, "open": unsettled}


def _require_causal(config: Mapping[str, Any]) -> None:
    """A history that is shorter than the transformer must be read as if the rest were not there."""
    attentions = [block["attention"] for block in config["blocks"] if block["attention"] is not None]
    if any(a["mask"] != "causal" or a["score_bias"] != "none" for a in attentions) or config["registers"]:
        raise Refused("a replay needs causal attention without score biases, and no registers")
    if config["input"]["kind"] != "ids" or config["readout"]["kind"] != "all":
        raise Refused("a replay needs a transformer of ids that is read at every token")
