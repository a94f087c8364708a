"""What each kind of folder claims, in plain Python, and where a folder breaks it.

A *violation* is a sentence with the input at which the claim of the files is false. It is looked for in floats and then
established by `_soundness_exact` (rationals, or balls of 700 bits); what is not established is none. The meanings of
machines, automata, circuits, programs, learners and maps are a few lines each, written from the pages of `docs/`.
Nothing of certiformer is imported.
"""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
from _soundness_exact import (
    Model,
    Singular,
    Undecided,
    _fmpq,
    end,
    exact,
    exact_stream,
    float_values,
    floats,
    inside,
    precisely,
    tensors_of,
    value,
)
from flint import arb, fmpq

SUSPICIOUS = 1e-13  # of a claim of exactness: what floats show below this is not worth an exact run


def above(x, limit: Fraction) -> bool:
    """Whether |x| certainly exceeds the limit."""
    with precisely():
        bound = fmpq(limit.numerator, limit.denominator)
        return bool(abs(x) > (bound if isinstance(x, fmpq) else arb(bound)))


# --- numbers within epsilon ------------------------------------------------------------------------


@dataclass(frozen=True)
class Peak:
    """An input, the output with the largest error seen there, and that error, exactly or in a ball."""

    point: tuple[Fraction, ...]
    output: int
    error: object

    def lower(self) -> Fraction:
        """A rational just below the error."""
        if isinstance(self.error, fmpq):
            return abs(Fraction(int(self.error.p), int(self.error.q)))
        with precisely():
            mantissa, exponent = abs(self.error).lower().man_exp()
            return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


_points: dict[str, np.ndarray] = {}


def box_points(domain: list[list]) -> np.ndarray:
    """Points to look at: a grid with the corners, and random ones; all doubles inside the box."""
    key = json.dumps(domain)
    if key not in _points:
        with precisely():
            ends = [(float(end(low).upper()), float(end(high).lower())) for low, high in domain]
        ends = [(np.nextafter(low, high), np.nextafter(high, low)) for low, high in ends]
        count = {1: 129, 2: 11, 3: 5}.get(len(domain), 3)
        grid = np.stack(np.meshgrid(*[np.linspace(low, high, count) for low, high in ends], indexing="ij"), -1)
        rng = np.random.default_rng(0)
        inner = np.stack([rng.uniform(low, high, 30) for low, high in ends], axis=1)
        _points[key] = np.concatenate([grid.reshape(-1, len(domain)), inner])
    return _points[key]


def aims(target: dict) -> tuple[Callable, Callable]:
    """The target in floats at many points, and established at one: a formula, or a teacher with its weights."""
    if "program" in target:
        program = target["program"]
        return (lambda at: float_values(program, at)), (lambda point: value(program, point))
    teacher = Model(json.loads(target["config"]), tensors_of(base64.b64decode(target["tensors"])))
    return (lambda at: floats(teacher, at).reshape(len(at), -1)), (lambda point: exact(teacher, point))


def box_peak(files: dict[str, bytes], dtype=np.float64) -> Peak | None:
    """The largest error |T - f| that was seen, established at its point."""
    target = json.loads(files["target.json"])
    model, points, (seen_aim, aim) = Model.of(files), box_points(target["domain"]), aims(target)

    def errors(at: np.ndarray) -> np.ndarray:
        return np.abs(floats(model, at, dtype).reshape(len(at), -1) - seen_aim(at))

    seen = np.nan_to_num(errors(points), nan=-1.0, posinf=-1.0)
    place, output = np.unravel_index(seen.argmax(), seen.shape)
    best, size = points[place], seen[place, output]
    low, high = points.min(axis=0), points.max(axis=0)
    reach = (high - low) / 50
    for _ in range(3):  # climb a little: the closer to the peak, the harder the forgery
        near = np.clip(best + reach * np.linspace(-1, 1, 17)[:, None] * np.eye(len(best))[:, None, :], low, high)
        near = near.reshape(-1, len(best))
        around = np.nan_to_num(errors(near)[:, output], nan=-1.0, posinf=-1.0)
        if around.max() > size:
            best, size = near[around.argmax()], around.max()
        reach = reach / 8
    point = tuple(Fraction(float(x)) for x in best)
    if not inside(target["domain"], list(point)):
        return None
    try:
        wanted, given = aim(list(point))[output], exact(model, list(point))[output]
    except (Singular, Undecided):
        return None
    with precisely():
        error = abs((arb(given) if isinstance(given, fmpq) else given) - arb(wanted))
    return Peak(point, int(output), error) if error.is_finite() else None


