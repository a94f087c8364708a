"""One module per study, imported when it is asked for: listing the studies loads no numerical library."""

from __future__ import annotations

import difflib
from importlib import import_module
from typing import TYPE_CHECKING

from certiformer.errors import BadInput

if TYPE_CHECKING:
    from certiformer.rates.study import Study

STUDIES = {
    "jackson": "does the error fall with the attention dimension as the singular values of the target say?",
    "width": "how does the error fall with the width of the feed-forward layers?",
    "heads": "what does one more head buy?",
    "depth": "is a deeper transformer better than a wider one of the same size?",
    "composition": "what does depth buy against width for targets that need composition?",
    "layernorm": "do residual connections and LayerNorm change the rate?",
    "ordering": "what does the order of the tokens cost, and who pays for it?",
    "mixing": "where does a transformer lose against a recurrent network, and where does it win?",
    "time": "which temporal targets does a block learn, and what absorbs a permutation of its inputs?",
    "temporal": "from graph-like to purely temporal targets: where do the winners change?",
    "gravity": "does attention find the physical weights of point masses?",
    "selection": "can it select features that depend on the input?",
    "smoothness": "does the smoothness of the target set the rate, and the need for data?",
    "length": "what happens at lengths that were not trained?",
    "pruning": "how much can be cut out of a trained layer, by magnitude and by rank?",
    "control": "what do limits on norms, ranks and attention do to errors and bounds?",
    "constructive": "how far are the constructions from the lower bound in bits?",
    "incontext": "does training find the in-context learner that the theorem builds?",
    "trainability": "does Adam reach what the theorem builds, at the same size?",
}
"""Every study with one line of what is asked."""


def load_study(name: str) -> Study:
    """The study of that name; an unknown name is refused with the nearest known one."""
    if name not in STUDIES:
        near = difflib.get_close_matches(name, STUDIES, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"the studies are {', '.join(STUDIES)}"
        raise BadInput(f"there is no study {name!r}; {hint}")
    return import_module(f"certiformer.rates.studies.{name}").STUDY
