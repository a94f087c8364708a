"""How large a transformer for a whole class of functions must be, and how large one is that suffices.

A class is a module-level dataclass with its parameters; `statement` gives the proved upper bound of a construction
that `build` or `compile` makes, the proved lower bound, and the gap. Theorems are named by their ids (`certiformer
theorem ID`).
"""

from __future__ import annotations

from certiformer.sizes.ask import CLASSES as CLASSES
from certiformer.sizes.ask import PARAMETERS as PARAMETERS
from certiformer.sizes.ask import Budget as Budget
from certiformer.sizes.ask import budget as budget
from certiformer.sizes.ask import make_class as make_class
from certiformer.sizes.ask import size as size
from certiformer.sizes.ask import sweep as sweep
from certiformer.sizes.statement import Lower as Lower
from certiformer.sizes.statement import Statement as Statement
from certiformer.sizes.statement import Upper as Upper
