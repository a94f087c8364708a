"""Random sources, compiled by certiformer, against plain Python meanings on all inputs of small size.

Each function draws a source, compiles and certifies it, and returns (files, certified, violation): the violation is
established as in `_soundness_claims`, from the stored weights and the source that was drawn here.
"""

from __future__ import annotations

import random
from fractions import Fraction

from _soundness_claims import NoValue, _read, program_violation, reduced
from _soundness_forge import violation_of

Tried = tuple[dict[str, bytes], bool, str]


def _certified(rule: str, files: dict[str, bytes], kind: str, rng: random.Random) -> Tried:
    from certiformer.compiler.computation import computation_certificate

    certificate = computation_certificate(rule, files)
    files = {**files, "certificate.json": certificate.to_bytes()}
    proved = certificate.outcome.value == "proved"
    return files, proved, violation_of(kind, files, rng) if proved else ""


def automaton(rng: random.Random) -> Tried:
    from certiformer.compiler.automata import Automaton, word_reader

    symbols, states = "abc"[: rng.randint(1, 3)], [f"q{i}" for i in range(rng.randint(1, 4))]
    rows = tuple((q, a, rng.choice(states)) for q in states for a in symbols)
    accepting = tuple(rng.sample(states, rng.randint(0, len(states))))
    drawn = Automaton(tuple(symbols), tuple(states), rng.choice(states), accepting, rows)
    form, length = rng.choice(("looped", "chain-of-thought", "log-depth")), rng.randint(1, 4)
    files = word_reader(drawn, length, form, rng.choice(("float64", "float32", "bfloat16"))).files()
    name = {"looped": "automaton-looped", "chain-of-thought": "automaton-thought", "log-depth": "automaton-log-depth"}[
        form
    ]
    return _certified(form.replace("-", "_") + "_automaton", files, name, rng)


def machine(rng: random.Random) -> Tried:
    from certiformer.compiler.machines import ChainOfThought, EncoderDecoder, machine_loop
    from certiformer.kernel.meanings.machine import Machine

    symbols, working = "012"[: rng.choice((2, 2, 3))], [f"q{i}" for i in range(rng.choice((1, 1, 2, 2, 3)))]
    states = (*working, "H")
    rows = tuple(
        (q, a, rng.choice(symbols), rng.choice("LRS"), rng.choice(states))
        for q in working for a in symbols if rng.random() < 0.95
    )  # fmt: skip
    drawn = Machine(tuple(symbols), states, ("H",), rows, "halt")
    form = rng.choice(("looped", "thought", "encoder"))
    if form == "looped":
        files = machine_loop(drawn, rng.choice((3, 4, 5, 8)), rng.choice(("float64", "float32"))).files()
        return _certified("looped_machine", files, "machine-looped", rng)
    maker = ChainOfThought if form == "thought" else EncoderDecoder
    rule = "chain_of_thought_machine" if form == "thought" else "encoder_decoder_machine"
    return _certified(rule, maker(drawn, rng.randint(1, 9), 2).files(), f"machine-{form}", rng)


def circuit(rng: random.Random) -> Tried:
    from certiformer.compiler.circuits import Gate, Gates, gate_writer

    signals = [f"x{i}" for i in range(rng.randint(1, 4))]
    inputs, gates = tuple(signals), []
    for i in range(rng.randint(1, 7)):
        operands = tuple(rng.choice(signals) for _ in range(rng.choice((0, 1, 2, 2, 2))))
        gates.append(Gate(f"g{i}", "".join(rng.choice("01") for _ in range(2 ** len(operands))), operands))
        signals.append(f"g{i}")
    drawn = Gates(inputs, tuple(gates), (rng.choice(signals),))
    return _certified(
        "chain_of_thought_circuit", gate_writer(drawn, rng.choice(("float64", "float32"))).files(), "circuit", rng
    )


def learner(rng: random.Random) -> Tried:
    from certiformer.compiler.incontext import Request, context_learner, describe

    word = rng.choice(("gd", "ridge", "relu", "lasso", "select"))
    strength = f"{rng.choice((0.1, 0.25, 0.5, 1, 2))}" if word != "gd" else None
    strength = f"{strength},{rng.choice((3, 4, 5))}" if word == "select" else strength
    step = rng.choice((0.125, 0.25, 0.5)) if word == "gd" else None
    rows = rng.randint(4, 5) if word == "select" else rng.randint(1, 4)
    request = Request(learner=word, features=1, rows=rows, strength=strength, step=step, layers=rng.randint(1, 4))
    drawn = describe(request)
    files = context_learner(drawn).files()
    return _certified(drawn.rule, files, f"learner-{word}", rng)


# --- programs: one tree, read twice ----------------------------------------------------------------

COMPARISONS = {"==": "EQ", "!=": "NEQ", "<": "LT", "<=": "LEQ", ">": "GT", ">=": "GEQ"}
FUNCTIONS = {
    "plus one": lambda x: x + 1,
    "minus": lambda x: -x,
    "mod two": lambda x: x % 2,
    "half": lambda x: Fraction(x) / 2,
    "positive": lambda x: x > 0,
    "as number": lambda x: 1 if x else 0,
    "twice": lambda x: 2 * x,
    "twins": lambda x: True if x == 1 else 1 if x == 2 else 0,  # values that compare equal and are not the same
    "zeros": lambda x: False if x == 1 else 0,
    "float": lambda x: 1.0 if x == 1 else 1,
    "undefined": lambda x: None if x == 1 else x,
}
PAIRS = {
    "sum": lambda x, y: x + y,
    "less": lambda x, y: x < y,
    "equal": lambda x, y: x == y,
    "first": lambda x, y: x,
    "product": lambda x, y: x * y,
}


