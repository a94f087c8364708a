"""What a claim is about, in words, whatever it is: the words of the kernel, for what has not been written to a file.

Standard library only.
"""

from __future__ import annotations

from certiformer.kernel.claim import FunctionOnBox, Table, TeacherOnBox
from certiformer.kernel.programs import exact_text
from certiformer.target.domain import Target
from certiformer.target.files import AnyTarget
from certiformer.target.parse import parse_epsilon
from certiformer.target.show import formula
from certiformer.target.teacher import Teacher


def epsilon_text(text: str) -> str:
    """A tolerance as every sentence says it: the exact number that the text stands for, not the text.

    >>> epsilon_text("1/100"), epsilon_text("2*1e-7")
    ('0.01', '2e-7')
    """
    return exact_text(parse_epsilon(text))


def sentence_of(target: AnyTarget, epsilon: str) -> str:
    """The claim in one plain sentence.

    >>> from certiformer.target import parse_domain, parse_formula
    >>> sentence_of(Target("x1*x1", parse_formula("x1*x1"), parse_domain("[0, 1]")), "0.1")
    "At every real point x1 of [0, 1], the transformer's output differs from x1**2 by at most 0.1."
    """
    if isinstance(target, Target):
        return FunctionOnBox(target.program, target.domain.closed).sentence(epsilon_text(epsilon))
    if isinstance(target, Teacher):
        told = TeacherOnBox(target.config, target.tensors, target.domain.closed, target.outputs)
        return told.sentence(epsilon_text(epsilon))
    return target.sentence(epsilon_text(epsilon))


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
