"""The rule *margin*: compiled programs, checked sub-layer by sub-layer from the weights for all inputs at once."""

from certiformer.checker.margin.certify import margin_certificate as margin_certificate
from certiformer.checker.margin.prove import Findings as Findings
from certiformer.checker.margin.prove import MarginReport as MarginReport
from certiformer.checker.margin.prove import prove_margin as prove_margin
