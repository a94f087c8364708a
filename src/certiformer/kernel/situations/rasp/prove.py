"""`prove_program`: does a compiled transformer compute its program, for every input?

The statement and its proof are in the docstring of the package. Here the files are read, the parts of a configuration that
the rule knows are checked, and the sub-layers are walked through twice: in real arithmetic, and as a run in a dtype.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from certiformer.kernel import Refused
from certiformer.kernel.balls import working_precision
from certiformer.kernel.certificate import Outcome, Situations
from certiformer.kernel.check import Verdict, claims_nothing, nothing_claimed, require_absent
from certiformer.kernel.claim import ProgramClaim
from certiformer.kernel.meanings.rasp import Program
from certiformer.kernel.rounding import FORMATS
from certiformer.kernel.situations.cells import Tally
from certiformer.kernel.situations.numbers import Run
from certiformer.kernel.situations.rasp.circuit import Circuit
from certiformer.kernel.situations.rasp.extension import needs_whole_length, read_programs
from certiformer.kernel.situations.rasp.fixed import Arithmetic
from certiformer.kernel.situations.rasp.identities import verify_identities
from certiformer.kernel.situations.rasp.readout import Decoding
from certiformer.kernel.situations.rasp.variables import Variables
from certiformer.kernel.situations.rasp.walk import Walk
from certiformer.kernel.situations.walk import Weights, require_form
from certiformer.kernel.weights import Tensor


@dataclass(frozen=True)
class Findings:
    """What one pass found, largest and smallest numbers with their places.

    `errors`: for every sub-layer the largest error of a cell, and which; `gap`: the smallest distance of the scores that
    must differ, in nats; `decoding`: what is left of the room between two answers.
    """

    arithmetic: str
    errors: tuple[tuple[str, float, str], ...]
    gap: float | None
    gap_at: str
    decoding: Decoding

    def __str__(self) -> str:
        d = self.decoding
        used = 100 * (1 - d.share)
        most = "less than 0.01" if used < 0.0099 else f"about {used:.2g}"
        return (
            f"in {self.arithmetic} errors use up {most}% of the room between two answers (where {d.name} is {d.value})"
        )


@dataclass(frozen=True)
class ProgramReport:
    """A proof: the decoded output is the program's on every input on which it has a value. `tally`: the cases behind it."""

    program: Program
    dtype: str
    real: Findings
    run: Findings
    tally: Tally

    @property
    def cases(self) -> int:
        """How many cases of what is read together were checked."""
        return self.tally.checked

    @property
    def reason(self) -> str:
        """Over how many cases, and where errors come closest to a mistake."""
        gap = (
            f"; scores that must differ do so by about {self.run.gap:.4g} in {self.run.gap_at}" if self.run.gap else ""
        )
        return f"{self.cases:,} cases were checked; {self.run}{gap}"

    @property
    def sentence(self) -> str:
        """The claim in plain words."""
        return claim_of(self.program, self.dtype)


def decide(claim: ProgramClaim) -> Verdict:
    """The verdict on a folder whose certificate states that its outputs are exact, and nothing else."""
    certificate = claim.certificate
    require_absent(certificate, "lower", "witness", "apriori", "run_error")
    if certificate.epsilon != "0":
        raise Refused("a compiled program is claimed to be exact, and its certificate states another epsilon")
    if claims_nothing(certificate):
        require_absent(certificate, "proof")
        return Verdict("undecided", 0, None, None, nothing_claimed(certificate), "")
    if certificate.outcome is not Outcome.PROVED:
        raise Refused("a compiled program is proved or not; no folder refutes it")
    if certificate.proof != Situations("0") or certificate.upper != "0":
        raise Refused("a compiled program is claimed to be exact (epsilon 0), and proved by the rule situations")
    report = prove_program(claim.config, claim.tensors, claim.program, claim.circuit)
    steps = {"cases": report.tally.checked}
    return Verdict("proved", 2, "0", None, report.reason, report.sentence, proof=certificate.proof, steps=steps)


def claim_of(program: Program, dtype: str) -> str:
    """The claim in one plain sentence."""
    lengths = f"exactly {program.length}" if needs_whole_length(program) else f"1 to {program.length}"
    inputs = (
        f"For every input of {lengths} tokens of a vocabulary of {len(program.vocab)} on which the program has a value"
    )
    return f"{inputs}, the decoded output equals it at every position, in real arithmetic and in a run in {dtype}."


def prove_program(
    config: dict[str, Any],
    tensors: Mapping[str, Tensor],
    program_text: str | bytes,
    circuit_text: str | bytes,
    dtype: str | None = None,
) -> ProgramReport:
    """Prove that the transformer computes the program, or raise `Refused` (or `BadInput` for files that are none).

    `config` must have passed `kernel.weights`. `dtype`: another one than the stored one is possible when it holds
    every weight exactly.
    """
    working_precision()
    name = config["dtype"] if dtype is None else dtype
    if name not in FORMATS:
        raise Refused(f"the dtype {name!r} is none of {', '.join(FORMATS)}")
    circuit = Circuit.from_text(circuit_text)
    programs = read_programs(program_text, circuit)
    program, variables = programs.program, programs.variables
    _require_form(config, program)
    try:
        real, run = _passes(config, tensors, circuit, variables, name)
    except RecursionError:
        raise Refused("the program is nested too deeply to be followed") from None
    return ProgramReport(program, name, real, run, variables.tally)


def _passes(
    config: dict[str, Any], tensors: Mapping[str, Tensor], circuit: Circuit, variables: Variables, name: str
) -> list[Findings]:
    """Real arithmetic, then the run."""
    verify_identities(variables, circuit.identities)
    weights, known = Weights(tensors, Run(name)), {}
    found = []
    for arithmetic in (Arithmetic(None), Arithmetic(name)):
        walk = Walk(arithmetic, variables, circuit, config, weights, known)
        decoding = walk.run()
        gap, where = min(walk.gaps, default=(None, ""), key=lambda pair: pair[0])
        found.append(Findings(arithmetic.name, tuple(walk.errors), gap, where, decoding))
    return found


def _require_form(config: dict[str, Any], program: Program) -> None:
    read = config["input"]
    if (read["kind"], read["tokens"], read.get("vocabulary")) != ("ids", program.length, len(program.vocab)):
        raise Refused("the transformer does not read the tokens of the program, one id for each of its vocabulary")
    if config["loops"] != 1:
        raise Refused("a compiled transformer has one loop")
    require_form(config, 1)
