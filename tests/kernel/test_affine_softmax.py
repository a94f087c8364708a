"""Prototype attention: its closed form contains every exact value, pruning is charged, recognition is exact."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import numpy as np
import pytest
from flint import arb

from certiformer.construct.prototype_attention import prototype_transformer
from certiformer.kernel.balls import Box, working_precision
from certiformer.kernel.layers import Head, Prototypes, _keep, as_prototypes
from certiformer.kernel.problem import Network
from certiformer.kernel.taylor import bounds
from certiformer.kernel.weights import Tensor
from certiformer.model import Attention, Block, Code, Config, FeedForward, Heads, Input, Norm, Readout, Transformer
from kernel.networks import exact, network_of, point_box
from kernel.oracle import places, point_of, precisely, violation

working_precision()


def random_head(rng: random.Random, dimension: int, outputs: int, count: int, steep: float) -> Head:
    def draw(size: float) -> arb:
        return arb(rng.uniform(-size, size))

    slopes = [[draw(steep) for _ in range(dimension)] for _ in range(count)]
    return Head(slopes, [draw(steep) for _ in range(count)], [[draw(3) for _ in range(outputs)] for _ in range(count)])


def random_prototypes(rng, dimension=2, outputs=2, heads=2, count=7, steep=3.0) -> Prototypes:
    lists = [random_head(rng, dimension, outputs, count, steep) for _ in range(heads)]
    weight = [[arb(rng.uniform(-1, 1)) for _ in range(outputs)] for _ in range(dimension)]
    bias = [arb(rng.uniform(-1, 1)) for _ in range(outputs)]
    return Prototypes(dimension, outputs, count, lists, weight, bias, [arb(0)] * outputs)


@pytest.mark.parametrize("order", range(9))
@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_the_closed_form_contains_every_exact_value(order, dimension):
    rng = random.Random(10 * order + dimension)
    for steep in (0.5, 5.0, 700.0):
        function = random_prototypes(rng, dimension, count=rng.choice([1, 2, 9]), steep=steep)
        for width in (1e-12, 1e-3, 0.3, 10 ** rng.uniform(0, 3)):
            box = Box(tuple(arb(rng.uniform(-1, 1)) for _ in range(dimension)), (arb(width),) * dimension)
            forms = function.forms(box, order)
            for e in places(rng, dimension, 4):
                for form, value in zip(forms, exact(function, point_of(box, e)), strict=True):
                    if order or form.singular == "":
                        assert form.singular == ""
                        assert violation(form, e, value) == ""


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_prototypes_without_weight_may_lie_anywhere(order):
    """Two prototypes that share the weight, and outliers with steep slopes that have none: where the scores are
    expanded must follow the weights, not the slopes."""
    rng = random.Random(order)
    for steep in (30.0, -200.0):
        slopes = [[arb(0.0)], [arb(1.0)], [arb(steep)], [arb(1.5 * steep)]]
        values = [[arb(rng.uniform(-1, 1))] for _ in slopes]
        head = Head(slopes, [arb(0), arb(0), arb(-90), arb(-90)], values)
        function = Prototypes(1, 1, 4, [head], [[arb(0)]], [arb(0)], [arb(0)])
        box = Box((arb(0.05),), (arb(0.1),))
        (form,) = function.forms(box, order)
        assert form.rem < 0.01
        for e in places(rng, 1, 12):
            assert violation(form, e, exact(function, point_of(box, e))[0]) == ""


def test_the_reference_notices_a_moved_value():
    rng = random.Random(4)
    function = random_prototypes(rng)
    box = Box((arb(0), arb(0)), (arb(0.05), arb(0.05)))
    moved = replace(function.heads[0], values=[[v[0] + arb(0.01), v[1]] for v in function.heads[0].values])
    forms = replace(function, heads=[moved, function.heads[1]]).forms(box, 6)
    value = exact(function, point_of(box, [0.3, -0.2]))
    assert violation(forms[0], [0.3, -0.2], value[0]) != ""
    assert violation(forms[1], [0.3, -0.2], value[1]) == ""


def test_the_output_never_leaves_the_range_of_the_values():
    function = random_prototypes(random.Random(1), 1, 1, 1, 5, 100.0)
    function = replace(function, weight=[[arb(0)]], bias=[arb(0)])
    column = [float(v[0]) for v in function.heads[0].values]
    for order in (1, 2, 4):
        low, high = bounds(function.forms(Box((arb(0),), (arb(1000),)), order)[0])
        assert min(column) <= float(low)
        assert float(high) <= max(column)


def gaussian_grid(rng: random.Random, side: int, sharpness: float) -> Prototypes:
    """A grid of side^2 prototypes on [-1, 1]^2 with random values: long enough to be pruned."""
    line = np.linspace(-1.2, 1.2, side)
    centres = np.array([[a, b] for a in line for b in line])
    values = np.array([[rng.uniform(-1, 1)] for _ in centres])
    model = prototype_transformer(
        centres, values, np.zeros(2), np.ones(2), np.full(2, 2 * sharpness / (line[1] - line[0]) ** 2)
    )
    found = as_prototypes(network_of(model))
    assert found is not None
    return found


@pytest.mark.parametrize("order", [1, 3])
def test_pruned_lists_charge_what_they_drop(order):
    rng = random.Random(order)
    full = gaussian_grid(rng, 25, 2.0)
    for width in (0.4, 0.05):
        box = Box((arb(0.3), arb(-0.2)), (arb(width), arb(width)))
        pruned = full.restrict(box)
        dropped = len(full.heads[0].offsets) - len(pruned.heads[0].offsets)
        assert dropped > 100
        assert 0 < pruned.slack[0] < 1e-15
        for e in places(rng, 2, 10):
            whole, part = exact(full, point_of(box, e))[0], exact(pruned, point_of(box, e))[0]
            with precisely():
                assert not abs(whole - part) > pruned.slack[0]
            assert violation(pruned.forms(box, order)[0], e, whole) == ""
        # Restricting again, on a part of the box, charges again and stays sound.
        inner = Box((arb(0.3), arb(-0.2)), (arb(width / 8), arb(width / 8)))
        twice = pruned.restrict(inner)
        assert not twice.slack[0] < pruned.slack[0]
        for e in places(rng, 2, 4):
            assert violation(twice.forms(inner, order)[0], e, exact(full, point_of(inner, e))[0]) == ""


def test_a_tail_is_an_upper_bound_of_the_dropped_weight_and_not_much_more(monkeypatch):
    """With a low cut the dropped weight is visible: the tail must exceed it everywhere, and do so by less than 1e4."""
    monkeypatch.setattr("certiformer.kernel.layers.CUT", 2)
    rng = random.Random(2)
    for _ in range(10):
        head = random_head(rng, 2, 1, 60, 20.0)
        box = Box((arb(rng.uniform(-1, 1)), arb(rng.uniform(-1, 1))), (arb(0.02), arb(0.02)))
        kept, tail = _keep(head, box)
        assert kept is not None
        largest = arb(0)
        for e in places(rng, 2, 10):
            point = point_of(box, e)
            with precisely():
                scores = [
                    offset + slope[0] * point[0] + slope[1] * point[1]
                    for slope, offset in zip(head.slopes, head.offsets, strict=True)
                ]
                top = max(scores, key=lambda s: s.mid())
                weights = [(s - top).exp() for s in scores]
                total = sum(weights, arb(0))
                omega = sum((w for j, w in enumerate(weights) if j not in kept), arb(0)) / total
                assert not omega > tail
                largest = omega if omega > largest else largest
        assert tail < 10_000 * largest


# --- recognition -------------------------------------------------------------------------------------------------------


def base_model(seed=0, **options) -> Transformer:
    """A random one-block transformer whose scores are affine and values constant: keys and values ignore x."""
    config = Config(
        **{
            "input": Input("continuous", 2, width=2),
            "width": 5,
            "outputs": 2,
            "readout": Readout("all"),
            "blocks": (Block(Attention((Heads(2, 3, 2), Heads(1, 1, 4)), bias=True)),),
            "registers": 3,
            "code": Code("circle", offset=2, period=5),
            **options,
        }
    )
    model = Transformer.random(config, seed)
    tensors = dict(model.tensors)
    tensors["embed.weight"] = np.concatenate([tensors["embed.weight"][:, :2], np.zeros((2, 3))], axis=1)
    for name in tensors:
        if name.endswith((".key", ".value")):
            tensors[name] = tensors[name].copy()
            tensors[name][:, :2, :] = 0.0
    return Transformer(config, tensors)


VARIANTS = {
    "all": {},
    "mean": {"readout": Readout("mean")},
    "sum": {"readout": Readout("sum")},
    "token": {"readout": Readout("token", 1)},
    "no residual, unit scale": {"blocks": (Block(Attention((Heads(1, 2, 2),), scale="unit", residual=False)),)},
    "toeplitz": {"blocks": (Block(Attention((Heads(2, 2, 2),), score_bias="toeplitz")),)},
    "score table, causal": {"blocks": (Block(Attention((Heads(1, 2, 1),), score_bias="table", mask="causal")),)},
    "no registers": {"registers": 0},
    "table code": {"code": Code("table")},
}


@pytest.mark.parametrize("name", VARIANTS)
def test_the_recognised_form_is_the_same_function(name):
    network = network_of(base_model(**VARIANTS[name]))
    found = as_prototypes(network)
    assert found is not None
    rng = random.Random(name)
    for _ in range(4):
        point = [rng.gauss(0, 2) for _ in range(4)]
        for a, b in zip(found.forms(point_box(point), 0), network.forms(point_box(point), 0), strict=True):
            (a_low, a_high), (b_low, b_high) = bounds(a), bounds(b)
            assert a_low <= b_high  # both balls contain the same real number
            assert b_low <= a_high
            assert float(a_high - a_low) < 1e-20
            assert float(b_high - b_low) < 1e-20


def test_keys_of_data_tokens_may_depend_on_x_if_queries_do_not():
    """Then the score is affine in the coordinates of the *other* token."""
    model = base_model()
    tensors = dict(model.tensors)
    for name in tensors:
        if name.endswith(".key"):
            tensors[name] = Transformer.random(model.config, 9).tensors[name]
        if name.endswith(".query"):
            tensors[name] = tensors[name].copy()
            tensors[name][:, :2, :] = 0.0
    network = network_of(Transformer(model.config, tensors))
    found = as_prototypes(network)
    assert found is not None
    point = [0.3, -1.0, 0.7, 0.2]
    for a, b in zip(found.forms(point_box(point), 0), network.forms(point_box(point), 0), strict=True):
        assert bounds(a)[0] <= bounds(b)[1]
        assert bounds(b)[0] <= bounds(a)[1]


@pytest.mark.parametrize("kind", ["key", "value"])
@pytest.mark.parametrize("size", [1.0, 1e-12, 5e-324])
def test_one_weight_that_makes_a_score_quadratic_or_a_value_move_is_enough_to_refuse(kind, size):
    model = base_model()
    for group in (0, 1):
        name = f"blocks.0.attention.groups.{group}.{kind}"
        tensors = {**model.tensors, name: model.tensors[name].copy()}
        tensors[name][0, 1, 0] = size
        assert as_prototypes(network_of(Transformer(model.config, tensors))) is None


def test_other_kinds_of_blocks_are_not_prototypes():
    heads = (Heads(1, 2, 2),)
    for blocks in (
        (Block(Attention(heads, kind="hard")),),
        (Block(Attention(heads, kind="linear")),),
        (Block(Attention(heads), FeedForward(2)),),
        (Block(Attention(heads), None, Norm("pre")),),
        (Block(None, FeedForward(2)),),
        (Block(Attention(heads)),) * 2,
        (),
    ):
        assert as_prototypes(network_of(base_model(blocks=blocks))) is None
    assert as_prototypes(network_of(base_model(loops=2))) is None
    assert as_prototypes(network_of(base_model(readout=Readout("register", 0)))) is None
    assert as_prototypes(network_of(base_model())) is not None


def test_a_row_without_any_allowed_key_is_left_to_the_network():
    model = base_model(blocks=(Block(Attention((Heads(1, 2, 2),), mask="table")),))
    mask = np.ones((5, 5))
    mask[3] = 0
    tensors = {**model.tensors, "blocks.0.attention.mask": mask}
    assert as_prototypes(network_of(Transformer(model.config, tensors))) is None
    assert as_prototypes(network_of(model)) is not None


def gated(kind: str, slope: float) -> Network:
    """The data token x looks, with the score 2 + slope x, at itself (x, 1) and at a register, whose score is zero, and
    adds what it saw; prototypes without values follow."""
    width, tensors = 4, {}

    def tensor(name: str, *shape: int, **entries: float) -> None:
        data = [0.0] * math.prod(shape)
        for place, number in entries.items():
            data[int(place.strip("_"))] = number
        tensors[name] = Tensor(shape, data)

    tensor("embed.weight", 1, width, _0=1.0)
    tensor("embed.bias", width, _1=1.0)
    tensor("registers", 1, width, _3=1.0)
    tensor("readout.weight", width, 1, _2=1.0)
    tensor("readout.bias", 1)
    for b in (0, 1):
        name = f"blocks.{b}.attention.groups.0"
        tensor(f"{name}.query", 1, width, 1, **({"_0": slope, "_1": 2.0} if b == 0 else {"_0": 1.0}))
        tensor(f"{name}.key", 1, width, 1, **({"_1": 1.0} if b == 0 else {"_3": 1.0}))
        tensor(f"{name}.value", 1, width, 1, **({"_1": 1.0} if b == 0 else {}))
        tensor(f"{name}.output", 1, 1, width, **({"_2": 1.0} if b == 0 else {}))
        rows = [0, 0, 1, 1] if b == 0 else [0, 0, 1, 0]  # of two rows the second is the data token
        tensors[f"blocks.{b}.attention.mask"] = Tensor((2, 2), list(map(float, rows)), "U8")
    attention = {
        "heads": [{"count": 1, "key": 1, "value": 1}], "bias": False, "scale": "unit", "mask": "table",
        "score_bias": "none", "residual": True,
    }  # fmt: skip
    blocks = [{"attention": {**attention, "kind": k}, "ffn": None, "norm": None} for k in (kind, "softmax")]
    config = {
        "format": "certiformer-model-1", "dtype": "float64", "input": {"kind": "continuous", "tokens": 1, "width": 1},
        "width": width, "registers": 1, "code": {"kind": "none"}, "blocks": blocks, "loops": 1,
        "readout": {"kind": "token", "token": 0}, "outputs": 1,
    }  # fmt: skip
    return Network(config, tensors)


@pytest.mark.parametrize("kind", ["softmax", "linear", "relu", "hard", "nearest"])
@pytest.mark.parametrize("slope", [-1.0, 1.0, 0.0])
def test_what_is_affine_on_one_box_alone_is_not_taken_for_affine(kind, slope):
    """Heads that choose, or cut off, do so beyond the box on which the program is read: forms there must say so."""
    network = gated(kind, slope)
    function = as_prototypes(network) or network
    for x in (-9.0, -2.5, 0.25, 2.5, 9.0):
        near = Box((arb(x),), (arb(0),))
        ((low, high),) = (bounds(form) for form in function.forms(near, 1))
        ((least, most),) = (bounds(form) for form in network.forms(near, 1))
        assert low <= most
        assert least <= high
    if kind in ("relu", "hard", "nearest"):
        assert as_prototypes(network) is None
    elif kind == "linear":
        assert as_prototypes(network) is not None
