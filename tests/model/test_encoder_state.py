"""State dicts of PyTorch's encoders, against a forward pass in NumPy written after torch's documentation; no torch needed."""

from __future__ import annotations

import math

import numpy as np
import pytest
import safetensors.numpy

import certiformer
from certiformer.errors import BadInput

SAME = 1e-12  # two orders of the same sums of a few numbers of size one, in float64
ERF = np.vectorize(math.erf)
ACTIVATIONS = {"relu": lambda x: np.maximum(x, 0), "gelu": lambda x: x * (1 + ERF(x / math.sqrt(2))) / 2}


def random_state(d=4, hidden=6, layers=2, tokens=3, inputs=2, outputs=2, seed=0, biases=True):
    """Names and shapes as `nn.Module.state_dict()` of torch gives them."""
    random = np.random.default_rng(seed)
    shapes = {"embed.weight": (d, inputs), "positions": (1, tokens, d), "head.weight": (outputs, d)}
    bias_shapes = {"embed.bias": (d,), "head.bias": (outputs,), "encoder.norm.bias": (d,)}
    shapes["encoder.norm.weight"] = (d,)
    for i in range(layers):
        p = f"encoder.layers.{i}."
        shapes |= {p + "self_attn.in_proj_weight": (3 * d, d), p + "self_attn.out_proj.weight": (d, d)}
        shapes |= {p + "linear1.weight": (hidden, d), p + "linear2.weight": (d, hidden)}
        shapes |= {p + "norm1.weight": (d,), p + "norm2.weight": (d,)}
        bias_shapes |= {p + "self_attn.in_proj_bias": (3 * d,), p + "self_attn.out_proj.bias": (d,)}
        bias_shapes |= {p + "linear1.bias": (hidden,), p + "linear2.bias": (d,)}
        bias_shapes |= {p + "norm1.bias": (d,), p + "norm2.bias": (d,)}
    return {name: random.standard_normal(shape) for name, shape in (shapes | (bias_shapes if biases else {})).items()}


def reference(state, x, heads, activation, norm_first, read, causal=False, epsilon=1e-5):
    """What torch's documentation says that the module computes; `x` is (tokens, width)."""

    def linear(name, rows):
        return rows @ state[f"{name}.weight"].T + state.get(f"{name}.bias", 0.0)

    def norm(name, rows):
        centred = rows - rows.mean(1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(1, keepdims=True) + epsilon)
        return scaled * state[f"{name}.weight"] + state.get(f"{name}.bias", 0.0)

    def attention(p, rows):
        q, k, v = np.split(rows @ state[p + "in_proj_weight"].T + state.get(p + "in_proj_bias", 0.0), 3, axis=1)
        size, parts = q.shape[1] // heads, []
        for h in range(heads):
            part = slice(h * size, (h + 1) * size)
            scores = q[:, part] @ k[:, part].T / math.sqrt(size)
            if causal:
                scores = np.where(np.tri(len(rows), dtype=bool), scores, -np.inf)
            weights = np.exp(scores - scores.max(1, keepdims=True))
            parts.append(weights / weights.sum(1, keepdims=True) @ v[:, part])
        return linear(p + "out_proj", np.concatenate(parts, 1))

    def hidden(p, rows):
        return linear(p + "linear2", ACTIVATIONS[activation](linear(p + "linear1", rows)))

    rows = linear("embed", x) + state["positions"][0]
    for i in range(sum(name.endswith("in_proj_weight") for name in state)):
        p = f"encoder.layers.{i}."
        if norm_first:
            rows = rows + attention(p + "self_attn.", norm(p + "norm1", rows))
            rows = rows + hidden(p, norm(p + "norm2", rows))
        else:
            rows = norm(p + "norm1", rows + attention(p + "self_attn.", rows))
            rows = norm(p + "norm2", rows + hidden(p, rows))
    rows = linear("head", norm("encoder.norm", rows))
    pooled = {"all": rows.ravel(), "mean": rows.mean(0), "sum": rows.sum(0), "first": rows[0], "last": rows[-1]}
    return pooled[read]


def written(folder, state, dtype=np.float64):
    path = folder / "net.safetensors"
    safetensors.numpy.save_file({name: np.ascontiguousarray(a, dtype) for name, a in state.items()}, path)
    return path


FACTS = {"heads": 2, "activation": "gelu", "norm_first": False, "read": "mean"}


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize(
    ("read", "causal", "biases"), [("all", True, True), ("mean", False, False), ("last", True, True)]
)
def test_a_file_becomes_the_encoder_of_the_documentation(tmp_path, norm_first, activation, read, causal, biases):
    state = random_state(biases=biases)
    facts = {"heads": 2, "activation": activation, "norm_first": norm_first, "read": read, "causal": causal}
    model = certiformer.from_torch(written(tmp_path, state), norm_epsilon=1e-3, **facts)
    points = np.random.default_rng(1).standard_normal((5, 6))
    wanted = [reference(state, p.reshape(3, 2), epsilon=1e-3, **facts) for p in points]
    assert np.abs(model.evaluate(points) - wanted).max() < SAME


