"""Modules of real PyTorch: `from_torch` gives their numbers to 1e-10 in float64, or says what it does not read."""

from __future__ import annotations

import re
import runpy
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import certiformer
from certiformer.errors import BadInput

torch = pytest.importorskip(
    "torch", reason="PyTorch is not installed (pip install torch): from_torch was not compared with it"
)
nn = torch.nn
AGREEMENT = 1e-10  # what is promised; sums of some tens of numbers in another order differ by about 1e-14


class Encoder(nn.Module):
    """A user's own module around torch's encoder."""

    def __init__(
        self, pool="mean", layers=2, norm_first=False, activation="relu", bias=True, final=True, positions=True
    ):
        super().__init__()
        torch.manual_seed(3)
        self.pool = pool
        self.embed = nn.Linear(2, 8, bias=bias)
        self.positions = nn.Parameter(torch.randn(3, 8)) if positions else None
        layer = nn.TransformerEncoderLayer(8, 2, 12, 0.3, activation, 1e-4, True, norm_first, bias=bias)
        norm = nn.LayerNorm(8, eps=1e-3) if final else None
        self.encoder = nn.TransformerEncoder(layer, layers, norm, enable_nested_tensor=False)
        self.head = nn.Linear(8, 1)
        with torch.no_grad():  # no norm or bias stays at its neutral start, and no layer is a copy of another
            for parameter in self.parameters():
                parameter.add_(0.3 * torch.randn_like(parameter))

    def forward(self, x):
        rows = self.embed(x)
        rows = self.encoder(rows if self.positions is None else rows + self.positions)
        if self.pool == "all":
            return self.head(rows)
        pooled = {"mean": rows.mean(1), "sum": rows.sum(1), "first": rows[:, 0], "last": rows[:, -1]}
        return self.head(pooled[self.pool])


def difference(module, model, tokens=3, width=2):
    points = np.random.default_rng(5).standard_normal((40, tokens * width))
    with torch.no_grad():
        wanted = module.double().eval()(torch.from_numpy(points).reshape(-1, tokens, width))
    return np.abs(model.evaluate(points) - wanted.reshape(40, -1).numpy()).max()


ENCODERS = list(product([True, False], ["relu", "gelu"], [True, False], [True, False]))
USUAL = ((False, "relu", True, False), (True, "gelu", False, True))


@pytest.mark.parametrize(
    ("norm_first", "activation", "bias", "final"),
    [pytest.param(*options, marks=[] if options in USUAL else pytest.mark.slow) for options in ENCODERS],
)
def test_the_numbers_are_those_of_torch(norm_first, activation, bias, final):
    module = Encoder(norm_first=norm_first, activation=activation, bias=bias, final=final)
    model = certiformer.from_torch(module)
    assert model.config.dtype == "float32"
    assert difference(module, model) < AGREEMENT


@pytest.mark.parametrize(
    "pool", ["mean", "last", *(pytest.param(pool, marks=pytest.mark.slow) for pool in ("all", "sum", "first"))]
)
def test_the_read_out_is_found_by_running_the_module(pool):
    module = Encoder(pool, positions=False)
    model = certiformer.from_torch(module, tokens=3)
    assert difference(module, model) < AGREEMENT


def test_a_sequence_of_layers_tokens_first():
    torch.manual_seed(0)
    layers = [nn.TransformerEncoderLayer(4, heads, 8, norm_first=heads == 2) for heads in (1, 2)]
    module = nn.Sequential(nn.Linear(1, 4), *layers, nn.LayerNorm(4), nn.Linear(4, 2)).double().eval()
    model = certiformer.from_torch(module, tokens=3)
    points = np.random.default_rng(5).standard_normal((10, 3))
    with torch.no_grad():
        wanted = module(torch.from_numpy(points.T[:, :, None])).transpose(0, 1).reshape(10, 6).numpy()
    assert model.config.dtype == "float64"
    assert np.abs(model.evaluate(points) - wanted).max() < AGREEMENT


def test_a_mask_is_found_by_running_the_module():
    class Causal(Encoder):
        def forward(self, x):
            mask = nn.Transformer.generate_square_subsequent_mask(3, dtype=x.dtype)
            return self.head(self.encoder(self.embed(x) + self.positions, mask=mask, is_causal=True)[:, -1])

    module = Causal()
    model = certiformer.from_torch(module)
    assert {block.attention.mask for block in model.config.blocks if block.attention} == {"causal"}
    assert difference(module, model) < AGREEMENT


def test_a_file_and_its_module_are_one_transformer(tmp_path):
    from safetensors.torch import save_file

    module = Encoder()
    save_file(module.state_dict(), tmp_path / "net.safetensors")
    facts = {"heads": 2, "activation": "relu", "norm_first": False, "read": "mean", "norm_epsilon": 1e-4}
    model = certiformer.from_torch(tmp_path / "net.safetensors", **facts)
    own = certiformer.from_torch(module)
    assert model.tensors.keys() == own.tensors.keys()
    assert all(np.array_equal(model.tensors[name], own.tensors[name]) for name in own.tensors)


class Doubled(Encoder):
    def forward(self, x):
        return 2 * super().forward(x)


def with_part(name, part):
    module = Encoder()
    setattr(module, name, part)
    return module


def layer(**changes):
    return nn.Sequential(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, **changes))


REFUSED = {
    "a forward of its own": (Doubled, "the module Doubled computes something else"),
    "an activation": (lambda: layer(activation=torch.tanh), "the activation of the module 0 is"),
    "an approximate GELU": (lambda: layer(activation=nn.GELU(approximate="tanh")), "the activation of the module 0 is"),
    "another module": (lambda: with_part("squash", nn.Tanh()), "the module squash is Tanh"),
    "a convolution": (lambda: with_part("conv", nn.Conv1d(2, 2, 1)), "the module conv is Conv1d"),
    "a decoder": (lambda: nn.TransformerDecoderLayer(4, 2, 8), "the module itself is TransformerDecoderLayer"),
    "no encoder": (lambda: nn.Linear(2, 2), "no nn.TransformerEncoderLayer"),
    "a second head": (lambda: with_part("other", nn.Linear(8, 1)), "3 linear maps"),
}


@pytest.mark.parametrize(("make", "sentence"), REFUSED.values(), ids=REFUSED)
def test_everything_else_is_refused_by_name(make, sentence):
    with pytest.raises(BadInput, match=sentence):
        certiformer.from_torch(make(), tokens=3)


def test_the_module_is_left_as_it_was():
    module = Encoder().train()
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    certiformer.from_torch(module)
    assert module.training
    assert all(torch.equal(before[name], tensor) for name, tensor in module.state_dict().items())


@pytest.mark.slow
def test_the_example_of_the_page_is_proved(tmp_path, monkeypatch):
    """docs/from-torch.md trains an encoder and proves it; here its program is run as it stands."""
    page = (Path(__file__).parents[2] / "docs" / "from-torch.md").read_text(encoding="utf-8")
    program = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "example.py").write_text(program, encoding="utf-8")
    run = runpy.run_path("example.py")["run"]
    assert run.certified
    assert certiformer.check("runs/from-torch").accepted
