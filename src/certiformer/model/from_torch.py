"""`from_torch`: an encoder of PyTorch, or the safetensors file of one, as our transformer.

A module says almost everything about itself, but not what its `forward` does with its parts. So the module is run: in
float64, at random points, it must give the numbers of the transformer that was read from it.
"""

from __future__ import annotations

import copy
from itertools import product
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import safetensors

from certiformer.errors import BadInput
from certiformer.model.encoder_state import NORM_EPSILON, READS, EncoderState, LayerFacts, Read
from certiformer.model.transformer import Transformer
from certiformer.reading import read_regular

AGREEMENT = 1e-10  # of module and transformer, both in float64: sums in another order differ by some 1e-13
POINTS, SPREADS = 24, (0.2, 1.0, 4.0)
LARGEST_FILE = 256 << 20
STATE_FILES = (".safetensors", ".pt", ".pth", ".bin")
_LAYERS = {"TransformerEncoder", "TransformerEncoderLayer", "MultiheadAttention", "NonDynamicallyQuantizableLinear"}
_SIMPLE = {
    "Linear",
    "LayerNorm",
    "Embedding",
    "Dropout",
    "Dropout1d",
    "Identity",
    "ReLU",
    "GELU",
    "Flatten",
    "Unflatten",
}
_KNOWN = _LAYERS | _SIMPLE | {"Sequential", "ModuleList", "ModuleDict"}
_FLOATS = {"F64": "float64", "F32": "float32", "BF16": "bfloat16", "F16": "float16"}
_EXACT_IN = {"float64": "float64", "float32": "float32", "bfloat16": "bfloat16", "float16": "float32"}


def from_torch(
    module: Any,
    *,
    tokens: int | None = None,
    inputs: int | None = None,
    read: Read | None = None,
    heads: int | None = None,
    activation: str | None = None,
    norm_first: bool | None = None,
    norm_epsilon: float | None = None,
    causal: bool | None = None,
) -> Transformer:
    """The transformer that computes what an encoder of PyTorch computes in evaluation mode.

    **Arguments:**

    - `module`: an `nn.Module` made of `nn.TransformerEncoderLayer`s (in an `nn.TransformerEncoder` or one after the other)
      with at most one linear map before them, one table of positions, one last norm and one linear map behind them; or
      the path of a safetensors file with the state dict of one.
    - `tokens`: the number of tokens, needed without a table of positions (or `inputs`, of all inputs together).
    - `inputs`: the number of all inputs together.
    - `read`: of a file: the read-out of `"all"` tokens, of their `"mean"` or `"sum"`, of the `"first"` or the `"last"`.
    - `heads`: of a file: the heads of each layer.
    - `activation`: of a file: `"relu"` or `"gelu"`.
    - `norm_first`: of a file: whether norms stand before the parts.
    - `norm_epsilon`: of a file: the epsilon of the norms (default: 1e-5).
    - `causal`: of a file: whether a token sees no later ones (default: False).

    Everything else is refused with a sentence that names the module or the tensor.

        model = certiformer.from_torch(nn.Sequential(nn.Linear(1, 8), layer, nn.Linear(8, 1)), tokens=2)
        model.evaluate([[0.5, 0.25]])
    """
    if isinstance(module, str | Path):
        _refuse_pickle(Path(module))
        said = {"heads": heads, "activation": activation, "norm_first": norm_first, "read": read}
        missing = [name for name, value in said.items() if value is None]
        if missing:
            raise BadInput(f"{module} holds weights only and does not say its {', '.join(missing)}; say them")
        epsilon = NORM_EPSILON if norm_epsilon is None else norm_epsilon
        facts = LayerFacts(int(heads or 0), str(activation), bool(norm_first), epsilon)
        state = _read_file(Path(module))
        count = _token_count(state, tokens, inputs)
        return state.transformer(count, lambda _: facts, _known_read(read), bool(causal), epsilon)
    if not hasattr(module, "state_dict") or not hasattr(module, "named_modules"):
        raise BadInput(f"from_torch reads an nn.Module or the path of a safetensors file, not {type(module).__name__}")
    said = {"heads": heads, "activation": activation, "norm_first": norm_first, "norm_epsilon": norm_epsilon}
    for name, value in said.items():
        if value is not None:
            raise BadInput(f"{name} is for files: a module says it itself")
    return _from_module(module, tokens, inputs, read, causal)


