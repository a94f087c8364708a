"""The certificate of a compiled program, from a report of `prove_margin` and the files it was made from."""

from __future__ import annotations

from collections.abc import Mapping

from certiformer._version import __version__
from certiformer.checker.margin.prove import MarginReport
from certiformer.kernel.certificate import Certificate, Margin, Outcome
from certiformer.kernel.files import CIRCUIT, CONFIG, MODEL, PROGRAM, digest

ASSUMPTIONS = (
    "real arithmetic: none",
    "run: any order of summation, fused or not; the model of one operation of kernel.rounding",
    "run: exp(x) is 1 for |x| <= u/4, and x/1 is x",
)


def margin_certificate(
    report: MarginReport, contents: Mapping[str, bytes], seconds: Mapping[str, float] | None = None
) -> Certificate:
    """The certificate of a folder with these files: model, config, program and circuit, by their names."""
    seals = {name: digest(contents[name]) for name in (MODEL, CONFIG, PROGRAM, CIRCUIT)}
    return Certificate(
        epsilon="0",
        outcome=Outcome.PROVED,
        level=2,
        seals=seals,
        method="compile",
        upper="0",
        proof=Margin("0"),
        reason=report.reason,
        assumptions=ASSUMPTIONS,
        versions={"certiformer": __version__},
        seconds=dict(seconds or {}),
    )
