"""Regular expressions: the minimal complete automaton of one, by the library automata-lib (the extra `automata`).

Every letter of an expression is a symbol. The library knows `|`, `*`, `+`, `?`, `{n,m}`, `( )`, `[ ]`, `.`, and `&`
(intersection) and `^` (shuffle). Determinising can take exponentially many states, so that step is first tried here
with a limit; minimising is the library's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from certiformer.compiler.automata.file import completed
from certiformer.errors import BadInput, MissingExtra
from certiformer.kernel.meanings.automaton import Automaton

MAX_STATES, MAX_REPEATS = 2_000, 1_000
MAX_CHARACTERS = 2_000
MAX_WRITTEN_OUT = 20_000  # states, two a letter, once repetitions and products are written out, as the library does
MAX_SILENT = 1_000_000  # pairs of a state and one that it reaches without reading a letter
_TOKEN = re.compile(r"\\.|\[[^\]]*\]|\{\s*(\d*)\s*(,?)\s*(\d*)\s*\}|.", re.DOTALL)
_REMEDY = 'pip install "certiformer[automata]"'


def from_expression(expression: str, alphabet: Sequence[str] | None = None) -> Automaton:
    """The minimal automaton that accepts exactly the words of a regular expression.

    Its states are q0, q1, ... in the order in which words reach them, and `dead` where no word can be accepted any more.
    The alphabet is the letters of the expression unless given.

    >>> print(from_expression("(ab)*").states, from_expression("(ab)*").accepts("abab"))
    ('q0', 'q1', 'dead') True
    """
    library = _library()
    if len(expression) > MAX_CHARACTERS:
        raise BadInput(f"the expression has {len(expression):,} characters; at most {MAX_CHARACTERS:,} are read")
    everything = re.search(r"\.|\[\^|\\[SWDswd]", expression)
    if alphabet is None and everything:
        raise BadInput(
            f"the expression uses {everything[0]}, so it speaks of letters that it does not name; give the alphabet,"
            ' for instance --alphabet "a b"'
        )
    if alphabet is not None:
        _check_alphabet(alphabet)
    if any(int(count) > MAX_REPEATS for count in re.findall(r"(?<=[{,])\d+", expression)):
        raise BadInput(f"the expression repeats something more than {MAX_REPEATS:,} times")
    never = _repeated_never(expression)
    if never is not None:  # the library takes a{0} for a?
        raise BadInput(f"the expression repeats something {never}, at most 0 times; leave it out")
    states = written_out(expression)
    if states > MAX_WRITTEN_OUT:
        many = f"{states:,}" if states < 10**12 else "a trillion or more"
        raise BadInput(
            f"with its repetitions and products written out, the expression may need {many} states; at most"
            f" {MAX_WRITTEN_OUT:,} are made"
        )
    nfa = _read(library, expression, alphabet)
    symbols = tuple(alphabet) if alphabet is not None else tuple(sorted(_letters(nfa)))
    if not symbols:
        raise BadInput(
            f'the expression {expression!r} names no letter; give the alphabet, for instance --alphabet "a b"'
        )
    _limit_silent_steps(nfa)
    _limit_states(nfa, symbols)
    return _named(library.dfa.DFA.from_nfa(nfa, minify=True), symbols)


class _Part:
    """What stands between two parentheses, as far as it is read: the states of operands joined so far, and of the last."""

    def __init__(self) -> None:
        self.joined, self.product = 0, False
        self.before, self.atom = 0, 0

    def add(self, states: int) -> None:
        """One more thing that stands after the others."""
        self.before, self.atom = self.before + self.atom, states

    def join(self, product: bool) -> None:
        """An operator between two operands ends the first: `|` adds up, `&` and `^` go through pairs of states."""
        self.joined, self.product = self.states, product
        self.before = self.atom = 0

    @property
    def states(self) -> int:
        last = self.before + self.atom
        return (self.joined + 2) * (last + 2) if self.product else self.joined + last + 2


def _repeated_never(expression: str) -> str | None:
    """The first `{0}`, `{0,0}` or `{,0}`, if there is one."""
    for token in _TOKEN.finditer(expression):
        most = token[3] if token[2] else token[1]
        if most and int(most) == 0:
            return token[0]
    return None


def written_out(expression: str) -> int:
    """No fewer states than the library makes of the expression, which writes out every `{n,m}`, `&` and `^`.

    It is read from left to right and nothing is written out, so that the answer comes at once.

    >>> written_out("ab"), written_out("(ab){3}c"), written_out("((a{1000}){1000}){1000}") > 10**9
    (6, 28, True)
    """
    parts = [_Part()]
    for token in _TOKEN.finditer(expression):
        sign, here = token[0], parts[-1]
        if sign == "(":
            parts.append(_Part())
        elif sign == ")" and len(parts) > 1:
            parts.pop()
            parts[-1].add(here.states)
        elif sign in ("|", "&", "^"):
            here.join(product=sign != "|")
        elif sign in ("*", "+", "?"):
            here.atom += 2
        elif sign.startswith("{") and len(sign) > 1:
            least, most = int(token[1] or 0), int(token[3] or 0)
            here.atom = (here.atom + 2) * max(least + 1 if token[2] and not token[3] else least, most, 1)
        else:
            here.add(2)
    while len(parts) > 1:  # the library will say that a parenthesis is not closed
        states = parts.pop().states
        parts[-1].add(states)
    return parts[0].states


class _Library:
    """The two modules that are used, imported when the first expression is read."""

    def __init__(self) -> None:
        self.dfa: Any = import_module("automata.fa.dfa")
        self.nfa: Any = import_module("automata.fa.nfa")
        known: Any = import_module("automata.base.exceptions")
        self.problems: Any = (known.AutomatonException, known.RegexException)


def _library() -> _Library:
    try:
        return _Library()
    except ImportError:
        raise MissingExtra(
            f"regular expressions need the library automata-lib, which is not installed: {_REMEDY}"
        ) from None


def _check_alphabet(alphabet: Sequence[str]) -> None:
    if not alphabet:
        raise BadInput("the alphabet is empty; list at least one letter")
    for symbol in alphabet:
        if len(symbol) != 1 or symbol.isspace():
            raise BadInput(f"the letters of a regular expression are single characters, not {symbol!r}")
    if len(set(alphabet)) != len(alphabet):
        raise BadInput("the alphabet lists a letter twice")


def _read(library: _Library, expression: str, alphabet: Sequence[str] | None) -> Any:
    try:
        return library.nfa.NFA.from_regex(expression, input_symbols=None if alphabet is None else set(alphabet))
    except library.problems as problem:
        letter = re.search(r"invalid transition symbol (.)", str(problem))
        if letter:
            known = ", ".join(alphabet or ())
            raise BadInput(f"the expression uses {letter[1]!r}, which is not in the alphabet {known}") from None
        raise BadInput(f"{expression!r} is not a regular expression: {str(problem).rstrip('.')}") from None
    except (IndexError, KeyError, RecursionError, ValueError):
        raise BadInput(f"{expression!r} is not a regular expression that automata-lib can read") from None


def _letters(nfa: Any) -> set[str]:
    """The letters on transitions; the library's own set also holds the digits and commas inside braces."""
    return {letter for paths in nfa.transitions.values() for letter in paths if letter}


