"""What a config says, asked for by name, with a sentence when it says nonsense. What it does not say is None."""

from __future__ import annotations

import re
import sys
from reprlib import repr as short  # values can be as long as a file
from typing import Any

from certiformer.errors import BadInput

# The names that configs use for an activation, and what they mean.
ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu-tanh",
    "gelu_pytorch_tanh": "gelu-tanh",
    "gelu_fast": "gelu-tanh",
    "gelu_python": "gelu",
    "quick_gelu": "gelu-sigmoid",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
    "tanh": "tanh",
}
WORD = re.compile(r"[\w.-]{1,64}")
# One meaning, the names that configs give it; the first is ours, for what the user says besides the config.
HEADS = ("heads", "num_attention_heads", "n_head", "n_heads", "num_heads")
KEY_VALUE_HEADS = ("key_value_heads", "num_key_value_heads", "num_kv_heads", "n_head_kv")
HEAD_SIZE = ("head_size", "head_dim", "d_kv")
WIDTH = ("hidden_size", "n_embd", "d_model", "dim")
DEPTH = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
CONTEXT = ("max_position_embeddings", "n_positions", "n_ctx", "block_size", "maxlen", "seq_length", "max_seq_length")


class Settings:
    """A config, with what the user gave besides it winning over what the file says."""

    def __init__(self, config: dict[str, Any] | None, given: dict[str, Any] | None = None) -> None:
        said = config or {}
        # Models of several kinds of input keep what concerns text in a config of its own.
        text = said.get("text_config")
        extra = {key: value for key, value in (given or {}).items() if value is not None}
        self.config = {**said, **(text if isinstance(text, dict) else {}), **extra}

    def get(self, *names: str) -> Any:
        """The first of several names that the config has."""
        return next((self.config[name] for name in names if self.config.get(name) is not None), None)

    def whole(self, *names: str) -> int | None:
        """A positive whole number."""
        value = self.get(*names)
        if value is None:
            return None
        if type(value) is not int or not 1 <= value < 1 << 40:
            raise BadInput(
                f"the config has {self._said(*names)} = {short(value)}, which is not a positive whole number"
            )
        return value

    def number(self, *names: str) -> float | None:
        """A finite number."""
        value = self.get(*names)
        if value is None:
            return None
        if type(value) not in (int, float) or not abs(value) <= sys.float_info.max:
            raise BadInput(f"the config has {self._said(*names)} = {short(value)}, which is not a finite number")
        return float(value)

    def positive(self, *names: str) -> float | None:
        """A positive finite number."""
        value = self.number(*names)
        if value is not None and value <= 0:
            raise BadInput(f"the config has {self._said(*names)} = {short(value)}, which is not positive")
        return value

    def flag(self, *names: str, default: bool | None = None) -> bool | None:
        """True or false."""
        value = self.get(*names)
        if value is not None and type(value) is not bool:
            raise BadInput(f"the config has {self._said(*names)} = {short(value)}, which is neither true nor false")
        return default if value is None else value

    def activation(self, *names: str, usual: str | None = None) -> str | None:
        """The activation by one name for each; unknown ones as they are written."""
        value = self.get(*names)
        return usual if value is None else self.named_activation(value, *names)

    def named_activation(self, value: Any, *names: str) -> str:
        """The one name of an activation that the config has under one of these names."""
        # It is quoted in sentences, so it has to be a word.
        if not isinstance(value, str) or not WORD.fullmatch(value):
            raise BadInput(
                f"the config has {self._said(*names)} = {short(self.get(*names))}, which names no activation"
            )
        return ACTIVATIONS.get(value, value)

    def positions(self, usual: str) -> str:
        """The position scheme: what the config says in its usual words, else that of the family."""
        said = self.get("position_embedding_type")
        return {None: usual, "absolute": "learned", "rope": "rope", "rotary": "rope", "alibi": "alibi"}.get(
            said if isinstance(said, str) else None, "relative" if "relative" in str(said) else usual
        )

    def agree(self, found: int, what: str, *names: str) -> None:
        """Raises where the config says another number than the tensors have."""
        said = self.whole(*names)
        if said is not None and said != found:
            raise BadInput(
                f"the config says {self._said(*names)} = {said}, but the tensors have {found} {what}; is it of this model?"
            )

    def _said(self, *names: str) -> str:
        return next(name for name in names if self.config.get(name) is not None)
