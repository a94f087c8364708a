"""`TokenProgram`: the subject of a claim about a program: its graph, its circuit, and how tokens are read and answered.

It is held as the bytes of its files, which is what the certificate speaks of. What needs JAX (`model`, `run`, `trace`)
loads it on first use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from certiformer.compiler.programs.bill import Bill, bill_of
from certiformer.kernel.certificate import Certificate
from certiformer.kernel.files import BASIS, CIRCUIT, CONFIG, MODEL, PROGRAM, parse_json
from certiformer.kernel.situations.rasp.circuit import Circuit
from certiformer.model.config import Config
from certiformer.rasp.graph import Graph
from certiformer.rasp.graph_file import graph_from_text
from certiformer.rasp.interpreter import read_tokens
from certiformer.rasp.value import Value, identity, plain

if TYPE_CHECKING:
    import numpy as np

    from certiformer.artifact import Artifact
    from certiformer.compiler.programs.trace import Trace
    from certiformer.compiler.realistic.basis import Basis
    from certiformer.model import Transformer


NOT_CLAIMED = (
    "Other inputs: longer ones, and tokens outside of the vocabulary.",
    "What you meant: the proof is about the recorded program, not about the Python that made it.",
    "Other engines: a run counts when it keeps the rules of float semantics (docs); not every engine was tried.",
    "Who made the files: the hashes show accidents; anyone can make a consistent folder.",
)


class TokenProgram:
    """A program in the weights of a transformer, by the files of its folder.

    `run(tokens)` gives the decoded outputs, `circuit` is the ground truth, `bill` the size, `trace` the debugger.
    """

    def __init__(self, files: Mapping[str, bytes], graph: Graph | None = None, circuit: Circuit | None = None):
        self.files, self._graph, self._circuit = files, graph, circuit

    @cached_property
    def graph(self) -> Graph:
        """The program as a typed graph."""
        return self._graph or graph_from_text(self.files[PROGRAM])

    @cached_property
    def circuit(self) -> Circuit:
        """What every coordinate, head and hidden unit computes."""
        return self._circuit or Circuit.from_text(self.files[CIRCUIT])

    @cached_property
    def config(self) -> Config:
        """What the transformer is made of."""
        return Config.from_json(parse_json(self.files[CONFIG], CONFIG))

    @cached_property
    def bill(self) -> Bill:
        """How large the transformer is, and which expressions cause that."""
        return bill_of(self.config, self.circuit)

    @cached_property
    def model(self) -> Transformer:
        """The transformer, in JAX."""
        from certiformer.model import from_bytes

        return from_bytes(self.files[CONFIG], self.files[MODEL])

    @property
    def vocab(self) -> tuple[Value, ...]:
        return self.graph.vocab

    @property
    def length(self) -> int:
        """The largest number of tokens, the beginning-of-sequence token not counted."""
        return self.graph.length

    @property
    def dtype(self) -> str:
        return self.config.dtype

    def run(self, tokens: Sequence[Value]) -> list[Any]:
        """The decoded outputs of the transformer, one for every token; None where the program is undefined.

        Fractions are the nearest floats, as they are when a program is called on a list. A token outside of the vocabulary
        and an input that is too long are refused.
        """
        return [plain(value) for value in self.run_exactly(tokens)]

    def run_exactly(self, tokens: Sequence[Value]) -> list[Value]:
        """`run` with fractions as they are."""
        return self._decoded([tokens])[0]

    def _decoded(self, sequences: Sequence[Sequence[Value]]) -> list[list[Value]]:
        """The exact values for several inputs, which run together."""
        from certiformer.compiler.programs.decode import Decoder

        inputs = [read_tokens(tokens, self.vocab, self.length) for tokens in sequences]
        read = iter(self.model.evaluate_sequences([self._ids(xs) for xs in inputs if xs], dtype=self.dtype))
        decoder = Decoder(self.graph, self.circuit)
        return [decoder.decode(next(read)) if xs else [] for xs in inputs]

    def trace(self, tokens: Sequence[Value], *, everywhere: bool = False) -> Trace:
        """What every residual variable holds on an input, beside what the program says."""
        from certiformer.compiler.programs.trace import trace

        xs = read_tokens(tokens, self.vocab, self.length)
        return trace(self.model, self.extended, self.circuit, xs, everywhere=everywhere, basis=self.basis)

    @cached_property
    def basis(self) -> Basis | None:
        """For realistic weights, which directions of the stream the coordinates of the circuit are."""
        from certiformer.compiler.realistic.basis import Basis

        return Basis.from_bytes(self.files[BASIS]) if BASIS in self.files else None

    def attention_weights(self, tokens: Sequence[Value]) -> list[np.ndarray]:
        """For every head of `circuit.heads` its attention on an input: row = query, column = key, the start token first."""
        xs = read_tokens(tokens, self.vocab, self.length)
        blocks = [index for index, block in enumerate(self.config.blocks) if block.attention is not None]
        groups = dict(zip(blocks, self.model.attention_weights(self._ids(xs)), strict=True))
        return [groups[head.block][head.group][head.head] for head in self.circuit.heads]

    @cached_property
    def extended(self) -> Graph:
        """The program with the nodes that only the transformer has after its own."""
        return graph_from_text(self.circuit.extended)

    @property
    def not_claimed(self) -> tuple[str, ...]:
        return NOT_CLAIMED

    def claim(self, certificate: Certificate) -> str:
        """The claim in one sentence, as the checker says it."""
        from certiformer.kernel.meanings.rasp import read_program
        from certiformer.kernel.situations.rasp.prove import claim_of

        return claim_of(read_program(self.files[PROGRAM]), self.dtype)

    def answers(self, sequence: Sequence[Value]) -> list[Any]:
        """The decoded outputs, one for every token."""
        return self.run(sequence)

    def many_answers(self, sequences: Sequence[Sequence[Value]]) -> list[list[Any]]:
        """The decoded outputs of several inputs, which run together."""
        return [[plain(value) for value in values] for values in self._decoded(sequences)]

    def facts(self, artifact: Artifact) -> dict[str, Any]:
        bill = self.bill
        return {
            "name": artifact.name,
            "vocab": [str(token) for token in self.vocab],
            "length": self.length,
            "causal": self.circuit.causal,
            "layers": bill.layers,
            "width": bill.width,
            "heads": bill.heads,
            "units": bill.units,
            "parameters": bill.parameters,
            "bytes": bill.bytes,
            "causes": dict(bill.causes[:10]),
            "program": str(self.graph),
        }

    def lines(self, facts: dict[str, Any], said: str) -> list[tuple[str, str]]:
        from certiformer.report.numbers import size_text

        listed = facts["program"].splitlines()
        more = [f"... {len(listed) - 30} more lines"] if len(listed) > 30 else []
        causes = [f"{count:>9,} {name}" for name, count in self.bill.causes[:5]]
        return [
            ("size", f"{self.bill}, {size_text(facts['bytes'])} in {facts['dtype']}"),
            ("parameters", "\n".join(causes)),
            ("program", "\n".join([*listed[:30], *more])),
        ]

    def page(self, artifact: Artifact) -> str:
        """The drawing of the circuit."""
        from certiformer.compiler.programs.circuit_data import circuit_data
        from certiformer.report.circuit_page import write_circuit

        return write_circuit(circuit_data(artifact))

    def _ids(self, xs: Sequence[Value]) -> np.ndarray:
        import numpy as np

        places = {identity(token): place for place, token in enumerate(self.vocab)}
        return np.array([places[identity(x)] for x in xs])
