"""Recorded hits of a recommender: `hits.json` lists users by what they had done, what they did next, and whether that was
among the first items.

A row is [history, seen, wanted, hit]: the items that the transformer reads, the items that do not compete, the next item,
and 1 or 0. The wanted item always competes. `replay` encloses the scores of some rows and says which hits are right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from certiformer.errors import BadInput
from certiformer.kernel import Refused
from certiformer.kernel.balls import working_precision
from certiformer.kernel.certificate import certificate_in
from certiformer.kernel.files import CONFIG, HITS, MODEL, canonical, digest, entries, parse_json
from certiformer.kernel.problem import PointNetwork
from certiformer.kernel.programs import exact
from certiformer.kernel.weights import read_model

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
    return data


def counts(data: Mapping[str, Any]) -> tuple[int, int]:
    """How many users are recorded, and how many hits.

    >>> counts({"rows": [[[0], [0], 1, 1], [[2], [], 0, 0]]})
    (2, 1)
    """
    return len(data["rows"]), sum(row[3] for row in data["rows"])


def sentence(files: Mapping[str, bytes]) -> str:
    """The claim in one plain sentence."""
    data = read_hits(files[HITS])
    users, hits = counts(data)
    looks = f", for {data['tries']:,} looks at once," if data["tries"] > 1 else ""
    return (
        f"If {hits:,} of {users:,} users, drawn independently from one population, have their next item among the first"
        f" {data['cut']} of the transformer, as recorded, then with confidence {data['level']}{looks} a new user of that"
        f" population has it there with probability at least {data['lower']}."
    )


def replay(files: Mapping[str, bytes], most: int, progress: Callable[[int, int], None] | None = None) -> dict[str, Any]:
    """Enclose the scores of the first `most` rows: how many hits and misses are right, and the rows that are wrong or open.

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
    rows, wrong, unsettled = data["rows"][:most], [], []
    for place, (history, seen, wanted, hit) in enumerate(rows):
        items = config["outputs"]
        if (
            not history
            or len(history) > config["input"]["tokens"]
            or not all(0 <= i < items for i in (*history, wanted))
        ):
            raise Refused(f"row {place + 1} of {HITS} is no history of this transformer")
        # Causal: the state at the last item of a history does not depend on the positions behind it.
        short = {**config, "input": {**config["input"], "tokens": len(history)}}
        short["readout"] = {"kind": "token", "token": len(history) - 1}
        scores = PointNetwork(short, tensors).values(tuple(Fraction(item) for item in history))
        own, left_out = scores[wanted], {*seen, wanted}
        others = [score for item, score in enumerate(scores) if item not in left_out]
        above = sum(1 for score in others if score > own)
        possible = sum(1 for score in others if not score < own)
        if (hit and above >= data["cut"]) or (not hit and possible < data["cut"]):
            wrong.append(place + 1)
        elif (hit and possible >= data["cut"]) or (not hit and above < data["cut"]):
            unsettled.append(place + 1)
        if progress is not None:
            progress(place + 1, len(rows))
    return {"rows": len(rows), "right": len(rows) - len(wrong) - len(unsettled), "wrong": wrong, "open": unsettled}


def _require_causal(config: Mapping[str, Any]) -> None:
    """A history that is shorter than the transformer must be read as if the rest were not there."""
    attentions = [block["attention"] for block in config["blocks"] if block["attention"] is not None]
    if any(a["mask"] != "causal" or a["score_bias"] != "none" for a in attentions) or config["registers"]:
        raise Refused("a replay needs causal attention without score biases, and no registers")
    if config["input"]["kind"] != "ids" or config["readout"]["kind"] != "all":
        raise Refused("a replay needs a transformer of ids that is read at every token")
