"""`prove_margin`: does a compiled transformer compute its program, for every input?

The statement and its proof are in `axioms.margin`. Here the files are read, the parts of a configuration that the
rule knows are checked, and the sub-layers are walked through twice: in real arithmetic, and as a run in a dtype.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from certiformer.checker.margin.circuit import Circuit
from certiformer.checker.margin.fixed import Arithmetic
from certiformer.checker.margin.identities import verify_identities
from certiformer.checker.margin.programs import needs_whole_length, read_programs
from certiformer.checker.margin.readout import Margin
from certiformer.checker.margin.tally import Tally
from certiformer.checker.margin.variables import Variables
from certiformer.checker.margin.walk import Walk
from certiformer.checker.margin.weight_rows import Weights
from certiformer.kernel.balls import working_precision
from certiformer.kernel.meanings.rasp import Program
from certiformer.kernel.refusal import Refused
from certiformer.kernel.rounding import FORMATS
from certiformer.kernel.weights import Tensor


@dataclass(frozen=True)
class Findings:
    """What one pass found, largest and smallest numbers with their places.

    `errors`: for every sub-layer the largest error of a cell, and which; `gap`: the smallest distance of the scores that
    must differ, in nats; `margin`: what is left for decoding.
    """

    arithmetic: str
    errors: tuple[tuple[str, float, str], ...]
    gap: float | None
    gap_at: str
    margin: Margin

    def __str__(self) -> str:
        gap = "" if self.gap is None else f", smallest gap of scores about {self.gap:.4g} at {self.gap_at}"
        m = self.margin
        return f"in {self.arithmetic} margin about {m.left:.4g} of about {m.room:.4g} at {m.where}{gap}"


@dataclass(frozen=True)
class MarginReport:
    """A proof: the decoded output is the program's on every input on which it has a value. `tally`: the cases behind it."""

    program: Program
    dtype: str
    real: Findings
    run: Findings
    tally: Tally

    @property
    def reason(self) -> str:
        """The smallest margins and where they are."""
        return f"{self.real}; {self.run}"

    @property
    def sentence(self) -> str:
        """The claim in plain words."""
        return claim_of(self.program, self.dtype)


def claim_of(program: Program, dtype: str) -> str:
    """The claim in one plain sentence."""
    lengths = f"exactly {program.length}" if needs_whole_length(program) else f"1 to {program.length}"
    inputs = (
        f"For every input of {lengths} tokens of a vocabulary of {len(program.vocab)} on which the program has a value"
    )
    return f"{inputs}, the decoded output equals it at every position, in real arithmetic and in a run in {dtype}."


def prove_margin(
    config: dict[str, Any],
    tensors: Mapping[str, Tensor],
    program_text: str | bytes,
    circuit_text: str | bytes,
    dtype: str | None = None,
) -> MarginReport:
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
    _require_numbers(tensors, name)
    try:
        real, run = _passes(config, tensors, circuit, variables, name)
    except RecursionError:
        raise Refused("the program is nested too deeply to be followed") from None
    return MarginReport(program, name, real, run, variables.tally)


def _passes(
    config: dict[str, Any], tensors: Mapping[str, Tensor], circuit: Circuit, variables: Variables, name: str
) -> list[Findings]:
    """Real arithmetic, then the run."""
    verify_identities(variables, circuit.identities)
    weights, known = Weights(tensors), {}
    found = []
    for arithmetic in (Arithmetic(None), Arithmetic(name)):
        walk = Walk(arithmetic, variables, circuit, config, weights, known)
        margin = walk.run()
        gap, where = min(walk.gaps, default=(None, ""), key=lambda pair: pair[0])
        found.append(Findings(arithmetic.name, tuple(walk.errors), gap, where, margin))
    return found


_ATTENTION = {"kind": "softmax", "score_bias": "none", "residual": True}


def _require_form(config: dict[str, Any], program: Program) -> None:
    read = config["input"]
    if (read["kind"], read["tokens"], read.get("vocabulary")) != ("ids", program.length, len(program.vocab)):
        raise Refused("the transformer does not read the tokens of the program, one id for each of its vocabulary")
    if (config["registers"], config["loops"]) != (1, 1):
        raise Refused("a compiled transformer has one register, the beginning of the sequence, and one loop")
    if (config["code"]["kind"], config["readout"]["kind"]) != ("table", "all"):
        raise Refused("a compiled transformer has a table of position codes and reads out every position")
    for b, block in enumerate(config["blocks"]):
        attention, ffn = block["attention"], block["ffn"]
        if block["norm"] is not None or (ffn and (ffn["kind"], ffn["residual"]) != ("relu", True)):
            raise Refused(f"block {b} has a norm, or a feed-forward part that is not relu with a residual")
        if attention and (any(attention[k] != x for k, x in _ATTENTION.items()) or attention["mask"] == "table"):
            raise Refused(f"the attention of block {b} is not plain softmax with a residual")
        for group in attention["heads"] if attention else ():
            if attention["scale"] != "unit" and group["key"] not in (4**i for i in range(16)):
                raise Refused(f"the scores of block {b} are divided by a root that is no power of two")


def _require_numbers(tensors: Mapping[str, Tensor], dtype: str) -> None:
    """Every weight must be finite and a number of the dtype."""
    form = FORMATS[dtype]
    for name, tensor in tensors.items():
        for x in tensor.data:
            if not abs(x) < float("inf"):
                raise Refused(f"{name} holds {x!r}, which is not a finite number")
            odd = abs(x.as_integer_ratio()[0])
            while odd and not odd & 1:
                odd >>= 1
            if odd.bit_length() > form.precision or abs(x) > float(form.largest):
                raise Refused(f"{name} holds {x!r}, which is no number of {dtype}")
