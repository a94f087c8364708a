"""Reading a stored transformer: what the checker does not know in every field, it refuses."""

from __future__ import annotations

import copy
import json
import struct
from contextlib import suppress

import numpy as np
import pytest

from certiformer.errors import BadInput
from certiformer.kernel.weights import check_config, expected_shapes, read_model, read_tensors
from certiformer.model import Attention, Block, Code, FeedForward, Heads, Norm, Readout, Transformer, tensor_specs
from certiformer.model.store import tensors_to_bytes
from kernel.networks import network_of
from model.cases import OPTIONS, model_of


def packed(entries: dict, body: bytes, *, metadata=None) -> bytes:
    header = dict(entries) if metadata is None else {"__metadata__": metadata, **entries}
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


def entry(start: int, end: int, shape=None, dtype="F64") -> dict:
    return {"dtype": dtype, "shape": [(end - start) // 8] if shape is None else shape, "data_offsets": [start, end]}


BODY = struct.pack("<4d", 1.0, 2.0, 3.0, 4.0)


def test_tensors_are_read_exactly():
    tensors = read_tensors(packed({"a": entry(0, 16), "b": entry(16, 32, [2, 1])}, BODY))
    assert tensors["a"].data == [1.0, 2.0]
    assert tensors["b"].data == [3.0, 4.0]
    assert tensors["b"].shape == (2, 1)


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
def test_every_stored_number_is_exact(dtype):
    model = model_of(dtype=dtype, registers=1)
    network = network_of(model)
    for name, tensor in model.tensors.items():
        assert network.tensors[name].data == np.asarray(tensor, dtype=np.float64).ravel().tolist()


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\x00" * 7, struct.pack("<Q", 100) + b"{}", struct.pack("<Q", 2**63) + b"{}", struct.pack("<Q", 2) + b"[]",
        struct.pack("<Q", 4) + b"null", struct.pack("<Q", 3) + b"{]}",
        packed({"a": entry(0, 16), "b": entry(16, 32)}, BODY)[:-1],  # truncated
        packed({"a": entry(0, 16), "b": entry(16, 32)}, BODY + b"\x00"),  # bytes left over
        packed({"a": entry(0, 16), "b": entry(0, 16)}, BODY),  # the same bytes twice, the lengths still add up
        packed({"a": entry(0, 24), "b": entry(16, 32)}, BODY),  # overlap
        packed({"a": entry(0, 24), "b": entry(24, 32), "c": entry(8, 8)}, BODY),  # an empty one inside another
        packed({"a": entry(8, 32)}, BODY),  # a gap
        packed({"a": entry(0, 40)}, BODY), packed({"a": entry(16, 0, [2])}, BODY), packed({"a": entry(-16, 16, [4])}, BODY),
        packed({"a": entry(0, 32, [3])}, BODY), packed({"a": entry(0, 32, [-2, -2])}, BODY),
        packed({"a": entry(0, 32, ["4"])}, BODY), packed({"a": entry(0, 32, "4")}, BODY), packed({"a": entry(0, 32, 4)}, BODY),
        packed({"a": entry(0, 32, [4.0])}, BODY), packed({"a": entry(0, 32, [True, 4])}, BODY),
        packed({"a": entry(0, 32, [4], "F16")}, BODY), packed({"a": entry(0, 32, [4], ["F64"])}, BODY),
        packed({"a": {**entry(0, 32), "note": 1}}, BODY), packed({"a": {"dtype": "F64", "shape": [4]}}, BODY),
        packed({"a": {**entry(0, 32), "data_offsets": [0, 16, 32]}}, BODY), packed({"a": [0, 32]}, BODY),
        packed({"a": entry(0, 32)}, struct.pack("<4d", 1, 2, float("nan"), 4)),
        packed({"a": entry(0, 32)}, struct.pack("<4d", 1, 2, float("-inf"), 4)),
        packed({"a": entry(0, 4, [1], "F32")}, b"\x00\x00\x80\x7f"), packed({"a": entry(0, 2, [1], "BF16")}, b"\xc0\x7f"),
        packed({"a": entry(0, 32)}, BODY).replace(b'"a"', b'"a": null, "a"', 1),
    ],
)  # fmt: skip
def test_truncated_overlapping_and_foreign_files_are_refused(data):
    with pytest.raises(BadInput):
        read_tensors(data)


@pytest.mark.parametrize("name", [name for name in OPTIONS if name != "ids"])
def test_the_checker_expects_exactly_the_tensors_of_the_model(name):
    config = model_of(**OPTIONS[name]).config
    expected = expected_shapes(check_config(json.loads(config.to_bytes())))
    assert expected == {name: spec.shape for name, spec in tensor_specs(config).items()}


def base():
    """A configuration with a position code, a mask, both sub-layers and a norm: every part occurs."""
    block = Block(Attention((Heads(1, 2, 3),), mask="table"), FeedForward(3), Norm("pre"))
    return model_of(blocks=(block,), registers=1, code=Code("circle", offset=1, period=3), readout=Readout("token", 1))


