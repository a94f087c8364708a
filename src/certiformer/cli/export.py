"""`certiformer export`: the transformer of a folder for another program, with the claim written beside it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import Positional, arg

from certiformer._version import __version__
from certiformer.cli.options import Flag
from certiformer.cli.terminal import Terminal
from certiformer.errors import BadInput

if TYPE_CHECKING:
    from certiformer.kernel.certificate import Certificate

SUMMARY = (
    "Write the transformer of a folder as ONNX, PyTorch, TransformerLens, GPT-2, Llama, Phi-3 or Hugging Face files."
)
EXAMPLES = """
  certiformer export runs/sines --to onnx                    # runs/sines.onnx, for onnxruntime and others
  certiformer export runs/sines --to torch --out sines       # a folder with module.py and its weights
  certiformer export my-model --to hf --out card --force     # safetensors, config.json, README.md; replace an old one
  certiformer export runs/frac_prevs --to gpt2               # a compiled causal program, for AutoModelForCausalLM
  certiformer export runs/reverse --to transformerlens       # for HookedTransformer

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
    from certiformer.cli.export_compiled import prepared
    from certiformer.compiled.files import is_compiled
    from certiformer.disk import recover, refuse_own_input
    from certiformer.export import default_place, write
    from certiformer.model import load

    source = Path(options.directory)
    recover(source)
    if not source.is_dir():
        raise BadInput(f"{options.directory} is not a folder")
    notes = read_notes(source)
    out = default_place(source, options.to) if options.out is None else Path(options.out)
    refuse_own_input(out, source)
    model, labels = load(source), None
    if is_compiled(source):
        model, labels, notes = prepared(source, model, options.to, notes)
    files = write(model, options.to, out, notes, options.force, labels)
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


def read_notes(folder: Path) -> dict[str, str]:
    """What the export will say about its origin: the hash of the weights and, for a proved run, the claim."""
    from certiformer.cli import export_compiled
    from certiformer.compiled.files import SEALED
    from certiformer.export.card import SCOPE
    from certiformer.kernel.certificate import read_certificate
    from certiformer.kernel.files import CERTIFICATE, CONFIG, MODEL, PROGRAM, TARGET, digest, read_bytes
    from certiformer.report import verdict
    from certiformer.target import any_target_from_text, sentence_of

    notes = {"certiformer_version": __version__, "model_sha256": digest(_weights(folder / MODEL))}
    if not (folder / CERTIFICATE).is_file():
        return notes
    certificate = read_certificate(folder)
    compiled = certificate.subject == PROGRAM
    _refuse_foreign_seals(folder, certificate, SEALED if compiled else (MODEL, CONFIG, TARGET))
    notes["recorded"] = verdict(certificate.outcome.value, certificate.level, checked=False)
    if certificate.outcome.value != "proved":
        return notes
    if compiled:
        return {**notes, "claim": export_compiled.program_claim(folder), "claim_scope": export_compiled.SCOPE}
    claim = sentence_of(any_target_from_text(read_bytes(folder / TARGET)), certificate.epsilon)
    return {**notes, "claim": claim, "claim_scope": SCOPE}


def _weights(path: Path) -> bytes:
    from certiformer.kernel.files import read_bytes

    if not path.is_file():
        raise BadInput(f"{path.parent} holds no {path.name}; export needs a run folder or a model folder")
    return read_bytes(path)


def _refuse_foreign_seals(folder: Path, certificate: Certificate, names: tuple[str, ...]) -> None:
    from certiformer.kernel.files import digest, read_bytes

    for name in names:
        if certificate.seals.get(name) != digest(read_bytes(folder / name)):
            raise BadInput(f"the certificate in {folder} is about another {name}; certiformer check says more")


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
