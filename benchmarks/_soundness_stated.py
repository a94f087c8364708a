"""Honest folders whose certificate says one thing too much: a field that nobody checked would let it pass.

Everything is sealed again. The claim of the folder may be true; what its certificate *states* is better than what can be
proved, or has no place in such a claim, or is no field of that kind at all. The answer must be a refusal, or *undecided*
where the certificate was turned into one that claims nothing.
"""

from __future__ import annotations

import copy
import hashlib
import json
import random
from fractions import Fraction

from _soundness_forge import Files, canonical, nodes_of, sealed

ODD = (None, True, 1, 0.5, "x", [], {}, "1e-3\n", "nan", [1], {"a": 1})


def overstated(rng: random.Random, files: Files) -> tuple[Files, str]:
    """One more forgery, and what is wrong with it."""
    while True:
        certificate = json.loads(files["certificate.json"])
        changed, wrong = dict(files), rng.choice(WAYS)
        told = wrong(rng, certificate, changed)
        if told:
            return (changed if told.startswith("seal") else sealed(changed, certificate)), told


def _outcome(rng: random.Random, certificate: dict, files: Files) -> str:
    certificate["outcome"] = rng.choice(("refuted", "undecided", "invalid", "certified", "PROVED", None, True))
    return f"the outcome is {certificate['outcome']}"


def _better(rng: random.Random, certificate: dict, files: Files) -> str:
    """A bound far below what any rule gives for these weights."""
    if certificate["epsilon"] == "0" or Fraction(certificate["upper"]) == 0:
        return ""
    name, tiny = rng.choice(("upper", "bound", "epsilon")), rng.choice(("1e-300", "1e-30", "0"))
    if name == "bound":
        node = rng.choice(list(nodes_of(certificate["proof"])))
        if Fraction(node["bound"]) == 0 or node["rule"] == "finite" and Fraction(certificate["upper"]) == 0:
            return ""
        node["bound"] = tiny
        return f"a node of the proof has the bound {tiny}" if node is certificate["proof"] else ""
    certificate[name] = tiny
    return f"{name} is {tiny}"


def _lower(rng: random.Random, certificate: dict, files: Files) -> str:
    """A lower end, or the error of a witness, above everything; or a witness where there is none."""
    kind = rng.choice(("lower", "error", "output", "point", "fields", "types"))
    witness = certificate["witness"] or {"point": ["0"], "output": 0, "error": "0"}
    witness = copy.deepcopy(witness)
    if kind == "lower":
        certificate["lower"] = "1e9"
        return "the lower end is 1e9"
    if kind == "error":
        witness["error"] = "1e9"
    elif kind == "output":
        witness["output"] = rng.choice((99, -1, -99))
    elif kind == "point":
        # So many coordinates that they are a point of no claim: a true statement would be no forgery.
        witness["point"] = rng.choice((["1e99"] * len(witness["point"]), [*witness["point"], *["0"] * 999], []))
    elif kind == "fields":
        witness["more"] = 1
    else:
        witness[rng.choice(("point", "output", "error"))] = rng.choice((None, True, "0x", [0], [True], 0.0))
    certificate["witness"] = witness
    return f"the witness is {witness}"


def _unknown(rng: random.Random, certificate: dict, files: Files) -> str:
    name = rng.choice(("more", "rule", "certified"))
    certificate[name] = rng.choice(ODD)
    return f"there is a field {name}"


def _missing(rng: random.Random, certificate: dict, files: Files) -> str:
    name = rng.choice([name for name in certificate if name not in ("sha256", "seals", "run_error")])
    del certificate[name]
    return f"there is no field {name}"


def _type(rng: random.Random, certificate: dict, files: Files) -> str:
    """A field of the wrong type, or larger than any is."""
    name = rng.choice([name for name in certificate if name not in ("sha256", "seals")])
    old = certificate[name]
    new = rng.choice((*ODD, "y" * 30_000, ["z"] * 2_000, {"a": "b" * 30_000}, 10**400, "1" * 5_000))
    alike = type(new) is type(old) or (new is None and name in ("lower", "upper", "witness"))
    if alike and not (isinstance(new, str) and len(new) > 20_000):
        return ""
    certificate[name] = new
    return f"{name} is {str(new)[:40]}"


