"""In-context learners as transformers: the rows of a context and a query go in, the prediction comes out.

`context_learner` gives the weights of a described learner; the algorithm is in the weights, the data are the input.
"""

from __future__ import annotations

from certiformer.compiler.incontext.compiled import ContextLearner as ContextLearner
from certiformer.compiler.incontext.compiled import context_learner as context_learner
from certiformer.compiler.incontext.context import read_context as read_context
from certiformer.compiler.incontext.context import read_queries as read_queries
from certiformer.compiler.incontext.registry import describe as describe
from certiformer.compiler.incontext.request import Request as Request
