"""`certiformer compile`: from a RASP program to a transformer that is proved to compute it."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import Positional, arg

from certiformer.cli.options import Flag, OptionalFolder
from certiformer.cli.progress import progress_for
from certiformer.cli.terminal import Terminal
from certiformer.errors import BadInput

if TYPE_CHECKING:
    from certiformer.artifact import Artifact
    from certiformer.compiler.driver import Compiled
    from certiformer.compiler.programs.make import Request

SUMMARY = "Turn a RASP program into a transformer that is proved to compute it on every input."
EXAMPLES = """
  certiformer compile reverse --length 16                                   # a program of the library
  certiformer compile sort --vocab 1,2,3,4 --length 50 --out runs/sort      # over your own tokens; numerals are integers
  certiformer compile mine.py:program --vocab a,b,c --length 16 --show      # your own program, with a drawing
  certiformer compile xor.csv                                               # a finite look-up table
  certiformer compile hist --length 20 --limits                             # the largest exact length for each dtype
  certiformer compile frac_prevs --length 30 --causal                       # for a causal model
  certiformer compile hist --length 5 --layernorm --rotate                  # weights that look trained; run, not certified

--length does not count the beginning-of-sequence token. The Python of a file runs now and never again.
exit codes: 0 certified, 2 a mistake in the program or the flags, 3 compiled but not proved
"""
# The flags that are arguments of `certiformer.compile`.
SHARED = ("vocab", "length", "causal", "dtype", "compress", "layernorm", "rotate", "superpose", "seed")


@dataclass(kw_only=True)
class Options:
    """The flags of `compile`."""

    program: Annotated[Positional[str], arg(metavar="NAME|FILE.py:NAME|TABLE.csv")]
    """a program of the library, a program in a Python file, or a look-up table"""
    vocab: Annotated[str | None, arg(metavar="A,B,C", help_behavior_hint="(default: the program's own)")] = None
    """the tokens of the inputs, with commas between them; numerals are integers"""
    length: Annotated[int | None, arg(metavar="N", help_behavior_hint="(needed, except for a table)")] = None
    """the largest number of tokens, the beginning-of-sequence token not counted"""
    out: OptionalFolder = None
    """the folder to write (default: runs/NAME)"""
    causal: Flag = False
    """no position looks to its right; a program that would is refused with the reason"""
    dtype: Literal["auto", "float64", "float32", "bfloat16"] = "auto"
    """the type of the weights and of the runs that the proof speaks of; auto: float32 where that is exact"""
    compress: Annotated[int | None, arg(metavar="D", help_behavior_hint="")] = None
    """realistic weights: a learned code for a residual stream of width D"""
    layernorm: Flag = False
    """realistic weights: a LayerNorm before every sub-layer"""
    rotate: Flag = False
    """realistic weights: another orthogonal basis of the stream, without rounding"""
    superpose: Annotated[float, arg(metavar="SIZE", help_behavior_hint="")] = 0.0
    """realistic weights: Gaussian noise of this size on every weight"""
    seed: int = 0
    """of the noise, the rotation and the training"""
    show: Flag = False
    """draw the circuit into circuit.html"""
    limits: Flag = False
    """also find the largest length that is proved exact, for each dtype"""
    seconds: Annotated[float, arg(metavar="S")] = 60.0
    """how long --limits looks, all dtypes together"""
    force: Flag = False
    """replace an earlier folder"""
    json: Flag = False
    """print one JSON object"""
    quiet: Flag = False
    """no progress"""


def run(options: Options, terminal: Terminal) -> int:
    """Compile, certify, write and report; returns the exit code."""
    from certiformer.api.compiling import compile as compile_program
    from certiformer.api.compiling import program_request
    from certiformer.artifact.folder import DRAWING, held
    from certiformer.kernel.files import PROGRAM

    request = program_request(options.program, options.vocab, options.length, options.causal)
    if options.seconds <= 0:
        raise BadInput(f"--seconds is a positive number, not {options.seconds:g}")
    out = Path(options.out) if options.out is not None else Path("runs") / request.name
    began = time.monotonic()

    def seen(raw: Compiled) -> None:
        if not terminal.json:
            _bill(raw, terminal)

    with held(out, PROGRAM, options.force):
        if not terminal.json:
            _announce(request, terminal)
        with progress_for(terminal) as progress:
            compiled = compile_program(
                options.program,
                **{name: getattr(options, name) for name in SHARED},
                progress=progress,
                seen=seen,
            )
        seconds = {**compiled.certificate.seconds, "in all": time.monotonic() - began}
        compiled.directory = out
        page = _drawing(compiled, terminal) if options.show else None
        compiled.write(out, force=options.force, extra={} if page is None else {DRAWING: page})
    facts = {**compiled.summary(), "seconds": {name: round(value, 3) for name, value in seconds.items()}}
    if not terminal.json:
        _describe(compiled, seconds, terminal)
    if options.limits:
        facts["limits"] = _limits(request, options.seconds, terminal)
    if terminal.json:
        terminal.emit(facts)
    else:
        _describe_folder(compiled, terminal)
    return 0 if compiled.certified else 3


def _announce(request: Request, terminal: Terminal) -> None:
    tokens = ", ".join(str(token) for token in request.vocab[:12]) + (", ..." if len(request.vocab) > 12 else "")
    causal = "; causal" if request.causal else ""
    terminal.fact("program", f"{request.name} on 1 to {request.length:,} of the tokens {tokens}{causal}")


def _bill(raw: Compiled, terminal: Terminal) -> None:
    """The size of what was compiled, printed before it is certified."""
    from certiformer.compiler.programs.bill import bill_of
    from certiformer.report.numbers import size_text

    bill = bill_of(raw.config, raw.circuit)
    cause, share = bill.causes[0]
    terminal.fact("bill", f"{bill}, {size_text(bill.bytes)} in {raw.config.dtype}; {cause} causes {share:,} of them")


def _drawing(compiled: Artifact, terminal: Terminal) -> bytes | None:
    """The content of `circuit.html`; a drawing that fails never spoils a proof."""
    try:
        return compiled.page().encode("utf-8")
    except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as problem:
        terminal.note(f"the drawing failed ({type(problem).__name__}: {problem}); the proof is not affected")
        return None


def _limits(request: Request, seconds: float, terminal: Terminal) -> dict[str, Any]:
    """The largest exact length for each dtype, and the lines that say so."""
    from certiformer.compiler.programs.limits import DTYPES
    from certiformer.compiler.programs.make import limit

    found = {}
    with progress_for(terminal) as progress:
        for number, dtype in enumerate(DTYPES):
            progress("limits", number, len(DTYPES), f"the largest length in {dtype}")
            found[dtype] = limit(request, dtype, seconds / len(DTYPES))
    if not terminal.json:
        terminal.fact("limits", f"proved exact: {', '.join(str(limit) for limit in found.values())}")
    return {
        dtype: {"proved": x.proved, "refused": x.refused, "settled": x.settled, "reason": x.reason}
        for dtype, x in found.items()
    }


def _describe(compiled: Artifact, seconds: dict[str, float], terminal: Terminal) -> None:
    for note in compiled.notes:
        terminal.fact("dtype", note)
    if compiled.certified:
        terminal.fact("certified", compiled.claim, "good")
        terminal.fact("proof", f"situations; {compiled.certificate.reason or 'every layer was bounded'}")
    else:
        sentence = compiled.claim
        claim = f"The claim was: {sentence[0].lower()}{sentence[1:]}"
        terminal.fact("undecided", f"{compiled.certificate.reason}. {claim}", "weak")
    terminal.fact("seconds", ", ".join(f"{name} {value:.2f}" for name, value in seconds.items()))


def _describe_folder(compiled: Artifact, terminal: Terminal) -> None:
    folder, program = Path(str(compiled.directory)), compiled.subject
    terminal.fact("folder", f"{folder} ({', '.join(sorted(path.name for path in folder.iterdir()))})")
    place = shlex.quote(str(folder))
    example = " ".join(str(token) for token in (program.vocab * 3)[: min(3, program.length)])
    commands = [f"certiformer check {place}", f"certiformer run {place} {shlex.quote(example)}"]
    comments = ["the checker alone", "tokens in, tokens out"]
    width = max(map(len, commands))
    terminal.facts("next", [f"{c:<{width}}   # {why}" for c, why in zip(commands, comments, strict=True)])


def report(compiled: Artifact, began: float, example: str, terminal: Terminal) -> int:
    """Say what became of an automaton, a machine, a circuit or a learner; returns the exit code."""
    facts = {**compiled.summary(), "seconds": round(time.monotonic() - began, 3)}
    if terminal.json:
        terminal.emit(facts)
        return compiled.outcome.exit_code(compiled.level)
    terminal.fact(
        "certified" if compiled.certified else "not proved", compiled.claim, "good" if compiled.certified else "weak"
    )
    terminal.fact("proof", compiled.certificate.reason)
    for label, text in compiled.subject.lines(facts, ""):
        terminal.fact(label, f"{text}; {facts['seconds']:.2f} s")
    terminal.facts("next", [f"certiformer run {shlex.quote(str(compiled.directory))} {example}"])
    return compiled.outcome.exit_code(compiled.level)
