"""Programs that are ready to use, each with its meaning in a line or two of plain Python.

`catalogue()` lists them all with an oracle and the vocabularies it is stated for; the other modules have the functions that
make them. The functions named `make_...`, `shift_by` and `detect_pattern` take the arguments of their namesakes in Tracr.
"""

from certiformer.rasp.library.catalogue import Entry, catalogue

__all__ = ["Entry", "catalogue"]
