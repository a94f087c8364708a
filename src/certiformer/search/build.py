"""`build` and `prove`: from a request to a run.

    target, box, epsilon -> construction -> evidence -> files in a staging folder -> independent check -> run folder

The check reads the very files that are then moved into place. Only what it accepted is recorded as level 2.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from certiformer._version import __version__
from certiformer.certificate import Certificate, Outcome, canonical, decimal_text, digest
from certiformer.checker import check, find_singularity
from certiformer.checker.rules.refusal import Refused
from certiformer.construct import voronoi
from certiformer.errors import BadInput
from certiformer.model import Transformer
from certiformer.model import load as load_model
from certiformer.model.store import tensors_to_bytes
from certiformer.search import folder as folders
from certiformer.search.evidence import Evidence, Progress, Tree, collect
from certiformer.search.request import Options, read_epsilon, read_target
from certiformer.search.run import Run
from certiformer.target import Target, target_to_text

METHODS = ("voronoi",)
# What a reader of the certificate has to believe, by level.
ASSUMPTIONS = {
    1: (
        "float64 operations are IEEE with or without fused multiply-add, and elementary functions keep the padding table",
    ),
    2: ("python-flint's balls contain the exact results of their operations",),
}


def build(
    target: str | Callable[..., Any],
    *,
    on: str,
    eps: str | float,
    method: str = "voronoi",
    out: str | Path | None = None,
    force: bool = False,
    keep: bool = False,
    progress: Progress | None = None,
    **options: Any,
) -> Run:
    """A transformer proved to be within `eps` of `target` at every point of the box `on`.

    Arguments: `target` a formula, `"file.py:name"` or a JAX callable; `on` a box such as `"[0,2*pi]^2"`; `eps` text or a
    number; `method` of construction; `out`, a folder to write (`keep=True` without `out` writes `runs/<name>`; by default
    nothing stays on disk); `options`: the fields of `Options`.

    >>> run = build("sin(x1)", on="[0, 2*pi]", eps=0.05)
    >>> run.outcome.value, run.level, run.certificate.method
    ('proved', 2, 'voronoi')
    """
    job = _Job(read_target(target, on), eps, checked_method(method), Options(**options), progress)
    return job.run(out, force, keep, _construct)


def prove(
    model: Transformer | str | Path,
    target: str | Callable[..., Any],
    *,
    on: str,
    eps: str | float,
    out: str | Path | None = None,
    force: bool = False,
    keep: bool = False,
    progress: Progress | None = None,
    **options: Any,
) -> Run:
    """Prove or refute that your own transformer is within `eps` of `target` on the box; arguments as for `build`."""
    job = _Job(read_target(target, on), eps, "given", Options(**options), progress)
    network = checked_network(model, job.target)
    return job.run(out, force, keep, lambda _: (network, None))


def checked_method(method: str) -> str:
    if method not in METHODS:
        raise BadInput(f"--method is one of {', '.join(METHODS)}, not {method!r}")
    return method


def checked_network(model: Transformer | str | Path, target: Target) -> Transformer:
    """The transformer, if it reads and writes what the target does."""
    network = model if isinstance(model, Transformer) else load_model(model)
    config, axes = network.config, target.domain.dimension
    if config.input.kind != "continuous":
        raise BadInput("prove needs a transformer with continuous inputs; this one reads token ids")
    reads = config.tokens * (config.input.width or 0)
    if reads != axes:
        raise BadInput(f"the transformer reads {reads} numbers, the box has {axes} axes")
    if network.output_size != len(target.program.outputs):
        raise BadInput(
            f"the transformer has {network.output_size} outputs, the target has {len(target.program.outputs)}"
        )
    return network


class _Job:
    """One request on its way through construction, search and check."""

    def __init__(self, target: Target, eps: str | float, method: str, options: Options, progress: Progress | None):
        self.target, self.method, self.options = target, method, options
        self.text, self.epsilon = read_epsilon(eps)
        self.progress = progress or (lambda stage, done, total, note: None)
        self.seconds: dict[str, float] = {}

    def run(self, out: str | Path | None, force: bool, keep: bool, make: Callable[[_Job], tuple]) -> Run:
        """Do everything; files stay only when `out` or `keep` asks for them."""
        singular = find_singularity(self.target.program, self.target.domain)
        if singular is not None:
            box, why = singular
            return self._without_model(Outcome.INVALID, f"the target is not defined everywhere: on {box}, {why}")
        with ExitStack() as stack:
            if out is None and not keep:
                home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="certiformer-")))
            else:
                home = folders.claim_folder(out, folders.slug(self.target.source), self._request(), force)
            began = time.monotonic()
            if self.method != "given":
                self.progress("construct", 0, None, "sizing the transformer")
            try:
                model, theorem = make(self)
            except Refused as refusal:
                self._abandon(home)
                return self._without_model(Outcome.UNDECIDED, f"no theorem of the method applies: {refusal}")
            except BadInput:
                self._abandon(home)
                raise
            self.seconds["construct"] = round(time.monotonic() - began, 3)
            checkpoint = (home / folders.CHECKPOINT, digest(self._request().encode()))
            found = collect(
                model,
                self.target,
                self.epsilon,
                self.options,
                theorem=theorem,
                checkpoint=checkpoint,
                progress=self.progress,
            )
            self.seconds |= {name: round(value, 3) for name, value in found.seconds.items()}
            apriori = None if theorem is None else theorem.bound
            certificate, leaves = self._settle(home, model, found, apriori)
            kept = None if out is None and not keep else home
            return Run(model, self.target, certificate, leaves, kept)

    def _request(self) -> str:
        """The request in words: two runs with the same text may continue each other."""
        keys = {"target": target_to_text(self.target), "epsilon": self.text, "method": self.method}
        keys["options"] = repr(replace(self.options, seconds=1.0, boxes=1, workers=None))
        return digest(canonical(keys))

    def _abandon(self, home: Path) -> None:
        """Leave no trace of a run that could not start."""
        if (home / folders.UNFINISHED).exists():
            folders.mark_finished(home)
            if not any(home.iterdir()):
                home.rmdir()

    def _without_model(self, outcome: Outcome, reason: str) -> Run:
        certificate = Certificate(self.text, outcome, 0, {}, method=self.method, reason=reason, versions=_versions())
        return Run(None, self.target, certificate, b"")

    def _settle(
        self, home: Path, model: Transformer, found: Evidence, apriori: str | None
    ) -> tuple[Certificate, bytes]:
        """Write the candidates one by one into the staging folder, check them, and move the first accepted one."""
        staging = home / folders.STAGING
        shutil.rmtree(staging, ignore_errors=True)
        staging.mkdir(parents=True)
        began = time.monotonic()
        base = self._base(found, apriori)
        certificate, leaves = None, b""
        candidates = [] if base.outcome is Outcome.REFUTED else found.trees
        for tree in candidates:
            claimed = self._write(staging, model, tree.leaves, _with_tree(base, tree))
            if self.options.level == 1:
                certificate, leaves = claimed, tree.leaves
                break
            verdict = check(staging, workers=self.options.workers, progress=self._check_progress)
            if verdict.accepted:
                upper = verdict.upper
                certificate, leaves = replace(claimed, level=2, upper=upper), tree.leaves
                break
            found.reasons.append(f"the independent checker refused: {verdict.reason}")
        if certificate is None:
            certificate = self._write(staging, model, b"", self._unproved(base, found))
            if certificate.outcome is Outcome.REFUTED:
                verdict = check(staging, workers=1)
                level = 2 if verdict.outcome == "refuted" else 0
                certificate = replace(certificate, level=level, outcome=Outcome.REFUTED if level else Outcome.UNDECIDED)
        self.seconds["check"] = round(time.monotonic() - began, 3)
        certificate = replace(certificate, seconds=dict(self.seconds))
        folders.write_certificate(staging, certificate)
        folders.publish(staging, home)
        return certificate, leaves

    def _base(self, found: Evidence, apriori: str | None) -> Certificate:
        lower = None if found.witness is None else found.witness.error
        outcome = Outcome.REFUTED if found.lower > self.epsilon else Outcome.UNDECIDED
        reason = ""
        if outcome is Outcome.REFUTED and found.witness is not None:
            reason = f"at ({', '.join(_short(x) for x in found.witness.point)}) the error is at least {lower}"
        return Certificate(
            self.text,
            outcome,
            0,
            {},
            method=self.method,
            lower=lower,
            witness=found.witness,
            reason=reason,
            apriori=apriori,
            assumptions=ASSUMPTIONS[self.options.level],
            versions=_versions(),
        )

    def _unproved(self, base: Certificate, found: Evidence) -> Certificate:
        reason = base.reason or "; ".join(found.reasons) or "no rule applied"
        return replace(base, reason=reason)

    def _write(self, staging: Path, model: Transformer, leaves: bytes, certificate: Certificate) -> Certificate:
        target = target_to_text(self.target).encode()
        seals = folders.write_inputs(staging, model.config.to_bytes(), tensors_to_bytes(model), target, leaves)
        certificate = replace(certificate, seals=seals)
        folders.write_certificate(staging, certificate)
        return certificate

    def _check_progress(self, done: int, total: int) -> None:
        self.progress("check", done, total, f"{done:,} of {total:,} leaves confirmed")


def _construct(job: _Job) -> tuple:
    built = voronoi.construct(job.target, job.epsilon)
    return built.model, built.proof


def _with_tree(base: Certificate, tree: Tree) -> Certificate:
    return replace(base, outcome=Outcome.PROVED, level=1, proof=tree.proof, upper=decimal_text(tree.upper, up=True))


def _short(text: str) -> str:
    return f"{float(Fraction(text)):.9g}"


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    names = ("jax", "jaxlib", "numpy", "python-flint")
    return {"certiformer": __version__, **{name: version(name) for name in names}}
