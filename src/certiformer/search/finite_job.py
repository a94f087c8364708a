"""One claim about a finite set on its way: construction -> files -> check -> run folder."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from certiformer.artifact import Artifact
from certiformer.artifact import folder as folders
from certiformer.construct.memorise import Progress
from certiformer.disk import Workplace
from certiformer.kernel import Refused
from certiformer.kernel.balls import decimal, working_precision
from certiformer.kernel.certificate import Certificate, Node, Outcome, Witness
from certiformer.kernel.check import check, error_lower
from certiformer.kernel.files import TARGET, canonical, digest
from certiformer.kernel.problem import FiniteProblem, Network, PointNetwork
from certiformer.kernel.rounding.runs import letters_error
from certiformer.kernel.weights import read_model
from certiformer.model import Transformer
from certiformer.model.store import tensors_to_bytes
from certiformer.search.approximation import Approximation, versions
from certiformer.search.run_error import ASSUMPTIONS as RUN_ASSUMPTIONS
from certiformer.target import FiniteTarget, SequenceMap, any_target_to_text

EPSILON = "1e-6"  # unless the user says otherwise
ASSUMPTIONS = ("python-flint's balls contain the exact results of their operations",)

Made = tuple[Transformer, Node, Witness | None, list[str]]  # with notes for the user


class FiniteJob:
    """One finite claim on its way through construction and check."""

    def __init__(
        self, target: FiniteTarget, text: str, epsilon: Fraction, method: str, details: str, progress: Progress | None
    ):
        self.target, self.text, self.epsilon, self.method, self.details = target, text, epsilon, method, details
        self.progress = progress or (lambda stage, done, total, note: None)
        self.notes: tuple[str, ...] = ()

    def run(self, make: Callable[[], Made], out: str | Path | None, force: bool, keep: bool) -> Artifact:
        """Construct, write, check, publish; files stay only when `out` or `keep` asks for them."""
        with folders.run_folder(out, keep, folders.slug(self.target.source), self._request(), force) as place:
            began = time.monotonic()
            try:
                model, proof, witness, notes = make()
            except Refused as problem:
                reason = str(problem)
                nothing = Certificate(self.text, Outcome.UNDECIDED, 0, {}, method=self.method, reason=reason)
                nothing = replace(nothing, versions=versions())
                return Artifact(Approximation(self.target), nothing, {}, self.target.source)
            seconds = {"construct": round(time.monotonic() - began, 3)}
            certificate = self._settle(place, model, proof, witness, seconds)
            kept = None if out is None and not keep else place.folder
            files = folders.inputs_in(place.new)
            if kept is not None:
                place.publish(folders.KINDS[TARGET].files)
            about, said = Approximation(self.target, files), (*notes, *self.notes)
            return Artifact(about, certificate, files, self.target.source, kept, said)

    def _request(self) -> str:
        keys = {"target": any_target_to_text(self.target), "epsilon": self.text, "method": self.method}
        return digest(canonical({**keys, "details": self.details}))

    def _settle(
        self, place: Workplace, model: Transformer, proof: Node, witness: Witness | None, seconds: dict[str, float]
    ) -> Certificate:
        """Write the files into the new folder, ask the checker, and record what it said."""
        staging = place.fresh()
        config, tensors = model.config.to_bytes(), tensors_to_bytes(model)
        seals = folders.write_inputs(staging, config, tensors, any_target_to_text(self.target).encode(), b"")
        witness = self._proved(witness, config, tensors)
        certificate = Certificate(
            self.text,
            Outcome.PROVED,
            1,
            seals,
            method=self.method,
            upper=proof.bound,
            lower=None if witness is None else witness.error,
            witness=witness,
            proof=proof,
            assumptions=ASSUMPTIONS,
            versions=versions(),
        )
        if isinstance(self.target, SequenceMap):
            certificate = self._with_run_error(certificate, model.config.dtype, config, tensors)
        folders.write_certificate(staging, certificate)
        began = time.monotonic()
        verdict = check(staging, progress=lambda done, total: self._checked(done, total))
        seconds["check"] = round(time.monotonic() - began, 3)
        certificate = replace(certificate, seconds=seconds)
        if verdict.accepted:
            certificate = replace(certificate, level=2, upper=verdict.upper)
        else:
            reason = f"the checker refused: {verdict.reason}"
            certificate = replace(
                certificate, outcome=Outcome.UNDECIDED, level=0, proof=None, upper=None, reason=reason
            )
        folders.write_certificate(staging, certificate)
        return certificate

    def _with_run_error(self, base: Certificate, dtype: str, config: bytes, tensors: bytes) -> Certificate:
        """The certificate with its claim about runs in the stored type, or a note why there is none."""
        self.progress("check", 0, None, f"bounding the rounding of runs in {dtype}")
        found = letters_error(Network(*read_model(config, tensors)), dtype)
        if found.bound is None:
            self.notes = (f"no bound for runs in {dtype}: {found.reason}",)
            return base
        assumptions = base.assumptions + tuple(line.format(dtype=dtype) for line in RUN_ASSUMPTIONS)
        return replace(base, run_error=decimal(found.bound, up=True), assumptions=assumptions)

    def _proved(self, witness: Witness | None, config: bytes, tensors: bytes) -> Witness | None:
        """The witness with a proved error, unless that is zero."""
        if witness is None:
            return None
        working_precision()
        problem = FiniteProblem(PointNetwork(*read_model(config, tensors)), self.target)
        error = decimal(error_lower(problem, witness), up=False)
        return replace(witness, error=error) if Fraction(error) > 0 else None

    def _checked(self, done: int, total: int) -> None:
        self.progress("check", done, total, f"{done:,} of {total:,} rows confirmed")