def rows_of(target: dict) -> list[tuple[tuple[Fraction, ...], tuple[Fraction, ...]]]:
    """The rows of a finite claim: a table, or all sequences over an alphabet with what the map wants."""
    if target["format"] == "certiformer-table-1":
        return [(tuple(map(Fraction, a)), tuple(map(Fraction, b))) for a, b in target["rows"]]
    v, n = target["alphabet"], target["tokens"]
    rows = []
    for letters in product(range(v), repeat=n):
        rows.append((tuple(map(Fraction, letters)), tuple(map(Fraction, answer(target, list(letters), v)))))
    return rows


def answer(target: dict, letters: list[int], v: int) -> list[int]:
    """What a map on sequences of letters below v wants."""
    kind, n = target["format"], len(letters)
    if kind == "certiformer-sort-1":
        return [int(a == b) for a in sorted(letters) for b in range(v)]
    if kind == "certiformer-histogram-1":
        return [sum(b == a for b in letters) for a in letters]
    if kind == "certiformer-induction-1":
        wanted = []
        for i in range(n):
            earlier = [j for j in range(i) if letters[j] == letters[i]]
            wanted += [int(bool(earlier) and letters[earlier[-1] + 1] == b) for b in range(v)]
        return wanted
    counts = [letters.count(b) for b in range(v)]
    return {"count": counts, "parity": [counts[1] % 2], "majority": [int(2 * c > n) for c in counts]}[target["what"]]


_rows: dict[bytes, tuple] = {}


def finite_peak(files: dict[str, bytes]) -> Peak | None:
    """The largest error over all rows, established."""
    raw = files["target.json"]
    if raw not in _rows:
        if len(_rows) > 200:
            _rows.clear()
        rows = rows_of(json.loads(raw))
        _rows[raw] = (rows, *(np.array([[float(x) for x in row[side]] for row in rows]) for side in (0, 1)))
    rows, inputs, wanted = _rows[raw]
    model = Model.of(files)
    seen = np.nan_to_num(np.abs(floats(model, inputs) - wanted), nan=-1.0, posinf=-1.0)
    place, output = np.unravel_index(seen.argmax(), seen.shape)
    point, row = rows[place]
    given = exact(model, list(point))[output]
    with precisely():
        aim = fmpq(row[output].numerator, row[output].denominator)
        return Peak(point, int(output), abs(given - (aim if isinstance(given, fmpq) else arb(aim))))


def run_peak(files: dict[str, bytes]) -> Peak | None:
    """The largest distance that was seen of a run in float32 from the real numbers, one input of the box established.

    The run adds from left to right, rounds after every operation and takes exponentials that are right to the last bit:
    one of the runs that docs/float-semantics.md allows.
    """
    target, model = json.loads(files["target.json"]), Model.of(files)
    points = box_points(target["domain"])[::8].astype(np.float32).astype(np.float64)
    with precisely():
        points = np.array([p for p in points if inside(target["domain"], [Fraction(float(x)) for x in p])])
    run = floats(model, points, np.float32).astype(np.float64)
    seen = np.abs(run - floats(model, points))
    place, output = np.unravel_index(seen.argmax(), seen.shape)
    point = tuple(Fraction(float(x)) for x in points[place])
    given = exact(model, list(point))[output]
    with precisely():
        return Peak(point, int(output), abs(given - arb(float(run[place, output]))))


# --- what is computed ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """One input and what is wanted of some rows: (row, "largest", index) or (row, "equal", the numbers)."""

    tokens: tuple[int, ...]
    wanted: tuple[tuple, ...]


def run_type(model: Model):
    """NumPy's type for a run in the stored one; None where it has none, or where a run would not be one of ours.

    A run in it is one that docs/float-semantics.md allows: sums in some order, exponentials within an ulp or two.
    """
    hard = any(b["attention"] and b["attention"]["kind"] in ("hard", "nearest") for b in model.config["blocks"])
    return None if hard else {"float64": np.float64, "float32": np.float32}.get(model.config["dtype"])


def differences(outputs: np.ndarray, group: list[Case], slack: float = SUSPICIOUS) -> np.ndarray:
    """How wrong the outputs (cases, rows, numbers) of each case are, in floats; positive is wrong."""
    worst = np.full(len(group), -np.inf)
    places, rows, aims = [], [], []
    for place, case in enumerate(group):
        for row, how, aim in case.wanted:
            if how == "largest":
                places.append(place), rows.append(row), aims.append(aim)
            else:
                wrong = np.abs(outputs[place, row, : len(aim)] - np.array(aim, float)).max() - slack
                worst[place] = max(worst[place], wrong) if wrong == wrong else np.inf
    if places:
        numbers, own = outputs[places, rows], np.arange(len(places))
        wanted = numbers[own, aims]
        numbers[own, aims] = -np.inf
        wrong = numbers.max(axis=1) - wanted
        np.maximum.at(worst, places, np.where(np.isnan(wrong), np.inf, wrong))
    return worst


