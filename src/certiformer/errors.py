"""The exceptions that users meet.

Ordinary outcomes (proved, refuted, undecided, invalid) are data, not exceptions (`certiformer.kernel.certificate`).
What remains is bad input: a formula that does not parse, a file that is not ours, a flag that makes no sense.
Each message is one sentence that says what was expected, what arrived and, where it helps, what to write instead.
"""


class BadInput(ValueError):
    """Input that cannot be used; the message is one sentence for the user (exit code 2 of the command line)."""


# What Python raises where data is not what the code that reads it expects. A folder is written by anybody, so whoever reads
# one for a user answers these as bad input, and the checker as a refusal.
MALFORMED = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError)


class MissingExtra(ImportError):
    """An optional library is not installed; the message says which `pip install` brings it."""
