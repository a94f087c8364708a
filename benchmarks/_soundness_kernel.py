"""Operations of the kernel one by one, held against values of 200 digits without any tolerance.

A form speaks about every place e of its box separately: whatever numbers it allows at e, an operation on forms has to
allow the result. So forms are *drawn*, not computed, and the numbers are taken at the very ends of what is allowed; a
remainder, a cross term or a radius that an operation forgets is then missed by all of its size. Half of the trials run
at a precision of a few bits, where a rounding that is not accounted for is as large as any other mistake.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from contextlib import contextmanager
from fractions import Fraction

import flint
from _soundness_exact import _fmpq, precisely
from flint import arb, arb_mat

OPERATIONS = (
    *(
        "add",
        "sub",
        "scale",
        "mul",
        "square",
        "div",
        "div",
        "pow",
        "max",
        "min",
        "either",
        "relu",
        "tightest",
        "bounds",
    ),
    *("compare", "gelu", "neg", "abs", "sqrt", "exp", "log", "sin", "cos", "tan", "tanh", "atan", "erf"),
)
FUNCTIONS = ("neg", "abs", "sqrt", "exp", "log", "sin", "cos", "tan", "tanh", "atan", "erf")


@contextmanager
def rounded_to(bits: int):
    """The kernel at its own settings, but for the precision."""
    from certiformer.kernel.balls import working_precision

    working_precision()
    flint.ctx.prec = bits
    try:
        yield
    finally:
        working_precision()


def few_bits(rng: random.Random) -> int:
    return rng.choice((96, 96, 53, 24, 12, 8))


# --- drawn forms -----------------------------------------------------------------------------------


def size_of(rng: random.Random) -> float:
    return 10 ** rng.choice((rng.uniform(-1, 1), rng.uniform(-1, 1), rng.uniform(-6, 4), rng.uniform(-30, 30)))


def draw_number(rng: random.Random, size: float) -> float:
    return rng.choice((0.0, 1.0, -1.0, 0.5, rng.uniform(-1, 1), rng.uniform(-1, 1), rng.uniform(-1, 1))) * size


class Drawn:
    """A form and one number that it allows at the place e."""

    def __init__(
        self, rng: random.Random, tab, e: list[float], centre: float | None = None, spread: float | None = None
    ):
        from certiformer.kernel.taylor import Form, bounds

        size = size_of(rng) if spread is None else spread
        if rng.random() < 0.6 and all(abs(t) == 1 for t in e):
            self.aligned(rng, tab, e, centre, size)
            return
        coef, parts = {}, []
        with precisely():
            for i in range(tab.size):
                if i and rng.random() < 0.4:
                    continue
                middle = draw_number(rng, size) if i or centre is None else centre
                radius = rng.choice((0.0, 0.0, 0.25 * abs(middle), 2.0**-30 * size))
                if not (middle or radius):
                    continue
                coef[i] = arb(middle, radius)
                inside = arb(middle) + rng.choice((-1, -1, 1, 1, 0)) * coef[i].rad()
                parts.append(inside * monomial(tab, i, e))
            polynomial = sum(parts, arb(0))
            rem = arb(rng.choice((0.0, 0.0, rng.uniform(0, 1), 2.0 ** rng.randint(-40, 0), rng.uniform(0, 3))) * size)
            value = polynomial + rng.choice((-1, 1, 1, -1, 0, rng.uniform(-1, 1))) * rem
            value = value.mid() if value.rad() else value
        coef = dict(rng.sample(list(coef.items()), len(coef)))  # in no order
        form = Form(tab, coef, rem, -arb.pos_inf(), arb.pos_inf())
        low, high = bounds(form)
        with precisely():
            self.honest = bool(low <= value <= high)  # what `bounds` says of a form without an interval
            if rng.random() < 0.5:  # an interval that the number only just respects
                below, above = (rng.choice((0, 0, rng.uniform(0, 2) * size, None)) for _ in range(2))
                low = low if below is None else (value - below).lower()
                high = high if above is None else (value + above).upper()
        form.low, form.high = low, high
        self.form, self.value = form, value

    def aligned(self, rng: random.Random, tab, e: list[float], centre: float | None, size: float) -> None:
        """All terms pull the same way at the corner e, and are short numbers: every bound is attained."""
        from certiformer.kernel.taylor import Form, bounds

        sign, size = rng.choice((-1, 1)), 2.0 ** round(math.log2(size or 1.0))
        short = [0.125, 0.25, 0.375, 0.5, 0.75, 1.0]
        coef = {0: arb(centre if centre is not None else rng.choice((0.0, 1.0, -3.0)))}
        for i in range(1, tab.size):
            if rng.random() < 0.8 and not (tab.even[i] and rng.random() < 0.7):
                coef[i] = arb(rng.choice(short) * size * sign * float(monomial(tab, i, e)))
        rem = arb(rng.choice((0.0, 0.0, *short)) * size)
        with precisely():
            value = sum((c * monomial(tab, i, e) for i, c in coef.items()), arb(0)) + sign * rem
        self.form, self.value = Form(tab, coef, rem, -arb.pos_inf(), arb.pos_inf()), value
        low, high = bounds(self.form)
        self.form.low, self.form.high = low, high
        with precisely():
            self.honest = bool(low <= value <= high)


def monomial(tab, i: int, e: list[float]) -> arb:
    result = arb(1)
    for t, power in zip(e, tab.monomials[i], strict=True):
        for _ in range(power):
            result = result * arb(t)
    return result


def draw_place(rng: random.Random, dimension: int) -> list[float]:
    if rng.random() < 0.5:
        return [rng.choice((-1.0, 1.0)) for _ in range(dimension)]
    return [rng.choice((-1.0, 1.0, 0.0, rng.uniform(-1, 1), 0.5)) for _ in range(dimension)]


def lost(form, e: list[float], value: arb) -> str:
    """Why a form does not allow the value at the place e; empty if it does."""
    if form.singular or not value.is_finite():
        return ""
    with precisely():
        total = sum((c * monomial(form.table, i, e) for i, c in form.coef.items()), arb(0))
        if abs(value - total) > form.rem:
            return f"{value.str(20)} is not within {form.rem.str(5)} of {total.str(20)}"
        if value < form.low or value > form.high:
            return f"{value.str(20)} is outside of [{form.low.str(20)}, {form.high.str(20)}]"
    return ""


def exactly(name: str, a: arb) -> arb | None:
    """The value of a function at 700 bits; None where it has none."""
    if (name == "log" and not a > 0) or (name == "sqrt" and not a >= 0):
        return None
    if name == "neg":
        return -a
    value = abs(a) if name == "abs" else getattr(a, name)()
    return value if value.is_finite() else None


# --- forms -----------------------------------------------------------------------------------------


def operations(rng: random.Random) -> str:
    """One operation on drawn forms."""
    from certiformer.kernel import taylor
    from certiformer.kernel.taylor import FormAlgebra

    dimension, order = rng.choice(((1, 0), (1, 1), (1, 2), (1, 3), (1, 4), (2, 1), (2, 2), (2, 3), (3, 2)))
    tab, e = taylor.table(dimension, order), draw_place(rng, dimension)
    name = rng.choice(OPERATIONS)
    with rounded_to(few_bits(rng)):
        algebra = FormAlgebra(tab)
        if name in FUNCTIONS or name == "gelu":
            near = {"log": 2.0, "sqrt": 2.0}.get(name, rng.choice((0.0, rng.uniform(-3, 3))))
            a = Drawn(rng, tab, e, near, rng.choice((0.0, 1e-9, 1e-3, 0.2, 0.5, 1.0)))
        else:
            a = Drawn(rng, tab, e)
        b = Drawn(rng, tab, e, rng.choice((None, 3.0, -3.0, 0.5)), rng.choice((None, 0.1, 1.0)))
        if not (a.honest and b.honest):
            return f"bounds: {a.value.str(20)} or {b.value.str(20)} at {e} are outside of what a form of theirs says"
        x, y = a.value, b.value
        factor = arb(draw_number(rng, 2.0), rng.choice((0.0, 0.5, 1e-9)))
        n = rng.choice((0, 1, 2, 3, 4, 5, 7))
        if name == "bounds":
            return bounded(a.form, x)
        if name == "compare":
            word = rng.choice(("lt", "le"))
            said = algebra.compare(word, a.form, b.form)
            with precisely():
                true = bool(x < y) if word == "lt" else bool(x <= y)
            return "" if said is None or said == true else f"{x} {word} {y} is said to be {said}"
        made = {
            "add": lambda: taylor.add(a.form, b.form), "sub": lambda: taylor.add(a.form, b.form, -1),
            "scale": lambda: taylor.scale(a.form, factor), "mul": lambda: taylor.multiply(a.form, b.form),
            "square": lambda: taylor.multiply(a.form, a.form), "div": lambda: taylor.divide(a.form, b.form),
            "pow": lambda: algebra.pow(a.form, n), "max": lambda: algebra.max(a.form, b.form),
            "min": lambda: algebra.min(a.form, b.form), "either": lambda: taylor.either(a.form, b.form),
            "relu": lambda: taylor.relu(a.form), "tightest": lambda: taylor.tightest(a.form), "gelu": lambda: gelu(a.form),
            **{word: (lambda word=word: getattr(algebra, word)(a.form)) for word in FUNCTIONS},
        }[name]()  # fmt: skip
    with precisely():
        one = factor.mid() + rng.choice((-1, 1)) * factor.rad()
        both = rng.choice((x, y))
        meant = {
            "add": lambda: x + y, "sub": lambda: x - y, "scale": lambda: x * one, "mul": lambda: x * y,
            "square": lambda: x * x, "div": lambda: None if y.contains(0) else x / y, "pow": lambda: times(x, n),
            "max": lambda: x.max(y), "min": lambda: x.min(y), "either": lambda: both, "relu": lambda: x.max(arb(0)),
            "tightest": lambda: x, "gelu": lambda: x * (1 + (x / arb(2).sqrt()).erf()) / 2,
            **{word: (lambda word=word: exactly(word, x)) for word in FUNCTIONS},
        }[name]()  # fmt: skip
    wrong = (
        not made.singular and "there is no value, and the form does not say so"
        if meant is None
        else lost(made, e, meant)
    )
    return f"{name} at {e}, order {order}, of {x.str(17)} and {y.str(17)}: {wrong}" if wrong else ""


def sharp(rng: random.Random) -> str:
    """A remainder is not much larger than Taylor's: a kernel that is right and says nothing would prove nothing."""
    from certiformer.kernel import taylor
    from certiformer.kernel.balls import Box
    from certiformer.kernel.taylor import FormAlgebra

    order, name = rng.randint(1, 6), rng.choice([name for name in FUNCTIONS if name not in ("neg", "abs")])
    centre, radius = rng.uniform(0.4, 1.2), 2.0 ** rng.randint(-12, -4)
    with rounded_to(96):
        x = taylor.variable(taylor.table(1, order), Box((arb(centre),), (arb(radius),)), 0)
        made = getattr(FormAlgebra(x.table), name)(x)
        ends = taylor.bounds(made)
        wide = taylor.variable(x.table, Box((arb(centre),), (arb(rng.choice((1.0, 3.0, 10.0))),)), 0)
        for bounded_one in ("sin", "cos", "tanh", "erf"):
            low, high = taylor.bounds(getattr(FormAlgebra(x.table), bounded_one)(wide))
            if not (low >= -1 - 1e-9 and high <= 1 + 1e-9):
                return f"{bounded_one} is said to be in [{low.str(5)}, {high.str(5)}]"
    with precisely():
        whole = [coefficient(name, arb(centre + t * radius), order + 1) for t in (-1.0, -0.5, 0.0, 0.5, 1.0)]
        most = max(abs(c) for c in whole) * arb(radius) ** (order + 1)
        step = abs(exactly(name, arb(centre + radius)) - exactly(name, arb(centre - radius)))
    factor = 1.3 if name in ("exp", "log", "sqrt") else 40
    if not made.rem <= factor * most + 1e-24 or not ends[1] - ends[0] <= 1.5 * step + radius**2:
        place = f"{name} of order {order} on {centre} +- {radius}"
        return f"{place} has the remainder {made.rem.str(5)}, not about {most.str(5)}"
    return ""


