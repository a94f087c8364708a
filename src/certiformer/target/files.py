"""`target.json`: what a run folder may claim something about, written as canonical bytes and read back for people.

What a file means is decided by `kernel.claim`; what was read is given back with texts that the parser reads as the same.
Standard library only.
"""

from __future__ import annotations

import base64
import json

from certiformer.errors import BadInput
from certiformer.kernel import claim as kernel
from certiformer.kernel.claim import Table
from certiformer.kernel.meanings.description import canonical_text
from certiformer.kernel.meanings.sequence_maps import SequenceMap
from certiformer.kernel.programs import expression
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
    data |= {"domain": target.domain.closed.to_json()}
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
        domain = _domain(meaning.box)
        target = (
            Target(data["source"], meaning.program, domain)
            if isinstance(meaning, kernel.FunctionOnBox)
            else Teacher(data["source"], meaning.config, meaning.tensors, domain)
        )
        domain.require_order()
    elif isinstance(meaning, FiniteTarget):
        target = meaning
    else:
        raise BadInput("target.json is about something that is not known here")
    # No second spelling of a number or of a box.
    if any_target_to_text(target).encode() != raw:
        raise BadInput("target.json is not in its canonical form")
    return target


def _domain(box: kernel.Ends) -> Domain:
    """The box with texts of its ends that `parse_constant` reads back as the same numbers."""
    texts = []
    for pair in box.pairs:
        for end in pair:
            text = expression(end, MAX_TEXT)
            if text is None:
                raise BadInput("an end of the box in target.json is too long to be written")
            texts.append(text)
    return Domain(tuple(zip(texts[::2], texts[1::2], strict=True)))
