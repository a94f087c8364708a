"""Rigorous ranges of targets and of transformers on boxes, vectorised in float64.

`error_bound` bounds |T - f| on a box; `enclose_target`, `enclose_model` and `enclose_prototypes` give the Taylor forms
behind it. The page "Enclosures" of the documentation explains the method and its proofs.
"""

from certiformer.enclose.error import difference_bound as difference_bound
from certiformer.enclose.error import error_bound as error_bound
from certiformer.enclose.error import prototype_error_bound as prototype_error_bound
from certiformer.enclose.lists import PrototypeLists as PrototypeLists
from certiformer.enclose.lists import prototype_lists as prototype_lists
from certiformer.enclose.network import enclose_model as enclose_model
from certiformer.enclose.prototype import PrototypeAttention as PrototypeAttention
from certiformer.enclose.prototype import PrototypeHead as PrototypeHead
from certiformer.enclose.prototype import as_prototypes as as_prototypes
from certiformer.enclose.prototype_form import enclose_prototypes as enclose_prototypes
from certiformer.enclose.target import enclose_target as enclose_target
from certiformer.enclose.taylor import Form as Form
from certiformer.enclose.taylor import enclosed_range as enclosed_range
