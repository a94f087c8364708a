"""What some library programs mean, in plain Python: the oracles that do not fit on a line of the catalogue."""

from __future__ import annotations

from typing import Any


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
