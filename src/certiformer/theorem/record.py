"""The record that every theorem module carries beside its docstring, there as a plain literal of these fields.

The docstring is for people, the record for programs; a test keeps them in agreement. Both types check their fields
when they are made, so a record that exists is well formed. A malformed record is a mistake in our own source, hence
`ValueError` and not `BadInput`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from certiformer.theorem.bibliography import BIBLIOGRAPHY

CHECKED = "checked"
TRUSTED = "trusted"

KINDS = ("exact", "upper bound", "lower bound", "impossibility", "rate", "probabilistic")
"""What a theorem gives: an equality, a bound from above or below, a proof that something cannot be, the speed at which
an error shrinks, or a bound that holds with a stated probability."""

VERBS = (
    "build",
    "prove",
    "check",
    "show",
    "compile",
    "run",
    "export",
    "rates",
    "audit",
    "recommend",
    "size",
    "explore",
    "theorem",
    "bench",
)
"""The commands of the command line; a theorem that no other command uses is listed under `theorem`."""

_DOTTED_ID = re.compile(r"[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)+")
_NAME = re.compile(r"[a-z][a-z0-9-]*")


@dataclass(frozen=True)
class Assumption:
    """One hypothesis of a theorem.

    **Arguments:**

    - `name`: a short name such as `lipschitz` or `grid-centres`; the docstring's list uses the same one.
    - `text`: one sentence a reader can decide about.
    - `status`: `"checked"` when the checker verifies it on every use, `"trusted"` when it is believed; the docstring
      then says why it may be.

    >>> Assumption("lipschitz", "f is L-Lipschitz on the box.", "checked").status
    'checked'
    """

    name: str
    text: str
    status: str

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise ValueError(f"an assumption's name is lower-case words joined by hyphens, not {self.name!r}")
        if not isinstance(self.text, str) or not self.text.strip():
            raise ValueError(f"assumption {self.name!r} needs a sentence as its text")
        if self.status not in (CHECKED, TRUSTED):
            raise ValueError(f"assumption {self.name!r} is {CHECKED!r} or {TRUSTED!r}, not {self.status!r}")


@dataclass(frozen=True)
class Theorem:
    """A theorem, as data.

    **Arguments:**

    - `id`: the dotted path of its module below `certiformer`, for instance `construct.voronoi_lipschitz`.
    - `title`: one sentence a student understands.
    - `kind`: one of `KINDS`.
    - `sources`: citation keys of `BIBLIOGRAPHY`, each with an optional place after a comma: `"gumaan2025, Theorem 1"`.
    - `verb`: the command that uses it, one of `VERBS`.
    - `assumptions`: its hypotheses; a theorem without any passes an empty tuple.
    - `uses`: the ids of the theorems its proof or its code rests on.

    >>> Theorem("expressivity.example", "One is one.", "exact", ("classical",), "theorem", ()).name
    'example'
    """

    id: str
    title: str
    kind: str
    sources: tuple[str, ...]
    verb: str
    assumptions: tuple[Assumption, ...]
    uses: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.id, str) or not _DOTTED_ID.fullmatch(self.id):
            raise ValueError(f"a theorem's id is the dotted path of its module below certiformer, not {self.id!r}")
        if not isinstance(self.title, str) or not self.title.strip() or "\n" in self.title:
            raise ValueError(f"theorem {self.id} needs a title of one line")
        if self.kind not in KINDS:
            raise ValueError(f"theorem {self.id}: kind is one of {', '.join(KINDS)}, not {self.kind!r}")
        if self.verb not in VERBS:
            raise ValueError(f"theorem {self.id}: verb is one of {', '.join(VERBS)}, not {self.verb!r}")
        for field in ("sources", "assumptions", "uses"):
            if not isinstance(getattr(self, field), tuple):
                raise ValueError(f"theorem {self.id}: {field} is a tuple (did a comma get lost?)")
        self._validate_links()

    def _validate_links(self) -> None:
        if not self.sources:
            raise ValueError(f"theorem {self.id} names no source; use 'classical' where the proof is in the docstring")
        for key in self.citations:
            if key not in BIBLIOGRAPHY:
                raise ValueError(f"theorem {self.id} cites {key!r}, which is not in the bibliography")
        if not all(isinstance(a, Assumption) for a in self.assumptions):
            raise ValueError(f"theorem {self.id}: every assumption is an Assumption(...)")
        names = [a.name for a in self.assumptions]
        if len(set(names)) != len(names):
            raise ValueError(f"theorem {self.id} names an assumption twice")
        if self.id in self.uses or len(set(self.uses)) != len(self.uses):
            raise ValueError(f"theorem {self.id}: uses lists each other theorem once, and never itself")
        if not all(isinstance(u, str) and _DOTTED_ID.fullmatch(u) for u in self.uses):
            raise ValueError(f"theorem {self.id}: uses lists the ids of other theorems")

    @property
    def name(self) -> str:
        """The last part of the id; the test file and the checker's rule carry the same name."""
        return self.id.rpartition(".")[2]

    @property
    def citations(self) -> tuple[str, ...]:
        """The citation keys of `sources`, without the places in the papers."""
        return tuple(source.partition(",")[0].strip() for source in self.sources)
