"""`certiformer export`: the transformer of a folder for another program, with the claim written beside it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from tyro.conf import Positional, arg

from certiformer.cli.options import Flag
from certiformer.cli.terminal import Terminal

SUMMARY = (
    "Write the transformer of a folder as ONNX, PyTorch, TransformerLens, GPT-2, Llama, Phi-3 or Hugging Face files."
)
EXAMPLES = """
  certiformer export runs/sines --to onnx                    # runs/sines.onnx, for onnxruntime and others
  certiformer export runs/sines --to torch --out sines       # a folder with module.py and its weights
  certiformer export my-model --to hf --out card --force     # safetensors, config.json, README.md; replace an old one
  certiformer export runs/frac_prevs --to gpt2               # a compiled causal program, for AutoModelForCausalLM
  certiformer export runs/reverse --to transformerlens       # for TransformerLens 3; 4 opens gpt2

onnx needs pip install "certiformer[onnx]"; the others need nothing to write. gpt2, llama and phi3 are stock architectures
that transformers loads without any code of ours: for causal models over ids, such as compiled programs. The claim and
the SHA-256 of the weights go along; a folder whose certificate is about other weights is not exported.
exit codes: 0 done, 2 bad input, a missing library, or a place that is taken
"""

USES = {
    "onnx": 'onnxruntime.InferenceSession("{out}").run(None, {{"points": points}})',
    "torch": 'from module import load; load("{out}")(points)   # in Python, with {out} on the path',
    "transformerlens": "the lines in {out}/README.md",
    "gpt2": 'transformers.AutoModelForCausalLM.from_pretrained("{out}", dtype="auto"), AutoTokenizer likewise',
    "llama": 'transformers.AutoModelForCausalLM.from_pretrained("{out}", dtype="auto"), AutoTokenizer likewise',
    "phi3": 'transformers.AutoModelForCausalLM.from_pretrained("{out}", dtype="auto"), AutoTokenizer likewise',
    "hf": 'safetensors.numpy.load_file("{out}/model.safetensors")["unembed.W_U"]',
}


@dataclass(kw_only=True)
class Options:
    """The flags of `export`."""

    directory: Annotated[Positional[str], arg(metavar="DIR")]
    """a run folder, or a folder with model.safetensors and config.json"""
    to: Literal["onnx", "torch", "hf", "transformerlens", "gpt2", "llama", "phi3"]
    """the format: one ONNX file, a plain PyTorch module, or a folder"""
    out: Annotated[str | None, arg(metavar="PATH", help_behavior_hint="")] = None
    """where to write (default: beside DIR, as DIR.onnx, DIR-torch, DIR-hf, ...)"""
    force: Flag = False
    """replace an earlier export"""
    json: Flag = False
    """print one JSON object"""
    quiet: Flag = False
    """the path only"""


def run(options: Options, terminal: Terminal) -> int:
    """Export and say where to; returns the exit code."""
    from certiformer.api.exporting import export

    exported = export(options.directory, options.to, out=options.out, force=options.force)
    out, files, notes = exported.out, exported.files, exported.notes
    facts = {
        "outcome": "exported",
        "to": options.to,
        "out": str(out),
        "files": [str(path) for path in files],
        "bytes": sum(path.stat().st_size for path in files),
        "notes": notes,
        "directory": options.directory,
    }
    if terminal.json:
        terminal.emit(facts)
    elif options.quiet:
        terminal.say(str(out))
    else:
        _describe(facts, terminal)
    return 0


def _describe(facts: dict[str, Any], terminal: Terminal) -> None:
    from certiformer.report.numbers import size_text

    notes, out = facts["notes"], shlex.quote(facts["out"])
    terminal.fact("wrote", f"{out} ({size_text(facts['bytes'])})", "good")
    if "claim" in notes:
        terminal.fact("claim", f"{notes['claim']} ({notes['recorded']})")
        terminal.fact("not said", notes["claim_scope"])
    else:
        terminal.fact("claim", f"none goes along ({notes.get('recorded', 'no certificate')})")
    terminal.facts("use", [USES[facts["to"]].format(out=facts["out"])])