def coefficient(name: str, x: arb, j: int) -> arb:
    """The j-th Taylor coefficient of a function at x, by python-flint's power series at 700 bits."""
    from flint import arb_series

    flint.ctx.cap = 32
    series = arb_series([x, 1], prec=j + 1)
    if name == "tanh":
        powers = (2 * series).exp()
        return ((powers - 1) / (powers + 1))[j]
    return getattr(series, name)()[j]


def gelu(form):
    from certiformer.kernel.arrays import gelu as kernel_gelu

    return kernel_gelu(form)


def times(x: arb, n: int) -> arb:
    result = arb(1)
    for _ in range(n):
        result = result * x
    return result


def bounded(form, x: arb) -> str:
    """What is said of all numbers that a form allows holds of this one."""
    from certiformer.kernel import taylor

    low, high = taylor.bounds(form)
    most, whole = taylor.magnitude(form), taylor.value_ball(form)
    with precisely():
        if x < low or x > high or abs(x) > most or not whole.contains(x):
            return f"{x.str(20)} is outside of the bounds {low}, {high}, {most} or {whole}"
    return ""


# --- arrays of forms -------------------------------------------------------------------------------


def attention(rng: random.Random) -> str:
    """Linear maps, products, heads and norms of drawn arrays of forms."""
    from certiformer.kernel import taylor

    dimension, order = rng.choice(((1, 0), (1, 1), (1, 2), (2, 1), (2, 2)))
    tab, e = taylor.table(dimension, order), draw_place(rng, dimension)
    name = rng.choice(("linear", "contract", "relu", "plus", "norm", "mix", "mix", "mix", "mix", "hard ties"))
    with rounded_to(few_bits(rng)):
        made, wanted = CASES[name](rng, lambda m, n, centre=None: drawn_array(rng, tab, e, m, n, centre))
    for r, row in enumerate(wanted):
        for c, value in enumerate(row):
            wrong = lost(made.form(r, c), e, value)
            if wrong:
                return f"{name} at {e}, order {order}, entry {r}, {c}: {wrong}"
    return ""


