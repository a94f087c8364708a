"""Claims, outcomes, proof trees and their canonical files (standard library only)."""

from certiformer.certificate.claim import Certificate as Certificate
from certiformer.certificate.claim import Witness as Witness
from certiformer.certificate.files import CERTIFICATE as CERTIFICATE
from certiformer.certificate.files import CONFIG as CONFIG
from certiformer.certificate.files import LEAVES as LEAVES
from certiformer.certificate.files import MODEL as MODEL
from certiformer.certificate.files import TARGET as TARGET
from certiformer.certificate.files import canonical as canonical
from certiformer.certificate.files import digest as digest
from certiformer.certificate.files import parse_json as parse_json
from certiformer.certificate.files import read_bytes as read_bytes
from certiformer.certificate.files import write_atomically as write_atomically
from certiformer.certificate.numbers import decimal_text as decimal_text
from certiformer.certificate.outcome import Outcome as Outcome
from certiformer.certificate.tree import Boxes as Boxes
from certiformer.certificate.tree import Finite as Finite
from certiformer.certificate.tree import Inner as Inner
from certiformer.certificate.tree import Node as Node
from certiformer.certificate.tree import Outputs as Outputs
from certiformer.certificate.tree import Ridges as Ridges
from certiformer.certificate.tree import Sum as Sum
from certiformer.certificate.tree import Theorem as Theorem
from certiformer.certificate.tree import Triangle as Triangle
from certiformer.certificate.tree import rules_used as rules_used