def is_state_file(path: object) -> bool:
    """Whether this is the path of a state dict, and not the folder of a transformer of ours."""
    return isinstance(path, str | Path) and Path(path).suffix in STATE_FILES and not Path(path).is_dir()


def _token_count(state: EncoderState, tokens: int | None, inputs: int | None) -> int:
    if inputs is not None and inputs % state.input_width:
        raise BadInput(
            f"the encoder reads tokens of {state.input_width} numbers each, {inputs} numbers are not whole tokens"
        )
    count = inputs // state.input_width if inputs is not None else state.tokens if tokens is None else tokens
    if count is None:
        raise BadInput("how many tokens it reads is said nowhere in it; say tokens=N")
    if type(count) is not int or count < 1:
        raise BadInput(f"tokens is a positive whole number, not {tokens!r}")
    return count


def _known_read(read: str | None) -> Read:
    for known in READS:
        if read == known:
            return known
    raise BadInput(f"read is one of {', '.join(READS)}, not {read!r}")


def _refuse_pickle(path: Path) -> None:
    if path.suffix != ".safetensors":
        raise BadInput(
            f"{path} would have to be unpickled, which can run code; write it with safetensors.torch.save_file"
        )


def _read_file(path: Path) -> EncoderState:
    try:
        stored = safetensors.deserialize(read_regular(path, LARGEST_FILE, links=True))
    except OSError as problem:
        raise BadInput(f"{path} cannot be read: {problem.strerror}") from None
    except safetensors.SafetensorError as problem:
        raise BadInput(f"{path} is not a complete safetensors file ({problem})") from None
    state, types = {}, set()
    for name, entry in stored:
        if entry["dtype"] not in _FLOATS:
            raise BadInput(f"the tensor {name} of {path} holds {entry['dtype']} numbers, which no encoder has")
        kind = jnp.dtype(_FLOATS[entry["dtype"]])
        array = np.frombuffer(bytes(entry["data"]), kind.newbyteorder("<")).astype(np.float64)
        state[name] = array.reshape(entry["shape"])
        types.add(_EXACT_IN[kind.name])
    try:
        return EncoderState(state, types.pop() if len(types) == 1 else "float64")
    except BadInput as problem:
        raise BadInput(f"{path}: {problem}") from None


def _from_module(
    module: Any, tokens: int | None, inputs: int | None, read: str | None, causal: bool | None
) -> Transformer:
    layers, norms = {}, {}
    for name, part in module.named_modules():
        kind = type(part)
        if kind.__module__.startswith("torch.") and kind.__name__ not in _KNOWN:
            raise BadInput(f"the module {name or 'itself'} is {kind.__name__}, which from_torch does not read")
        if kind.__name__ == "TransformerEncoderLayer":
            layers[f"{name}." if name else ""] = _layer_facts(name or "itself", part)
        elif kind.__name__ == "LayerNorm":
            if part.weight is None or len(part.normalized_shape) != 1:
                raise BadInput(f"the module {name or 'itself'} is a LayerNorm without weights or over several axes")
            norms[f"{name}."] = part.eps
    reference = copy.deepcopy(module).double().eval()
    types = {str(tensor.dtype).removeprefix("torch.") for tensor in module.state_dict().values()}
    odd = sorted(types - set(_EXACT_IN))
    if odd:
        raise BadInput(f"the module has tensors of the type {odd[0]}, which no encoder has")
    kinds = {_EXACT_IN[kind] for kind in types}
    arrays = {name: tensor.detach().cpu().numpy() for name, tensor in reference.state_dict().items()}
    state = EncoderState(arrays, kinds.pop() if len(kinds) == 1 else "float64")
    n = _token_count(state, tokens, inputs)
    points = _points(n * state.input_width)
    answers, told = _answers(reference, points, (n, state.input_width), _is_batch_first(module))
    final_epsilon = NORM_EPSILON if state.parts.final_norm is None else norms[state.parts.final_norm]
    reads = READS if read is None else (_known_read(read),)
    nearest = float("inf")
    for masked, way in product((False, True) if causal is None else (causal,), reads):
        model = state.transformer(n, layers.__getitem__, way, masked, final_epsilon)
        for outputs in answers:
            if model.output_size == outputs.shape[1]:
                difference = _difference(model.evaluate(points), outputs)
                if difference <= AGREEMENT:
                    return model
                nearest = min(nearest, difference)
    if not answers:
        raise BadInput(
            f"the module {type(module).__name__} does not take {n} tokens of {state.input_width} numbers: {told}"
        )
    raise BadInput(
        f"the module {type(module).__name__} computes something else with its parts than an embedding, positions, encoder"
        f" layers, a last norm and a read-out of all tokens, their mean or sum, or the first or last one"
        + (f" (the nearest of these differs by {nearest:.2g})" if np.isfinite(nearest) else "")
    )


