"""`CompiledProgram`: a transformer that computes a program, with the proof that it does.

It is held as the bytes of its files, which is what the certificate speaks of. What needs JAX (`model`, `run`, `trace`)
loads it on first use; compiling, certifying and saving do not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from certiformer.compiled.bill import Bill, bill_of
from certiformer.compiled.files import put_program, read_folder
from certiformer.kernel.certificate import Certificate, Outcome
from certiformer.kernel.files import BASIS, CERTIFICATE, CIRCUIT, CONFIG, MODEL, PROGRAM, parse_json
from certiformer.kernel.situations.rasp.circuit import Circuit
from certiformer.model.config import Config
from certiformer.rasp.graph import Graph
from certiformer.rasp.graph_file import graph_from_text
from certiformer.rasp.interpreter import read_tokens
from certiformer.rasp.value import Value, identity, plain

if TYPE_CHECKING:
    import numpy as np

    from certiformer.compiled.realistic.basis import Basis
    from certiformer.compiled.trace import Trace
    from certiformer.model import Transformer


class CompiledProgram:
    """What `certiformer.compile` and `certiformer.load` return.

    `run(tokens)` gives the decoded outputs, `model` is the transformer, `certificate` the claim and what became of it,
    `circuit` the ground truth, `bill` the size, `save(directory)` writes the folder that `certiformer check` reads.
    """

    def __init__(
        self,
        files: Mapping[str, bytes],
        certificate: Certificate,
        *,
        name: str = "program",
        notes: tuple[str, ...] = (),
        directory: Path | None = None,
        graph: Graph | None = None,
        circuit: Circuit | None = None,
        recorded: bool = False,
    ):
        self.files, self.certificate, self.name = dict(files), certificate, name
        self.notes, self.directory, self.recorded = notes, directory, recorded
        self._graph, self._circuit = graph, circuit

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

    @property
    def certified(self) -> bool:
        """Whether the checker accepted the proof here; of a folder that was read only `check` can say that."""
        return self.certificate.outcome is Outcome.PROVED and self.certificate.level == 2 and not self.recorded

    @property
    def word(self) -> str:
        """What became of the claim; *certified* only if the checker accepted here."""
        return self.certificate.outcome.word(self.certificate.level, checked=not self.recorded)

    def run(self, tokens: Sequence[Value]) -> list[Any]:
        """The decoded outputs of the transformer, one for every token; None where the program is undefined.

        Fractions are the nearest floats, as they are when a program is called on a list. A token outside of the vocabulary
        and an input that is too long are refused.
        """
        return [plain(value) for value in self.run_exactly(tokens)]

    def run_exactly(self, tokens: Sequence[Value]) -> list[Value]:
        """`run` with fractions as they are."""
        from certiformer.compiled.decode import Decoder

        xs = read_tokens(tokens, self.vocab, self.length)
        if not xs:
            return []
        outputs = self.model.evaluate(self._ids(xs)[None], dtype=self.dtype)
        return Decoder(self.graph, self.circuit).decode(outputs.reshape(len(xs), -1))

    def trace(self, tokens: Sequence[Value], *, everywhere: bool = False) -> Trace:
        """What every residual variable holds on an input, beside what the program says."""
        from certiformer.compiled.trace import trace

        xs = read_tokens(tokens, self.vocab, self.length)
        return trace(self.model, self.extended, self.circuit, xs, everywhere=everywhere, basis=self.basis)

    @cached_property
    def basis(self) -> Basis | None:
        """For realistic weights, which directions of the stream the coordinates of the circuit are."""
        from certiformer.compiled.realistic.basis import Basis

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

    def save(self, directory: str | Path, *, force: bool = False, extra: Mapping[str, bytes] | None = None) -> Path:
        """Write the folder: complete or not at all, and over an earlier one only with `force`."""
        folder = Path(directory)
        put_program(folder, {**self.files, **(extra or {}), CERTIFICATE: self.certificate.to_bytes()}, force)
        self.directory = folder
        return folder

    def sentence(self) -> str:
        """The claim in one sentence, as the checker says it."""
        from certiformer.kernel.meanings.rasp import read_program
        from certiformer.kernel.situations.rasp.prove import claim_of

        return claim_of(read_program(self.files[PROGRAM]), self.dtype)

    def __repr__(self) -> str:
        reason = self.certificate.reason
        word = f"{self.word}: {reason}" if reason and not self.certified else self.word
        return f"CompiledProgram({self.name} on 1 to {self.length} tokens of {len(self.vocab)}; {self.bill}; {word})"

    def _ids(self, xs: Sequence[Value]) -> np.ndarray:
        import numpy as np

        places = {identity(token): place for place, token in enumerate(self.vocab)}
        return np.array([places[identity(x)] for x in xs])


def load_compiled(directory: str | Path) -> CompiledProgram:
    """Open the folder of a compiled program. Reads only: `check` verifies what it says."""
    files = read_folder(directory)
    certificate = Certificate.from_bytes(files.pop(CERTIFICATE))
    return CompiledProgram(files, certificate, name=Path(directory).name, directory=Path(directory), recorded=True)
