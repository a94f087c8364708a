"""The steps by which a certificate concludes facts about a program: whatever the listed lemmas give, node by node.

The checker's own lemmas are tried on the nodes that they may speak of. What is written down is what they concluded.
"""

from __future__ import annotations

from collections.abc import Iterator

from certiformer.kernel import Refused
from certiformer.kernel.meanings.rasp import SELECTORS, Program
from certiformer.kernel.situations.rasp.lemmas import Facts

Step = tuple[str | int, ...]


def lemmas_of(program: Program) -> tuple[Step, ...]:
    """The steps for all nodes of a program, in an order in which each follows from those before."""
    facts, steps = Facts(program), []
    for number in range(len(program.nodes)):
        for step in _candidates(facts, number):
            try:
                facts.conclude(step)
            except Refused:
                continue
            steps.append(step)
    return tuple(steps)


def _candidates(facts: Facts, number: int) -> Iterator[Step]:
    node = facts.nodes[number]
    if node.kind == "aggregate":
        selector, value = node.inputs
        for key in (value, *dict.fromkeys(key for key, _ in facts.equations(selector))):
            if not facts.holds("same", selector, value):
                yield ("same", selector, value, key)
    if node.kind not in SELECTORS:
        yield from (("constant", number), ("rank" if node.kind == "width" else "distinct", number))
        return
    yield from (("order", number), ("reflexive", number), ("one", number))
    parts = dict.fromkeys(facts.conjuncts(number))
    steps = [("part", number, c) for c in parts if c != number]
    steps += [("occurrence", number, key) for key in dict.fromkeys(key for key, _ in facts.equations(number))]
    steps += [("few", number, c) for c in parts]
    for step in steps:
        if not facts.holds("single", number):
            yield step
