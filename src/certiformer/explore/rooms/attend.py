"""*Attend*: the small programs of one head, as matrices: position codes, reversal, pooling, and what distances cannot do.

The weights that are drawn are measured in float64. What is called proved is a bound of a theorem, enclosed in balls and
rounded outwards.
"""

from __future__ import annotations

from typing import Any

from certiformer.errors import BadInput
from certiformer.explore.requests import choice, number, read_entries
from certiformer.explore.rooms.events import Emit
from certiformer.report.live import numbers

PROGRAMS = ("codes", "reversal", "pooling", "distances")
MOST_TOKENS, LARGEST = 16, 1000.0
FREQUENCIES = 4


def read(request: dict[str, Any]) -> dict[str, Any]:
    """What may be asked."""
    return read_entries(
        request,
        program=choice(*PROGRAMS),
        tokens=_tokens,
        sharpness=number(0, 200),
        attention=choice("soft", "hard"),
        positions=choice("on", "off"),
    )


def _tokens(value: Any, name: str) -> list[float]:
    if type(value) is not list or not 2 <= len(value) <= MOST_TOKENS:
        raise BadInput(f"{name} is a list of 2 to {MOST_TOKENS} numbers")
    return [number(-LARGEST, LARGEST)(x, name) for x in value]


def run(request: dict[str, Any], folder: str | None, emit: Emit) -> dict[str, Any]:
    """The weights of the head, what it answers, what was wanted, and how far that is apart."""
    import numpy as np

    from certiformer.expressivity.position_head import position_head

    tokens, program = np.array(request["tokens"]), request["program"]
    n = len(tokens)
    table = _table(program, n, request["sharpness"]) if request["positions"] == "on" else None
    model = position_head(n, score_bias=table)
    weights = model.attention_weights(tokens[:, None])[0][0][0]
    if request["attention"] == "hard":
        weights = _hard(np.zeros((n, n)) if table is None else _square(table, n))
    answers = weights @ tokens
    wanted = _wanted(program, tokens)
    proved = _proved(program, request, n, float(np.abs(tokens).max()))
    return {
        "weights": numbers(weights, 7),
        "answers": numbers(answers, 9),
        "wanted": numbers(wanted, 9),
        "measured": float(np.abs(answers - wanted)[_asked(program, n)].max()),
        **proved,
    }


def _table(program: str, n: int, sharpness: float) -> Any:
    """The scores that the head adds: row the position that looks."""
    import numpy as np

    if program == "reversal":
        return sharpness * np.eye(n)[::-1]
    if program == "codes":
        positions = np.arange(n)
        return sharpness * _code_scores(positions[:, None] - 1 - positions[None, :], np.cos) / FREQUENCIES
    if program == "distances":
        return -sharpness * np.abs(np.arange(-(n - 1), n) - 1) / n  # the nearer to the predecessor, the more
    return None


def _code_scores(differences: Any, cosine: Any) -> Any:
    """The product of the sinusoidal code of i, turned by one step, with that of j: a sum of cosines of i - 1 - j."""
    return sum(cosine(frequency * differences) for frequency in _frequencies())


def _frequencies() -> list[float]:
    return [2.0 ** (1 - k) for k in range(FREQUENCIES)]


def _square(table: Any, n: int) -> Any:
    import numpy as np

    if table.ndim == 2:
        return table
    rows, columns = np.indices((n, n))
    return table[rows - columns + n - 1]


def _hard(scores: Any) -> Any:
    """All weight on the best score, shared equally where several are best."""
    best = scores >= scores.max(axis=1, keepdims=True) - 1e-12
    return best / best.sum(axis=1, keepdims=True)


def _wanted(program: str, tokens: Any) -> Any:
    import numpy as np

    n = len(tokens)
    if program == "reversal":
        return tokens[::-1]
    if program == "codes":
        return np.concatenate([tokens[:1], tokens[:-1]])
    if program == "distances":
        return (np.arange(n) + 1) / n
    return np.full(n, tokens.mean())


def _asked(program: str, n: int) -> slice:
    """The positions that the program speaks of: the first one has no predecessor."""
    return slice(1, n) if program == "codes" else slice(0, n)


def _proved(program: str, request: dict[str, Any], n: int, largest: float) -> dict[str, Any]:
    """What a theorem says of this very head, as a text rounded outwards; nothing where none speaks of it."""
    from fractions import Fraction

    from certiformer.kernel.balls import ball, decimal, working_precision

    working_precision()
    on, soft = request["positions"] == "on", request["attention"] == "soft"
    if program == "distances":
        bound = f"{n - 1}/{2 * n}"
        text = "whatever the weights are, some sequence is answered wrongly by at least"
        return {"theorem": "expressivity.relative_bias_not_universal", "proved": bound, "says": text, "kind": "lower"}
    if program == "pooling":
        text = "every position gets the same weight, exactly, in real arithmetic; the error is"
        return {"theorem": "expressivity.uniform_pooling", "proved": "0", "says": text, "kind": "exact"}
    if not on:
        text = "without positions a head cannot tell an order: it answers the same for every permutation of its tokens"
        return {"theorem": "expressivity.permutation_equivariance", "proved": None, "says": text, "kind": "none"}
    if not soft:
        text = "the limit of infinite sharpness copies exactly; the error is"
        return {"theorem": "expressivity.softmax_temperature_limit", "proved": "0", "says": text, "kind": "exact"}
    if program == "reversal":
        from certiformer.expressivity.reversal import error_bound

        bound = decimal(error_bound(n, Fraction(request["sharpness"]), Fraction(largest)), up=True)
        text = "for all tokens of this size the error is at most"
        return {"theorem": "expressivity.reversal", "proved": bound, "says": text, "kind": "upper"}
    gap = min(_code_gap(difference) for difference in range(-n, n) if difference != 0)
    leaked = (n - 1) * (-gap * ball(Fraction(request["sharpness"])) / FREQUENCIES).exp()
    bound = decimal(2 * ball(Fraction(largest)) * leaked / (1 + leaked), up=True)
    text = "for all tokens of this size the error is at most"
    return {"theorem": "expressivity.softmax_temperature_limit", "proved": bound, "says": text, "kind": "upper"}


def _code_gap(difference: int) -> Any:
    """How much less a wrong distance scores than the right one, from below."""
    from fractions import Fraction

    from certiformer.kernel.balls import ball

    scores = [ball(Fraction(frequency) * difference).cos() for frequency in _frequencies()]
    return (FREQUENCIES - sum(scores[1:], scores[0])).lower()
