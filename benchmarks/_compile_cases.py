"""Which programs `compile.py` compiles, for which lengths and vocabularies, and which of them Tracr's library has too."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

LENGTHS, LONG = (5, 10, 20, 50, 100), 1000
SIZES = (4, 20)
QUICK_LENGTHS, QUICK_SIZES = (5, 20), (4,)
LONG_NAMES = ("reverse", "sort", "hist", "length", "shift", "dyck1")
# Ours by name; `_tracr_peer.py` says which of Tracr's functions makes each. Its Dyck program with one pair is Dyck-1.
PEER_NAMES = (
    "length", "reverse", "hist", "sort", "sort_unique", "sort_freq", "frac_prevs", "pair_balance", "dyck1",
    "shuffle_dyck1", "shuffle_dyck2", "shuffle_dyck3", "shift", "count", "count_less_freq", "detect_pattern",
)  # fmt: skip
FORWARD_LENGTH, FORWARD_SIZE, BATCH = 50, 4, 256
LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class Case:
    """A program at a length and over a vocabulary; `asked` is the size that was asked for."""

    name: str
    length: int
    vocab: tuple[Any, ...]
    asked: int

    @property
    def forward(self) -> bool:
        """Whether the speed of the forward pass is compared here."""
        return (self.length, self.asked) == (FORWARD_LENGTH, FORWARD_SIZE)

    def to_text(self) -> str:
        """For the command line of the process that measures it."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_text(text: str) -> Case:
        fields = json.loads(text)
        return Case(**{**fields, "vocab": tuple(fields["vocab"])})

    def __str__(self) -> str:
        return f"{self.name} at {self.length:,} over {len(self.vocab)}"


def cases_of(name: str, own: tuple[Any, ...], quick: bool = False) -> list[Case]:
    """The cases of one program, whose own vocabulary is `own`; shorter ones first."""
    lengths = QUICK_LENGTHS if quick else (*LENGTHS, *([LONG] if name in LONG_NAMES else []))
    made = []
    for size in QUICK_SIZES if quick else SIZES:
        vocab = vocabulary(name, own, size)
        if vocab not in [case.vocab for case in made]:  # what cannot grow is measured once
            made += [Case(name, length, vocab, size) for length in lengths]
    return made


def vocabulary(name: str, own: tuple[Any, ...], size: int) -> tuple[Any, ...]:
    """A vocabulary of that size for a program, or its own where the program is not meant for that size.

    A program needs all tokens of its own vocabulary (brackets of every kind, ten digits); `sort_unique` alone is listed
    with more than it needs. Further tokens are numbers where there are numbers, otherwise letters; there are no further
    digits.

    >>> vocabulary("reverse", ("a", "b", "c"), 4), vocabulary("mean_after_delimiter", (1, 2, "|"), 4)
    (('a', 'b', 'c', 'd'), (1, 2, '|', 3))
    >>> vocabulary("dyck3", tuple("()[]{}x"), 4)
    ('(', ')', '[', ']', '{', '}', 'x')
    """
    if name == "addition":
        return own
    if name == "sort_unique":
        return own[:size]
    numbers = [token for token in own if isinstance(token, int)]
    spare = range(max(numbers) + 1, max(numbers) + 1 + size) if numbers else [x for x in LETTERS if x not in own]
    return (*own, *list(spare)[: max(0, size - len(own))])