def _recorded(rng: random.Random, certificate: dict, files: Files) -> str:
    """What is only recorded: a field that is none, one too few, or one of another type."""
    recorded, kind = certificate["recorded"], rng.choice(("more", "less", "type", "level", "checked"))
    name = rng.choice(sorted(recorded))
    if kind == "more":
        recorded[rng.choice(("more", "bound"))] = rng.choice(ODD)
    elif kind == "less":
        del recorded[name]
    elif kind == "level":
        recorded["level"] = rng.choice((3, -1, True, 2.0, "2"))
    elif kind == "checked":  # a field that is compared is not hidden among those that are not
        compared = rng.choice(("epsilon", "upper", "outcome"))
        recorded[compared] = certificate.pop(compared)
    else:
        new = rng.choice((*ODD, ["z"] * 2_000, {"a": "b" * 30_000}, 10**400))
        texts = isinstance(new, str) and (isinstance(recorded[name], str) or name == "apriori")
        if texts or type(new) is type(recorded[name]) or (new is None and name == "apriori") or name == "level":
            return ""
        recorded[name] = new
    return f"recorded: {kind} {name}"


def _parameters(rng: random.Random, certificate: dict, files: Files) -> str:
    """The parameters of a theorem about what is computed: one too many, one too few, or one of another kind."""
    proof = certificate["proof"]
    if certificate["epsilon"] != "0" or "parameters" not in proof:
        return ""
    parameters = proof["parameters"]
    kind = rng.choice(("more", "less", "type", "better"))
    if kind == "more" or not parameters:
        parameters["more"] = rng.choice((1, "1"))
        return "there is a parameter too many"
    name = rng.choice(sorted(parameters))
    value = parameters[name]
    if kind == "less":
        del parameters[name]
    elif kind == "type":
        parameters[name] = str(value) if isinstance(value, int) else 1
    elif isinstance(value, int):
        parameters[name] = value + rng.choice((-1, 1))
    elif name == "margin":
        parameters[name] = "1e9"
    elif Fraction(value) > 0:
        parameters[name] = "1e-300"
    else:
        return ""
    return f"the parameter {name} was {value}"


def _proof(rng: random.Random, certificate: dict, files: Files) -> str:
    """No proof, another rule, another theorem, or one field too many."""
    kind, proof = rng.choice(("none", "rule", "theorem", "more", "less")), certificate["proof"]
    if kind == "none":
        certificate["proof"] = None
    elif kind == "rule":
        names = ("finite", "situations", "boxes", "triangle", "sum", "outputs", "ridges", "lemma")
        proof["rule"] = rng.choice([name for name in names if name != proof["rule"]])
    elif kind == "theorem":
        if "id" not in proof:
            return ""
        proof["id"] = rng.choice(("os", "../os", "exact_gather_", "margins", "axioms.situations", ""))
    elif kind == "more":
        proof["more"] = 1
    else:
        del proof[rng.choice([name for name in proof if name != "rule"])]
    return f"the proof has {kind}"


def _seals(rng: random.Random, certificate: dict, files: Files) -> str:
    """A file that is not the sealed one, or a file that is not sealed."""
    kind, seals = rng.choice(("wrong", "more", "less", "stray", "own")), certificate["seals"]
    name = rng.choice(sorted(seals))
    if kind == "own":
        certificate["sha256"] = "0" * 64
        files["certificate.json"] = canonical(certificate)
        return "seal of the certificate itself"
    if kind == "wrong":
        seals[name] = hashlib.sha256(b"something else").hexdigest()
    elif kind == "more":
        seals["notes.txt"] = hashlib.sha256(b"").hexdigest()
    elif kind == "less":
        del seals[name]
    else:
        others = ("program.json", "circuit.json", "target.json", "leaves.bin", "machine.json", "learner.json")
        files[rng.choice([other for other in others if other not in files])] = b"{}"
    rest = {key: entry for key, entry in certificate.items() if key != "sha256"}
    files["certificate.json"] = canonical({**rest, "sha256": hashlib.sha256(canonical(rest)).hexdigest()})
    return f"seals: {kind}"


def _run_error(rng: random.Random, certificate: dict, files: Files) -> str:
    """A bound of runs that is none; seldom one far too good, which some kinds refuse after seconds only."""
    certificate["run_error"] = rng.choice(
        ("1e-300", "0") if rng.random() < 0.01 else ("-1", "-1e-9", None, 1, "x", "nan")
    )
    return f"a run errs by {certificate['run_error']}"


WAYS = (_outcome, _better, _lower, _unknown, _missing, _type, _recorded, _parameters, _proof, _seals, _run_error)