def drawn_array(rng: random.Random, tab, e: list[float], rows: int, columns: int, centre: float | None):
    """An array of drawn forms, which keeps no intervals, and what they allow."""
    from certiformer.kernel import arrays

    spread = rng.choice((0.0, 1e-3, 0.1, 0.5, 2.0))
    middles = [[rng.uniform(-2, 2) if centre is None else centre for _ in range(columns)] for _ in range(rows)]
    drawn = [[Drawn(rng, tab, e, middle, spread) for middle in row] for row in middles]
    for d in (d for row in drawn for d in row):
        d.form.low, d.form.high = -arb.pos_inf(), arb.pos_inf()
    return arrays.from_forms(tab, [[d.form for d in row] for row in drawn]), [[d.value for d in row] for row in drawn]


def _linear(rng: random.Random, array: Callable):
    from certiformer.kernel import arrays

    a, x = array(rng.randint(1, 4), rng.randint(1, 3))
    weight = [[arb(draw_number(rng, 2.0)) for _ in range(2)] for _ in x[0]]
    shift = [arb(draw_number(rng, 1.0)) for _ in range(2)] if rng.random() < 0.7 else None
    matrix = arb_mat(weight)
    made = arrays.linear(a, matrix, arrays.absolute(matrix), shift)
    with precisely():
        return made, [[v + s for v, s in zip(row, shift or [arb(0)] * 2, strict=True)] for row in product_of(x, weight)]