def broken(model: Model, case: Case) -> str:
    """The first thing wanted that the exact run certainly does not give; empty if there is none."""
    try:
        flat = exact(model, [Fraction(t) for t in case.tokens])
    except Undecided:
        return ""
    width = len(flat) // len(case.tokens)
    for row, how, aim in case.wanted:
        numbers = flat[row * width : (row + 1) * width]
        if how == "largest":
            wrong = [i for i, x in enumerate(numbers) if i != aim and bool(x > numbers[aim])]
        else:
            wrong = [i for i, x in enumerate(aim) if above(numbers[i] - _fmpq(Fraction(x)), Fraction(0))]
        if wrong:
            return (
                f"tokens {case.tokens}: row {row} wants {how} {aim}, output {wrong[0]} is {str(numbers[wrong[0]])[:40]}"
            )
    return ""


def decoder_violation(files: dict[str, bytes], cases: list[Case], quick: bool = False) -> str:
    """Where a transformer over tokens breaks what is wanted; the most suspicious inputs are run exactly.

    With `quick` the first suspicion of the floats is told, and nothing is established.
    """
    model = Model.of(files)
    suspects = []
    by_length: dict[int, list[Case]] = {}
    for case in cases:
        by_length.setdefault(len(case.tokens), []).append(case)
    for length, group in by_length.items():
        outputs = floats(model, np.array([case.tokens for case in group])).reshape(len(group), length, -1)
        wrong = differences(outputs, group)
        suspects += [(wrong[i], group[i]) for i in np.flatnonzero(wrong > 0)]
        if quick and suspects:
            return "suspected"
    for _, case in sorted(suspects, key=lambda pair: -pair[0])[:2]:
        reason = broken(model, case)
        if reason:
            return reason
    kind = run_type(model)
    for length, group in by_length.items() if kind is not None else ():
        outputs = floats(model, np.array([case.tokens for case in group]), kind).reshape(len(group), length, -1)
        wrong = differences(outputs.astype(np.float64), group, 0.0)
        if wrong.max() > 0:
            tokens = group[int(wrong.argmax())].tokens
            return f"tokens {tokens}: a run in {kind.__name__} does not give what is wanted"
    return ""


_cases: dict[tuple, list] = {}


def remembered(name: str, key: tuple, make) -> list:
    """Cases of a description, made once."""
    if (name, *key) not in _cases:
        if len(_cases) > 500:
            _cases.clear()
        _cases[(name, *key)] = make()
    return _cases[(name, *key)]


def automaton_cases(files: dict[str, bytes], form: str) -> list[Case]:
    """docs/automata.md: the state after every symbol, and whether it accepts."""
    data, config = json.loads(files["automaton.json"]), json.loads(files["config.json"])
    symbols, states, accepting = data["symbols"], data["states"], set(data["accepting"])
    table = {(q, a): r for q, a, r in data["transitions"]}
    order = [q for q in states if q not in accepting] + [q for q in states if q in accepting]
    total = config["input"]["tokens"]
    longest, cases = total - 1, []
    if form == "chain-of-thought":  # rows 0 to T the word and `end`, row T + 1 the start, then one row for each state
        longest = (total - 2) // 2
        for size in range(longest + 1):
            for word in product(range(len(symbols)), repeat=size):
                here, run = data["start"], []
                for a in word:
                    here = table[here, symbols[a]]
                    run.append(order.index(here))
                stop = len(symbols)
                tokens = [*word, *[stop] * (longest + 1 - size), stop + 1 + order.index(data["start"])]
                tokens += [stop + 1 + q for q in run]
                ends = [*run, len(states) + int(here in accepting)]
                first = longest + 1
                if len(tokens) <= total:
                    units = [tuple(int(i == q) for i in range(len(states) + 2)) for q in ends]
                    cases.append(Case(tuple(tokens), tuple((first + i, "equal", u) for i, u in enumerate(units))))
        return cases
    for word in product(range(len(symbols)), repeat=longest):
        here, wanted = data["start"], []
        for row in range(longest + 1):
            if row:
                here = table[here, symbols[word[row - 1]]]
            if form == "looped":
                aim = tuple(int(q == here) for q in order)
                aim = (*aim, int(here in accepting))
            else:
                number, reject = order.index(here), len(states) - len(accepting)
                aim = (Fraction(number), Fraction(number) - reject + Fraction(1, 2))
            wanted.append((row, "equal", aim))
        cases.append(Case((len(symbols), *word), tuple(wanted)))
    return cases


