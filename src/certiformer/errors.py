"""The exceptions that users meet.

Ordinary outcomes (proved, refuted, undecided, invalid) are data, not exceptions (`certiformer.certificate`).
What remains is bad input: a formula that does not parse, a file that is not ours, a flag that makes no sense.
Each message is one sentence that says what was expected, what arrived and, where it helps, what to write instead.
"""


class BadInput(ValueError):
    """Input that cannot be used; the message is one sentence for the user (exit code 2 of the command line)."""


class MissingExtra(ImportError):
    """An optional library is not installed; the message says which `pip install` brings it."""
