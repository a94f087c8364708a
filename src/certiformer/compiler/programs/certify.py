"""Asking the checker about the files of a compiled program, and the certificate that follows.

The checker reads the very bytes that are then written. What it accepts is level 2; anything else claims nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.metadata import version
from time import monotonic

from certiformer._version import __version__
from certiformer.errors import BadInput
from certiformer.kernel.certificate import Certificate, Outcome, Situations
from certiformer.kernel.claim import SEALED_PROGRAM
from certiformer.kernel.files import BASIS, CIRCUIT, CONFIG, MODEL, PROGRAM, digest

Progress = Callable[[str, float, float | None, str], None]
METHOD = "compile"
ASSUMPTIONS = (
    "real arithmetic: none",
    "run: any order of summation, fused or not; the model of one operation of kernel.rounding",
    "run: exp(x) is 1 for |x| <= u/4, and x/1 is x",
)


def certify(files: Mapping[str, bytes], seconds: dict[str, float], progress: Progress | None) -> Certificate:
    """The certificate of the claim: proved at level 2, or undecided with the checker's reason."""
    from certiformer.kernel import Refused
    from certiformer.kernel.balls import working_precision
    from certiformer.kernel.situations.rasp.prove import prove_program
    from certiformer.kernel.weights import read_model

    if progress is not None:
        progress("check", 0, None, "bounding every layer for all inputs")
    began = monotonic()
    working_precision()
    try:
        config, tensors = read_model(files[CONFIG], files[MODEL])
        report = prove_program(config, tensors, files[PROGRAM].decode("ascii"), files[CIRCUIT].decode("ascii"))
        certificate = program_certificate(report.reason, files)
    except (Refused, BadInput) as refusal:
        certificate = _claims_nothing(files, str(refusal))
    times = {**seconds, "check": round(monotonic() - began, 3)}
    return replace(certificate, seconds=times, versions=_versions())


def program_certificate(reason: str, files: Mapping[str, bytes]) -> Certificate:
    """The certificate of a proved program, for a folder with these files."""
    seals = {name: digest(files[name]) for name in SEALED_PROGRAM}
    return Certificate(
        "0", Outcome.PROVED, 2, seals, METHOD, upper="0", proof=Situations("0"), reason=reason, assumptions=ASSUMPTIONS
    )


def unchecked(
    files: Mapping[str, bytes], seconds: dict[str, float], reason: str = "the checker was not asked"
) -> Certificate:
    """The certificate of a program whose proof was left out."""
    certificate = _claims_nothing(files, reason)
    return replace(certificate, seconds=dict(seconds), versions=_versions())


def _claims_nothing(files: Mapping[str, bytes], reason: str) -> Certificate:
    seals = {name: digest(files[name]) for name in (*SEALED_PROGRAM, BASIS) if name in files}
    return Certificate("0", Outcome.UNDECIDED, 0, seals, method=METHOD, reason=reason)


def _versions() -> dict[str, str]:
    return {"certiformer": __version__, **{name: version(name) for name in ("numpy", "python-flint")}}
