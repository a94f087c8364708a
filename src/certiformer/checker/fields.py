"""The fields of a certificate beside its proof, compared with what was proved.

A field that says nothing in a kind of claim must be empty there: an unread field would be a claim that nobody checked.
"""

from __future__ import annotations

from flint import arb

from certiformer.certificate import Certificate, Outcome
from certiformer.kernel.balls import ball, exact
from certiformer.kernel.refusal import Refused


def require_absent(certificate: Certificate, *names: str) -> None:
    """Refuse fields that have no meaning in this kind of claim."""
    for name in names:
        if getattr(certificate, name) is not None:
            raise Refused(f"the certificate states the field {name}, which such a claim does not have")


def require_upper(certificate: Certificate, proved: arb | None) -> None:
    """The stated upper bound is not below the proved one; without a proof there is none."""
    if certificate.upper is None:
        return
    if proved is None:
        raise Refused("the certificate states an upper bound of the error but claims no proof")
    if not proved <= ball(exact(certificate.upper)):
        raise Refused(f"the certificate states an error of at most {certificate.upper}, which is not proved")


def require_lower(certificate: Certificate, proved: arb | None) -> None:
    """The stated lower bound, and the error that the witness is said to have, are not above what the witness proves."""
    witness = certificate.witness
    if witness is None or proved is None:
        return require_absent(certificate, "lower")
    for text in (witness.error, certificate.lower or "0"):
        if not ball(exact(text)) <= proved:
            raise Refused(f"the certificate states an error of at least {text}, which its witness does not have")


def claims_nothing(certificate: Certificate) -> bool:
    """Whether the certificate leaves its claim undecided; what then remains of it must not state a proof.

    That a claim is invalid is said before there is a transformer, and no folder can show it.
    """
    if certificate.outcome is Outcome.INVALID:
        raise Refused("the certificate calls its claim invalid, which a folder with a transformer cannot show")
    if certificate.outcome is Outcome.UNDECIDED:
        require_absent(certificate, "upper")
        return True
    return False


def nothing_claimed(certificate: Certificate) -> str:
    """What the checker says about a claim that its certificate leaves undecided."""
    reason = certificate.reason
    return f"nothing is claimed (recorded, not checked: {reason})" if reason else "nothing is claimed"
