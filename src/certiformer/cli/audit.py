"""`certiformer audit`: reads a trained checkpoint and says theorem by theorem what holds for it."""

from __future__ import annotations

import json as json_format
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import Positional, UseAppendAction, arg

from certiformer.cli.audit_files import require_file, write_file
from certiformer.cli.options import Flag, OptionalFile
from certiformer.cli.terminal import Terminal
from certiformer.errors import BadInput

if TYPE_CHECKING:
    from certiformer.audit import Audit

SUMMARY = "Read a trained checkpoint, account for every parameter, and say theorem by theorem what holds for it."
EXAMPLES = """
  certiformer audit model.safetensors --heads 12             # what holds, what is vacuous, what does not apply
  certiformer audit folder/ --out report.html                # also draw spectra, heat maps and factors
  certiformer audit folder/ --tokens 1e9 --loss 0.2          # what the compression bound says with that much data
  certiformer audit runs/sine --radius 0.5                   # also a Lipschitz constant that is proved on a ball
  certiformer audit folder/ --fail-if "qk_spectral > 10"     # for CI: exit code 1 when the condition is met
  certiformer audit new/ --compare old/                      # what changed between two checkpoints
  certiformer audit folder/ --json                           # every figure, with its provenance

  certiformer audit folder/ --out card.md                    # a card: three sentences, theorems and layers as Markdown
  certiformer audit folder/ --all                            # also the theorems that do not apply, with the reason

figures for --fail-if: spectral_norm qk_spectral vo_spectral score_bound lipschitz alpha smallest_alpha stable_rank
random_heads coverage parameters layers not_finite holds vacuous warnings
exit codes: 0 done; 1 a parameter is not accounted for or not finite, or a condition of --fail-if is met; 2 nothing to
audit, or a condition on a figure that is not known for this checkpoint
"""

Whole = Annotated[int | None, arg(metavar="N", help_behavior_hint="")]
Count = Annotated[float | None, arg(metavar="N", help_behavior_hint="")]
Number = Annotated[float | None, arg(metavar="X", help_behavior_hint="")]
Text = Annotated[str | None, arg(metavar="TEXT", help_behavior_hint="")]
Answer = Annotated[Literal["true", "false"] | None, arg(metavar="{true,false}", help_behavior_hint="")]
# The flags that are arguments of `certiformer.audit`; --norm-first, --causal and --set are spelled otherwise.
KNOWN = (
    "samples", "tokens", "length", "loss", "largest_loss", "delta", "bits", "rho", "radius",
    "heads", "key_value_heads", "head_size", "repeats", "model_type", "prefix",
)  # fmt: skip
ANSWERS = {"true": True, "false": False, None: None}


