"""The command line: one module per verb, everything imported when it is needed.

A verb module holds `SUMMARY` (one line), `EXAMPLES` (shown by `--help`), `Options` (a dataclass: its fields are the flags
and the keys of a `--config` file) and `run(options, terminal)`, which returns the exit code. What a verb needs of the
library it imports inside `run`, so that `--help` never waits for JAX.
"""