def _contract(rng: random.Random, array: Callable):
    from certiformer.kernel import arrays

    (a, x), (b, y) = (array(rows, columns) for rows, columns in ((2, 3), (3, 2)))
    made = arrays.contract(a, b)
    with precisely():
        return made, product_of(x, y)


def _plus(rng: random.Random, array: Callable):
    from certiformer.kernel import arrays

    (a, x), (b, y) = array(3, 2), array(3, 2)
    made = arrays.transpose(arrays.plus(a, b))
    with precisely():
        return made, [[x[r][c] + y[r][c] for r in range(3)] for c in range(2)]


def _relu(rng: random.Random, array: Callable):
    from certiformer.kernel import arrays

    a, x = array(rng.randint(1, 4), 2, rng.choice((None, 0.0)))
    return arrays.relu(a), [[v.max(arb(0)) for v in row] for row in x]


def _norm(rng: random.Random, array: Callable):
    from certiformer.kernel import arrays

    a, x = array(2, rng.randint(1, 3))
    epsilon, gain = rng.choice((1e-5, 0.125)), [arb(draw_number(rng, 1.0)) for _ in x[0]]
    made = arrays.normalised(a, arb(epsilon), gain, gain[::-1])
    with precisely():
        return made, [normed(row, epsilon, gain, gain[::-1]) for row in x]


