"""`target.json`: what a run folder may claim something about, written as canonical bytes and read back for people.

What a file means is decided by `kernel.target`. Here the texts of the user, which it carries beside its exact parts, are
read as well, and a file whose texts say something else than its exact parts is refused.
Standard library only.
"""

from __future__ import annotations

import base64
import json

from certiformer.errors import BadInput
from certiformer.kernel import target as kernel
from certiformer.kernel.meanings.description import canonical_text
from certiformer.kernel.meanings.sequence_maps import SequenceMap
from certiformer.kernel.target import Table
from certiformer.target.domain import Domain, Target
from certiformer.target.teacher import Teacher
from certiformer.target.tokens import MAX_TEXT

FiniteTarget = Table | SequenceMap
AnyTarget = Target | Teacher | FiniteTarget


def any_target_to_text(target: AnyTarget) -> str:
    """The canonical content of `target.json`: equal targets give equal bytes.

    >>> from fractions import Fraction
    >>> any_target_to_text(Table("demo", "continuous", (((Fraction(1, 10),), (Fraction(2),)),)))
    '{"format":"certiformer-table-1","kind":"continuous","norm":"max","rows":[[["1/10"],["2"]]],"source":"demo"}\\n'
    """
    if isinstance(target, SequenceMap):
        return target.to_text()
    data = {"source": target.source, "norm": kernel.NORM}
    if isinstance(target, Table):
        rows = [[[str(x) for x in part] for part in row] for row in target.rows]
        return canonical_text({**data, "format": kernel.TABLE, "kind": target.kind, "rows": rows})
    data |= {"domain": [list(pair) for pair in target.domain.bounds], "ends": target.domain.closed.to_json()}
    if isinstance(target, Target):
        return canonical_text({**data, "format": kernel.FUNCTION, "program": target.program.to_json()})
    tensors = base64.b64encode(target.tensors).decode("ascii")
    return canonical_text({**data, "format": kernel.TEACHER, "config": target.config.decode(), "tensors": tensors})


def any_target_from_text(text: str | bytes) -> AnyTarget:
    """Read the content of `target.json`; the inverse of `any_target_to_text`."""
    raw = text.encode() if isinstance(text, str) else text
    meaning = kernel.read_target(raw)
    if isinstance(meaning, kernel.FunctionOnBox | kernel.TeacherOnBox):
        data = json.loads(raw)
        domain = _domain(data["domain"])
        target = (
            Target(data["source"], meaning.program, domain)
            if isinstance(meaning, kernel.FunctionOnBox)
            else Teacher(data["source"], meaning.config, meaning.tensors, domain)
        )
        domain.check()
    elif isinstance(meaning, FiniteTarget):
        target = meaning
    else:
        raise BadInput("target.json is about something that is not known here")
    # No second spelling of a number, and no text of the user that means another box than the exact ends.
    if any_target_to_text(target).encode() != raw:
        raise BadInput("target.json is not in its canonical form, or its texts contradict its exact parts")
    return target


def _domain(pairs: object) -> Domain:
    if not isinstance(pairs, list) or not pairs:
        raise BadInput("the domain in target.json is not a list of pairs of texts")
    for pair in pairs:
        if not (isinstance(pair, list) and len(pair) == 2 and all(type(e) is str and len(e) <= MAX_TEXT for e in pair)):
            raise BadInput("the domain in target.json is not a list of pairs of texts")
    return Domain(tuple((low, high) for low, high in pairs))
