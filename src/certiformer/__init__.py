"""certiformer: transformers with mathematical guarantees.

>>> import certiformer
>>> artifact = certiformer.build("sin(x1)", on="[0, 2*pi]", eps=0.05)
>>> artifact.certified, artifact.check().accepted
(True, True)

The functions are the verbs of the command line, with the same names and defaults. `build`, `prove`, `compile` and its kinds
return an `Artifact`; `load` opens the folder of one, `check` asks the checker about a folder or an artifact. `audit`,
`export`, `rates`, `theorem` and `train` are functions and packages at once. Everything is imported on first use, so that
`import certiformer` alone is fast and runs no code but its own (see `certiformer.isolation`; hence no `__future__` and no
`typing` here).
"""

from certiformer.errors import BadInput as BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from certiformer import rasp as rasp
    from certiformer._version import __version__ as __version__
    from certiformer.api.auditing import audit as audit
    from certiformer.api.building import build as build
    from certiformer.api.building import prove as prove
    from certiformer.api.compiling import compile as compile  # noqa: A004
    from certiformer.api.compiling import compile_automaton as compile_automaton
    from certiformer.api.compiling import compile_circuit as compile_circuit
    from certiformer.api.compiling import compile_incontext as compile_incontext
    from certiformer.api.compiling import compile_machine as compile_machine
    from certiformer.api.exporting import export as export
    from certiformer.api.folders import check as check
    from certiformer.api.folders import load as load
    from certiformer.api.folders import run as run
    from certiformer.api.folders import show as show
    from certiformer.api.recommending import recommend_card as recommend_card
    from certiformer.api.recommending import recommend_evaluate as recommend_evaluate
    from certiformer.api.recommending import recommend_fit as recommend_fit
    from certiformer.api.recommending import recommend_guarantee as recommend_guarantee
    from certiformer.api.recommending import recommend_top as recommend_top
    from certiformer.api.studies import rates as rates
    from certiformer.api.studies import size as size
    from certiformer.api.studies import theorem as theorem
    from certiformer.artifact import Artifact as Artifact
    from certiformer.curves import Curve as Curve
    from certiformer.curves import curve as curve
    from certiformer.explore.serving import explore as explore
    from certiformer.kernel.certificate import Certificate as Certificate
    from certiformer.kernel.certificate import Outcome as Outcome
    from certiformer.kernel.check import Verdict as Verdict
    from certiformer.model import Transformer as Transformer
    from certiformer.model.from_torch import from_torch as from_torch
    from certiformer.train import train as train

# Functions whose errors speak of arguments, by the module that they are in.
_FUNCTIONS = {
    "build": "api.building",
    "check": "api.folders",
    "compile": "api.compiling",
    "compile_automaton": "api.compiling",
    "compile_circuit": "api.compiling",
    "compile_incontext": "api.compiling",
    "compile_machine": "api.compiling",
    "curve": "curves",
    "from_torch": "model.from_torch",
    "load": "api.folders",
    "prove": "api.building",
    "recommend_card": "api.recommending",
    "recommend_evaluate": "api.recommending",
    "recommend_fit": "api.recommending",
    "recommend_guarantee": "api.recommending",
    "recommend_top": "api.recommending",
    "run": "api.folders",
    "show": "api.folders",
    "size": "api.studies",
}
_OTHERS = {
    "Artifact": "artifact",
    "Certificate": "kernel.certificate",
    "Curve": "curves",
    "Outcome": "kernel.certificate",
    "Transformer": "model",
    "Verdict": "kernel.check",
    "__version__": "_version",
}
# Packages; all but `rasp` can be called as the verb of their name.
_PACKAGES = ("audit", "explore", "export", "rasp", "rates", "theorem", "train")

__all__ = [
    "Artifact",
    "BadInput",
    "Certificate",
    "Curve",
    "Outcome",
    "Transformer",
    "Verdict",
    "__version__",
    "audit",
    "build",
    "check",
    "compile",
    "compile_automaton",
    "compile_circuit",
    "compile_incontext",
    "compile_machine",
    "curve",
    "explore",
    "export",
    "from_torch",
    "load",
    "prove",
    "rasp",
    "rates",
    "recommend_card",
    "recommend_evaluate",
    "recommend_fit",
    "recommend_guarantee",
    "recommend_top",
    "run",
    "show",
    "size",
    "theorem",
    "train",
]


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name in _PACKAGES:
        return import_module(f"certiformer.{name}")
    if name in _OTHERS:
        return getattr(import_module(f"certiformer.{_OTHERS[name]}"), name)
    if name not in _FUNCTIONS:
        raise AttributeError(f"module 'certiformer' has no attribute {name!r}")
    from certiformer.arguments import in_python

    function = in_python(getattr(import_module(f"certiformer.{_FUNCTIONS[name]}"), name))
    globals()[name] = function
    return function


def __dir__() -> list[str]:
    return sorted(__all__)
