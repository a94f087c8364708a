"""The complementary error function of the float64 GELU, against ball arithmetic."""

from __future__ import annotations

import math

import numpy as np
import pytest
from flint import arb

from certiformer.export.onnx_attention import ERFC_EXPONENT
from certiformer.model import Block, Config, FeedForward, Input, Readout, Transformer

pytest.importorskip("onnx", reason='the library onnx is not installed: pip install "certiformer[onnx]"')
runtime = pytest.importorskip("onnxruntime", reason='onnxruntime is not installed: pip install "certiformer[onnx]"')


def gelu_alone() -> Transformer:
    config = Config(
        Input("continuous", 1, width=1),
        width=1,
        outputs=1,
        readout=Readout("token", 0),
        blocks=(Block(None, FeedForward(1, "gelu", residual=False)),),
    )
    names = ("embed.weight", "blocks.0.ffn.up", "blocks.0.ffn.down", "readout.weight")
    zeros = ("embed.bias", "blocks.0.ffn.up_bias", "blocks.0.ffn.down_bias", "readout.bias")
    return Transformer(config, {**dict.fromkeys(names, [[1.0]]), **dict.fromkeys(zeros, [0.0])})


def test_gelu_in_float64_is_right_to_the_last_digits():
    from certiformer.export import to_onnx

    x = np.concatenate([np.linspace(-40, 40, 4001), [1e-300, -1e-300, 1e3, -1e3, 1e200, -1e200]])
    run = runtime.InferenceSession(to_onnx(gelu_alone()), providers=["CPUExecutionProvider"])
    outputs = run.run(None, {"points": x[:, None]})[0][:, 0]
    for value, output in zip(x, outputs, strict=True):
        exact = arb(value) * (-arb(value) / arb(2).sqrt()).erfc() / 2
        # 3e-16 from the interpolation and four roundings of 1.1e-16, all relative to x or smaller
        assert abs(arb(output) - exact) <= arb(1e-15) * abs(arb(value)), value


def test_the_exponent_is_small_enough_for_horner():
    assert max(map(abs, ERFC_EXPONENT)) < 0.68
    assert math.isclose(sum(ERFC_EXPONENT), 0.0, abs_tol=1e-15)  # z = 0: erfc is 1, t is 1, so P(1) is 0
