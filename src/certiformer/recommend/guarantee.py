"""The five guarantees of a recommender, each a labelled statement with its assumption, its number, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from certiformer.errors import BadInput
from certiformer.kernel.certificate import Certificate, Outcome, Theorem
from certiformer.kernel.check import check_files
from certiformer.kernel.files import CERTIFICATE, CONFIG, HITS, MODEL, canonical, digest
from certiformer.kernel.meanings.hits import FORMAT
from certiformer.recommend import architecture, compression, conformal, stream
from certiformer.recommend.binomial import lower_bound, text
from certiformer.recommend.folder import GUARANTEE, HEAD, Recommender, add_files, read_json
from certiformer.recommend.metrics import Asked, asked_of
from certiformer.recommend.score import ranks, scorer
from certiformer.recommend.split import CONFORMAL, COUNTED, HOLDOUT, OPEN
from certiformer.report.numbers import bound_text
from certiformer.train.rounds import Progress

CUT, LEVEL, STREAM_LIMIT = 10, Fraction(19, 20), 20_000
IDS = ("clopper-pearson", "conformal", "compression", "stream", "architecture")
NO_SEAL = "no users were sealed; fit with --seal 0.1"


@dataclass(frozen=True)
class Guarantee:
    """One statement; `value` is null where there is no number, and `reason` then says why."""

    id: str
    value: float | None
    level: float
    vacuous: bool
    assumption: str
    sentence: str
    reason: str | None
    details: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return dict(vars(self))


def guarantees(opened: Recommender, tries: int = 1, progress: Progress | None = None) -> list[Guarantee]:
    """All five, written into the folder; every call is counted as a look at the sealed users."""
    if tries < 1:
        raise BadInput(f"--tries is at least 1, not {tries}")
    earlier = read_json(opened.directory / GUARANTEE) or {}
    looks = max(int(earlier.get("looks", 0)), int(opened.facts.get("looks", 0))) + 1
    steps = (_holdout, _conformal, _compression, _stream, _architecture)
    found = []
    for place, step in enumerate(steps):
        if progress is not None:
            progress("guarantee", place, len(steps), IDS[place])
        found.append(step(opened, looks, tries))
    record = {"looks": looks, "tries": tries, "model": digest((opened.directory / MODEL).read_bytes())}
    add_files(opened.directory, {GUARANTEE: canonical({**record, "guarantees": [one.to_json() for one in found]})})
    return found


def _nothing(name: str, level: float, assumption: str, reason: str, **details: Any) -> Guarantee:
    return Guarantee(name, None, level, False, assumption, f"There is no number: {reason}.", reason, details)


def hits_of(opened: Recommender, asked: Asked) -> np.ndarray:
    """Whether the wanted item of each user is among the first ten."""
    found, first = [], 0
    for scores in scorer(opened.model)(asked.histories):
        part = slice(first, first + len(scores))
        seen = [np.unique(h) for h in asked.histories[part]] if opened.filtered else None
        found.append(ranks(scores, asked.wanted[part], seen) <= CUT)
        first += len(scores)
    return np.concatenate(found) if found else np.zeros(0, bool)


def _holdout(opened: Recommender, looks: int, tries: int) -> Guarantee:
    assumption = (
        f"The sealed users are independent draws from the users that will come (those that pass the filter). Nobody chose"
        f" this model with knowledge of them: this folder has looked {_times(looks)}, {_times(tries)} paid for, and that"
        " nobody looked elsewhere is believed."
    )
    asked = asked_of(opened.log, opened.split, HOLDOUT)
    if not len(asked.wanted):
        return _nothing(IDS[0], float(LEVEL), assumption, NO_SEAL)
    hits = hits_of(opened, asked)
    users, count = len(hits), int(hits.sum())
    value = text(lower_bound(users, count, (1 - LEVEL) / tries))
    _certify(opened, asked, hits, tries, value)
    trivial = CUT / opened.model.config.outputs
    sentence = (
        f"The hit rate HR@{CUT} for new users is at least {value}, with confidence {float(LEVEL):g}: {count:,} of"
        f" {users:,} sealed users had their item among the first {CUT}."
    )
    details = {"users": users, "hits": count, "looks": looks, "tries": tries, "trivial": trivial}
    vacuous = float(value) <= trivial
    return Guarantee(IDS[0], float(value), float(LEVEL), vacuous, assumption, sentence, None, details)


def _certify(opened: Recommender, asked: Asked, hits: np.ndarray, tries: int, value: str) -> None:
    """Write what `check` derives the bound from again: the recorded hits, and a certificate that names the axiom."""
    length, rows = opened.model.config.tokens, []
    for history, wanted, hit in zip(asked.histories, asked.wanted.tolist(), hits.tolist(), strict=True):
        seen = np.unique(history).tolist() if opened.filtered else []
        rows.append([history[-length:].tolist(), seen, wanted, int(hit)])
    data = {"format": FORMAT, "cut": CUT, "tries": tries, "level": str(float(LEVEL)), "lower": value, "rows": rows}
    files = {name: (opened.directory / name).read_bytes() for name in (MODEL, CONFIG)} | {HITS: canonical(data)}
    seals = {name: digest(content) for name, content in files.items()}
    miss = str(1 - Fraction(value))
    proof = Theorem(miss, "binomial_tail", {"hits": int(hits.sum()), "users": len(rows)})
    certificate = Certificate(miss, Outcome.PROVED, 2, seals, method="recommend", upper=miss, proof=proof)
    files[CERTIFICATE] = certificate.to_bytes()
    verdict = check_files(files)
    if not verdict.accepted:
        raise BadInput(f"the bound of the hit rate was not confirmed: {verdict.reason}")
    add_files(opened.directory, {name: files[name] for name in (HITS, CERTIFICATE)})


def _conformal(opened: Recommender, looks: int, tries: int) -> Guarantee:
    assumption = (
        "A new user is exchangeable with the sealed users that set the threshold (within a segment: with those)."
    )
    asked = asked_of(opened.log, opened.split, CONFORMAL)
    if len(asked.wanted) < 2:
        return _nothing(IDS[1], conformal.LEVEL, assumption, NO_SEAL)
    found = conformal.reaches(scorer(opened.model), asked, opened.filtered)
    facts = conformal.sets(found, conformal.halves(len(asked.wanted), 0))
    items = opened.model.config.outputs
    if facts["mean_k"] is None or facts["threshold"] is None:
        return _nothing(
            IDS[1],
            conformal.LEVEL,
            assumption,
            "too few users were sealed for 90 %, or too many want what they have seen",
            **facts,
        )
    sentence = (
        f"Lists that hold the next item of a new user with probability at least 0.9 have {facts['mean_k']:,.0f} items on"
        f" average, of {items:,}. On {facts['users']:,} other sealed users {100 * facts['coverage']:.1f} % were covered"
        " (a measurement)."
    )
    vacuous = facts["mean_k"] >= conformal.LEVEL * items
    value = float(facts["mean_k"])
    return Guarantee(IDS[1], value, conformal.LEVEL, vacuous, assumption, sentence, None, facts)


def _compression(opened: Recommender, looks: int, tries: int) -> Guarantee:
    assumption = (
        "The counted users are independent draws; the transformer, its catalogue and the code of the head were fixed"
        " without them. The sampling unit is a user with one wanted item."
    )
    asked = asked_of(opened.log, opened.split, COUNTED)
    if not len(asked.wanted):
        return _nothing(IDS[2], float(LEVEL), assumption, NO_SEAL)
    head = compression.learn_head(opened, asked, CUT)
    add_files(opened.directory, {HEAD: bytes([head.byte])})
    facts = compression.statement(opened, asked, head, 1 - LEVEL, CUT)
    whole = facts["whole_model"]
    needed = "" if whole["users_needed"] is None else f", and about {whole['users_needed']:,} users would be needed"
    sentence = (
        f"A head of {facts['bits']} bits that was learned from {facts['users']:,} counted users has HR@{CUT} at least"
        f" {facts['value']} for new users, with confidence {float(LEVEL):g}. The whole transformer is a file of"
        f" {whole['bits']:,} bits: by bits alone nothing follows for it{needed}."
    )
    value = float(facts["value"])
    return Guarantee(IDS[2], value, float(LEVEL), value <= facts["trivial"], assumption, sentence, None, facts)


def stream_hits(opened: Recommender, limit: int = STREAM_LIMIT) -> np.ndarray:
    """The hits of the events from T0 on, in order, each predicted from what its user had done before."""
    log, split = opened.log, opened.split
    if split.start is None or log.times is None:
        raise BadInput("a stream needs a split by time; fit with --split time")
    users = np.repeat(np.arange(log.users), log.lengths)
    place = np.arange(len(log.items)) - log.offsets[users]
    sealed = (split.group == HOLDOUT) | (split.group == CONFORMAL)
    chosen = np.flatnonzero((log.times >= split.start) & (place > 0) & ~sealed[users])
    chosen = chosen[np.argsort(log.times[chosen], kind="stable")][:limit]
    histories = [log.sequence(u)[:stop] for u, stop in zip(users[chosen].tolist(), place[chosen].tolist(), strict=True)]
    return hits_of(opened, Asked(histories, log.items[chosen].astype(np.int64)))


def _stream(opened: Recommender, looks: int, tries: int) -> Guarantee:
    assumption = (
        "Nothing is assumed of the stream. The model was frozen before T0, and T0 was not chosen for its result. Events"
        " of items outside the catalogue are left out."
    )
    if opened.split.start is None:
        return _nothing(IDS[3], float(LEVEL), assumption, "the split is not by time; fit with --split time")
    hits = stream_hits(opened)
    if not len(hits):
        return _nothing(IDS[3], float(LEVEL), assumption, "no event comes after T0")
    count, trivial = int(hits.sum()), CUT / opened.model.config.outputs
    value = text(stream.proved_bound(count, len(hits), 1 - LEVEL))
    sentence = (
        f"After {len(hits):,} events from T0 on, {count:,} of them hits, the mean of their conditional hit probabilities is"
        f" at least {value}; with confidence {float(LEVEL):g} the bound holds at every moment of the stream at once."
    )
    shown = np.unique(np.linspace(0, len(hits) - 1, 200).astype(int))
    lower = stream.bounds(hits, float(1 - LEVEL))
    mean = np.cumsum(hits) / np.arange(1, len(hits) + 1)
    picture = [[int(e) + 1, round(float(mean[e]), 5), round(float(lower[e]), 5)] for e in shown]
    details = {"events": len(hits), "hits": count, "trivial": trivial, "picture": picture, "start": opened.split.start}
    vacuous = float(value) <= trivial
    return Guarantee(IDS[3], float(value), float(LEVEL), vacuous, assumption, sentence, None, details)


def _architecture(opened: Recommender, looks: int, tries: int) -> Guarantee:
    assumption = "None beyond the stored weights; what a verdict needs stands in its sentence."
    users = int(((opened.split.group == OPEN) & (opened.split.trained >= 2)).sum())
    said = architecture.verdicts(opened, users)
    slopes = architecture.lipschitz(opened)
    apart = architecture.nearest_items(np.asarray(opened.model.tensors["embed.weight"]))
    sentence = (
        "If every embedded item of a history moves by at most r, within the ball that holds them all, no score moves by"
        f" more than {bound_text(repr(slopes.constant), up=True)} r. Scores span at most"
        f" {bound_text(repr(slopes.span), up=True)}, and the nearest two items are {apart:.3g} apart (a measurement). Of"
        f" {len(said)} theorems, {sum(v['verdict'] == 'holds' for v in said)} hold for this model and"
        f" {sum(v['verdict'] == 'vacuous' for v in said)} hold and say nothing."
    )
    details = {"verdicts": said, "factors": [[name, factor] for name, factor in slopes.factors], "span": slopes.span}
    # Vacuous: not even for the nearest two items does it say more than that scores are bounded.
    vacuous = slopes.constant * apart >= slopes.span
    return Guarantee(IDS[4], slopes.constant, 1.0, vacuous, assumption, sentence, None, details)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
