"""What the folders of all stock architectures have in common: labels, limits, weights in their type, tokenizer, README."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from certiformer.errors import BadInput
from certiformer.export.decoder import Decoder
from certiformer.export.folder import README_FILE, claim_lines, tensors_with_notes
from certiformer.export.labels import TOKENS_FILE, Labels, plain_labels
from certiformer.export.stream_bounds import Bounds, StreamBounds
from certiformer.kernel.files import canonical
from certiformer.model.store import CONFIG_FILE, TENSORS_FILE


def stored(tensors: Mapping[str, np.ndarray], dtype: str) -> dict[str, np.ndarray]:
    """The tensors in the type they are stored in."""
    kind: Any = dtype
    if dtype == "bfloat16":
        import ml_dtypes  # NumPy has no such type of its own

        kind = ml_dtypes.bfloat16
    return {name: np.ascontiguousarray(tensor.astype(kind)) for name, tensor in tensors.items()}


def decoder_labels(decoder: Decoder, labels: Labels | None) -> Labels:
    """The labels, checked against the sizes of the model."""
    sizes = (decoder.embed.shape[0], decoder.unembed.shape[1])
    labels = plain_labels(*sizes) if labels is None else labels
    if (labels.inputs, len(labels.outputs)) != sizes:
        raise BadInput(
            f"the program has {labels.inputs} tokens and {len(labels.outputs)} outputs,"
            f" the transformer {sizes[0]} and {sizes[1]}"
        )
    return labels


def error_share(decoder: Decoder, bounds: StreamBounds, labels: Labels) -> float:
    """The proved error of the outputs as a share of what they allow; above 1, or not a number, it is too much.

    * Logits 2 f x - f^2 of a program: those of f and g differ by (f - g)^2 at x = f. Half of that is left to the error
      of the program's own real-number computation, which puts x within |f - g| / 4 of f.
    * A number: half of half the least distance of two numbers.
    * Without a program: a thousandth of the largest logit.
    """
    if labels.spacing is None:
        return float(bounds.logits.error.max() / (2.0**-10 * bounds.logits.reach.max()))
    if labels.kind == "number":
        return float(bounds.logits.error.max() / (labels.spacing / 4.0))
    features = np.array([float(Fraction(number)) for number, _ in labels.numbers])
    shares = [0.0]
    for number, feature in enumerate(features):
        between = np.abs(decoder.unembed - decoder.unembed[:, [number]])
        error = bounds.read @ between + bounds.rounding + bounds.rounding[number]
        others = features != feature
        shares.append(float((error[others] / ((features[others] - feature) ** 2 / 2.0)).max(initial=0.0)))
    return math.nan if any(math.isnan(share) for share in shares) else max(shares)


def silent_logit(logits: Bounds) -> float:
    """A logit, a power of two, that is below every output's."""
    return -(2.0 ** math.ceil(math.log2(2.0 * float(logits.reach.max()) + 2.0)))


def stock_files(
    config: dict[str, Any],
    tensors: dict[str, np.ndarray],
    decoder: Decoder,
    labels: Labels,
    about: str,
    notes: Mapping[str, str],
) -> dict[str, bytes]:
    """The files of a folder that `transformers` opens."""
    config |= {"dtype": decoder.dtype, "torch_dtype": decoder.dtype}
    return {
        CONFIG_FILE: canonical(config),
        TENSORS_FILE: tensors_with_notes(stored(tensors, decoder.dtype), notes),
        TOKENS_FILE: labels.tokens_file(),
        README_FILE: _readme(config["model_type"], labels, about, notes).encode("utf-8"),
        **labels.tokenizer_files(decoder.length),
    }


LENS = """\
With the same `model` and `tokenizer`, TransformerLens 4 (tried: 4.3) shows what happens inside:

```python
from transformer_lens.model_bridge import TransformerBridge

bridge = TransformerBridge.boot_transformers(".", hf_model=model, tokenizer=tokenizer, dtype=model.dtype)
logits, cache = bridge.run_with_cache(ids)                   # cache["blocks.0.attn.hook_pattern"], ...
```

"""


def _readme(family: str, labels: Labels, about: str, notes: Mapping[str, str]) -> str:
    example = " ".join(labels.texts[: min(labels.inputs, 3)])
    if labels.kind == "logits":
        last = ["print(tokenizer.convert_ids_to_tokens(logits.argmax(-1)))   # the answers, one for each token"]
    else:
        last = [
            f"print(logits[:, {labels.outputs[0]}])                     # the answers are numbers, one for each token"
        ]
    lines = [
        "---",
        "library_name: transformers",
        "tags:",
        f"- {family}",
        "- certiformer",
        "---",
        "",
        f"# A transformer of the stock architecture `{family}`",
        "",
        "```python",
        "from transformers import AutoModelForCausalLM, AutoTokenizer",
        "",
        'tokenizer = AutoTokenizer.from_pretrained(".")',
        'model = AutoModelForCausalLM.from_pretrained(".", dtype="auto")',
        f'ids = tokenizer("{example}", return_tensors="pt").input_ids         # the start token is put in front',
        "logits = model(ids).logits[0, 1:]                            # nothing is said about the start token",
        *last,
        "```",
        "",
        f"`{TOKENS_FILE}` says what the ids stand for. The model answers at every position; it is not for generating text.",
        "",
        *LENS.splitlines(),
        about,
        "",
        *claim_lines(notes),
    ]
    return "\n".join(line.rstrip() for line in lines)