def test_each_fact_matters(tmp_path):
    """The negative control of the test above: with a wrong fact the numbers are others."""
    state = random_state()
    path, points = written(tmp_path, state), np.random.default_rng(1).standard_normal((5, 6))
    wanted = [reference(state, p.reshape(3, 2), **FACTS) for p in points]
    wrong = [{"heads": 1}, {"activation": "relu"}, {"norm_first": True}, {"read": "sum"}, {"causal": True}]
    assert np.abs(certiformer.from_torch(path, **FACTS).evaluate(points) - wanted).max() < SAME
    for fact in [*wrong, {"norm_epsilon": 0.1}]:
        model = certiformer.from_torch(path, **{**FACTS, **fact})
        assert np.abs(model.evaluate(points) - wanted).max() > 1e-3, fact


def test_stored_types_are_kept(tmp_path):
    assert certiformer.from_torch(written(tmp_path, random_state(), np.float32), **FACTS).config.dtype == "float32"
    assert certiformer.from_torch(written(tmp_path, random_state(), np.float64), **FACTS).config.dtype == "float64"


def test_tokens_come_from_the_positions_or_from_whoever_asks(tmp_path):
    state = random_state()
    assert certiformer.from_torch(written(tmp_path, state), **FACTS).config.tokens == 3
    with pytest.raises(BadInput, match="positions is for 3 tokens, not for 2"):
        certiformer.from_torch(written(tmp_path, state), tokens=2, **FACTS)
    del state["positions"]
    with pytest.raises(BadInput, match="how many tokens"):
        certiformer.from_torch(written(tmp_path, state), **FACTS)
    assert certiformer.from_torch(written(tmp_path, state), tokens=5, **FACTS).config.tokens == 5


@pytest.mark.parametrize("fact", ["heads", "activation", "norm_first", "read"])
def test_what_a_file_does_not_say_must_be_said(tmp_path, fact):
    facts = {name: value for name, value in FACTS.items() if name != fact}
    with pytest.raises(BadInput, match=f"does not say its {fact}"):
        certiformer.from_torch(written(tmp_path, random_state()), **facts)


def _renamed(name, names):
    for old, new in names.items():
        name = new + name.removeprefix(old) if name.startswith(old) else name
    return name


def changed(**arrays):
    return {**random_state(), **{name.replace("__", "."): array for name, array in arrays.items()}}


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        (changed(cls=np.zeros((1, 1, 4))), "the tensor cls is no part"),
        (changed(encoder__layers__0__gate__weight=np.zeros((4, 4))), "encoder.layers.0.gate"),
        (changed(encoder__layers__1__norm1__weight=np.zeros(3)), "encoder.layers.1.norm1.weight has the shape"),
        (changed(second__weight=np.zeros((1, 4))), "3 linear maps"),
        (changed(norm__weight=np.zeros(4)), "2 norms"),
        (
            {_renamed(k, {"encoder.norm.": "norm_in."}): a for k, a in random_state().items()},
            "the norm norm_in could stand",
        ),
        (changed(embed__weight=np.zeros((2, 4))), "both embed and head would stand behind"),
        (changed(encoder__layers__5__self_attn__in_proj_weight=np.zeros((12, 4))), "not numbered one after the other"),
        (
            {k: v for k, v in random_state().items() if k != "encoder.layers.1.linear2.weight"},
            "has no tensor linear2.weight",
        ),
        ({"fc.weight": np.zeros((2, 2))}, "no nn.TransformerEncoderLayer"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_has_no_place_is_refused_by_name(tmp_path, state, sentence):
    with pytest.raises(BadInput, match=sentence):
        certiformer.from_torch(written(tmp_path, state), **FACTS)


def test_square_maps_are_told_apart_by_name_or_number_or_not_at_all(tmp_path):
    state = random_state(inputs=4, outputs=4)
    points = np.random.default_rng(1).standard_normal((3, 12))
    wanted = [reference(state, p.reshape(3, 4), **FACTS) for p in points]
    assert np.abs(certiformer.from_torch(written(tmp_path, state), **FACTS).evaluate(points) - wanted).max() < SAME
    names = {"embed.": "0.", "encoder.": "1.", "head.": "2."}
    numbered = {_renamed(name, names): array for name, array in state.items()}
    assert np.abs(certiformer.from_torch(written(tmp_path, numbered), **FACTS).evaluate(points) - wanted).max() < SAME
    unclear = {_renamed(name, {"embed.": "alpha."}): array for name, array in state.items()}
    with pytest.raises(BadInput, match="alpha could stand before or behind the encoder"):
        certiformer.from_torch(written(tmp_path, unclear), **FACTS)


def test_a_pickle_is_never_opened(tmp_path):
    path = tmp_path / "net.pt"
    path.write_bytes(b"anything")
    with pytest.raises(BadInput, match="would have to be unpickled"):
        certiformer.prove(path, "x1", on="[0, 1]", eps=1)


def test_prove_reads_a_state_dict_and_speaks_of_its_inputs(tmp_path):
    state = random_state(d=2, hidden=2, layers=1, tokens=1, inputs=1, outputs=1)
    state = {name: array / 10 for name, array in state.items()}
    path = written(tmp_path, state)
    run = certiformer.prove(path, "0", on="[0, 1]", eps=1, **FACTS)
    assert run.certified and run.model.config.input.width == 1
    wanted = reference(state, np.array([[0.5]]), **FACTS)
    assert np.abs(run.evaluate([[0.5]])[0] - wanted).max() < SAME
    with pytest.raises(BadInput, match="for 1 tokens, not for 2"):
        certiformer.prove(path, "0", on="[0, 1]^2", eps=1, **FACTS)
    with pytest.raises(BadInput, match="heads is for the state dict"):
        certiformer.prove(run.model, "0", on="[0, 1]", eps=1, heads=2)
