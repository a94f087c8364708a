"""The part of `certiformer run` that speaks of learners: a context and queries in, predictions out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from certiformer.cli.terminal import Terminal
from certiformer.errors import BadInput

if TYPE_CHECKING:
    from certiformer.artifact import Artifact
    from certiformer.cli.run import Options


def run(artifact: Artifact, options: Options, terminal: Terminal) -> int:
    """Predict with the learner of a folder; returns the exit code."""
    from certiformer.cli.run import refuse_flags
    from certiformer.compiler.incontext import read_context, read_queries

    refuse_flags(options, "a compiled learner", "context", "query")
    if options.context is None or options.query is None:
        raise BadInput('a learner needs rows and a question, for instance --context data.csv --query "0.3,1.2"')
    compiled = artifact.subject
    learner = compiled.learner
    x, y = read_context(options.context, learner.features, learner.rows)
    queries = read_queries(options.query, learner.features)
    outputs = compiled.outputs(x, y, queries)
    predictions = outputs[:, 0].astype(float).tolist()
    certificate = artifact.certificate
    unproved = [] if certificate.level == 2 else [f"the claim of this folder is not proved: {certificate.reason}"]
    remarks = [*unproved, *compiled.remarks(x, y, queries)]
    facts = compiled.extras(x, y, outputs)
    if terminal.json:
        answer: dict[str, Any] = {"outcome": "done", "predictions": predictions, "queries": queries.tolist()}
        answer |= {"rows": len(x), "learner": learner.learner, "covered": not remarks, "remarks": remarks, **facts}
        terminal.emit({**answer, "dtype": learner.dtype, "directory": options.directory})
        return 0
    for query, prediction in zip(queries.tolist(), predictions, strict=True):
        if terminal.quiet:
            terminal.say(repr(prediction))
        else:
            terminal.say(f"{', '.join(f'{value:g}' for value in query):>32}  ->  {prediction:.12g}")
    if not terminal.quiet:
        for name, value in facts.items():
            terminal.fact(name, _spelled(value))
        covered = "the recorded claim covers this context" if not remarks else "; ".join(remarks)
        terminal.fact("rows", f"{len(x):,} of at most {learner.rows:,}; {covered}", "" if remarks else "good")
    return 0


def _spelled(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_spelled, value))
    return f"{value:.12g}" if isinstance(value, float) else str(value)