def circuit_cases(files: dict[str, bytes]) -> list[Case]:
    """docs/circuits.md: one token for each gate, in order."""
    data = json.loads(files["gates.json"])
    cases = []
    for bits in product((0, 1), repeat=len(data["inputs"])):
        signals = dict(zip(data["inputs"], bits, strict=True))
        for name, table, *operands in data["gates"]:
            signals[name] = int(table[int("".join(str(signals[o]) for o in operands) or "0", 2)])
        tokens = (2, *signals.values())
        first = len(bits)
        gates = list(signals.values())[first:]
        cases.append(
            Case(tokens[:-1] if gates else tokens, tuple((first + t, "largest", g) for t, g in enumerate(gates)))
        )
    return cases


MOVES = {"L": -1, "S": 0, "R": 1}


def machine_steps(data: dict, word: tuple[int, ...], steps: int) -> list[tuple]:
    """(state, symbol under the head, cell, what the next step writes, moves and enters) before every step."""
    symbols, halting = data["symbols"], set(data["halting"])
    table = {(q, a): (b, m, r) for q, a, b, m, r in data["transitions"]}
    tape, cell, state = dict(enumerate(symbols[a] for a in word)), 0, data["states"][0]
    trace = []
    for _ in range(steps + 1):
        under = tape.get(cell, symbols[0])
        done = None if state in halting else table.get((state, under))
        trace.append((state, under, cell, done))
        if done is None:
            break
        tape[cell], state, cell = done[0], done[2], cell + MOVES[done[1]]
    return trace


def thought_cases(files: dict[str, bytes]) -> list[Case]:
    """docs/machines.md, chain of thought: a token for every step (written, moved, entered), then stop."""
    data, config = json.loads(files["machine.json"]), json.loads(files["config.json"])
    thoughts = list(dict.fromkeys((b, m, r) for _, _, b, m, r in data["transitions"]))
    count, total, cases = len(data["symbols"]), config["input"]["tokens"], []
    longest = 2  # the bases are made for two input symbols
    for size in range(longest + 1):
        for word in product(range(count), repeat=size):
            trace = machine_steps(data, word, total - longest - 1)[: total - longest - 1]
            made = [thoughts.index(done) if done else len(thoughts) for *_, done in trace]
            tokens = [*word, count, *(count + 1 + m for m in made[:-1])]
            wanted = tuple((size + i, "largest", m) for i, m in enumerate(made))
            cases.append(Case(tuple(tokens), wanted))
    return cases


def encoder_cases(files: dict[str, bytes]) -> list[Case]:
    """docs/machines.md, encoder-decoder: (state, symbol under the head, last move) after every step."""
    data, config = json.loads(files["machine.json"]), json.loads(files["config.json"])
    count, total, cases, longest, order = len(data["symbols"]), config["input"]["tokens"], [], 2, "LSR"
    steps = total - longest - 2
    for size in range(longest + 1):
        for word in product(range(count), repeat=size):
            trace = machine_steps(data, word, steps)
            if trace[0][3] is None:
                continue
            names = []
            for i, (state, under, _, _) in enumerate(trace):
                move = "S" if i == 0 else trace[i - 1][3][1]
                names.append(
                    (data["states"].index(state) * count + data["symbols"].index(under)) * 3 + order.index(move)
                )
            cells = [0, *word, *[0] * (longest + 1 - size)]
            tokens = [*cells, *(count + name for name in names[:-1])]
            wanted = tuple((longest + 2 + i, "largest", name) for i, name in enumerate(names[1:]))
            cases.append(Case(tuple(tokens[:total]), wanted))
    return cases


def looped_machine_violation(files: dict[str, bytes], seed: int = 0, quick: bool = False) -> str:
    """docs/machines.md, looped: one pass of the block is one step, on the code of every configuration."""
    data, config = json.loads(files["machine.json"]), json.loads(files["config.json"])
    model, cells = Model.of(files), config["input"]["tokens"]
    pairs = remembered("looped", (files["machine.json"], cells), lambda: _machine_pairs(data, cells, seed))
    if config["loops"] != 1 or not pairs:
        return ""
    t = model.tensors

    def code(tokens: np.ndarray) -> np.ndarray:
        return t["embed.weight"][tokens] + t["code.table"][:cells]

    before = np.array([a for a, _ in pairs])
    after = np.array([b for _, b in pairs])
    differences = np.abs(floats(model, before, stream_only=True)[:, config["registers"] :] - code(after))
    worst = np.nan_to_num(differences, nan=np.inf).reshape(len(pairs), -1).max(axis=1)
    place = int(worst.argmax())
    if not worst[place] > SUSPICIOUS:
        return _machine_run_violation(model, before, after)
    if quick:
        return "suspected"
    stream = exact_stream(model, [Fraction(int(x)) for x in before[place]])[config["registers"] :]
    wanted = code(after[place])
    for cell, row in enumerate(stream):
        for i, x in enumerate(row):
            with precisely():  # a sum of two doubles need not be one
                code = arb(float(t["embed.weight"][after[place][cell], i])) + arb(float(t["code.table"][cell, i]))
                wrong = above(x - code, Fraction(0))
            if wrong:
                return f"tokens {before[place].tolist()}: cell {cell}, coordinate {i} is not {wanted[cell, i]}"
    return ""


