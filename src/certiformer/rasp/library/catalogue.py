"""The list of all library programs: how to make each one, what it means in plain Python, and on which vocabularies.

An oracle is a function from the input list to the list of answers, with None for undefined. It is written to be read, not
to be fast, and shares no code with the programs. Those that do not fit on a line of the catalogue stand before it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from certiformer.rasp.library import brackets, counting, ordering, retrieval
from certiformer.rasp.library.patterns import make_copy, make_length, shift_by
from certiformer.rasp.sequences import SOp, tokens
from certiformer.rasp.value import Value


def balanced(xs: list[Any], pairs: list[str]) -> bool:
    """Whether brackets are balanced and nested, by the textbook stack; other tokens are ignored."""
    stack: list[str] = []
    partner = {pair[1]: pair[0] for pair in pairs}
    for x in xs:
        if x in partner.values():
            stack.append(x)
        elif x in partner and (not stack or stack.pop() != partner[x]):
            return False
    return not stack


def induction(xs: list[Any]) -> list[Any]:
    """What followed the last earlier occurrence of each token."""
    earlier = [[j for j in range(1, i + 1) if xs[j - 1] == x] for i, x in enumerate(xs)]
    return [xs[found[-1]] if found else None for found in earlier]


def recall(xs: list[Any]) -> list[Any]:
    """The input is key value key value ...; at every key, the value of its last earlier pair."""
    memory: dict[Any, Any] = {}
    answers = []
    for i, x in enumerate(xs):
        answers.append(memory.get(x) if i % 2 == 0 else None)
        if i % 2 == 1:
            memory[xs[i - 1]] = x
    return answers


def sum_of_digits(xs: list[Any]) -> list[Any]:
    """The digits of a + b at the digits of a, the carry at the sign, nothing after it."""
    n = len(xs) // 2
    total = sum(int("".join(map(str, part)) or "0") for part in (xs[:n], xs[n + 1 :]))
    return [int(digit) for digit in str(total).zfill(n)[-n:] if n] + [total // 10**n] + [None] * n


Oracle = Callable[[list[Value]], list[Value]]

LETTERS, DIGITS, BITS = ("a", "b", "c"), (1, 2, 3), (0, 1)


@dataclass(frozen=True)
class Entry:
    """A program, its oracle, and a vocabulary; `fits` tells which inputs it is meant for."""

    name: str
    make: Callable[[], SOp]
    oracle: Oracle
    vocab: tuple[Value, ...]
    fits: Callable[[list[Value]], bool] = lambda xs: True


def everywhere(answer: Callable[[list[Value]], Value]) -> Oracle:
    """An oracle that gives the same answer at every position."""
    return lambda xs: [answer(xs)] * len(xs)


def each(answer: Callable[[list[Value], int], Value]) -> Oracle:
    """An oracle that answers position by position."""
    return lambda xs: [answer(xs, i) for i in range(len(xs))]


def mean(xs: list[Any]) -> Fraction | None:
    """The exact mean, None of nothing."""
    return Fraction(sum(xs), len(xs)) if xs else None


def catalogue() -> dict[str, Entry]:
    """All programs by name.

    >>> catalogue()["reverse"].make()("abc")
    ['c', 'b', 'a']
    """
    entries = [*_moving(), *_counting(), *_brackets(), *_finding()]
    return {entry.name: entry for entry in entries}


def _moving() -> list[Entry]:
    by_count: Callable[[list[Value]], list[Value]] = lambda xs: sorted(xs, key=lambda x: -xs.count(x))  # noqa: E731
    return [
        Entry("copy", make_copy, lambda xs: xs, LETTERS),
        Entry("length", make_length, everywhere(len), LETTERS),
        Entry("reverse", lambda: ordering.make_reverse(tokens), lambda xs: xs[::-1], LETTERS),
        Entry("shift", lambda: shift_by(1, tokens), lambda xs: [None, *xs[:-1]], LETTERS),
        Entry("sort", lambda: ordering.make_sort(tokens, tokens), sorted, DIGITS),
        Entry(
            "sort_unique",
            lambda: ordering.make_sort_unique(tokens, tokens),
            sorted,
            tuple(range(60)),
            lambda xs: len(set(xs)) == len(xs),
        ),
        Entry("sort_freq", ordering.make_sort_freq, by_count, LETTERS),
        Entry("min", ordering.make_minimum, everywhere(min), DIGITS),
        Entry("max", ordering.make_maximum, everywhere(max), DIGITS),
        Entry("most_frequent", ordering.make_most_frequent, everywhere(lambda xs: max(xs, key=xs.count)), LETTERS),
        Entry("palindrome", ordering.make_palindrome, everywhere(lambda xs: xs == xs[::-1]), LETTERS),
    ]


def _counting() -> list[Entry]:
    most: Callable[[list[Value]], bool] = lambda xs: 2 * xs.count("a") > len(xs)  # noqa: E731
    rare: Callable[[list[Value]], int] = lambda xs: sum(xs.count(x) <= 2 for x in xs)  # noqa: E731
    return [
        Entry("hist", ordering.make_hist, lambda xs: [xs.count(x) for x in xs], LETTERS),
        Entry("count", lambda: counting.make_count(tokens, "a"), everywhere(lambda xs: xs.count("a")), LETTERS),
        Entry("count_less_freq", lambda: counting.make_count_less_freq(2), everywhere(rare), LETTERS),
        Entry("majority", lambda: counting.make_majority("a"), everywhere(most), LETTERS),
        Entry("parity", lambda: counting.make_parity(1), everywhere(lambda xs: sum(xs) % 2), BITS),
        Entry("sum", counting.make_sum, everywhere(sum), DIGITS),
        Entry("mean", counting.make_mean, everywhere(mean), DIGITS),
        Entry("modular_sum", lambda: counting.make_modular_sum(5), everywhere(lambda xs: sum(xs) % 5), DIGITS),
        Entry(
            "prefix_modular_sum",
            lambda: counting.make_prefix_modular_sum(3),
            each(lambda xs, i: sum(xs[: i + 1]) % 3),
            DIGITS,
        ),
        Entry(
            "window_sum",
            lambda: counting.make_window_sum(3),
            each(lambda xs, i: sum(xs[max(i - 2, 0) : i + 1])),
            DIGITS,
        ),
        Entry(
            "window_max",
            lambda: counting.make_window_maximum(3),
            each(lambda xs, i: max(xs[max(i - 2, 0) : i + 1])),
            DIGITS,
        ),
        Entry(
            "frac_prevs",
            lambda: counting.make_frac_prevs(tokens == "a"),
            each(lambda xs, i: Fraction(xs[: i + 1].count("a"), i + 1)),
            LETTERS,
        ),
    ]


def _brackets() -> list[Entry]:
    one, two, three = ["()"], ["()", "[]"], ["()", "[]", "{}"]
    shuffled: Callable[[list[str]], Oracle] = lambda pairs: everywhere(  # noqa: E731
        lambda xs: all(balanced([x for x in xs if x in pair], [pair]) for pair in pairs)
    )
    return [
        Entry(
            "pair_balance",
            lambda: brackets.make_pair_balance(tokens, "(", ")"),
            each(lambda xs, i: Fraction(xs[: i + 1].count("(") - xs[: i + 1].count(")"), i + 1)),
            ("(", ")", "x"),
        ),
        Entry("dyck1", lambda: brackets.make_dyck(one), everywhere(lambda xs: balanced(xs, one)), ("(", ")")),
        Entry("dyck2", lambda: brackets.make_dyck(two), everywhere(lambda xs: balanced(xs, two)), tuple("()[]")),
        Entry("dyck3", lambda: brackets.make_dyck(three), everywhere(lambda xs: balanced(xs, three)), tuple("()[]{}x")),
        Entry("shuffle_dyck1", lambda: brackets.make_shuffle_dyck(one), shuffled(one), ("(", ")", "x")),
        Entry("shuffle_dyck2", lambda: brackets.make_shuffle_dyck(two), shuffled(two), tuple("()[]")),
        Entry("shuffle_dyck3", lambda: brackets.make_shuffle_dyck(three), shuffled(three), tuple("()[]{}")),
    ]


def _finding() -> list[Entry]:
    first: Callable[[list[Value]], Value] = lambda xs: xs.index("a") if "a" in xs else None  # noqa: E731
    last: Callable[[list[Value]], Value] = lambda xs: len(xs) - 1 - xs[::-1].index("a") if "a" in xs else None  # noqa: E731
    behind: Callable[[list[Value]], list[Value]] = lambda xs: xs[xs.index("|") + 1 :] if "|" in xs else []  # noqa: E731
    return [
        Entry("is_first", retrieval.make_is_first, each(lambda xs, i: xs[i] not in xs[:i]), LETTERS),
        Entry("is_last", retrieval.make_is_last, each(lambda xs, i: xs[i] not in xs[i + 1 :]), LETTERS),
        Entry("has_previous", retrieval.make_has_previous, each(lambda xs, i: xs[i] in xs[:i]), LETTERS),
        Entry("contains", lambda: retrieval.make_contains("a"), everywhere(lambda xs: "a" in xs), LETTERS),
        Entry("first_occurrence", lambda: retrieval.make_first_occurrence("a"), everywhere(first), LETTERS),
        Entry("last_occurrence", lambda: retrieval.make_last_occurrence("a"), everywhere(last), LETTERS),
        Entry(
            "detect_pattern",
            lambda: retrieval.detect_pattern(tokens, "ab"),
            each(lambda xs, i: xs[i - 1 : i + 1] == ["a", "b"] if i else None),
            LETTERS,
        ),
        Entry("induction", retrieval.make_induction, induction, LETTERS),
        Entry("associative_recall", retrieval.make_associative_recall, recall, LETTERS),
        Entry(
            "count_after_delimiter",
            lambda: retrieval.make_count_after_delimiter("|", "a"),
            everywhere(lambda xs: behind(xs).count("a")),
            ("a", "b", "|"),
        ),
        Entry(
            "mean_after_delimiter",
            lambda: retrieval.make_mean_after_delimiter("|"),
            everywhere(lambda xs: mean([x for x in behind(xs) if x != "|"])),
            (1, 2, "|"),
        ),
        Entry(
            "addition",
            counting.make_addition,
            sum_of_digits,
            (*range(10), "+"),
            lambda xs: len(xs) % 2 == 1 and [i for i, x in enumerate(xs) if x == "+"] == [len(xs) // 2],
        ),
    ]
