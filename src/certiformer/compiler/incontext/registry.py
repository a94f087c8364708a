"""The learners by the word that the command knows, each with its module.

A module offers

- `describe(request) -> Learner`: the description that the flags ask for; `BadInput` where they make no sense;
- `build(learner) -> (Config, tensors)`: the weights;
- `points(learner, x, y, queries) -> (queries, tokens * width)`: the inputs of the model, one for each query;
- `refuse(learner, x, y, queries)`: `BadInput` where the context cannot be learned from;
- `remarks(learner, x, y, queries) -> list[str]`: why the certificate does not cover this context; empty where it does;
- `facts(learner, x, y, outputs) -> dict` (optional): more about a prediction than the number;
- `LINEAR` (optional): predictions are linear in the query, so that those for unit vectors are the learned weights.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from certiformer.compiler.incontext.request import Request
from certiformer.errors import BadInput
from certiformer.kernel.meanings.learner import Learner

LEARNERS = {
    "gd": "gradient",
    "ridge": "ridge",
    "relu": "relu_least_squares",
    "logistic": "logistic",
    "lasso": "lasso",
    "select": "selection",
}
# What `learner` says in learner.json, where that is another word.
WORDS = {
    "relu-least-squares": "relu",
    "relu-logistic": "logistic",
    "relu-lasso": "lasso",
    "selection": "select",
}


def module_of(word: str) -> Any:
    """The module of a learner, by its word or by what its description says."""
    word = WORDS.get(word, word)
    if word not in LEARNERS:
        raise BadInput(f"there is no learner {word[:40]!r}; the learners are {', '.join(LEARNERS)}")
    return import_module(f"certiformer.compiler.incontext.{LEARNERS[word]}")


def describe(request: Request) -> Learner:
    """The description of the learner that `request` asks for.

    >>> describe(Request(learner="gd", features=2, rows=20, layers=5)).sentence
    'On every context of 1 to 20 rows with 2 features, |x| <= 1 and |y| <= 1, 5 layers predict what 5 steps of gradient \
descent of size 0.5 predict, exactly, in real arithmetic, and in a run in float64 to 1e-12.'
    """
    return module_of(request.learner).describe(request)