def every_place(data, path=()):
    """The path of every value in nested JSON data."""
    for key in data if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ():
        yield (*path, key)
        yield from every_place(data[key], (*path, key))


def changed(data, path, change):
    result = copy.deepcopy(data)
    inner = result
    for key in path[:-1]:
        inner = inner[key]
    change(inner, path[-1])
    return result


CONFIG = json.loads(base().config.to_bytes())
PLACES = list(every_place(CONFIG))


@pytest.mark.parametrize("path", PLACES, ids=str)
def test_every_entry_must_be_there_with_the_right_type(path):
    original = CONFIG
    for key in path:
        original = original[key]
    candidates = ["text", 7.5, -1, True, [], {}, [1], "1", None, 10**9 if path[-1] in ("offset", "token") else -3]
    accepted = []
    for value in candidates:
        with suppress(BadInput):
            data = changed(CONFIG, path, lambda inner, key, value=value: inner.__setitem__(key, value))
            assert check_config(data) == data
            accepted.append(value)
    # Absent sub-layers and norms are legal, flags may be flipped, an empty list of blocks is a linear model.
    legal = {"attention": [None], "ffn": [None], "norm": [None], "bias": [True], "residual": [True], "blocks": [[]]}
    assert [repr(v) for v in accepted] == [repr(v) for v in legal.get(path[-1], [])]
    if isinstance(path[-1], str):
        with pytest.raises(BadInput):
            check_config(changed(CONFIG, path, lambda inner, key: inner.pop(key)))


def test_unknown_entries_are_refused_everywhere():
    parts = [(), *[path for path in PLACES if isinstance(_at(path), dict)]]
    assert len(parts) >= 8
    for path in parts:
        data = copy.deepcopy(CONFIG)
        inner = data
        for key in path:
            inner = inner[key]
        inner["rotary"] = False
        with pytest.raises(BadInput, match="exactly the entries"):
            check_config(data)


def _at(path):
    inner = CONFIG
    for key in path:
        inner = inner[key]
    return inner


@pytest.mark.parametrize(
    "path_and_value",
    [
        (("format",), "certiformer-model-2"), (("dtype",), "float16"), (("input", "kind"), "ids"),
        (("code", "kind"), "rotary"), (("code", "offset"), 4), (("code", "period"), 0), (("readout", "kind"), "max"),
        (("readout", "token"), 3), (("readout",), {"kind": "register", "token": 1}), (("readout",), {"kind": "register"}),
        (("blocks", 0, "attention", "kind"), "sigmoid"), (("blocks", 0, "attention", "mask"), "strict"),
        (("blocks", 0, "attention", "heads"), []), (("blocks", 0, "attention", "residual"), 1),
        (("blocks", 0, "attention", "bias"), 0), (("blocks", 0, "ffn", "width"), 0), (("blocks", 0, "ffn", "kind"), "silu"),
        (("blocks", 0, "norm", "kind"), "rms"), (("blocks", 0, "norm", "epsilon"), 0.0),
        (("blocks", 0, "norm", "epsilon"), -1e-5), (("blocks", 0, "norm", "epsilon"), "1e-5"), (("loops",), 0),
        (("registers",), -1), (("width",), "5"), (("outputs",), 2.0),
    ],
    ids=str,
)  # fmt: skip
def test_values_out_of_range_are_refused(path_and_value):
    path, value = path_and_value
    with pytest.raises(BadInput, match="checker can read"):
        check_config(changed(CONFIG, path, lambda inner, key: inner.__setitem__(key, value)))


@pytest.mark.parametrize("config", [None, [], "config", 3, {}])
def test_what_is_no_object_is_no_configuration(config):
    with pytest.raises(BadInput):
        check_config(config)


def test_tensors_and_configuration_must_agree():
    model = base()
    config, data = model.config.to_bytes(), tensors_to_bytes(model)
    assert read_model(config, data)
    other = base().config.to_json()
    for change in (
        {"dtype": "float32"},  # the numbers are stored as F64
        {"registers": 2},
        {"outputs": 1},
        {"code": {"kind": "table"}},
    ):
        with pytest.raises(BadInput):
            read_model(json.dumps({**other, **change}).encode(), data)


def test_a_mask_holds_zeros_and_ones_only():
    model = base()
    data = tensors_to_bytes(model)
    mask = np.asarray(model.tensors["blocks.0.attention.mask"], np.uint8).tobytes()
    assert data.endswith(mask)  # the narrowest dtype is stored last
    with pytest.raises(BadInput, match="besides 0 and 1"):
        read_model(model.config.to_bytes(), data[:-1] + b"\x02")


def test_a_missing_and_a_surplus_tensor_are_named():
    model = base()
    plain = Transformer.random(model_of().config, 0)
    with pytest.raises(BadInput, match="disagree about the tensor"):
        read_model(model.config.to_bytes(), tensors_to_bytes(plain))
