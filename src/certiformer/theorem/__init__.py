"""Theorems as records: what is stated, where it comes from, what is checked, and where the code is.

A theorem module anywhere in the package ends its docstring in the fixed sections of `sections.SECTIONS` and holds one
module-level literal `THEOREM = {...}`. The registry reads both from the source text, so that listing the
theorems imports none of their packages. Standard library only: the checker may import this package.
"""

from certiformer.arguments import make_callable
from certiformer.theorem.bibliography import BIBLIOGRAPHY as BIBLIOGRAPHY
from certiformer.theorem.bibliography import bibtex as bibtex
from certiformer.theorem.bibliography import cite as cite
from certiformer.theorem.record import Assumption as Assumption
from certiformer.theorem.record import Theorem as Theorem
from certiformer.theorem.registry import Entry as Entry
from certiformer.theorem.registry import all_theorems as all_theorems
from certiformer.theorem.registry import find as find

make_callable(__name__, "certiformer.api.studies", "theorem")  # `certiformer.theorem` is the verb, too
