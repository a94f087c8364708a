"""`Artifact`: a transformer, the claim about it, and the certificate of that claim; the same for every kind of target.

An artifact holds the bytes of its files, which is what its certificate speaks of. What needs JAX (`model`, `run`,
`evaluate`) loads it on first use; `claim`, `check`, `save` and `show` do without.
"""

from __future__ import annotations

import html
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from certiformer.arguments import in_python
from certiformer.artifact.folder import write_folder
from certiformer.errors import BadInput
from certiformer.kernel.certificate import Certificate, Outcome, rules_used
from certiformer.kernel.files import CERTIFICATE, CONFIG, MODEL, digest, parse_json
from certiformer.report.wording import rests_on, verdict

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import ArrayLike, Float, Num

    from certiformer.kernel.check import Verdict
    from certiformer.model import Transformer


class Subject(Protocol):
    """What a claim is about: a function, a program, a machine, ... with how that kind reads an input and answers."""

    @property
    def model(self) -> Transformer | None:
        """The transformer; None when none could be made."""
        ...

    @property
    def not_claimed(self) -> tuple[str, ...]:
        """What a reader might wrongly infer from the claim, one sentence each."""
        ...

    def claim(self, certificate: Certificate) -> str:
        """The claim in one sentence."""
        ...

    def answers(self, sequence: Any, **options: Any) -> list[Any]:
        """What the transformer says to one input."""
        ...

    def facts(self, artifact: Artifact) -> dict[str, Any]:
        """The facts of this kind as JSON data: sizes and what they depend on."""
        ...

    def lines(self, facts: dict[str, Any], said: str) -> list[tuple[str, str]]:
        """These facts for a reader, with a label each; `said` stands before what is claimed and not checked."""
        ...

    def page(self, artifact: Artifact) -> str:
        """A whole HTML page about the artifact, empty where there is none."""
        ...