def _layer_facts(name: str, layer: Any) -> LayerFacts:
    attention = layer.self_attn
    if attention.bias_k is not None or attention.add_zero_attn or attention.in_proj_weight is None:
        raise BadInput(
            f"the attention of the module {name} has keys of its own (bias_k, add_zero_attn, kdim), which is not read"
        )
    if layer.norm1.eps != layer.norm2.eps:
        raise BadInput(f"the two norms of the module {name} have different eps")
    return LayerFacts(attention.num_heads, _activation(name, layer.activation), layer.norm_first, layer.norm1.eps)


def _activation(name: str, function: Any) -> str:
    from torch import nn  # pyright: ignore[reportMissingImports]
    from torch.nn import functional  # pyright: ignore[reportMissingImports]

    if function in (functional.relu,) or type(function) is nn.ReLU:
        return "relu"
    if function is functional.gelu or (type(function) is nn.GELU and function.approximate == "none"):
        return "gelu"
    raise BadInput(f"the activation of the module {name} is {function!r}; ReLU and the exact GELU are read")


def _is_batch_first(module: Any) -> bool:
    return next(p.batch_first for p in module.modules() if type(p).__name__ == "MultiheadAttention")


def _points(numbers: int) -> np.ndarray:
    generator = np.random.default_rng(0)
    return np.concatenate([spread * generator.standard_normal((POINTS // len(SPREADS), numbers)) for spread in SPREADS])


def _answers(
    module: Any, points: np.ndarray, shape: tuple[int, int], batch_first: bool
) -> tuple[list[np.ndarray], str]:
    """What the module says at the points, a row for each, where it takes them: as tokens, or as the numbers of all tokens
    in a row. And what it said where it did not."""
    import torch  # pyright: ignore[reportMissingImports]

    rows = torch.from_numpy(points)
    tokens = rows.reshape(len(points), *shape)
    answers, told = [], ""
    for arranged, first in ((tokens if batch_first else tokens.transpose(0, 1), batch_first), (rows, True)):
        try:
            with torch.no_grad():
                outputs = module(arranged)
        except Exception as problem:  # it is the module's own code
            told = told or str(problem).strip().partition("\n")[0]
            continue
        if not isinstance(outputs, torch.Tensor):
            raise BadInput(f"the module {type(module).__name__} returns {type(outputs).__name__}, not one tensor")
        turned = outputs if first or outputs.ndim < 3 else outputs.transpose(0, 1)
        if turned.ndim and turned.shape[0] == len(points):
            answers.append(turned.reshape(len(points), -1).numpy())
    return answers, told


def _difference(ours: np.ndarray, theirs: np.ndarray) -> float:
    return float(np.abs(ours - theirs).max() / max(1.0, np.abs(theirs).max()))