def _limit_silent_steps(nfa: Any) -> None:
    """Refuse an expression whose states reach too many others without a letter: the library lists all such pairs."""
    pairs = 0
    for state in nfa.states:
        reached, open_ends = {state}, [state]
        while open_ends:
            further = nfa.transitions.get(open_ends.pop(), {}).get("", frozenset()) - reached
            reached |= further
            open_ends += further
        pairs += len(reached)
        if pairs > MAX_SILENT:
            raise BadInput(
                f"the parts of the expression that may be left out reach each other in more than {MAX_SILENT:,} ways;"
                " leave out fewer"
            )


def _limit_states(nfa: Any, symbols: tuple[str, ...]) -> None:
    """Refuse an expression whose subsets of states are too many to build the automaton from."""
    plain = nfa.eliminate_lambda()
    first = frozenset([plain.initial_state])
    seen, open_ends = {first}, [first]
    while open_ends:
        here = open_ends.pop()
        for symbol in symbols:
            after = frozenset(t for state in here for t in plain.transitions.get(state, {}).get(symbol, ()))
            if after and after not in seen:
                seen.add(after)
                open_ends.append(after)
        if len(seen) > MAX_STATES:
            raise BadInput(
                f"the automaton of this expression needs more than {MAX_STATES:,} states before it is minimised"
            )


def _named(dfa: Any, symbols: tuple[str, ...]) -> Automaton:
    """The automaton with the names q0, q1, ...; states from which nothing is accepted any more become `dead`."""
    alive = _alive(dfa)
    order, rows = {dfa.initial_state: "q0"}, []
    for state in (waiting := [dfa.initial_state]):
        for symbol in symbols:
            after = dfa.transitions.get(state, {}).get(symbol)
            if after is None or after not in alive:
                continue
            if after not in order:
                order[after] = f"q{len(order)}"
                waiting.append(after)
            rows.append((order[state], symbol, order[after]))
    accepting = tuple(name for state, name in order.items() if state in dfa.final_states)
    return completed(symbols, tuple(order.values()), "q0", accepting, tuple(rows), reject=True)


def _alive(dfa: Any) -> set[Any]:
    """The states from which some word is accepted."""
    before: dict[Any, set[Any]] = {}
    for state, paths in dfa.transitions.items():
        for after in paths.values():
            before.setdefault(after, set()).add(state)
    alive, open_ends = set(dfa.final_states), list(dfa.final_states)
    while open_ends:
        for state in before.get(open_ends.pop(), set()) - alive:
            alive.add(state)
            open_ends.append(state)
    return alive