def _machine_run_violation(model: Model, before: np.ndarray, after: np.ndarray) -> str:
    """The same for a run in the stored type, which is claimed to be exact, too."""
    kind, t = run_type(model), model.tensors
    if kind is None:
        return ""
    given = floats(model, before, kind, stream_only=True)[:, model.config["registers"] :]
    wanted = t["embed.weight"].astype(kind)[after] + t["code.table"][: before.shape[1]].astype(kind)
    wrong = np.flatnonzero((given != wanted).reshape(len(before), -1).any(axis=1))
    return (
        f"tokens {before[wrong[0]].tolist()}: a run in {kind.__name__} is not the next configuration"
        if len(wrong)
        else ""
    )


def _machine_pairs(data: dict, cells: int, seed: int) -> list[tuple[list[int], list[int]]]:
    """Configurations as tokens, before and after one step that stays on the tape."""
    rng, symbols, states = random.Random(seed), data["symbols"], data["states"]
    table = {(q, a): (b, m, r) for q, a, b, m, r in data["transitions"]}
    pairs = []
    for cell, state, read in product(range(cells), range(len(states)), range(len(symbols))):
        for _ in range(2):
            tape = [rng.randrange(len(symbols)) for _ in range(cells)]
            tape[cell] = read
            before = list(tape)
            before[cell] += len(symbols) * (1 + state)
            done = None if states[state] in data["halting"] else table.get((states[state], symbols[read]))
            after, there = list(tape), cell
            if done is not None:
                after[cell], there = symbols.index(done[0]), cell + MOVES[done[1]]
                if not 0 <= there < cells:
                    continue
            after[there] += len(symbols) * (1 + (states.index(done[2]) if done else state))
            pairs.append((before, after))
    return pairs


# --- learners --------------------------------------------------------------------------------------


def learner_violation(files: dict[str, bytes], rng: random.Random, quick: bool = False) -> str:
    """docs/incontext.md: the prediction of the described algorithm, exactly, or within the tolerance (ridge)."""
    data, model = json.loads(files["learner.json"]), Model.of(files)
    if data["features"] != 1 or data.get("attention", "linear") != "linear":
        return ""
    limit = Fraction(0)
    for attempt in range(3):
        rows = data["rows"] if attempt < 2 else rng.randint(1 + data.get("validation", 0), data["rows"])
        bound, label = Fraction(data["bound"]), Fraction(data["label_bound"])
        xs = [bound * Fraction(rng.choice((-4, -3, -2, -1, 1, 2, 3, 4)), 4) for _ in range(rows)]
        ys = [label * Fraction(rng.randint(-4, 4), 4) for _ in range(rows)]
        asked = bound * Fraction(rng.choice((-4, -2, 1, 4)), 4)
        tokens, wanted = _learned(data, xs, ys, asked)
        if data["learner"] == "ridge":
            limit = max(Fraction(data["tolerance"]), Fraction(json.loads(files["certificate.json"])["epsilon"]))
        if wanted is None:
            continue
        seen = float(
            floats(model, np.array([[float(t) for t in tokens]]))[0, 0]
        )  # exact runs are for what floats suspect
        if abs(seen - float(wanted)) <= float(limit) * (1 - 1e-9) - SUSPICIOUS:
            continue
        if not limit and abs(seen - float(wanted)) < SUSPICIOUS / 100 * (1 + abs(seen)):
            continue
        if quick:
            return "suspected"
        got = exact(model, tokens)  # the first output is the prediction
        if above(got[0] - fmpq(wanted.numerator, wanted.denominator), limit):
            context = f"context {[*map(str, xs)]} -> {[*map(str, ys)]}, query {asked}"
            return f"{context}: wanted {float(wanted):.17g}, got {got[0]}"
    return ""


