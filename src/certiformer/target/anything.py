"""Whatever a run folder may claim something about: a function or a transformer on a box, or a finite set of rows.

One reader and one sentence for all of them, so that the checker, the report and the command line agree.
Standard library only.
"""

from __future__ import annotations

from certiformer.kernel.meanings.sequence_maps import SequenceMap
from certiformer.target.domain import Target
from certiformer.target.files import target_from_text, target_to_text
from certiformer.target.sentence import claim_sentence, epsilon_text
from certiformer.target.show import formula
from certiformer.target.table import Table, finite_from_text
from certiformer.target.teacher import Teacher, teacher_from_text

AnyTarget = Target | Teacher | Table | SequenceMap


def any_target_from_text(text: str | bytes) -> AnyTarget:
    """Read `target.json` of any kind."""
    return teacher_from_text(text) or finite_from_text(text) or target_from_text(text)


def any_target_to_text(target: AnyTarget) -> str:
    """The canonical content of `target.json`."""
    return target_to_text(target) if isinstance(target, Target) else target.to_text()


def sentence_of(target: AnyTarget, epsilon: str) -> str:
    """The claim in one plain sentence."""
    if isinstance(target, SequenceMap):
        return target.sentence(epsilon_text(epsilon))
    if isinstance(target, Table | Teacher):
        return target.sentence(epsilon)
    sizes = target.domain.dimension, len(target.program.outputs)
    return claim_sentence(*sizes, target.domain.exactly, formula(target.program), epsilon)


def place_of(target: AnyTarget) -> str:
    """Where the claim speaks: the box, or how many rows.

    >>> from certiformer.kernel.meanings.sequence_maps import SortMap
    >>> place_of(SortMap("sort", 7, 25))
    '7^25 sequences'
    """
    if isinstance(target, Target | Teacher):
        return target.domain.exactly
    return f"{target.count:,} rows" if isinstance(target, Table) else f"{target.alphabet}^{target.tokens} sequences"


def programs_of(target: AnyTarget) -> list[str]:
    """The recorded program of a formula, one text an output; other targets have none."""
    return formula(target.program) if isinstance(target, Target) else []
