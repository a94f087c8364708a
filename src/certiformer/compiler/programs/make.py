"""`compile`: from a program to a certified transformer.

    program, vocabulary, length -> compiler -> files -> check -> Artifact

`dtype="auto"` takes float32 where the checker accepts it and float64 where it does not. A dtype that was asked for and
cannot carry the program is a mistake of the request: the sentence says which dtype or length can.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from certiformer.artifact import Artifact
from certiformer.compiler.driver import Compiled, compile_graph
from certiformer.compiler.programs.certify import certify, unchecked
from certiformer.compiler.programs.limits import Limit, largest_length
from certiformer.compiler.programs.program import TokenProgram
from certiformer.compiler.programs.source_lines import source_lines
from certiformer.compiler.programs.with_realistic import Looks, with_realistic_weights
from certiformer.errors import BadInput
from certiformer.kernel.certificate import Certificate
from certiformer.kernel.files import CIRCUIT, CONFIG, MODEL, PROGRAM
from certiformer.model.tensor_file import arrays_to_bytes
from certiformer.rasp.graph import Graph
from certiformer.rasp.graph_file import graph_from_text, graph_to_text
from certiformer.rasp.graph_to_simplified import graph_to_simplified
from certiformer.rasp.program_to_graph import program_to_graph
from certiformer.rasp.sequences import SOp
from certiformer.rasp.validate import validate
from certiformer.rasp.value import Value

AUTO = ("float32", "float64")
DTYPES = ("auto", "float64", "float32", "bfloat16")
ADVICE_SECONDS = 5.0  # how long to look for what a refused dtype can carry

Progress = Callable[[str, float, float | None, str], None]


@dataclass(frozen=True)
class Request:
    """A program with the inputs it is to be compiled for."""

    program: SOp
    vocab: tuple[Value, ...]
    length: int
    causal: bool = False
    name: str = "program"
    graphs: dict[int, Graph] = field(default_factory=dict, compare=False, repr=False)

    def graph(self) -> Graph:
        """The simplified graph; every dtype shares it."""
        if self.length not in self.graphs:
            self.graphs[self.length] = graph_to_simplified(program_to_graph(self.program, self.vocab, self.length))
        return self.graphs[self.length]


def compile_request(
    request: Request,
    dtype: str = "auto",
    *,
    compress: int | None = None,
    layernorm: bool = False,
    rotate: bool = False,
    superpose: float = 0.0,
    seed: int = 0,
    certified: bool = True,
    progress: Progress | None = None,
    seen: Callable[[Compiled], None] | None = None,
) -> Artifact:
    """A transformer that computes the program of a request on all its inputs, with the proof.

    The arguments are those of `certiformer.compile`; `certified=False` leaves the proof out.
    """
    if dtype not in DTYPES:
        raise BadInput(f"the dtype is one of {', '.join(DTYPES)}, not {dtype!r}")
    if request.causal:
        _refuse_looking_right(request)
    looks = Looks(compress, layernorm, rotate, superpose, seed)
    made = _certified(request, dtype, certified, progress, seen)
    if looks.plain:
        return made
    raw = compile_graph(request.graph(), causal=request.causal, dtype=str(made.dtype))
    return with_realistic_weights(made, raw, looks, progress)


def _certified(
    request: Request,
    dtype: str,
    certified: bool,
    progress: Progress | None,
    seen: Callable[[Compiled], None] | None,
) -> Artifact:
    """The plain weights, in the dtype asked for or the first that carries them."""
    if dtype != "auto":
        made = _make(request, dtype, certified, progress, seen)
        if certified and not made.certified:
            raise BadInput(_cannot(request, dtype, made.certificate.reason))
        return made
    reasons = []
    made = _make(request, AUTO[0], certified, progress, seen)
    for wider in AUTO[1:]:
        if made.certified or not certified:
            break
        reasons.append(f"{made.dtype} cannot carry it ({made.certificate.reason}), so the weights are {wider}")
        made = _make(request, wider, certified, progress, seen)
    made.notes = tuple(reasons) if made.certified else ()
    return made


def _refuse_looking_right(request: Request) -> None:
    reasons = validate(request.program, request.vocab, request.length, causal=True)
    if reasons:
        more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
        raise BadInput(f"{reasons[0]}{more}")


def _make(
    request: Request, dtype: str, certified: bool, progress: Progress | None, seen: Callable[[Compiled], None] | None
) -> Artifact:
    began = time.monotonic()
    raw = compile_graph(request.graph(), causal=request.causal, dtype=dtype)
    if seen is not None:
        seen(raw)
    circuit = replace(raw.circuit, lines=source_lines(request.program, graph_from_text(raw.circuit.extended)))
    files = {
        MODEL: arrays_to_bytes(raw.tensors),
        CONFIG: raw.config.to_bytes(),
        PROGRAM: graph_to_text(raw.graph).encode("ascii"),
        CIRCUIT: circuit.to_text().encode("ascii"),
    }
    seconds = {"compile": round(time.monotonic() - began, 3)}
    certificate: Certificate = certify(files, seconds, progress) if certified else unchecked(files, seconds)
    return Artifact(TokenProgram(files, raw.graph, circuit), certificate, files, request.name)


def attempt(request: Request, length: int, dtype: str) -> str | None:
    """Compile and check another length or dtype; None when it is proved, otherwise the reason."""
    try:
        made = _make(replace(request, length=length), dtype, True, None, None)
    except BadInput as problem:
        return str(problem)
    return None if made.certified else made.certificate.reason


def limit(request: Request, dtype: str, seconds: float) -> Limit:
    """The largest length that is proved in a dtype."""
    return largest_length(lambda n, d: attempt(request, n, d), dtype, request.length, seconds)


def _cannot(request: Request, dtype: str, reason: str) -> str:
    """The sentence about a dtype that cannot carry a program, and what can."""
    wider = {"bfloat16": ("float32", "float64"), "float32": ("float64",), "float64": ()}[dtype]
    able = next((other for other in wider if attempt(request, request.length, other) is None), None)
    shorter = largest_length(lambda n, d: attempt(request, n, d), dtype, max(1, request.length // 2), ADVICE_SECONDS)
    hints = [f"{able} can"] if able else []
    hints += [f"{dtype} can up to length {shorter.proved:,}"] if shorter.proved else []
    advice = "; ".join(hints) or "no dtype that was tried can"
    return f"{dtype} cannot carry {request.name} at length {request.length:,}: {reason}; {advice}"