def _learned(data: dict, xs: list, ys: list, asked: Fraction) -> tuple[list[Fraction], Fraction | None]:
    """The input of the model and the prediction of the algorithm, in fractions."""
    n, spare, zero = len(xs), data["rows"] - len(xs), Fraction(0)
    if data["learner"] in ("gd", "ridge"):
        tokens = [part for x, y in zip(xs, ys, strict=True) for part in (x / n, x, y)]
        tokens += [zero] * (3 * spare) + [zero, asked, zero]
        square = sum(x * x for x in xs) / n
        product_ = sum(x * y for x, y in zip(xs, ys, strict=True)) / n
        if data["learner"] == "ridge":
            strength = Fraction(data["strength"])
            eigenvalue = square + strength
            if not Fraction(data["low"]) <= eigenvalue <= Fraction(data["high"]):
                return tokens, None
            return tokens, asked * product_ / eigenvalue
        w = zero
        for step in data["steps"]:
            w = w + Fraction(step) * (product_ - w * square)
        return tokens, asked * w
    if data["learner"] == "selection":
        m = data["validation"]
        k = n - m
        tokens = []
        for i, (x, y) in enumerate(zip(xs, ys, strict=True)):
            train = i < k
            tokens += [x, x / k if train else zero, zero if train else x / m, y, zero if train else y / m, zero]
        tokens += [zero] * (6 * spare) + [asked, zero, zero, zero, zero, Fraction(1)]
        square = sum(x * x for x in xs[:k]) / k
        product_ = sum(x * y for x, y in zip(xs[:k], ys[:k], strict=True)) / k
        weights, losses = [], []
        for rate, decay in zip(data["rates"], data["decays"], strict=True):
            w = zero
            for _ in range(data["steps"]):
                w = w - Fraction(rate) * (w * square - product_) - Fraction(decay) * w
            weights.append(w)
            losses.append(sum((w * x - y) ** 2 for x, y in zip(xs[k:], ys[k:], strict=True)) / m)
        best = min(losses)
        if sorted(losses)[1] - best < Fraction(data["gap"]):
            return tokens, None
        return tokens, asked * weights[losses.index(best)]
    tokens = [part for x, y in zip(xs, ys, strict=True) for part in (x, x / n, y, zero)]
    tokens += [zero] * (4 * spare) + [asked, zero, zero, Fraction(1)]
    if data["knots"]:
        return tokens, None
    square = sum(x * x for x in xs) / n
    product_ = sum(x * y for x, y in zip(xs, ys, strict=True)) / n
    w, threshold = zero, Fraction(data["threshold"])
    for _ in range(data["steps"]):
        w = w - Fraction(data["rate"]) * (w * square - product_) - Fraction(data["decay"]) * w
        if threshold:
            w = (1 if w > 0 else -1) * max(abs(w) - threshold, zero)
    return tokens, asked * w


# --- programs --------------------------------------------------------------------------------------


class NoValue(Exception):
    """The program has no value on this input."""


def read_value(data):
    """A value as `program.json` writes it."""
    if isinstance(data, dict):
        ((kind, content),) = data.items()
        if kind == "ratio":
            return Fraction(content)
        return float.fromhex(content) if kind == "float" else tuple(map(read_value, content))
    return data