def _mix(rng: random.Random, array: Callable):
    from certiformer.kernel import arrays

    b, y = array(rng.randint(1, 4), 2)
    s, (scores,) = array(1, len(y), rng.choice((0.0, None, None)))
    kind = rng.choice(("softmax", "softmax", "linear", "relu", "hard", "nearest"))
    made = arrays.mix(kind, [s.form(0, j) for j in range(len(y))], b)
    with precisely():
        return made, product_of([shares(kind, scores)], y)


def _ties(rng: random.Random, array: Callable):
    """Scores that are equal numbers on the whole box."""
    from certiformer.kernel import arrays, taylor

    b, y = array(rng.randint(1, 4), 2)
    scores = [arb(rng.choice((1.0, 1.0, 0.5, 0.0))) for _ in y]
    made = arrays.mix("hard", [taylor.constant(b.table, s) for s in scores], b)
    with precisely():
        return made, product_of([shares("hard", scores)], y)


CASES = {
    "linear": _linear,
    "contract": _contract,
    "plus": _plus,
    "relu": _relu,
    "norm": _norm,
    "mix": _mix,
    "hard ties": _ties,
}


def product_of(x: list[list[arb]], y: list[list[arb]]) -> list[list[arb]]:
    return [[sum((p * row[j] for p, row in zip(line, y, strict=True)), arb(0)) for j in range(len(y[0]))] for line in x]


def normed(row: list[arb], epsilon: float, gain: list[arb], shift: list[arb]) -> list[arb]:
    mean = sum(row, arb(0)) / len(row)
    root = (sum(((v - mean) * (v - mean) for v in row), arb(0)) / len(row) + arb(epsilon)).sqrt()
    return [(v - mean) / root * g + s for v, g, s in zip(row, gain, shift, strict=True)]


def shares(kind: str, scores: list[arb]) -> list[arb]:
    """The weights of one query (docs/model.md); scores that 700 bits do not tell apart give no number."""
    if kind == "linear":
        return scores
    if kind == "relu":
        return [s.max(arb(0)) for s in scores]
    if kind == "softmax":
        powers = [(s - scores[0]).exp() for s in scores]
        return [p / sum(powers, arb(0)) for p in powers]
    scores = [-abs(s) for s in scores] if kind == "nearest" else scores
    best = scores[0]
    for s in scores:
        best = s if s > best else best
    chosen = [not s < best for s in scores]
    if sum(chosen) > 1 and any(c and s.rad() > 0 for c, s in zip(chosen, scores, strict=True)):
        return [arb.nan()] * len(scores)
    return [arb(int(c)) / sum(chosen) for c in chosen]


# --- balls, texts and covers -----------------------------------------------------------------------


def texts(rng: random.Random) -> str:
    """Numbers as text: rounded as the word beside them says, and read back as they were written."""
    from certiformer.kernel import balls, programs

    value = Fraction(
        rng.randint(-(10 ** rng.randint(0, 25)), 10 ** rng.randint(0, 25)), rng.randint(1, 10 ** rng.randint(0, 25))
    )
    if rng.random() < 0.3:
        value = Fraction(draw_number(rng, size_of(rng)))
    up = rng.random() < 0.5
    digits = rng.choice((1, 3, 9, 17))
    shown = [programs.decimal_text(value, up=up, digits=digits), programs.decimal_text(value, up=up)]
    rounded = rng.choice((programs.rounded_text(value, up=up), *shown))
    read = Fraction(rounded)
    if (read < value) if up else (read > value):
        return f"{rounded} is on the wrong side of {value}"
    if abs(read - value) > abs(value) * Fraction(10) ** (1 - min(digits, 9)):
        return f"{rounded} is far from {value}"
    if programs.exact(shown[0]) != Fraction(shown[0]):
        return f"{shown[0]} is read as another number"
    if read_exactly(programs.exact_text(value)) != value:
        return f"the exact text of {value} is {programs.exact_text(value)}"
    pair = [value, value + Fraction(rng.choice((0, 1)), 7)]
    ends = [Fraction(word) for word in programs.range_text(pair).replace("between", "").split("and")]
    if ends[0] > pair[0] or ends[-1] < pair[1]:
        return f"{pair} is shown as {programs.range_text(pair)}"
    with rounded_to(few_bits(rng)):
        number = balls.ball(value)
        with precisely():
            if not number.contains(arb(_fmpq(value))):
                return f"the ball of {value} misses it"
        edge = number.upper() if up else number.lower()
        if number.is_finite() and value > 0:
            told = Fraction(balls.decimal(edge, up))
            with precisely():
                if bool(arb(_fmpq(told)) < edge) if up else bool(arb(_fmpq(told)) > edge):
                    return f"{told} is on the wrong side of {edge}"
        a, n = arb(draw_number(rng, 3.0), rng.choice((0.0, 0.5))), rng.randint(0, 9)
        raised, one = balls.power(a, n), a.mid() + rng.choice((-1, 0, 1)) * a.rad()
        with precisely():
            if not raised.contains(times(a.mid() + rng.choice((-1, 0, 1)) * a.rad(), n)):
                return f"{one}^{n} is not in {raised}"
    return _ordered(rng, balls)