@dataclass(kw_only=True)
class Options:
    """The flags of `audit`."""

    path: Annotated[Positional[str], arg(metavar="PATH")]
    """a folder, a .safetensors, .gguf or .onnx file, or the index of shards"""
    samples: Count = None
    """how many independent sequences it was trained on"""
    tokens: Count = None
    """how many tokens it was trained on, or the length of one path"""
    length: Whole = None
    """how many tokens an input has (default: the longest it was made for)"""
    loss: Number = None
    """the mean loss on the sample"""
    largest_loss: Annotated[float, arg(metavar="X")] = 1.0
    """losses are between 0 and this"""
    delta: Annotated[float, arg(metavar="P")] = 0.05
    """the probability with which a bound may fail"""
    bits: Count = None
    """the size of a compressed file of the model, in bits"""
    rho: Number = None
    """the mixing rate of one path"""
    radius: Number = None
    """how long a token can be where no norm bounds it; for a run of ours, also how far inputs may be from the centre"""
    heads: Whole = None
    """the number of heads, where no config says it"""
    key_value_heads: Whole = None
    """the number of key-value heads, likewise"""
    head_size: Whole = None
    """the size of a head, likewise"""
    repeats: Whole = None
    """how often shared layers are applied, likewise"""
    model_type: Text = None
    """the family, in the words of a config"""
    prefix: Text = None
    """which of several models in a file: what its names begin with"""
    norm_first: Answer = None
    """whether norms stand before the parts, where no config says it"""
    causal: Answer = None
    """whether a token sees no later ones, likewise"""
    set: Annotated[UseAppendAction[tuple[str, ...]], arg(metavar="NAME=VALUE", help_behavior_hint="(repeatable)")] = ()
    """any other entry that a config leaves out"""
    compare: Annotated[str | None, arg(metavar="OTHER", help_behavior_hint="")] = None
    """a second checkpoint to compare it with"""
    fail_if: Annotated[
        UseAppendAction[tuple[str, ...]], arg(metavar="CONDITION", help_behavior_hint="(repeatable)")
    ] = ()
    """exit with 1 if a figure meets a condition, for instance "spectral_norm > 10" """
    out: Annotated[str | None, arg(metavar="FILE", help_behavior_hint="")] = None
    """write the report there, too: FILE.html a page with pictures, FILE.json data, FILE.md Markdown"""
    all: Flag = False
    """also print the theorems that do not apply, each with the reason"""
    force: Flag = False
    """replace an existing FILE"""
    config: OptionalFile = None
    """read flags from a TOML file; flags given here win"""
    json: Flag = False
    """print one JSON object"""
    quiet: Flag = False
    """the coverage and the conditions only, no progress"""


def run(options: Options, terminal: Terminal) -> int:
    """Audit the checkpoint, say what was found, and judge the conditions; returns the exit code."""
    from certiformer.audit.figures import figures, parse_condition

    conditions = [parse_condition(text) for text in options.fail_if]
    known = _known(options)
    if options.out is not None:
        require_file(options.out, options.force, options.path, options.compare)
    found = _audited(options.path, known, terminal)
    other = None if options.compare is None else _audited(options.compare, known, terminal)
    measured = figures(found)
    met = [condition for condition in conditions if condition.is_met(measured[condition.name])]
    said = [condition.sentence(measured[condition.name]) for condition in met]
    data = _data(found, other, [condition.text for condition in met]) | {"conditions": said}
    if options.out is not None:
        write_file(options.out, options.force, data, found, said)
        terminal.note(f"wrote {options.out}")
    if terminal.json:
        terminal.emit(data)
    else:
        from certiformer.cli.audit_tables import say_audit, say_comparison

        say_audit(found, terminal, said, everything=options.all)
        if other is not None:
            say_comparison(found, other, terminal)
    return 1 if met or not found.complete or (other is not None and not other.complete) else 0


def _audited(path: str, known: dict[str, Any], terminal: Terminal) -> Audit:
    from certiformer.api.auditing import audit
    from certiformer.cli.progress import progress_for

    with progress_for(terminal) as show:
        return audit(path, **known, progress=lambda done, total, name: show("auditing", done, total, name))


def _known(options: Options) -> dict[str, Any]:
    """What the user says that no file does, as the arguments of `certiformer.audit`."""
    known = {name: getattr(options, name) for name in KNOWN}
    known |= {name: ANSWERS[getattr(options, name)] for name in ("norm_first", "causal")}
    others: dict[str, Any] = {}
    for text in options.set:
        name, sign, value = text.strip().partition("=")
        if not sign or not name.isidentifier():
            raise BadInput(f"--set takes NAME=VALUE, not {text!r}")
        try:
            others[name] = json_format.loads(value)
        except ValueError:
            others[name] = value
    return {**known, "set": others}


def _data(found: Audit, other: Audit | None, met: list[str]) -> dict[str, Any]:
    data = {**found.to_json(), "conditions_met": met}
    if other is not None:
        from certiformer.audit.compare import comparison

        data["compare"] = comparison(found, other)
    return data
