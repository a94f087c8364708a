"""The folder of a recommender, and everything in it as one object.

recommend.json          how it was made: columns, filter, split, seal, training; the hash of the processed data
config.json, model.safetensors   the transformer
items.json              the names of the items, in the order of their numbers
log.safetensors         sequences, split and groups, by numbers; users are digests, never names
guarantee.json          what `guarantee` found, with how often the sealed users were looked at
hits.json, certificate.json      what `check` derives again
head.bin                the head that was learned from the counted users
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

from certiformer.disk import Workplace, check_place, recover, write_atomically
from certiformer.errors import MALFORMED, BadInput
from certiformer.kernel.files import CERTIFICATE, CONFIG, HITS, MODEL, canonical
from certiformer.model import Transformer, from_bytes
from certiformer.model.store import tensors_to_bytes
from certiformer.reading import read_regular
from certiformer.recommend.log import Log
from certiformer.recommend.split import Split, leaks

FORMAT = "certiformer-recommend-1"
MARK, ITEMS, LOG, GUARANTEE, HEAD = (
    "recommend.json", "items.json", "log.safetensors", "guarantee.json", "head.bin",
)  # fmt: skip
NAMES = (MARK, ITEMS, LOG, GUARANTEE, HITS, HEAD, CONFIG, MODEL, CERTIFICATE)
LARGEST = 4 << 30


@dataclass(frozen=True)
class Recommender:
    """A trained recommender. `facts` is the content of `recommend.json`."""

    directory: Path
    facts: dict[str, Any]
    model: Transformer
    log: Log
    split: Split

    @property
    def filtered(self) -> bool:
        """Whether items that a user has seen are left out."""
        return self.facts["seen"] == "filter"

    def numbers(self, names: list[str]) -> np.ndarray:
        """The numbers of items; a name that there is not is refused with one that is near."""
        import difflib

        places = {name: place for place, name in enumerate(self.log.item_names)}
        for name in names:
            if name not in places:
                near = difflib.get_close_matches(name, self.log.item_names[:50_000], n=1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                raise BadInput(f"there is no item {name!r} among the {len(places):,} of {self.directory}{hint}")
        return np.array([places[name] for name in names], np.int64)


def contents(facts: dict[str, Any], model: Transformer, log: Log, split: Split) -> dict[str, bytes]:
    """The files of a new folder, by name."""
    arrays = {"offsets": log.offsets, "items": log.items, "digests": log.digests}
    arrays |= {} if log.times is None else {"times": log.times}
    arrays |= {"trained": split.trained, "validation": split.validation, "test": split.test}
    arrays |= {"group": split.group}
    return {
        MARK: canonical({"format": FORMAT, **facts}),
        CONFIG: model.config.to_bytes(),
        MODEL: tensors_to_bytes(model),
        ITEMS: (json.dumps(list(log.item_names), ensure_ascii=False) + "\n").encode("utf-8"),
        LOG: safetensors.numpy.save({name: np.ascontiguousarray(array) for name, array in arrays.items()}),
    }


def write_new(place: Workplace, files: dict[str, bytes]) -> None:
    """Publish a new folder in a place that is held."""
    new = place.fresh()
    for name, data in files.items():
        (new / name).write_bytes(data)
    place.publish(set(NAMES))


def require_place(folder: Path, force: bool) -> None:
    """Refuse a place that is taken by something else than a recommender, or by one without `force`."""
    check_place(folder, MARK, NAMES, "recommender", force)


def open_recommender(directory: str | Path) -> Recommender:
    """Read the folder that `fit` wrote; anything else is refused with one sentence."""
    folder = Path(directory)
    recover(folder)
    if not (folder / MARK).is_file():
        raise BadInput(f"{directory} is not the folder of a recommender: it has no {MARK}")
    files = {name: _read(folder / name) for name in (MARK, CONFIG, MODEL, ITEMS, LOG)}
    model = from_bytes(files[CONFIG], files[MODEL], folder)
    try:
        facts = json.loads(files[MARK])
        if facts.pop("format") != FORMAT:
            raise BadInput(f"{folder / MARK} is not of the format {FORMAT}; fit again")
        arrays = safetensors.numpy.load(files[LOG])
        log = Log(
            arrays["offsets"],
            arrays["items"],
            arrays.get("times"),
            arrays["digests"],
            tuple(json.loads(files[ITEMS])),
        )
        split = Split(
            arrays["trained"], arrays["validation"], arrays["test"], arrays["group"], facts["split"].get("start")
        )
        same = log.digest() == facts["data"]["sha256"]
    except BadInput:
        raise
    except (*MALFORMED, safetensors.SafetensorError) as problem:
        raise BadInput(f"{directory} is not a recommender that can be read ({type(problem).__name__})") from None
    if not same:
        raise BadInput(f"{folder / LOG} is not the data of {folder / MARK}: its hash does not match")
    leaking = leaks(log, split)
    if leaking:
        raise BadInput(
            f"{folder / LOG} has a split that leaks: test items of {len(leaking):,} users are trained on, first of the user"
            f" number {leaking[0]}; fit again"
        )
    if len(log.item_names) != model.config.outputs:
        raise BadInput(f"{directory} has {len(log.item_names):,} items and a model of {model.config.outputs:,}")
    return Recommender(folder, facts, model, log, split)


def add_files(folder: Path, files: dict[str, bytes]) -> None:
    """Put files into the folder of a recommender."""
    for name, data in files.items():
        write_atomically(folder / name, data)


def read_json(path: Path) -> Any:
    """A JSON file of the folder, None where there is none."""
    if not path.is_file():
        return None
    try:
        return json.loads(_read(path))
    except ValueError:
        raise BadInput(f"{path} is not JSON") from None


def _read(path: Path) -> bytes:
    try:
        return read_regular(path, LARGEST, links=False)
    except OSError as problem:
        raise BadInput(f"{path} cannot be read: {problem.strerror}") from None