def read_exactly(text: str) -> Fraction:
    """A number as `exact_text` writes it; what stands in brackets must be near it."""
    number, _, about = text.partition(" (about ")
    if "/2^" in number:
        top, _, power = number.partition("/2^")
        value = Fraction(int(top), 2 ** int(power))
    elif "*2^" in number:
        top, _, power = number.partition("*2^")
        value = Fraction(int(top) * 2 ** int(power))
    else:
        value = Fraction(number)
    near = not about or abs(Fraction(about.rstrip(")")) - value) <= abs(value) / 10**5
    return value if near else Fraction(-1, 3) * value - 1


def _ordered(rng: random.Random, balls) -> str:
    """The larger and the smaller of two exact balls, with nan as the answer where one is nan."""
    a, b = (
        rng.choice((arb(draw_number(rng, 1.0)), arb(1), arb.pos_inf(), -arb.pos_inf(), arb.nan())) for _ in range(2)
    )
    most, least = balls.larger(a, b), balls.smaller(a, b)
    if a.is_nan() or b.is_nan():
        return "" if most.is_nan() and least.is_nan() and balls.largest([a, b]).is_nan() else "a nan was lost"
    whole = balls.hull(least, most)
    if not (most >= a and most >= b and least <= a and least <= b and most in (a, b) and least in (a, b)):
        return f"{most} and {least} are not the ends of {a} and {b}"
    if balls.largest([a, b]) < most:
        return f"{balls.largest([a, b])} is not the largest of {a} and {b}"
    return "" if whole.contains(a) and whole.contains(b) else f"{whole} does not contain {a} and {b}"


def draw_tree(rng: random.Random, dimension: int, depth: int) -> bytes:
    if depth == 0 or rng.random() < 0.3:
        return b"\xff"
    return (
        bytes([rng.randrange(dimension)]) + draw_tree(rng, dimension, depth - 1) + draw_tree(rng, dimension, depth - 1)
    )


class Interval:
    """A domain as the kernel reads it: texts, and constant programs for the ends."""

    def __init__(self, ends: list[tuple[Fraction, Fraction]]):
        self.bounds = tuple((str(a), str(b)) for a, b in ends)

    def ends(self) -> list:
        from certiformer.kernel.programs import Program

        return [tuple(Program(1, (("const", text),), (0,)) for text in pair) for pair in self.bounds]


