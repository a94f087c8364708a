"""Configurations: legal ones survive JSON unchanged, illegal ones are refused with every reason."""

from __future__ import annotations

import copy
import json

import pytest
from hypothesis import given, settings

from certiformer.errors import BadInput
from certiformer.model import (
    Attention,
    Block,
    Code,
    Config,
    FeedForward,
    Heads,
    Input,
    Norm,
    Readout,
    tensor_specs,
)
from model.cases import OPTIONS, configs, model_of


@settings(max_examples=100, deadline=None, derandomize=True)
@given(configs)
def test_json_gives_the_same_configuration_back(config):
    data = json.loads(config.to_bytes())
    assert Config.from_json(data) == config
    assert Config.from_json(data).to_bytes() == config.to_bytes()


def test_bytes_are_canonical():
    data = model_of().config.to_bytes()
    assert data == (json.dumps(json.loads(data), sort_keys=True, indent=1) + "\n").encode()
    assert data.startswith(b'{\n "blocks": [\n  {\n   "attention": {')


def valid():
    return copy.deepcopy(model_of(**OPTIONS["pre-norm"]).config.to_json())


def change(data, path, value):
    *parents, last = path
    for key in parents:
        data = data[key]
    if value is REMOVED:
        del data[last]
    else:
        data[last] = value


REMOVED = object()
FAULTS = [
    (("format",), "certiformer-model-2", "format must be \"certiformer-model-1\", not 'certiformer-model-2'"),
    (("dtype",), "float16", "dtype must be one of float64, float32, bfloat16, not 'float16'"),
    (("width",), 0, "width must be a positive integer, not 0"),
    (("width",), True, "width must be a positive integer, not True"),
    (("width",), 5.0, "width must be a positive integer, not 5.0"),
    (("registers",), -1, "registers must be a non-negative integer, not -1"),
    (("loops",), 10**9, "loops must be an integer from 1 to 100,000, not 1000000000"),
    (("loops",), "2", "loops must be an integer from 1 to 100,000, not '2'"),
    (("outputs",), REMOVED, "outputs is missing"),
    (("activation",), "relu", "activation is not an entry we know"),
    (("input", "kind"), "images", "input.kind must be one of continuous, ids, not 'images'"),
    (("input", "vocabulary"), 4, "input.vocabulary is not an entry we know"),
    (("input",), None, "input must be an object, not None"),
    (("input",), [], "input must be an object, not []"),
    (("code",), {"kind": "one-hot"}, "code.offset is missing"),
    (("code",), {"kind": "one-hot", "offset": 3}, "the one-hot code needs coordinates 3 to 5, but width is 5"),
    (
        ("code",),
        {"kind": "circle", "offset": 4, "period": 3},
        "the circle code needs coordinates 4 to 5, but width is 5",
    ),
    (("code",), {"kind": "circle", "offset": 0, "period": 0}, "code.period must be a positive integer, not 0"),
    (("code",), {"kind": []}, "code.kind must be one of none, one-hot, sinusoidal, circle, table, not []"),
    (("blocks",), {}, "blocks must be a list, not {}"),
    (("blocks", 0, "norm"), REMOVED, "blocks[0].norm is missing"),
    (("blocks", 0, "norm", "epsilon"), 0, "blocks[0].norm.epsilon must be a positive number, not 0"),
    (("blocks", 0, "norm", "epsilon"), float("nan"), "blocks[0].norm.epsilon must be a positive number, not nan"),
    (("blocks", 0, "norm", "place"), "both", "blocks[0].norm.place must be one of pre, post, not 'both'"),
    (("blocks", 0, "ffn", "kind"), "tanh", "blocks[0].ffn.kind must be one of relu, gelu, identity, not 'tanh'"),
    (("blocks", 0, "attention", "heads"), [], "blocks[0].attention.heads must be a list of at least one group"),
    (("blocks", 0, "attention", "heads", 1, "key"), 0, "blocks[0].attention.heads[1].key must be a positive integer"),
    (("blocks", 0), {"attention": None, "ffn": None, "norm": None}, "blocks[0] has neither attention nor ffn"),
    (("blocks", 0), "attention", "blocks[0] must be an object, not 'attention'"),
    (("readout",), {"kind": "token", "token": 3}, "readout.token is 3, but the data tokens are 0 to 2"),
    (("readout",), {"kind": "register", "token": 2}, "readout.token is 2, but the number of registers is 1"),
    (("readout",), {"kind": "register"}, "readout.token is missing"),
]


@pytest.mark.parametrize(("path", "value", "reason"), FAULTS)
def test_each_fault_is_named(path, value, reason):
    data = valid()
    change(data, path, value)
    with pytest.raises(BadInput) as refusal:
        Config.from_json(data)
    assert reason in str(refusal.value)


def test_all_faults_are_named_at_once():
    data = valid()
    change(data, ("width",), 0)
    change(data, ("blocks", 0, "ffn", "width"), -3)
    change(data, ("readout", "kind"), "last")
    with pytest.raises(BadInput) as refusal:
        Config.from_json(data)
    assert all(name in str(refusal.value) for name in ("width must", "blocks[0].ffn.width must", "readout.kind must"))


@pytest.mark.parametrize("data", [None, [], "text", 3, {}, {"blocks": [None]}])
def test_something_else_is_refused(data):
    with pytest.raises(BadInput, match="not a transformer we can build"):
        Config.from_json(data)


def test_the_tensors_of_a_full_configuration():
    attention = Attention((Heads(2, 3, 4),), bias=True, mask="table", score_bias="toeplitz")
    block = Block(attention, FeedForward(7), Norm("pre"))
    code, readout = Code("table"), Readout("mean")
    config = Config(Input("ids", 3, vocabulary=9), 5, 2, readout, (block,), 2, code, dtype="float32")
    assert {name: spec.shape for name, spec in tensor_specs(config).items()} == {
        "embed.weight": (9, 5),
        "registers": (2, 5),
        "code.table": (3, 5),
        "blocks.0.attention.groups.0.query": (2, 5, 3),
        "blocks.0.attention.groups.0.key": (2, 5, 3),
        "blocks.0.attention.groups.0.value": (2, 5, 4),
        "blocks.0.attention.groups.0.output": (2, 4, 5),
        "blocks.0.attention.groups.0.query_bias": (2, 3),
        "blocks.0.attention.groups.0.key_bias": (2, 3),
        "blocks.0.attention.groups.0.value_bias": (2, 4),
        "blocks.0.attention.groups.0.score_bias": (2, 9),
        "blocks.0.attention.output_bias": (5,),
        "blocks.0.attention.mask": (5, 5),
        "blocks.0.ffn.up": (5, 7),
        "blocks.0.ffn.up_bias": (7,),
        "blocks.0.ffn.down": (7, 5),
        "blocks.0.ffn.down_bias": (5,),
        "blocks.0.norm.attention.scale": (5,),
        "blocks.0.norm.attention.shift": (5,),
        "blocks.0.norm.ffn.scale": (5,),
        "blocks.0.norm.ffn.shift": (5,),
        "readout.weight": (5, 2),
        "readout.bias": (2,),
    }
    dtypes = {name: spec.dtype for name, spec in tensor_specs(config).items()}
    assert dtypes.pop("blocks.0.attention.mask") == "uint8"
    assert set(dtypes.values()) == {"float32"}
