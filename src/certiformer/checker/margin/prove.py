"""`prove_margin`: does a compiled transformer compute its program, for every input?

The statement and its proof are in `checker.rules.margin`. Here the files are read, the parts of a configuration that the
rule knows are checked, and the sub-layers are walked through twice: in real arithmetic, and as a run in a dtype.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from certiformer.checker.balls import working_precision
from certiformer.checker.margin.fixed import Arithmetic
from certiformer.checker.margin.identities import verify_identities
from certiformer.checker.margin.readout import Margin
from certiformer.checker.margin.variables import Variables
from certiformer.checker.margin.walk import Walk
from certiformer.checker.margin.weight_rows import Weights
from certiformer.checker.rounding import FORMATS
from certiformer.checker.rules.refusal import Refused
from certiformer.checker.weights import Tensor
from certiformer.rasp.circuit import Circuit
from certiformer.rasp.facts import selects_one_value
from certiformer.rasp.graph import Graph, Node, node_key
from certiformer.rasp.graph_file import graph_from_text
from certiformer.rasp.value import is_number


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
        gap = "" if self.gap is None else f", smallest gap of scores {self.gap:.4g} at {self.gap_at}"
        m = self.margin
        return f"in {self.arithmetic} margin {m.left:.4g} of {m.room:.4g} at {m.where}{gap}"


@dataclass(frozen=True)
class MarginReport:
    """A proof: the decoded output is the program's for every input of 1 to `length` tokens out of `vocabulary`."""

    length: int
    vocabulary: int
    dtype: str
    real: Findings
    run: Findings

    @property
    def reason(self) -> str:
        """The smallest margins and where they are."""
        return f"{self.real}; {self.run}"

    @property
    def sentence(self) -> str:
        """The claim in plain words."""
        return claim_of(self.length, self.vocabulary, self.dtype)


def claim_of(length: int, vocabulary: int, dtype: str) -> str:
    """The claim in one plain sentence."""
    inputs = f"For every input of 1 to {length} tokens of a vocabulary of {vocabulary} on which the program has a value"
    return f"{inputs}, the decoded output equals it at every position, in real arithmetic and in a run in {dtype}."


def prove_margin(
    config: dict[str, Any],
    tensors: Mapping[str, Tensor],
    program_text: str | bytes,
    circuit_text: str | bytes,
    dtype: str | None = None,
) -> MarginReport:
    """Prove that the transformer computes the program, or raise `Refused` (or `BadInput` for files that are none).

    `config` must have passed `checker.configuration`. `dtype`: another one than the stored one is possible when it holds
    every weight exactly.
    """
    working_precision()
    name = config["dtype"] if dtype is None else dtype
    if name not in FORMATS:
        raise Refused(f"the dtype {name!r} is none of {', '.join(FORMATS)}")
    program, circuit = graph_from_text(program_text), Circuit.from_text(circuit_text)
    extended = graph_from_text(circuit.extended)
    _require_extension(program, extended)
    _require_form(config, program)
    _require_numbers(tensors, name)
    try:
        found = _passes(config, tensors, circuit, extended, name)
    except RecursionError:
        raise Refused("the program is nested too deeply to be followed") from None
    return MarginReport(program.length, len(program.vocab), name, *found)


def _passes(
    config: dict[str, Any], tensors: Mapping[str, Tensor], circuit: Circuit, extended: Graph, name: str
) -> list[Findings]:
    """Real arithmetic, then the run."""
    variables = Variables(extended)
    verify_identities(variables, circuit.identities)
    weights, known = Weights(tensors), {}
    found = []
    for arithmetic in (Arithmetic(None), Arithmetic(name)):
        walk = Walk(arithmetic, variables, circuit, config, weights, known)
        margin = walk.run()
        gap, where = min(walk.gaps, default=(None, ""), key=lambda pair: pair[0])
        found.append(Findings(arithmetic.name, tuple(walk.errors), gap, where, margin))
    return found


def _require_extension(program: Graph, extended: Graph) -> None:
    """The circuit's program begins with the nodes of the program itself, and has its inputs and output."""
    count = len(program.nodes)
    keys = [[(node_key(node), node.values) for node in graph.nodes[:count]] for graph in (program, extended)]
    if keys[0] != keys[1]:
        raise Refused("the circuit speaks of another program than program.json")
    for number, node in enumerate(extended.nodes[count:], count):
        # A node that has no value on some input would say nothing about the inputs on which the program has one.
        checks_length = node.kind in ("written", "pattern") and node.constant[0]
        if checks_length or (node.kind == "aggregate" and not _has_means(extended, node)):
            raise Refused(f"node {number} of the circuit may have no value where the program has one")
    same = (program.output, program.length) == (extended.output, extended.length)
    if not same or Graph((), 0, program.vocab, 1) != Graph((), 0, extended.vocab, 1):
        raise Refused("the circuit has another output, length or vocabulary than program.json")


def _has_means(graph: Graph, node: Node) -> bool:
    """Whether an aggregate has a value on every input: of numbers, or of one value."""
    values = graph.nodes[node.inputs[1]].values
    numbers = values is not None and (values.values is None or all(map(is_number, values.values)))
    return numbers or selects_one_value(graph.nodes, graph.nodes[node.inputs[0]], node.inputs[1])


_ATTENTION = {"kind": "softmax", "score_bias": "none", "residual": True}


def _require_form(config: dict[str, Any], program: Graph) -> None:
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