def draw_tree(rng: random.Random, depth: int) -> tuple:
    """A program as nested tuples; numbers only, so that every comparison and mean has a value."""
    if depth == 0:
        return rng.choice((("tokens",), ("tokens",), ("indices",), ("length",)))
    kind = rng.random()
    if kind < 0.25:
        return ("map", rng.choice(list(FUNCTIONS)), draw_tree(rng, depth - 1))
    if kind < 0.45:
        return ("pair", rng.choice(list(PAIRS)), draw_tree(rng, depth - 1), draw_tree(rng, depth - 1))
    if kind < 0.6:
        return ("width", draw_selector(rng, depth - 1))
    default = rng.choice((None, None, 0, 1, False))
    return ("aggregate", draw_selector(rng, depth - 1), draw_tree(rng, depth - 1), default)


def draw_selector(rng: random.Random, depth: int) -> tuple:
    kind = rng.random()
    if depth > 0 and kind < 0.15:
        return ("not", draw_selector(rng, depth - 1))
    if depth > 0 and kind < 0.35:
        return (rng.choice(("and", "or")), draw_selector(rng, depth - 1), draw_selector(rng, depth - 1))
    below = max(depth - 1, 0)
    return ("select", draw_tree(rng, below), draw_tree(rng, below), rng.choice(list(COMPARISONS)))


def as_expression(tree: tuple):
    """The tree in certiformer's language."""
    from certiformer import rasp

    kind, *rest = tree
    if kind in ("tokens", "indices", "length"):
        return getattr(rasp, kind)
    if kind == "map":
        return rasp.Map(FUNCTIONS[rest[0]], as_expression(rest[1]))
    if kind == "pair":
        return rasp.SequenceMap(PAIRS[rest[0]], as_expression(rest[1]), as_expression(rest[2]))
    if kind == "width":
        return rasp.SelectorWidth(as_expression(rest[0]))
    if kind == "aggregate":
        return rasp.Aggregate(as_expression(rest[0]), as_expression(rest[1]), default=rest[2])
    if kind == "select":
        return rasp.Select(as_expression(rest[0]), as_expression(rest[1]), rasp.Comparison[COMPARISONS[rest[2]]])
    if kind == "not":
        return ~as_expression(rest[0])
    a, b = map(as_expression, rest)
    return a & b if kind == "and" else a | b


def meaning(tree: tuple, xs: list) -> list:
    """The tree in plain Python, by the rules of docs/rasp.md."""
    import operator

    n, (kind, *rest) = len(xs), tree
    if kind == "tokens":
        return xs
    if kind == "indices":
        return list(range(n))
    if kind == "length":
        return [n] * n
    if kind == "map":
        return [None if x is None else reduced(FUNCTIONS[rest[0]](x)) for x in meaning(rest[1], xs)]
    if kind == "pair":
        both = zip(meaning(rest[1], xs), meaning(rest[2], xs), strict=True)
        return [None if x is None or y is None else reduced(PAIRS[rest[0]](x, y)) for x, y in both]
    if kind == "width":
        return [sum(row) for row in meaning(rest[0], xs)]
    if kind == "aggregate":
        values = meaning(rest[1], xs)
        return [_read(row, values, rest[2]) for row in meaning(rest[0], xs)]
    if kind == "select":
        names = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
        holds = getattr(operator, names[rest[2]])
        keys, queries = meaning(rest[0], xs), meaning(rest[1], xs)
        return [[k is not None and q is not None and bool(holds(k, q)) for k in keys] for q in queries]
    if kind == "not":
        return [[not x for x in row] for row in meaning(rest[0], xs)]
    a, b = (meaning(part, xs) for part in rest)
    join = (lambda x, y: x and y) if kind == "and" else (lambda x, y: x or y)
    return [[join(x, y) for x, y in zip(r, s, strict=True)] for r, s in zip(a, b, strict=True)]


def rasp_program(rng: random.Random) -> Tried:
    from certiformer.api.compiling import compile as compile_program

    vocabulary = rng.choice(((0, 1), (0, 1, 2), (1, 2), (False, 1, 2), (-1, 2), (True, 2, 0)))
    tree = draw_tree(rng, rng.choice((1, 1, 2, 2, 2, 3)) if rng.random() < 0.95 else 4)
    compiled = compile_program(
        as_expression(tree),
        vocabulary,
        rng.choice((1, 2, 2, 3)),
        dtype=rng.choice(("float32", "float64", "float64", "auto")),
    )
    files = {**compiled.files, "certificate.json": compiled.certificate.to_bytes()}
    if not compiled.certified:
        return files, False, ""

    def drawn(_program: dict, xs: list) -> list:
        try:
            return meaning(tree, xs)
        except (TypeError, ZeroDivisionError, OverflowError) as error:
            raise NoValue(str(error)) from None

    return files, True, program_violation(files, drawn)


SOURCES = {"automata": automaton, "machines": machine, "circuits": circuit, "learners": learner, "rasp": rasp_program}
