"""The one transformer: configuration, forward pass, files, cost.

Constructed, compiled, trained and loaded transformers are all `Transformer`; there is no second forward pass.
"""

from certiformer.model.config import Attention as Attention
from certiformer.model.config import Block as Block
from certiformer.model.config import Code as Code
from certiformer.model.config import Config as Config
from certiformer.model.config import FeedForward as FeedForward
from certiformer.model.config import Heads as Heads
from certiformer.model.config import Input as Input
from certiformer.model.config import Norm as Norm
from certiformer.model.config import Readout as Readout
from certiformer.model.cost import Cost as Cost
from certiformer.model.layout import Spec as Spec
from certiformer.model.layout import tensor_specs as tensor_specs
from certiformer.model.store import from_bytes as from_bytes
from certiformer.model.store import load as load
from certiformer.model.store import save as save
from certiformer.model.transformer import Transformer as Transformer
