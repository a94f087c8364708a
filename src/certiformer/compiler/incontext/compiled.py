"""`ContextLearner`: a described learner in the weights of a transformer, and its predictions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from certiformer.compiler.computation import Computation, arrays_of
from certiformer.compiler.incontext.context import read_context, read_queries
from certiformer.compiler.incontext.registry import module_of
from certiformer.compiler.tensors import stored
from certiformer.errors import BadInput
from certiformer.kernel.files import LEARNER
from certiformer.kernel.meanings.learner import Learner, read_learner
from certiformer.model.config import Config

if TYPE_CHECKING:
    from certiformer.model.transformer import Transformer


@dataclass(frozen=True)
class ContextLearner(Computation):
    """A learner and the transformer that runs it; `tensors` are NumPy arrays in the stored type."""

    learner: Learner
    config: Config
    tensors: dict[str, np.ndarray]

    @property
    def rule(self) -> str:
        return self.learner.rule

    @property
    def description(self) -> str:
        return self.learner.to_text()

    @staticmethod
    def from_files(files: Mapping[str, bytes], model: Transformer) -> ContextLearner:
        """What a run folder holds."""
        learner = read_learner(files[LEARNER])
        if model.config != module_of(learner.learner).build(learner)[0]:
            raise BadInput("the transformer in this folder is not that of the learner beside it")
        return ContextLearner(learner, model.config, arrays_of(model))

    def answers(self, sequence: Any, *, context: Any = None) -> list[float]:
        """The prediction for every query, from the rows of `context`: a pair of features and answers, or a CSV file."""
        if context is None:
            raise BadInput("a learner needs rows to learn from: run(queries, context=(x, y))")
        learner = self.learner
        x, y = (
            read_context(str(context), learner.features, learner.rows) if isinstance(context, str | Path) else context
        )
        queries = read_queries(sequence, learner.features) if isinstance(sequence, str) else sequence
        return self.predict(x, y, queries).astype(float).tolist()

    def sizes(self) -> dict[str, Any]:
        return {"learner": self.learner.learner, "features": self.learner.features, "rows": self.learner.rows}

    def outputs(
        self, x: Float[np.ndarray, "rows features"], y: Float[np.ndarray, " rows"], queries: Any
    ) -> Float[np.ndarray, "queries outputs"]:
        """Everything that the read-out gives for every query, in the stored type."""
        x, y, queries = np.asarray(x, float), np.asarray(y, float), np.atleast_2d(np.asarray(queries, float))
        self._require(x, y, queries)
        module = module_of(self.learner.learner)
        module.refuse(self.learner, x, y, queries)
        return self.model.evaluate(module.points(self.learner, x, y, queries), self.learner.dtype)

    def predict(
        self, x: Float[np.ndarray, "rows features"], y: Float[np.ndarray, " rows"], queries: Any
    ) -> Float[np.ndarray, " queries"]:
        """The prediction for every query."""
        return self.outputs(x, y, queries)[:, 0]

    def remarks(self, x: np.ndarray, y: np.ndarray, queries: np.ndarray) -> list[str]:
        """Why the certificate does not cover this context; empty where it does."""
        return module_of(self.learner.learner).remarks(self.learner, x, y, queries)

    def extras(self, x: np.ndarray, y: np.ndarray, outputs: np.ndarray) -> dict[str, Any]:
        """What the learner says beside its predictions."""
        module = module_of(self.learner.learner)
        weights = (
            {"weights": self.predict(x, y, np.eye(self.learner.features)).tolist()} if hasattr(module, "LINEAR") else {}
        )
        facts = getattr(module, "facts", None)
        return weights if facts is None else {**weights, **facts(self.learner, x, y, outputs)}

    def _require(self, x: np.ndarray, y: np.ndarray, queries: np.ndarray) -> None:
        features, rows = self.learner.features, self.learner.rows
        if x.ndim != 2 or x.shape[1] != features or y.shape != x.shape[:1] or queries.shape[1:] != (features,):
            raise BadInput(
                f"a context is (rows, {features}) features with (rows,) answers and queries are (queries, {features}), not"
                f" {x.shape}, {y.shape} and {queries.shape}"
            )
        if not 1 <= len(x) <= rows:
            raise BadInput(f"this learner takes 1 to {rows:,} rows, not {len(x):,}")
        if not all(np.isfinite(part).all() for part in (x, y, queries)):
            raise BadInput("a context or a query holds a number that is not finite")


def context_learner(learner: Learner) -> ContextLearner:
    """The transformer of a described learner.

    >>> from certiformer.compiler.incontext import Request, describe
    >>> learner = context_learner(describe(Request(learner="gd", features=1, rows=4, layers=1, step=0.5)))
    >>> learner.predict(np.array([[1.0], [-1.0]]), np.array([1.0, -1.0]), [[0.5]])
    array([0.25])
    """
    config, tensors = module_of(learner.learner).build(learner)
    kept = {
        name: t if t.dtype == np.uint8 else stored(t, learner.dtype) for name, t in tensors.items()
    }  # masks are bytes
    return ContextLearner(learner, config, kept)
