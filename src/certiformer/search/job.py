"""`build` and `prove`: from a request to a run.

    target, box, epsilon -> construction -> evidence -> files in a hidden folder -> check -> run folder

The check reads the very files that are then moved into place, all at once. Only what it accepted is recorded as level 2.
Where the float64 search was too sure of a leaf, the kernel bisects it; `leaves.bin` holds the tree that the kernel
accepted, and no leaf is proved twice. Search and check share one clock, `--seconds`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from certiformer.artifact import Artifact
from certiformer.artifact import folder as folders
from certiformer.construct.method import Construction, Size, Task
from certiformer.disk import Workplace, refuse_own_input
from certiformer.errors import BadInput
from certiformer.kernel import Refused
from certiformer.kernel.certificate import Certificate, Outcome
from certiformer.kernel.check import check, check_files
from certiformer.kernel.files import TARGET, canonical, digest, read_files
from certiformer.kernel.programs import decimal_text
from certiformer.kernel.rules import MAX_DEPTH, Effort
from certiformer.model import Transformer
from certiformer.model import load as load_model
from certiformer.model.encoder_state import Read
from certiformer.model.from_torch import from_torch, is_state_file
from certiformer.model.store import tensors_to_bytes
from certiformer.model.transformer import cast
from certiformer.search.approximation import Approximation, versions
from certiformer.search.candidates import FIT, Candidate, Choice, choose, known_method
from certiformer.search.case import Evidence, Progress, Tree, confirmed
from certiformer.search.evidence import collect
from certiformer.search.regular import find_singularity
from certiformer.search.request import Options, read_any, read_epsilon, read_shape
from certiformer.search.run_error import run_error
from certiformer.search.watching import show
from certiformer.target import Target, Teacher, any_target_to_text, parse_domain

# What one candidate of several may cost: a small one whose proof is hard must not keep a larger one waiting for long.
CANDIDATE_SECONDS, CANDIDATE_BOXES = 60.0, 300_000
# And a sum of thousands of ridges that is proved direction by direction: it is done in this time or takes minutes.
THROUGH_SECONDS = 30.0
# A trained block is proved tightly: the upper end of the bracket within one per cent of the lower one.
FIT_QUALITY = 0.009
# What a reader of the certificate has to believe, by level.
ASSUMPTIONS = {
    1: (
        "float64 operations are IEEE with or without fused multiply-add, and elementary functions keep the padding table",
    ),
    2: ("python-flint's balls contain the exact results of their operations",),
}


# What is known about one block in the place of several; said with every block that imitates a deeper transformer.
DISTILLATION_NOTES = (
    "One block that imitates a deeper transformer on a box always exists, but no theorem promises a small one: in general"
    " its size grows exponentially with the number of inputs.",
    "For some functions of two layers one layer needs heads times head size times precision at least proportional to the"
    " length of the sequence (induction heads: Sanford, Hsu and Telgarsky 2024, arXiv 2408.14332), so a small block for"
    " this teacher says nothing about longer inputs.",
)


def build(
    target: str | Callable[..., Any],
    *,
    on: str,
    eps: str | float | Fraction,
    method: str = "auto",
    objective: str = "parameters",
    tokens: int | None = None,
    out_tokens: int | None = None,
    out_width: int | None = None,
    layout: str | None = None,
    fit_seconds: float = 30.0,
    out: str | Path | None = None,
    force: bool = False,
    keep: bool = False,
    progress: Progress | None = None,
    **options: Any,
) -> Artifact:
    """A transformer proved to be within `eps` of `target` at every point of the box `on`.

    Arguments: `target` a formula, `"file.py:name"`, a JAX callable, or a transformer (or its folder) to be imitated; `on`
    a box such as `"[0,2*pi]^2"`; `eps` text or a number; `method` of construction, `auto` for the smallest by `objective`
    (`parameters`, `heads` or `time`); `tokens`, `out_tokens`, `out_width` and `layout`, how inputs and outputs are arranged
    in tokens; `fit_seconds`, how long a block is trained; `out`, a folder to write (`keep=True` without `out` writes
    `runs/<name>`; by default nothing stays on disk); `options`: the fields of `Options`.

    >>> run = build("sin(x1)", on="[0, 2*pi]", eps=0.05, method="ridge")
    >>> run.outcome.value, run.level, run.certificate.method
    ('proved', 2, 'ridge')
    """
    if isinstance(target, str | Path):
        refuse_own_input(out, target)
    wanted = read_any(target, on, tokens)
    shape = read_shape(wanted, tokens, out_tokens, out_width, layout)
    details = f"{shape} {objective} {fit_seconds}"
    job = Job(wanted, eps, known_method(method), Options(**options), progress, details, objective)
    task = Task(wanted, job.epsilon, shape, job.options.seed)
    return job.run(out, force, keep, lambda: choose(method, task, objective, fit_seconds, job.progress))


def prove(
    model: Any,
    target: str | Callable[..., Any],
    *,
    on: str,
    eps: str | float | Fraction,
    heads: int | None = None,
    activation: str | None = None,
    norm_first: bool | None = None,
    norm_epsilon: float | None = None,
    read: Read | None = None,
    causal: bool | None = None,
    out: str | Path | None = None,
    force: bool = False,
    keep: bool = False,
    progress: Progress | None = None,
    **options: Any,
) -> Artifact:
    """Prove or refute that your own transformer is within `eps` of `target` on the box.

    Arguments: `model`, a `Transformer` or its folder, or an encoder of PyTorch: an `nn.Module`, or the path of a
    safetensors file with its state dict. What such a file does not say, `heads`, `activation`, `norm_first`,
    `norm_epsilon`, `read` and `causal` say (`model.from_torch`). All others as for `build`.

    >>> run = build("sin(x1)", on="[0, 2*pi]", eps=0.05, method="ridge")
    >>> prove(run.model, "sin(x1)", on="[0, 2*pi]", eps=0.05).certified
    True
    """
    if isinstance(model, str | Path):
        refuse_own_input(out, model)
    reading = {
        "heads": heads,
        "activation": activation,
        "norm_first": norm_first,
        "norm_epsilon": norm_epsilon,
        "read": read,
        "causal": causal,
    }
    axes = parse_domain(on).dimension
    network = network_of(model, axes, reading)
    tokens = network.config.tokens
    wanted = read_any(target, on, tokens if axes % tokens == 0 else None)
    job = Job(wanted, eps, "given", Options(**options), progress)
    network = checked_network(network, job.target)
    given = Candidate("given", Size.of(network), None, lambda: Construction(network, None))
    return job.run(out, force, keep, lambda: Choice([given]))


def network_of(model: Any, axes: int, reading: Mapping[str, Any]) -> Transformer:
    """The transformer that the user names, of which a box with `axes` axes is asked; `reading` is for `from_torch`."""
    if not isinstance(model, Transformer) and (is_state_file(model) or not isinstance(model, str | Path)):
        return from_torch(model, inputs=axes, **reading)
    for name, value in reading.items():
        if value is not None:
            raise BadInput(f"{name} is for the state dict of an encoder of PyTorch; this transformer says it itself")
    return model if isinstance(model, Transformer) else load_model(model)


def checked_network(network: Transformer, target: Target | Teacher) -> Transformer:
    """The transformer, if it reads and writes what the target does."""
    config, axes = network.config, target.domain.dimension
    if config.input.kind != "continuous":
        raise BadInput("prove needs a transformer with continuous inputs; this one reads token ids")
    reads = config.tokens * (config.input.width or 0)
    if reads != axes:
        raise BadInput(f"the transformer reads {reads} numbers, the box has {axes} axes")
    if network.output_size != target.outputs:
        raise BadInput(f"the transformer has {network.output_size} outputs, the target has {target.outputs}")
    return network


class Job:
    """One request on its way through construction, search and check."""

    def __init__(
        self,
        target: Target | Teacher,
        eps: str | float | Fraction,
        method: str,
        options: Options,
        progress: Progress | None,
        details: str = "",
        objective: str = "parameters",
    ):
        self.target, self.method, self.options = target, method, options
        self.text, self.epsilon = read_epsilon(eps)
        self.progress = progress or (lambda stage, done, total, note: None)
        self.seconds: dict[str, float] = {}
        self.details, self.objective = details, objective
        self.notes: tuple[str, ...] = ()

    def run(self, out: str | Path | None, force: bool, keep: bool, candidates: Callable[[], Choice]) -> Artifact:
        """Do everything; files stay only when `out` or `keep` asks for them."""
        singular = None
        if isinstance(self.target, Target):
            singular = find_singularity(self.target.program, self.target.domain)
        if singular is not None:
            box, why = singular
            return self._without_model(Outcome.INVALID, f"the target is not defined everywhere: on {box}, {why}")
        with folders.run_folder(out, keep, folders.slug(self.target.source), self._request(), force) as place:
            began = time.monotonic()
            if self.method != "given":
                self.progress("construct", 0, None, "sizing the transformer")
            try:
                choice = candidates()
                self.seconds["construct"] = round(time.monotonic() - began, 3)
                certificate = self._first_proved(place, choice)
            except Refused as refusal:
                return self._without_model(Outcome.UNDECIDED, f"no theorem of the method applies: {refusal}")
            rows = choice.rows() if self.method != "given" else []
            kept = None if out is None and not keep else place.folder
            files = folders.inputs_in(place.new)
            if kept is not None:
                if len(rows) > 1:
                    folders.write_candidates(place.new, rows)
                place.publish(folders.KINDS[TARGET].files)
            notes = self.notes
            if isinstance(self.target, Teacher) and self.method != "given":
                notes += DISTILLATION_NOTES
            about = Approximation(self.target, files)
            return Artifact(about, certificate, files, self.target.source, kept, notes, rows)

    def _first_proved(self, place: Workplace, choice: Choice) -> Certificate:
        """Certify the candidates in order; what was settled last is the new folder of the workplace."""
        reasons: list[str] = []
        left, left_seconds = list(choice.candidates), self.options.seconds
        while left:
            candidate = left[0]
            last = len(left) == 1 and choice.later is None
            began = time.monotonic()
            options = self._options_for(candidate, last, left_seconds)
            try:
                built = candidate.realise()
                if options.dtype is not None:
                    built = replace(built, model=cast(built.model, options.dtype))
            except (Refused, BadInput) as problem:
                candidate.outcome = f"not built: {problem}"
                reasons.append(f"{candidate.method}: {problem}")
                left = choice.after(candidate, self.objective)
                continue
            candidate.size = Size.of(built.model)
            # A block that is trained again has other weights, about which a kept search says nothing.
            seal = digest(f"{self._request()} {digest(tensors_to_bytes(built.model))}".encode())
            started = time.monotonic()
            end = started + options.seconds
            if not last and built.through is not None:
                options = replace(options, seconds=min(options.seconds, THROUGH_SECONDS))
            found = collect(
                built.model,
                self.target,
                self.epsilon,
                options,
                construction=built,
                checkpoint=(place.kept / folders.CHECKPOINT, seal),
                progress=self.progress,
            )
            for name, value in found.seconds.items():
                self.seconds[name] = round(self.seconds.get(name, 0.0) + value, 3)
            apriori = None if built.proof is None else built.proof.bound
            certificate = self._settle(place, built.model, found, apriori, candidate.method, end)
            left_seconds -= time.monotonic() - started
            candidate.outcome, candidate.seconds = certificate.outcome.value, round(time.monotonic() - began, 3)
            if certificate.outcome is Outcome.PROVED:
                return certificate
            left = choice.after(candidate, self.objective)
            if not left or left_seconds <= 0:
                return certificate
            reasons.append(f"{candidate.method}: {certificate.reason}")
        raise Refused("; ".join(reasons))

    def _options_for(self, candidate: Candidate, last: bool, seconds: float) -> Options:
        """What a candidate may cost of the seconds that are left."""
        quality = self.options.quality if candidate.method != FIT else min(self.options.quality, FIT_QUALITY)
        if last:
            return replace(self.options, quality=quality, seconds=seconds)
        boxes = min(self.options.boxes, CANDIDATE_BOXES)
        return replace(self.options, quality=quality, seconds=min(seconds / 2, CANDIDATE_SECONDS), boxes=boxes)

    def _request(self) -> str:
        """The request in words: two runs with the same text may continue each other."""
        keys = {"target": any_target_to_text(self.target), "epsilon": self.text, "method": self.method}
        keys["details"] = self.details
        keys["options"] = repr(replace(self.options, seconds=1.0, boxes=1, workers=None))
        return digest(canonical(keys))

    def _without_model(self, outcome: Outcome, reason: str) -> Artifact:
        certificate = Certificate(self.text, outcome, 0, {}, method=self.method, reason=reason, versions=versions())
        return Artifact(Approximation(self.target), certificate, {}, self.target.source)

    def _settle(
        self, place: Workplace, model: Transformer, found: Evidence, apriori: str | None, method: str, end: float
    ) -> Certificate:
        """Write the proofs one by one into the new folder and check them, until one is accepted or the clock says `end`.

        The kernel bisects leaves that it cannot accept as the search left them; what it accepted is what is recorded.
        """
        staging = place.fresh()
        began = time.monotonic()
        base = replace(self._base(found, apriori), method=method)
        if self.options.dtype is not None and base.outcome is not Outcome.REFUTED:
            base = self._with_run_error(base, model)
        certificate = None
        proofs = [] if base.outcome is Outcome.REFUTED else found.trees
        for number, tree in enumerate(proofs, 1):
            claimed = _with_tree(base, tree)
            if self.options.level == 1:
                certificate = self._write(staging, model, tree.leaves, claimed)
                break
            # A proof that is not the last one leaves the others half of the time.
            left = end - time.monotonic()
            effort = Effort(tree.goal, MAX_DEPTH, end if number == len(proofs) else end - left / 2)
            self._write(staging, model, tree.leaves, replace(claimed, upper=None))
            files = read_files(staging)
            show("proof", lambda tree=tree: (tree,))
            verdict = check_files(files, workers=self.options.workers, progress=self._check_progress, effort=effort)
            if verdict.accepted:
                proof, leaves = confirmed(tree, verdict.covers)
                claimed = replace(claimed, level=2, proof=proof, upper=verdict.upper)
                certificate = self._write(staging, model, leaves, claimed)
                break
            found.reasons.append(f"the checker refused: {verdict.reason}")
        if certificate is None:
            certificate = self._write(staging, model, b"", self._unproved(base, found))
            if certificate.outcome is Outcome.REFUTED:
                verdict = check(staging, workers=1)
                level = 2 if verdict.outcome == "refuted" else 0
                certificate = replace(certificate, level=level, outcome=Outcome.REFUTED if level else Outcome.UNDECIDED)
        self.seconds["check"] = round(self.seconds.get("check", 0.0) + time.monotonic() - began, 3)
        certificate = replace(certificate, seconds=dict(self.seconds))
        folders.write_certificate(staging, certificate)
        return certificate

    def _base(self, found: Evidence, apriori: str | None) -> Certificate:
        lower = None if found.witness is None else found.witness.error
        outcome = Outcome.REFUTED if found.lower > self.epsilon else Outcome.UNDECIDED
        reason = ""
        if outcome is Outcome.REFUTED and found.witness is not None:
            reason = f"at ({', '.join(_short(x) for x in found.witness.point)}) the error is at least {lower}"
            reason += f"; {found.limit}" if found.limit else ""
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
            versions=versions(),
        )

    def _with_run_error(self, base: Certificate, model: Transformer) -> Certificate:
        """The certificate with its claim about runs in the stored type, or a note why there is none."""
        self.progress("check", 0, None, f"bounding the rounding of runs in {model.config.dtype}")
        run = run_error(model, self.target)
        self.notes = () if run.bound else (f"no bound for runs in {model.config.dtype}: {run.reason}",)
        return replace(base, run_error=run.bound, assumptions=base.assumptions + (run.assumptions if run.bound else ()))

    def _unproved(self, base: Certificate, found: Evidence) -> Certificate:
        reason = base.reason or "; ".join(found.reasons) or "no rule applied"
        return replace(base, reason=reason)

    def _write(self, staging: Path, model: Transformer, leaves: bytes, certificate: Certificate) -> Certificate:
        target = any_target_to_text(self.target).encode()
        seals = folders.write_inputs(staging, model.config.to_bytes(), tensors_to_bytes(model), target, leaves)
        certificate = replace(certificate, seals=seals)
        folders.write_certificate(staging, certificate)
        return certificate

    def _check_progress(self, done: int, total: int) -> None:
        self.progress("check", done, total, f"{done:,} of {total:,} leaves confirmed")


def _with_tree(base: Certificate, tree: Tree) -> Certificate:
    return replace(base, outcome=Outcome.PROVED, level=1, proof=tree.proof, upper=decimal_text(tree.upper, up=True))


def _short(text: str) -> str:
    return f"{float(Fraction(text)):.9g}"