@dataclass(eq=False, repr=False)
class Artifact:
    """A transformer with its claim: what `build`, `prove`, `compile` and `load` return.

    **Arguments:**

    - `subject`: what the claim is about, for instance the target on its box, or the program.
    - `certificate`: the claim in numbers, its proof, and the hashes of the files that it is about.
    - `files`: the files of the run folder by name, all but `certificate.json`; empty when there is no transformer.
    - `name`: for sentences and folders.
    - `directory`: the run folder; None for an artifact that was kept in memory only.
    - `notes`: sentences about how it was made, which the folder does not keep.
    - `candidates`: the constructions that `build` compared, as rows of a table.
    - `recorded`: whether it was read from a folder, whose claims are repeated here and not checked.

    >>> import certiformer
    >>> artifact = certiformer.compile("reverse", length=4)
    >>> artifact.certified, artifact.check().accepted, artifact.run("abca")
    (True, True, ['a', 'c', 'b', 'a'])
    >>> print(artifact.claim)
    For every input of 1 to 4 tokens of a vocabulary of 3 ...
    """

    subject: Any  # a `Subject`; its class says what else can be asked
    certificate: Certificate
    files: Mapping[str, bytes]
    name: str = "run"
    directory: Path | None = None
    notes: tuple[str, ...] = ()
    candidates: list[dict[str, Any]] = field(default_factory=list)
    recorded: bool = False

    @property
    def model(self) -> Transformer | None:
        """The transformer; None when none could be made, which the certificate explains."""
        return self.subject.model

    @property
    def claim(self) -> str:
        """What is claimed, in one sentence; `outcome` says what became of it."""
        return self.subject.claim(self.certificate)

    @property
    def outcome(self) -> Outcome:
        """Proved, refuted, undecided or invalid."""
        return self.certificate.outcome

    @property
    def level(self) -> int:
        """2 when the checker accepted, 1 for a float64 search alone, 0 when nothing is proved."""
        return self.certificate.level

    @property
    def certified(self) -> bool:
        """Whether the claim is proved and the checker accepted the proof here; of a folder only `check` can say that."""
        return self.outcome is Outcome.PROVED and self.level == 2 and not self.recorded

    @property
    def word(self) -> str:
        """What became of the claim in one word; *certified* only if the checker accepted here."""
        return verdict(self.outcome.value, self.level, checked=not self.recorded)

    @property
    def upper(self) -> float | None:
        """The upper end of the bracket of the largest error, proved, or recorded in the folder that was read."""
        return None if self.certificate.upper is None else float(self.certificate.upper)

    @property
    def lower(self) -> float | None:
        """The lower end of the bracket, proved or recorded."""
        return None if self.certificate.lower is None else float(self.certificate.lower)

    @property
    def dtype(self) -> str | None:
        """The type of the stored weights; None when there is no transformer."""
        return parse_json(self.files[CONFIG], CONFIG)["dtype"] if CONFIG in self.files else None

    def check(self, *, workers: int | None = None) -> Verdict:
        """Ask the checker about the files of this artifact, as `certiformer.check` does; the verdict has `accepted`.

        **Arguments:**

        - `workers`: how many processes share the boxes (default: one for each core).
        """
        from certiformer.kernel.check import check_files

        return check_files(self.all_files(), workers=workers)

    @in_python
    def run(self, sequence: Any, **options: Any) -> list[Any]:
        """What the transformer answers to one input, as a list.

        **Arguments:**

        - `sequence`: the numbers of a point for a function; tokens for a program; a word for an automaton (answered by
          the states after each symbol) or a machine (by its tape); bits for a circuit; queries for a learner.
        - `options`: `steps` of a machine (default 1000), `context=(x, y)` of a learner: the rows to learn from.
        """
        self._require_files()
        return self.subject.answers(sequence, **options)

    @in_python
    def run_many(self, sequences: Sequence[Any], **options: Any) -> list[list[Any]]:
        """What the transformer answers to several inputs, a list each; those of a program run together.

        **Arguments:**

        - `sequences`: inputs as `run` takes them, of any lengths.
        - `options`: as for `run`, the same for all.

        >>> import certiformer
        >>> certiformer.compile("reverse", length=4).run_many(["abc", "ba"])
        [['c', 'b', 'a'], ['a', 'b']]
        """
        self._require_files()
        together = getattr(self.subject, "many_answers", None)
        if together is not None:
            return together(sequences, **options)
        return [self.subject.answers(sequence, **options) for sequence in sequences]

    @in_python
    def evaluate(self, points: Num[ArrayLike, "points inputs"]) -> Float[np.ndarray, "points outputs"]:
        """The outputs of the transformer, undecoded.

        **Arguments:**

        - `points`: a row of numbers, or of token ids, for each input; shape (points, inputs).
        """
        return self._require_model().evaluate(points)

    @in_python
    def save(self, out: str | Path, *, force: bool = False, extra: Mapping[str, bytes] | None = None) -> Path:
        """Write the run folder that `certiformer check` reads: complete or not at all.

        **Arguments:**

        - `out`: the folder.
        - `force`: whether it may replace an earlier folder of the same kind.
        - `extra`: drawings to put beside, by file name.
        """
        return self.write(out, force=force, extra=extra)

    def write(self, out: str | Path, *, force: bool = False, extra: Mapping[str, bytes] | None = None) -> Path:
        """`save` for the command line, whose errors speak of flags."""
        self._require_files()
        self.directory = write_folder(out, self.certificate.subject, {**self.all_files(), **(extra or {})}, force)
        return self.directory

    @in_python
    def export(self, to: str, *, out: str | Path | None = None, force: bool = False) -> list[Path]:
        """Write the transformer for another program, with the claim beside it; returns the files.

        **Arguments:**

        - `to`: `onnx`, `torch`, `hf`, `transformerlens`, `gpt2`, `llama` or `phi3`.
        - `out`: where to write (default: beside the run folder, as `NAME.onnx`, `NAME-torch`, ...).
        - `force`: whether it may replace an earlier export.
        """
        from certiformer.artifact.export import export

        return export(self, to, out=out, force=force).files

    def summary(self) -> dict[str, Any]:
        """The facts of the artifact as JSON data."""
        certificate = self.certificate
        return {
            "outcome": certificate.outcome.value,
            "level": certificate.level,
            "word": self.word,
            "sentence": self.claim,
            "reason": certificate.reason,
            "rules": [] if certificate.proof is None else rules_used(certificate.proof),
            "dtype": self.dtype,
            **self.subject.facts(self),
            "not_claimed": list(self.subject.not_claimed),
            "notes": list(self.notes),
            "seconds": round(sum(certificate.seconds.values()), 3),
            "versions": dict(certificate.versions),
            "directory": None if self.directory is None else str(self.directory),
        }

    def lines(self) -> list[tuple[str, str]]:
        """What `show` says, line by line with a label each."""
        certificate, facts = self.certificate, self.summary()
        begin = [("certified" if self.certified else "claim", self.claim)]
        if not self.certified:
            level = f" at level {certificate.level}" if certificate.outcome is Outcome.PROVED else ""
            reason = f": {certificate.reason}" if certificate.reason else ""
            said = " (recorded, not checked)" if self.recorded else ""
            begin.append(
                ("recorded" if self.recorded else "outcome", f"{certificate.outcome.value}{level}{reason}{said}")
            )
        said = "claimed, not checked: " if self.recorded else ""
        leaves = f" ({facts['leaves']:,} leaves)" if facts.get("leaves") else ""
        believed = rests_on(facts["rules"], runs=facts.get("run_error") is not None)
        proof = f"{said}{believed}, by {', then '.join(facts['rules'])}{leaves}"
        about = [("rests on", proof if facts["rules"] else "no proof")]
        about += self.subject.lines(facts, said) if self.files else []
        marks = ["not said", *[""] * len(facts["not_claimed"])]
        return [*begin, *about, *zip(marks, facts["not_claimed"], strict=False)]

    def show(self) -> None:
        """Print what is claimed, what became of it, and what is not claimed: the lines of `certiformer show`."""
        for label, text in self.lines():
            print(f"{label:<10} {text}")

    def latex(self) -> str:
        """A paragraph for a paper: the claim, what became of it, and the hashes by which a reader recognises the files.

        >>> import certiformer
        >>> print(certiformer.compile("reverse", length=3).latex())
        Certified, by certiformer ...: For every input of 1 to 3 tokens of a vocabulary of 3 ...
        SHA-256 of the weights: \\texttt{...}, of the certificate: \\texttt{...}.
        ...
        """
        from certiformer.report.rates_tables import latex

        certificate, version = self.certificate, self.certificate.versions.get("certiformer", "")
        word = self.word[:1].upper() + self.word[1:]
        reason = f" ({certificate.reason})" if certificate.reason and not self.certified else ""
        said = latex(f"{word}{reason}, by certiformer {version}".rstrip())
        hashed = [("the weights", self.files.get(MODEL)), ("the certificate", certificate.to_bytes())]
        groups = [(name, r"\allowbreak ".join(textwrap.wrap(digest(data), 16))) for name, data in hashed if data]
        seals = ", ".join(f"of {name}: \\texttt{{{seal}}}" for name, seal in groups)
        paragraph = [f"{said}: {latex(self.claim)}", f"SHA-256 {seals}."]
        return "\n".join([*paragraph, *(latex(sentence) for sentence in self.subject.not_claimed)])

    def page(self) -> str:
        """A page of its own with pictures, as HTML; empty for the kinds that have none."""
        return self.subject.page(self) if self.files else ""

    def __repr__(self) -> str:
        facts = self.summary()
        size = f"; {facts['nonzero']:,} nonzero weights" if facts.get("nonzero") is not None else ""
        reason = f" ({self.certificate.reason})" if self.certificate.reason and not self.certified else ""
        return f"Artifact({self.word}{reason}: {self.claim}{size})"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{html.escape(label)}</th><td style='text-align:left'>{html.escape(text)}</td></tr>"
            for label, text in self.lines()
        )
        page = self.page()  # a document of its own: its styles must not meet those of a notebook
        drawn = (
            f'<iframe srcdoc="{html.escape(page)}" style="width:100%;height:32em;border:0"></iframe>' if page else ""
        )
        return f"<table>{rows}</table>{drawn}"

    def all_files(self) -> dict[str, bytes]:
        """Every file of the run folder by name, `certificate.json` among them."""
        return {**self.files, CERTIFICATE: self.certificate.to_bytes()}

    def _require_files(self) -> None:
        if MODEL not in self.files:
            raise BadInput(f"there is no transformer: {self.certificate.reason}")

    def _require_model(self) -> Transformer:
        self._require_files()
        model = self.model
        if model is None:
            raise BadInput("the files hold no transformer")
        return model
