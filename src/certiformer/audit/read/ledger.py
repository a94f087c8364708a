"""Who accounts for which stored number: taken by a family, a tied copy, a buffer, or missing."""

from __future__ import annotations

import re

from certiformer.audit.files import TensorFiles
from certiformer.audit.form import Coverage
from certiformer.audit.read.origin import Origin

# Tensors that hold no parameters although some are stored as floats: positions, rotary tables, counters, sentinels.
BUFFERS = re.compile(
    r"(^|\.)(position_ids|token_type_ids|inv_freq|original_inv_freq|masked_bias|num_batches_tracked|cos_cached|sin_cached"
    r"|rope_freqs|local_mask|attn_mask|causal_mask)(\.weight)?$"
)
# Causal masks under the name of a bias: four axes, the first two of length one.
MASK = re.compile(r"(^|\.)(attn|attention|self_attn|self_attention|attn\.attention)\.bias$")


class Ledger:
    """Counts what is taken of the tensors that `files` presents; `origins` leads back to the stored ones."""

    def __init__(self, files: TensorFiles, origins: dict[str, Origin]) -> None:
        self.files, self.origins = files, origins
        self._taken: dict[str, int] = {}
        self._copies: set[str] = set()

    def origin(self, name: str) -> Origin:
        return self.origins.get(name, Origin(name))

    def take(self, name: str, size: int) -> None:
        self._taken[name] = self._taken.get(name, 0) + size

    def copy(self, name: str) -> None:
        self._copies.add(name)

    def is_buffer(self, name: str) -> bool:
        """Whether a tensor holds no parameters: whole numbers, or what its name and shape say."""
        info = self.files.infos[name]
        mask = MASK.search(name) and len(info.shape) == 4 and info.shape[:2] == (1, 1)
        return not info.is_weight or bool(mask) or BUFFERS.search(name) is not None

    def left(self) -> list[str]:
        """The presented tensors that nobody took any part of, in the order of their names."""
        free = (name for name in self.files.infos if name not in self._taken and name not in self._copies)
        return sorted(name for name in free if not self.is_buffer(name))

    def coverage(self) -> Coverage:
        """What is accounted for. A tied copy is no further parameter: it is named, and counts on neither side."""
        total = accounted = 0
        missing, buffers, copies = [], [], []
        for name, info in self.files.infos.items():
            origin, taken = self.origin(name), self._taken.get(name, 0)
            buffers += origin.buffers
            if name in self._copies:
                copies.append(origin.tensor)
                continue
            if not taken and self.is_buffer(name):
                buffers.append(origin.tensor)
                continue
            # Further parameters of a formula (the lengths of a weight norm) count with the tensor they belong to.
            total += info.count + origin.further
            if taken == info.count:
                accounted += info.count + origin.further
                continue
            # Where more was taken than there is, some part was taken twice, and another may be missing.
            accounted += taken if taken < info.count else 0
            missing.append((origin.tensor, info.shape))
        return Coverage(total, accounted, tuple(missing), tuple(sorted(buffers)), tuple(sorted(copies)))
