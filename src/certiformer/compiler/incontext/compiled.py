"""`CompiledLearner`: a described learner with the weights that run it, its predictions and its files."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from certiformer.compiler.folder import files_of, load_model, save_computation
from certiformer.compiler.incontext.registry import module_of
from certiformer.compiler.stored import stored
from certiformer.errors import BadInput
from certiformer.kernel.certificate import Certificate
from certiformer.kernel.files import LEARNER, read_bytes
from certiformer.kernel.meanings.learner import Learner, read_learner
from certiformer.model.config import Config

if TYPE_CHECKING:
    from certiformer.model.transformer import Transformer


@dataclass(frozen=True)
class CompiledLearner:
    """A learner and the transformer that runs it; `tensors` are NumPy arrays in the stored type."""

    learner: Learner
    config: Config
    tensors: dict[str, np.ndarray]

    @cached_property
    def transformer(self) -> Transformer:
        from certiformer.model.transformer import Transformer

        return Transformer(self.config, self.tensors)

    def outputs(
        self, x: Float[np.ndarray, "rows features"], y: Float[np.ndarray, " rows"], queries: Any
    ) -> Float[np.ndarray, "queries outputs"]:
        """Everything that the read-out gives for every query, in the stored type."""
        x, y, queries = np.asarray(x, float), np.asarray(y, float), np.atleast_2d(np.asarray(queries, float))
        self._require(x, y, queries)
        module = module_of(self.learner.learner)
        module.refuse(self.learner, x, y, queries)
        return self.transformer.evaluate(module.points(self.learner, x, y, queries), self.learner.dtype)

    def predict(
        self, x: Float[np.ndarray, "rows features"], y: Float[np.ndarray, " rows"], queries: Any
    ) -> Float[np.ndarray, " queries"]:
        """The prediction for every query."""
        return self.outputs(x, y, queries)[:, 0]

    def remarks(self, x: np.ndarray, y: np.ndarray, queries: np.ndarray) -> list[str]:
        """Why the certificate does not cover this context; empty where it does."""
        return module_of(self.learner.learner).remarks(self.learner, x, y, queries)

    def facts(self, x: np.ndarray, y: np.ndarray, outputs: np.ndarray) -> dict[str, Any]:
        """What the learner says beside its predictions."""
        module = module_of(self.learner.learner)
        weights = (
            {"weights": self.predict(x, y, np.eye(self.learner.features)).tolist()} if hasattr(module, "LINEAR") else {}
        )
        facts = getattr(module, "facts", None)
        return weights if facts is None else {**weights, **facts(self.learner, x, y, outputs)}

    def files(self) -> dict[str, bytes]:
        """The files of the folder, all but the certificate."""
        return files_of(self.config, self.tensors, LEARNER, self.learner.to_text())

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


def compile_learner(learner: Learner) -> CompiledLearner:
    """The transformer of a described learner.

    >>> from certiformer.compiler.incontext import Request, describe
    >>> learner = compile_learner(describe(Request(learner="gd", features=1, rows=4, layers=1, step=0.5)))
    >>> learner.predict(np.array([[1.0], [-1.0]]), np.array([1.0, -1.0]), [[0.5]])
    array([0.25])
    """
    config, tensors = module_of(learner.learner).build(learner)
    kept = {
        name: t if t.dtype == np.uint8 else stored(t, learner.dtype) for name, t in tensors.items()
    }  # masks are bytes
    return CompiledLearner(learner, config, kept)


def save_learner(compiled: CompiledLearner, directory: str | Path, force: bool = False) -> Certificate:
    """Write the folder, with the certificate of the checker, which is returned."""
    return save_computation(compiled.files(), compiled.learner.rule, directory, force)


def load_learner(directory: str | Path) -> CompiledLearner:
    """The compiled learner that `save_learner` wrote."""
    learner = read_learner(read_bytes(Path(directory) / LEARNER))
    model = load_model(directory)
    if model.config != module_of(learner.learner).build(learner)[0]:
        raise BadInput(f"the transformer in {directory} is not that of the learner beside it")
    return CompiledLearner(learner, model.config, {name: np.asarray(t) for name, t in model.tensors.items()})