def same(a, b) -> bool:
    """Rule 4 of docs/rasp.md: the same value, not merely an equal one; True is not 1."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    kinds = [int if isinstance(x, (int, Fraction)) and not isinstance(x, bool) else type(x) for x in (a, b)]
    if kinds[0] is float and kinds[1] is float:
        return a.hex() == b.hex()
    return kinds[0] is kinds[1] and a == b


def reduced(x):
    """Rule 5 of docs/rasp.md: a result without a fractional part is an integer."""
    whole = (isinstance(x, Fraction) and x.denominator == 1) or (isinstance(x, float) and x.is_integer())
    return int(x) if whole else x


def program_outputs(program: dict, xs: list) -> list:
    """docs/rasp.md on one input: the value of every position; `NoValue` where the program has none."""
    n, results = len(xs), []
    for node in program["nodes"]:
        below = [results[i] for i in node.get("inputs", ())]
        kind = node["kind"]
        if kind == "tokens":
            results.append(xs)
        elif kind == "indices":
            results.append(list(range(n)))
        elif kind == "length":
            results.append([n] * n)
        elif kind == "full":
            results.append([read_value(node["constant"])] * n)
        elif kind == "map":
            results.append([_mapped(program, node, arguments) for arguments in zip(*below, strict=True)])
        elif kind == "select":
            keys, queries = below
            results.append([[_selected(program, node, k, q) for k in keys] for q in queries])
        elif kind in ("and", "or"):
            a, b = below
            join = (lambda x, y: x and y) if kind == "and" else (lambda x, y: x or y)
            results.append([[join(a[q][k], b[q][k]) for k in range(n)] for q in range(n)])
        elif kind == "not":
            results.append([[not x for x in row] for row in below[0]])
        elif kind == "width":
            results.append([sum(row) for row in below[0]])
        elif kind == "aggregate":
            selector, values = below
            results.append([_read(row, values, read_value(node["constant"])) for row in selector])
        else:
            raise NoValue(kind)
    return results[program["output"]]


def _read(row: list[bool], values: list, default):
    chosen = [v for v, c in zip(values, row, strict=True) if c]
    if not chosen:
        return default
    if any(v is None for v in chosen):
        return None
    if all(same(v, chosen[0]) for v in chosen):
        return chosen[0]
    if all(isinstance(v, (int, Fraction, float)) for v in chosen):
        return reduced(sum(Fraction(v) for v in chosen) / len(chosen))
    raise NoValue("a mean of what has none")


def _places(program: dict, node: int) -> list:
    values = program["nodes"][node]["values"]
    listed = list(range(values["integers"][0], values["integers"][1] + 1)) if "integers" in values else None
    if listed is None:
        if "list" not in values:
            raise NoValue("a set that is not listed")
        listed = [read_value(v) for v in values["list"]]
    return listed


def _place(program: dict, node: int, v) -> int:
    for i, other in enumerate(_places(program, node)):
        if same(other, v):
            return i
    raise NoValue("a value outside its set")


BINARY = {
    "+": lambda x, y: x + y, "-": lambda x, y: x - y, "*": lambda x, y: x * y, "/": lambda x, y: _divided(x, y),
    "//": lambda x, y: x // y, "%": lambda x, y: x % y, "<": lambda x, y: x < y, "<=": lambda x, y: x <= y,
    "==": lambda x, y: x == y, "!=": lambda x, y: x != y, ">": lambda x, y: x > y, ">=": lambda x, y: x >= y,
    "True": lambda x, y: True, "False": lambda x, y: False, "and": lambda x, y: x and y, "or": lambda x, y: x or y,
}  # fmt: skip


def _divided(x, y):
    if isinstance(x, float) or isinstance(y, float):
        raise NoValue("floats")
    return Fraction(x) / Fraction(y)


def _mapped(program: dict, node: dict, arguments: tuple):
    if any(x is None for x in arguments):
        return None
    if "table" in node:
        place = 0
        for i, x in zip(node["inputs"], arguments, strict=True):
            place = place * len(_places(program, i)) + _place(program, i, x)
        entry = node["table"]["entries"][place]
        listed = program["nodes"][_number(program, node)]["values"]
        values = _places(program, _number(program, node))
        if entry is None or (listed["undefined"] and entry == len(values)):
            return None
        return values[entry]
    operation = node["operation"]
    try:
        if "unary" in operation:
            return {"not": lambda x: not x, "negative": lambda x: -x}[operation["unary"]](*arguments)
        if "with" in operation:
            constant = read_value(operation["constant"])
            pair = (constant, *arguments) if operation["first"] else (*arguments, constant)
            return reduced(BINARY[operation["with"]](*pair))
        if "binary" in operation:
            return reduced(BINARY[operation["binary"]](*arguments))
        if "linear" in operation:
            first, second = map(read_value, operation["linear"])
            return reduced(first * arguments[0] + second * arguments[1])
        total = read_value(operation["offset"])
        for f, x in zip(operation["affine"], arguments, strict=True):
            total = total + read_value(f) * x
        return reduced(total)
    except ZeroDivisionError:
        return None
    except (KeyError, TypeError):
        raise NoValue("an operation that is not known here") from None


def _number(program: dict, node: dict) -> int:
    return next(i for i, other in enumerate(program["nodes"]) if other is node)


def _selected(program: dict, node: dict, key, query) -> bool:
    if key is None or query is None:
        return False
    if "relation" in node:
        k, q = node["inputs"]
        return node["relation"][_place(program, k, key)][_place(program, q, query)] == "1"
    try:
        return bool(BINARY[node["comparison"]](key, query))
    except (TypeError, KeyError):
        raise NoValue("a comparison without meaning") from None


def program_cases(files: dict[str, bytes], meaning=program_outputs) -> list[tuple]:
    """All inputs up to the length on which the program has a value, with what it wants at every position."""
    program, circuit = json.loads(files["program.json"]), json.loads(files["circuit.json"])
    vocabulary = [read_value(v) for v in program["vocab"]]
    listed, undefined = _places(program, program["output"]), program["nodes"][program["output"]]["values"]["undefined"]
    output, cases = circuit["output"], []
    for n in range(1, program["length"] + 1):
        for ids in product(range(len(vocabulary)), repeat=n):
            try:
                values = meaning(program, [vocabulary[i] for i in ids])
            except NoValue:
                continue
            wanted = []
            for v in values:
                if v is None and not undefined:
                    return []
                wanted.append(len(listed) if v is None else next((i for i, w in enumerate(listed) if same(v, w)), -1))
            cases.append((ids, wanted))
    if output["kind"] == "number":
        codes = [Fraction(v) for v in (listed if output["feature"] is None else output["feature"])]
        codes += [Fraction(output["undefined"])] if undefined else []
        return [(ids, [codes[w] if w >= 0 else None for w in wanted], codes) for ids, wanted in cases]
    return [(ids, wanted, None) for ids, wanted in cases]


def program_violation(files: dict[str, bytes], meaning=program_outputs, quick: bool = False) -> str:
    """Where decoding the read-out does not give the value of the program, or of another `meaning` of it."""
    key = (files["program.json"], files["circuit.json"], meaning)
    try:
        by_length = remembered("program", key, lambda: decoded_cases(files, meaning))
    except (NoValue, KeyError, IndexError, TypeError, ValueError):
        return ""
    model, suspects = Model.of(files), []
    for n, (inputs, positions, aims, codes) in by_length.items():
        for ids, wanted in zip(inputs, positions, strict=True):
            missing = [i for i, w in enumerate(wanted) if w is None or (codes is None and w < 0)]
            if missing:
                return f"tokens {ids}: the value at position {missing[0]} is not in the list of values at all"
        wrong = decoded_wrongly(floats(model, inputs).reshape(len(inputs), n, -1), aims, codes)
        suspects += [(wrong[i, j], n, i, j) for i, j in zip(*np.nonzero(~(wrong <= 0)), strict=True)]
        if quick and suspects:
            return "suspected"
    for _, n, i, j in sorted(suspects, key=lambda s: -s[0])[:2]:
        inputs, positions, _, codes = by_length[n]
        if _program_broken(model, int(j), tuple(map(int, inputs[i])), positions[i][j], codes):
            return f"tokens {inputs[i].tolist()}: position {j} does not decode to {positions[i][j]}"
    return _program_run_violation(model, by_length)


def decoded_cases(files: dict[str, bytes], meaning) -> dict[int, tuple]:
    """The cases of each length: all inputs, what is wanted at every position, the same as an array, and the codes."""
    by_length: dict[int, list] = {}
    for case in program_cases(files, meaning):
        by_length.setdefault(len(case[0]), []).append(case)
    result = {}
    for n, group in by_length.items():
        wanted, codes = [w for _, w, _ in group], group[0][2]
        aims = np.array([[np.nan if x is None else float(x) for x in row] for row in wanted])
        result[n] = (np.array([ids for ids, *_ in group]), wanted, aims if codes else aims.astype(int), codes)
    return result


def decoded_wrongly(outputs: np.ndarray, aims: np.ndarray, codes: list | None) -> np.ndarray:
    """How much nearer another value is than the wanted one, for every input and position; positive is wrong."""
    if codes is None:
        wanted = np.take_along_axis(outputs, aims[..., None], axis=2)[..., 0]
        others = outputs.copy()
        np.put_along_axis(others, aims[..., None], -np.inf, axis=2)
        return others.max(axis=2) - wanted
    numbers, listed = outputs[..., 0], np.array([float(c) for c in codes])
    distances = np.abs(numbers[..., None] - listed)
    distances = np.where(listed == aims[..., None], np.inf, distances)
    return np.abs(aims - numbers) - distances.min(axis=2)


def _program_run_violation(model: Model, by_length: dict[int, tuple]) -> str:
    """The same for a run in the stored type, whose decoded outputs are claimed, too."""
    kind = run_type(model)
    for n, (inputs, positions, aims, codes) in by_length.items() if kind is not None else ():
        outputs = floats(model, inputs, kind).astype(np.float64).reshape(len(inputs), n, -1)
        for i, j in zip(*np.nonzero(~(decoded_wrongly(outputs, aims, codes) < 0)), strict=True):
            row, wanted = outputs[i, j], positions[i][j]
            if codes is None:
                wrong = any(x > row[wanted] for k, x in enumerate(row) if k != wanted)
            else:
                x = Fraction(float(row[0])) if np.isfinite(row[0]) else None
                wrong = x is None or any(abs(x - c) < abs(x - wanted) for c in codes)
            if wrong:
                return f"tokens {inputs[i].tolist()}: a run in {kind.__name__} decodes wrongly at position {j}"
    return ""


def _program_broken(model: Model, position: int, ids: tuple[int, ...], wanted, codes: list | None) -> bool:
    try:
        flat = exact(model, [Fraction(i) for i in ids])
    except Undecided:
        return False
    width = len(flat) // len(ids)
    row = flat[position * width : (position + 1) * width]
    with precisely():
        if codes is None:
            return any(bool(x > row[wanted]) for i, x in enumerate(row) if i != wanted)
        balls = [(c, abs(row[0] - arb(fmpq(c.numerator, c.denominator)))) for c in codes]
        own = next(d for c, d in balls if c == wanted)
        return any(bool(d < own) for c, d in balls if c != wanted)
