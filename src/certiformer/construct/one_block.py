"""Names that gadgets of one block share: where its tensors are, and how large they may become."""

from __future__ import annotations

import numpy as np

HEAD, FFN = "blocks.0.attention.groups.0", "blocks.0.ffn"
MAX_WEIGHTS = 50_000_000

Tensors = dict[str, np.ndarray]
