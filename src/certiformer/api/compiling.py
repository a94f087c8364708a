"""`compile` and its kinds: programs, automata, machines, circuits and in-context learners become certified transformers."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from certiformer.artifact import Artifact
from certiformer.artifact.folder import held
from certiformer.errors import BadInput
from certiformer.kernel.files import AUTOMATON, GATES, LEARNER, MACHINE, PROGRAM

if TYPE_CHECKING:
    from certiformer.compiler.driver import Compiled
    from certiformer.compiler.programs.make import Request as ProgramRequest
    from certiformer.kernel.meanings.automaton import Automaton
    from certiformer.kernel.meanings.gates import Gates
    from certiformer.kernel.meanings.machine import Machine
    from certiformer.rasp.sequences import SOp
    from certiformer.rasp.value import Value

Dtype = Literal["float64", "float32", "bfloat16"]
Progress = Callable[[str, float, float | None, str], None]

LONGEST_PATH = 250  # characters; a longer text cannot name a file everywhere, and is an expression
TAPE, STEPS, SYMBOLS = 400, 500, 32  # of a machine, where nothing is said
ENCODER_STEPS = {"float64": 500, "float32": 15}  # the precision that this form needs grows with the steps


def compile(  # noqa: A001
    program: str | SOp,
    vocab: Collection[Value] | str | None = None,
    length: int | None = None,
    causal: bool = False,
    dtype: Literal["auto", "float64", "float32", "bfloat16"] = "auto",
    *,
    compress: int | None = None,
    layernorm: bool = False,
    rotate: bool = False,
    superpose: float = 0.0,
    seed: int = 0,
    certified: bool = True,
    name: str | None = None,
    out: str | Path | None = None,
    force: bool = False,
    progress: Progress | None = None,
    seen: Callable[[Compiled], None] | None = None,
) -> Artifact:
    """A transformer that computes a RASP program on every input of 1 to `length` tokens, with the proof.

    **Arguments:**

    - `program`: the name of a program of the library, `"file.py:name"`, a look-up table `"table.csv"`, or a sequence of
      values (`certiformer.rasp.SOp`).
    - `vocab`: the tokens of the inputs, as a collection or as text with commas, `"a,b,c"`, whose numerals are integers
      (default: the program's own; a program of your own needs it).
    - `length`: the largest number of tokens; a table brings its own.
    - `causal`: whether no position looks to its right; a program that would is refused with the reason.
    - `dtype`: the type of the weights and of the runs that the proof speaks of; `auto` is float32 where that is exact.
    - `compress`: a width of the residual stream for which a code is learned; like `layernorm`, `rotate` and `superpose`
      (the size of Gaussian noise on every weight) it makes weights that look trained, which are run and not certified.
    - `seed`: of the noise, the rotation and the training, from 0 up.
    - `certified`: whether to prove it; without, nothing is claimed.
    - `name`: for sentences and folders (default: that of the program).
    - `out`: a folder to write (default: none).
    - `force`: whether `out` may replace an earlier program.
    - `progress`: called with the stage, what is done, all there is, and a note.
    - `seen`: called with the weights before the proof.

    >>> import certiformer
    >>> reverse = certiformer.compile("reverse", length=8)
    >>> reverse.certified, reverse.run("abca")
    (True, ['a', 'c', 'b', 'a'])
    >>> from certiformer import rasp
    >>> later = rasp.Map(lambda x: x + 1, rasp.tokens)
    >>> certiformer.compile(later, vocab={1, 2, 3}, length=4).run([1, 3])
    [2, 4]
    """
    from certiformer.compiler.programs.make import compile_request

    request = program_request(program, vocab, length, causal)
    if seed < 0:
        raise BadInput(f"--seed is a whole number from 0 up, not {seed}")
    if name is not None:
        request = replace(request, name=name)
    return _kept(
        out,
        PROGRAM,
        force,
        lambda: compile_request(
            request,
            dtype,
            compress=compress,
            layernorm=layernorm,
            rotate=rotate,
            superpose=superpose,
            seed=seed,
            certified=certified,
            progress=progress,
            seen=seen,
        ),
    )


def program_request(
    program: str | SOp, vocab: Collection[Value] | str | None, length: int | None, causal: bool
) -> ProgramRequest:
    """The program with the inputs that it is compiled for, from what a user says of them."""
    from certiformer.compiler.programs.make import Request
    from certiformer.compiler.programs.sources import Source, read_source, read_vocab
    from certiformer.rasp.sequences import SOp

    named = not isinstance(program, SOp)
    source = read_source(program) if named else Source(getattr(program, "name", "program"), program)
    tokens = source.vocab if vocab is None else tuple(read_vocab(vocab) if isinstance(vocab, str) else vocab)
    if tokens is None:
        raise BadInput("--vocab says which tokens the inputs are made of, for instance --vocab a,b,c")
    reach = source.length if length is None else length
    if reach is None:
        raise BadInput("--length says how many tokens an input may have, for instance --length 16")
    return Request(source.program, tokens, reach, causal, source.name)


def compile_automaton(
    source: str | Automaton,
    *,
    length: int | None = None,
    form: Literal["looped", "chain-of-thought", "log-depth"] = "looped",
    alphabet: str | Iterable[str] | None = None,
    dtype: Dtype = "float64",
    out: str | Path | None = None,
    force: bool = False,
) -> Artifact:
    """A transformer that reads every word of up to `length` symbols as a finite automaton does, with the proof.

    **Arguments:**

    - `source`: a regular expression (needs `certiformer[automata]`), a file `"table.toml"`, or an `Automaton`.
    - `length`: how many symbols a word may have; shorter words and the empty one are read, too.
    - `form`: `looped` (one block and a pass for every symbol), `chain-of-thought` (a written state for every symbol) or
      `log-depth` (two blocks and log2 of the length passes).
    - `alphabet`: of a regular expression: its letters (default: those it names).
    - `dtype`: the type of the weights and of the runs that the proof speaks of.
    - `out`: a folder to write (default: none).
    - `force`: whether `out` may replace an earlier automaton.

    `run(word)` gives the state after every symbol, `subject.run(word)` also whether the word is accepted.

    >>> import certiformer
    >>> from certiformer.compiler.automata import parse_automaton
    >>> parity = parse_automaton('''start = "even"
    ... accept = ["odd"]
    ... transitions = [["even", "0", "even"], ["even", "1", "odd"], ["odd", "0", "odd"], ["odd", "1", "even"]]''')
    >>> reader = certiformer.compile_automaton(parity, length=8)
    >>> reader.certified, reader.run("1101"), reader.subject.run("1101").accepted
    (True, ['odd', 'even', 'even', 'odd'], True)
    """
    from certiformer.compiler.automata import word_reader

    if length is None:
        raise BadInput("--length says how many symbols a word may have, for instance --length 1000")
    automaton, name = automaton_of(source, alphabet)
    return _kept(out, AUTOMATON, force, lambda: word_reader(automaton, length, form, dtype).certified(name))


def compile_machine(
    file: str | Path | Machine,
    *,
    form: Literal["looped", "chain-of-thought", "encoder-decoder"] = "looped",
    tape: int | None = None,
    steps: int | None = None,
    symbols: int | None = None,
    dtype: Dtype = "float64",
    out: str | Path | None = None,
    force: bool = False,
) -> Artifact:
    """A transformer that runs a Turing machine, with the proof.

    **Arguments:**

    - `file`: a file `"machine.toml"`, or a `Machine`.
    - `form`: `looped` (one pass a step on a bounded tape, for any number of steps), or `chain-of-thought` and
      `encoder-decoder` (one token a step on a free tape, up to a horizon).
    - `tape`: looped: how many cells the tape has (default: 400).
    - `steps`: the other forms: the horizon (default: 500).
    - `symbols`: the other forms: how long an input may be (default: 32).
    - `dtype`: the type of the weights and of the runs that the proof speaks of.
    - `out`: a folder to write (default: none).
    - `force`: whether `out` may replace an earlier machine.

    `run(word, steps=N)` gives the used part of the tape, `subject.run` also the state, the head and whether it halted.

    >>> import certiformer
    >>> from certiformer.compiler.machines.examples import busy_beaver
    >>> beaver = certiformer.compile_machine(busy_beaver(4), tape=24)
    >>> beaver.certified, beaver.run("").count("1"), beaver.subject.run().steps
    (True, 13, 107)
    """
    from certiformer.compiler.machines import ChainOfThought, EncoderDecoder, machine_loop, read_machine

    foreign = {"steps": steps, "symbols": symbols} if form == "looped" else {"tape": tape}
    reason = "which runs any number of steps" if form == "looped" else "whose tape is free"
    for name, value in foreign.items():
        if value is not None:
            raise BadInput(f"--{name} is not for the form {form}, {reason}")
    machine, called = (read_machine(file), Path(file).stem) if isinstance(file, str | Path) else (file, "machine")
    reach = SYMBOLS if symbols is None else symbols

    def made() -> Artifact:
        if form == "looped":
            return machine_loop(machine, TAPE if tape is None else tape, dtype).certified(called)
        if form == "chain-of-thought":
            return ChainOfThought(machine, STEPS if steps is None else steps, reach, dtype).certified(called)
        if form == "encoder-decoder":
            horizon = ENCODER_STEPS.get(dtype, STEPS) if steps is None else steps
            return EncoderDecoder(machine, horizon, reach, dtype).certified(called)
        raise BadInput(f"the form of a machine is looped, chain-of-thought or encoder-decoder, not {form!r}")

    return _kept(out, MACHINE, force, made)


def compile_circuit(
    file: str | Path | Gates,
    *,
    dtype: Literal["float64", "float32"] = "float64",
    out: str | Path | None = None,
    force: bool = False,
) -> Artifact:
    """A one-block decoder that writes one token for each gate of a Boolean circuit, proved for all inputs.

    **Arguments:**

    - `file`: a file `.toml`, `.json`, `.blif` or `.bench`, or `Gates`.
    - `dtype`: the type of the weights and of the runs that the proof speaks of.
    - `out`: a folder to write (default: none).
    - `force`: whether `out` may replace an earlier circuit.

    `run(bits)` gives the outputs, `subject.run(bits)` every signal by name.

    >>> import certiformer
    >>> from certiformer.compiler.circuits.file import parse_circuit
    >>> adder = parse_circuit('inputs=["a","b"]\\noutputs=["c","s"]\\ngates=[["s","XOR","a","b"],["c","AND","a","b"]]')
    >>> certiformer.compile_circuit(adder).run((1, 1))
    [1, 0]
    """
    from certiformer.compiler.circuits import gate_writer, read_circuit

    circuit, name = (read_circuit(file), Path(file).stem) if isinstance(file, str | Path) else (file, "circuit")
    return _kept(out, GATES, force, lambda: gate_writer(circuit, dtype).certified(name))


def compile_incontext(
    learner: Literal["gd", "ridge", "relu", "logistic", "lasso", "select"],
    *,
    features: int,
    rows: int = 100,
    layers: int | None = None,
    step: float | None = None,
    schedule: Literal["constant", "chebyshev", "whitening"] | None = None,
    spectrum: tuple[float, float] | None = None,
    strength: str | float | None = None,
    attention: Literal["linear", "softmax-pair", "softmax-mirror"] | None = None,
    looped: bool = False,
    bound: float = 1.0,
    label_bound: float = 1.0,
    error: float | None = None,
    margin: float | None = None,
    validation: int | None = None,
    tolerance: float | None = None,
    dtype: Dtype = "float64",
    out: str | Path | None = None,
    force: bool = False,
) -> Artifact:
    """A transformer that runs a learning algorithm on the rows of its context, with the proof.

    **Arguments:**

    - `learner`: the algorithm: gradient descent, ridge, ReLU network, logistic, lasso, or the best of several strengths.
    - `features`: how many features a row has.
    - `rows`: how many rows a context may have; it may have fewer.
    - `layers`: how many steps (default: 1 for gd, for the others as many as they need).
    - `step`: the step size (default: 1 / the largest eigenvalue in the box).
    - `schedule`: `constant` steps, `chebyshev`, or `whitening` of the features (default of ridge).
    - `spectrum`: the least and the largest eigenvalue of mean x x^T (default: all that the box allows).
    - `strength`: of the penalty; for select several in a text with commas.
    - `attention`: the kind of attention of gd and ridge (default: linear).
    - `looped`: whether one block is applied once for every step.
    - `bound`: the claim is for features between -bound and bound.
    - `label_bound`: the claim is for answers between -label_bound and label_bound.
    - `error`: logistic: how well the slope of the loss is matched.
    - `margin`: select: strengths whose validation losses differ by less are mixed.
    - `validation`: select: how many rows are kept for validation.
    - `tolerance`: how far a run may be from the algorithm (default: what can be proved).
    - `dtype`: the type of the weights and of the runs that the proof speaks of.
    - `out`: a folder to write (default: none).
    - `force`: whether `out` may replace an earlier learner.

    `run(queries, context=(x, y))` gives the prediction for every query; x has shape (rows, features), y (rows,).

    >>> import certiformer
    >>> learner = certiformer.compile_incontext("gd", features=1, rows=4, step=0.5)
    >>> learner.certified, learner.run([[0.5]], context=([[1.0], [-1.0]], [1.0, -1.0]))
    (True, [0.25])
    """
    from certiformer.compiler.incontext import Request, context_learner, describe

    request = Request(
        learner=learner,
        features=features,
        rows=rows,
        layers=layers,
        step=step,
        schedule=schedule,
        spectrum=spectrum,
        strength=None if strength is None else str(strength),
        attention=attention,
        looped=looped,
        bound=bound,
        label_bound=label_bound,
        error=error,
        margin=margin,
        validation=validation,
        tolerance=tolerance,
        dtype=dtype,
    )
    return _kept(out, LEARNER, force, lambda: context_learner(describe(request)).certified(learner))


def _kept(out: str | Path | None, subject: str, force: bool, make: Callable[[], Artifact]) -> Artifact:
    """What is made, in its folder if there is to be one; whether the place is free is asked before the work."""
    if out is None:
        return make()
    with held(out, subject, force):
        artifact = make()
        artifact.write(out, force=force)
    return artifact


def automaton_of(source: str | Automaton, alphabet: str | Iterable[str] | None) -> tuple[Automaton, str]:
    """The automaton of a source, and a name for its folder."""
    from certiformer.compiler.automata import from_expression, read_automaton

    if not isinstance(source, str):
        return source, "automaton"
    if source.endswith(".toml") or (len(source) < LONGEST_PATH and Path(source).is_file()):
        if alphabet is not None:
            raise BadInput("--alphabet is for regular expressions; the alphabet of a file is written in the file")
        return read_automaton(source), Path(source).stem
    letters = alphabet.split() if isinstance(alphabet, str) else None if alphabet is None else list(alphabet)
    if letters is not None and len(letters) == 1:
        letters = list(letters[0])
    return from_expression(source, letters), re.sub(r"\W+", "-", source).strip("-")[:40] or "automaton"
