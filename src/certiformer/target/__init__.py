"""What is approximated: formulas and JAX callables, both as programs of one closed scalar language, and boxes.

The names here need the standard library only; the modules `trace`, `load` and `floating` need JAX and are imported
where they are used.
"""

from certiformer.kernel.claim import Table as Table
from certiformer.kernel.meanings.sequence_maps import CountMap as CountMap
from certiformer.kernel.meanings.sequence_maps import InductionMap as InductionMap
from certiformer.kernel.meanings.sequence_maps import SequenceMap as SequenceMap
from certiformer.kernel.meanings.sequence_maps import SortMap as SortMap
from certiformer.kernel.meanings.sequence_maps import WidthMap as WidthMap
from certiformer.kernel.programs import Program as Program
from certiformer.kernel.programs import fold as fold
from certiformer.kernel.programs import rational as rational
from certiformer.target.anything import sentence_of as sentence_of
from certiformer.target.build import Builder as Builder
from certiformer.target.domain import Domain as Domain
from certiformer.target.domain import Target as Target
from certiformer.target.files import AnyTarget as AnyTarget
from certiformer.target.files import FiniteTarget as FiniteTarget
from certiformer.target.files import any_target_from_text as any_target_from_text
from certiformer.target.files import any_target_to_text as any_target_to_text
from certiformer.target.parse import parse_constant as parse_constant
from certiformer.target.parse import parse_domain as parse_domain
from certiformer.target.parse import parse_epsilon as parse_epsilon
from certiformer.target.parse import parse_formula as parse_formula
from certiformer.target.ridges import RidgeSum as RidgeSum
from certiformer.target.ridges import ridge_split as ridge_split
from certiformer.target.show import formula as formula
from certiformer.target.split import additive_split as additive_split
from certiformer.target.teacher import Teacher as Teacher
