"""The certificate: a claim, what became of it, and the evidence.

The claim is `|T(x) - f(x)| <= epsilon for every real x in the domain, every output`, where T is the real-number
function of the stored weights (`model.safetensors`, `config.json`) and f and the domain are those of `target.json`.
Numbers are exact decimal or rational text. `sha256` seals the other files and the certificate itself; a seal only shows
that nothing was changed by accident: whether the claim holds is what the checker decides, from the files.

In the folder of a compiled program (`program.json` and `circuit.json` instead of `target.json` and leaves) the claim is
that the decoded output is the program's, for every input and at every position; epsilon is 0 (see the rule *margin*).

`run_error` is a second claim, made only where the field is present: at every point of the box whose coordinates are
numbers of the stored dtype, or at every sequence over the alphabet, a run in that dtype differs from T by at most this
much (what counts as a run: `checker.rounding`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from certiformer.certificate import tree
from certiformer.certificate.files import CERTIFICATE, canonical, digest, parse_json
from certiformer.certificate.outcome import Outcome
from certiformer.errors import BadInput

FORMAT = "certiformer-certificate-1"


@dataclass(frozen=True)
class Witness:
    """A point of the domain, given by exact rationals, at which `output` has error at least `error`."""

    point: tuple[str, ...]
    output: int
    error: str

    def to_json(self) -> dict[str, Any]:
        return {"point": list(self.point), "output": self.output, "error": self.error}

    @staticmethod
    def from_json(data: Any) -> Witness:
        if not isinstance(data, dict) or set(data) != {"point", "output", "error"}:
            raise BadInput("the certificate's witness is not a point, an output and an error")
        texts = [*data["point"], data["error"]] if isinstance(data["point"], list) else [None]
        if type(data["output"]) is not int or any(type(text) is not str for text in texts):
            raise BadInput("the certificate's witness has a field of the wrong type")
        return Witness(tuple(data["point"]), data["output"], data["error"])


@dataclass(frozen=True)
class Certificate:
    """Everything `certificate.json` says; `upper` and `lower` bracket sup |T - f| as far as it is known."""

    epsilon: str
    outcome: Outcome
    level: int
    seals: dict[str, str]
    method: str = "given"
    upper: str | None = None
    lower: str | None = None
    witness: Witness | None = None
    proof: tree.Node | None = None
    reason: str = ""
    apriori: str | None = None
    run_error: str | None = None
    assumptions: tuple[str, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """The canonical file, sealed by its own hash."""
        data = {name.name: getattr(self, name.name) for name in fields(self)}
        data["format"] = FORMAT
        data["outcome"] = self.outcome.value
        data["assumptions"] = list(self.assumptions)
        data["witness"] = None if self.witness is None else self.witness.to_json()
        data["proof"] = None if self.proof is None else tree.to_json(self.proof)
        if self.run_error is None:
            del data["run_error"]  # absent, not null: a claim has one file, and files from before the field stay valid
        data["sha256"] = digest(canonical(data))
        return canonical(data)

    @staticmethod
    def from_bytes(raw: bytes) -> Certificate:
        """Read `certificate.json`. Only the canonical bytes are accepted, so that no byte can change unnoticed."""
        data = parse_json(raw, CERTIFICATE)
        try:
            same = canonical(data) == raw
        except (ValueError, RecursionError):
            same = False
        if not same:
            raise BadInput("certificate.json is not in its canonical form: it was changed after it was sealed")
        return Certificate.from_json(data)

    @staticmethod
    def from_json(data: Any) -> Certificate:
        """Read a certificate, refusing a broken seal, unknown fields and wrong types."""
        names = {name.name for name in fields(Certificate)}
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise BadInput(f"certificate.json is not a certificate of the format {FORMAT}")
        if set(data) | {"run_error"} != names | {"format", "sha256"}:
            raise BadInput("certificate.json lacks a field or has an unknown one")
        if data["sha256"] != digest(canonical({k: v for k, v in data.items() if k != "sha256"})):
            raise BadInput("certificate.json was changed after it was sealed: its hash does not match")
        values = {name: data[name] for name in names if name in data}
        values["outcome"] = _outcome(data["outcome"])
        values["witness"] = None if data["witness"] is None else Witness.from_json(data["witness"])
        values["proof"] = None if data["proof"] is None else tree.from_json(data["proof"])
        odd = [name for name, types in _TYPES.items() if name in data and type(data[name]) not in types]
        if odd:
            raise BadInput(f"the field {odd[0]} of certificate.json has the wrong type")
        values["assumptions"] = tuple(data["assumptions"])
        return Certificate(**values)


_TYPES = {
    **dict.fromkeys(("epsilon", "method", "reason", "run_error"), (str,)),
    **dict.fromkeys(("upper", "lower", "apriori"), (str, type(None))),
    **dict.fromkeys(("seals", "versions", "seconds"), (dict,)),
    "level": (int,),
    "assumptions": (list,),
}


def _outcome(text: Any) -> Outcome:
    try:
        return Outcome(text)
    except (ValueError, TypeError):
        raise BadInput(f"certificate.json claims the unknown outcome {str(text)[:40]!r}") from None
