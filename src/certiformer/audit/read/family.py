"""What a family of checkpoints is: a tensor it is recognised by, and a function that reads it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from certiformer.audit.form import Checkpoint
from certiformer.audit.read.names import Names
from certiformer.audit.read.settings import Settings

ANY = ("*",)  # the part is called whatever its model calls it


def _always(names: Names, settings: Settings) -> bool:
    return True


@dataclass(frozen=True)
class Family:
    """`sign` is the end of a tensor name that every checkpoint of the family has; what stands before it is the prefix,
    whatever wrappers have put there. `inner` are the prefixes that belong to the family: without them the prefix is that
    of the whole model, where heads stand. Where families share names, `is_mine` looks at shapes and config."""

    name: str
    sign: str
    read: Callable[[Names, Settings], Checkpoint]
    inner: tuple[str, ...] = ()
    is_mine: Callable[[Names, Settings], bool] = _always

    def prefixes(self, names: Names) -> list[str]:
        """Every prefix below which the sign stands."""
        found = {name.removesuffix(self.sign) for name in names.files.infos if name.endswith(self.sign)}
        return sorted(prefix for prefix in found if not prefix or prefix.endswith("."))

    def view(self, names: Names, prefix: str) -> Names:
        """The tensors seen from a prefix of the family."""
        if self.inner == ANY:
            above, dot, _ = prefix.removesuffix(".").rpartition(".")
            return Names(names.ledger, prefix, above + dot)
        inner = next((each for each in self.inner if prefix.endswith(each)), "")
        return Names(names.ledger, prefix, prefix.removesuffix(inner))
