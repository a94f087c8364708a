"""Machines to start with: the busy beavers, a binary counter, and a recogniser of palindromes."""

from __future__ import annotations

from certiformer.compiler.machines.file import parse_machine
from certiformer.errors import BadInput
from certiformer.kernel.meanings.machine import Machine

# Champions for 2 to 5 states and 2 symbols, one group of three letters (write, move, next) for each of 0 and 1 in each
# state; H stops. Steps and ones: 6, 4; 21, 5; 107, 13 (Brady 1983); 47,176,870, 4,098 (Marxen and Buntrock 1990).
_CHAMPIONS = {
    2: "1RB 1LB 1LA 1RH",
    3: "1RB 1RH 1LB 0RC 1LC 1LA",
    4: "1RB 1LB 1LA 0LC 1RH 1LD 1RD 0RA",
    5: "1RB 1LC 1RC 1RB 1RD 0LE 1LA 1LD 1RH 0LA",
}


def busy_beaver(states: int) -> Machine:
    """The champion with 2 to 5 states.

    >>> busy_beaver(2).rows[0]
    ('A', '0', '1', 'R', 'B')
    """
    if states not in _CHAMPIONS:
        raise BadInput(f"the busy beavers here have 2 to 5 states, not {states}")
    groups = _CHAMPIONS[states].split()
    rows = tuple(
        ("ABCDE"[number // 2], "01"[number % 2], group[0], group[1], group[2]) for number, group in enumerate(groups)
    )
    return Machine(("0", "1"), (*"ABCDE"[:states], "H"), ("H",), rows)


INCREMENT = """
# Adds one to a binary number whose most significant digit is under the head.
blank = "_"
start = "right"
halt = ["done"]
transitions = [
  ["right", "0", "0", "R", "right"],
  ["right", "1", "1", "R", "right"],
  ["right", "_", "_", "L", "carry"],
  ["carry", "1", "0", "L", "carry"],
  ["carry", "0", "1", "S", "done"],
  ["carry", "_", "1", "S", "done"],
]
"""

PALINDROME = """
# Stops in yes or no. Reads the first letter, erases it, compares it with the last one, comes back.
blank = "_"
start = "first"
halt = ["yes", "no"]
transitions = [
  ["first", "a", "_", "R", "seek-a"], ["first", "b", "_", "R", "seek-b"], ["first", "_", "_", "S", "yes"],
  ["seek-a", "a", "a", "R", "seek-a"], ["seek-a", "b", "b", "R", "seek-a"], ["seek-a", "_", "_", "L", "last-a"],
  ["seek-b", "a", "a", "R", "seek-b"], ["seek-b", "b", "b", "R", "seek-b"], ["seek-b", "_", "_", "L", "last-b"],
  ["last-a", "a", "_", "L", "back"], ["last-a", "b", "b", "S", "no"], ["last-a", "_", "_", "S", "yes"],
  ["last-b", "b", "_", "L", "back"], ["last-b", "a", "a", "S", "no"], ["last-b", "_", "_", "S", "yes"],
  ["back", "a", "a", "L", "back"], ["back", "b", "b", "L", "back"], ["back", "_", "_", "R", "first"],
]
"""


def increment() -> Machine:
    """The binary counter."""
    return parse_machine(INCREMENT)


def palindrome() -> Machine:
    """The recogniser of palindromes over a and b."""
    return parse_machine(PALINDROME)
