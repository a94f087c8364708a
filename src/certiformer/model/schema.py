"""Which configurations of the one transformer are legal, checked on their JSON form.

`problems` returns every reason at once, each with the path of the entry it speaks of, so that one message is enough to
repair a file. A new option is a new line in the tables below; everything else follows from them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

FORMAT = "certiformer-model-1"
DTYPES = ("float64", "float32", "bfloat16")

Rule = tuple[str, Callable[[Any], bool]]


def _is_integer(value: Any) -> bool:
    return type(value) is int


LARGEST = sys.float_info.max


def _is_number(value: Any) -> bool:
    # A whole number may be too large for a float; NaN compares false.
    return type(value) in (int, float) and -LARGEST <= value <= LARGEST


POSITIVE: Rule = ("a positive integer", lambda value: _is_integer(value) and value > 0)
NATURAL: Rule = ("a non-negative integer", lambda value: _is_integer(value) and value >= 0)
# A file that asks for more passes than this would keep whoever runs it waiting without an end.
MAX_LOOPS = 100_000
PASSES: Rule = (f"an integer from 1 to {MAX_LOOPS:,}", lambda value: _is_integer(value) and 0 < value <= MAX_LOOPS)
FLAG: Rule = ("true or false", lambda value: type(value) is bool)
POSITIVE_REAL: Rule = ("a positive number", lambda value: _is_number(value) and value > 0)


def _one_of(*choices: str) -> Rule:
    return (f"one of {', '.join(choices)}", lambda value: value in choices)


# For each part that has a kind: the entries that each kind needs. No other entry is allowed.
INPUT: dict[str, dict[str, Rule]] = {
    "continuous": {"tokens": POSITIVE, "width": POSITIVE},
    "ids": {"tokens": POSITIVE, "vocabulary": POSITIVE},
}
CODE: dict[str, dict[str, Rule]] = {
    "none": {},
    "one-hot": {"offset": NATURAL},
    "sinusoidal": {"offset": NATURAL, "width": POSITIVE},
    "circle": {"offset": NATURAL, "period": POSITIVE},
    "table": {},
}
_ATTENTION: dict[str, Rule] = {
    "bias": FLAG,
    "scale": _one_of("inverse-sqrt", "unit"),
    "mask": _one_of("none", "causal", "table"),
    "score_bias": _one_of("none", "table", "toeplitz"),
    "residual": FLAG,
}
ATTENTION: dict[str, dict[str, Rule]] = dict.fromkeys(("softmax", "hard", "nearest", "linear", "relu"), _ATTENTION)
HEADS: dict[str, Rule] = {"count": POSITIVE, "key": POSITIVE, "value": POSITIVE}
_FFN: dict[str, Rule] = {"width": POSITIVE, "residual": FLAG}
FFN = {"relu": _FFN, "gelu": _FFN, "identity": _FFN}
NORM: dict[str, dict[str, Rule]] = {"layer": {"place": _one_of("pre", "post"), "epsilon": POSITIVE_REAL}}
READOUT: dict[str, dict[str, Rule]] = {
    "token": {"token": NATURAL},
    "register": {"token": NATURAL},
    "mean": {},
    "sum": {},
    "all": {},
}
TOP: dict[str, Rule] = {
    "format": (f'"{FORMAT}"', lambda value: value == FORMAT),
    "dtype": _one_of(*DTYPES),
    "width": POSITIVE,
    "registers": NATURAL,
    "loops": PASSES,
    "outputs": POSITIVE,
}


def problems(data: Any) -> list[str]:
    """Every reason why `data` is not a legal configuration; empty when it is one."""
    found: list[str] = []
    if not _judge_entries(data, "", TOP, ("input", "code", "blocks", "readout"), found):
        return found
    for name, kinds in (("input", INPUT), ("code", CODE), ("readout", READOUT)):
        if name in data:
            _judge_kind(data[name], name, kinds, (), found)
    blocks = data.get("blocks", [])
    if not isinstance(blocks, list):
        found.append(f"blocks must be a list, not {blocks!r}")
        blocks = []
    for index, block in enumerate(blocks):
        _judge_block(block, f"blocks[{index}]", found)
    # The relations between entries make sense only when each entry does.
    return found or _conflicts(data)


def _judge_entries(data: Any, path: str, rules: dict[str, Rule], parts: tuple[str, ...], found: list[str]) -> bool:
    """Whether `data` is an object; missing, unknown and ill-typed entries go to `found`."""
    if not isinstance(data, dict):
        found.append(f"{path or 'the configuration'} must be an object, not {data!r}")
        return False
    prefix = f"{path}." if path else ""
    found += [f"{prefix}{name} is missing" for name in (*rules, *parts) if name not in data]
    found += [f"{prefix}{name} is not an entry we know" for name in data if name not in rules and name not in parts]
    for name, (wanted, holds) in rules.items():
        if name in data and not holds(data[name]):
            found.append(f"{prefix}{name} must be {wanted}, not {data[name]!r}")
    return True


def _judge_kind(
    data: Any, path: str, kinds: dict[str, dict[str, Rule]], parts: tuple[str, ...], found: list[str]
) -> None:
    kind = data.get("kind") if isinstance(data, dict) else None
    known = isinstance(kind, str) and kind in kinds
    # Under an unknown kind the other entries cannot be judged.
    if isinstance(data, dict) and not known:
        found.append(f"{path}.kind must be one of {', '.join(kinds)}, not {kind!r}")
        return
    _judge_entries(data, path, kinds[kind] if known and kind is not None else {}, ("kind", *parts), found)


def _judge_block(block: Any, path: str, found: list[str]) -> None:
    if not _judge_entries(block, path, {}, ("attention", "ffn", "norm"), found):
        return
    for name, kinds, parts in (("attention", ATTENTION, ("heads",)), ("ffn", FFN, ()), ("norm", NORM, ())):
        if block.get(name) is not None:
            _judge_kind(block[name], f"{path}.{name}", kinds, parts, found)
    if block.get("attention") is None and block.get("ffn") is None:
        found.append(f"{path} has neither attention nor ffn")
    attention = block.get("attention")
    if isinstance(attention, dict) and "heads" in attention:
        _judge_heads(attention["heads"], f"{path}.attention.heads", found)


def _judge_heads(heads: Any, path: str, found: list[str]) -> None:
    if not isinstance(heads, list) or not heads:
        found.append(f"{path} must be a list of at least one group of heads, not {heads!r}")
        return
    for index, group in enumerate(heads):
        _judge_entries(group, f"{path}[{index}]", HEADS, (), found)


def _conflicts(data: dict[str, Any]) -> list[str]:
    found: list[str] = []
    tokens, width, code, readout = data["input"]["tokens"], data["width"], data["code"], data["readout"]
    length = {"one-hot": tokens, "circle": 2, "sinusoidal": code.get("width", 0)}.get(code["kind"], 0)
    if code.get("offset", 0) + length > width:
        found.append(
            f"the {code['kind']} code needs coordinates {code['offset']} to {code['offset'] + length - 1},"
            f" but width is {width}"
        )
    if readout["kind"] == "token" and readout["token"] >= tokens:
        found.append(f"readout.token is {readout['token']}, but the data tokens are 0 to {tokens - 1}")
    if readout["kind"] == "register" and readout["token"] >= data["registers"]:
        found.append(f"readout.token is {readout['token']}, but the number of registers is {data['registers']}")
    return found
