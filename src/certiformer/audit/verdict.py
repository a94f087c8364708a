"""What a theorem says about a checkpoint, as data.

| verdict | meaning |
|---|---|
| `holds` | every assumption was found in the files; the number is a fact about this model |
| `holds-if` | it needs what no file says: `needs` lists it |
| `false` | what is asked fails for every choice of weights, by the theorem that the sentence names |
| `open` | neither proved nor refuted for such a model; the sentence says what is in the way |
| `does-not-apply` | an assumption fails, and the sentence names it |
| `vacuous` | it holds, and says no more than was known before: the number is not below the trivial one |
"""

from __future__ import annotations

from dataclasses import dataclass, field

VERDICTS = ("holds", "false", "holds-if", "open", "does-not-apply", "vacuous")


@dataclass(frozen=True)
class Given:
    """What the user knows and no file says; None where it is not known.

    `samples` independent sequences of `length` tokens, or `tokens` of one stream; losses in [0, `largest_loss`]; `loss` the
    mean loss on the sample; probability of failure `delta`; `radius` of the tokens where no norm bounds them; `bits` of a
    compressed file; `rho` the mixing rate of one path.
    """

    samples: int | None = None
    tokens: int | None = None
    length: int | None = None
    loss: float | None = None
    largest_loss: float = 1.0
    delta: float = 0.05
    radius: float | None = None
    bits: int | None = None
    rho: float | None = None


@dataclass(frozen=True)
class Factor:
    """One factor or summand of a bound, for the picture that shows what makes it large.

    `log10` where the value itself may be above all floats; `mend` says what would make it smaller.
    """

    name: str
    value: float
    log10: float | None = None
    mend: str = ""


@dataclass(frozen=True)
class Verdict:
    """One line of the audit; `value` and `trivial` in the unit that `sentence` names."""

    id: str
    verdict: str
    sentence: str
    value: float | None = None
    trivial: float | None = None
    needs: tuple[str, ...] = ()
    factors: tuple[Factor, ...] = ()
    as_printed: float | None = None
    details: dict[str, object] = field(default_factory=dict)


def judged(name: str, value: float, trivial: float, sentence: str, **more: object) -> Verdict:
    """`holds` where the number is below the trivial one, else `vacuous` with both."""
    if value < trivial:
        return Verdict(name, "holds", f"{sentence} {value:.4g} (trivial: {trivial:.4g}).", value, trivial, **more)  # type: ignore[arg-type]
    text = f"vacuous: {value:.2g} against a trivial {trivial:.3g}. {sentence} {value:.4g}."
    return Verdict(name, "vacuous", text, value, trivial, **more)  # type: ignore[arg-type]