def covers(rng: random.Random) -> str:
    """Trees cover their box; a bound that a function exceeds at a point of the box is never proved."""
    from certiformer.errors import BadInput
    from certiformer.kernel import rules
    from certiformer.kernel.balls import BallDomain

    dimension = rng.choice((1, 2))
    tree, low = draw_tree(rng, dimension, 4), Fraction(rng.randint(-30, 30), rng.choice((1, 3, 10)))
    ends = [(low, low + Fraction(rng.randint(1, 30), rng.choice((1, 7, 10)))) for _ in range(dimension)]
    cells, where = (
        [cell for cell, _ in rules.subtrees(tree, dimension, 0)],
        [Fraction(rng.randrange(1024), 1024) for _ in range(dimension)],
    )
    within = [
        all(Fraction(k, 2**m) <= t < Fraction(k + 1, 2**m) for (m, k), t in zip(cell, where, strict=True))
        for cell in cells
    ]
    if sum(within) != 1 or sum(Fraction(1, 2 ** sum(m for m, _ in cell)) for cell in cells) != 1:
        return f"{sum(within)} leaves of {list(tree)} hold {where}"
    pieces = list(rules.subtrees(tree, dimension, rng.choice((0, 1, 3, 100))))
    if b"".join(part for _, part in pieces).count(rules.LEAF) != len(cells):
        return f"the pieces of {list(tree)} lose leaves"
    bits = few_bits(rng)
    with rounded_to(bits):
        try:
            domain = BallDomain(Interval(ends))
        except BadInput:  # a few bits do not tell the ends apart
            return ""
        box = domain.box(cells[within.index(True)])
        with precisely():
            point = [arb(_fmpq(a + (b - a) * t)) for (a, b), t in zip(ends, where, strict=True)]
            for axis, x in enumerate(point):
                if x < box.low(axis) or x > box.high(axis) or abs(x - box.centre[axis]) > box.radius[axis]:
                    return f"the box of {cells[within.index(True)]} misses {x.str(20)} at {bits} bits"
            outside = [arb(_fmpq(b + Fraction(1, 2**120))) for _, b in ends]
        if domain.contains(outside):
            return f"{outside} is said to lie in {ends}"
        turn = tuple(rng.randint(-3, 3) for _ in range(dimension))
        range_ = domain.along(turn).ends[0]
        with precisely():
            s = sum((c * x for c, x in zip(turn, point, strict=True)), arb(0))
            if s < range_[0] or s > range_[1]:
                return f"{turn} . x leaves its range"
    return _proved(rng, tree if dimension == 1 else b"\xff", ends[0], bits)


SHAPES = (  # of a small function of x and its largest absolute value on [-1, 1], where it takes it
    ([["var", 0]], Fraction(1)),
    ([["var", 0], ["mul", 0, 0]], Fraction(1)),
    ([["var", 0], ["mul", 0, 0], ["const", "1"], ["sub", 2, 1]], Fraction(1)),
    ([["var", 0], ["abs", 0], ["const", "1/2"], ["sub", 1, 2]], Fraction(1, 2)),
    ([["var", 0], ["const", "1"], ["where", "lt", 0, 1, 0, 1]], Fraction(1)),
)


def _proved(rng: random.Random, tree: bytes, end: tuple[Fraction, Fraction], bits: int) -> str:
    """A function on an interval whose largest value is known: bounds above it are proved, bounds below it never."""
    from certiformer.kernel import Refused
    from certiformer.kernel.balls import BallDomain, ball
    from certiformer.kernel.problem import Problem, ProgramFunction
    from certiformer.kernel.programs import Program
    from certiformer.kernel.rules import prove_piece, root

    nodes, most = rng.choice(SHAPES)
    program = Program(1, tuple(map(tuple, nodes)), (len(nodes) - 1,))
    shifted = Program(1, (("const", "0"),), (0,))
    order = rng.choice((0, 1, 2, 5))
    for factor, holds in ((1 - Fraction(10) ** -rng.randint(1, 18), False), (Fraction(3, 2), True)):
        with rounded_to(bits if not holds else 96):
            sides = [ProgramFunction(program), ProgramFunction(shifted)]
            rng.shuffle(sides)
            problem, counted = Problem(*sides, BallDomain(Interval([(Fraction(-1), Fraction(1))]))), []
            try:
                upper = prove_piece(problem, root(1), tree, order, ball(most * factor).lower(), counted.append)
            except Refused:
                if holds:
                    return f"{nodes} is not proved to be at most {most * factor}"
                continue
            if not holds:
                return f"{nodes} is proved to be at most {factor} of {most} at order {order} with {bits} bits"
            if upper < ball(most) or sum(counted) != tree.count(255):
                return f"{nodes} is proved to be at most {upper} on {sum(counted)} leaves"
    return ""


KERNEL: dict[str, Callable[[random.Random], str]] = {
    "operations": operations, "sharpness": sharp, "attention": attention, "texts": texts, "covers": covers,
}  # fmt: skip
