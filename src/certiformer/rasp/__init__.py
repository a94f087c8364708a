"""RASP programs: sequences of values, attention patterns, and what they mean.

The names are those of Weiss, Goldberg and Yahav (2021, arXiv 2106.06981) as spelled by Tracr, so that a program written
for its `rasp` module runs after a change of its import line. `interpreter` gives the meaning, `validate` says what a
compiler cannot do and why, `program_to_graph` and `graph_to_simplified` turn a program into data, `library` has
programs with their oracles. Standard library only.
"""

from certiformer.rasp.expression import (
    Encoding,
    RASPExpr,
    annotate,
    categorical,
    get_encoding,
    is_categorical,
    is_numerical,
    numerical,
)
from certiformer.rasp.interpreter import evaluate
from certiformer.rasp.selectors import (
    Aggregate,
    Comparison,
    ConstantSelector,
    Predicate,
    Select,
    Selector,
    SelectorAnd,
    SelectorNot,
    SelectorOr,
    SelectorWidth,
    selector_and,
    selector_not,
    selector_or,
)
from certiformer.rasp.sequences import (
    ConstantSOp,
    Full,
    IndicesType,
    LengthType,
    LinearSequenceMap,
    Map,
    SequenceMap,
    SOp,
    TokensType,
    indices,
    length,
    sop_not,
    tokens,
)
from certiformer.rasp.value import Value

__all__ = [
    "Aggregate",
    "Comparison",
    "ConstantSOp",
    "ConstantSelector",
    "Encoding",
    "Full",
    "IndicesType",
    "LengthType",
    "LinearSequenceMap",
    "Map",
    "Predicate",
    "RASPExpr",
    "SOp",
    "Select",
    "Selector",
    "SelectorAnd",
    "SelectorNot",
    "SelectorOr",
    "SelectorWidth",
    "SequenceMap",
    "TokensType",
    "Value",
    "annotate",
    "categorical",
    "evaluate",
    "get_encoding",
    "indices",
    "is_categorical",
    "is_numerical",
    "length",
    "numerical",
    "selector_and",
    "selector_not",
    "selector_or",
    "sop_not",
    "tokens",
]
